#include "pkg/async/task.h"

#include <boost/asio/error.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

namespace narad {

bool is_cancellation(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (const asio::multiple_exceptions& e) {
    return is_cancellation(e.first_exception());
  } catch (...) {
    return false;
  }
}

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
