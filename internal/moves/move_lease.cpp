#include "internal/moves/move_lease.h"

#include "pkg/base/text.h"

namespace narad::moves {

Result<void> check_lease(const std::optional<LeaseProof>& proof, LeaseRule rule,
                         LeaseMoment moment) {
  if (!proof) {
    return Error(Errc::unavailable,
                 "the partition is being moved, and no leader has answered a heartbeat of this "
                 "node since it started; it takes records again once one does");
  }
  const auto age = moment.now_boot - proof->sent_boot;
  // One that seems to come from the future says nothing about now.
  if (age < decltype(age)(0) || age >= rule.length) {
    return Error(Errc::unavailable,
                 cat("the partition is being moved, and the last heartbeat that a leader answered "
                     "was sent ",
                     format_duration(age), " ago (at most ", format_duration(rule.length),
                     "); it takes records again once one is answered"));
  }
  if (moment.applied < proof->index) {
    return Error(
        Errc::unavailable,
        cat("the partition is being moved, and this node has applied entry ", moment.applied,
            " of ", proof->index, " that the leader had when it answered the last heartbeat"));
  }
  return ok();
}

}  // namespace narad::moves
