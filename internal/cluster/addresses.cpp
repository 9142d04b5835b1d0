#include "internal/cluster/addresses.h"

namespace narad::cluster {
namespace {

bool names_no_host(const std::string& host) {
  return host.empty() || host == "0.0.0.0" || host == "::";
}

}  // namespace

std::string advertised(const std::string& listen_addr, const std::string& own_peer_addr,
                       const std::string& fallback_host) {
  auto listen = parse_endpoint(listen_addr);
  if (!listen || !names_no_host(listen.value().host)) return listen_addr;
  Endpoint out = listen.value();
  out.host = fallback_host;
  const auto own = parse_endpoint(own_peer_addr);
  if (own && !names_no_host(own.value().host)) out.host = own.value().host;
  return to_string(out);
}

namespace {

RaftIndex row_of(const metastore::State& state, const std::string& node) {
  const metastore::Member* m = state.members.find(node);
  return m == nullptr ? RaftIndex(0) : m->changed_at;
}

}  // namespace

void AddressHints::put(const metastore::State& state, const std::string& node, Endpoint at) {
  hints_[node] = Hint{std::move(at), row_of(state, node)};
}

std::optional<Endpoint> AddressHints::find(const metastore::State& state,
                                           const std::string& node) const {
  const auto at = hints_.find(node);
  if (at == hints_.end() || at->second.row != row_of(state, node)) return std::nullopt;
  return at->second.at;
}

std::optional<Endpoint> address_of(const metastore::State& state, const AddressHints& hints,
                                   const std::map<std::string, Endpoint>& configured,
                                   const std::string& node) {
  if (auto hint = hints.find(state, node)) return hint;
  if (const metastore::Member* m = state.members.find(node)) {
    const auto at = parse_endpoint(m->cluster_addr);
    if (at && !names_no_host(at.value().host)) return at.value();
  }
  const auto at = configured.find(node);
  if (at == configured.end()) return std::nullopt;
  return at->second;
}

std::vector<wire::MemberAddress> known_addresses(const metastore::State& state) {
  std::vector<wire::MemberAddress> out;
  state.members.for_each([&](const std::shared_ptr<const metastore::Member>& m) {
    if (out.size() < raft::kMembersMax) out.push_back({m->id, m->cluster_addr});
  });
  return out;
}

}  // namespace narad::cluster
