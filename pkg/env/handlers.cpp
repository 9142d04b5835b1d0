#include "pkg/env/handlers.h"

#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/require.hpp>

#include "pkg/base/assert.h"

namespace narad::detail {

asio::any_io_executor queueing(const asio::any_completion_executor& executor) {
  constexpr auto never = asio::execution::blocking.never;
  // Type-erased executors hand each other what they hold, so this is what a handler is bound to.
  if (const auto* loop = executor.target<asio::io_context::executor_type>()) {
    return asio::any_io_executor(asio::require(*loop, never));
  }
  const auto* erased = executor.target<asio::any_io_executor>();
  NARAD_ASSERT(erased != nullptr, "a handler must be bound to the executor of a loop");
  return asio::require(*erased, never);
}

}  // namespace narad::detail
