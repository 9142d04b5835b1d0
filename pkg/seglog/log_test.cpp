// The log on a disk that behaves, and on one that fails call by call.
#include "pkg/seglog/log.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "pkg/base/checksum.h"
#include "pkg/seglog/sums.h"
#include "pkg/seglog/test_log.h"

namespace narad::seglog {
namespace {

using namespace testing;
using sim::FsCall;
using sim::SimFs;

constexpr UnixMillis kNow{1'700'000'000'000};

TEST(Log, NotThere_OpenedWithoutCreate_IsNotFound) {
  auto fs = new_disk();
  auto o = options();
  o.create_if_missing = false;
  auto log = SegmentedLog::open(*fs, o);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code(), Errc::not_found);
  EXPECT_EQ(fs->all_paths(), std::vector<std::string>{"/p/"});
}

TEST(Log, Created_AppendedClosedAndOpened_HoldsTheRecordsAndIsTrusted) {
  auto fs = new_disk();
  const auto batch = recs(7, 1, 10);
  {
    auto log = open_log(*fs);
    EXPECT_TRUE(log->open_report().created);
    auto r = append(*log, batch);
    ASSERT_TRUE(r) << r.error().text();
    EXPECT_EQ(r.value().first, Offset(0));
    EXPECT_EQ(r.value().appended, 10u);
    expect_content(*fs, *log, batch);
    ASSERT_TRUE(log->close());
  }
  const auto before = fs->ops();
  auto log = open_log(*fs);
  EXPECT_TRUE(log->open_report().clean);
  EXPECT_EQ(fs->ops(), before) << "a clean open writes nothing";
  EXPECT_EQ(log->id(), kLog);
  expect_content(*fs, *log, batch);
  EXPECT_TRUE(log->origins().known(OriginId(7), Sequence(10)));
  EXPECT_FALSE(log->origins().known(OriginId(7), Sequence(11)));
  ASSERT_TRUE(log->close());
  EXPECT_EQ(fs->ops(), before) << "closing what was not written to writes nothing";
}

TEST(Log, ClosedCleanlyThenAppendedThenKilled_Opened_IsNotTrusted) {
  auto fs = new_disk();
  auto all = recs(7, 1, 3);
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, all));
    ASSERT_TRUE(log->close());
  }
  {
    auto log = open_log(*fs);
    const auto more = recs(7, 4, 5);
    ASSERT_TRUE(append(*log, more));
    all.insert(all.end(), more.begin(), more.end());
  }
  fs->process_restart();
  auto log = open_log(*fs);
  EXPECT_FALSE(log->open_report().clean);
  EXPECT_EQ(log->open_report().cut_bytes, 0u);
  expect_content(*fs, *log, all);
}

TEST(Log, AppendedOverSegmentSize_RollsAndReopens_StaysDense) {
  auto fs = new_disk();
  std::vector<Rec> all;
  {
    auto log = open_log(*fs, small());
    all = fill(*log, 5);
    expect_content(*fs, *log, all);
    EXPECT_EQ(log->stats().rolls, 4u);
    ASSERT_TRUE(log->close());
  }
  auto log = open_log(*fs, small());
  EXPECT_EQ(log->view()->segments(), 5u);
  expect_content(*fs, *log, all);
  // From every offset, with no position to go on from: through the index.
  for (std::uint64_t from = 0; from < all.size(); ++from) {
    expect_content(*fs, *log, all, from);
  }
}

TEST(Log, BatchOverFrameSize_Appended_IsSplitAndOnlyTheFirstFrameIsSyncHead) {
  auto fs = new_disk();
  auto log = open_log(*fs, small());
  ASSERT_TRUE(append(*log, recs(3, 1, 20)));
  EXPECT_GT(log->stats().frames, 1u);
  const Bytes bytes = *fs->seen_bytes(file_path(Offset(0)));
  MemorySource source{bytes};
  ScanOptions o;
  o.log = kLog;
  o.bytes = bytes.size();
  SegmentScanner scanner(source, o);
  std::vector<bool> heads;
  Sequence last{0};
  while (scanner.next().value()) {
    ASSERT_EQ(scanner.item().kind, ScanItem::Kind::frame);
    if (scanner.item().header.is_control()) continue;
    heads.push_back(scanner.item().header.is_sync_head());
    EXPECT_GT(scanner.item().header.last_sequence, last);
    last = scanner.item().header.last_sequence;
  }
  ASSERT_GT(heads.size(), 1u);
  EXPECT_TRUE(heads.front());
  for (std::size_t i = 1; i < heads.size(); ++i) EXPECT_FALSE(heads[i]);
  EXPECT_EQ(last, Sequence(20));
}

