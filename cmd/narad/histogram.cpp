#include "cmd/narad/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace narad::cli {
namespace {

// Values below 128 have a bucket each; above, each power of two is cut into 128 buckets.
constexpr unsigned kBits = 7;
constexpr std::uint64_t kSub = std::uint64_t{1} << kBits;
constexpr std::size_t kBuckets = (64 - kBits) * kSub + kSub;

std::size_t bucket_of(std::uint64_t v) {
  if (v < kSub) return v;
  unsigned shift = static_cast<unsigned>(std::bit_width(v)) - kBits - 1;
  return (shift + 1) * kSub + ((v >> shift) - kSub);
}
// The largest value of the bucket.
std::uint64_t top_of(std::size_t bucket) {
  if (bucket < kSub) return bucket;
  unsigned shift = static_cast<unsigned>(bucket / kSub) - 1;
  return ((bucket % kSub + kSub + 1) << shift) - 1;
}

}  // namespace

Histogram::Histogram() : buckets_(kBuckets) {}

void Histogram::record(Nanos latency) {
  Nanos value = std::max(latency, Nanos(0));
  ++buckets_[bucket_of(static_cast<std::uint64_t>(value.count()))];
  ++count_;
  sum_ += static_cast<double>(value.count());
  max_ = std::max(max_, value);
}

Histogram::Nanos Histogram::percentile(double p) const {
  if (count_ == 0) return Nanos(0);
  auto wanted = static_cast<std::uint64_t>(std::ceil(p * static_cast<double>(count_)));
  wanted = std::clamp<std::uint64_t>(wanted, 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return std::min(Nanos(static_cast<std::int64_t>(top_of(i))), max_);
  }
  return max_;
}

Histogram::Nanos Histogram::mean() const {
  if (count_ == 0) return Nanos(0);
  return Nanos(static_cast<std::int64_t>(sum_ / static_cast<double>(count_)));
}

}  // namespace narad::cli
