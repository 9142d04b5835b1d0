#include "pkg/env/real/real_timers.h"

#include <boost/asio/consign.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

namespace narad {

void RealTimers::wait(Nanos delay, VoidHandler handler) {
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>,
                                           asio::io_context::executor_type>;
  // A delay of "for ever" must not overflow the expiry.
  constexpr Nanos kLongest = std::chrono::hours(24 * 365 * 10);
  auto timer = std::make_shared<Timer>(context_.get_executor(), std::min(delay, kLongest));
  auto& waiting = *timer;
  waiting.async_wait(asio::consign(std::move(handler), std::move(timer)));
}

}  // namespace narad
