#pragma once
// Timers on the loop (steady_timer is CLOCK_MONOTONIC).
#include <boost/asio/io_context.hpp>

#include "pkg/env/timers.h"

namespace narad {

class RealTimers final : public Timers {
 public:
  explicit RealTimers(asio::io_context& context) : context_(context) {}
  void wait(Nanos delay, VoidHandler handler) override;

 private:
  asio::io_context& context_;
};

}  // namespace narad
