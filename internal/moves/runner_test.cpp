// Whole moves onto a node: a real runner, metastore and staging, with a source that goes on
// committing, calls that fail and answers that are lost.
#include "internal/moves/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/delivery/consumer_files.h"
#include "internal/moves/runner_for_test.h"
#include "internal/moves/staging.h"

namespace narad::moves {
namespace {

using namespace testing;

TEST_F(RunnerTest, OWN_5_Move_IsFoundCarriedOutAndFlippedByTheDestination) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(arrives());
  expect_whole_move();
  const RunnerStats s = stats();
  EXPECT_EQ(s.started, 1u);
  EXPECT_EQ(s.bytes, world.source.chunk_bytes);
  EXPECT_EQ(world.source.armed, 1u);
  EXPECT_EQ(world.source.fences, 1u);
  EXPECT_TRUE(world.node().runner->reports().empty());
}

TEST_F(RunnerTest, OWN_7_CPY_1_CPY_5_SourceCommitsUntilTheFreeze_AndAllOfItArrives) {
  world.log.append(2000, 2000);
  world.source.commits_each_tick = 10;
  world.timing.lag_bytes = 20'000;
  world.timing.chunk_bytes = 20'000;
  ASSERT_TRUE(world.boot());
  std::uint64_t at_target = world.log.log->hwm().value();
  std::uint64_t frozen_at = 0;
  world.source.on_freeze = [&](const wire::FreezeRequest& r) {
    if (!r.token) frozen_at = world.log.log->hwm().value();
  };
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_GT(frozen_at, at_target) << "it went on committing during the copy";
  const auto marker = read_marker(world.machine.disk(), kPath).value();
  EXPECT_LT(marker->receipt.frozen_ms, 1000u);
  EXPECT_GT(marker->receipt.copy_ms, marker->receipt.frozen_ms);
  expect_whole_move();
}

TEST_F(RunnerTest, RUN_7_NewTarget_StartsWithoutWaitingForTheTick) {
  ASSERT_TRUE(world.boot());
  world.pass(300ms);
  world.set_target();
  EXPECT_TRUE(world.until([&] { return stats().started == 1; }, 10ms));
}

TEST_F(RunnerTest, RUN_1_RUN_3_RUN_6_UnchangedVersions_SkipTheRead) {
  ASSERT_TRUE(world.boot());
  std::uint64_t ticks = 0;
  world.node().runner->on_tick([&] { ++ticks; });
  world.pass(1s);
  const RunnerStats before = stats();
  world.pass(20s);
  EXPECT_EQ(stats().full_passes, before.full_passes);
  EXPECT_GE(stats().skipped_ticks, before.skipped_ticks + 19);
  EXPECT_GE(ticks, 20u);
  EXPECT_LE(ticks, 22u);
  world.pass(30s);
  EXPECT_EQ(stats().full_passes, before.full_passes + 1) << "every 30 s whatever the versions say";
}

TEST_F(RunnerTest, RUN_5_WorkersExit_ForcesARead) {
  ASSERT_TRUE(world.boot());
  world.pass(2s);
  world.set_target();
  ASSERT_TRUE(world.until([&] { return stats().done == 1; }, 60s));
  world.pass(100ms);
  const std::uint64_t passes = stats().full_passes;
  world.pass(5s);
  EXPECT_LE(stats().full_passes, passes + 1);
  EXPECT_GE(passes, 4u) << "the target, the arm, the flip, and the exit";
}

TEST_F(RunnerTest, RUN_10_ABT_4_ClearedTarget_StopsTheWorkerAndItsStaging) {
  world.log.append(500);
  world.source.faults.latency = 200ms;
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 3000; }, 60s));
  world.clear_target();
  ASSERT_TRUE(world.until([&] { return stats().ended_without_flip == 1; }, 5s));
  EXPECT_FALSE(exists(kStaged)) << "the owner still has all of it";
  EXPECT_EQ(world.row().owner_node, kSource);
  const std::uint64_t chunks = world.source.chunks;
  world.pass(10s);
  EXPECT_EQ(world.source.chunks, chunks);
}

