#pragma once
// Streams in coroutines. Errors are values here, not exceptions: a peer that hangs up is no
// surprise. Cancellation of the task gives operation_aborted, as close() does, and the next
// co_await throws.
#include <string_view>
#include <tuple>

#include "pkg/async/task.h"

namespace narad {

using IoResult = std::tuple<error_code, std::size_t>;

// At least one byte, or an error (asio::error::eof at the end). `stream` and the buffer's memory
// outlive the operation: a cancelled one still completes.
Task<IoResult> read_some(Stream& stream, asio::mutable_buffer buffer);
Task<IoResult> write_some(Stream& stream, ConstBuffers buffers);

// All bytes, or an error after some of them.
Task<error_code> write_all(Stream& stream, ConstBuffers buffers);
// Exactly as many as the buffer holds; asio::error::eof if the stream ends before.
Task<error_code> read_exactly(Stream& stream, asio::mutable_buffer buffer);

inline ConstBuffers buffers_of(std::string_view first, std::string_view second = {}) {
  ConstBuffers buffers;
  for (std::string_view part : {first, second}) {
    if (!part.empty()) buffers.items[buffers.count++] = asio::buffer(part.data(), part.size());
  }
  return buffers;
}

}  // namespace narad