TEST(Log, WithZstd_AppendedAndRead_IsEqualAndSmaller) {
  auto fs = new_disk();
  Knobs knobs;
  knobs.compression = {Codec::zstd, 3};
  const auto all = recs(1, 1, 200, 300);
  auto log = open_log(*fs, knobs);
  ASSERT_TRUE(append(*log, all));
  expect_content(*fs, *log, all);
  EXPECT_LT(log->stats().bytes, 20'000u);
}

TEST(Log, CommitTime_WallClockStepsBack_NeverDecreases) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 1), UnixMillis(5000)));
    ASSERT_TRUE(append(*log, recs(1, 2, 2), UnixMillis(1000)));
    EXPECT_EQ(log->last_commit(), UnixMillis(5000));
    ASSERT_TRUE(log->close());
  }
  auto log = open_log(*fs);
  EXPECT_EQ(log->last_commit(), UnixMillis(5000));
  ASSERT_TRUE(append(*log, recs(1, 3, 3), UnixMillis(1)));
  EXPECT_EQ(log->last_commit(), UnixMillis(5000));
}

TEST(Log, RecordTooLargeOrSequencesInDisorder_Staged_AreRefusedAndNothingIsWritten) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  const auto before = fs->ops();
  auto too_large = append(*log, {rec(1, 1, kFrameBytesMax)});
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code(), Errc::too_large);
  auto disorder = append(*log, {rec(1, 2), rec(1, 2)});
  ASSERT_FALSE(disorder);
  EXPECT_EQ(disorder.error().code(), Errc::invalid_argument);
  EXPECT_EQ(fs->ops(), before);
  auto largest = append(*log, {rec(1, 1, kRecordBytesMax - 32)});
  EXPECT_TRUE(largest) << largest.error().text();
}

// ---- exactly once
// ------------------------------------------------------------------------------------

TEST(KnownRecords, SentAgainWholeOrInPart_Staged_AreNotAppendedTwice) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  ASSERT_TRUE(append(*log, recs(9, 1, 5)));
  auto again = append(*log, recs(9, 1, 5));
  ASSERT_TRUE(again);
  EXPECT_EQ(again.value().appended, 0u);
  EXPECT_EQ(again.value().known, 5u);
  auto overlap = append(*log, recs(9, 4, 8));
  ASSERT_TRUE(overlap);
  EXPECT_EQ(overlap.value().known, 2u);
  EXPECT_EQ(overlap.value().appended, 3u);
  EXPECT_EQ(overlap.value().first, Offset(5));
  EXPECT_EQ(overlap.value().kept, (std::vector<bool>{false, false, true, true, true}));
  expect_content(*fs, *log, recs(9, 1, 8));
}

TEST(KnownRecords, SameBatchTwiceInOneStage_SecondIsKnownOnlyOnceTheFirstIsDurable) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  const auto batch = recs(9, 1, 5);
  const std::vector<AppendBatch> twice{batch_of(batch), batch_of(batch)};
  fs->fail_call(FsCall::pwrite, 1);
  EXPECT_FALSE(log->stage(twice, kNow));
  auto outcomes = log->stage(twice, kNow);
  ASSERT_TRUE(outcomes) << outcomes.error().text();
  EXPECT_EQ(outcomes.value()[0].appended, 5u);
  EXPECT_EQ(outcomes.value()[1].known, 5u);
  EXPECT_FALSE(log->origins().known(OriginId(9), Sequence(1))) << "not before publish";
  log->publish();
  EXPECT_TRUE(log->origins().known(OriginId(9), Sequence(5)));
  expect_content(*fs, *log, batch);
}

TEST(KnownRecords, OriginZeroAndReroutedRecords_SentTwice_AreAppendedTwice) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  ASSERT_TRUE(append(*log, recs(0, 1, 2)));
  ASSERT_TRUE(append(*log, recs(0, 1, 2)));
  auto rerouted = recs(5, 10, 11);
  for (Rec& r : rerouted) r.rerouted = true;
  ASSERT_TRUE(append(*log, rerouted));
  ASSERT_TRUE(append(*log, rerouted));
  EXPECT_EQ(log->hwm(), Offset(8));
  auto own = append(*log, recs(5, 3, 4));  // below the rerouted ones, and not known
  ASSERT_TRUE(own);
  EXPECT_EQ(own.value().appended, 2u);
}

TEST(KnownRecords, AfterRollsAndRestarts_SentAgain_AreKnown) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs, small());
    ASSERT_TRUE(append(*log, recs(100, 1, 3)));
    fill(*log, 4);
  }
  fs->process_restart();
  auto log = open_log(*fs, small());
  auto again = append(*log, recs(100, 1, 3));
  ASSERT_TRUE(again);
  EXPECT_EQ(again.value().known, 3u);
}

