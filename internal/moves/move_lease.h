#pragma once
// The lease under which a partition that is being moved may be committed to (moves.md, "Move
// lease"). It rests on the heartbeats of this node: the leader lets nobody take the partition from
// this node before it has not heard of it for twice as long as a lease lasts. Pure.
//
// The one assumption about clocks: their rates differ by less than a factor of two, suspended time
// included.
#include <chrono>
#include <optional>

#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad::moves {

// The last heartbeat of this node that was answered: when it was sent (Clock::boot(), which counts
// suspended time), and the index that the answer named.
struct LeaseProof {
  std::chrono::nanoseconds sent_boot{0};
  RaftIndex index{0};
  friend bool operator==(const LeaseProof&, const LeaseProof&) = default;
};

struct LeaseRule {
  std::chrono::nanoseconds length = std::chrono::seconds(15);
};

// What this node knows at the moment of the check.
struct LeaseMoment {
  std::chrono::nanoseconds now_boot{0};
  RaftIndex applied{0};
};

// ok while the lease holds: sent less than `length` ago, and all that the leader knew when it
// answered is applied here. Otherwise unavailable, saying why.
Result<void> check_lease(const std::optional<LeaseProof>& proof, LeaseRule rule,
                         LeaseMoment moment);

}  // namespace narad::moves
