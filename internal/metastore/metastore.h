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

class Proposer {
 public:
  virtual ~Proposer() = default;
  // Durable on a quorum, applied here and visible in view() when it answers. A caller that goes
  // away does not take the proposal back.
  virtual Task<Result<CommandResult>> propose(Command command) = 0;
  // The newest state applied on this node. Take it again after each co_await.
  virtual ViewPtr view() const = 0;
  // Notified after each new view.
  virtual Event& changed() = 0;
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

  // Ends open proposals, writes what a clean start looks for, closes. Later proposals answer
  // `unavailable`.
  Task<void> close();

 private:
  struct Impl;
  explicit Metastore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::metastore