TEST_F(RunnerTest, MoveThatEndedWhileTheNodeWasAway_ItsStagingIsDisposedOf) {
  world.log.append(500);
  world.source.faults.latency = 200ms;
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 3000; }, 60s));
  world.source.faults.unreachable = true;  // so nothing may be removed yet
  world.clear_target();
  world.pass(5s);
  ASSERT_TRUE(exists(kStaged));
  world.machine.kill(sim::Machine::Kill::power_cut);
  world.source.faults.unreachable = false;
  ASSERT_TRUE(world.boot());
  EXPECT_TRUE(world.until([&] { return !exists(kStaged); }, 30s));
  EXPECT_EQ(world.row().owner_node, kSource);
}

TEST_F(RunnerTest, StagingOfAnUnknownMove_IsRemovedOnlyIfItHoldsNoRecord) {
  auto& disk = world.machine.disk();
  ASSERT_TRUE(make_directories(disk, "/data/.moves/clicks-0"));
  ASSERT_TRUE(make_directories(disk, "/data/.moves/audit-1"));
  const Bytes something(100, std::byte{1});
  ASSERT_TRUE(replace_file(disk, join_path("/data/.moves/audit-1", seglog::segment_name(Offset(0))),
                           something));
  ASSERT_TRUE(world.boot());
  EXPECT_TRUE(world.until([&] { return !exists("/data/.moves/clicks-0"); }, 10s));
  EXPECT_FALSE(exists("/data/.moves/audit-1"));
  EXPECT_TRUE(exists("/data/.moves/audit-1.quarantine"));
}

TEST_F(RunnerTest, FLP_17_TargetSetAgain_IsANewWorkerAndANewCopy) {
  world.log.append(200);
  world.source.faults.latency = 100ms;
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 3000; }, 60s));
  world.clear_target();
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_EQ(stats().started, 2u);
  expect_whole_move();
}

TEST_F(RunnerTest, RUN_11_CPY_10_SRC_1_SourceAway_IsWaitedForAndTheCopyResumed) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 5000; }, 60s));
  world.source.faults.unreachable = true;
  ASSERT_TRUE(becomes("waiting_for_source"));
  world.pass(10min);
  EXPECT_EQ(stats().ended_without_flip, 0u);
  EXPECT_GT(report().attempts, 100u);
  EXPECT_FALSE(report().last_error.empty());
  world.source.faults.unreachable = false;
  ASSERT_TRUE(arrives());
  expect_whole_move();
  EXPECT_LT(world.source.chunk_bytes, world.log.log->stats().bytes + 10 * 1500);
}

TEST_F(RunnerTest, FEN_1_LongDrain_KeepsTheFreezeAlive) {
  world.log.append(10);
  ASSERT_TRUE(world.boot());
  bool grown = false;
  world.source.on_freeze = [&](const wire::FreezeRequest& r) {
    if (r.token || grown) return;
    grown = true;
    world.log.append(1500);  // what came in since the last pass
    world.source.faults.latency = 2s;
  };
  world.set_target();
  ASSERT_TRUE(arrives(20min));
  EXPECT_EQ(world.source.armed, 1u) << "one freeze, however long the drain";
  ASSERT_GT(world.source.extended_at.size(), 5u);
  for (std::size_t i = 1; i < world.source.extended_at.size(); ++i) {
    EXPECT_LT(world.source.extended_at[i] - world.source.extended_at[i - 1], 12s);
  }
  expect_whole_move();
}

TEST_F(RunnerTest, FEN_3_FEN_4_FEN_6_CommitsBehindTheCopy_AreCaughtByTheFence) {
  world.log.append(50);
  ASSERT_TRUE(world.boot());
  std::uint64_t fences = 0;
  world.source.on_freeze = [&](const wire::FreezeRequest& r) {
    // A source that is out of order: the freeze did not hold.
    if (r.expect_hwm && ++fences == 1) world.log.append(5);
  };
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_EQ(world.source.armed, 2u);
  EXPECT_EQ(fences, 2u);
  expect_whole_move();
}

TEST_F(RunnerTest, FLP_5_FLP_8_AnswerOfTheFlipLost_IsFoundToBeDone) {
  world.log.append(100);
  world.proposer_faults = [](FaultyProposer& p) { p.unanswered = {{"complete_move", 1}}; };
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_EQ(place().taken_off, 0u);
  expect_whole_move();
}

