#include "pkg/async/timeout.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>

namespace narad {

Task<bool> finishes_within(Env& env, Nanos delay, Task<void> task) {
  using asio::deferred;
  auto executor = co_await asio::this_coro::executor;
  auto sleep = sleep_for(env, delay);
  auto [order, failed, woken] =
      co_await asio::experimental::make_parallel_group(
          asio::co_spawn(executor, std::move(task), deferred),
          asio::co_spawn(executor, std::move(sleep), deferred))
          .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (!failed) co_return true;
  const bool timer_rang = !woken;
  if (timer_rang && is_cancellation(failed)) co_return false;
  std::rethrow_exception(failed);
}

}  // namespace narad
