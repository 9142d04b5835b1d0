// The actor on a simulated machine: group commit, gates, failing disks, reads, closing.
#include "internal/partition/partition.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cerrno>

#include "internal/partition/test_partition.h"
#include "pkg/async/timeout.h"
#include "pkg/seglog/hwm.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/sums.h"

namespace narad {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using sim::FsCall;

class TestGate final : public CommitGate {
 public:
  Result<void> before_append(const CommitBatch&) override { return answer(before); }
  Result<void> after_sync() override { return answer(after); }
  bool before = true, after = true;

 private:
  static Result<void> answer(bool open) {
    if (open) return ok();
    return Error(Errc::unavailable, "frozen");
  }
};

class PartitionTest : public ::testing::Test {
 protected:
  void open() {
    auto opened = run(Partition::open(env, options));
    ASSERT_TRUE(opened) << opened.error().text();
    partition = std::move(opened.value());
  }
  void close() {
    run(partition->close());
    partition.reset();
  }
  // What the node holds goes when the node dies: after its frames, before its loop.
  struct Held {
    explicit Held(std::shared_ptr<Partition>& p) : partition(p) {}
    ~Held() { partition.reset(); }
    std::shared_ptr<Partition>& partition;
  };
  Env& boot() {
    solo.machine.boot([this](Env&) { return std::make_shared<Held>(partition); });
    return solo.machine.env();
  }
  void crash(sim::Machine::Kill kind) {
    solo.kill(kind);
    boot();
  }
  ~PartitionTest() override {
    if (partition) close();
  }
  template <class T>
  T run(Task<T> task) {
    return solo.run([task = std::move(task)](Env&) mutable { return std::move(task); });
  }
  Result<CommitOutcome> commit(CommitBatch b) { return run(partition->commit(std::move(b))); }
  // Commits that are under way together.
  std::vector<std::shared_ptr<std::optional<Result<CommitOutcome>>>> start(
      std::vector<CommitBatch> batches) {
    std::vector<std::shared_ptr<std::optional<Result<CommitOutcome>>>> out;
    for (CommitBatch& b : batches) {
      out.push_back(std::make_shared<std::optional<Result<CommitOutcome>>>());
      asio::co_spawn(env.executor, commit_into(partition, std::move(b), out.back()),
                     asio::detached);
    }
    return out;
  }
  static Task<void> commit_into(std::shared_ptr<Partition> partition, CommitBatch b,
                                std::shared_ptr<std::optional<Result<CommitOutcome>>> out) {
    auto result = co_await partition->commit(std::move(b));
    out->emplace(std::move(result));
  }
  ReadBatch read(std::uint64_t from, std::size_t records = 1000, std::size_t bytes = 1 << 20) {
    auto r = run(partition->read(Offset(from), records, bytes));
    if (!r) {
      ADD_FAILURE() << r.error().text();
      return {};
    }
    return std::move(r.value());
  }
  // Reads from `from` to the HWM; every record must be (origin, first + i).
  void expect_records(std::uint64_t from, std::uint64_t origin, std::uint64_t first,
                      std::uint64_t count, std::size_t at_a_time = 1000) {
    std::uint64_t next = from;
    while (next < partition->hwm().value()) {
      const ReadBatch got = read(next, at_a_time);
      ASSERT_TRUE(got.lost.empty());
      ASSERT_FALSE(got.records.empty());
      ASSERT_LE(got.records.size(), at_a_time);
      for (const StoredRecord& r : got.records) {
        ASSERT_EQ(r.offset, Offset(next));
        ASSERT_EQ(r.key, cat("k", origin, "-", first + (next - from)));
        ++next;
      }
      ASSERT_EQ(got.next, Offset(next));
    }
    ASSERT_EQ(next - from, count);
  }
  seglog::HwmState hwm_on_disk() {
    return seglog::decode_hwm_file(*disk.seen_bytes("/data/p00003/hwm"));
  }

