#include "pkg/async/task.h"

#include <boost/asio/post.hpp>

namespace narad {

Task<void> sleep_for(Env& env, Nanos delay) {
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code)>(
      [&env, delay](auto handler) { env.timers.wait(delay, VoidHandler(std::move(handler))); },
      asio::use_awaitable);
}

Task<void> yield(Env& env) { co_await asio::post(env.executor, asio::use_awaitable); }

Task<std::unique_ptr<Stream>> accept(Listener& listener) {
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&,
                                          void(error_code, std::unique_ptr<Stream>)>(
      [&listener](auto handler) { listener.accept(StreamHandler(std::move(handler))); },
      asio::use_awaitable);
}

Task<std::unique_ptr<Stream>> connect(Env& env, Endpoint to) {
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&,
                                          void(error_code, std::unique_ptr<Stream>)>(
      [&env](auto handler, Endpoint to) { env.net.connect(to, StreamHandler(std::move(handler))); },
      asio::use_awaitable, std::move(to));
}

Task<Signal> next_signal(Env& env) {
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code, Signal)>(
      [&env](auto handler) { env.signals.wait(SignalHandler(std::move(handler))); },
      asio::use_awaitable);
}

}  // namespace narad
