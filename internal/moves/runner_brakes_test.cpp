// Moves that are held back: by the throttle, as it changes, and by pauses.
#include <gtest/gtest.h>

#include "internal/moves/pace.h"
#include "internal/moves/runner_for_test.h"

namespace narad::moves {
namespace {

using namespace testing;

// A move that would take eleven minutes: its next chunk, which waits in the budget, is asked for
// within a second.
TEST_F(RunnerTest, Throttle_ChangedInTheMetastore_CountsForMovesThatWait) {
  world.log.append(700, 1000);
  world.timing.bytes_per_second = 1'000'000;
  world.timing.chunk_bytes = 60'000;
  ASSERT_TRUE(world.boot());
  ASSERT_TRUE(world.propose(metastore::SetMoveRate{1024}).value().done());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.chunks > 0; }, 60s));
  world.pass(20s);
  const std::uint64_t slow = world.source.chunk_bytes;
  EXPECT_LT(slow, 40'000u) << "this node's own rate does not count";
  ASSERT_TRUE(world.propose(metastore::SetMoveRate{100'000}).value().done());
  ASSERT_TRUE(world.until([&] { return world.source.chunk_bytes > slow + 20'000; }, 1s));
  ASSERT_TRUE(world.propose(metastore::SetMoveRate{}).value().done());
  ASSERT_TRUE(arrives(5s)) << "as fast as this node's own configuration has it";
  expect_whole_move();
}

TEST_F(RunnerTest, Throttle_OfTheMoveItself_HoldsItBesideThatOfAll) {
  for (const std::uint64_t all : {0, 20'000, 500'000}) {
    World one{make_file_site};
    one.log.append(100, 1000);
    one.timing.bytes_per_second = all;
    ASSERT_TRUE(one.boot());
    const Nanos began = one.sim.now();
    one.set_target(kSelf, {}, 50'000);
    ASSERT_TRUE(one.until([&] { return one.here(); }, 10min));
    const double seconds = static_cast<double>((one.sim.now() - began).count()) / 1e9;
    const double rate = all == 20'000 ? 20'000 : 50'000;
    const double least = (static_cast<double>(one.source.chunk_bytes) - 20'000) / rate;
    EXPECT_GT(seconds, least) << all;
    EXPECT_LT(seconds, least * 1.3 + 5) << all;
    EXPECT_EQ(one.row().move_rate, 0u) << "gone with the move";
  }
}

// The throttle is a budget for each node and direction: of what the source may send, each node that
// it sends to takes its share, and the last one all of it.
TEST_F(RunnerTest, Throttle_OfASourceThatSendsToTwo_IsShared) {
  const auto other = [&](const char* to) {
    const Assignment now = *world.metastore().view()->assignment(kPartition.topic, PartitionId(1));
    metastore::SetTarget entry;
    entry.name = kPartition.topic;
    entry.incarnation = kLife;
    entry.partition = PartitionId(1);
    entry.owner_node = now.owner_node;
    entry.move_id = now.move_id;
    entry.target_node = to;
    entry.target_disk = now.owner_disk;
    return entry;
  };
  const auto fetched_in = [&](Nanos time) {
    const std::uint64_t before = world.source.chunk_bytes;
    world.pass(time);
    return static_cast<double>(world.source.chunk_bytes - before);
  };
  world.log.append(2'000, 1000);
  ASSERT_TRUE(world.boot());
  const std::string disk = world.row().owner_disk;
  metastore::MarkUsed used{kPartition.topic, kLife, PartitionId(1), kSource, disk};
  ASSERT_TRUE(world.propose(used).value().done());
  ASSERT_TRUE(world.propose(other("e")).value().done());
  ASSERT_TRUE(world.propose(metastore::SetMoveRate{20'000}).value().done());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.chunks > 2; }, 60s));
  world.pass(2s);
  EXPECT_NEAR(fetched_in(20s), 200'000, 20'000) << "the other half is for e";
  metastore::ClearTarget clear;
  clear.name = kPartition.topic;
  clear.incarnation = kLife;
  clear.partition = PartitionId(1);
  clear.target_node = "e";
  clear.move_id = world.metastore().view()->assignment(kPartition.topic, PartitionId(1))->move_id;
  ASSERT_TRUE(world.propose(clear).value().done());
  world.pass(2s);
  EXPECT_NEAR(fetched_in(20s), 400'000, 40'000);
}

// ---- pauses

struct PausedMove : RunnerTest {
  void say(bool paused) {
    const Assignment row = world.row();
    metastore::PauseMove order{kPartition.topic, kLife, kPartition.partition, row.move_id, paused};
    auto result = world.propose(order);
    ASSERT_TRUE(result && result.value().done());
  }
  void say_of(std::string node, bool paused) {
    auto result = world.propose(metastore::PauseMoves{std::move(node), paused});
    ASSERT_TRUE(result && result.value().done());
  }
  // Nothing is asked of the source, and all that is staged stays.
  void expect_rest() {
    ASSERT_TRUE(becomes("paused", 2s));
    world.pass(1s);
    const auto calls = world.source.all_calls;
    const auto staged = report().bytes_done;
    world.pass(5min);
    EXPECT_EQ(world.source.all_calls, calls);
    EXPECT_EQ(report().bytes_done, staged);
    EXPECT_EQ(report().phase, "paused");
    EXPECT_FALSE(world.source.frozen());
    EXPECT_EQ(world.row().owner_node, kSource);
    EXPECT_GT(world.source.commit(1), 0u) << "the source serves on";
  }
};

TEST_F(PausedMove, InMidCopy_WhatIsStagedStaysAndIsNotFetchedAgain) {
  world.log.append(300);
  world.source.faults.latency = 50ms;
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 9000; }, 60s));
  say(true);
  expect_rest();
  const std::uint64_t fetched = world.source.chunk_bytes;
  const std::uint64_t staged = report().bytes_done;
  EXPECT_GT(staged, 9000u);
  say(false);
  ASSERT_TRUE(arrives());
  expect_whole_move();
  const std::uint64_t all = world.node().runner->stats().bytes;
  // Some chunks had been under way.
  EXPECT_LT(world.source.chunk_bytes, fetched + all - staged + 10'000);
}

TEST_F(PausedMove, ThatWaitsForItsTurnInTheThrottle_RestsWithinASecond) {
  world.log.append(700, 1000);
  ASSERT_TRUE(world.boot());
  ASSERT_TRUE(world.propose(metastore::SetMoveRate{1024}).value().done());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.chunks > 2; }, 60s));
  say(true);
  EXPECT_TRUE(becomes("paused", 1s));
}

// Over before the pass has looked: those who fetch have left by then.
TEST_F(PausedMove, ForAMomentOnly_GoesOn) {
  world.log.append(300, 1000);
  world.timing.bytes_per_second = 20'000;
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.chunks > 2; }, 60s));
  for (int i = 0; i < 20 && !world.here(); ++i) {
    say(true);
    world.pass(200ms);
    say(false);
    world.pass(500ms);
  }
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

TEST_F(PausedMove, UnderAFreeze_TheFreezeIsLetGo) {
  world.log.append(100);
  ASSERT_TRUE(world.boot());
  world.source.commits_each_tick = 1;
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.frozen(); }, 60s));
  const std::uint64_t epoch = world.row().freeze_epoch;
  world.source.faults.more["listing"] = 500ms;
  say(true);
  ASSERT_TRUE(world.until([&] { return !world.source.frozen(); }, 5s));
  EXPECT_EQ(world.row().freeze_epoch, epoch + 1) << "through the log, not by the clock";
  world.source.faults.more.clear();
  expect_rest();
  say(false);
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

TEST_F(PausedMove, OfANodeOrOfAll_HoldsWhatBeginsLaterToo) {
  world.log.append(100);
  ASSERT_TRUE(world.boot());
  say_of(kSelf, true);
  say_of("", true);
  world.set_target();
  expect_rest();
  say_of(kSelf, false);
  expect_rest();
  say_of(kSource, true);
  say_of("", false);
  expect_rest();
  say_of(kSource, false);
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

TEST_F(PausedMove, ThroughARestart_RestsAndIsTakenUpFromWhatIsStaged) {
  world.log.append(300);
  world.source.faults.latency = 50ms;
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 9000; }, 60s));
  say(true);
  ASSERT_TRUE(becomes("paused"));
  world.machine.kill(sim::Machine::Kill::power_cut);
  ASSERT_TRUE(world.boot());
  const std::uint64_t chunks = world.source.chunks;
  ASSERT_TRUE(becomes("paused"));
  world.pass(1min);
  EXPECT_EQ(world.source.chunks, chunks);
  say(false);
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

TEST_F(PausedMove, OfADeadSource_TakesOverOnlyOnceItIsResumed) {
  world.log.append(100);
  ASSERT_TRUE(world.boot());
  world.source.silent = 10min;
  world.source.faults.more["freeze"] = 10min;
  world.set_target();
  ASSERT_TRUE(becomes("freezing"));
  say(true);
  world.kill_source();
  world.pass(30min);
  EXPECT_EQ(world.row().owner_node, kSource);
  say(false);
  ASSERT_TRUE(world.until([&] { return stats().force_promoted == 1; }, 2min));
  EXPECT_TRUE(world.here());
}

TEST_F(PausedMove, ThatIsAborted_IsDisposedOf) {
  world.log.append(300);
  world.source.faults.latency = 50ms;
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 9000; }, 60s));
  say(true);
  ASSERT_TRUE(becomes("paused"));
  world.clear_target();
  ASSERT_TRUE(world.until([&] { return stats().ended_without_flip == 1; }, 5s));
  EXPECT_FALSE(exists(kStaged));
  EXPECT_FALSE(world.row().paused);
}

