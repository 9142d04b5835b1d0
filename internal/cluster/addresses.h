#pragma once
// Where nodes are reached, as text and as endpoints: what a node says of itself, and what others
// make of it. Identity is the node id; addresses may change at any time.
#include <map>
#include <optional>
#include <string>

#include "internal/metastore/state.h"
#include "internal/wire/member_messages.h"
#include "pkg/env/net.h"

namespace narad::cluster {

// What a node advertises for a listening address: the address itself, unless its host is empty or
// means every interface; then the host of this node's own entry in cluster.peers (empty: there is
// none; then `fallback_host`).
std::string advertised(const std::string& listen_addr, const std::string& own_peer_addr,
                       const std::string& fallback_host);

// What this process was told about addresses while its metastore was behind: by a peer that was
// itself reached there and proved who it is, or by such a peer about others. It holds until the
// metastore knows better: until the member's row is another than it was then.
class AddressHints {
 public:
  void put(const metastore::State& state, const std::string& node, Endpoint at);
  std::optional<Endpoint> find(const metastore::State& state, const std::string& node) const;

 private:
  struct Hint {
    Endpoint at;
    RaftIndex row;  // changed_at of the member's row then; 0: there was none
  };
  std::map<std::string, Hint> hints_;
};

// In this order: a hint that holds; cluster_addr of the member as the metastore knows it; what
// cluster.peers says of it.
std::optional<Endpoint> address_of(const metastore::State& state, const AddressHints& hints,
                                   const std::map<std::string, Endpoint>& configured,
                                   const std::string& node);

// The same without hints: before there is a Membership, whose address_of() has them.
inline std::optional<Endpoint> address_of(const metastore::State& state,
                                          const std::map<std::string, Endpoint>& configured,
                                          const std::string& node) {
  return address_of(state, AddressHints{}, configured, node);
}

// What the metastore knows, for others who ask who this node is.
std::vector<wire::MemberAddress> known_addresses(const metastore::State& state);

}  // namespace narad::cluster
