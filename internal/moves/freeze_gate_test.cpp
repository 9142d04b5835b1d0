// The table of docs/internals/moves.md, cell by cell.
#include "internal/moves/freeze_gate.h"

#include <gtest/gtest.h>

#include <functional>

#include "pkg/base/text.h"

namespace narad::moves {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RaftIndex kMove{40};
constexpr RaftIndex kOtherMove{41};
constexpr Nanos kTtl = seconds(30);
constexpr const char* kNonce = "0123456789abcdef0123456789abcdef";

Assignment row(RaftIndex move, std::uint64_t epoch, bool armed) {
  Assignment a;
  a.incarnation = Incarnation(7);
  a.owner_node = "s";
  a.owner_disk = "d1";
  a.used = true;
  if (move != RaftIndex(0)) {
    a.target_node = "d";
    a.target_disk = "d1";
  }
  a.move_id = move;
  a.freeze_epoch = epoch;
  a.freeze_armed = armed;
  return a;
}

// A gate, the row that it is shown before everything, and the time.
struct World {
  World() : gate(ownership_of(row(kMove, 0, false))) {}

  void see() {
    gate.see(present ? &*present : nullptr, known);
    gate.check_invariants();
  }
  void show(std::optional<Assignment> r) {
    present = std::move(r);
    see();
  }
  Result<FreezeAttempt> ask(RaftIndex move = kMove, bool current = true) {
    see();
    auto asked = gate.ask(move, current);
    gate.check_invariants();
    return asked;
  }
  // arm_freeze of the attempt is applied here, and answered.
  void armed(FreezeAttempt attempt) {
    show(row(kMove, present->freeze_epoch + 1, true));
    gate.armed(attempt, {present->freeze_epoch, now + kTtl});
    gate.check_invariants();
  }
  wire::FreezeToken report(FreezeAttempt attempt) {
    auto token = gate.report(attempt, kNonce, now + kTtl);
    gate.check_invariants();
    EXPECT_TRUE(token);
    return token ? token.value() : wire::FreezeToken{};
  }
  Result<void> extend(const wire::FreezeToken& token) {
    see();
    auto extended = gate.extend(token, now, now + kTtl);
    gate.check_invariants();
    return extended;
  }
  void pass(Nanos time) {
    now += time;
    gate.tick(now);
    gate.check_invariants();
  }
  GatePhase phase() const { return gate.phase(); }

  FreezeGate gate;
  std::optional<Assignment> present = row(kMove, 0, false);
  bool known = true;
  Nanos now = seconds(1000);
};

// Into each phase, by the way that leads there. Epochs: the freeze in force is 1, or 2 in rearming.
struct At {
  World w;
  FreezeAttempt attempt{0};
  wire::FreezeToken token{1, kNonce};
};
void to_open(At& at) {
  at.w.see();
  ASSERT_EQ(at.w.phase(), GatePhase::open);
}
void to_unsure(At& at) {
  at.w.known = false;
  at.w.see();
  ASSERT_EQ(at.w.phase(), GatePhase::unsure);
}
void to_arming(At& at) {
  to_open(at);
  at.attempt = at.w.ask().value();
  ASSERT_EQ(at.w.phase(), GatePhase::arming);
}
void to_settling(At& at) {
  to_arming(at);
  at.w.armed(at.attempt);
  ASSERT_EQ(at.w.phase(), GatePhase::settling);
}
void to_shut(At& at) {
  to_settling(at);
  at.token = at.w.report(at.attempt);
  ASSERT_EQ(at.w.phase(), GatePhase::shut);
}
void to_rearming(At& at) {
  to_shut(at);
  at.attempt = at.w.ask().value();
  ASSERT_EQ(at.w.phase(), GatePhase::rearming);
}
void to_voiding(At& at) {
  to_shut(at);
  at.w.pass(kTtl);
  ASSERT_EQ(at.w.phase(), GatePhase::voiding);
}
void to_gone(At& at) {
  to_open(at);
  Assignment other = row(RaftIndex(0), 1, false);
  other.owner_node = "d";
  other.owned_by_move = kMove;
  at.w.show(other);
  ASSERT_EQ(at.w.phase(), GatePhase::gone);
}

struct Way {
  const char* name;
  void (*to)(At&);
};
constexpr Way kUnsure{"unsure", to_unsure}, kOpen{"open", to_open}, kArming{"arming", to_arming},
    kRearming{"rearming", to_rearming}, kSettling{"settling", to_settling}, kShut{"shut", to_shut},
    kVoiding{"voiding", to_voiding}, kGone{"gone", to_gone};
const std::vector<Way> kAll{kUnsure, kOpen, kArming, kRearming, kSettling, kShut, kVoiding, kGone};

// Does `event` in each of `ways`, then `check`.
void in_each(const std::vector<Way>& ways, const std::function<void(At&)>& event) {
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    At at;
    way.to(at);
    event(at);
    at.w.gate.check_invariants();
  }
}
template <class T>
Errc code(const Result<T>& result) {
  EXPECT_FALSE(result);
  return result ? Errc::internal : result.error().code();
}

