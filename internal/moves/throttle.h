#pragma once
// One budget of bytes for several moves: all that arrive at a node, or those of them from one
// source. What one move does not use the others may.
#include "pkg/async/event.h"
#include "pkg/async/task.h"

namespace narad::moves {

class Throttle {
 public:
  // In bytes per second; 0: as fast as it goes.
  Throttle(Env& env, std::uint64_t rate) : env_(env), rate_(rate), changed_(env) {}

  // From now on. What was taken and is not paid for yet is paid for at the new rate, and who waits
  // for it waits so much shorter or longer.
  void set_rate(std::uint64_t rate);
  std::uint64_t rate() const { return rate_; }

  // Waits until `bytes` more may be asked for. Who is cancelled while it waits has taken nothing.
  Task<void> take(std::uint64_t bytes);
  // Takes them without waiting: a partition that is frozen has traffic waiting for it. The others
  // wait so much longer.
  void take_now(std::uint64_t bytes);
  // At most about a second's worth, so that a slow budget is not asked for minutes at once.
  std::uint64_t at_once(std::uint64_t wanted) const;

 private:
  Env& env_;
  std::uint64_t rate_;
  Nanos free_at_{0};  // when what was taken so far has been paid for
  Event changed_;
};

}  // namespace narad::moves