TEST(KnownRecords, ControlFrameOfActiveSegmentDamaged_TableIsRebuiltFromEarlierSegments) {
  auto fs = new_disk();
  Offset active{0};
  {
    auto log = open_log(*fs, small());
    ASSERT_TRUE(append(*log, recs(100, 1, 3)));
    fill(*log, 4);
    ASSERT_TRUE(append(*log, recs(200, 1, 3)));
    active = log->view()->active.base;
    ASSERT_TRUE(log->close());
  }
  ASSERT_TRUE(fs->corrupt(file_path(active), 10, std::byte{1}));
  auto log = open_log(*fs, small());
  EXPECT_TRUE(log->open_report().sealed);
  EXPECT_TRUE(log->open_report().lost.empty());
  for (const std::uint64_t origin : {std::uint64_t{100}, std::uint64_t{200}}) {
    auto again = append(*log, recs(origin, 1, 3));
    ASSERT_TRUE(again);
    EXPECT_EQ(again.value().known, 3u) << origin;
  }
}

// ---- failed commits
// -------------------------------------------------------------------------------------

TEST(FailedCommit, WriteFailsAfterAShortOne_IsTakenBackAndTheNextOneTakesItsOffsets) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  ASSERT_TRUE(append(*log, recs(1, 1, 3)));
  const Bytes before = *fs->seen_bytes(file_path(Offset(0)));
  fs->faults.short_write = sim::kAlways;
  fs->fail_call(FsCall::pwrite, 2, false, EIO);
  auto failed = append(*log, recs(1, 4, 6));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().os_errno(), EIO);
  EXPECT_EQ(*fs->seen_bytes(file_path(Offset(0))), before);
  EXPECT_FALSE(log->latched());
  EXPECT_EQ(log->hwm(), Offset(3));
  auto r = append(*log, recs(2, 1, 2));  // with short writes still
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().first, Offset(3));
  EXPECT_EQ(log->stats().failed_commits, 1u);
}

TEST(FailedCommit, TakenBackRightBeforeARoll_LeavesNothingInTheSealedSegmentAfterAPowerCut) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    auto fs = new_disk(seed);
    auto log = open_log(*fs, small());
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    fs->faults.short_write = sim::kAlways;
    fs->fail_call(FsCall::pwrite, 3, false, EIO, ".log");
    ASSERT_FALSE(append(*log, recs(1, 4, 9)));
    fs->faults.short_write = 0;
    const std::uint64_t bytes = log->view()->active.bytes;
    ASSERT_TRUE(append(*log, recs(1, 4, 9, 300)));  // rolls
    ASSERT_EQ(log->view()->segments(), 2u);
    log.reset();
    fs->power_cycle();
    EXPECT_EQ(fs->stat(file_path(Offset(0))).value().size, bytes) << "seed " << seed;
    log = open_log(*fs, small());
    EXPECT_EQ(log->hwm(), Offset(9));
  }
}

TEST(FailedCommit, DiskFull_RefusesAndRecoversByItselfWhenSpaceReturns) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  auto all = recs(1, 1, 3);
  ASSERT_TRUE(append(*log, all));
  fs->faults.capacity_bytes = fs->used_bytes() + 50;
  for (int i = 0; i < 3; ++i) {
    auto failed = append(*log, recs(1, 4, 9));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().os_errno(), ENOSPC);
    EXPECT_FALSE(log->latched());
    expect_content(*fs, *log, all);
  }
  fs->faults.capacity_bytes = 1u << 20;
  const auto more = recs(1, 4, 9);
  ASSERT_TRUE(append(*log, more));
  all.insert(all.end(), more.begin(), more.end());
  expect_content(*fs, *log, all);
}

TEST(FailedCommit, ReadOnlyFileSystem_LatchesAndRecoversWhenItIsWritableAgain) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  const auto all = recs(1, 1, 3);
  ASSERT_TRUE(append(*log, all));
  fs->fail_call(FsCall::pwrite, 1, true, EROFS);
  fs->fail_call(FsCall::truncate, 1, true, EROFS);
  fs->faults.read_only = true;
  EXPECT_FALSE(append(*log, recs(1, 4, 5)));
  EXPECT_TRUE(log->latched());
  EXPECT_FALSE(log->repair());
  EXPECT_TRUE(log->latched());
  expect_content(*fs, *log, all);
  fs->clear_failures();
  fs->faults.read_only = false;
  ASSERT_TRUE(log->repair());
  ASSERT_TRUE(append(*log, recs(1, 4, 5)));
  expect_content(*fs, *log, recs(1, 1, 5));
}

TEST(FailedCommit, GateShutsAfterTheSync_TakenBackDurably) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  ASSERT_TRUE(append(*log, recs(1, 1, 3)));
  const auto batch = recs(1, 4, 6);
  auto outcomes = log->stage({batch_of(batch)}, kNow);
  ASSERT_TRUE(outcomes);
  log->abandon();
  log->check_invariants();
  EXPECT_FALSE(log->origins().known(OriginId(1), Sequence(4)));
  expect_content(*fs, *log, recs(1, 1, 3));
  log.reset();
  fs->power_cycle();
  log = open_log(*fs);
  expect_content(*fs, *log, recs(1, 1, 3));
}

