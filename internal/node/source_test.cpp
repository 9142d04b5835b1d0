// The owner's side of moves over real partitions and a real metastore: freezes, fences, the move
// lease, restarts.
#include "internal/moves/source.h"

#include "internal/moves/staging_rules.h"
#include "internal/node/move_world_for_test.h"

namespace narad::node {
namespace {

using namespace testing;

class MoveSource : public MoveWorld {};

constexpr Nanos kTtl = 30s;

// ---- a freeze ----------------------------------------------------------------------------------

TEST_F(MoveSource, FRZ_1_FRZ_2_AFreezeRefusesCommitsOfThatPartitionOnly) {
  begin();
  set_target();
  const auto frozen = freeze();
  ASSERT_TRUE(frozen) << frozen.error().text();
  EXPECT_EQ(frozen.value().ttl_ms, 30'000u);
  ASSERT_TRUE(frozen.value().token);
  EXPECT_EQ(frozen.value().token->epoch, row().freeze_epoch);
  EXPECT_EQ(frozen.value().token->nonce.size(), 32u);
  EXPECT_TRUE(row().freeze_armed);
  ASSERT_TRUE(frozen.value().listing);
  EXPECT_EQ(frozen.value().listing->hwm, Offset(5));
  // Retryable, and neither "not the owner" nor "the topic is gone" (G9).
  expect_error(produce(0, 1), Errc::unavailable);
  EXPECT_TRUE(produce(1, 1));
  EXPECT_EQ(life->source->stats().frozen, 1u);
  EXPECT_EQ(life->source->stats().refused_gate, 1u);
}

// Commits go on while the freeze is asked for; each is either in the listing or refused.
TEST_F(MoveSource, FRZ_12_FRZ_13_FRZ_16_CommitsUnderWay_AreListedOrRefused) {
  begin();
  set_target();
  std::vector<Slot<Result<CommitOutcome>>> commits;
  for (int i = 0; i < 20; ++i) {
    commits.push_back(spawn(committing(0, 3)));
    solo.sim.run_for(Nanos(50us));
  }
  wire::FreezeRequest request;
  request.move = move();
  const auto frozen = spawn(life->source->freeze(std::move(request)));
  for (int i = 0; i < 2000 && !*frozen; ++i) {
    if (i % 10 == 0) commits.push_back(spawn(committing(0, 3)));
    solo.sim.run_for(Nanos(50us));
  }
  ASSERT_TRUE(*frozen);
  ASSERT_TRUE(**frozen);
  const Offset listed = (**frozen).value().listing->hwm;
  const std::uint64_t bytes = (**frozen).value().listing->segments.back().bytes;
  settle(20s);
  std::uint64_t done = 0, refused = 0;
  for (const auto& commit : commits) {
    ASSERT_TRUE(*commit);
    if (**commit) {
      EXPECT_LT((**commit).value().first, listed);
      done += 3;
    } else {
      EXPECT_EQ((**commit).error().code(), Errc::unavailable);
      ++refused;
    }
  }
  EXPECT_GT(done, 20u);
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(listed, Offset(5 + done));
  EXPECT_EQ(opened()->log->hwm(), listed);
  EXPECT_EQ(opened()->log->view()->active.bytes, bytes) << "nothing was written behind it";
}

TEST_F(MoveSource, FRZ_3_FRZ_4_CLI_5_NoNewLeasesWhileThoseThatAreOutStayUsable) {
  begin();
  const auto leases = consume(3);
  ASSERT_EQ(leases.size(), 3u);
  set_target();
  const auto token = freeze().value().token;
  EXPECT_TRUE(consume(10).empty()) << "two records are there, and are not given";
  EXPECT_EQ(consume(10, std::nullopt).size(), 5u) << "those of the other partition";
  EXPECT_TRUE(settle_one(leases[0]));
  EXPECT_TRUE(settle_one(leases[1], SettleMode::extend));
  EXPECT_TRUE(settle_one(leases[2], SettleMode::nack));
  EXPECT_TRUE(consume(10).empty()) << "not even what was given back";
}

TEST_F(MoveSource, FRZ_10_FRZ_11_FRZ_14_LeasesGetHalfASecondAndTheirAcksAreListed) {
  begin();
  set_target();
  const auto leases = consume(2);
  ASSERT_EQ(leases.size(), 2u);
  const Nanos began = env.clock.mono();
  wire::FreezeRequest request;
  request.move = move();
  const auto frozen = spawn(life->source->freeze(std::move(request)));
  settle(200ms);
  EXPECT_FALSE(*frozen);
  ASSERT_TRUE(settle_one(leases[0]));
  ASSERT_TRUE(settle_one(leases[1]));
  ASSERT_TRUE(wait_for([&] { return frozen->has_value(); }));
  // No longer than it takes, and the acks count though no file has them yet.
  EXPECT_LT(env.clock.mono() - began, 400ms);
  ASSERT_TRUE(**frozen);
  EXPECT_EQ((**frozen).value().listing->frontier, Offset(2));
}

TEST_F(MoveSource, FRZ_10_FRZ_15_LeasesThatOutliveTheWait_AreNotWaitedFor) {
  begin();
  set_target();
  ASSERT_EQ(consume(2).size(), 2u);
  const Nanos began = env.clock.mono();
  const auto frozen = freeze();
  ASSERT_TRUE(frozen);
  EXPECT_GE(env.clock.mono() - began, 500ms);
  EXPECT_LT(env.clock.mono() - began, 700ms);
  EXPECT_EQ(frozen.value().listing->frontier, Offset(0)) << "delivered again by the new owner";
}

TEST_F(MoveSource, FRZ_10_TheWaitIsAQuarterOfAShortTtl) {
  timing.freeze_ttl = 400ms;
  begin();
  set_target();
  ASSERT_EQ(consume(1).size(), 1u);
  const Nanos began = env.clock.mono();
  ASSERT_TRUE(freeze());
  EXPECT_GE(env.clock.mono() - began, 100ms);
  EXPECT_LT(env.clock.mono() - began, 250ms);
}

TEST_F(MoveSource, FRZ_5_FRZ_6_WhenTheTtlHasPassed_TheFreezeIsVoidedByTheLog) {
  begin();
  set_target();
  const auto token = *freeze().value().token;
  settle(kTtl - 1s);
  expect_error(produce(0, 1), Errc::unavailable);
  EXPECT_TRUE(row().freeze_armed);
  settle(2s);
  EXPECT_FALSE(row().freeze_armed);
  EXPECT_EQ(row().freeze_epoch, token.epoch + 1);
  EXPECT_TRUE(produce(0, 1));
  EXPECT_EQ(life->source->stats().voids, 1u);
  EXPECT_GE(life->source->stats().last_frozen, kTtl);
  expect_error(extend(token), Errc::conflict);
  EXPECT_TRUE(freeze()) << "and may be frozen anew";
}

TEST_F(MoveSource, FRZ_5_WithoutALeader_ItStaysShutHoweverLongAndThenOpens) {
  begin();
  set_target();
  const auto token = *freeze().value().token;
  life->reins->reachable = false;
  for (int i = 0; i < 20; ++i) {
    settle(1min);
    expect_error(produce(0, 1), Errc::unavailable);
  }
  EXPECT_TRUE(row().freeze_armed);
  expect_error(extend(token), Errc::conflict);
  life->reins->reachable = true;
  settle(2s);
  EXPECT_TRUE(produce(0, 1));
  EXPECT_EQ(row().freeze_epoch, token.epoch + 1);
}

TEST_F(MoveSource, WhenItsMoveEnds_TheGateOpensAtOnceAndWaitersAreWoken) {
  begin();
  set_target();
  ASSERT_TRUE(freeze());
  delivery::Waiters::Ticket ticket(env, life->partitions->topic_waiters("orders"));
  const auto woken = spawn(ticket.wait(Deadline::after(env, 1h)));
  settle();
  EXPECT_FALSE(*woken);
  clear_target();
  settle();
  EXPECT_TRUE(*woken);
  EXPECT_TRUE(produce(0, 1));
  EXPECT_EQ(consume(10).size(), 6u);
}

TEST_F(MoveSource, AFreezeOfAnotherMoveOrOfNone_IsAConflict) {
  begin();
  wire::FreezeRequest request;
  request.move = move();
  expect_error(run(life->source->freeze(request)), Errc::conflict);  // no move at all
  set_target();
  request.move.move_id = row().move_id.next();
  expect_error(run(life->source->freeze(request)), Errc::conflict);
  life->reins->reachable = false;  // perhaps it only has not heard of it yet
  expect_error(run(life->source->freeze(request)), Errc::unavailable);
  EXPECT_TRUE(produce(0, 1));
}

TEST_F(MoveSource, NoLeaderToArmIt_NothingIsFrozen) {
  begin();
  set_target();
  life->reins->reachable = false;
  expect_error(freeze(), Errc::unavailable);
  EXPECT_TRUE(produce(0, 1));
}

// The entry is applied, and nobody is told of its epoch.
TEST_F(MoveSource, AnArmWhoseAnswerIsLost_IsVoidedAndCommitsGoOn) {
  begin();
  set_target();
  life->reins->lose_answers = true;
  expect_error(freeze(), Errc::unavailable);
  settle(3s);
  life->reins->lose_answers = false;
  EXPECT_FALSE(row().freeze_armed);
  EXPECT_EQ(row().freeze_epoch, 2u);
  EXPECT_TRUE(produce(0, 1));
}

TEST_F(MoveSource, CallerWalksAway_TheFreezeEndsByItself) {
  begin();
  set_target();
  ASSERT_EQ(consume(1).size(), 1u);
  wire::FreezeRequest request;
  request.move = move();
  auto call = life->source->freeze(std::move(request));
  EXPECT_FALSE(run(with_timeout(env, 100ms, std::move(call))));
  expect_error(produce(0, 1), Errc::unavailable);
  settle(kTtl + 2s);
  EXPECT_TRUE(produce(0, 1));
}

TEST_F(MoveSource, ListingUnderTheFreezeFails_ItIsVoided) {
  begin();
  set_target();
  solo.machine.disk().fail_call(sim::FsCall::stat, 1, /*persistent=*/true, 5 /* EIO */);
  expect_error(freeze(), Errc::unavailable);
  solo.machine.disk().clear_failures();
  settle(2s);
  EXPECT_FALSE(row().freeze_armed);
  EXPECT_TRUE(produce(0, 1));
}

// ---- tokens and the fence ----------------------------------------------------------------------

TEST_F(MoveSource, FRZ_8_FRZ_9_ATokenExtendsItsFreezeAndNoOther) {
  begin();
  set_target();
  const auto token = *freeze().value().token;
  for (int i = 0; i < 5; ++i) {
    settle(kTtl / 4 * 3);
    const auto again = extend(token);
    ASSERT_TRUE(again);
    EXPECT_EQ(again.value().token, token);
    EXPECT_FALSE(again.value().listing);
  }
  EXPECT_EQ(row().freeze_epoch, token.epoch) << "no freeze was armed";
  expect_error(extend({token.epoch, std::string(32, '0')}), Errc::conflict);
  settle(kTtl + 1s);
  const std::uint64_t epoch = row().freeze_epoch;
  expect_error(extend(token), Errc::conflict);
  EXPECT_EQ(row().freeze_epoch, epoch);
  EXPECT_TRUE(produce(0, 1));
}

TEST_F(MoveSource, FEN_3_FEN_4_FEN_5_TheFenceWantsThatFreezeAndThatWatermark) {
  begin();
  set_target();
  const auto token = *freeze().value().token;
  expect_error(extend(token, Offset(4)), Errc::conflict);
  expect_error(extend(token, Offset(6)), Errc::conflict);
  settle(kTtl - 1s);
  ASSERT_TRUE(extend(token, Offset(5)));
  settle(kTtl - 1s);
  EXPECT_TRUE(row().freeze_armed) << "the fence gave it a whole period more";
  settle(2s);
  ASSERT_TRUE(produce(0, 1));
  expect_error(extend(token, Offset(5)), Errc::conflict);
  expect_error(extend(token, Offset(6)), Errc::conflict);
  EXPECT_EQ(life->source->stats().fences, 1u);
}

// ---- the flip ----------------------------------------------------------------------------------

TEST_F(MoveSource, OWN_7_CLI_6_AfterTheFlip_TheOwnerServesNothingOfItAnyMore) {
  begin();
  const auto leases = consume(1);
  set_target();
  const auto token = *freeze().value().token;
  delivery::Waiters::Ticket ticket(env, life->partitions->topic_waiters("orders"));
  const auto woken = spawn(ticket.wait(Deadline::after(env, 1h)));
  const auto held = opened();
  flip(token);
  // At once, though nothing has had the time to close it.
  EXPECT_FALSE(held->log->closed());
  expect_error(produce(0, 1), Errc::not_owner);
  expect_error(settle_one(leases[0]), Errc::not_owner);
  settle();
  EXPECT_TRUE(*woken);
  EXPECT_TRUE(held->log->closed());
  EXPECT_FALSE(opened());
  EXPECT_TRUE(opened(1)) << "the other partition is not touched";
  expect_error(list(), Errc::not_owner);
  expect_error(extend(token), Errc::not_owner);
  settle(kTtl * 2);
  EXPECT_EQ(row().freeze_epoch, token.epoch) << "nothing was voided";
  EXPECT_TRUE(produce(1, 1));
}

TEST_F(MoveSource, CON_2_WhatIsUnackedAtTheFlip_IsLeftToTheNewOwner) {
  begin();
  const auto leases = consume(3);
  ASSERT_EQ(leases.size(), 3u);
  ASSERT_TRUE(settle_one(leases[0]));
  set_target();
  const auto frozen = freeze();
  ASSERT_TRUE(frozen) << frozen.error().text();
  EXPECT_TRUE(settle_one(leases[1])) << "it counts here, and comes after the capture";
  flip(*frozen.value().token);
  expect_error(settle_one(leases[2]), Errc::not_owner);
  const wire::Listing& captured = *frozen.value().listing;
  const auto copied = moves::copied_positions(captured, captured.hwm).positions;
  EXPECT_EQ(copied.frontier, Offset(1)) << "the second and the third are delivered again";
  EXPECT_TRUE(copied.acked_ahead.empty());
}

// A commit that is queued when the flip is applied.
TEST_F(MoveSource, AfterTheFlip_WhatStillWaitsIsRefused) {
  begin();
  set_target();
  const auto token = *freeze().value().token;
  flip(token);
  auto direct = opened();
  if (direct) expect_error(run(direct->log->commit(batch(0, 1))), Errc::not_owner);
  EXPECT_EQ(row().owner_node, "there");
}

// Away and back: another ownership, with a gate of its own.
TEST_F(MoveSource, OwnedAgain_ItIsOpenedAnewAndTakesCommits) {
  begin();
  set_target();
  const auto token = *freeze().value().token;
  const auto before = opened()->opening;
  flip(token);
  propose(metastore::SetTarget{"orders", topic.incarnation, PartitionId(0), "there", RaftIndex(0),
                               "here", life->data->disks()[0].id, "operator"});
  propose(
      metastore::ArmFreeze{"orders", topic.incarnation, PartitionId(0), "there", row().move_id});
  propose(metastore::CompleteMove{"orders", topic.incarnation, PartitionId(0), "there",
                                  row().move_id, row().freeze_epoch});
  ASSERT_EQ(row().owner_node, "here");
  EXPECT_TRUE(produce(0, 1));
  EXPECT_NE(opened()->opening, before);
  EXPECT_EQ(opened()->log->hwm(), Offset(6));
}

// ---- restarts ----------------------------------------------------------------------------------

TEST_F(MoveSource, G33_ARestartedOwner_VoidsTheFreezeBeforeItsFirstCommit) {
  has_peers = true;
  begin();
  set_target();
  renew_lease();
  const auto token = *freeze().value().token;
  crash();
  reachable_at_start = false;
  start();
  renew_lease();
  settle(10s);
  expect_error(produce(0, 1), Errc::unavailable);  // it knows nothing yet
  expect_error(produce(1, 1), Errc::unavailable);  // of any partition
  EXPECT_TRUE(consume(1, 1).empty());
  expect_error(extend(token), Errc::conflict);
  EXPECT_TRUE(row().freeze_armed);
  life->reins->reachable = true;
  settle(3s);
  EXPECT_EQ(row().freeze_epoch, token.epoch + 1) << "voided, though nobody asked for it";
  EXPECT_FALSE(row().freeze_armed);
  renew_lease();
  EXPECT_TRUE(produce(0, 1));
  EXPECT_TRUE(produce(1, 1));
  expect_error(extend(token), Errc::conflict);
}

TEST_F(MoveSource, ALoneNode_IsSureOfItselfFromTheStart) {
  begin();
  crash();
  start();
  EXPECT_TRUE(produce(0, 1));
  EXPECT_EQ(opened()->log->hwm(), Offset(6));
}

// ---- the move lease ----------------------------------------------------------------------------

TEST_F(MoveSource, MoveLease_IsAskedForWhileAPartitionIsBeingMovedOnly) {
  has_peers = true;
  begin(2, 0);
  settle();
  ASSERT_TRUE(produce(0, 1));
  ASSERT_TRUE(produce(1, 1));
  set_target();
  expect_error(produce(0, 1), Errc::unavailable);
  EXPECT_TRUE(produce(1, 1));
  EXPECT_EQ(life->source->stats().refused_lease, 1u);
  renew_lease();
  EXPECT_TRUE(produce(0, 1));
  settle(16s);
  expect_error(produce(0, 1), Errc::unavailable);
  // Answered, but what the leader knew then is not applied here.
  renew_lease();
  proof->index = life->store->view()->applied.next();
  expect_error(produce(0, 1), Errc::unavailable);
  renew_lease();
  EXPECT_TRUE(produce(0, 1));
  proof.reset();
  clear_target();
  EXPECT_TRUE(produce(0, 1)) << "the move has ended";
}

TEST_F(MoveSource, MoveLease_ThatRunsOutDuringTheSync_FailsTheCommit) {
  has_peers = true;
  begin(1, 0);
  settle();
  ASSERT_TRUE(produce(0, 1));
  set_target();
  renew_lease();
  const auto commit = spawn(committing(0, 3));
  ASSERT_TRUE(wait_for([&] { return opened()->log->log_end() == Offset(4); }));
  ASSERT_FALSE(*commit);
  proof->sent_boot = env.clock.boot() - 15s;
  ASSERT_TRUE(wait_for([&] { return commit->has_value(); }));
  expect_error(**commit, Errc::unavailable);
  EXPECT_EQ(opened()->log->hwm(), Offset(1));
  EXPECT_EQ(life->source->stats().commits_failed_late, 1u);
  renew_lease();
  EXPECT_EQ(produce(0, 1).value().first, Offset(1));
}

TEST_F(MoveSource, ALoneNode_NeedsNoLease) {
  begin();
  set_target();
  EXPECT_TRUE(produce(0, 1));
}

}  // namespace
}  // namespace narad::node
