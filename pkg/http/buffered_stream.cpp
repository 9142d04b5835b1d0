#include "pkg/http/buffered_stream.h"

#include <boost/asio/bind_executor.hpp>

namespace narad::http {

Task<error_code> BufferedStream::fill() {
  if (reading_) {
    while (reading_) co_await ended_.wait();
    if (error_) co_return error_;
    if (!buffer_.empty()) co_return error_code();
  }
  auto [ec, n] = co_await read_some(*stream_, buffer_.space());
  if (!ec) buffer_.commit(n);
  co_return ec;
}

void BufferedStream::read_in_background() {
  if (reading_ || !buffer_.empty()) return;
  buffer_.shrink();
  reading_ = true;
  auto done = [self = shared_from_this()](error_code ec, std::size_t n) {
    self->reading_ = false;
    self->error_ = ec;
    if (!ec) self->buffer_.commit(n);
    self->ended_.notify_all();
  };
  stream_->read_some(buffer_.space(),
                     IoHandler(asio::bind_executor(env_.executor, std::move(done))));
}

Task<void> BufferedStream::wait_gone() {
  while (!error_) co_await ended_.wait();
}

}  // namespace narad::http
