#include "internal/peer/judge.h"

#include "pkg/base/text.h"

namespace narad::peer {
namespace {

using wire::Refusal;
using wire::RefusalCode;

std::string other_replica(const Sender& other, ReplicaId configured) {
  return cat(other.node_id, " is configured as replica ", to_hex16(configured.value()),
             other.replica == ReplicaId() ? ", but has none yet" : ", but is replica ",
             other.replica == ReplicaId() ? "" : to_hex16(other.replica.value()),
             ": its disk was emptied or is of an earlier life, so it has to join again");
}

std::string other_cluster(const Sender& self, const Sender& other) {
  return cat(other.node_id, " belongs to cluster ", to_hex16(other.cluster_id), ", this is ",
             self.node_id, " of cluster ", to_hex16(self.cluster_id),
             ": check the addresses in cluster.peers, or the data directory of the node that is in "
             "the wrong place");
}

}  // namespace

wire::Hello hello_of(const Sender& self, Lane lane, const wire::Nonce& nonce) {
  wire::Hello hello;
  hello.lane = static_cast<std::uint8_t>(lane);
  hello.cluster_id = self.cluster_id;
  hello.replica_id = self.replica.value();
  hello.nonce = nonce;
  hello.node_id = self.node_id;
  return hello;
}

Sender sender_of(const wire::Hello& hello) {
  return Sender{hello.node_id, ReplicaId(hello.replica_id), hello.cluster_id};
}

bool is_stranger(const Sender& self, const Sender& other, std::optional<ReplicaId> configured,
                 Lane lane) {
  return self.cluster_id == 0 || other.cluster_id != self.cluster_id ||
         (lane != Lane::raft && configured && *configured != other.replica);
}

std::string why_stranger(const Sender& self, const Sender& other,
                         std::optional<ReplicaId> configured) {
  if (self.cluster_id == 0) return cat(self.node_id, " has not joined a cluster yet");
  if (other.cluster_id == 0) return cat(other.node_id, " has not joined the cluster yet");
  if (other.cluster_id != self.cluster_id) return other_cluster(self, other);
  return other_replica(other, configured.value_or(ReplicaId()));
}

std::optional<Refusal> judge(const Sender& self, const wire::Hello& hello,
                             std::optional<ReplicaId> configured, std::string_view meant) {
  const Sender other = sender_of(hello);
  if (hello.lane >= kLanes)
    return Refusal{RefusalCode::lane, cat("lane ", int{hello.lane},
                                          " is not known to this release of ", self.node_id)};
  if (self.cluster_id != 0 && other.cluster_id != 0 && self.cluster_id != other.cluster_id)
    return Refusal{RefusalCode::cluster, other_cluster(self, other)};
  if (other.node_id == self.node_id)
    return Refusal{RefusalCode::node_id,
                   cat("both ends say they are ", self.node_id,
                       ": either this node has been called by itself, or two nodes share a "
                       "cluster.node_id")};
  if (!meant.empty() && other.node_id != meant)
    return Refusal{RefusalCode::node_id, cat(self.node_id, " called ", meant, ", but ",
                                             other.node_id, " listens at that address")};
  const Lane lane{hello.lane};
  if (lane == Lane::control || !is_stranger(self, other, configured, lane)) return std::nullopt;
  if (self.cluster_id != 0 && other.cluster_id != 0)
    return Refusal{RefusalCode::replica, why_stranger(self, other, configured)};
  return Refusal{RefusalCode::lane, cat(why_stranger(self, other, configured),
                                        ": until then only the control lane is open")};
}

Refusal other_version(std::uint16_t version) {
  return Refusal{RefusalCode::version, cat("one node speaks version ", wire::kPreambleVersion,
                                           " of the cluster protocol, the other version ", version,
                                           ": upgrade the one with the older release")};
}

Refusal wrong_proof(const Sender& self, const Sender& other) {
  return Refusal{RefusalCode::proof,
                 cat(other.node_id, " and ", self.node_id,
                     " do not have the same cluster secret: NARAD_CLUSTER_SECRET must be equal on "
                     "all nodes")};
}

bool looks_like_http_request(ByteView first_bytes) {
  const std::string_view text = as_chars(first_bytes);
  for (std::string_view method :
       {"GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ", "OPTIONS "})
    if (text.starts_with(method)) return true;
  return false;
}

std::string guess_protocol(ByteView first_bytes) {
  const std::string_view text = as_chars(first_bytes);
  if (text.starts_with("HTTP/1.")) return " (it speaks HTTP: is it an http.addr?)";
  if (looks_like_http_request(first_bytes)) return " (it looks like an HTTP client)";
  if (text.starts_with("\x16\x03")) return " (it looks like TLS)";
  return "";
}

}  // namespace narad::peer
