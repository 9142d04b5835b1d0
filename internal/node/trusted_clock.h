#pragma once
// Decides whether the wall clock may be used to expire anything (storage.md, "Retention"). Pure.
//
// A wall clock is trusted while it has not stepped by more than five minutes against the monotonic
// clock since the reference was taken. A lone node is its own reference: what its clocks said when
// it started. Once distrusted it stays so until agree() takes a new reference; nothing expires
// meanwhile, because a clock that jumped a year ahead would delete every record there is.
#include "pkg/env/clock.h"

namespace narad::node {

class TrustedClock {
 public:
  static constexpr Nanos kStepMax = std::chrono::minutes(5);

  TrustedClock(Nanos mono, Nanos wall) : reference_(wall - mono) {}

  // Looks at both clocks, read at the same moment. False from the first step on.
  bool observe(Nanos mono, Nanos wall) {
    const Nanos drift = (wall - mono) - reference_;
    if (drift > kStepMax || drift < -kStepMax) trusted_ = false;
    return trusted_;
  }
  // The leader's wall clock agreed with ours to five minutes: the present offset is right.
  void agree(Nanos mono, Nanos wall) {
    reference_ = wall - mono;
    trusted_ = true;
  }
  bool trusted() const { return trusted_; }

 private:
  Nanos reference_;
  bool trusted_ = true;
};

}  // namespace narad::node
