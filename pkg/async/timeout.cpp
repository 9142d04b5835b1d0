#include "pkg/async/timeout.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <optional>
#include <utility>

namespace narad {
namespace {

// Where the caller reads what came of both.
struct Results {
  std::exception_ptr failed, other_failed;
  bool late = false;  // the timer rang
};

// Two things that run side by side, the task and the other, for one caller that waits. Every call
// between nodes passes here a few times: much leaner than Asio's parallel_group. What runs owns the
// race, the race owns the caller's handler and with it the caller's frame; so that frame owns the
// results only, and its cancellation slot knows the race without owning it.
template <class Handler>
struct Race {
  Race(std::shared_ptr<Results> r, Handler handler)
      : results(std::move(r)), waiting(std::move(handler)) {}

  void cancel_both() {
    cancelled = true;
    if (task_runs) task.emit(asio::cancellation_type::terminal);
    if (other_runs) other.emit(asio::cancellation_type::terminal);
  }
  // The caller goes on inside this call.
  void wake() {
    Handler handler(std::move(*waiting));
    waiting.reset();
    std::move(handler)(error_code{});
  }

  const std::shared_ptr<Results> results;
  std::optional<Handler> waiting;
  asio::cancellation_signal task, other;
  bool task_runs = true, other_runs = true;
  bool cancelled = false;
};

// Waits until `begin`, which starts both, has its race wake the caller.
template <class Begin>
Task<void> race(std::shared_ptr<Results> results, Begin begin) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(error_code)>(
      []<class Handler>(Handler handler, std::shared_ptr<Results> out, Begin start) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto both = std::make_shared<Race<Handler>>(std::move(out), std::move(handler));
        if (slot.is_connected()) {
          slot.assign([weak = std::weak_ptr(both)](asio::cancellation_type) {
            if (const auto alive = weak.lock()) alive->cancel_both();
          });
        }
        start(both);
        if (both->cancelled) both->cancel_both();  // before the second had begun
      },
      asio::use_awaitable, std::move(results), std::move(begin));
}

}  // namespace

Task<bool> finishes_before(Task<void> task, Task<void> other) {
  auto executor = co_await asio::this_coro::executor;
  auto results = std::make_shared<Results>();
  auto begin = [executor, task = std::move(task), other = std::move(other)](auto both) mutable {
    const auto task_ended = [both](std::exception_ptr error) {
      both->task_runs = false;
      both->results->failed = error;
      if (!both->other_runs) return both->wake();
      both->other.emit(asio::cancellation_type::terminal);
    };
    const auto other_ended = [both](std::exception_ptr error) {
      both->other_runs = false;
      both->results->other_failed = error;
      if (!both->task_runs) return both->wake();
      both->task.emit(asio::cancellation_type::terminal);
    };
    asio::co_spawn(executor, std::move(task),
                   asio::bind_cancellation_slot(both->task.slot(), task_ended));
    asio::co_spawn(executor, std::move(other),
                   asio::bind_cancellation_slot(both->other.slot(), other_ended));
  };
  auto running = race(results, std::move(begin));
  co_await std::move(running);
  const std::exception_ptr failed = results->failed, other_failed = results->other_failed;
  const bool other_broke = other_failed && !is_cancellation(other_failed);
  if (!failed && !other_broke) co_return true;
  if (failed && !is_cancellation(failed)) std::rethrow_exception(failed);
  if (other_broke) std::rethrow_exception(other_failed);
  if (!other_failed) co_return false;
  std::rethrow_exception(failed);  // both were cancelled from outside
}

// The timer itself, not a coroutine that sleeps: it is nearly always cancelled, and a cancelled
// coroutine costs an exception. Nobody waits for a timer that was cancelled.
Task<bool> finishes_within(Env& env, Nanos delay, Task<void> task) {
  auto executor = co_await asio::this_coro::executor;
  auto results = std::make_shared<Results>();
  auto begin = [&env, delay, executor, task = std::move(task)](auto both) mutable {
    const auto ended = [both](std::exception_ptr error) {
      both->task_runs = false;
      both->results->failed = error;
      if (both->other_runs) both->other.emit(asio::cancellation_type::terminal);
      both->wake();
    };
    const auto ring = [both](error_code ec) {
      both->other_runs = false;
      if (ec || !both->task_runs) return;
      both->results->late = true;
      both->task.emit(asio::cancellation_type::terminal);
    };
    asio::co_spawn(executor, std::move(task),
                   asio::bind_cancellation_slot(both->task.slot(), ended));
    env.timers.wait(delay, VoidHandler(asio::bind_cancellation_slot(
                               both->other.slot(), asio::bind_executor(executor, ring))));
  };
  auto running = race(results, std::move(begin));
  co_await std::move(running);
  if (!results->failed) co_return true;
  if (is_cancellation(results->failed) && results->late) co_return false;
  std::rethrow_exception(results->failed);  // its own, or it was cancelled from outside
}

}  // namespace narad