TEST_F(RunnerTest, FLP_4_FLP_14_Trap1_FlipThatAppliesLate_FindsTheCopyInPlace) {
  for (const Nanos by : {1s, 3s, 8s, 14s}) {
    World late(make_file_site, 7);
    late.log.append(100);
    late.proposer_faults = [by](FaultyProposer& p) {
      p.late_by = by;
      p.late = {{"complete_move", 1}};
      for (std::uint64_t n = 2; n < 20; ++n) p.never.insert({"complete_move", n});
    };
    ASSERT_TRUE(late.boot());
    late.set_target();
    ASSERT_TRUE(late.until([&] { return late.here(); }, 5min));
    EXPECT_TRUE(late.machine.disk().seen_bytes(join_path(kPath, "hwm")));
    late.pass(30s);
    EXPECT_TRUE(late.machine.disk().seen_bytes(join_path(kPath, "hwm")));
    EXPECT_EQ(late.node().runner->stats().done, 1u);
  }
}

TEST_F(RunnerTest, FLP_9_FlipThatWasNeverApplied_IsProposedAgain) {
  world.log.append(100);
  world.proposer_faults = [](FaultyProposer& p) {
    p.never = {{"complete_move", 1}, {"complete_move", 2}, {"complete_move", 3}};
  };
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_EQ(world.node().proposer->seen["complete_move"], 4u);
  EXPECT_EQ(world.source.fences, 4u) << "asked before each";
  EXPECT_EQ(place().taken_off, 0u);
  expect_whole_move();
}

TEST_F(RunnerTest, FLP_10_FLP_18_FlipThatIsNeverAnswered_IsGivenUpAndDoneAnew) {
  world.log.append(100);
  world.source.commits_each_tick = 1;
  world.proposer_faults = [](FaultyProposer& p) {
    for (std::uint64_t n = 1; n < 40; ++n) p.never.insert({"complete_move", n});
  };
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(world.until([&] { return place().taken_off == 1; }, 10min));
  EXPECT_FALSE(world.source.frozen());
  EXPECT_EQ(world.row().owner_node, kSource);
  const std::uint64_t hwm = world.log.log->hwm().value();
  const std::uint64_t fetched = world.source.chunk_bytes;
  world.node().proposer->never.clear();
  ASSERT_TRUE(arrives(10min));
  EXPECT_GT(world.log.log->hwm().value(), hwm) << "the source went on";
  EXPECT_GT(fetched, 5000u);
  EXPECT_EQ(world.source.chunk_bytes, world.log.log->stats().bytes) << "only what it lacked";
  expect_whole_move();
}

TEST_F(RunnerTest, FLP_13_FLP_16_FlipLosesToAReplan_TheCopyLeavesThePath) {
  world.log.append(100);
  world.proposer_faults = [](FaultyProposer& p) { p.never = {{"complete_move", 1}}; };
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(becomes("flipping"));
  world.pass(10ms);
  ASSERT_TRUE(exists(kPath));
  world.set_target("e");
  ASSERT_TRUE(world.until([&] { return stats().ended_without_flip == 1; }, 60s));
  EXPECT_EQ(place().taken_off, 1u);
  EXPECT_FALSE(exists(kPath));
  EXPECT_FALSE(exists(kStaged));
  EXPECT_EQ(world.row().owner_node, kSource);
}

TEST_F(RunnerTest, FLP_19_WithoutALeader_TheInstallStays) {
  world.log.append(100);
  world.proposer_faults = [](FaultyProposer& p) { p.unanswered = {{"complete_move", 1}}; };
  ASSERT_TRUE(world.boot());
  world.node().proposer->before = [&](const metastore::Command& c) {
    if (metastore::op_name(c) == "complete_move") world.node().proposer->no_leader = true;
  };
  world.set_target();
  ASSERT_TRUE(becomes("flipping"));
  world.pass(10min);
  EXPECT_TRUE(exists(kPath));
  EXPECT_EQ(place().taken_off, 0u);
  world.node().proposer->before = nullptr;
  world.node().proposer->no_leader = false;
  ASSERT_TRUE(arrives(10min));
  expect_whole_move();
}

