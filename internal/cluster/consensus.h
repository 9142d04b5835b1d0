#pragma once
// What membership needs of the consensus. Declared by its user; internal/node binds it to
// internal/raftnode and the metastore. Lives on the node's loop.
#include <set>
#include <string>
#include <vector>

#include "internal/metastore/command.h"
#include "internal/metastore/state.h"
#include "pkg/async/event.h"
#include "pkg/raft/configuration.h"

namespace narad::cluster {

using raft::ReplicaId;

// The consensus as this node sees it now.
struct RaftView {
  bool leads = false;  // this node, and an entry of its own term is committed
  std::uint64_t term = 0;
  std::string leader;                 // node id; empty: none known
  raft::Configuration configuration;  // the newest in the log, committed or not; may be empty
  ReplicaId self;
  // Of the leader only: replicas that answered within the last election time (itself included),
  // and the learners among them that hold nearly all that is committed.
  std::set<ReplicaId> reachable;
  std::vector<ReplicaId> caught_up;
};

class Consensus {
 public:
  virtual ~Consensus() = default;
  virtual RaftView raft() const = 0;
  virtual std::string leader_node() const { return raft().leader; }  // cheap where it matters
  virtual bool caught_up() const = 0;                                // as metastore::Proposer
  // The newest state applied on this node. Take it again after each co_await.
  virtual metastore::ViewPtr view() const = 0;
  // Notified after each new view, and when leader, term or role of this node may have changed.
  virtual Event& changed() = 0;

  // As metastore::Proposer.
  virtual Task<Result<metastore::CommandResult>> propose(metastore::Command command) = 0;
  // A read index from a majority round begun after the call, applied here when it answers.
  virtual Task<Result<RaftIndex>> barrier(Nanos deadline) = 0;
  // Committed when it answers ok. Errors: not_leader, unavailable and those of raft::apply():
  // certainly not done; unknown_outcome.
  virtual Task<Result<>> propose_change(raft::ConfigurationChange change) = 0;
  // Hands leadership to the replica of that node; ok once this one leads no longer. Errors:
  // not_leader, not_found, unavailable (it did not happen in time).
  virtual Task<Result<>> transfer_leadership(std::string node, Nanos deadline) = 0;
};

}  // namespace narad::cluster
