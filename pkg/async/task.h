#pragma once
// Task<T>: a coroutine on the node's loop. Cancellation arrives as boost::system::system_error with
// operation_aborted, thrown from a co_await; only the top of a task catches it (TaskGroup does).
//
// Rules (docs/CODING.md): coroutines take values, shared_ptr or references to things their owner
// outlives them with; no capturing lambda is a coroutine; after each co_await the world has
// changed; name a temporary before a co_await, then move it.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>

#include "pkg/env/env.h"

namespace narad {

template <class T = void>
using Task = asio::awaitable<T>;

// Whether `error` is how a cancelled task ends: operation_aborted, also from within Asio's
// operator|| and operator&&, which wrap what their operands throw.
bool is_cancellation(const std::exception_ptr& error);

// `co_await clear_cancellation();` in a task that has caught its cancellation lets it await its
// clean-up; without it every further co_await throws at once (before the awaited function starts).
inline auto clear_cancellation() { return asio::this_coro::reset_cancellation_state(); }

// Suspends for `delay` of the mono clock.
Task<void> sleep_for(Env& env, Nanos delay);
// Lets every other ready handler run first.
Task<void> yield(Env& env);

// Runs `job` through the blocking door and answers what it returned (not void: return Result<>).
// The job may outlive a cancelled caller, so it owns (by value or shared_ptr) all it touches.
template <class F>
auto blocking(Env& env, const char* name, F job) -> Task<std::invoke_result_t<F&>> {
  using R = std::invoke_result_t<F&>;
  struct State {
    F job;
    std::optional<R> result;
  };
  auto state = std::make_shared<State>(State{std::move(job), std::nullopt});
  UniqueFunction run{[state] { state->result.emplace(state->job()); }};
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code)>(
      [&env, name](auto handler, UniqueFunction run) {
        env.blocking.run(name, std::move(run), VoidHandler(std::move(handler)));
      },
      asio::use_awaitable, std::move(run));
  co_return std::move(*state->result);
}

// The next connection; throws system_error when the listener closes or the task is cancelled.
Task<std::unique_ptr<Stream>> accept(Listener& listener);
Task<std::unique_ptr<Stream>> connect(Env& env, Endpoint to);
Task<Signal> next_signal(Env& env);

}  // namespace narad
