#pragma once
// Who votes: what the leader changes in the Raft configuration by itself, one step at a time. Pure.
// The policy in words: docs/internals/membership.md.
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "internal/metastore/command.h"
#include "internal/metastore/state.h"
#include "pkg/raft/configuration.h"

namespace narad::cluster {

struct VoterPicture {
  raft::Configuration configuration;
  raft::ReplicaId self;                    // the leader
  std::set<raft::ReplicaId> reachable;     // heard within an election time; the leader included
  std::vector<raft::ReplicaId> caught_up;  // learners that hold nearly all that is committed
  std::size_t voters_max = 5;
};

// The learner to promote now, or nothing. A learner is promoted if it has caught up, is reachable,
// a living member that is neither draining nor leaving; if the number of voters then is odd, or
// another such learner can follow at once; if there are not voters_max already; and if, after it, a
// majority of the voters is reachable, so that no commit waits for a node that is away. Voters that
// are leaving, or drain and have nothing left, do not count: whoever is to vote in their place does
// so before they go.
std::optional<raft::ConfigurationChange> next_promotion(const VoterPicture& picture,
                                                        const metastore::State& state);

// What is next in taking out members that are leaving, in this order per member: its replica leaves
// the configuration, then it leaves the metastore. Replicas whose node was removed already go too.
struct RemoveReplica {
  raft::ReplicaId replica;
  std::string node;
};
// The leader itself is leaving: hand leadership over first.
struct HandOver {};
using Departure = std::variant<std::monostate, RemoveReplica, HandOver, metastore::RemoveMember>;
Departure next_departure(const VoterPicture& picture, const metastore::State& state,
                         UnixMillis wall);

// The best voter to hand leadership to: reachable, alive, not leaving, preferably not draining;
// 0: nobody. Ties go to the lowest node id.
raft::ReplicaId heir(const VoterPicture& picture, const metastore::State& state);

}  // namespace narad::cluster
