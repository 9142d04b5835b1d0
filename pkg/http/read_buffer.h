#pragma once
// Internal: the bytes a connection has read and not yet used. 4 KiB inside the object, enough for
// most heads; more only while it is needed.
#include <array>
#include <boost/asio/buffer.hpp>
#include <cstring>
#include <memory>
#include <string_view>

#include "pkg/base/assert.h"

namespace narad::http {

class ReadBuffer {
 public:
  static constexpr std::size_t kSmall = 4096;

  std::string_view data() const { return {base() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  void consume(std::size_t n) {
    NARAD_ASSERT(n <= end_ - begin_);
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  // Where the next read goes; empty if there is no room. Moves what is there to the front.
  boost::asio::mutable_buffer space() {
    if (begin_ > 0) {
      std::memmove(base(), base() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    return {base() + end_, capacity_ - end_};
  }
  void commit(std::size_t n) {
    NARAD_ASSERT(n <= capacity_ - end_);
    end_ += n;
  }
  bool full() const { return end_ - begin_ == capacity_; }

  // Doubles, up to `limit`; false if it is that large already.
  bool grow(std::size_t limit) {
    if (capacity_ >= limit) return false;
    const std::size_t larger = std::min(limit, capacity_ * 2);
    auto fresh = std::make_unique_for_overwrite<char[]>(larger);
    std::memcpy(fresh.get(), base() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    large_ = std::move(fresh);
    capacity_ = larger;
    return true;
  }
  // Back to the small form, if what is there fits.
  void shrink() {
    if (!large_ || end_ - begin_ > kSmall) return;
    std::memcpy(small_.data(), large_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    large_.reset();
    capacity_ = kSmall;
  }

 private:
  char* base() { return large_ ? large_.get() : small_.data(); }
  const char* base() const { return large_ ? large_.get() : small_.data(); }

  std::array<char, kSmall> small_;
  std::unique_ptr<char[]> large_;
  std::size_t capacity_ = kSmall;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace narad::http
