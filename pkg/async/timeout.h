#pragma once
// Deadlines. A deadline is passed down, not a fresh time-out per layer.
#include <memory>
#include <optional>

#include "pkg/async/task.h"

namespace narad {

// A point on the mono clock of one Env.
class Deadline {
 public:
  // A delay too large to represent means never.
  static Deadline after(Env& env, Nanos delay) {
    const Nanos now = env.clock.mono();
    return Deadline(delay > Nanos::max() - now ? Nanos::max() : now + delay);
  }
  Nanos left(Env& env) const { return at_ - env.clock.mono(); }
  bool passed(Env& env) const { return left(env) <= Nanos(0); }
  Nanos at() const { return at_; }

 private:
  explicit Deadline(Nanos at) : at_(at) {}
  Nanos at_;
};

// Runs both. True if `task` finished, false if `other` did so first: the loser is cancelled, and
// awaited. An exception of either passes through at once.
Task<bool> finishes_before(Task<void> task, Task<void> other);

// True if `task` finished, false once `delay` has passed: then it is cancelled, and awaited, so one
// that ignores cancellation (a blocking job) delays the answer. A task that finished in spite of
// its cancellation counts as finished: what it achieved (a lock, a commit) is not thrown away. An
// exception of the task passes through at once. (Boost's `||` waits for a *success* instead,
// turning a failure into a time-out, and reports its own cancellation as another exception type.)
Task<bool> finishes_within(Env& env, Nanos delay, Task<void> task);

namespace detail {
template <class T>
Task<void> store_result(Task<T> task, std::shared_ptr<std::optional<T>> out) {
  out->emplace(co_await std::move(task));
}
}  // namespace detail

// finishes_before() for a task with a result: the result, or nothing if `other` was first.
template <class T>
Task<std::optional<T>> result_before(Task<T> task, Task<void> other) {
  auto out = std::make_shared<std::optional<T>>();
  auto stored = detail::store_result(std::move(task), out);
  (void)co_await finishes_before(std::move(stored), std::move(other));
  co_return std::move(*out);
}

// finishes_within() for a task with a result: the result, or nothing.
template <class T>
Task<std::optional<T>> with_timeout(Env& env, Nanos delay, Task<T> task) {
  auto out = std::make_shared<std::optional<T>>();
  auto stored = detail::store_result(std::move(task), out);
  (void)co_await finishes_within(env, delay, std::move(stored));
  co_return std::move(*out);
}

}  // namespace narad
