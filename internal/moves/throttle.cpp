#include "internal/moves/throttle.h"

#include <algorithm>

namespace narad::moves {
namespace {

// By so much a wait may end late without a loss.
constexpr Nanos kOversleptMax = std::chrono::milliseconds(250);

Nanos cost_of(std::uint64_t bytes, std::uint64_t rate) {
  const double seconds = static_cast<double>(bytes) / static_cast<double>(rate);
  return Nanos(static_cast<Nanos::rep>(seconds * 1e9));
}

}  // namespace

std::uint64_t Throttle::at_once(std::uint64_t wanted) const {
  constexpr std::uint64_t kLeast = 64u << 10;
  return rate_ == 0 ? wanted : std::min(wanted, std::max(rate_, kLeast));
}

void Throttle::set_rate(std::uint64_t rate) {
  if (rate == rate_) return;
  const Nanos now = env_.clock.mono();
  if (free_at_ > now && rate != 0) {
    const double owed = static_cast<double>((free_at_ - now).count()) * static_cast<double>(rate_);
    free_at_ = now + Nanos(static_cast<Nanos::rep>(owed / static_cast<double>(rate)));
  } else {
    free_at_ = now;
  }
  rate_ = rate;
  changed_.notify_all();
}

Task<void> Throttle::take(std::uint64_t bytes) {
  bool waited = false;
  for (;;) {
    const Nanos now = env_.clock.mono();
    if (rate_ == 0) co_return;
    if (free_at_ <= now) break;
    (void)co_await changed_.wait_for(free_at_ - now);
    waited = true;
  }
  if (!waited) {
    take_now(bytes);
    co_return;
  }
  // A busy machine wakes people late: what they could have had by then is not lost to them.
  free_at_ = std::max(env_.clock.mono() - kOversleptMax, free_at_) + cost_of(bytes, rate_);
}

void Throttle::take_now(std::uint64_t bytes) {
  if (rate_ == 0) return;
  free_at_ = std::max(env_.clock.mono(), free_at_) + cost_of(bytes, rate_);
}

}  // namespace narad::moves