TEST_F(RunnerTest, VER_2_VER_3_VER_4_SourceThatListsMoreThanItHas_IsBlockedAfterOneRedo) {
  world.log.append(60);
  ASSERT_TRUE(world.boot());
  // Its listing names a high watermark that its bytes do not reach, and its fence confirms it.
  struct Lying final : SourceCalls {
    explicit Lying(FakeSource& s) : inner(s) {}
    Task<Result<wire::Listing>> listing(std::string n, wire::MoveRef m) override {
      auto l = co_await inner.listing(std::move(n), std::move(m));
      if (l) l.value().hwm = l.value().hwm.next();
      co_return l;
    }
    Task<Result<std::string>> chunk(std::string n, wire::MoveRef m, Offset b, std::uint64_t f,
                                    std::uint64_t l) override {
      return inner.chunk(std::move(n), std::move(m), b, f, l);
    }
    Task<Result<wire::SegmentDigests>> digests(std::string n, wire::MoveRef m, Offset b) override {
      return inner.digests(std::move(n), std::move(m), b);
    }
    Task<Result<wire::FreezeAnswer>> freeze(std::string n, wire::FreezeRequest r) override {
      if (r.expect_hwm) r.expect_hwm = Offset(r.expect_hwm->value() - 1);
      auto a = co_await inner.freeze(std::move(n), std::move(r));
      if (a && a.value().listing) a.value().listing->hwm = a.value().listing->hwm.next();
      co_return a;
    }
    FakeSource& inner;
  };
  auto lying = std::make_unique<Lying>(world.source);
  Runner runner(world.node().env, kSelf, *world.node().proposer, *lying, world.source, place(),
                world.timing);
  world.node().runner->start();
  auto stopped = std::make_shared<bool>(false);
  struct Stop {
    static Task<void> run(Runner& r, std::shared_ptr<bool> done) {
      co_await r.stop();
      *done = true;
    }
  };
  world.node().tasks.spawn("stop", Stop::run(*world.node().runner, stopped));
  ASSERT_TRUE(world.until([&] { return *stopped; }, 10s));
  runner.start();
  world.set_target();
  ASSERT_TRUE(world.until([&] { return runner.stats().blocked_unverifiable == 1; }, 60s));
  EXPECT_EQ(world.logged("move: staged copy cannot be verified; not freezing the source again"),
            1u);
  EXPECT_EQ(world.source.armed, 2u);
  world.pass(10min);
  EXPECT_EQ(world.source.armed, 2u) << "no more freezes";
  EXPECT_FALSE(world.source.frozen());
  EXPECT_EQ(world.row().owner_node, kSource);
  world.clear_target();
  ASSERT_TRUE(world.until([&] { return runner.reports().empty(); }, 60s));
  auto gone = std::make_shared<bool>(false);
  world.node().tasks.spawn("stop", Stop::run(runner, gone));
  ASSERT_TRUE(world.until([&] { return *gone; }, 10s));
}

TEST_F(RunnerTest, SRC_2_SRC_6_SRC_14_DeadSource_IsReplacedByTheStagedCopy) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  world.source.commits_each_tick = 1;
  std::uint64_t named = 0;
  world.source.on_freeze = [&](const wire::FreezeRequest& r) {
    if (!r.token && named == 0) {
      named = world.log.log->hwm().value();
      world.source.faults.unreachable = true;  // it dies as it is asked to freeze
    }
  };
  world.set_target();
  // What it takes between the last pass and the freeze would be nowhere else.
  ASSERT_TRUE(world.until([&] { return report().passes > 0; }, 60s));
  world.source.commits_each_tick = 0;
  ASSERT_TRUE(world.until([&] { return named > 0; }, 60s));
  const auto had = world.log.records();
  world.kill_source();
  world.source.silent = 1h;
  world.pass(119s);
  EXPECT_FALSE(world.here());
  ASSERT_TRUE(arrives(30s));
  EXPECT_EQ(stats().force_promoted, 1u);
  const auto marker = read_marker(world.machine.disk(), kPath).value();
  ASSERT_TRUE(marker);
  EXPECT_TRUE(marker->force_promoted);
  const auto have = arrived();
  EXPECT_EQ(have.size(), marker->promoted_hwm.value());
  EXPECT_GE(have.size(), 300u);
  EXPECT_TRUE(std::equal(have.begin(), have.end(), had.begin()));
}

