#pragma once
// The metastore of one node: the published view of the replicated state, and the way to change it.
// Lives on the node's loop.
//
// Commands go through the Raft log (internal/raftnode), are applied in memory as they commit, and
// are written to the store behind that (store.h): what was answered as done is durable in the logs
// of a majority. A lone node is a group of one: about one sync for all proposals of one moment.
//
// Proposer is what everything else sees of it. A proposal has three outcomes: done, refused (both
// are a CommandResult), or an Error: `unavailable` (certainly not applied; also too_large, busy) or
// `unknown_outcome` (resolve by reading).
#include <memory>
#include <string>

#include "internal/metastore/command.h"
#include "internal/metastore/state.h"
#include "internal/raftnode/raft_node.h"
#include "pkg/async/event.h"
#include "pkg/async/task.h"

namespace narad::metastore {

// Who leads, as known here.
struct LeaderView {
  std::string node;  // node id; empty: nobody is known to lead
  bool is_self = false;
  std::uint64_t term = 0;
};

class Proposer {
 public:
  virtual ~Proposer() = default;
  // Durable on a quorum, applied here and visible in view() when it answers. A caller that goes
  // away does not take the proposal back. On a follower it goes through the leader.
  virtual Task<Result<CommandResult>> propose(Command command) = 0;
  // The newest state applied on this node. Take it again after each co_await.
  virtual ViewPtr view() const = 0;
  // Notified after each new view, and when leader, term or role of this node may have changed.
  virtual Event& changed() = 0;

  // A read index confirmed by a majority in a round begun after this call, which the local view has
  // applied when it answers: view() then shows everything that was answered as done anywhere before
  // the call. Errors: unavailable if that took longer than `deadline` (from now).
  virtual Task<Result<RaftIndex>> barrier(Nanos deadline) = 0;
  virtual LeaderView leader() const = 0;
  // Since this process started, and since it last lost its leader, this node has had a read index
  // of the leader and applied up to it; lapses 5 s (100 ticks) after the last one was asked for.
  virtual bool caught_up() const = 0;
};

// Takes a proposal to the leader: POST /peer/v1/propose, lane control. Both bodies are opaque; the
// other end gives them to Metastore::serve_forwarded().
class Forwarder {
 public:
  virtual ~Forwarder() = default;
  // Errors: unknown_outcome (sent, no whole answer); anything else: certainly not executed.
  virtual Task<Result<std::string>> forward(std::string leader, std::string body,
                                            Nanos deadline) = 0;
};

struct MetastoreOptions {
  std::string node_id;
  // A store that belongs to no group yet: true founds one of this node alone; false waits for
  // found(), or for a leader that adds this replica.
  bool found_alone = true;
  raftnode::Options raft;          // its `node` is ignored
  Forwarder* forwarder = nullptr;  // outlives the metastore; null: followers answer unavailable
  Nanos propose_deadline{0};       // 0: 100 ticks (5 s)
};

class Metastore final : public Proposer {
 public:
  // Opens or creates the store in `directory` (<data>/metastore), checks it, and publishes the
  // state it holds. A group of one has applied everything it ever answered when this returns.
  // data_loss, with the way out in the text, if what is there is damaged; nothing is changed then.
  static Task<Result<std::unique_ptr<Metastore>>> open(Env& env, std::string directory,
                                                       MetastoreOptions options);
  ~Metastore() override;  // REQUIRES: close() has returned, or the node was killed

  // After a failed sync the process ends with kExitSyncFailed; a full or failing disk answers
  // `unavailable` and changes nothing.
  Task<Result<CommandResult>> propose(Command command) override;
  ViewPtr view() const override;
  Event& changed() override;
  Task<Result<RaftIndex>> barrier(Nanos deadline) override;
  LeaderView leader() const override;
  bool caught_up() const override;

  // ---- for the cluster plane
  // ---------------------------------------------------------------------- The leader's end of
  // Forwarder: the body of an answer, whatever happens.
  Task<std::string> serve_forwarded(std::string body, Nanos deadline);
  // Messages of other replicas.
  void deliver(raft::Message message, const std::string& from_node);

  // ---- for membership
  // -----------------------------------------------------------------------------
  raftnode::Status raft_status() const;
  raft::ReplicaId replica() const;
  bool empty() const;  // belongs to no group yet, and never voted
  // See RaftNode. Their deadline, where none is given, is that of proposals.
  Task<Result<void>> found(raft::Configuration configuration);
  Task<Result<void>> propose_change(raft::ConfigurationChange change);
  Task<Result<void>> transfer_leadership(std::string node, Nanos deadline);

  // Ends open proposals, writes what a clean start looks for, closes. Later proposals answer
  // `unavailable`. Does not hand leadership over: see transfer_leadership().
  Task<void> close();

 private:
  struct Impl;
  explicit Metastore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::metastore