  std::shared_ptr<Partition> partition;
  sim::Solo solo;
  Env& env = boot();
  sim::SimFs& disk = solo.machine.disk();
  PartitionOptions options = partition_options();
};

// The sender was told that these records are committed: their cut is no ordinary picture.
TEST_F(PartitionTest, LastCommitDamagedThoughHandedOver_IsAnErrorInTheLog) {
  open();
  ASSERT_TRUE(commit(batch(1, 1, 2)));
  for (const bool handed_over : {false, true}) {
    ASSERT_TRUE(commit(batch(1, 3, 4)));
    const std::uint64_t end = partition->view()->active.bytes;
    crash(sim::Machine::Kill::power_cut);
    ASSERT_TRUE(
        disk.corrupt("/data/p00003/" + seglog::segment_name(Offset(0)), end - 3, std::byte{1}));
    options.handed_over = [handed_over](OriginId origin, Sequence last) {
      return handed_over && origin == OriginId(1) && last == Sequence(4);
    };
    open();
    EXPECT_EQ(partition->hwm(), Offset(2));
    const std::size_t errors = solo.machine.log().count(
        "cut off damaged records that the ingress WAL had handed over: unless they went to another "
        "partition they are lost (kept as .cut)");
    EXPECT_EQ(errors, handed_over ? 1u : 0u);
  }
}

TEST_F(PartitionTest, NotThereAndNotToBeCreated_Opened_IsNotFound) {
  options.create_if_missing = false;
  auto opened = run(Partition::open(env, options));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Errc::not_found);
}

TEST_F(PartitionTest, CommittedRecords_ReadFromMemoryAndAfterAReopenFromDisk_AreEqual) {
  open();
  auto first = commit(batch(1, 1, 5));
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first.value().first, Offset(0));
  EXPECT_EQ(first.value().appended, 5u);
  ASSERT_TRUE(commit(batch(1, 6, 9)));
  EXPECT_EQ(partition->hwm(), Offset(9));
  expect_records(0, 1, 1, 9);
  expect_records(0, 1, 1, 9, 2);
  EXPECT_EQ(partition->stats().reads_disk, 0u);
  close();
  open();
  EXPECT_TRUE(partition->stats().open.clean);
  expect_records(0, 1, 1, 9);
  expect_records(0, 1, 1, 9, 1);
  EXPECT_EQ(partition->stats().reads_disk, 1u) << "the rest was read ahead";
}

TEST_F(PartitionTest, ReadAtOrAboveTheWatermark_IsEmpty) {
  open();
  ASSERT_TRUE(commit(batch(1, 1, 2)));
  EXPECT_EQ(read(2).next, Offset(2));
  EXPECT_TRUE(read(2).records.empty());
  EXPECT_EQ(read(100).next, Offset(100));
}

TEST_F(PartitionTest, ReadLimits_AreKeptButOneRecordIsAlwaysAnswered) {
  open();
  ASSERT_TRUE(commit(batch(1, 1, 10, 1000)));
  EXPECT_EQ(read(0, 100, 3500).records.size(), 3u);
  EXPECT_EQ(read(0, 100, 10).records.size(), 1u);
  EXPECT_EQ(read(0, 0, 0).records.size(), 1u);
  close();
  open();
  EXPECT_EQ(read(0, 100, 3500).records.size(), 3u);
  EXPECT_EQ(read(3, 100, 10).records.size(), 1u);
}

TEST_F(PartitionTest, BatchesArrivingDuringASync_ShareTheNextOne) {
  open();
  std::vector<CommitBatch> batches;
  for (std::uint64_t origin = 1; origin <= 20; ++origin) batches.push_back(batch(origin, 1, 3));
  const auto results = start(std::move(batches));
  solo.sim.run_for(1s);
  for (const auto& r : results) {
    ASSERT_TRUE(*r);
    ASSERT_TRUE(**r);
    EXPECT_EQ((**r).value().appended, 3u);
  }
  EXPECT_EQ(partition->hwm(), Offset(60));
  EXPECT_LE(partition->stats().groups, 2u);
}

