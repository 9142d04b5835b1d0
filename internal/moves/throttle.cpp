#include "internal/moves/throttle.h"

#include <algorithm>

namespace narad::moves {

std::uint64_t Throttle::at_once(std::uint64_t wanted) const {
  constexpr std::uint64_t kLeast = 64u << 10;
  return rate_ == 0 ? wanted : std::min(wanted, std::max(rate_, kLeast));
}

Task<void> Throttle::take(std::uint64_t bytes) {
  if (rate_ == 0) co_return;
  for (Nanos now = env_.clock.mono(); free_at_ > now; now = env_.clock.mono()) {
    const Nanos delay = free_at_ - now;
    co_await sleep_for(env_, delay);
  }
  take_now(bytes);
}

void Throttle::take_now(std::uint64_t bytes) {
  if (rate_ == 0) return;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
  const Nanos cost(static_cast<Nanos::rep>(seconds * 1e9));
  free_at_ = std::max(env_.clock.mono(), free_at_) + cost;
}

}  // namespace narad::moves
