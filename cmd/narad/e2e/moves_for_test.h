#pragma once
// What tests of partitions that move ask of a cluster; the topic is "orders".
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "cmd/narad/e2e/cluster.h"

namespace narad::e2e {

// Member -> partitions it owns, as node `asked` knows it; empty if it does not answer.
std::map<std::string, int> owned_by(Cluster& cluster, std::size_t asked);

// How many, as that node knows it; many if it does not answer.
std::size_t moves_under_way(Cluster& cluster, std::size_t asked);

// Partition -> its owner, as that node knows it; empty if it does not answer.
std::map<std::int64_t, std::string> owners(Cluster& cluster, std::size_t asked);

// Partition -> the nodes among `nodes` whose disks have its directory.
std::map<std::int64_t, std::set<std::string>> holders(Cluster& cluster,
                                                      const std::set<std::string>& nodes);
// What moves have left on that node's disk beside partitions: staging, copies set aside. Paths.
std::set<std::string> left_behind(Cluster& cluster, const std::string& node);

// Members and moves, for messages.
std::string describe(Cluster& cluster, std::size_t asked);

// The moves that have ended, as that node has them; empty if it does not answer.
std::string history(Cluster& cluster, std::size_t asked);

// True once that many more are accepted.
bool accepted_more(const Producers& load, std::size_t more);

}  // namespace narad::e2e
