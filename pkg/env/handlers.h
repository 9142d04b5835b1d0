#pragma once
// Type-erased completion handlers of the asynchronous doors, and the two rules for using them:
// complete through the handler's executor, never inline; and never move-assign one (Boost 1.81's
// any_completion_handler recurses without end) but put_handler().
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
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

// Completes `handler` with `args` later, on its own executor. (1.81 offers blocking.never of an
// any_completion_executor as a preference only, which asio::post refuses.)
template <class H, class... Args>
void complete(H handler, Args... args) {
  auto executor =
      asio::prefer(asio::get_associated_executor(handler), asio::execution::blocking.never);
  executor.execute([handler = std::move(handler), ... args = std::move(args)]() mutable {
    std::move(handler)(std::move(args)...);
  });
}

}  // namespace narad
