#include "internal/node/move_timing.h"

#include <gtest/gtest.h>

namespace narad::node {
namespace {

using namespace std::chrono_literals;

// What the defaults of the settings make of the steps is what the steps say of themselves.
TEST(MoveTiming, OfTheDefaults_IsTheSpecified) {
  const moves::SourceTiming s = source_timing(Config{});
  const moves::SourceTiming s0;
  EXPECT_EQ(s.freeze_ttl, s0.freeze_ttl);
  EXPECT_EQ(s.lease_drain, s0.lease_drain);
  EXPECT_EQ(s.move_lease, s0.move_lease);
  EXPECT_EQ(s.retry, s0.retry);
  const moves::RunnerTiming r = runner_timing(Config{});
  const moves::RunnerTiming r0;
  EXPECT_EQ(r.tick, r0.tick);
  EXPECT_EQ(r.full_pass, r0.full_pass);
  EXPECT_EQ(r.retry, r0.retry);
  EXPECT_EQ(r.between_passes, r0.between_passes);
  EXPECT_EQ(r.freeze_ttl, r0.freeze_ttl);
  EXPECT_EQ(r.force_promote_after, r0.force_promote_after);
  EXPECT_EQ(r.propose_again_for, r0.propose_again_for);
  EXPECT_EQ(r.quiet_before_undo, r0.quiet_before_undo);
  EXPECT_EQ(r.hung_after, r0.hung_after);
  EXPECT_EQ(r.bytes_per_second, 0u);
  EXPECT_EQ(r.hold, Nanos(0));
}

TEST(MoveTiming, HoldOfAPhase_ReachesTheRunner) {
  Config config;
  config.timing.move_hold = 2s;
  config.timing.move_hold_phase = "fencing";
  EXPECT_EQ(runner_timing(config).hold, 2s);
  EXPECT_EQ(runner_timing(config).hold_phase, "fencing");
}

// However they are set: an owner stops committing before it can be replaced, and does not wait for
// leases longer than its freeze may last.
TEST(MoveTiming, HoweverShort_KeepsItsProportions) {
  Config config;
  config.timing.dead_after = 3s;
  config.timing.freeze_ttl = 1s;
  EXPECT_LE(source_timing(config).move_lease * 2, config.timing.dead_after);
  EXPECT_EQ(source_timing(config).lease_drain, 250ms);
  EXPECT_EQ(runner_timing(config).force_promote_after, 12s);
}

}  // namespace
}  // namespace narad::node
