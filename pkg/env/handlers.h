#pragma once
// Type-erased completion handlers of the asynchronous doors, and the two rules for using them:
// complete through the handler's executor, never inline; and never move-assign one (Boost 1.81's
// any_completion_handler recurses without end) but put_handler().
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <utility>

namespace narad {

namespace asio = boost::asio;
using boost::system::error_code;

using VoidHandler = asio::any_completion_handler<void(error_code)>;
using IoHandler = asio::any_completion_handler<void(error_code, std::size_t)>;

template <class H>
void put_handler(H& slot, H&& handler) {
  H fresh(std::move(handler));
  slot.swap(fresh);
}

namespace detail {
// `executor`, such that what is executed through it is queued and never run inside the call.
// any_completion_executor of 1.81 knows no `blocking` property: asked through it, a loop's executor
// runs a job at once if the caller is on that loop.
asio::any_io_executor queueing(const asio::any_completion_executor& executor);
}  // namespace detail

// Completes `handler` with `args` later, on its own executor: never inside this call. REQUIRES: a
// handler that is bound to the executor of an io_context, as every coroutine's is.
template <class H, class... Args>
void complete(H handler, Args... args) {
  asio::any_io_executor executor = detail::queueing(asio::get_associated_executor(handler));
  executor.execute([handler = std::move(handler), ... args = std::move(args)]() mutable {
    std::move(handler)(std::move(args)...);
  });
}

}  // namespace narad
