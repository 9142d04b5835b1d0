// A phase that is held open, for those who strike in it (timing.move_hold).
#include <gtest/gtest.h>

#include <array>

#include "internal/moves/runner_for_test.h"

namespace narad::moves {
namespace {

using namespace testing;

constexpr std::array<const char*, 7> kPhases = {"queued",  "copying",    "freezing", "draining",
                                                "fencing", "installing", "flipping"};

std::string phase_of(World& world) {
  const auto reports = world.node().runner->reports();
  return reports.empty() ? std::string() : reports.front().phase;
}

// A move begins, and comes to the phase that is held open for so long.
bool comes_to_hold(World& world, const std::string& phase, Nanos length) {
  world.log.append(300);
  world.timing.hold = length;
  world.timing.hold_phase = phase;
  if (!world.boot()) return false;
  world.set_target();
  return world.until([&] { return phase_of(world) == phase; }, 10s);
}

TEST(HeldPhase, EachOfThem_LastsAsLongAndOnce) {
  for (const char* phase : kPhases) {
    SCOPED_TRACE(phase);
    World world{make_file_site};
    ASSERT_TRUE(comes_to_hold(world, phase, 20s));
    world.pass(19s);
    EXPECT_EQ(phase_of(world), phase);
    EXPECT_FALSE(world.here());
    EXPECT_TRUE(world.until([&] { return world.here(); }, 4s)) << "not held a second time";
  }
}

TEST(HeldPhase, EndOfTheMove_EndsIt) {
  for (const char* phase : kPhases) {
    SCOPED_TRACE(phase);
    World world{make_file_site};
    ASSERT_TRUE(comes_to_hold(world, phase, 20s));
    world.clear_target();
    const auto ended = [&] { return world.node().runner->stats().ended_without_flip == 1; };
    EXPECT_TRUE(world.until(ended, 2s));
    EXPECT_EQ(world.row().owner_node, kSource);
    EXPECT_FALSE(world.source.frozen());
  }
}

// The freeze is let go, and the move goes on under another one.
TEST(HeldPhase, LongerThanAFreezeMayStandStill_TheSourceServesOnAndTheMoveEnds) {
  for (const char* phase : {"draining", "fencing", "installing"}) {
    SCOPED_TRACE(phase);
    World world{make_file_site};
    ASSERT_TRUE(comes_to_hold(world, phase, 50s));
    ASSERT_TRUE(world.source.frozen());
    EXPECT_TRUE(world.until([&] { return !world.source.frozen(); }, 31s));
    EXPECT_EQ(phase_of(world), phase);
    EXPECT_GT(world.source.commit(5), 0u);
    EXPECT_TRUE(world.until([&] { return world.here(); }, 60s));
    EXPECT_GE(world.source.armed, 2u);
  }
}

}  // namespace
}  // namespace narad::moves
