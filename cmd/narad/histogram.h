#pragma once
// Latencies in buckets of constant relative width (below 1 %), from a nanosecond to centuries, in
// constant space. Pure.
#include <chrono>
#include <cstdint>
#include <vector>

namespace narad::cli {

class Histogram {
 public:
  using Nanos = std::chrono::nanoseconds;
  Histogram();
  void record(Nanos latency);  // negative counts as 0
  std::uint64_t count() const { return count_; }
  // The smallest value that at least the fraction `p` (0 to 1) of the values do not exceed, to
  // within a bucket and never above max(); 0 without values.
  Nanos percentile(double p) const;
  Nanos max() const { return max_; }
  Nanos mean() const;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  Nanos max_{0};
};

}  // namespace narad::cli
