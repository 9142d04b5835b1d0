#pragma once
// Internal: a stream with the bytes read from it and not yet used, and the means to notice that the
// peer hangs up while nobody reads. Owned by shared_ptr: a read in the background keeps it alive,
// so the owner closes the stream when done.
#include <memory>

#include "pkg/async/event.h"
#include "pkg/async/stream_io.h"
#include "pkg/http/read_buffer.h"

namespace narad::http {

class BufferedStream : public std::enable_shared_from_this<BufferedStream> {
 public:
  BufferedStream(Env& env, std::unique_ptr<Stream> stream)
      : env_(env), stream_(std::move(stream)), ended_(env) {}

  Stream& stream() { return *stream_; }
  // Not to be touched but by fill() while reading() is true.
  ReadBuffer& buffer() { return buffer_; }

  // Reads something into the buffer. REQUIRES: it has room, or reading().
  Task<error_code> fill();

  // Starts a read whose end is noticed by wait_gone() and taken up by the next fill(). Does nothing
  // if the buffer holds something.
  void read_in_background();
  bool reading() const { return reading_; }
  // How the last background read failed, if it did.
  error_code error() const { return error_; }
  // Until error().
  Task<void> wait_gone();

 private:
  Env& env_;
  const std::unique_ptr<Stream> stream_;
  ReadBuffer buffer_;
  bool reading_ = false;
  error_code error_;
  Event ended_;
};

// Closes a stream at the end of a scope.
class Closer {
 public:
  explicit Closer(Stream& stream) : stream_(&stream) {}
  ~Closer() {
    if (stream_ != nullptr) stream_->close();
  }
  Closer(const Closer&) = delete;
  void release() { stream_ = nullptr; }

 private:
  Stream* stream_;
};

}  // namespace narad::http
