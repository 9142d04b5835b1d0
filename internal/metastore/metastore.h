#pragma once
// The metastore of one node: the applied state on disk, the published view, and the way to change
// it. Lives on the node's loop.
//
// Proposer is what everything else sees of the consensus: Metastore implements it for one voter by
// a local log; a cluster puts Raft under the same interface. A proposal has three outcomes: done,
// refused (both are a CommandResult), or an Error: `unavailable` (certainly not applied) or
// `unknown_outcome` (resolve by reading).
#include <memory>
#include <string>

#include "internal/metastore/command.h"
#include "internal/metastore/state.h"
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
  // away does not take the proposal back.
  virtual Task<Result<CommandResult>> propose(Command command) = 0;
  // The newest state applied on this node. Take it again after each co_await.
  virtual ViewPtr view() const = 0;
  // Notified after each new view, and when the leader changes.
  virtual Event& changed() = 0;

  // A read index confirmed by a majority in a round begun after this call, which the local view has
  // applied when it answers: view() then shows everything that was answered as done anywhere before
  // the call. Errors: unavailable if that took longer than `deadline` (from now).
  virtual Task<Result<RaftIndex>> barrier(Nanos deadline) = 0;
  virtual LeaderView leader() const = 0;
  // Since this process started, and since it last lost its leader, this node has had a read index
  // of the leader and applied up to it; lapses 5 s after the last contact.
  virtual bool caught_up() const = 0;
};

class Metastore final : public Proposer {
 public:
  // Opens or creates the store in `directory` (<data>/metastore), checks it, and publishes the
  // state it holds. data_loss, with the way out in the text, if what is there is damaged; nothing
  // is changed then.
  static Task<Result<std::unique_ptr<Metastore>>> open(Env& env, std::string directory);
  ~Metastore() override;  // REQUIRES: close() has returned, or the node was killed

  // Proposals of one moment share a transaction and its sync. After a failed sync the process ends
  // with kExitSyncFailed; a full or failing disk answers `unavailable` and changes nothing.
  Task<Result<CommandResult>> propose(Command command) override;
  ViewPtr view() const override;
  Event& changed() override;
  Task<Result<RaftIndex>> barrier(Nanos deadline) override;
  LeaderView leader() const override;
  bool caught_up() const override;

  // Ends open proposals, writes what a clean start looks for, closes. Later proposals answer
  // `unavailable`.
  Task<void> close();

 private:
  struct Impl;
  explicit Metastore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::metastore
