// Every crash point of one scripted life of a node: its disk calls are counted once, then the power
// goes before each of them, and in the middle of each of them.
#include <gtest/gtest.h>

#include "internal/simtest/world.h"

namespace narad::simtest {
namespace {

std::uint64_t calls_of_the_script() {
  const RunResult whole = run(scripted_plan(1));
  EXPECT_EQ(whole.outcome.violation, "");
  EXPECT_EQ(whole.counts.accepted, 36u);
  EXPECT_EQ(whole.counts.topics_deleted, 1u);
  return whole.disk_calls;
}

void sweep(bool torn) {
  const std::uint64_t calls = calls_of_the_script();
  ASSERT_GT(calls, 100u);
  std::uint64_t broken = 0;
  for (std::uint64_t call = 1; call <= calls && broken < 3; ++call) {
    // Another seed for every point: what survives of unsynced writes differs each time.
    const RunResult r = run(scripted_plan(call, call, torn));
    EXPECT_EQ(r.outcome.violation, "") << "crash at disk call " << call << " of " << calls;
    if (!r.outcome.violation.empty()) ++broken;
  }
  std::printf("%llu crash points\n", static_cast<unsigned long long>(calls));
}

TEST(CrashPoints, BeforeEveryDiskCall_NothingAcknowledgedIsLost) { sweep(false); }
TEST(CrashPoints, InTheMiddleOfEveryDiskCall_NothingAcknowledgedIsLost) { sweep(true); }

}  // namespace
}  // namespace narad::simtest