TEST_F(PartitionTest, SameBatchSentAgainWhileInFlight_IsKnownAndAnsweredNoEarlier) {
  open();
  const auto results = start({batch(1, 1, 3), batch(1, 1, 4)});
  solo.sim.run_for(1s);
  ASSERT_TRUE(**results[0]);
  ASSERT_TRUE(**results[1]);
  EXPECT_EQ((**results[1]).value().known, 3u);
  EXPECT_EQ((**results[1]).value().appended, 1u);
  EXPECT_EQ((**results[1]).value().first, Offset(3));
  expect_records(0, 1, 1, 4);
  auto again = commit(batch(1, 2, 4));
  ASSERT_TRUE(again);
  EXPECT_EQ(again.value().known, 3u);
  EXPECT_EQ(partition->stats().known, 6u);
}

TEST_F(PartitionTest, CallerCancelledWhileCommitting_RecordsAreCommittedAllTheSame) {
  open();
  auto answered = run(with_timeout(env, 1ns, partition->commit(batch(1, 1, 3))));
  EXPECT_FALSE(answered);
  solo.sim.run_for(1s);
  expect_records(0, 1, 1, 3);
}

TEST_F(PartitionTest, AnotherIncarnation_IsConflictAndDisorderIsInvalid) {
  open();
  CommitBatch other = batch(1, 1, 3);
  other.incarnation = Incarnation(8);
  auto r = commit(other);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::conflict);
  CommitBatch disorder = batch(1, 1, 3);
  std::swap(disorder.records[0], disorder.records[1]);
  r = commit(disorder);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::invalid_argument);
  CommitBatch empty = batch(1, 1, 0);
  EXPECT_TRUE(commit(empty));
  EXPECT_EQ(partition->hwm(), Offset(0));
}

TEST_F(PartitionTest, MoreThanTheQueueTakes_IsBusy) {
  options.queue_bytes_max = 1000;
  open();
  const auto results = start({batch(1, 1, 1, 5000), batch(2, 1, 1), batch(3, 1, 1)});
  solo.sim.run_for(1s);
  EXPECT_TRUE(**results[0]) << "one batch always fits";
  ASSERT_FALSE(**results[1]);
  EXPECT_EQ((**results[1]).error().code(), Errc::busy);
  EXPECT_TRUE(commit(batch(2, 1, 1)));
  EXPECT_EQ(partition->stats().queued_bytes, 0u);
}

TEST_F(PartitionTest, WaiterOfCommitted_IsWokenByTheCommit) {
  open();
  bool woken = false;
  asio::co_spawn(
      env.executor,
      [](std::shared_ptr<Partition> p, bool& woken) -> Task<void> {
        while (p->hwm() < Offset(1)) co_await p->committed().wait();
        woken = true;
      }(partition, woken),
      asio::detached);
  solo.sim.run_for(1s);
  EXPECT_FALSE(woken);
  ASSERT_TRUE(commit(batch(1, 1, 1)));
  solo.sim.run_for(1ms);
  EXPECT_TRUE(woken);
}

// ---- gates
// ---------------------------------------------------------------------------------------

TEST_F(PartitionTest, GateShutBeforeTheAppend_RefusesAlsoWhatIsKnown) {
  auto gate = std::make_shared<TestGate>();
  options.gate = gate;
  open();
  ASSERT_TRUE(commit(batch(1, 1, 2)));
  gate->before = false;
  for (CommitBatch b : {batch(1, 1, 2), batch(1, 3, 4)}) {
    auto r = commit(std::move(b));
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().text(), "frozen");
  }
  gate->before = true;
  EXPECT_TRUE(commit(batch(1, 3, 4)));
  expect_records(0, 1, 1, 4);
}