TEST_F(RunnerTest, SRC_8_SRC_9_SRC_10_CopyBehind_WaitsAndSaysSo) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  world.source.on_chunk = [&](Offset, std::uint64_t, std::string&) {
    if (world.source.chunks > 5) world.source.faults.unreachable = true;
  };
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.chunks > 5; }, 60s));
  world.kill_source();
  world.source.silent = 1h;
  ASSERT_TRUE(world.until([&] { return stats().blocked_copy_behind == 1; }, 5min));
  world.pass(10min);
  constexpr const char* kText =
      "move: the source is dead and this node's copy is behind its last high watermark, so it "
      "cannot force-promote";
  EXPECT_EQ(world.logged(kText), 1u);
  EXPECT_FALSE(world.here());
  world.source.on_chunk = nullptr;
  world.revive_source();
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

TEST_F(RunnerTest, SRC_7_SourceNeverReached_IsNotReplaced) {
  world.log.append(10);
  world.source.faults.unreachable = true;
  ASSERT_TRUE(world.boot());
  world.set_target();
  world.kill_source();
  world.source.silent = 1h;
  world.pass(10min);
  EXPECT_FALSE(world.here());
  EXPECT_EQ(stats().blocked_copy_behind, 1u);
}

TEST_F(RunnerTest, QUA_4_SourceDeadAtTheEnd_StagingIsSetAside) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  world.source.on_chunk = [&](Offset, std::uint64_t, std::string&) {
    if (world.source.chunks > 5) world.source.faults.unreachable = true;
  };
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.chunks > 5; }, 60s));
  world.kill_source();
  world.clear_target();
  ASSERT_TRUE(world.until([&] { return stats().ended_without_flip == 1; }, 60s));
  EXPECT_FALSE(exists(kStaged));
  EXPECT_TRUE(exists(std::string(kStaged) + ".quarantine"));
  EXPECT_EQ(stats().set_aside, 1u);
  EXPECT_EQ(world.machine.log().count(LogLevel::error), 1u);
}

TEST_F(RunnerTest, SourceThatCameBackWithLess_IsNotFrozenAndNothingStagedIsTouched) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  world.source.faults.latency = 20ms;
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 8000; }, 60s));
  // Another, emptier disk is mounted there.
  SourceLog other(small_segments(), 9);
  std::swap(world.log.log, other.log);
  const std::uint64_t armed = world.source.armed;
  ASSERT_TRUE(world.until([&] { return stats().blocked_went_back == 1; }, 60s));
  const std::uint64_t staged = report().bytes_done;
  world.pass(10min);
  EXPECT_EQ(world.source.armed, armed);
  EXPECT_EQ(report().bytes_done, staged);
  EXPECT_EQ(report().blocked, "source_went_back");
  std::swap(world.log.log, other.log);
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

TEST_F(RunnerTest, RUN_2_EveryTopicIsRead) {
  ASSERT_TRUE(world.boot());
  using namespace metastore;
  CreateTopic topic;
  topic.name = "a-later-topic";
  topic.incarnation = Incarnation(70);
  topic.partitions = 6;
  topic.visibility_timeout_ms = 30'000;
  topic.max_in_flight_per_partition = topic.max_acked_ahead_per_partition = 100;
  ASSERT_TRUE(world.propose(topic).value().done());
  std::uint64_t targets = 0;
  const ViewPtr view = world.metastore().view();
  for (std::uint32_t p = 0; p < 6; ++p) {
    const Assignment a = *view->assignment("a-later-topic", PartitionId(p));
    if (a.owner_node == kSelf) continue;
    MarkUsed used{"a-later-topic", Incarnation(70), PartitionId(p), a.owner_node, "d1"};
    ASSERT_TRUE(world.propose(used).value().done());
    SetTarget target{"a-later-topic", Incarnation(70), PartitionId(p), a.owner_node,
                     RaftIndex(0),    kSelf,           "d1",           "operator"};
    ASSERT_TRUE(world.propose(target).value().done());
    ++targets;
  }
  ASSERT_GT(targets, 2u);
  world.pass(10ms);
  EXPECT_EQ(stats().started, targets);
}

TEST_F(RunnerTest, RUN_4_PassThatCouldNotStartAMove_IsNotSkippedOver) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  world.source.faults.latency = 20ms;
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 4000; }, 60s));
  world.source.faults.unreachable = true;
  world.clear_target();
  world.set_target();  // the earlier worker cannot dispose of its staging yet
  world.pass(2s);
  EXPECT_EQ(stats().started, 1u);
  const std::uint64_t passes = stats().full_passes;
  world.pass(10s);
  EXPECT_GE(stats().full_passes, passes + 9) << "each tick";
  world.source.faults.unreachable = false;
  ASSERT_TRUE(arrives());
  EXPECT_EQ(stats().started, 2u);
  expect_whole_move();
}

