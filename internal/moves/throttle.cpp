#include "internal/moves/throttle.h"

#include <algorithm>

namespace narad::moves {

std::uint64_t Throttle::at_once(std::uint64_t wanted) const {
  constexpr std::uint64_t kLeast = 64u << 10;
  return rate_ == 0 ? wanted : std::min(wanted, std::max(rate_, kLeast));
}

Task<void> Throttle::take(std::uint64_t bytes) {
  if (rate_ == 0) co_return;
  const Nanos now = env_.clock.mono();
  const Nanos begin = std::max(now, free_at_);
  const double seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
  free_at_ = begin + Nanos(static_cast<Nanos::rep>(seconds * 1e9));
  if (begin > now) co_await sleep_for(env_, begin - now);
}

}  // namespace narad::moves