TEST_F(PartitionTest, GateShutAfterTheSync_IsAFailedCommitThatLeavesNothing) {
  auto gate = std::make_shared<TestGate>();
  options.gate = gate;
  open();
  ASSERT_TRUE(commit(batch(1, 1, 2)));
  gate->after = false;
  const auto results = start({batch(1, 3, 4), batch(2, 1, 1)});
  solo.sim.run_for(1s);
  for (const auto& r : results) {
    ASSERT_FALSE(**r);
    EXPECT_EQ((**r).error().text(), "frozen");
  }
  EXPECT_EQ(partition->hwm(), Offset(2));
  EXPECT_EQ(partition->log_end(), Offset(2));
  crash(sim::Machine::Kill::power_cut);
  open();
  EXPECT_EQ(partition->hwm(), Offset(2));
  gate->after = true;
  EXPECT_EQ(commit(batch(1, 3, 4)).value().first, Offset(2));
}

// The freeze of a move: the gate is shut while a commit syncs, and another waits behind it.
TEST_F(PartitionTest, FRZ_12_FRZ_13_GateShutDuringASync_TheCommitUnderWayIsInTheSettledView) {
  auto gate = std::make_shared<TestGate>();
  options.gate = gate;
  open();
  const auto first = start({batch(1, 1, 3)});
  ASSERT_TRUE(solo.sim.run_until([&] { return partition->log_end() == Offset(3); }, 1s));
  ASSERT_EQ(partition->hwm(), Offset(0)) << "not synced yet";
  // It passed every check that there is before the queue, and waits for its turn.
  const auto second = start({batch(2, 1, 2)});
  solo.sim.run_for(1us);
  ASSERT_FALSE(*first[0]);
  gate->before = false;
  const auto view = run(partition->settled_view());
  ASSERT_TRUE(view);
  EXPECT_EQ(view.value()->hwm, Offset(3));
  solo.sim.run_for(1s);
  EXPECT_TRUE(**first[0]);
  ASSERT_FALSE(**second[0]);
  EXPECT_EQ((**second[0]).error().text(), "frozen");
  EXPECT_EQ(partition->hwm(), Offset(3));
  EXPECT_EQ(partition->view()->active.bytes, view.value()->active.bytes) << "nothing was appended";
}

TEST_F(PartitionTest, SettledViewOfAClosedPartition_IsUnavailable) {
  open();
  run(partition->close());
  const auto view = run(partition->settled_view());
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code(), Errc::unavailable);
  partition.reset();
}

TEST_F(PartitionTest, ActiveDigests_AreOfWhatWasCommittedAndNothingElse) {
  auto gate = std::make_shared<TestGate>();
  options.gate = gate;
  open();
  ASSERT_TRUE(commit(batch(1, 1, 50, 100)));
  gate->after = false;
  ASSERT_FALSE(commit(batch(1, 51, 60, 100)));  // written, and taken back
  gate->after = true;
  ASSERT_TRUE(commit(batch(2, 1, 5, 100)));
  const auto active = run(partition->active_digests());
  ASSERT_TRUE(active);
  ASSERT_TRUE(active.value().blocks);
  const seglog::LogView& view = *active.value().view;
  EXPECT_EQ(view.hwm, Offset(55));
  const auto from_disk = seglog::block_digests(disk, options.directory, view.log, view.active);
  ASSERT_TRUE(from_disk);
  ASSERT_EQ(from_disk.value().size(), active.value().blocks->size());
  EXPECT_EQ(from_disk.value().front(), active.value().blocks->front());
}

