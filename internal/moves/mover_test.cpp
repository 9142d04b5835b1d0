// The rules of a move's destination, one by one (the ids are those of the requirement list).
#include "internal/moves/mover.h"

#include <gtest/gtest.h>

#include "internal/moves/mover_for_test.h"

namespace narad::moves {
namespace {

using namespace testing;

TEST_F(MoverTest, Trap66_NoRoom_GivesTheMoveBackWhileTheSourceLives) {
  nothing_installed();
  ASSERT_EQ(what(), Do::pass);
  m.on_no_room(now, 0s, "7 bytes left");
  EXPECT_EQ(times(Note::no_room), 1u);
  ASSERT_EQ(what(), Do::give_back);
  m.on_given_back(now, 0s);  // the entry was lost
  ASSERT_EQ(after_wait(), Do::look) << "tried again";
  m.on_looked(now, std::nullopt);
  m.on_no_room(now, 0s, "7 bytes left");
  EXPECT_EQ(times(Note::no_room), 1u);
  ASSERT_EQ(what(), Do::give_back);
  m.on_view(now, aborted());
  EXPECT_EQ(what(), Do::dispose);
}

TEST_F(MoverTest, NoRoomUnderAFreeze_LetsItGoAfterwards) {
  converge();
  freeze();
  ASSERT_EQ(what(), Do::pass);
  m.on_no_room(now, 0s, "7 bytes left");
  ASSERT_EQ(what(), Do::give_back);
  m.on_given_back(now, 0s);
  EXPECT_EQ(what(), Do::let_go);
}

TEST_F(MoverTest, NoRoomAndADeadSource_KeepsTheMove) {
  nothing_installed();
  m.on_view(now, dead(9));
  m.on_no_room(now, 0s, "7 bytes left");
  EXPECT_EQ(after_wait(), Do::look) << "what is staged may be the last copy";
  EXPECT_EQ(times(Note::no_room), 0u);
}

TEST_F(MoverTest, CPY_9_PhasesFollowEachOther) {
  EXPECT_EQ(m.phase(), "queued");
  converge();
  EXPECT_EQ(m.phase(), "copying");
  freeze();
  EXPECT_EQ(m.phase(), "draining");
  EXPECT_TRUE(step().frozen) << "the listing that came with the freeze";
  drain();
  m.on_verified(now, 0s, "", Offset(1000), Offset(1000));
  EXPECT_EQ(what(), Do::finish);
  EXPECT_EQ(step().epoch, 5u);
  EXPECT_EQ(m.phase(), "fencing");
  m.on_finished(now);
  EXPECT_EQ(what(), Do::fence);
  m.on_fenced(now);
  EXPECT_EQ(what(), Do::install);
  EXPECT_EQ(m.phase(), "installing");
  m.on_installed(now);
  EXPECT_EQ(what(), Do::flip);
  EXPECT_EQ(step().epoch, 5u);
  EXPECT_EQ(m.phase(), "flipping");
  m.on_proposed(now, 0s, ProposalOutcome::done);
  EXPECT_EQ(what(), Do::done);
  EXPECT_EQ(m.phase(), "done");
  EXPECT_TRUE(m.flipped());
}

// ---- pre-copy
// ------------------------------------------------------------------------------------

TEST_F(MoverTest, CPY_3_PassOfLagBytesOrLess_Converges) {
  nothing_installed();
  m.on_pass(now, kMiB, Offset(1));  // the first says nothing about what comes in
  EXPECT_EQ(after_wait(), Do::pass);
  m.on_pass(now, 4 * kMiB + 1, Offset(2));
  EXPECT_EQ(after_wait(), Do::pass);
  m.on_pass(now, 4 * kMiB, Offset(3));
  EXPECT_EQ(after_wait(), Do::prepare);
  EXPECT_TRUE(m.converged());
  EXPECT_FALSE(noted(Note::not_converged));
}

TEST_F(MoverTest, CPY_4_CPY_7_TwentyPasses_EndThePreCopy) {
  nothing_installed();
  for (std::uint64_t n = 1; n <= 20; ++n) {
    ASSERT_EQ(after_wait(), Do::pass) << n;
    EXPECT_FALSE(noted(Note::not_converged));
    m.on_pass(now, (1000 - n) * kMiB, Offset(n));  // always progress
  }
  EXPECT_EQ(after_wait(), Do::prepare) << "it freezes anyway";
  EXPECT_FALSE(m.converged());
  EXPECT_TRUE(noted(Note::not_converged));
}

TEST_F(MoverTest, CPY_4_ThreePassesWithoutProgress_EndThePreCopy) {
  nothing_installed();
  std::uint64_t passes = 0;
  for (std::uint64_t mib : {500, 50, 50, 40, 41, 40, 60}) {
    ASSERT_EQ(after_wait(), Do::pass) << passes;
    m.on_pass(now, mib * kMiB, Offset(passes++));
  }
  EXPECT_EQ(after_wait(), Do::prepare);
  EXPECT_TRUE(noted(Note::not_converged));
}

TEST_F(MoverTest, G15_PassesAreFiftyMillisecondsApart) {
  nothing_installed();
  m.on_pass(now, 100 * kMiB, Offset(1));
  EXPECT_EQ(step().what, Do::wait);
  EXPECT_EQ(step().until, now + 50ms);
}

TEST_F(MoverTest, RUN_11_FailedAttempt_IsTriedAgain) {
  for (int i = 0; i < 500; ++i) {
    nothing_installed();
    ASSERT_EQ(what(), Do::pass);
    m.on_failed(now, 300ms, "no answer");
    EXPECT_EQ(step().what, Do::wait);
    EXPECT_EQ(step().until, now + 2300ms);
  }
  EXPECT_EQ(m.last_error(), "no answer");
  EXPECT_EQ(m.phase(), "waiting_for_source");
  EXPECT_EQ(m.attempts(), 500u);
}

TEST_F(MoverTest, INC_4_INC_5_RefusedPreparation_IsSaidOnceAndRetriedForEver) {
  for (int i = 0; i < 20; ++i) {
    converge();
    ASSERT_EQ(after_wait(), Do::prepare);
    m.on_failed(now, 0s, "the topic names another incarnation");
  }
  EXPECT_EQ(times(Note::prepare_refused), 1u);
  converge();
  freeze();
  EXPECT_EQ(what(), Do::pass);
}

// ---- drain
// ---------------------------------------------------------------------------------------

TEST_F(MoverTest, CPY_8_Trap9_OneQuietPass_IsNotTheEnd) {
  converge();
  freeze();
  m.on_pass(now, 5000, Offset(1000));
  m.on_pass(now, 0, Offset(1000));
  EXPECT_EQ(what(), Do::pass) << "one quiet pass";
  m.on_pass(now, 0, Offset(1001));
  EXPECT_EQ(what(), Do::pass) << "another HWM";
  m.on_pass(now, 7, Offset(1001));
  m.on_pass(now, 0, Offset(1001));
  EXPECT_EQ(what(), Do::pass);
  m.on_pass(now, 0, Offset(1001));
  EXPECT_EQ(what(), Do::verify);
}

TEST_F(MoverTest, CPY_6_DrainThatDoesNotEnd_IsGivenUp) {
  converge();
  freeze();
  int passes = 0;
  while (what() == Do::pass && passes < 1000) m.on_pass(now, 1, Offset(1000 + ++passes));
  EXPECT_LT(passes, 30);
  EXPECT_EQ(what(), Do::let_go);
  EXPECT_EQ(step().epoch, 5u);
}

TEST_F(MoverTest, FEN_1_FreezeIsExtendedEveryQuarter_WhileTheDrainAdvances) {
  converge();
  freeze();
  auto keeping = m.keep(now);
  EXPECT_EQ(keeping.what, Mover::Keep::wait);
  EXPECT_EQ(keeping.until, now + 7500ms);
  for (int quarter = 0; quarter < 40; ++quarter) {  // one long pass
    now += 7500ms;
    m.on_progress(now);
    ASSERT_EQ(m.keep(now).what, Mover::Keep::rearm);
    m.on_rearmed(now);
  }
}

TEST_F(MoverTest, HungDrain_LetsTheFreezeGo) {
  converge();
  freeze();
  for (int quarter = 0; quarter < 4; ++quarter) {
    now += 7500ms;
    if (m.keep(now).what == Mover::Keep::rearm) m.on_rearmed(now);
  }
  now += 1ms;
  const auto keeping = m.keep(now);
  EXPECT_EQ(keeping.what, Mover::Keep::let_go);
  EXPECT_EQ(keeping.epoch, 5u);
  EXPECT_TRUE(noted(Note::hung));
  EXPECT_EQ(m.keep(now).what, Mover::Keep::nothing) << "once";
  m.on_pass(now, 10, Offset(1000));  // the hung pass comes back
  EXPECT_EQ(what(), Do::let_go);
  m.on_let_go(now);
  EXPECT_EQ(step().what, Do::wait);
  EXPECT_FALSE(m.last_error().empty());
}

TEST_F(MoverTest, FreezeIsNotHeld_BetweenAttempts) {
  converge();
  freeze();
  m.on_failed(now, 0s, "no answer");
  EXPECT_EQ(what(), Do::let_go);
  EXPECT_EQ(step().epoch, 5u);
  EXPECT_EQ(m.keep(now).what, Mover::Keep::nothing);
  m.on_let_go(now);
  EXPECT_EQ(after_wait(), Do::look);
}

// ---- fence
// ---------------------------------------------------------------------------------------

TEST_F(MoverTest, FEN_2_FEN_6_RefusedFence_FreezesAndDrainsAgainBeforeTheFlip) {
  converge();
  freeze(5);
  drain();
  verify_and_finish();
  ASSERT_EQ(what(), Do::fence);
  m.on_refused(now, 0s, "that freeze is not active");
  ASSERT_EQ(what(), Do::freeze) << "no flip, no pre-copy";
  m.on_frozen(now, 6, true, 30s);
  EXPECT_TRUE(step().frozen);
  drain();
  verify_and_finish();
  install();
  EXPECT_EQ(step().epoch, 6u);
}

TEST_F(MoverTest, FencesRefusedAgainAndAgain_ArePaced) {
  converge();
  freeze();
  drain();
  verify_and_finish();
  m.on_refused(now, 0s, "");
  m.on_frozen(now, 6, true, 30s);
  drain();
  verify_and_finish();
  m.on_refused(now, 0s, "");
  EXPECT_EQ(what(), Do::let_go);
  m.on_let_go(now);
  EXPECT_EQ(step().what, Do::wait);
}

TEST_F(MoverTest, FEN_7_SourceWithoutTokens_IsMovedWithoutAFence) {
  converge();
  freeze(9, false);
  EXPECT_TRUE(noted(Note::no_token));
  drain();
  now += 7500ms;
  EXPECT_EQ(m.keep(now).what, Mover::Keep::rearm);
  m.on_rearmed(now);
  verify_and_finish();
  ASSERT_EQ(what(), Do::install);
  m.on_installed(now);
  EXPECT_EQ(what(), Do::flip);
  EXPECT_EQ(step().epoch, 9u);
}

// ---- verify
// --------------------------------------------------------------------------------------

TEST_F(MoverTest, VER_2_FirstFailureUnderAFreezeThatHeld_RedoesTheCopyOnce) {
  converge();
  freeze();
  drain();
  fail_verify();
  m.on_fenced(now);  // it held
  ASSERT_EQ(what(), Do::let_go);
  m.on_let_go(now);
  ASSERT_EQ(what(), Do::start_over);
  m.on_started_over(now);
  EXPECT_TRUE(noted(Note::verify_failed));
  EXPECT_FALSE(noted(Note::unverifiable));
  converge();
  freeze(6);
  drain();
  verify_and_finish();
  install();
}

TEST_F(MoverTest, VER_3_VER_5_VER_6_SecondFailure_BlocksTheMoveAndArmsNoMoreFreezes) {
  fail_twice();
  EXPECT_EQ(times(Note::unverifiable), 1u);
  EXPECT_EQ(m.blocked(), "copy_unverifiable");
  EXPECT_EQ(m.phase(), "blocked");
  for (int i = 0; i < 100; ++i) {
    now += 1h;
    m.on_view(now, running());
    ASSERT_EQ(what(), Do::wait);
  }
  m.on_view(now, aborted());
  EXPECT_EQ(what(), Do::dispose) << "until it is aborted";
}

TEST_F(MoverTest, VER_7_RestartedDestination_TriesABlockedMoveOnceMore) {
  fail_twice();
  Mover fresh(RunnerTiming{}, kKey, now);
  fresh.on_view(now, running());
  EXPECT_EQ(fresh.next(now).what, Do::look);
  fresh.on_looked(now, std::nullopt);
  EXPECT_EQ(fresh.next(now).what, Do::pass);
  EXPECT_EQ(fresh.blocked(), "");
}

TEST_F(MoverTest, VER_9_FailureAfterALapsedFreeze_IsNotCounted) {
  for (std::uint64_t n = 0; n < 6; ++n) {
    converge();
    freeze(5 + n);
    drain();
    fail_verify();
    if (n % 2 == 0) m.on_refused(now, 0s, "409");
    if (n % 2 == 1) m.on_failed(now, 0s, "no answer");
    ASSERT_EQ(what(), Do::let_go);
    m.on_let_go(now);
  }
  EXPECT_EQ(m.blocked(), "");
  EXPECT_EQ(times(Note::unverifiable) + times(Note::verify_failed), 0u);
  converge();
  freeze(20);
  drain();
  m.on_rearm_refused(now);
  m.on_verified(now, 0s, "the copy ends at 990", Offset(990), Offset(1000));
  EXPECT_EQ(what(), Do::freeze);
}

// ---- unknown flips
// -------------------------------------------------------------------------------

TEST_F(MoverTest, FLP_4_FLP_5_FLP_8_ErrorIsNoEvidence_TheInstallStaysUntilTheRowSpeaks) {
  to_flip();
  m.on_proposed(now, 0s, ProposalOutcome::unknown);
  ASSERT_EQ(after_wait(), Do::resolve);
  m.on_row(now, now, flipped());
  EXPECT_EQ(what(), Do::done);
  EXPECT_TRUE(m.flipped());
  EXPECT_FALSE(m.took_off());
}

TEST_F(MoverTest, FLP_9_OpenFlip_IsProposedAgainWhileTheFreezeHolds) {
  to_flip();
  for (int i = 0; i < 5; ++i) {
    m.on_proposed(now, 0s, ProposalOutcome::unknown);
    ASSERT_EQ(after_wait(), Do::resolve);
    m.on_row(now, now, running(5, true));
    ASSERT_EQ(what(), Do::fence) << "freeze and HWM are asked for first";
    m.on_fenced(now);
    ASSERT_EQ(what(), Do::flip);
    EXPECT_EQ(step().epoch, 5u);
  }
  // The source cannot be asked: the row shows that it has committed nothing.
  m.on_proposed(now, 0s, ProposalOutcome::not_applied);
  ASSERT_EQ(after_wait(), Do::resolve);
  m.on_row(now, now, running(5, true));
  m.on_failed(now, 0s, "unreachable");
  EXPECT_EQ(what(), Do::flip);
}

TEST_F(MoverTest, FLP_10_AfterTwoMinutes_ItVoidsTheFreezeItself) {
  to_flip();
  const Nanos first = now;
  while (now - first <= 120s) {
    m.on_proposed(now, 0s, ProposalOutcome::unknown);
    ASSERT_EQ(after_wait(), Do::resolve);
    if (now - first > 120s) break;
    EXPECT_NE(m.keep(now).what, Mover::Keep::nothing) << "the freeze is kept meanwhile";
    m.on_row(now, now, running(5, true));
    ASSERT_EQ(what(), Do::fence);
    m.on_fenced(now);
    now += 5s;
  }
  EXPECT_EQ(m.keep(now).what, Mover::Keep::nothing);
  m.on_row(now, now, running(5, true));
  ASSERT_EQ(what(), Do::let_go);
  EXPECT_EQ(step().epoch, 5u);
  EXPECT_TRUE(noted(Note::flip_unresolved));
  m.on_let_go(now);
  ASSERT_EQ(after_wait(), Do::resolve) << "and reads again";
  m.on_row(now, now, running(5, true));  // the void has not applied either
  EXPECT_EQ(after_wait(), Do::let_go) << "no more flips";
}

TEST_F(MoverTest, FLP_13_FLP_14_UndoWaitsForAReadThatBeganFifteenSecondsAfterTheLastUnknown) {
  to_flip();
  const Nanos unknown = now;
  m.on_proposed(now, 0s, ProposalOutcome::unknown);
  ASSERT_EQ(after_wait(), Do::resolve);
  const Nanos began = now;
  m.on_row(now + 20s, began, running(6, false));  // began too soon, however late it answers
  now += 20s;
  ASSERT_EQ(what(), Do::resolve);
  EXPECT_GE(now, unknown + 15s);
  m.on_row(now, now, running(6, false));
  EXPECT_EQ(what(), Do::take_off);
}

TEST_F(MoverTest, FLP_11_FLP_12_RefusedFlip_WithNothingUnknown_IsUndoneAtOnce) {
  to_flip();
  m.on_proposed(now, 0s, ProposalOutcome::refused);
  ASSERT_EQ(what(), Do::resolve);
  m.on_row(now, now, running(6, false));
  EXPECT_EQ(what(), Do::take_off);
}

TEST_F(MoverTest, FLP_15_FLP_18_LapsedFlip_GoesOnFromTheStagedCopy) {
  to_flip();
  m.on_proposed(now, 0s, ProposalOutcome::refused);
  m.on_row(now, now, running(6, false));
  ASSERT_EQ(what(), Do::take_off);
  m.on_taken_off(now);
  converge();
  EXPECT_EQ(m.attempts(), 2u);
  freeze(7);
  drain();
  verify_and_finish();
  install();
  EXPECT_EQ(step().epoch, 7u);
  m.on_proposed(now, 0s, ProposalOutcome::done);
  EXPECT_TRUE(m.flipped());
}

TEST_F(MoverTest, FLP_16_FLP_17_RefusedForGood_TakesOffAndEnds) {
  to_flip();
  m.on_proposed(now, 0s, ProposalOutcome::refused);
  RowSeen replanned = running();
  replanned.row->move_id = RaftIndex(70);
  replanned.row->target_node = "e";
  m.on_row(now, now, replanned);
  ASSERT_EQ(what(), Do::take_off);
  m.on_taken_off(now);
  ASSERT_EQ(what(), Do::dispose);
  m.on_disposed(now);
  EXPECT_EQ(what(), Do::done);
  EXPECT_FALSE(m.flipped());
}

TEST_F(MoverTest, FLP_19_WithoutALeaderRead_TheInstallStays) {
  to_flip();
  m.on_proposed(now, 0s, ProposalOutcome::unknown);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(after_wait(), Do::resolve);
    m.on_failed(now, 0s, "no leader");
    now += 10s;
    // What its own replica shows may confirm, and never undoes.
    m.on_view(now, aborted());
  }
  ASSERT_EQ(after_wait(), Do::resolve);
  m.on_view(now, flipped());
  EXPECT_EQ(what(), Do::done);
  EXPECT_TRUE(m.flipped());
}

TEST_F(MoverTest, FLP_20_SourceThatDiesWithTheFlipOpen_LosesToTheInstalledCopy) {
  to_flip();
  m.on_proposed(now, 0s, ProposalOutcome::unknown);
  ASSERT_EQ(after_wait(), Do::resolve);
  // Nobody voids the freeze of a dead source but the destination: the flip stays open.
  m.on_row(now, now, dead(60, running(5, true)));
  ASSERT_EQ(what(), Do::fence);
  m.on_failed(now, 0s, "unreachable");
  EXPECT_EQ(what(), Do::flip);
  m.on_proposed(now, 0s, ProposalOutcome::done);
  EXPECT_TRUE(m.flipped());
}

TEST_F(MoverTest, INS_8_RefusedRenameBack_LeavesEverythingInPlace) {
  to_flip();
  m.on_proposed(now, 0s, ProposalOutcome::refused);
  m.on_row(now, now, running(6, false));
  ASSERT_EQ(what(), Do::take_off);
  m.on_refused(now, 0s, "the topic directory is of another incarnation");
  EXPECT_TRUE(noted(Note::take_off_refused));
  EXPECT_EQ(after_wait(), Do::look);
  EXPECT_FALSE(m.took_off());
}

TEST_F(MoverTest, INS_7_RefusedInstall_FailsTheAttemptOnly) {
  converge();
  freeze();
  drain();
  verify_and_finish();
  m.on_fenced(now);
  ASSERT_EQ(what(), Do::install);
  m.on_failed(now, 0s, "the topic directory is of another incarnation");
  ASSERT_EQ(what(), Do::let_go);
  m.on_let_go(now);
  ASSERT_EQ(after_wait(), Do::look) << "it may be there all the same";
  m.on_looked(now, std::nullopt);
  EXPECT_EQ(what(), Do::pass);
}

TEST_F(MoverTest, G32_InstallFoundAtTheStart_IsResolvedFirst) {
  ASSERT_EQ(what(), Do::look);
  m.on_looked(now, Mover::Found{false, 5});
  ASSERT_EQ(what(), Do::settle) << "a rename that is seen need not be on the disk";
  m.on_settled(now);
  ASSERT_EQ(what(), Do::resolve);
  m.on_row(now, now, running(5, true));
  ASSERT_EQ(what(), Do::flip) << "its token is lost, its epoch is not";
  EXPECT_EQ(step().epoch, 5u);
}

TEST_F(MoverTest, G32_InstallFoundAtTheStart_IsNotUndoneBeforeTheQuietTime) {
  m.on_looked(now, Mover::Found{false, 5});
  m.on_settled(now);
  const Nanos start = now;
  m.on_row(now, now, running(7, true));  // another freeze is in force by now
  ASSERT_EQ(after_wait(), Do::resolve);
  EXPECT_GE(now, start + 15s) << "what was proposed before the restart is unknown";
  m.on_row(now, now, running(7, true));
  EXPECT_EQ(what(), Do::take_off);
}

TEST_F(MoverTest, MoveThatEnded_WithAnInstallAtThePath_IsResolvedBeforeItIsDisposedOf) {
  to_flip();
  m.on_view(now, aborted());
  ASSERT_EQ(what(), Do::resolve);
  m.on_row(now, now, aborted());
  ASSERT_EQ(what(), Do::take_off);
  m.on_taken_off(now);
  EXPECT_EQ(what(), Do::dispose);
}

TEST(JudgeFlip, RowsThatCanNeverTakeIt) {
  const Proposal flip{false, 5, std::nullopt};
  EXPECT_EQ(judge_flip(kKey, running(5, true), flip), FlipFate::open);
  EXPECT_EQ(judge_flip(kKey, running(5, false), flip), FlipFate::lapsed);
  EXPECT_EQ(judge_flip(kKey, running(6, true), flip), FlipFate::lapsed);
  EXPECT_EQ(judge_flip(kKey, aborted(), flip), FlipFate::ended);
  EXPECT_EQ(judge_flip(kKey, flipped(), flip), FlipFate::done);
  RowSeen none = running();
  none.row.reset();
  EXPECT_EQ(judge_flip(kKey, none, flip), FlipFate::elsewhere);
  // A later move has flipped: ours may have flipped before it.
  RowSeen later = aborted();
  later.row->owned_by_move = RaftIndex(50);
  EXPECT_EQ(judge_flip(kKey, later, flip), FlipFate::elsewhere);
  // It is on its way elsewhere, and ours was not applied: the owner is still of an earlier move.
  RowSeen replanned = running(5, true);
  replanned.row->move_id = RaftIndex(41);
  EXPECT_EQ(judge_flip(kKey, replanned, flip), FlipFate::ended);
  // Ours flipped, and it is on its way back already.
  RowSeen back = flipped();
  back.row->move_id = RaftIndex(55);
  back.row->target_node = "s";
  EXPECT_EQ(judge_flip(kKey, back, flip), FlipFate::done);
}

TEST(JudgeFlip, PromotionIsTiedToOneDeadMark) {
  const Proposal promotion{true, 0, RaftIndex(60)};
  EXPECT_EQ(judge_flip(kKey, dead(60), promotion), FlipFate::open);
  EXPECT_EQ(judge_flip(kKey, dead(61), promotion), FlipFate::lapsed);
  EXPECT_EQ(judge_flip(kKey, running(), promotion), FlipFate::lapsed);
  RowSeen removed = running();
  removed.source_is_member = false;
  EXPECT_EQ(judge_flip(kKey, removed, {true, 0, RaftIndex(0)}), FlipFate::open);
  EXPECT_EQ(judge_flip(kKey, dead(60), {true, 0, std::nullopt}), FlipFate::open);
}

// ---- a dead source
// -------------------------------------------------------------------------------

TEST_F(MoverTest, SRC_2_SRC_3_SRC_6_BothClocksPastTwoMinutes_PromoteWithoutAFreeze) {
  to_promotion();
  m.on_silence(now, 121s);
  ASSERT_EQ(what(), Do::prepare);
  m.on_prepared(now);
  ASSERT_EQ(what(), Do::verify) << "no freeze, no drain";
  m.on_verified(now, 0s, "", Offset(1000), Offset(1000));
  ASSERT_EQ(what(), Do::finish);
  EXPECT_EQ(step().epoch, 0u);
  m.on_finished(now);
  ASSERT_EQ(what(), Do::install) << "no fence";
  m.on_installed(now);
  ASSERT_EQ(what(), Do::promote);
  EXPECT_EQ(step().dead_mark, RaftIndex(60));
  m.on_proposed(now, 0s, ProposalOutcome::done);
  EXPECT_TRUE(m.flipped());
}

TEST_F(MoverTest, SRC_3_LeaderThatHasNotWaitedItself_Refuses) {
  to_promotion();
  m.on_silence(now, 120s);
  EXPECT_EQ(what(), Do::pass) << "the ordinary attempt instead";
}

TEST_F(MoverTest, SRC_4_SRC_5_OldStampOnTheFirstLook_DoesNotPromote) {
  m.on_view(now, dead(60));
  nothing_installed();
  EXPECT_EQ(what(), Do::pass);
  now += 120s;
  m.on_view(now, dead(60));
  m.on_failed(now, 0s, "");
  ASSERT_EQ(after_wait(), Do::look);
  m.on_view(now, running());  // it came back, and died again
  m.on_view(now, dead(77));
  now += 60s;
  m.on_view(now, dead(77));
  m.on_looked(now, std::nullopt);
  EXPECT_EQ(what(), Do::pass);
  now += 61s;
  m.on_view(now, dead(77));
  m.on_failed(now, 0s, "");
  ASSERT_EQ(after_wait(), Do::look);
  m.on_looked(now, std::nullopt);
  EXPECT_EQ(what(), Do::silence);
}

TEST_F(MoverTest, SRC_8_SRC_9_SRC_10_CopyBehind_IsSaidOnceADeathAndWaits) {
  for (int i = 0; i < 5; ++i) {
    if (i == 0) to_promotion();
    if (i > 0) {
      ASSERT_EQ(after_wait(), Do::look);
      m.on_looked(now, std::nullopt);
      ASSERT_EQ(what(), Do::silence);
    }
    m.on_silence(now, 300s);
    m.on_prepared(now);
    m.on_verified(now, 0s, "segment 900 has 10 bytes, not 20", Offset(990), Offset(1000));
    ASSERT_EQ(what(), Do::pass) << "it may answer though it is called dead";
    m.on_failed(now, 0s, "unreachable");
    EXPECT_EQ(m.blocked(), "source_dead_copy_behind");
  }
  EXPECT_EQ(times(Note::copy_behind), 1u);
  EXPECT_EQ(m.copy_end(), Offset(990));
  m.on_view(now, running());
  EXPECT_EQ(m.blocked(), "") << "until it returns";
  to_promotion(90);
  m.on_silence(now, 300s);
  m.on_prepared(now);
  m.on_verified(now, 0s, "short", Offset(990), Offset(1000));
  EXPECT_EQ(times(Note::copy_behind), 2u) << "another death";
}

TEST_F(MoverTest, SRC_7_SourceThatWasNeverReached_IsNotReplaced) {
  to_promotion();
  m.on_silence(now, 300s);
  m.on_prepared(now);
  m.on_verified(now, 0s, "", Offset(0), std::nullopt);
  EXPECT_EQ(what(), Do::pass);
  EXPECT_EQ(m.blocked(), "source_dead_copy_behind");
}

TEST_F(MoverTest, SRC_11_CopyThatReachesTheHwmButDoesNotVerify_CountsAsUnverifiable) {
  to_promotion();
  m.on_silence(now, 300s);
  m.on_prepared(now);
  m.on_verified(now, 0s, "segment 0 is missing", Offset(1000), Offset(1000));
  EXPECT_EQ(m.blocked(), "copy_unverifiable");
  EXPECT_EQ(times(Note::unverifiable), 1u);
  EXPECT_EQ(times(Note::copy_behind), 0u);
  EXPECT_EQ(what(), Do::pass);
}

TEST_F(MoverTest, SRC_1_SourceThatReturns_IsMovedFromAfterAll) {
  to_promotion();
  m.on_silence(now, 300s);
  m.on_prepared(now);
  ASSERT_EQ(what(), Do::verify);
  m.on_view(now, running());
  converge();
  freeze();
}

TEST_F(MoverTest, PromotionOfUnknownOutcome_IsResolvedByTheDeadMark) {
  to_promotion();
  m.on_silence(now, 300s);
  m.on_prepared(now);
  m.on_verified(now, 0s, "", Offset(1000), Offset(1000));
  m.on_finished(now);
  ASSERT_EQ(what(), Do::install);
  m.on_installed(now);
  m.on_proposed(now, 0s, ProposalOutcome::unknown);
  ASSERT_EQ(after_wait(), Do::resolve);
  m.on_row(now, now, dead(60));
  EXPECT_EQ(what(), Do::promote) << "still open";
  m.on_proposed(now, 0s, ProposalOutcome::unknown);
  ASSERT_EQ(after_wait(), Do::resolve);
  m.on_row(now, now, running());  // it came back: the promotion can never apply
  ASSERT_EQ(after_wait(), Do::resolve);
  m.on_row(now, now, running());
  ASSERT_EQ(what(), Do::take_off);
  m.on_taken_off(now);
  converge();
  freeze(6);
}

// ---- a source with less
// --------------------------------------------------------------------------

TEST_F(MoverTest, SourceThatWentBack_IsNotFrozen) {
  for (int i = 0; i < 5; ++i) {
    nothing_installed();
    ASSERT_EQ(what(), Do::pass);
    m.on_went_back(now, 0s, "its high watermark is 3 and was 9");
    EXPECT_EQ(m.blocked(), "source_went_back");
  }
  EXPECT_EQ(times(Note::went_back), 1u);
  converge();
  EXPECT_EQ(m.blocked(), "") << "the right disk is back";
  EXPECT_EQ(after_wait(), Do::prepare);
}

TEST_F(MoverTest, SourceThatWentBackUnderAFreeze_IsLetGo) {
  converge();
  freeze();
  m.on_went_back(now, 0s, "it is another log");
  EXPECT_EQ(what(), Do::let_go);
}

// ---- whatever happens
// ----------------------------------------------------------------------------

// Random outcomes for a long time: a flip is proposed only behind a verify, a finish, a fence and
// an install under the epoch of the flip; nothing is taken off but behind a row that rules it out.
TEST_F(MoverTest, RandomOutcomes_KeepTheOrder) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::uint64_t state = seed * 0x9e3779b97f4a7c15ull;
    const auto dice = [&](std::uint64_t n) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      return (state >> 11) % n;
    };
    Mover mover(RunnerTiming{}, kKey, now);
    std::uint64_t epoch = 0, verified = 0, finished = 0, fenced = 0, installed = 0;
    bool in_place = false, ruled_out = false, source_is_dead = false;
    std::uint64_t armed = 0, mark = 60, promoted_under = 0;
    for (int i = 0; i < 400; ++i) {
      RowSeen row = armed != 0 ? running(epoch, true) : running(epoch, false);
      if (source_is_dead) row = dead(mark, row);
      mover.on_view(now, row);
      const Step s = mover.next(now);
      const bool bad = dice(5) == 0;
      if (bad && s.what != Do::wait && s.what != Do::done && s.what != Do::flip &&
          s.what != Do::promote) {
        if (s.what == Do::look || dice(2) == 0)
          mover.on_failed(now, 0s, "x");
        else if (s.what == Do::fence || s.what == Do::freeze)
          mover.on_refused(now, 0s, "x");
        else
          mover.on_failed(now, 0s, "x");
        if (s.what == Do::install) in_place = dice(2) == 0;
        if (s.what == Do::take_off) in_place = dice(2) == 0 && in_place;
        continue;
      }
      switch (s.what) {
        case Do::look:
          if (in_place)
            mover.on_looked(now, Mover::Found{installed == 0, installed});
          else
            mover.on_looked(now, std::nullopt);
          break;
        case Do::settle:
          mover.on_settled(now);
          break;
        case Do::resolve: {
          const Proposal p{installed == 0, installed, RaftIndex(promoted_under)};
          ruled_out = judge_flip(kKey, row, p) != FlipFate::open;
          mover.on_row(now, now, row);
          break;
        }
        case Do::pass:
          if (dice(8) == 0)
            mover.on_no_room(now, 0s, "x");
          else
            mover.on_pass(now, dice(3) * 8 * kMiB, Offset(100));
          break;
        case Do::give_back:
          ASSERT_FALSE(in_place);
          mover.on_given_back(now, 0s);
          break;
        case Do::prepare:
          mover.on_prepared(now);
          break;
        case Do::freeze:
          ASSERT_FALSE(in_place);
          armed = ++epoch;
          mover.on_frozen(now, epoch, true, 30s);
          break;
        case Do::verify:
          verified = s.epoch;
          mover.on_verified(now, 0s, dice(6) == 0 ? "x" : "", Offset(100), Offset(100));
          break;
        case Do::fence:
          fenced = armed == s.epoch ? s.epoch : 0;
          if (fenced == 0)
            mover.on_refused(now, 0s, "409");
          else
            mover.on_fenced(now);
          break;
        case Do::start_over:
          ASSERT_FALSE(in_place);
          mover.on_started_over(now);
          break;
        case Do::finish:
          ASSERT_EQ(s.epoch, verified);
          finished = s.epoch;
          mover.on_finished(now);
          break;
        case Do::install:
          ASSERT_FALSE(in_place);
          ASSERT_TRUE(mover.forced() || fenced == finished);
          in_place = true;
          installed = finished;
          mover.on_installed(now);
          break;
        case Do::flip:
          ASSERT_TRUE(in_place);
          ASSERT_EQ(s.epoch, installed);
          ASSERT_NE(s.epoch, 0u);
          mover.on_proposed(now, 0s, ProposalOutcome(1 + dice(3)));
          break;
        case Do::promote:
          ASSERT_TRUE(in_place);
          ASSERT_EQ(installed, 0u);
          promoted_under = s.dead_mark.value();
          ASSERT_NE(promoted_under, 0u);
          mover.on_proposed(now, 0s, ProposalOutcome(1 + dice(3)));
          break;
        case Do::silence:
          mover.on_silence(now, 300s);
          break;
        case Do::let_go:
          if (s.epoch == armed) {
            armed = 0;
            ++epoch;
          }
          mover.on_let_go(now);
          break;
        case Do::take_off:
          ASSERT_TRUE(ruled_out);
          in_place = false;
          mover.on_taken_off(now);
          break;
        case Do::wait:
          now = s.until == Nanos::max() ? now + 1s : std::max(now, s.until);
          break;
        case Do::dispose:
        case Do::done:
          FAIL() << "nothing ended it";
      }
      now += Nanos(dice(3'000'000'000));
      if (dice(60) == 0) source_is_dead = !source_is_dead;
      if (!source_is_dead) mark = 60 + static_cast<std::uint64_t>(i);  // another for each death
      if (dice(40) == 0 && armed != 0) {                               // the source voids it
        armed = 0;
        ++epoch;
      }
    }
  }
}

}  // namespace
}  // namespace narad::moves
