#pragma once
// The clock door. No other code reads a clock. Thread-safe: any thread may call.
#include <chrono>
#include <cstdint>

#include "pkg/base/ids.h"

namespace narad {

using Nanos = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  // Never steps back; stands still while the machine is suspended. For time-outs and measuring.
  virtual Nanos mono() const noexcept = 0;
  // As mono(), but counts suspended time (CLOCK_BOOTTIME). For leases that others wait out.
  virtual Nanos boot() const noexcept = 0;
  // Since the Unix epoch; may step in either direction.
  virtual Nanos wall() const noexcept = 0;

  UnixMillis wall_millis() const noexcept { return UnixMillis(wall().count() / 1'000'000); }
};

}  // namespace narad