TEST(FailedSync, OfACommit_LatchesUntilAFreshCopyIsMade) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  auto all = recs(1, 1, 3);
  ASSERT_TRUE(append(*log, all));
  fs->fail_call(FsCall::sync, 1, false, EIO, ".log");
  ASSERT_FALSE(append(*log, recs(1, 4, 6)));
  ASSERT_TRUE(log->latched());
  const auto refused = append(*log, recs(1, 4, 6));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::unavailable);
  expect_content(*fs, *log, all);
  const auto before = fs->stat(file_path(Offset(0))).value();
  const auto generation = log->view()->active.generation;
  ASSERT_TRUE(log->repair());
  const auto after = fs->stat(file_path(Offset(0))).value();
  EXPECT_NE(after.id, before.id) << "another file";
  EXPECT_EQ(after.mtime, before.mtime) << "of the same age";
  EXPECT_NE(log->view()->active.generation, generation);
  EXPECT_FALSE(log->latched());
  const auto more = recs(1, 4, 6);
  ASSERT_TRUE(append(*log, more));
  all.insert(all.end(), more.begin(), more.end());
  log.reset();
  fs->power_cycle();
  log = open_log(*fs);
  expect_content(*fs, *log, all);
}

TEST(FailedSync, NoSpaceForTheFreshCopy_StaysLatchedAndReadableAndTriesAgain) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  const auto all = recs(1, 1, 30);
  ASSERT_TRUE(append(*log, all));
  fs->fail_call(FsCall::sync, 1, false, EIO, ".log");
  ASSERT_FALSE(append(*log, recs(1, 31, 32)));
  fs->faults.capacity_bytes = fs->used_bytes() + 100;
  auto repaired = log->repair();
  ASSERT_FALSE(repaired);
  EXPECT_EQ(repaired.error().os_errno(), ENOSPC);
  EXPECT_TRUE(log->latched());
  expect_content(*fs, *log, all);
  fs->faults.capacity_bytes = 1u << 20;
  ASSERT_TRUE(log->repair());
  expect_content(*fs, *log, all);
}

TEST(FailedSync, ThenProcessRestartThenPowerCut_NothingPublishedIsLost) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    auto fs = new_disk(seed);
    auto log = open_log(*fs);
    auto all = recs(1, 1, 3);
    ASSERT_TRUE(append(*log, all));
    fs->fail_call(FsCall::sync, 1, false, EIO, ".log");
    ASSERT_FALSE(append(*log, recs(1, 4, 6)));
    log.reset();
    fs->process_restart();  // the page cache still shows what the failed sync lost
    log = open_log(*fs);
    const auto shown = log->hwm();
    ASSERT_GE(shown, Offset(3));
    const auto more = recs(1, 4, 9);
    ASSERT_TRUE(append(*log, more));
    log.reset();
    fs->power_cycle();
    log = open_log(*fs);
    expect_content(*fs, *log, recs(1, 1, 9));
  }
}

TEST(FailedSync, OfTheFirstCommitAfterACleanOpenThenKilled_NextOpenDoesNotTrustTheFile) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(log->close());
  }
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(log->open_report().clean);
    fs->fail_call(FsCall::sync, 1, false, EIO, ".log");
    ASSERT_FALSE(append(*log, recs(1, 4, 6)));  // taken back: the file looks as it was closed
  }
  fs->process_restart();
  auto log = open_log(*fs);
  EXPECT_FALSE(log->open_report().clean);
  expect_content(*fs, *log, recs(1, 1, 3));
}

TEST(FailedSync, OfTheWatermarkFile_IsWrittenAnewAndIsNoReasonToLatch) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  ASSERT_TRUE(append(*log, recs(1, 1, 3)));
  const auto before = fs->stat("/p/hwm").value().id;
  fs->fail_call(FsCall::sync, 1, false, EIO, "hwm");
  ASSERT_TRUE(log->persist_hwm());
  EXPECT_NE(fs->stat("/p/hwm").value().id, before);
  fs->fail_call(FsCall::sync, 1, true, EIO, "hwm");
  ASSERT_TRUE(append(*log, recs(1, 4, 4)));
  EXPECT_FALSE(log->persist_hwm());
  EXPECT_FALSE(log->hwm_persisted());
  EXPECT_FALSE(log->latched());
  fs->clear_failures();
  ASSERT_TRUE(log->persist_hwm());
  EXPECT_TRUE(log->hwm_persisted());
}

TEST(FailedSync, OfTheDirectoryInARoll_RefusesAndTheNextCommitFinishesTheRoll) {
  auto fs = new_disk();
  auto log = open_log(*fs, small());
  auto all = fill(*log, 2);
  fs->fail_call(FsCall::sync_dir, 1, false, EIO);
  std::uint64_t next = all.size() + 1;
  bool failed = false;
  while (log->view()->segments() < 3) {
    const auto batch = recs(1, next, next + 4);
    if (auto r = append(*log, batch); !r) {
      failed = true;
      continue;
    }
    next += 5;
    all.insert(all.end(), batch.begin(), batch.end());
  }
  EXPECT_TRUE(failed);
  expect_content(*fs, *log, all);
  log.reset();
  fs->power_cycle();
  log = open_log(*fs, small());
  expect_content(*fs, *log, all);
}

