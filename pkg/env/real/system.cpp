#include "pkg/env/real/system.h"

#include <sys/random.h>
#include <time.h>

#include <cerrno>
#include <utility>

#include "pkg/base/assert.h"

namespace narad {
namespace {

Nanos read_clock(clockid_t id) {
  timespec t{};
  const int r = ::clock_gettime(id, &t);
  NARAD_ASSERT(r == 0, "clock_gettime failed");
  return std::chrono::seconds(t.tv_sec) + Nanos(t.tv_nsec);
}

}  // namespace

Nanos RealClock::mono() const noexcept { return read_clock(CLOCK_MONOTONIC); }
Nanos RealClock::boot() const noexcept { return read_clock(CLOCK_BOOTTIME); }
Nanos RealClock::wall() const noexcept { return read_clock(CLOCK_REALTIME); }

std::uint64_t RealRandom::next() {
  const std::lock_guard lock(mutex_);
  if (left_ == 0) {
    auto* at = reinterpret_cast<char*>(buffer_.data());
    std::size_t want = sizeof buffer_;
    while (want > 0) {
      const ssize_t n = ::getrandom(at, want, 0);
      if (n < 0) {
        NARAD_ASSERT(errno == EINTR, "getrandom failed");
        continue;
      }
      at += n;
      want -= static_cast<std::size_t>(n);
    }
    left_ = buffer_.size();
  }
  // A number that was given out is not kept.
  return std::exchange(buffer_[buffer_.size() - left_--], 0);
}

}  // namespace narad
