#pragma once
// Where nodes are reached, as text and as endpoints: what a node says of itself, and what others
// make of it. Identity is the node id; addresses may change at any time.
#include <map>
#include <optional>
#include <string>

#include "internal/metastore/state.h"
#include "pkg/env/net.h"

namespace narad::cluster {

// What a node advertises for a listening address: the address itself, unless its host is empty or
// means every interface; then the host of this node's own entry in cluster.peers (empty: there is
// none; then `fallback_host`).
std::string advertised(const std::string& listen_addr, const std::string& own_peer_addr,
                       const std::string& fallback_host);

// cluster_addr of the member as the metastore knows it; else what cluster.peers says of it.
std::optional<Endpoint> address_of(const metastore::State& state,
                                   const std::map<std::string, Endpoint>& configured,
                                   const std::string& node);

}  // namespace narad::cluster