// Found by RandomHistory: the new segment had its name, but the name was not durable; a clean mark
// made the next open append to it all the same.
TEST(FailedSync, OfTheDirectoryInARollThenClosed_IsNoCleanClose) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto fs = new_disk(seed);
    auto log = open_log(*fs, small());
    auto all = fill(*log, 2);
    fs->fail_call(FsCall::sync_dir, 1, false, EIO);
    while (true) {
      const auto batch = recs(1, all.size() + 1, all.size() + 5);
      if (!append(*log, batch)) break;
      all.insert(all.end(), batch.begin(), batch.end());
    }
    EXPECT_FALSE(log->close());
    log = open_log(*fs, small());
    EXPECT_FALSE(log->open_report().clean);
    const auto batch = recs(1, all.size() + 1, all.size() + 5);
    ASSERT_TRUE(append(*log, batch));
    all.insert(all.end(), batch.begin(), batch.end());
    log.reset();
    fs->power_cycle();
    log = open_log(*fs, small());
    expect_content(*fs, *log, all);
  }
}

TEST(ReadBack, DiskDamagesWhatItWrites_CommitFailsAndNothingIsVisible) {
  // A file system that flips a byte of every large write.
  class Liar final : public FileSystem {
   public:
    explicit Liar(FileSystem& fs) : fs_(fs) {}
    class LyingFile final : public File {
     public:
      LyingFile(std::unique_ptr<File> f, bool& on) : f_(std::move(f)), on_(on) {}
      Result<std::size_t> pread(std::span<std::byte> b, std::uint64_t o) override {
        return f_->pread(b, o);
      }
      Result<std::size_t> pwrite(ByteView b, std::uint64_t o) override {
        Bytes copy(b.begin(), b.end());
        if (on_ && copy.size() > 100) copy[70] ^= std::byte{4};
        return f_->pwrite(copy, o);
      }
      Result<std::size_t> pwritev(std::span<const ByteView> p, std::uint64_t o) override {
        return f_->pwritev(p, o);
      }
      Result<void> truncate(std::uint64_t n) override { return f_->truncate(n); }
      Result<void> allocate(std::uint64_t n) override { return f_->allocate(n); }
      Result<void> sync() override { return f_->sync(); }
      Result<void> datasync() override { return f_->datasync(); }
      Result<std::uint64_t> size() override { return f_->size(); }
      Result<bool> try_lock() override { return f_->try_lock(); }

     private:
      std::unique_ptr<File> f_;
      bool& on_;
    };
    Result<std::unique_ptr<File>> open(const std::string& p, OpenMode m) override {
      NARAD_TRY(auto f, fs_.open(p, m));
      return std::unique_ptr<File>(new LyingFile(std::move(f), on));
    }
    Result<void> remove(const std::string& p) override { return fs_.remove(p); }
    Result<void> rename(const std::string& a, const std::string& b) override {
      return fs_.rename(a, b);
    }
    Result<void> mkdir(const std::string& p) override { return fs_.mkdir(p); }
    Result<void> rmdir(const std::string& p) override { return fs_.rmdir(p); }
    Result<std::vector<std::string>> list(const std::string& p) override { return fs_.list(p); }
    Result<FileStat> stat(const std::string& p) override { return fs_.stat(p); }
    Result<void> set_mtime(const std::string& p, UnixMillis t) override {
      return fs_.set_mtime(p, t);
    }
    Result<void> sync_dir(const std::string& p) override { return fs_.sync_dir(p); }
    Result<DiskSpace> space(const std::string& p) override { return fs_.space(p); }
    bool on = false;

   private:
    FileSystem& fs_;
  };
  auto fs = new_disk();
  Liar liar(*fs);
  auto log = SegmentedLog::open(liar, options());
  ASSERT_TRUE(log);
  ASSERT_TRUE(append(*log.value(), recs(1, 1, 3)));
  liar.on = true;
  auto failed = append(*log.value(), recs(1, 4, 9));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  EXPECT_EQ(log.value()->stats().read_back_mismatches, 1u);
  liar.on = false;
  ASSERT_TRUE(append(*log.value(), recs(1, 4, 9)));
  expect_content(*fs, *log.value(), recs(1, 1, 9));
  // A fresh copy is read back as well.
  fs->fail_call(FsCall::sync, 1, false, EIO, ".log");
  ASSERT_FALSE(append(*log.value(), recs(1, 10, 11)));
  liar.on = true;
  EXPECT_FALSE(log.value()->repair());
  liar.on = false;
  ASSERT_TRUE(log.value()->repair());
  expect_content(*fs, *log.value(), recs(1, 1, 9));
}

// ---- opening what is not as it should be
// ---------------------------------------------------------------