// ---- what passes -------------------------------------------------------------------------------

TEST(FreezeGate, FRZ_2_FRZ_3_CommitsAndNewLeasesPassInOpenAndArmingOnly) {
  in_each({kOpen, kArming}, [](At& at) {
    EXPECT_TRUE(at.w.gate.may_append());
    EXPECT_TRUE(at.w.gate.may_publish());
    EXPECT_TRUE(at.w.gate.may_lease());
  });
  in_each({kUnsure, kRearming, kSettling, kShut, kVoiding}, [](At& at) {
    EXPECT_EQ(code(at.w.gate.may_append()), Errc::unavailable);  // try again: not "not owner" (G9)
    EXPECT_EQ(code(at.w.gate.may_lease()), Errc::unavailable);
  });
}

TEST(FreezeGate, FRZ_4_SettlementsPassUnlessNothingIsKnownOrItIsGone) {
  in_each({kOpen, kArming, kRearming, kSettling, kShut, kVoiding},
          [](At& at) { EXPECT_TRUE(at.w.gate.may_settle()); });
  in_each({kUnsure}, [](At& at) { EXPECT_EQ(code(at.w.gate.may_settle()), Errc::unavailable); });
}

TEST(FreezeGate, Gone_RefusesEverythingAsNotTheOwner) {
  in_each({kGone}, [](At& at) {
    EXPECT_EQ(code(at.w.gate.may_append()), Errc::not_owner);
    EXPECT_EQ(code(at.w.gate.may_publish()), Errc::not_owner);
    EXPECT_EQ(code(at.w.gate.may_lease()), Errc::not_owner);
    EXPECT_EQ(code(at.w.gate.may_settle()), Errc::not_owner);
    EXPECT_EQ(code(at.w.ask()), Errc::not_owner);
    EXPECT_EQ(code(at.w.extend(at.token)), Errc::not_owner);
  });
}

// What passed before a freeze becomes visible until its listing is reported, and not after that.
TEST(FreezeGate, FRZ_12_WhatPassedBefore_MayFinishUntilTheListingIsReported) {
  in_each({kSettling}, [](At& at) {
    EXPECT_TRUE(at.w.gate.may_publish());
    ASSERT_TRUE(at.w.ask());  // replaced before it was reported
    EXPECT_EQ(at.w.phase(), GatePhase::rearming);
    EXPECT_TRUE(at.w.gate.may_publish());
  });
  in_each({kUnsure, kShut, kRearming, kVoiding},
          [](At& at) { EXPECT_EQ(code(at.w.gate.may_publish()), Errc::unavailable); });
}

TEST(FreezeGate, NeedsALeaseExactlyWhileTheRowShowsAMove) {
  At at;
  to_open(at);
  EXPECT_TRUE(at.w.gate.needs_lease());
  at.w.show(row(RaftIndex(0), 0, false));
  EXPECT_FALSE(at.w.gate.needs_lease());
}

// ---- a freeze is asked for ---------------------------------------------------------------------

TEST(FreezeGate, FreezeAskedForThePresentMove) {
  in_each({kOpen, kArming}, [](At& at) {
    ASSERT_TRUE(at.w.ask());
    EXPECT_EQ(at.w.phase(), GatePhase::arming);
  });
  in_each({kSettling, kShut, kRearming}, [](At& at) {
    ASSERT_TRUE(at.w.ask());
    EXPECT_EQ(at.w.phase(), GatePhase::rearming);  // the freeze so far may still bring a flip
  });
  in_each({kVoiding, kUnsure}, [](At& at) { EXPECT_EQ(code(at.w.ask()), Errc::unavailable); });
}

