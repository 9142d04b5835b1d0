#pragma once
// One read-index round for all who wait for one: a caller is served by the first round that begins
// after its call, and all who call while a round runs share the next. Lives on the node's loop.
#include <memory>
#include <optional>

#include "internal/cluster/consensus.h"
#include "pkg/async/task_group.h"

namespace narad::cluster {

class Rounds {
 public:
  Rounds(Env& env, Consensus& consensus, Nanos deadline)
      : consensus_(consensus), deadline_(deadline), ended_(env), tasks_(env) {}

  // The index of a round begun after this call. Errors: those of Consensus::barrier().
  Task<Result<RaftIndex>> confirmed();
  std::uint64_t rounds() const { return count_; }
  Task<void> stop() { return tasks_.stop(); }

 private:
  struct Round {
    std::optional<Result<RaftIndex>> result;
  };
  Task<void> run();
  Consensus& consensus_;
  const Nanos deadline_;
  std::shared_ptr<Round> next_;  // not begun
  bool running_ = false;
  std::uint64_t count_ = 0;
  Event ended_;
  TaskGroup tasks_;
};

}  // namespace narad::cluster
