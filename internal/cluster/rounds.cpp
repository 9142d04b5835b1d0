#include "internal/cluster/rounds.h"

#include <utility>

namespace narad::cluster {

Task<Result<RaftIndex>> Rounds::confirmed() {
  if (!next_) next_ = std::make_shared<Round>();
  const std::shared_ptr<Round> mine = next_;
  if (!running_) {
    running_ = true;
    tasks_.spawn("read rounds", run());
  }
  while (!mine->result) co_await ended_.wait();
  co_return *mine->result;
}

Task<void> Rounds::run() {
  while (next_) {
    const std::shared_ptr<Round> round = std::exchange(next_, nullptr);
    ++count_;
    Result<RaftIndex> result = co_await barrier_(deadline_);
    round->result.emplace(std::move(result));
    ended_.notify_all();
  }
  running_ = false;
}

}  // namespace narad::cluster
