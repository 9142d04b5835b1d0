#pragma once
// What nodes say to each other about membership: who are you, let me in, I am here, you were
// removed. JSON bodies of the peer routes listed in docs/internals/peer-protocol.md. Pure.
//
// Decoding is bounded before anything is kept, overlooks fields it does not know (a newer release
// may say more) and answers invalid_argument, naming the field, for everything else. Golden file:
// testdata/wire/member_messages.ndjson.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/result.h"
#include "pkg/raft/configuration.h"

namespace narad::wire {

inline constexpr std::size_t kMemberMessageBytesMax = 1 << 20;
inline constexpr std::size_t kFoundersMax = 64;

// Where a node listens for others.
struct MemberAddress {
  std::string id;
  std::string cluster_addr;
  friend bool operator==(const MemberAddress&, const MemberAddress&) = default;
};

// The answer to "who are you": what a node with or without a cluster says to anybody who knows the
// secret. A node that has none yet learns from it whether there is a cluster, and how it began.
struct WhoAnswer {
  std::string node;
  raft::ReplicaId replica;
  std::uint64_t cluster_id = 0;  // 0: its disk belongs to no cluster
  // The configuration this node founded its cluster with; empty if it joined, or has none.
  std::vector<raft::Member> founding;
  std::string leader;  // the leader it knows, or empty
  // The members it knows: whom a newcomer cannot know from its configuration.
  std::vector<MemberAddress> members;
  friend bool operator==(const WhoAnswer&, const WhoAnswer&) = default;
};

// What a node says of itself.
struct MemberInfo {
  std::string id;
  raft::ReplicaId replica;
  std::string boot_id;
  std::string http_addr;
  std::string cluster_addr;
  std::vector<std::string> disks;
  friend bool operator==(const MemberInfo&, const MemberInfo&) = default;
};

struct JoinRequest {
  std::uint64_t cluster_id = 0;  // of the cluster it means to join
  MemberInfo member;
  friend bool operator==(const JoinRequest&, const JoinRequest&) = default;
};

// Admitted: a non-voter of the configuration, and a member of the metastore at `index`.
struct JoinAnswer {
  std::uint64_t cluster_id = 0;
  std::string leader;
  RaftIndex index{0};
  friend bool operator==(const JoinAnswer&, const JoinAnswer&) = default;
};

// What a draining node says of the messages it took (G46). An older release says neither that it
// refuses nor what is unanswered: such a node never counts as empty.
struct DrainStatus {
  RaftIndex drain_id{0};  // 0: it does not drain, as far as it knows
  // It answers client produce 503 because of that drain, and will after a restart, before it has
  // heard of anybody.
  bool refuses_produce = false;
  std::uint64_t unanswered = 0;   // produces that it let in before, and has not answered yet
  bool wal_open = false;          // false: it cannot tell what its WAL holds
  std::uint64_t wal_records = 0;  // in its ingress WAL, not handed over yet

  // Nothing that was accepted there is anywhere but in partitions, and nothing more can come.
  bool empty_under(RaftIndex drain) const {
    return drain_id == drain && refuses_produce && unanswered == 0 && wal_open && wal_records == 0;
  }
  friend bool operator==(const DrainStatus&, const DrainStatus&) = default;
};

struct HeartbeatRequest {
  MemberInfo member;
  DrainStatus drain;
  friend bool operator==(const HeartbeatRequest&, const HeartbeatRequest&) = default;
};

// The leader was the leader after the heartbeat arrived, and this member was alive at `index`.
struct HeartbeatAnswer {
  RaftIndex index{0};
  std::uint64_t term = 0;
  std::string leader;
  UnixMillis leader_wall{0};  // the leader's wall clock: five minutes apart means distrust
  friend bool operator==(const HeartbeatAnswer&, const HeartbeatAnswer&) = default;
};

// Why a request about membership was not granted. The HTTP status follows from the reason.
enum class Refused : std::uint8_t {
  not_leader,     // 421: ask `leader` (empty: nobody known)
  unavailable,    // 503: try again
  unknown,        // 404: not a member: ask to join
  replaced,       // 409: the node is configured under another replica id: ask to join
  other_cluster,  // 409
  removed,        // 410: see removed_at
  invalid,        // 400
};
std::string_view to_string(Refused reason);
int status_of(Refused reason);

struct MemberRefusal {
  Refused reason = Refused::unavailable;
  std::string error;   // for people
  std::string leader;  // of not_leader
  RaftIndex removed_at{0};
  UnixMillis removed_ms{0};
  friend bool operator==(const MemberRefusal&, const MemberRefusal&) = default;
};

std::string encode(const WhoAnswer& m);
std::string encode(const JoinRequest& m);
std::string encode(const JoinAnswer& m);
std::string encode(const HeartbeatRequest& m);
std::string encode(const HeartbeatAnswer& m);
std::string encode(const MemberRefusal& m);

Result<WhoAnswer> decode_who_answer(std::string_view body);
Result<JoinRequest> decode_join_request(std::string_view body);
Result<JoinAnswer> decode_join_answer(std::string_view body);
Result<HeartbeatRequest> decode_heartbeat_request(std::string_view body);
Result<HeartbeatAnswer> decode_heartbeat_answer(std::string_view body);
// Total: a body that is no refusal (an older node, a proxy) becomes `unavailable` with its text.
MemberRefusal decode_refusal(int status, std::string_view body);

}  // namespace narad::wire
