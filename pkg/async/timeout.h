#pragma once
// Deadlines. A deadline is passed down, not a fresh time-out per layer.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <optional>

#include "pkg/async/task.h"

namespace narad {

// A point on the mono clock of one Env.
class Deadline {
 public:
  static Deadline after(Env& env, Nanos delay) { return Deadline(env.clock.mono() + delay); }
  Nanos left(Env& env) const { return at_ - env.clock.mono(); }
  bool passed(Env& env) const { return left(env) <= Nanos(0); }
  Nanos at() const { return at_; }

 private:
  explicit Deadline(Nanos at) : at_(at) {}
  Nanos at_;
};

// The result of `task`, or nothing once `delay` has passed (the task is cancelled and awaited: one
// that ignores cancellation, such as a blocking job, delays the answer).
template <class T>
Task<std::optional<T>> with_timeout(Env& env, Nanos delay, Task<T> task) {
  using namespace asio::experimental::awaitable_operators;
  auto first = co_await (std::move(task) || sleep_for(env, delay));
  if (first.index() == 0) co_return std::optional<T>(std::move(std::get<0>(first)));
  co_return std::nullopt;
}

}  // namespace narad