TEST_F(RunnerTest, CPY_6_CPY_7_WritersThatKeepPace_DoNotHangTheMove) {
  world.log.append(200, 500);
  world.timing.lag_bytes = 2000;
  world.timing.chunk_bytes = 3000;
  world.timing.chunks_in_flight = 1;
  world.source.faults.latency = 40ms;
  ASSERT_TRUE(world.boot());
  world.source.commits_each_tick = 5;  // more than it can copy meanwhile
  std::uint64_t frozen_at = 0;
  world.source.on_freeze = [&](const wire::FreezeRequest& r) {
    if (!r.token) frozen_at = world.log.log->hwm().value();
  };
  world.set_target();
  ASSERT_TRUE(arrives(20min));
  EXPECT_EQ(world.logged("move: pre-copy did not converge; freezing the source for the rest"), 1u);
  EXPECT_GT(frozen_at, 0u);
  EXPECT_EQ(world.source.armed, 1u);
  expect_whole_move();
}

TEST_F(RunnerTest, Trap66_NoRoom_TheMoveIsGivenBackBeforeAByteIsCopied) {
  world.log.append(300, 5000);
  ASSERT_TRUE(world.boot());
  auto& disk = world.machine.disk();
  disk.faults.capacity_bytes = disk.used_bytes() + (1u << 20);
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.row().target_node.empty(); }, 30s));
  EXPECT_EQ(world.source.chunk_bytes, 0u);
  EXPECT_EQ(world.logged("move: there is no room for it here; it is given back"), 1u);
  EXPECT_TRUE(world.until([&] { return !exists(kStaged); }, 30s));
  disk.faults.capacity_bytes = sim::FsFaults{}.capacity_bytes;
  world.set_target();
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

// Somebody else fills the disk while the copy is under way.
// Syncs go on beside the copying: of a part of a file, and of all of it.
TEST_F(RunnerTest, AnySyncThatFailsBesideTheCopying_ItsFileIsFetchedAnew) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  auto& disk = world.machine.disk();
  const std::string first = join_path(kStaged, seglog::segment_name(Offset(0)));
  disk.fail_call(sim::FsCall::sync, 1, false, EIO, first);
  disk.fail_call(sim::FsCall::sync, 3, false, EIO, first);  // the second of the file in its place
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_TRUE(disk.failure_fired());
  const std::uint64_t size = world.log.log->view()->sealed->front().bytes;
  EXPECT_GE(world.source.chunk_bytes, world.log.log->stats().bytes + 2 * size)
      << "what a failed sync left was believed";
  expect_whole_move();
}

