#pragma once
// How fast something is written lately: an average whose weight halves every few seconds. Pure.
#include <chrono>
#include <cmath>
#include <cstdint>

namespace narad {

class WriteRate {
 public:
  using Nanos = std::chrono::nanoseconds;
  static constexpr Nanos kHalf = std::chrono::seconds(5);

  void add(std::uint64_t bytes, Nanos now) {
    fade(now);
    recent_ += static_cast<double>(bytes);
  }
  // A steady rate r leaves r * kHalf / ln 2 behind.
  std::uint64_t per_second(Nanos now) const {
    const double half_seconds = std::chrono::duration<double>(kHalf).count();
    const double rate = recent_ * factor(now) * std::log(2.0) / half_seconds;
    return static_cast<std::uint64_t>(std::llround(rate));
  }

 private:
  double factor(Nanos now) const {
    if (now <= at_) return 1;
    return std::exp2(-std::chrono::duration<double>(now - at_) /
                     std::chrono::duration<double>(kHalf));
  }
  void fade(Nanos now) {
    recent_ *= factor(now);
    at_ = now > at_ ? now : at_;
  }

  double recent_ = 0;  // bytes, weighted by age
  Nanos at_{0};
};

}  // namespace narad
