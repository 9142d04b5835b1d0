#include "pkg/async/timeout.h"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>

namespace narad {

Task<bool> finishes_within(Env& env, Nanos delay, Task<void> task) {
  using asio::deferred;
  auto executor = co_await asio::this_coro::executor;
  // The timer is no coroutine: most are cancelled, and then nothing is thrown.
  auto timer = asio::async_initiate<const asio::deferred_t&, void(error_code)>(
      [&env, delay, executor](auto handler) {
        auto bound = asio::bind_executor(executor, std::move(handler));
        env.timers.wait(delay, VoidHandler(std::move(bound)));
      },
      deferred);
  auto [order, failed, timer_ec] =
      co_await asio::experimental::make_parallel_group(
          asio::co_spawn(executor, std::move(task), deferred), std::move(timer))
          .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (!failed) co_return true;
  const bool timer_rang = !timer_ec;
  if (timer_rang && is_cancellation(failed)) co_return false;
  std::rethrow_exception(failed);
}

}  // namespace narad
