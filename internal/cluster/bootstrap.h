#pragma once
// What a starting node does about a cluster: goes on in its own, founds one, joins one, or waits.
// Pure.
//
// One node founds: the first, by id, of those that may; it draws the cluster id and fixes the
// configuration, and the others take both over from it. Two nodes can therefore never found
// different clusters out of the same emptiness. It founds only if every configured peer has
// answered, and all of them are empty: a wiped majority that comes up first waits for the others,
// who may remember (traps.md 34).
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "internal/wire/member_messages.h"
#include "pkg/raft/configuration.h"

namespace narad::cluster {

using raft::ReplicaId;

// What the configuration says.
struct BootstrapRules {
  std::vector<std::string> peers;     // node ids of all the others, sorted, unique
  std::vector<std::string> founders;  // who may found, this node included if it may; sorted
  bool forced = false;                // --bootstrap: do not wait for peers that are silent
  std::size_t voters_max = 5;
};

// From cluster.peers (which names this node too) and cluster.initial_members (empty: everybody).
BootstrapRules rules_of(const std::string& self, std::vector<std::string> peer_ids,
                        std::vector<std::string> initial_members, bool forced);

// What lies on the disk of this node.
struct OwnDisk {
  std::string node;
  ReplicaId replica;             // of its Raft store; drawn when that was created
  bool raft_empty = true;        // the Raft store holds no configuration, no entry and no vote
  std::uint64_t cluster_id = 0;  // of node.json; 0: none
  std::vector<raft::Member> founding;  // of node.json: it founded, or meant to
  bool joined = false;                 // of node.json: it belongs to a cluster of others
};

// What one configured peer said when last asked.
struct PeerReport {
  std::string id;
  enum class Kind : std::uint8_t { not_asked, unreachable, refused, answered };
  Kind kind = Kind::not_asked;
  std::string why;      // of unreachable and refused
  wire::WhoAnswer who;  // of answered
};

// The Raft store holds a past: go on.
struct Resume {};
// Write this configuration as the beginning of the log. cluster_id 0: draw one.
struct Found {
  std::uint64_t cluster_id = 0;
  std::vector<raft::Member> configuration;
};
// Become a member of this cluster, whose members are among `via`.
struct Join {
  std::uint64_t cluster_id = 0;
  std::vector<std::string> via;  // empty: all peers
};
// Ask again later. `reason` says what is missing and what a person can do.
struct Wait {
  std::string reason;
};
using Decision = std::variant<Resume, Found, Join, Wait>;

// REQUIRES: one report per peer of the rules.
Decision decide_bootstrap(const BootstrapRules& rules, const OwnDisk& own,
                          const std::vector<PeerReport>& reports);

// Voters and learners of a new cluster: an odd number of voters, at most voters_max, the first ones
// by node id; the rest begin as learners, up to as many as others can be told of
// (wire::kFoundersMax): whoever is beyond joins what was founded.
std::vector<raft::Member> founding_configuration(std::vector<raft::Member> nodes,
                                                 std::size_t voters_max);

}  // namespace narad::cluster
