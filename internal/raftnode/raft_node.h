#pragma once
// One replica on its node: drives the core (pkg/raft) with time, a disk and a network. Lives on the
// node's loop; blocking work runs in jobs.
//
// Each Ready is one transaction of the log store (several that wait share one), messages that
// promise something about the disk leave after it, what is committed goes to the state machine in
// order. A Ready that needs no sync costs none: with one voter a proposal costs one.
//
// Disks: a write that fails drops what was not stored and begins again from what is, as after a
// crash; proposals on the way are abandoned, and it tries again. A failed sync ends the process
// (kExitSyncFailed). A fault of the core (status().fault) stops this replica for good: nothing is
// changed any more.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internal/raftnode/state_machine.h"
#include "internal/raftnode/transport.h"
#include "pkg/async/task.h"
#include "pkg/base/result.h"
#include "pkg/raft/types.h"

namespace narad::raft {
struct StartState;
}

namespace narad::raftnode {

class LogStore;

struct Options {
  std::string node;  // this node's id
  Nanos tick = std::chrono::milliseconds(50);
  Transport* transport = nullptr;  // null: a group of one. Outlives the node.
  bool promote_learners = true;    // the leader promotes a learner that has caught up by itself
  int election_ticks = 10;
  // Compaction: once so much was applied since the last snapshot.
  std::uint64_t snapshot_entries = 10'000;
  std::uint64_t snapshot_bytes = 16u << 20;
  std::uint64_t keep_entries = 1'000;  // entries kept behind it, for followers a little behind
  std::uint64_t chunk_bytes = 256u << 10;
  Nanos retry = std::chrono::seconds(1);  // after a write that failed
  // Refused or sent in one piece (raft::Options).
  std::uint64_t append_bytes = 512u << 10;
};

// What a leader knows of another replica.
struct FollowerStatus {
  std::string node;
  raft::MemberRole role = raft::MemberRole::learner;
  raft::Index match;    // durable there
  bool active = false;  // has answered within the last election time
};

struct Status {
  raft::ReplicaId replica;
  raft::Role role = raft::Role::follower;
  raft::Standing standing = raft::Standing::unknown;
  raft::Term term;
  raft::ReplicaId leader;   // 0: none known
  std::string leader_node;  // empty: none known
  bool is_leader = false;
  bool leads_own_term = false;  // and has committed an entry of its term
  raft::Index commit;
  raft::Index applied;
  raft::Index last;                                     // of the log
  raft::Configuration configuration;                    // in force, committed or not
  raft::Index configuration_index;                      // its entry
  std::map<raft::ReplicaId, FollowerStatus> followers;  // of the leader, itself not included
  std::optional<Error> fault;
  std::string trouble;  // see RaftNode::trouble()
};

class RaftNode {
 public:
  // `store` was opened and `state` is what it recovered for `applied` of the machine, which
  // outlives this; entries above are handed to it. Errors: data_loss if what is stored contradicts
  // itself.
  static Result<std::unique_ptr<RaftNode>> start(Env& env, Options options,
                                                 std::shared_ptr<LogStore> store,
                                                 raft::StartState state, StateMachine& machine);
  ~RaftNode();  // REQUIRES: stop() has returned, or the node was killed

  // ---- messages ---------------------------------------------------------------------------------
  // From the node whose secret proved the connection. Anything may come.
  void deliver(raft::Message message, const std::string& from_node);

  // ---- the group --------------------------------------------------------------------------------
  // A first start: the same configuration on every replica of it. Durable when it answers. Errors:
  // exists if this replica belongs to a group already, invalid_argument if it is not in it.
  Task<Result<void>> found(raft::Configuration configuration);
  // Answers once the changed configuration is committed and applied here. Errors: not_leader,
  // unavailable, exists, not_found, conflict, invalid_argument: not done; unknown_outcome.
  Task<Result<void>> change(raft::ConfigurationChange change, Nanos deadline);
  // Hands leadership to the replica of `node` (empty: to whoever is furthest). Answers once this
  // replica leads no longer. Errors: not_leader, not_found, unavailable (it did not happen in
  // time).
  Task<Result<void>> transfer_leadership(std::string node, Nanos deadline);

  // ---- proposals and reads ----------------------------------------------------------------------
  // Will be applied under this id, or something else will be at its index, or it counts among those
  // of abandoned(). Errors: not_leader, too_large, unavailable, busy: certainly not applied.
  Result<raft::ProposalId> propose(raft::Payload payload);
  // An index that covers everything that was committed anywhere when this was called; asked again
  // until the deadline. Errors: unavailable.
  Task<Result<raft::Index>> read_index(Nanos deadline);
  // Waits until the state machine has applied `index`. False once the deadline has passed.
  Task<bool> wait_applied(raft::Index index, Nanos deadline);

  Status status() const;
  raft::ReplicaId replica() const;
  bool is_leader() const;
  // Leads a group of which it is the only member.
  bool alone() const;
  std::string leader_node() const;  // empty: none known
  raft::Term term() const;
  // Holds no configuration, no entry and no vote: belongs to nothing yet.
  bool empty() const;

  // ---- trouble ----------------------------------------------------------------------------------
  // Why the log cannot be written just now, or this replica has stopped; empty if neither.
  const std::string& trouble() const;
  // Stopped for good, by a fault of the core.
  bool stopped() const;
  // How often writing has failed. Grows with each attempt.
  std::uint64_t failures() const;
  // Tries again now, if writing failed.
  void retry_now();

  // Sends, stores and applies no more. The store stays open: its owner closes it.
  Task<void> stop();

 private:
  struct Impl;
  explicit RaftNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::raftnode