TEST_F(PartitionTest, WriteRate_FollowsWhatIsCommitted) {
  open();
  EXPECT_EQ(partition->stats().bytes_per_second, 0u);
  for (std::uint64_t i = 0; i < 60; ++i) {  // 10 KB a second
    ASSERT_TRUE(commit(batch(1, 10 * i + 1, 10 * i + 10, 1000)));
    solo.sim.run_for(1s);
  }
  const std::uint64_t rate = partition->stats().bytes_per_second;
  EXPECT_GT(rate, 8'000u);
  EXPECT_LT(rate, 12'000u);
  solo.sim.run_for(60s);
  EXPECT_LT(partition->stats().bytes_per_second, 10u);
}

// ---- disks
// -----------------------------------------------------------------------------------------

TEST_F(PartitionTest, SyncFails_CommitsAreRefusedReadsGoOnAndItMendsItself) {
  open();
  ASSERT_TRUE(commit(batch(1, 1, 3)));
  disk.fail_call(FsCall::sync, 1, false, EIO, ".log");
  disk.fail_call(FsCall::sync, 1, true, EIO, ".fresh");
  auto failed = commit(batch(1, 4, 5));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  solo.sim.run_for(1s);
  EXPECT_TRUE(partition->latched());
  EXPECT_NE(partition->latched_text().find("fresh file"), std::string::npos);
  failed = commit(batch(1, 4, 5));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  expect_records(0, 1, 1, 3);
  EXPECT_GE(partition->stats().repairs_failed, 1u);
  disk.clear_failures();
  solo.sim.run_for(11s);
  EXPECT_FALSE(partition->latched());
  ASSERT_TRUE(commit(batch(1, 4, 5)));
  crash(sim::Machine::Kill::power_cut);
  open();
  expect_records(0, 1, 1, 5);
}

TEST_F(PartitionTest, DiskFull_IsUnavailableUntilThereIsSpaceAgain) {
  open();
  ASSERT_TRUE(commit(batch(1, 1, 3)));
  disk.faults.capacity_bytes = disk.used_bytes() + 10;
  auto full = commit(batch(1, 4, 50));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Errc::unavailable);
  EXPECT_EQ(full.error().os_errno(), ENOSPC);
  EXPECT_FALSE(partition->latched());
  expect_records(0, 1, 1, 3);
  disk.faults.capacity_bytes = 1u << 30;
  ASSERT_TRUE(commit(batch(1, 4, 50)));
  expect_records(0, 1, 1, 50);
}

TEST_F(PartitionTest, ReadFailsOnce_IsUnavailableThenAnswered) {
  open();
  ASSERT_TRUE(commit(batch(1, 1, 3)));
  close();
  open();
  disk.fail_call(FsCall::pread, 1, false, EIO, ".log");
  auto r = run(partition->read(Offset(0), 10, 1000));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  expect_records(0, 1, 1, 3);
}

TEST_F(PartitionTest, SegmentFileVanished_IsUnavailableAndNotSkipped) {
  options.knobs.segment_bytes = 500;
  open();
  for (std::uint64_t s = 1; s <= 30; s += 3) ASSERT_TRUE(commit(batch(1, s, s + 2)));
  close();
  open();
  ASSERT_GT(partition->view()->segments(), 2u);
  const std::string name = seglog::segment_name(Offset(0));
  ASSERT_TRUE(disk.rename("/data/p00003/" + name, "/data/away"));
  auto r = run(partition->read(Offset(0), 10, 1000));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  ASSERT_TRUE(disk.rename("/data/away", "/data/p00003/" + name));
  expect_records(0, 1, 1, 30);
}

TEST_F(PartitionTest, RottenBytes_AreReportedLostAndTheRestIsRead) {
  open();
  std::vector<std::uint64_t> ends;
  for (std::uint64_t s = 1; s <= 9; s += 3) {
    ASSERT_TRUE(commit(batch(1, s, s + 2)));
    ends.push_back(partition->view()->active.bytes);
  }
  close();
  ASSERT_TRUE(
      disk.corrupt("/data/p00003/" + seglog::segment_name(Offset(0)), ends[1] - 5, std::byte{1}));
  open();
  for (int round = 0; round < 2; ++round) {  // from disk, then from memory
    ReadBatch got = read(0);
    EXPECT_EQ(got.records.size(), 6u);
    EXPECT_EQ(got.lost, (std::vector<LostRecords>{{Offset(3), Offset(6)}}));
    EXPECT_EQ(got.next, Offset(9));
    got = read(4, 1);
    EXPECT_EQ(got.lost, (std::vector<LostRecords>{{Offset(4), Offset(6)}}));
    ASSERT_EQ(got.records.size(), 1u);
    EXPECT_EQ(got.records[0].offset, Offset(6));
    got = read(2, 1);
    EXPECT_EQ(got.next, Offset(6)) << "what is lost right behind the last record is told with it";
  }
}

TEST_F(PartitionTest, OpenFindsDamage_SaysSoInTheLog) {
  open();
  for (std::uint64_t s = 1; s <= 9; s += 3) ASSERT_TRUE(commit(batch(1, s, s + 2)));
  close();
  {
    auto file = disk.open("/data/p00003/" + seglog::segment_name(Offset(0)), OpenMode::read_write);
    ASSERT_TRUE(file.value()->truncate(file.value()->size().value() - 1));
  }
  open();
  EXPECT_EQ(partition->hwm(), Offset(9));
  EXPECT_EQ(partition->stats().open.lost.size(), 1u);
  EXPECT_EQ(solo.machine.log().count("records are lost: their bytes are damaged or missing"), 1u);
}

// ---- the watermark's file, closing
// -----------------------------------------------------------------

TEST_F(PartitionTest, Watermark_IsWrittenFiveSecondsAfterACommitAndThenTheWorkerRests) {
  open();
  ASSERT_TRUE(commit(batch(1, 1, 3)));
  EXPECT_EQ(hwm_on_disk().value->hwm, Offset(0));
  solo.sim.run_for(4s);
  EXPECT_EQ(hwm_on_disk().value->hwm, Offset(0));
  solo.sim.run_for(1500ms);
  EXPECT_EQ(hwm_on_disk().value->hwm, Offset(3));
  const std::uint64_t jobs = solo.machine.blocking().jobs();
  const std::size_t parked = solo.machine.parking().size();
  solo.sim.run_for(1h);
  EXPECT_EQ(solo.machine.blocking().jobs(), jobs);
  EXPECT_EQ(parked, 0u) << "an idle partition waits for nothing";
  EXPECT_FALSE(partition->busy());
}

TEST_F(PartitionTest, UnderSteadyLoad_WatermarkIsWrittenAtMostEveryFiveSeconds) {
  open();
  const auto before = partition->stats().log.hwm_writes;
  std::uint64_t next = 1;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(commit(batch(1, next, next)));
    ++next;
    solo.sim.run_for(100ms);
  }
  const auto writes = partition->stats().log.hwm_writes - before;
  EXPECT_GE(writes, 3u);
  EXPECT_LE(writes, 5u);
}