TEST(Open, WatermarkButNoSegment_IsDataLossAndChangesNothing) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(log->close());
  }
  ASSERT_TRUE(fs->remove(file_path(Offset(0))));
  const auto digest = fs->digest();
  auto log = SegmentedLog::open(*fs, options());
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code(), Errc::data_loss);
  EXPECT_EQ(fs->digest(), digest);
}

TEST(Open, WatermarkMissing_IsRebuiltAndNothingIsLost) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(log->close());
  }
  ASSERT_TRUE(fs->remove("/p/hwm"));
  auto log = open_log(*fs);
  EXPECT_TRUE(log->open_report().hwm_missing);
  expect_content(*fs, *log, recs(1, 1, 3));
  EXPECT_TRUE(fs->stat("/p/hwm"));
}

TEST(Open, WatermarkOfAnotherLog_IsDataLossAndChangesNothing) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(log->close());
  }
  ASSERT_TRUE(replace_file(*fs, "/p/hwm", encode_hwm_file(9, {Offset(3), LogId(4711), true})));
  const auto digest = fs->digest();
  auto log = SegmentedLog::open(*fs, options());
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code(), Errc::data_loss);
  EXPECT_EQ(fs->digest(), digest);
}

TEST(Open, FrameOrWatermarkOfANewerRelease_IsRefusedAndChangesNothing) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(append(*log, recs(1, 4, 6)));
  }
  fs->process_restart();
  // A frame that proves itself, with a flag that this release does not know.
  {
    auto newer = fs->clone();
    Bytes bytes = *newer->seen_bytes(file_path(Offset(0)));
    const std::uint64_t at = decode_control_frame(bytes).frame_bytes;
    bytes[at + 7] = std::byte{0x80};
    store_le(bytes.data() + at + 28, std::uint32_t{0});
    const auto sum = xxh3_low(ByteView(bytes).subspan(at, kHeaderBytes), kLog.value());
    store_le(bytes.data() + at + 28, sum);
    {
      auto file = newer->open(file_path(Offset(0)), OpenMode::read_write);
      ASSERT_TRUE(write_all(*file.value(), bytes, 0));
    }
    const auto digest = newer->digest();
    auto log = SegmentedLog::open(*newer, options());
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().code(), Errc::unavailable);
    EXPECT_NE(log.error().text().find("newer release"), std::string::npos);
    EXPECT_EQ(newer->digest(), digest);
  }
  {
    Bytes hwm = *fs->seen_bytes("/p/hwm");
    const std::uint64_t slot = two_slot::slot_offset(decode_hwm_file(hwm).sequence);
    store_le(hwm.data() + slot + 4, std::uint32_t{2});
    ASSERT_TRUE(replace_file(*fs, "/p/hwm", hwm));
    const auto digest = fs->digest();
    auto log = SegmentedLog::open(*fs, options());
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().code(), Errc::unavailable);
    EXPECT_EQ(fs->digest(), digest);
  }
}

TEST(Open, ActiveSegmentShorterThanTheWatermark_ReportsTheLossAndGoesOnAboveIt) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(append(*log, recs(1, 4, 9)));
    ASSERT_TRUE(log->close());
  }
  {
    auto file = fs->open(file_path(Offset(0)), OpenMode::read_write);
    const auto size = file.value()->size().value();
    ASSERT_TRUE(file.value()->truncate(size - 30));
  }
  auto log = open_log(*fs);
  EXPECT_EQ(log->hwm(), Offset(9)) << "offsets are never given out twice";
  EXPECT_EQ(log->open_report().lost, (std::vector<LostRange>{{Offset(3), Offset(9)}}));
  EXPECT_TRUE(log->open_report().sealed);
  auto r = append(*log, recs(2, 1, 1));
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().first, Offset(9));
  auto content = read_all(*fs, *log->view(), Offset(0));
  ASSERT_TRUE(content);
  EXPECT_EQ(content.value().lost, (std::vector<LostRange>{{Offset(3), Offset(9)}}));
  EXPECT_EQ(content.value().records.size(), 4u);
}

TEST(Open, ActiveSegmentEmptiedToZeroBytes_ReportsTheLossAndGoesOnAboveIt) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(log->close());
  }
  {
    auto file = fs->open(file_path(Offset(0)), OpenMode::read_write);
    ASSERT_TRUE(file.value()->truncate(0));
  }
  auto log = open_log(*fs);
  EXPECT_EQ(log->hwm(), Offset(3));
  EXPECT_EQ(log->open_report().lost, (std::vector<LostRange>{{Offset(0), Offset(3)}}));
  ASSERT_TRUE(append(*log, recs(2, 1, 1)));
  ASSERT_TRUE(log->close());
  log = open_log(*fs);
  EXPECT_TRUE(log->open_report().clean);
  EXPECT_EQ(log->hwm(), Offset(4));
}