TEST_F(RunnerTest, Trap66_DiskFillsUpInMidCopy_TheMoveIsGivenBack) {
  world.log.append(300, 5000);
  world.timing.chunk_bytes = 20'000;
  ASSERT_TRUE(world.boot());
  world.source.faults.latency = 20ms;
  world.set_target();
  ASSERT_TRUE(world.until([&] { return report().bytes_done > 60'000; }, 60s));
  auto& disk = world.machine.disk();
  disk.faults.capacity_bytes = disk.used_bytes() + (1u << 19);  // the metastore needs some
  ASSERT_TRUE(world.until([&] { return world.row().target_node.empty(); }, 1min))
      << report().phase << " " << report().last_error;
  EXPECT_FALSE(world.row().freeze_armed);
  disk.faults.capacity_bytes = sim::FsFaults{}.capacity_bytes;
  EXPECT_TRUE(world.until([&] { return !exists(kStaged); }, 1min));
  world.set_target();
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

TEST_F(RunnerTest, DiskThatIsNotThere_KeepsNoLaterMoveOfThePartitionWaiting) {
  world.log.append(50);
  ASSERT_TRUE(world.boot());
  world.register_again(kSelf, {world.node().site->disk_id(), "gone"});
  world.set_target(kSelf, "gone");
  ASSERT_TRUE(
      world.until([&] { return stats().started == 1 && !report().last_error.empty(); }, 10s));
  EXPECT_THAT(report().last_error, ::testing::HasSubstr("disk gone"));
  world.clear_target();
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_EQ(stats().started, 2u);
  expect_whole_move();
}

TEST_F(RunnerTest, TGT_9_TGT_10_StagingOfAMoveThatEndedMeanwhile_GoesOnceTheOwnerVouches) {
  ASSERT_NO_FATAL_FAILURE(end_in_mid_copy());
  ASSERT_TRUE(world.boot());
  world.pass(1min);
  EXPECT_TRUE(exists(kStaged)) << "nobody has vouched for what it holds";
  world.source.faults.unreachable = false;
  ASSERT_TRUE(world.until([&] { return !exists(kStaged); }, 1min));
  EXPECT_EQ(stats().set_aside, 0u);
  const std::uint64_t fetched = world.source.chunk_bytes;
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_EQ(world.source.chunk_bytes - fetched, world.log.log->stats().bytes) << "a full new copy";
  expect_whole_move();
}

TEST_F(RunnerTest, StagingThatADiskDoesNotGiveAtTheStart_IsLookedAtAgain) {
  ASSERT_NO_FATAL_FAILURE(end_in_mid_copy());
  const std::string other = "/data/.moves/other-0";  // of nobody knows which move, and empty
  ASSERT_TRUE(world.machine.disk().mkdir(other));
  world.machine.disk().fail_call(sim::FsCall::pread, 1, true, EIO, kStaged);
  ASSERT_TRUE(world.boot());
  world.source.faults.unreachable = false;
  world.pass(1s);
  EXPECT_FALSE(exists(other)) << "one that cannot be read keeps no other waiting";
  EXPECT_TRUE(exists(kStaged));
  EXPECT_EQ(world.logged("move: staging of earlier moves could not be looked at; trying again"),
            1u);
  world.machine.disk().clear_failures();
  EXPECT_TRUE(world.until([&] { return !exists(kStaged); }, world.timing.full_pass + 30s));
}

TEST_F(RunnerTest, TGT_6_TargetThatRestarts_FinishesItsCopy) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  world.source.faults.latency = 20ms;
  world.set_target();
  for (int restart = 0; restart < 3; ++restart) {
    const std::uint64_t before = report().bytes_done;
    ASSERT_TRUE(world.until([&] { return report().bytes_done > before + 4000; }, 60s));
    world.machine.kill(sim::Machine::Kill::power_cut);
    ASSERT_TRUE(world.boot());
    world.until([&] { return report().bytes_done > 0; }, 5s);
  }
  ASSERT_TRUE(arrives());
  expect_whole_move();
}

TEST_F(RunnerTest, SRC_12_SRC_16_PositionsOfTheLastListing_GoWithThePromotion) {
  world.log.append(200);
  world.source.commits_each_tick = 1;
  ASSERT_TRUE(world.boot());
  world.log.frontier = Offset(150);
  world.log.acked_ahead = {{Offset(160), Offset(170)}, {Offset(190), Offset(100'000)}};
  world.source.on_freeze = [&](const wire::FreezeRequest&) {
    world.source.faults.unreachable = true;
  };
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.faults.unreachable; }, 60s));
  // It restarts, and has what it needs on its disk.
  world.machine.kill(sim::Machine::Kill::power_cut);
  ASSERT_TRUE(world.boot());
  world.kill_source();
  world.source.silent = 1h;
  ASSERT_TRUE(arrives(5min));
  const auto marker = read_marker(world.machine.disk(), kPath).value();
  ASSERT_TRUE(marker && marker->force_promoted);
  auto fs = world.machine.disk().clone();
  auto opened = delivery::ConsumerFiles::open(*fs, kPath, kLife.value(), marker->promoted_hwm);
  ASSERT_TRUE(opened);
  EXPECT_FALSE(opened.value().report.clamped) << "nothing past the end was installed";
  EXPECT_EQ(opened.value().positions.frontier, Offset(150));
  ASSERT_EQ(opened.value().positions.acked_ahead.size(), 2u);
  EXPECT_EQ(opened.value().positions.acked_ahead[1].end, marker->promoted_hwm);
}

TEST_F(RunnerTest, CON_6_FrontierOfAnOlderSourceThatRanAhead_IsCappedAndSaid) {
  world.log.append(50);
  world.log.frontier = Offset(400);
  ASSERT_TRUE(world.boot());
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_EQ(
      world.logged("move: the source's consumer frontier lies past the high watermark; capped"),
      1u);
  auto fs = world.machine.disk().clone();
  auto opened = delivery::ConsumerFiles::open(*fs, kPath, kLife.value(), Offset(50));
  EXPECT_EQ(opened.value().positions.frontier, Offset(50));
}

TEST_F(RunnerTest, DUR_1_CPY_12_MRK_7_FlipIsProposed_OnceTheCopyIsOnTheDisk) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  std::uint64_t flips = 0;
  world.node().proposer->before = [&](const metastore::Command& c) {
    if (metastore::op_name(c) != "complete_move") return;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      auto fs = world.machine.disk().clone();
      fs->reseed(seed);
      fs->power_cycle();
      seglog::SegmentedLog::OpenOptions o;
      o.directory = kPath;
      auto log = seglog::SegmentedLog::open(*fs, std::move(o));
      ASSERT_TRUE(log) << log.error().text();
      EXPECT_TRUE(log.value()->open_report().clean);
      EXPECT_EQ(SourceLog::records(*fs, kPath, *log.value()->view()), world.log.records());
      EXPECT_TRUE(read_marker(*fs, kPath).value());
    }
    ++flips;
  };
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_EQ(flips, 1u);
}

TEST_F(RunnerTest, FLP_6_FLP_20_SourceThatDiesWhileNobodyLeads_IsReplacedByTheInstalledCopy) {
  world.log.append(100);
  world.proposer_faults = [](FaultyProposer& p) { p.never = {{"complete_move", 1}}; };
  ASSERT_TRUE(world.boot());
  world.node().proposer->before = [&](const metastore::Command& c) {
    if (metastore::op_name(c) == "complete_move") world.node().proposer->no_leader = true;
  };
  world.set_target();
  ASSERT_TRUE(becomes("flipping"));
  world.pass(30s);
  world.kill_source();
  world.pass(5min);
  EXPECT_TRUE(exists(kPath));
  EXPECT_GT(world.node().proposer->barriers, 10u) << "it goes on asking";
  EXPECT_EQ(place().taken_off, 0u);
  world.source.silent = 1h;
  world.node().proposer->before = nullptr;
  world.node().proposer->no_leader = false;
  ASSERT_TRUE(arrives(10min));
  expect_whole_move();
}

TEST_F(RunnerTest, BrokenBytesOnTheWay_AreFetchedAgain) {
  world.log.append(300);
  ASSERT_TRUE(world.boot());
  std::uint64_t spoiled = 0;
  world.source.on_chunk = [&](Offset, std::uint64_t from, std::string& bytes) {
    if (from == 1500 && ++spoiled % 2 == 1) bytes[70] = static_cast<char>(bytes[70] ^ 8);
  };
  world.set_target();
  ASSERT_TRUE(arrives());
  EXPECT_GT(spoiled, 0u);
  expect_whole_move();
}

TEST_F(RunnerTest, Throttle_HoldsAllMovesToOneBudget) {
  world.log.append(1000, 1000);
  world.timing.bytes_per_second = 100'000;
  world.timing.chunk_bytes = 10'000;
  ASSERT_TRUE(world.boot());
  const Nanos began = world.sim.now();
  world.set_target();
  ASSERT_TRUE(arrives(10min));
  const double seconds = static_cast<double>((world.sim.now() - began).count()) / 1e9;
  const double least = static_cast<double>(world.source.chunk_bytes) / 100'000.0;
  EXPECT_GT(seconds, least * 0.95);
  EXPECT_LT(seconds, least * 1.3 + 5);
}

TEST_F(RunnerTest, DrainThatDoesNotAdvance_LetsTheFreezeGo) {
  world.log.append(100);
  ASSERT_TRUE(world.boot());
  world.source.commits_each_tick = 1;
  world.set_target();
  ASSERT_TRUE(world.until([&] { return world.source.frozen(); }, 60s));
  const Nanos frozen = world.sim.now();
  world.source.faults.more["listing"] = 5min;  // while extensions are answered
  ASSERT_TRUE(world.until([&] { return !world.source.frozen(); }, 4min));
  EXPECT_LT(world.sim.now() - frozen, 40s);
  EXPECT_GE(world.source.extended, 3u);
  EXPECT_EQ(
      world.logged("move: nothing advanced under the freeze; it was let go, so that the source "
                   "serves on"),
      1u);
  world.source.faults.more.clear();
  ASSERT_TRUE(arrives(20min));
  expect_whole_move();
}

}  // namespace
}  // namespace narad::moves