TEST_F(PartitionTest, ClosedWhileCommitsWait_FinishesThemAndRefusesWhatComesLater) {
  open();
  const auto results = start({batch(1, 1, 3), batch(2, 1, 3)});
  solo.sim.run_for(1us);
  run(partition->close());
  for (const auto& r : results) EXPECT_TRUE(**r);
  auto late = commit(batch(1, 4, 5));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::unavailable);
  EXPECT_FALSE(run(partition->read(Offset(0), 1, 1)));
  EXPECT_FALSE(run(partition->apply_retention(UnixMillis(1), 1, true)));
  run(partition->close());  // again
  partition.reset();
  open();
  EXPECT_TRUE(partition->stats().open.clean);
  EXPECT_EQ(partition->hwm(), Offset(6));
}

TEST_F(PartitionTest, ClosedTwiceAtOnce_BothWaitForTheSameClose) {
  open();
  ASSERT_TRUE(commit(batch(1, 1, 3)));
  int closed = 0;
  for (int i = 0; i < 2; ++i) {
    asio::co_spawn(
        env.executor,
        [](std::shared_ptr<Partition> p, int& closed) -> Task<void> {
          co_await p->close();
          ++closed;
        }(partition, closed),
        asio::detached);
  }
  solo.sim.run_for(1s);
  EXPECT_EQ(closed, 2);
  partition.reset();
}

