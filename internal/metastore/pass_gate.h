#pragma once
// When a loop that reads the rows of some domains again and again may leave a read out: nothing of
// them has changed since its last good one, and that is not long ago. The move runner uses it for
// topics and assignments (RUN-3 to RUN-6); what follows the links of a parent uses it alike
// (RUN-9). Pure.
#include <optional>
#include <utility>

#include "pkg/base/text.h"

namespace narad::metastore {

// `Versions`: of the domains that are read (Versions of state.h, or some of its numbers).
template <class Versions>
class PassGate {
 public:
  // However still it is, a pass is made at least once in so long.
  explicit PassGate(Nanos longest_skip) : longest_skip_(longest_skip) {}

  bool may_skip(const Versions& versions, Nanos now) const {
    return seen_ && *seen_ == versions && now - read_at_ < longest_skip_;
  }
  // A pass has read all there was, at these versions.
  void passed(Versions versions, Nanos now) {
    seen_ = std::move(versions);
    read_at_ = now;
  }
  // A pass failed or left something out, or what one had started has ended: the next one reads.
  void reset() { seen_.reset(); }

 private:
  const Nanos longest_skip_;
  std::optional<Versions> seen_;  // by the last good pass
  Nanos read_at_{0};
};

}  // namespace narad::metastore