// How long the same copy takes, up to the freeze, on a disk whose syncs take 10 ms.
Nanos copy_beside(std::function<std::uint64_t()> durable) {
  World world{make_file_site};
  world.log.append(100, 1000);
  EXPECT_TRUE(world.boot());
  world.machine.disk().faults.sync_latency = 10ms;
  world.node().runner->give_way_to(std::move(durable));
  world.set_target();
  EXPECT_TRUE(world.until([&] { return world.source.chunks > 0; }, 10s));
  const Nanos began = world.sim.now();
  EXPECT_TRUE(world.until([&] { return world.source.armed > 0; }, 60s));
  const Nanos took = world.sim.now() - began;
  EXPECT_TRUE(world.until([&] { return world.here(); }, 60s));
  return took;
}

TEST(Pace, BulkOfACopy_LeavesTheDiskToClientsWhileTheyWrite) {
  std::uint64_t written = 0;
  const Nanos alone = copy_beside({});
  const Nanos quiet = copy_beside([] { return std::uint64_t{7}; });
  const Nanos busy = copy_beside([&] { return ++written; });
  EXPECT_LT(quiet, alone * 3 / 2) << "what was written before the move is no reason";
  EXPECT_GT(busy, alone * 8 / 5);
}

TEST(Pace, ClientsWrite_UntilNothingMoreIsWrittenForAWhile) {
  std::uint64_t durable = 5;
  Pace pace;
  EXPECT_FALSE(pace.clients_write(1s)) << "nobody to follow";
  pace.follow([&] { return durable; });
  EXPECT_TRUE(pace.clients_write(2s)) << "since when is not known";
  EXPECT_FALSE(pace.clients_write(2s + Pace::kBusyFor));
  ++durable;
  EXPECT_TRUE(pace.clients_write(5s));
  EXPECT_TRUE(pace.clients_write(5s + Pace::kBusyFor - 1ms));
  EXPECT_FALSE(pace.clients_write(5s + Pace::kBusyFor));
  EXPECT_LT(pace.rests_until(), 1s);
  pace.on_synced(5s, 5s + 3ms);
  EXPECT_EQ(pace.rests_until(), 5s + 12ms);
  pace.on_synced(6s, 66s);
  EXPECT_EQ(pace.rests_until(), 66s + Pace::kRestMax);
}

}  // namespace
}  // namespace narad::moves
