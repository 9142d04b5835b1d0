// A mover whose move is paused: where it rests, and what it brings to an end before.
#include <gtest/gtest.h>

#include "internal/moves/mover_for_test.h"

namespace narad::moves {
namespace {

using namespace testing;

TEST_F(MoverTest, Paused_InACopyPass_IsBrokenOffAndTakenUpAgain) {
  nothing_installed();
  ASSERT_EQ(after_wait(), Do::pass);
  EXPECT_FALSE(m.must_rest());
  m.on_view(now, paused());
  EXPECT_TRUE(m.must_rest());
  m.on_broken_off(now);
  expect_rest();
  m.on_view(now, running());
  EXPECT_FALSE(m.must_rest());
  nothing_installed();
  EXPECT_EQ(what(), Do::pass);
  EXPECT_EQ(m.phase(), "copying");
}

TEST_F(MoverTest, PausedFromTheBeginning_OnlyLooksWhatIsThere) {
  m.on_view(now, paused());
  nothing_installed();
  expect_rest();
}

// At each step under a freeze.
class PausedMover : public MoverTest, public ::testing::WithParamInterface<Do> {};

TEST_P(PausedMover, UnderAFreeze_LetsItGoFirst) {
  const Do last = GetParam();
  converge();
  freeze(5);
  if (last != Do::pass) drain();
  if (last == Do::finish || last == Do::fence) {
    m.on_verified(now, 0s, "", Offset(1000), Offset(1000));
  }
  if (last == Do::fence) m.on_finished(now);
  ASSERT_EQ(what(), last);
  m.on_view(now, paused(running(5, true)));
  ASSERT_EQ(what(), Do::let_go);
  EXPECT_EQ(step().epoch, 5u);
  m.on_let_go(now);
  expect_rest();
  m.on_view(now, running(6, false));
  nothing_installed();
  EXPECT_EQ(what(), Do::pass) << "everything anew, over what is staged";
}

INSTANTIATE_TEST_SUITE_P(Steps, PausedMover,
                         ::testing::Values(Do::pass, Do::verify, Do::finish, Do::fence),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_F(MoverTest, Paused_BetweenFenceAndInstall_NothingIsInstalled) {
  converge();
  freeze(5);
  drain();
  verify_and_finish();
  m.on_fenced(now);
  m.on_view(now, paused(running(5, true)));
  ASSERT_EQ(what(), Do::let_go);
  m.on_let_go(now);
  expect_rest();
}

TEST_F(MoverTest, Paused_WithAFlipUnderWay_ItIsResolvedFirst) {
  to_flip();
  m.on_view(now, paused(running(5, true)));
  EXPECT_FALSE(m.must_rest());
  ASSERT_EQ(what(), Do::flip);
  m.on_proposed(now, 0s, ProposalOutcome::unknown);
  ASSERT_EQ(after_wait(), Do::resolve);
  EXPECT_EQ(m.phase(), "flipping");
  now += 20s;
  m.on_row(now, now, paused(running(6, false)));
  ASSERT_EQ(after_wait(), Do::take_off) << "that flip can never apply";
  m.on_taken_off(now);
  expect_rest();
}

TEST_F(MoverTest, Paused_WithAFlipThatApplies_IsDone) {
  to_flip();
  m.on_view(now, paused(running(5, true)));
  m.on_proposed(now, 0s, ProposalOutcome::done);
  EXPECT_EQ(what(), Do::done);
  EXPECT_EQ(m.phase(), "done");
}

TEST_F(MoverTest, Paused_WhileTheSourceIsDead_TakesOverOnlyOnceItIsResumed) {
  m.on_view(now, paused(dead(60)));
  now += 121s;
  m.on_view(now, paused(dead(60)));
  nothing_installed();
  expect_rest();
  m.on_view(now, dead(60));
  nothing_installed();
  EXPECT_EQ(what(), Do::silence) << "it has been dead for long enough";
}

TEST_F(MoverTest, Paused_InATakeOverNotYetInstalled_RestsAndAsksAgain) {
  to_promotion();
  m.on_silence(now, 121s);
  ASSERT_EQ(what(), Do::prepare);
  m.on_view(now, paused(dead(60)));
  expect_rest();
  m.on_view(now, dead(60));
  nothing_installed();
  EXPECT_EQ(what(), Do::silence);
}

TEST_F(MoverTest, Paused_BeforeWhatIsStagedIsThrownAway_KeepsItUntilThen) {
  converge();
  freeze(5);
  drain();
  fail_verify();
  m.on_fenced(now);
  ASSERT_EQ(what(), Do::let_go);
  m.on_view(now, paused(running(5, true)));
  ASSERT_EQ(what(), Do::let_go);
  m.on_let_go(now);
  expect_rest();
  m.on_view(now, running(6, false));
  EXPECT_EQ(what(), Do::start_over);
}

TEST_F(MoverTest, Paused_WhileBlocked_StaysBlocked) {
  fail_twice();
  ASSERT_EQ(m.phase(), "blocked");
  m.on_view(now, paused());
  expect_rest();
  m.on_view(now, running());
  EXPECT_EQ(what(), Do::wait);
  EXPECT_EQ(m.phase(), "blocked");
}

TEST_F(MoverTest, PausedAndAborted_IsOver) {
  nothing_installed();
  m.on_view(now, paused());
  expect_rest();
  m.on_view(now, aborted());
  EXPECT_EQ(what(), Do::dispose);
}

}  // namespace
}  // namespace narad::moves
