#include "pkg/async/timeout.h"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>

namespace narad {

Task<bool> finishes_before(Task<void> task, Task<void> other) {
  using asio::deferred;
  auto executor = co_await asio::this_coro::executor;
  auto [order, failed, other_failed] =
      co_await asio::experimental::make_parallel_group(
          asio::co_spawn(executor, std::move(task), deferred),
          asio::co_spawn(executor, std::move(other), deferred))
          .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  const bool other_broke = other_failed && !is_cancellation(other_failed);
  if (!failed && !other_broke) co_return true;
  if (failed && !is_cancellation(failed)) std::rethrow_exception(failed);
  if (other_broke) std::rethrow_exception(other_failed);
  if (!other_failed) co_return false;
  std::rethrow_exception(failed);  // both were cancelled from outside
}

// The timer itself, not a coroutine that sleeps: it is nearly always cancelled, and a cancelled
// coroutine costs an exception.
Task<bool> finishes_within(Env& env, Nanos delay, Task<void> task) {
  using asio::deferred;
  auto executor = co_await asio::this_coro::executor;
  auto timer = asio::async_initiate<const asio::deferred_t&, void(error_code)>(
      [&env, delay, executor](auto handler) {
        env.timers.wait(delay, VoidHandler(asio::bind_executor(executor, std::move(handler))));
      },
      deferred);
  auto [order, failed, timer_stopped] =
      co_await asio::experimental::make_parallel_group(
          asio::co_spawn(executor, std::move(task), deferred), std::move(timer))
          .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (!failed) co_return true;
  if (is_cancellation(failed) && !timer_stopped) co_return false;
  std::rethrow_exception(failed);  // its own, or both were cancelled from outside
}

}  // namespace narad