TEST(Open, SegmentInTheMiddleMissing_ReadReportsItsOffsetsLost) {
  auto fs = new_disk();
  std::vector<Rec> all;
  SegmentInfo gone;
  {
    auto log = open_log(*fs, small());
    all = fill(*log, 4);
    gone = (*log->view()->sealed)[1];
    ASSERT_TRUE(log->close());
  }
  ASSERT_TRUE(fs->remove(file_path(gone.base)));
  auto log = open_log(*fs, small());
  auto content = read_all(*fs, *log->view(), Offset(0));
  ASSERT_TRUE(content) << content.error().text();
  EXPECT_EQ(content.value().lost, (std::vector<LostRange>{{gone.base, gone.end}}));
  EXPECT_EQ(content.value().records.size(), all.size() - gone.end.minus(gone.base));
}

TEST(Open, LeftoversOfACrash_AreRemovedAndForeignFilesAreNot) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
  }
  fs->process_restart();
  const auto put = [&](const std::string& path) {
    ASSERT_TRUE(replace_file(*fs, path, as_bytes("x")));
  };
  put("/p/00000000000000000000.fresh");
  put("/p/00000000000000000007.fresh");
  put("/p/consumer.offset");
  put("/p/notes.log");
  auto log = open_log(*fs);
  EXPECT_FALSE(fs->stat("/p/00000000000000000007.fresh"));
  EXPECT_TRUE(fs->stat("/p/consumer.offset"));
  EXPECT_TRUE(fs->stat("/p/notes.log"));
}

TEST(Open, UnreadableFiles_FailWithTheReasonAndChangeNothing) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs);
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
  }
  fs->process_restart();
  for (const int e : {EIO, EACCES}) {
    for (const char* part : {".log", "hwm"}) {
      for (const FsCall call : {FsCall::open, FsCall::pread}) {
        fs->fail_call(call, 1, true, e, part);
        const auto digest = fs->digest();
        auto log = SegmentedLog::open(*fs, options());
        ASSERT_FALSE(log) << part;
        EXPECT_EQ(log.error().os_errno(), e);
        EXPECT_EQ(fs->digest(), digest);
        fs->clear_failures();
      }
    }
  }
  auto log = open_log(*fs);
  expect_content(*fs, *log, recs(1, 1, 3));
}

// ---- retention, digests
// ------------------------------------------------------------------------------------

TEST(Retention, OldSegments_AreRemovedAsAPrefixAndNeverTheActiveOne) {
  auto fs = new_disk();
  auto log = open_log(*fs, small());
  const auto all = fill(*log, 4);
  const auto sealed = *log->view()->sealed;
  const UnixMillis now = kNow;
  const auto set_age = [&](std::size_t i, std::int64_t age) {
    ASSERT_TRUE(fs->set_mtime(file_path(sealed[i].base), UnixMillis(now.value() - age)));
  };
  set_age(0, 1001);
  set_age(1, 1000);
  set_age(2, 5000);
  EXPECT_EQ(log->retain({now, 0, true}).value().segments, 0u) << "kept for ever";
  EXPECT_EQ(log->retain({now, 1000, false}).value().segments, 0u) << "clock not trusted";
  auto r = log->retain({now, 1000, true});
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().segments, 1u) << "the third is old, but not behind an expired second";
  EXPECT_EQ(log->view()->oldest(), sealed[1].base);
  EXPECT_FALSE(fs->stat(file_path(sealed[0].base, kSumSuffix)));
  log->check_invariants();
  auto too_old = read_all(*fs, *log->view(), Offset(0));
  ASSERT_FALSE(too_old);
  EXPECT_EQ(too_old.error().code(), Errc::gone);
  expect_content(*fs, *log, all, sealed[1].base.value());
  set_age(1, -60'000);  // in the future
  EXPECT_EQ(log->retain({now, 1, true}).value().segments, 0u);
  set_age(1, 10'000);
  ASSERT_TRUE(fs->set_mtime(file_path(log->view()->active.base), UnixMillis(0)));
  r = log->retain({now, 1000, true});
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().segments, 2u);
  EXPECT_EQ(log->view()->segments(), 1u);
  ASSERT_TRUE(log->close());
  log = open_log(*fs, small());
  EXPECT_EQ(log->view()->oldest(), sealed[2].end);
  EXPECT_EQ(log->hwm(), Offset(all.size()));
}

TEST(Retention, ColdPartition_AgesByTheSameRuleWithoutBeingOpened) {
  auto fs = new_disk();
  std::vector<SegmentInfo> sealed;
  {
    auto log = open_log(*fs, small());
    fill(*log, 4);
    sealed = *log->view()->sealed;
    ASSERT_TRUE(log->close());
  }
  for (const SegmentInfo& s : sealed) {
    ASSERT_TRUE(fs->set_mtime(file_path(s.base), UnixMillis(1000)));
  }
  EXPECT_EQ(retain_cold(*fs, kDir, {kNow, 1000, false}).value().segments, 0u);
  auto r = retain_cold(*fs, kDir, {kNow, 1000, true});
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().segments, 3u);
  EXPECT_EQ(r.value().oldest, sealed[2].end);
  EXPECT_EQ(retain_cold(*fs, kDir, {kNow, 1000, true}).value().segments, 0u);
  auto log = open_log(*fs, small());
  EXPECT_EQ(log->view()->oldest(), sealed[2].end);
}