TEST(FreezeGate, FreezeAskedForAnotherMoveOrNone) {
  in_each({kOpen, kArming, kRearming, kSettling, kShut, kVoiding}, [](At& at) {
    const GatePhase before = at.w.phase();
    EXPECT_EQ(code(at.w.ask(kOtherMove)), Errc::conflict);
    EXPECT_EQ(code(at.w.ask(RaftIndex(0))), Errc::conflict);
    // A state that may be behind proves nothing.
    EXPECT_EQ(code(at.w.ask(kOtherMove, false)), Errc::unavailable);
    EXPECT_EQ(at.w.phase(), before);
  });
  in_each({kUnsure}, [](At& at) { EXPECT_EQ(code(at.w.ask(kOtherMove)), Errc::unavailable); });
}

TEST(FreezeGate, FRZ_7_ANewFreeze_KillsTheTokenOfTheOneItReplaces) {
  At at;
  to_shut(at);
  const wire::FreezeToken first = at.token;
  const FreezeAttempt again = at.w.ask().value();
  EXPECT_EQ(code(at.w.extend(first)), Errc::conflict);
  at.w.armed(again);
  EXPECT_EQ(code(at.w.extend(first)), Errc::conflict);
  const auto second = at.w.gate.report(again, std::string(32, 'f'), at.w.now + kTtl);
  ASSERT_TRUE(second);
  EXPECT_EQ(code(at.w.extend(first)), Errc::conflict);
  EXPECT_EQ(code(at.w.extend({second.value().epoch, kNonce})), Errc::conflict);
  EXPECT_TRUE(at.w.extend(second.value()));
}

TEST(FreezeGate, AskedTwice_TheLaterAnswerCounts) {
  At at;
  to_arming(at);
  const FreezeAttempt second = at.w.ask().value();
  at.w.show(row(kMove, 1, true));
  at.w.gate.armed(at.attempt, {1, at.w.now + kTtl});
  EXPECT_EQ(at.w.phase(), GatePhase::arming);
  EXPECT_EQ(code(at.w.gate.report(at.attempt, kNonce, at.w.now)), Errc::conflict);
  at.w.armed(second);
  EXPECT_EQ(at.w.phase(), GatePhase::settling);
  EXPECT_EQ(at.w.report(second).epoch, 2u);
}

// The entries of two attempts can be applied in either order: the freeze that counts is dead then,
// and the one in the row is nobody's.
TEST(FreezeGate, AskedTwice_AppliedTheOtherWayRound_IsVoided) {
  At at;
  to_arming(at);
  const FreezeAttempt second = at.w.ask().value();
  at.w.show(row(kMove, 2, true));
  at.w.gate.armed(second, {1, at.w.now + kTtl});
  EXPECT_EQ(at.w.phase(), GatePhase::voiding);
  EXPECT_EQ(at.w.gate.to_void(), 2u);
}

// ---- arm_freeze is answered --------------------------------------------------------------------

TEST(FreezeGate, ArmDone_Settles) {
  in_each({kArming, kRearming}, [](At& at) {
    at.w.armed(at.attempt);
    EXPECT_EQ(at.w.phase(), GatePhase::settling);
    EXPECT_EQ(at.w.gate.due(), at.w.now + kTtl);
  });
}

TEST(FreezeGate, ArmDone_ButItsMoveHasEndedSince_Opens) {
  At at;
  to_arming(at);
  at.w.show(row(RaftIndex(0), 2, false));  // armed under 1, then cleared
  at.w.gate.armed(at.attempt, {1, at.w.now + kTtl});
  EXPECT_EQ(at.w.phase(), GatePhase::open);
}

TEST(FreezeGate, ArmRefusedOrUnknown_TheRowDecides) {
  At at;
  to_arming(at);
  at.w.gate.not_armed(at.attempt);
  EXPECT_EQ(at.w.phase(), GatePhase::open);
  // Applied after all: nobody holds that freeze.
  at.w.show(row(kMove, 1, true));
  EXPECT_EQ(at.w.phase(), GatePhase::voiding);
  EXPECT_EQ(at.w.gate.to_void(), 1u);
}