TEST_F(PartitionTest, Retention_RemovesOldSegmentsAndReadsBelowAreGone) {
  options.knobs.segment_bytes = 500;
  open();
  for (std::uint64_t s = 1; s <= 30; s += 3) ASSERT_TRUE(commit(batch(1, s, s + 2)));
  const std::size_t segments = partition->view()->segments();
  ASSERT_GT(segments, 2u);
  const UnixMillis later(env.clock.wall_millis().value() + 3'600'001);
  auto kept = run(partition->apply_retention(later, 3'600'000, false));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept.value().segments, 0u);
  for (const auto& s : *partition->view()->sealed) {
    ASSERT_TRUE(disk.set_mtime("/data/p00003/" + seglog::segment_name(s.base), UnixMillis(1)));
  }
  auto removed = run(partition->apply_retention(later, 3'600'000, true));
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed.value().segments, segments - 1);
  EXPECT_GT(partition->oldest(), Offset(0));
  auto gone = run(partition->read(Offset(0), 10, 1000));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Errc::gone);
  const std::uint64_t oldest = partition->oldest().value();
  expect_records(oldest, 1, oldest + 1, 30 - oldest);
}

TEST_F(PartitionTest, LastUsed_FollowsCommitsAndReads) {
  open();
  solo.sim.run_for(10s);
  const Nanos opened = partition->last_used();
  EXPECT_LE(opened, env.clock.mono() - 9s);
  ASSERT_TRUE(commit(batch(1, 1, 1)));
  EXPECT_GT(partition->last_used(), opened);
  solo.sim.run_for(10s);
  (void)read(0);
  EXPECT_GT(partition->last_used(), env.clock.mono() - 1s);
}

// ---- caches
// --------------------------------------------------------------------------------------------

TEST_F(PartitionTest, TailLimits_OlderRecordsComeFromDisk) {
  options.tail_records_max = 4;
  open();
  ASSERT_TRUE(commit(batch(1, 1, 10)));
  EXPECT_FALSE(partition->read_cached(Offset(5), 10, 1000));
  ASSERT_TRUE(partition->read_cached(Offset(6), 10, 1000));
  EXPECT_EQ(partition->read_cached(Offset(6), 10, 1000)->records.size(), 4u);
  expect_records(0, 1, 1, 10, 3);
}

TEST_F(PartitionTest, SharedBudget_TheCacheUsedLeastRecentlyGivesUpFirst) {
  options.cache = std::make_shared<CacheBudget>(40'000);
  open();
  PartitionOptions other_options = partition_options("/data/p00004");
  other_options.cache = options.cache;
  auto other = run(Partition::open(env, other_options)).value();
  ASSERT_TRUE(commit(batch(1, 1, 100, 200)));
  EXPECT_TRUE(partition->read_cached(Offset(0), 1, 1));
  ASSERT_TRUE(run(other->commit(batch(1, 1, 100, 200))));
  EXPECT_LE(options.cache->used(), 40'000u);
  EXPECT_FALSE(partition->read_cached(Offset(0), 1, 1)) << "gave up its oldest records";
  EXPECT_TRUE(other->read_cached(Offset(0), 1, 1));
  run(other->close());
  other.reset();
  close();
  EXPECT_EQ(options.cache->used(), 0u);
}

TEST_F(PartitionTest, AlternatingReadersOfABacklog_AreBothServedFromReadAhead) {
  options.knobs.frame_raw_bytes = 2000;
  options.tail_records_max = 1;
  options.cache = std::make_shared<CacheBudget>(64u << 20);
  open();
  for (std::uint64_t s = 1; s <= 20'000; s += 1000) {
    ASSERT_TRUE(commit(batch(1, s, s + 999, 100)));
  }
  std::uint64_t a = 0, b = 10'000;
  for (int i = 0; i < 3000; ++i) {
    for (std::uint64_t* at : {&a, &b}) {
      const ReadBatch got = read(*at, 1);
      ASSERT_EQ(got.records.size(), 1u);
      ASSERT_EQ(got.records[0].key, cat("k1-", *at + 1));
      ++*at;
    }
  }
  EXPECT_LE(partition->stats().reads_disk, 10u);
}

}  // namespace
}  // namespace narad
