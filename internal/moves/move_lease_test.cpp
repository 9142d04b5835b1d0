#include "internal/moves/move_lease.h"

#include <gtest/gtest.h>

namespace narad::moves {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr LeaseProof kProof{seconds(100), RaftIndex(7)};

LeaseMoment at(std::chrono::nanoseconds boot, std::uint64_t applied = 7) {
  return {boot, RaftIndex(applied)};
}

TEST(MoveLease, WithoutAnAnsweredHeartbeat_IsNotHeld) {
  const auto held = check_lease(std::nullopt, {}, at(seconds(0), 100));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code(), Errc::unavailable);
}

TEST(MoveLease, HoldsForLessThanItsLengthSinceTheHeartbeatWasSent) {
  EXPECT_TRUE(check_lease(kProof, {}, at(seconds(100))));
  EXPECT_TRUE(check_lease(kProof, {}, at(seconds(115) - milliseconds(1))));
  EXPECT_FALSE(check_lease(kProof, {}, at(seconds(115))));
  EXPECT_FALSE(check_lease(kProof, {}, at(seconds(1000))));
  EXPECT_FALSE(check_lease(kProof, LeaseRule{seconds(2)}, at(seconds(102))));
}

TEST(MoveLease, WhatTheLeaderKnewMustBeApplied) {
  EXPECT_FALSE(check_lease(kProof, {}, at(seconds(101), 6)));
  EXPECT_TRUE(check_lease(kProof, {}, at(seconds(101), 7)));
  EXPECT_TRUE(check_lease(kProof, {}, at(seconds(101), 8)));
}

TEST(MoveLease, AHeartbeatFromTheFutureSaysNothing) {
  EXPECT_FALSE(check_lease(kProof, {}, at(seconds(99))));
}

}  // namespace
}  // namespace narad::moves