TEST(FreezeGate, ArmUnknown_ButAppliedAlready_IsVoided) {
  At at;
  to_arming(at);
  at.w.show(row(kMove, 1, true));
  EXPECT_EQ(at.w.phase(), GatePhase::arming);
  at.w.gate.not_armed(at.attempt);
  EXPECT_EQ(at.w.phase(), GatePhase::voiding);
  EXPECT_EQ(at.w.gate.to_void(), 1u);
}

TEST(FreezeGate, RearmRefusedOrUnknown_TheFreezeSoFarIsVoided) {
  At at;
  to_rearming(at);
  at.w.gate.not_armed(at.attempt);
  EXPECT_EQ(at.w.phase(), GatePhase::voiding);
  EXPECT_EQ(at.w.gate.to_void(), 1u);
  At applied;
  to_rearming(applied);
  applied.w.show(row(kMove, 2, true));
  EXPECT_EQ(applied.w.phase(), GatePhase::rearming);
  applied.w.gate.not_armed(applied.attempt);
  EXPECT_EQ(applied.w.gate.to_void(), 2u);
}

TEST(FreezeGate, AnswersOfAttemptsThatAreOver_ChangeNothing) {
  in_each({kUnsure, kOpen, kSettling, kShut, kVoiding, kGone}, [](At& at) {
    const GatePhase before = at.w.phase();
    at.w.gate.armed(FreezeAttempt(99), {1, at.w.now});
    at.w.gate.not_armed(FreezeAttempt(99));
    at.w.gate.give_up(FreezeAttempt(99));
    EXPECT_FALSE(at.w.gate.report(FreezeAttempt(99), kNonce, at.w.now));
    EXPECT_EQ(at.w.phase(), before);
  });
}

TEST(FreezeGate, ListingFailed_TheFreezeIsVoided) {
  At at;
  to_settling(at);
  at.w.gate.give_up(at.attempt);
  EXPECT_EQ(at.w.phase(), GatePhase::voiding);
  EXPECT_EQ(at.w.gate.to_void(), 1u);
}

// ---- tokens ------------------------------------------------------------------------------------

TEST(FreezeGate, FRZ_8_ATokenExtendsTheFreezeItNamesAndArmsNone) {
  At at;
  to_shut(at);
  at.w.pass(kTtl - milliseconds(1));
  ASSERT_TRUE(at.w.extend(at.token));
  EXPECT_EQ(at.w.gate.due(), at.w.now + kTtl);
  at.w.pass(kTtl - milliseconds(1));
  EXPECT_EQ(at.w.phase(), GatePhase::shut);
}

TEST(FreezeGate, FRZ_9_FEN_3_ATokenOfNoFreezeInForce_IsAConflict) {
  in_each({kUnsure, kOpen, kArming, kRearming, kSettling, kVoiding}, [](At& at) {
    const GatePhase before = at.w.phase();
    EXPECT_EQ(code(at.w.extend(at.token)), Errc::conflict);
    EXPECT_EQ(code(at.w.gate.holds(at.token, at.w.now)), Errc::conflict);
    EXPECT_EQ(at.w.phase(), before);
  });
  At late;
  to_shut(late);
  late.w.now += kTtl;
  EXPECT_EQ(code(late.w.extend(late.token)), Errc::conflict);
  EXPECT_EQ(late.w.phase(), GatePhase::voiding);
}

// ---- time --------------------------------------------------------------------------------------

TEST(FreezeGate, FRZ_5_WhenItsTimeHasPassed_AFreezeIsVoidedAndStaysShutUntilTheRowShowsIt) {
  in_each({kSettling, kShut}, [](At& at) {
    at.w.pass(kTtl);
    EXPECT_EQ(at.w.phase(), GatePhase::voiding);
    EXPECT_EQ(at.w.gate.to_void(), 1u);
    at.w.pass(std::chrono::hours(24));
    at.w.show(row(kMove, 1, true));
    EXPECT_EQ(at.w.phase(), GatePhase::voiding);
    at.w.show(row(kMove, 2, false));
    EXPECT_EQ(at.w.phase(), GatePhase::open);
  });
}

