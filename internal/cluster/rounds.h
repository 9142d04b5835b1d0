#pragma once
// One read-index round for all who wait for one: a caller is served by the first round that begins
// after its call, and all who call while a round runs share the next. Lives on the node's loop.
#include <functional>
#include <memory>
#include <optional>

#include "pkg/async/task_group.h"
#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad::cluster {

class Rounds {
 public:
  // One round, within that time: metastore::Proposer::barrier(), Consensus::barrier().
  using Barrier = std::function<Task<Result<RaftIndex>>(Nanos deadline)>;
  Rounds(Env& env, Barrier barrier, Nanos deadline)
      : barrier_(std::move(barrier)), deadline_(deadline), ended_(env), tasks_(env) {}

  // The index of a round begun after this call; at most twice the deadline. Errors: those of the
  // barrier.
  Task<Result<RaftIndex>> confirmed();
  std::uint64_t rounds() const { return count_; }
  Task<void> stop() { return tasks_.stop(); }

 private:
  struct Round {
    std::optional<Result<RaftIndex>> result;
  };
  Task<void> run();
  const Barrier barrier_;
  const Nanos deadline_;
  std::shared_ptr<Round> next_;  // not begun
  bool running_ = false;
  std::uint64_t count_ = 0;
  Event ended_;
  TaskGroup tasks_;
};

}  // namespace narad::cluster
