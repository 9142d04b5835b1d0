#pragma once
// Clock and randomness of the kernel.
#include <array>
#include <mutex>

#include "pkg/env/clock.h"
#include "pkg/env/random.h"

namespace narad {

class RealClock final : public Clock {
 public:
  Nanos mono() const noexcept override;  // CLOCK_MONOTONIC
  Nanos boot() const noexcept override;  // CLOCK_BOOTTIME
  Nanos wall() const noexcept override;  // CLOCK_REALTIME
};

// getrandom(2), a buffer at a time.
class RealRandom final : public Random {
 public:
  std::uint64_t next() override;

 private:
  std::mutex mutex_;
  std::array<std::uint64_t, 64> buffer_{};
  std::size_t left_ = 0;  // unused numbers, at the end of buffer_
};

}  // namespace narad