TEST(FreezeGate, TimeAloneChangesNothingElsewhere) {
  in_each({kUnsure, kOpen, kArming, kRearming, kVoiding, kGone}, [](At& at) {
    const GatePhase before = at.w.phase();
    EXPECT_FALSE(at.w.gate.due());
    at.w.pass(std::chrono::hours(24));
    EXPECT_EQ(at.w.phase(), before);
  });
}

// ---- rows --------------------------------------------------------------------------------------

TEST(FreezeGate, RowWithAHigherEpochNotArmed_Opens) {
  in_each({kUnsure, kOpen, kSettling, kShut, kVoiding}, [](At& at) {
    at.w.known = true;
    at.w.show(row(kMove, 9, false));
    EXPECT_EQ(at.w.phase(), GatePhase::open);
    EXPECT_FALSE(at.w.gate.to_void());
  });
  in_each({kArming, kRearming}, [](At& at) {
    at.w.show(row(kMove, 9, false));
    EXPECT_EQ(at.w.phase(), GatePhase::arming);  // its own answer is still to come
    EXPECT_TRUE(at.w.gate.may_append());
  });
}

TEST(FreezeGate, RowArmedUnderAFreezeThatNobodyHolds_IsVoidedFirst) {
  in_each({kUnsure, kOpen, kSettling, kShut, kVoiding}, [](At& at) {
    at.w.known = true;
    at.w.show(row(kMove, 9, true));
    EXPECT_EQ(at.w.phase(), GatePhase::voiding);
    EXPECT_EQ(at.w.gate.to_void(), 9u);
    EXPECT_FALSE(at.w.gate.may_publish());
  });
  in_each({kArming, kRearming}, [](At& at) {
    const GatePhase before = at.w.phase();
    at.w.show(row(kMove, 9, true));
    EXPECT_EQ(at.w.phase(), before);  // perhaps the one asked for
  });
}

TEST(FreezeGate, RowArmedUnderThisFreeze_ButItsMoveIsGone_IsVoidedAtOnce) {
  in_each({kSettling, kShut}, [](At& at) {
    at.w.show(row(kOtherMove, 1, true));
    EXPECT_EQ(at.w.phase(), GatePhase::voiding);
    EXPECT_EQ(at.w.gate.to_void(), 1u);
  });
}

TEST(FreezeGate, NothingIsKnownAfterAStart_UntilABarrierWasMade) {
  At at;
  to_unsure(at);
  at.w.show(row(kMove, 3, true));
  EXPECT_EQ(at.w.phase(), GatePhase::unsure);
  EXPECT_FALSE(at.w.gate.to_void());
  at.w.known = true;
  at.w.see();
  EXPECT_EQ(at.w.phase(), GatePhase::voiding);
  EXPECT_EQ(at.w.gate.to_void(), 3u);
}

TEST(FreezeGate, AnotherOwnerAnotherDiskAnotherLifeOrNoRow_IsGoneForGood) {
  std::vector<std::optional<Assignment>> rows(4, row(kMove, 1, false));
  rows[0]->owner_node = "d";
  rows[1]->owner_disk = "d2";  // moved between two disks of this node
  rows[1]->owned_by_move = kMove;
  rows[2]->incarnation = Incarnation(8);
  rows[3].reset();
  for (const auto& elsewhere : rows) {
    in_each(kAll, [&](At& at) {
      at.w.show(elsewhere);
      EXPECT_EQ(at.w.phase(), GatePhase::gone);
      at.w.show(row(kMove, 100, false));
      EXPECT_EQ(at.w.phase(), GatePhase::gone);
    });
  }
}

// Moved away and back in between two looks: another ownership of the same place.
TEST(FreezeGate, OwnedAgainThroughALaterMove_IsGoneToo) {
  in_each(kAll, [](At& at) {
    Assignment back = row(RaftIndex(0), 5, false);
    back.owned_by_move = RaftIndex(77);
    at.w.show(back);
    EXPECT_EQ(at.w.phase(), GatePhase::gone);
  });
}

}  // namespace
}  // namespace narad::moves
