#include "pkg/async/stream_io.h"

#include <boost/asio/as_tuple.hpp>

namespace narad {
namespace {

using Token = asio::as_tuple_t<asio::use_awaitable_t<>>;
constexpr Token kTuple{};

// Drops `n` bytes from the front.
void consume(ConstBuffers& buffers, std::size_t n) {
  std::size_t first = 0;
  while (first < buffers.count && n >= buffers.items[first].size())
    n -= buffers.items[first++].size();
  for (std::size_t i = first; i < buffers.count; ++i) buffers.items[i - first] = buffers.items[i];
  buffers.count -= first;
  if (buffers.count > 0) buffers.items[0] += n;
}

}  // namespace

Task<IoResult> read_some(Stream& stream, asio::mutable_buffer buffer) {
  return asio::async_initiate<const Token, void(error_code, std::size_t)>(
      [&stream](auto handler, asio::mutable_buffer into) {
        stream.read_some(into, IoHandler(std::move(handler)));
      },
      kTuple, buffer);
}

Task<IoResult> write_some(Stream& stream, ConstBuffers buffers) {
  return asio::async_initiate<const Token, void(error_code, std::size_t)>(
      [&stream](auto handler, const ConstBuffers& from) {
        stream.write_some(from, IoHandler(std::move(handler)));
      },
      kTuple, buffers);
}

Task<error_code> write_all(Stream& stream, ConstBuffers buffers) {
  consume(buffers, 0);
  while (buffers.count > 0) {
    auto [ec, n] = co_await write_some(stream, buffers);
    if (ec) co_return ec;
    consume(buffers, n);
  }
  co_return error_code();
}

Task<error_code> read_exactly(Stream& stream, asio::mutable_buffer buffer) {
  while (buffer.size() > 0) {
    auto [ec, n] = co_await read_some(stream, buffer);
    if (ec) co_return ec;
    buffer += n;
  }
  co_return error_code();
}

}  // namespace narad