TEST(Digests, OfSealedAndActiveSegments_EqualTheBytesWrittenAndAreRecomputedIfMissing) {
  auto fs = new_disk();
  auto log = open_log(*fs, small());
  fill(*log, 3);
  const auto check = [&](const SegmentInfo& s) {
    auto digests = block_digests(*fs, kDir, kLog, s);
    ASSERT_TRUE(digests);
    BlockDigester direct(kLog);
    direct.update(ByteView(*fs->seen_bytes(file_path(s.base))).first(s.bytes));
    ASSERT_EQ(digests.value().size(), direct.digests().size());
    for (std::size_t i = 0; i < direct.digests().size(); ++i) {
      EXPECT_EQ(digests.value()[i], direct.digests()[i]);
    }
  };
  const SegmentInfo sealed = log->view()->sealed->front();
  ASSERT_TRUE(fs->stat(file_path(sealed.base, kSumSuffix)));
  check(sealed);
  check(log->view()->active);
  std::vector<std::optional<std::uint64_t>> active =
      block_digests(*fs, kDir, kLog, log->view()->active).value();
  ASSERT_TRUE(log->active_digests());
  EXPECT_EQ(*active.front(), log->active_digests()->front());
  // The .sum says what was written, also once the bytes have rotted.
  const auto written = block_digests(*fs, kDir, kLog, sealed).value();
  ASSERT_TRUE(fs->corrupt(file_path(sealed.base), 200, std::byte{1}));
  EXPECT_EQ(block_digests(*fs, kDir, kLog, sealed).value(), written);
  // Without it there is no telling.
  ASSERT_TRUE(fs->remove(file_path(sealed.base, kSumSuffix)));
  EXPECT_EQ(block_digests(*fs, kDir, kLog, sealed).value(),
            (std::vector<std::optional<std::uint64_t>>{std::nullopt}));
}

TEST(Digests, AfterAReopen_AreAdoptedFromWhatHasReadTheFile) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs, small());
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(log->close());
  }
  auto log = open_log(*fs, small());
  auto read = read_digests(*fs, kDir, kLog, log->view()->active);
  ASSERT_TRUE(read);
  ASSERT_TRUE(read.value().digester);
  const Offset base = log->view()->active.base;
  ASSERT_TRUE(append(*log, recs(1, 4, 5)));  // since it was read
  EXPECT_TRUE(log->adopt_digests(base.next(), *read.value().digester));
  EXPECT_FALSE(log->active_digests()) << "they are of another segment";
  const auto batch = recs(1, 6, 7);
  ASSERT_TRUE(log->stage({batch_of(batch)}, kNow));
  EXPECT_TRUE(log->adopt_digests(base, *read.value().digester));
  log->abandon();
  EXPECT_FALSE(log->active_digests()) << "there was more in the file than is committed";
  ASSERT_TRUE(log->adopt_digests(base, *read.value().digester));
  ASSERT_TRUE(log->active_digests());
  ASSERT_TRUE(append(*log, recs(1, 6, 8)));
  log->check_invariants();
  const auto from_file = block_digests(*fs, kDir, kLog, log->view()->active).value();
  ASSERT_EQ(from_file.size(), log->active_digests()->size());
  EXPECT_EQ(*from_file.front(), log->active_digests()->front());
}

TEST(Digests, OfBytesThatDoNotVerify_AreNotGoneOnWith) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs, small());
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    ASSERT_TRUE(log->close());
  }
  auto log = open_log(*fs, small());
  const SegmentInfo active = log->view()->active;
  ASSERT_TRUE(fs->corrupt(file_path(active.base), active.bytes - 3, std::byte{1}));
  auto read = read_digests(*fs, kDir, kLog, active);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read.value().blocks.front());
  EXPECT_FALSE(read.value().digester);
}

TEST(Digests, AfterAReopenOrAnAbandonedCommit_AreThoseOfTheBytes) {
  auto fs = new_disk();
  {
    auto log = open_log(*fs, small());
    ASSERT_TRUE(append(*log, recs(1, 1, 3)));
    const auto before = log->active_digests();
    const auto batch = recs(1, 4, 5);
    ASSERT_TRUE(log->stage({batch_of(batch)}, kNow));
    log->abandon();
    EXPECT_EQ(log->active_digests(), before);
    ASSERT_TRUE(log->close());
  }
  auto log = open_log(*fs, small());
  EXPECT_FALSE(log->active_digests()) << "headers alone were read";
  const auto all = fill(*log, 2);  // sealed segments have their .sum all the same
  const SegmentInfo sealed = log->view()->sealed->front();
  const auto sum = decode_sum(*fs->seen_bytes(file_path(sealed.base, kSumSuffix)), kLog);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->segment_bytes, sealed.bytes);
}

}  // namespace
}  // namespace narad::seglog
