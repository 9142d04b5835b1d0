// Staging: resuming, cutting, verifying and finishing copies, with a real log as the source.
#include "internal/moves/staging.h"

#include <gtest/gtest.h>

#include "internal/delivery/consumer_files.h"
#include "internal/moves/link_files.h"
#include "internal/moves/source_for_test.h"

namespace narad::moves {
namespace {

using namespace testing;
using sim::FsCall;

constexpr const char* kMoves = "/d/.moves";

StagingOwner owner(RaftIndex move = RaftIndex(40)) { return {kPartition, kLife, move, "s"}; }
std::string staged_path() { return join_path(kMoves, staging_name(kPartition)); }

class StagingTest : public ::testing::Test {
 protected:
  StagingTest() {
    NARAD_ASSERT(make_directories(disk, kMoves).has_value());
    NARAD_ASSERT(disk.sync_dir("/").has_value());
  }
  // What a start finds.
  void reopen() {
    staging.reset();
    auto opened = Staging::open(disk, staged_path(), owner());
    ASSERT_TRUE(opened) << opened.error().text();
    staging = std::move(opened.value());
    while (true) {
      auto more = staging->read_back_one();
      ASSERT_TRUE(more) << more.error().text();
      if (!more.value()) break;
    }
  }
  Result<void> list() { return staging->accept(source.listing(), kNow); }
  // One pass; answers what it copied.
  Result<std::uint64_t> pass(std::uint64_t range = 1000) {
    NARAD_TRY(list());
    std::uint64_t copied = 0;
    for (const SegmentRange& r : staging->missing(range)) {
      NARAD_TRY(std::string bytes, source.chunk(r.base, r.from, r.bytes));
      NARAD_TRY(staging->append(r, bytes));
      copied += bytes.size();
      const bool last =
          staging->missing(range).empty() || staging->missing(range)[0].base != r.base;
      if (last) {
        NARAD_TRY(digest(r.base));
        NARAD_TRY(sync_sealed(disk, *staging, r.base));
      }
    }
    NARAD_TRY(staging->sync());
    return copied;
  }
  // As the worker does it, beside its jobs.
  static Result<void> sync_sealed(FileSystem& fs, Staging& s, Offset base) {
    if (!s.whole(base)) return ok();
    auto file = fs.open(s.path(base), OpenMode::read_write);
    return s.after_sync(base, true, file ? file.value()->sync() : Result<void>(file.error()));
  }
  Result<void> digest(Offset base) {
    for (const SegmentRange& r : staging->compare(base, source.digests(base))) {
      NARAD_TRY(std::string bytes, source.chunk(r.base, r.from, r.bytes));
      NARAD_TRY(staging->replace(r, bytes));
    }
    return ok();
  }
  Result<void> drain() {
    while (true) {
      NARAD_TRY(std::uint64_t copied, pass());
      if (copied == 0) break;
    }
    for (const Offset base : staging->undigested(true)) {
      NARAD_TRY(digest(base));
    }
    return ok();
  }
  std::string problem(bool digests = true) {
    auto verdict = staging->verify(digests);
    return verdict ? verdict.value().problem : verdict.error().text();
  }
  static Staging::FinishPlan plan(std::uint64_t epoch = 3) {
    Staging::FinishPlan p;
    p.self = "d";
    p.epoch = epoch;
    p.fresh_log = LogId(77);
    p.now = kNow;
    return p;
  }
  // Finishes, puts the copy to its place and opens it there.
  std::unique_ptr<seglog::SegmentedLog> install() {
    auto finished = staging->finish(plan());
    EXPECT_TRUE(finished) << finished.error().text();
    EXPECT_TRUE(disk.rename(staged_path(), kPlace));
    EXPECT_TRUE(disk.sync_dir("/d") && disk.sync_dir(kMoves));
    disk.power_cycle();
    return open_copy();
  }
  std::unique_ptr<seglog::SegmentedLog> open_copy() {
    seglog::SegmentedLog::OpenOptions o;
    o.directory = kPlace;
    o.knobs = small_segments();
    auto opened = seglog::SegmentedLog::open(disk, std::move(o));
    EXPECT_TRUE(opened) << opened.error().text();
    return opened ? std::move(opened.value()) : nullptr;
  }
  std::string file(Offset base) const {
    return join_path(staged_path(), seglog::segment_name(base));
  }
  std::string source_file(Offset base) const {
    return join_path(SourceLog::kDir, seglog::segment_name(base));
  }

  static constexpr const char* kPlace = "/d/p00003";
  SourceLog source;
  sim::SimFs disk{2};
  std::unique_ptr<Staging> staging;
};

TEST_F(StagingTest, CPY_11_CPY_12_InstalledCopy_OpensAsTheSourceIs) {
  source.append(200);
  reopen();
  ASSERT_TRUE(drain());
  ASSERT_GT(source.log->view()->segments(), 3u);
  EXPECT_EQ(problem(), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(copy->open_report().clean) << "a move leaves nothing to recover";
  EXPECT_EQ(copy->hwm(), source.log->hwm());
  EXPECT_EQ(copy->id(), source.log->id());
  EXPECT_EQ(copy->origins().entries(), source.log->origins().entries());
  EXPECT_EQ(SourceLog::records(disk, kPlace, *copy->view()), source.records());
  for (const auto& s : source.listing().segments) {
    auto theirs = source.chunk(s.base, 0, s.bytes);
    auto ours = disk.seen_bytes(join_path(kPlace, seglog::segment_name(s.base)));
    ASSERT_TRUE(ours);
    EXPECT_EQ(to_text(*ours), theirs.value());
  }
}

TEST_F(StagingTest, CPY_12_CMT_9_WhatTheSourceNeverCommitted_IsNotInTheCopy) {
  source.append(20);
  seglog::AppendBatch batch;
  batch.origin = OriginId(9);
  batch.records.push_back({Sequence(500), {"k", "never committed"}});
  ASSERT_TRUE(source.log->stage({batch}, kNow));  // written, not published
  reopen();
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->hwm(), Offset(20));
  const auto records = SourceLog::records(disk, kPlace, *copy->view());
  EXPECT_EQ(records.size(), 20u);
  EXPECT_EQ(records.back().find("never"), std::string::npos);
}

TEST_F(StagingTest, TinyChunks_GiveAnIdenticalCopy) {
  source.append(60);
  reopen();
  while (true) {
    auto copied = pass(7);
    ASSERT_TRUE(copied) << copied.error().text();
    if (copied.value() == 0) break;
  }
  for (const Offset base : staging->undigested(true)) ASSERT_TRUE(digest(base));
  EXPECT_EQ(problem(), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(SourceLog::records(disk, kPlace, *copy->view()), source.records());
}

TEST_F(StagingTest, CPY_2_EachPassCopiesWhatAppearedSinceTheOneBefore) {
  source.append(50);
  reopen();
  const std::uint64_t first = pass().value();
  EXPECT_EQ(first, staging->listed_bytes());
  EXPECT_EQ(pass().value(), 0u);
  const std::uint64_t before = staging->listed_bytes();
  source.append(40);
  EXPECT_EQ(pass().value(), staging->listed_bytes() - before);
}

TEST_F(StagingTest, CPY_10_RestartedDestination_FetchesOnlyWhatItLacks) {
  source.append(150);
  reopen();
  ASSERT_TRUE(pass());
  const std::uint64_t staged = staging->bytes();
  disk.power_cycle();
  reopen();
  EXPECT_EQ(staging->bytes(), staged);
  EXPECT_TRUE(staging->reached_source());
  EXPECT_EQ(staging->highest_hwm(), Offset(150));
  source.append(10);
  const std::uint64_t copied = pass().value();
  EXPECT_EQ(copied, staging->listed_bytes() - staged);
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
}

TEST_F(StagingTest, OnlyWhatIsRecordedAsSynced_CountsAfterARestart) {
  source.append(100);
  reopen();
  ASSERT_TRUE(list());
  const auto ranges = staging->missing(600);
  ASSERT_GT(ranges.size(), 3u);
  ASSERT_TRUE(staging->append(ranges[0], source.chunk(ranges[0].base, 0, 600).value()));
  ASSERT_TRUE(staging->sync());
  ASSERT_TRUE(staging->append(ranges[1], source.chunk(ranges[1].base, 600, 600).value()));
  // The process ends, the machine does not: the page cache shows more than the disk holds.
  staging.reset();
  disk.process_restart();
  reopen();
  EXPECT_EQ(staging->bytes(), 600u);
  EXPECT_EQ(disk.seen_bytes(file(Offset(0)))->size(), 600u);
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
}

TEST_F(StagingTest, FileWhoseSyncFailed_IsUnlinkedAndFetchedAnew) {
  source.append(100);
  reopen();
  ASSERT_TRUE(list());
  disk.fail_call(FsCall::sync, 1, false, 5, seglog::segment_name(Offset(0)));
  auto first = pass();
  ASSERT_FALSE(first);
  EXPECT_FALSE(disk.seen_bytes(file(Offset(0))));
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(SourceLog::records(disk, kPlace, *copy->view()), source.records());
}

TEST_F(StagingTest, RecordedFile_ThatIsNotThereAnyMore_IsFetchedAgain) {
  source.append(100);
  reopen();
  ASSERT_TRUE(pass());
  ASSERT_TRUE(disk.remove(file(Offset(0))));
  ASSERT_TRUE(staging->look_again());  // G27: sizes come from the files
  EXPECT_FALSE(staging->missing(100000).empty());
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
}

TEST_F(StagingTest, CMT_5_NoMoreIsStagedThanWasListed) {
  source.append(20);
  reopen();
  ASSERT_TRUE(list());
  const std::uint64_t listed = staging->listed_bytes();
  source.append(40);  // after the listing
  for (const SegmentRange& r : staging->missing(1000)) {
    ASSERT_TRUE(staging->append(r, source.chunk(r.base, r.from, r.bytes).value()));
  }
  EXPECT_EQ(staging->bytes(), listed);
  EXPECT_EQ(problem(false), "");
}

TEST_F(StagingTest, CMT_6_SegmentListedShorterLater_IsCutBack) {
  source.append(10);
  reopen();
  wire::Listing longer = source.listing();
  const std::uint64_t committed = longer.segments.back().bytes;
  // An older source lists the file, in which a failing commit stands.
  seglog::AppendBatch batch;
  batch.origin = OriginId(9);
  batch.records.push_back({Sequence(500), {"k", "fails"}});
  ASSERT_TRUE(source.log->stage({batch}, kNow));
  longer.segments.back().bytes = source.disk.seen_bytes(source_file(Offset(0)))->size();
  ASSERT_GT(longer.segments.back().bytes, committed);
  ASSERT_TRUE(staging->accept(longer, kNow));
  for (const SegmentRange& r : staging->missing(1000)) {
    ASSERT_TRUE(staging->append(r, source.chunk(r.base, r.from, r.bytes).value()));
  }
  source.log->abandon();
  source.append(3);
  ASSERT_TRUE(list());
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(SourceLog::records(disk, kPlace, *copy->view()), source.records());
}

TEST_F(StagingTest, CMT_7_CMT_8_CopyPastTheHwm_IsCutBackBeforeTheVerify) {
  source.append(10);
  wire::Listing older = source.listing();
  older.log = LogId(0);
  older.listed_at.reset();
  for (auto& s : older.segments) s.mtime.reset();
  source.append(5);  // uncommitted, as far as this listing goes
  older.segments.back().bytes = source.listing().segments.back().bytes;
  reopen();
  ASSERT_TRUE(staging->accept(older, kNow));
  for (const SegmentRange& r : staging->missing(1000)) {
    ASSERT_TRUE(staging->append(r, source.chunk(r.base, r.from, r.bytes).value()));
  }
  EXPECT_NE(problem(false).find("past the high watermark 10"), std::string::npos);
  ASSERT_TRUE(staging->cut_to_hwm());
  EXPECT_EQ(problem(false), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(copy->open_report().clean);
  EXPECT_EQ(copy->hwm(), Offset(10));
  EXPECT_EQ(copy->id(), kLog) << "from the control frame";
}

TEST_F(StagingTest, Trap21_SegmentsThatRetentionTook_LeaveTheCopyToo) {
  source.append(200);
  reopen();
  ASSERT_TRUE(pass());
  seglog::RetentionRule rule{UnixMillis(kNow.value() + 1'000'000'000'000), 1, true};
  ASSERT_GT(source.log->retain(rule).value().segments, 0u);
  source.append(10);
  ASSERT_TRUE(drain());
  EXPECT_FALSE(disk.seen_bytes(file(Offset(0))));
  EXPECT_EQ(problem(), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->view()->oldest(), source.log->view()->oldest());
  EXPECT_EQ(SourceLog::records(disk, kPlace, *copy->view()), source.records());
}

TEST_F(StagingTest, SourceThatComesBackWithLess_ChangesNothing) {
  source.append(120);
  reopen();
  ASSERT_TRUE(drain());
  const std::uint64_t before = disk.digest();
  const wire::Listing good = source.listing();

  std::vector<wire::Listing> bad(6, good);
  bad[0].hwm = Offset(119);
  bad[1].log = LogId(5);
  bad[2].segments.erase(bad[2].segments.begin() + 1);
  bad[3].segments.clear();
  bad[3].hwm = Offset(500);
  bad[4].segments.insert(bad[4].segments.begin() + 1, {Offset(1), 10, true, kNow});
  bad[5].segments[0].bytes -= 1;
  for (const wire::Listing& listing : bad) {
    auto taken = staging->accept(listing, kNow);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code(), Errc::conflict);
  }
  EXPECT_EQ(disk.digest(), before);
  ASSERT_TRUE(staging->accept(good, kNow));
  EXPECT_EQ(problem(), "");
}

TEST_F(StagingTest, SourceThatComesBackWithLess_IsKnownAfterARestart) {
  source.append(50);
  reopen();
  ASSERT_TRUE(list());  // nothing fetched yet: the HWM was named
  disk.power_cycle();
  reopen();
  wire::Listing less = source.listing();
  less.hwm = Offset(49);
  auto taken = staging->accept(less, kNow);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().text().find("49"), std::string::npos);
}

TEST_F(StagingTest, BlockThatArrivedOtherwise_IsFetchedOnceMore) {
  source.append(20);
  reopen();
  ASSERT_TRUE(list());
  const SegmentRange r = staging->missing(1 << 20).front();
  std::string bytes = source.chunk(r.base, r.from, r.bytes).value();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x40);
  ASSERT_TRUE(staging->append(r, bytes));
  EXPECT_FALSE(problem().empty()) << "it was not held against the source's digests yet";
  const auto again = staging->compare(r.base, source.digests(r.base));
  ASSERT_EQ(again.size(), 1u);
  ASSERT_TRUE(
      staging->replace(again[0], source.chunk(r.base, again[0].from, again[0].bytes).value()));
  EXPECT_EQ(staging->damaged_blocks(), 0u);
  EXPECT_EQ(problem(), "");
  auto copy = install();
  EXPECT_EQ(SourceLog::records(disk, kPlace, *copy->view()), source.records());
}

TEST_F(StagingTest, VER_8_RotAtTheSource_TravelsAsItIs) {
  source.append(200);
  ASSERT_GT(source.log->view()->segments(), 3u);
  const auto flipped = source.disk.seen_bytes(source_file(Offset(0)))->size() / 2;
  ASSERT_TRUE(source.disk.corrupt(source_file(Offset(0)), flipped, std::byte{0x10}));
  const auto theirs = source.records();
  reopen();
  ASSERT_TRUE(drain());
  EXPECT_EQ(staging->damaged_blocks(), 1u);
  EXPECT_EQ(problem(), "") << "a sealed segment is not proven";
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(SourceLog::records(disk, kPlace, *copy->view()), theirs);
  EXPECT_EQ(read_marker(disk, kPlace).value()->receipt.damaged_blocks, 1u);
  EXPECT_FALSE(disk.seen_bytes(join_path(kPlace, seglog::log_file_name(Offset(0), ".sum"))))
      << "digests of rotten bytes would hide the rot from the next move";
}

TEST_F(StagingTest, OfTwoBadReadings_TheOneWithMoreIntactFramesStays) {
  source.append(20);
  reopen();
  ASSERT_TRUE(list());
  const SegmentRange r = staging->missing(1 << 20).front();
  const std::string right = source.chunk(r.base, r.from, r.bytes).value();
  const auto spoil = [&](std::string bytes, std::initializer_list<std::size_t> at) {
    for (std::size_t i : at) bytes[i] = static_cast<char>(bytes[i] ^ 1);
    return bytes;
  };
  const std::size_t n = right.size();
  ASSERT_TRUE(staging->append(r, spoil(right, {n / 4, n / 2, n * 3 / 4})));
  const auto again = staging->compare(r.base, source.digests(r.base));
  ASSERT_EQ(again.size(), 1u);
  const std::string better = spoil(right, {n / 2});
  ASSERT_TRUE(staging->replace(again[0], better));
  EXPECT_EQ(to_text(*disk.seen_bytes(file(Offset(0)))), better);
  EXPECT_EQ(staging->damaged_blocks(), 1u);
}

TEST_F(StagingTest, BlockOnceConfirmed_StaysThoughTheSourceDisagreesLater) {
  source.append(20);
  reopen();
  ASSERT_TRUE(drain());
  wire::SegmentDigests other = source.digests(Offset(0));
  other.blocks[0] = *other.blocks[0] ^ 1;  // read off a rotten disk after a restart
  EXPECT_TRUE(staging->compare(Offset(0), other).empty());
  EXPECT_EQ(problem(), "");
}

TEST_F(StagingTest, VER_1_CopyThatIsShortOrLong_IsNamed) {
  source.append(100);
  reopen();
  ASSERT_TRUE(drain());
  const Offset last = source.listing().segments.back().base;
  const std::uint64_t size = disk.seen_bytes(file(last))->size();
  {
    auto f = disk.open(file(last), OpenMode::read_write);
    ASSERT_TRUE(f.value()->truncate(size - 1));
  }
  EXPECT_NE(problem().find("bytes, not"), std::string::npos);
  ASSERT_TRUE(staging->look_again());
  EXPECT_NE(problem().find("is missing"), std::string::npos);
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");

  wire::Listing ahead = source.listing();
  ahead.hwm = Offset(101);
  ASSERT_TRUE(staging->accept(ahead, kNow));
  EXPECT_NE(problem().find("before the high watermark 101"), std::string::npos);
}

TEST_F(StagingTest, Verify_ReadsNoPayload) {
  seglog::Knobs knobs;
  knobs.segment_bytes = 256u << 10;
  knobs.frame_raw_bytes = 64u << 10;
  SourceLog large(knobs, 5);
  for (int i = 0; i < 12; ++i) large.append(5, 20'000);
  reopen();
  ASSERT_TRUE(staging->accept(large.listing(), kNow));
  for (const SegmentRange& r : staging->missing(1 << 20)) {
    ASSERT_TRUE(staging->append(r, large.chunk(r.base, r.from, r.bytes).value()));
  }
  for (const Offset base : staging->undigested(true)) {
    ASSERT_TRUE(staging->compare(base, large.digests(base)).empty());
  }
  const std::uint64_t before = disk.digest();
  const std::uint64_t writes = disk.ops();
  const std::uint64_t reads = disk.calls(FsCall::pread);
  EXPECT_EQ(problem(), "");
  EXPECT_EQ(disk.ops(), writes) << "read-only";
  EXPECT_EQ(disk.digest(), before);
  EXPECT_LE(disk.calls(FsCall::pread) - reads, 16u) << "headers of the last segment alone";
}

TEST_F(StagingTest, WalkedAhead_HeadersAreNotReadAgainUnderTheFreeze) {
  seglog::Knobs knobs;
  knobs.segment_bytes = 4u << 20;
  knobs.frame_raw_bytes = 64u << 10;
  SourceLog large(knobs, 5);
  for (int i = 0; i < 30; ++i) large.append(5, 20'000);
  reopen();
  ASSERT_TRUE(staging->accept(large.listing(), kNow));
  for (const SegmentRange& r : staging->missing(1 << 20)) {
    ASSERT_TRUE(staging->append(r, large.chunk(r.base, r.from, r.bytes).value()));
  }
  for (const Offset base : staging->undigested(true)) {
    ASSERT_TRUE(staging->compare(base, large.digests(base)).empty());
  }
  const auto reads_of_verify = [&] {
    const std::uint64_t before = disk.calls(FsCall::pread);
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(staging->end().value(), large.log->hwm());
    return disk.calls(FsCall::pread) - before;
  };
  EXPECT_GT(reads_of_verify(), 20u);
  ASSERT_TRUE(staging->walk_ahead());
  EXPECT_EQ(reads_of_verify(), 0u);
}

TEST_F(StagingTest, WalkedAhead_TheBeginningOfAFrameIsLookedAtAgain) {
  source.append(20);
  reopen();
  ASSERT_TRUE(list());
  // Piece by piece, most of which end within a frame.
  for (const SegmentRange& r : staging->missing(37)) {
    ASSERT_TRUE(staging->append(r, source.chunk(r.base, r.from, r.bytes).value()));
    ASSERT_TRUE(staging->walk_ahead());
  }
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
}

TEST_F(StagingTest, AGE_3_AGE_4_SegmentsAreAsOldHereAsTheyWereThere) {
  source.append(200);
  source.listed_at = UnixMillis(kNow.value() + 50'000'000);  // its clock is hours ahead
  wire::Listing l = source.listing();
  for (auto& s : l.segments) s.mtime = UnixMillis(source.listed_at.value() - 7'200'000);
  reopen();
  ASSERT_TRUE(drain());
  ASSERT_TRUE(staging->accept(l, kNow));
  ASSERT_TRUE(staging->finish(plan()));
  for (const auto& s : l.segments) {
    EXPECT_EQ(disk.stat(file(s.base)).value().mtime, UnixMillis(kNow.value() - 7'200'000));
  }
}

TEST_F(StagingTest, AGE_5_AGE_6_TimesInTheFutureAndTimesUnsaid_AreNotTaken) {
  const wire::ListedSegment s{Offset(0), 10, true, kNow};
  const UnixMillis earlier(kNow.value() - 3'600'000);
  EXPECT_EQ(copied_mtime(s, earlier, kNow, kNow), UnixMillis(kNow.value() + 3'600'000));
  EXPECT_EQ(copied_mtime(s, UnixMillis(earlier.value() - 1), kNow, kNow), std::nullopt);
  EXPECT_EQ(copied_mtime(s, std::nullopt, kNow, kNow), std::nullopt);
  EXPECT_EQ(copied_mtime({Offset(0), 10, true, std::nullopt}, kNow, kNow, kNow), std::nullopt);
}

TEST_F(StagingTest, CON_4_CON_5_CON_7_PositionsPastTheHwm_AreCapped) {
  source.append(40);
  source.frontier = Offset(10);
  source.acked_ahead = {{Offset(12), Offset(15)}, {Offset(30), Offset(60)}};
  reopen();
  ASSERT_TRUE(drain());
  auto copy = install();
  auto opened = delivery::ConsumerFiles::open(disk, kPlace, kLife.value(), copy->hwm());
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_FALSE(opened.value().report.clamped);
  EXPECT_TRUE(opened.value().report.unreadable.empty());
  EXPECT_EQ(opened.value().positions.frontier, Offset(10));
  const std::vector<delivery::OffsetRun> ahead{{Offset(12), Offset(15)}, {Offset(30), Offset(40)}};
  EXPECT_EQ(opened.value().positions.acked_ahead, ahead);

  wire::Listing past = source.listing();
  past.frontier = Offset(41);
  const CopiedPositions capped = copied_positions(past, Offset(40));
  EXPECT_TRUE(capped.capped);
  EXPECT_EQ(capped.positions.frontier, Offset(40));
  EXPECT_TRUE(capped.positions.acked_ahead.empty());
}

TEST_F(StagingTest, CUR_2_CUR_5_CUR_6_CursorsThatVerify_AreLoweredToTheHwm) {
  source.append(20);
  const auto cursor = [](std::string child, std::uint64_t next) {
    const Bytes file = encode_cursor_file({2, 0xab, Offset(next), child}, kLife);
    return wire::Sidecar{child, to_text(file)};
  };
  source.cursors = {cursor("child-a", 5), cursor("child-b", 900), cursor("child-c", 3)};
  source.cursors[2].bytes[20] ^= 1;
  reopen();
  ASSERT_TRUE(pass());
  const auto is_there = [&](const std::string& child) {
    return disk.seen_bytes(join_path(staged_path(), cursor_file_name(child))).has_value();
  };
  EXPECT_FALSE(is_there("child-a")) << "only at the very end";
  ASSERT_TRUE(drain());
  auto finished = staging->finish(plan());
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished.value().cursors_dropped, 1u);
  const auto next = [&](const std::string& child) {
    auto file = disk.seen_bytes(join_path(staged_path(), cursor_file_name(child)));
    return decode_cursor_file(*file, kLife)->next;
  };
  EXPECT_EQ(next("child-a"), Offset(5));
  EXPECT_EQ(next("child-b"), Offset(20));
  EXPECT_FALSE(is_there("child-c"));
}

TEST_F(StagingTest, MRK_2_MRK_3_MRK_5_MarkerSaysWhatWasPromotedFromWhom) {
  source.append(30);
  source.links = {{"child-a", "00000000000000ab"}};
  reopen();
  ASSERT_TRUE(drain());
  auto finished = staging->finish(plan(6));
  ASSERT_TRUE(finished);
  const auto marker = read_marker(disk, staged_path()).value();
  ASSERT_TRUE(marker);
  EXPECT_EQ(*marker, finished.value().marker);
  EXPECT_EQ(marker->move_id, RaftIndex(40));
  EXPECT_EQ(marker->epoch, 6u);
  EXPECT_FALSE(marker->force_promoted);
  EXPECT_EQ(marker->promoted_hwm, Offset(30));
  EXPECT_EQ(marker->source, "s");
  EXPECT_EQ(marker->self, "d");
  EXPECT_EQ(marker->links, source.links);
  EXPECT_EQ(marker->receipt.records, 30u);
  EXPECT_EQ(marker->receipt.bytes, staging->bytes());
  EXPECT_NE(marker->receipt.digest, 0u);
}

TEST_F(StagingTest, CUR_8_MarkerNamesTheLinksOfThatMoment) {
  source.append(10);
  source.links = {{"child-a", "00000000000000ab"}};
  reopen();
  ASSERT_TRUE(drain());
  ASSERT_TRUE(staging->finish(plan(6)));
  source.links.push_back({"child-b", "00000000000000cd"});
  ASSERT_TRUE(list());
  ASSERT_TRUE(staging->finish(plan(8)));  // after a freeze that lapsed
  EXPECT_EQ(read_marker(disk, staged_path()).value()->links, source.links);
}

TEST_F(StagingTest, CUR_8_CUR_9_LinkThatAnOlderSourceDoesNotName_IsNamedByTheDestination) {
  source.append(10);
  source.links = {{"child-b", "00000000000000cd"}};
  reopen();
  ASSERT_TRUE(drain());
  Staging::FinishPlan p = plan(6);
  p.links = {{"child-a", "00000000000000ab"}, {"child-b", "00000000000000cd"}};
  ASSERT_TRUE(staging->finish(p));
  const LinkFiles copy = read_link_files(disk, staged_path(), kLife).value();
  ASSERT_EQ(copy.records.installed.size(), 2u);
  EXPECT_EQ(copy.records.installed, copy.marker->links);
  for (const wire::ChildLink& link : p.links) {
    EXPECT_EQ(cursor_start(copy.records, link, Offset(4), Offset(10)),
              (CursorStart{CursorStart::From::oldest, Offset(4)}));
  }
}

TEST_F(StagingTest, AGE_7_PowerLossMayUndoTheAges_AndNothingElse) {
  source.append(100);
  wire::Listing l = source.listing();
  for (auto& s : l.segments) s.mtime = UnixMillis(kNow.value() - 9'000'000);
  reopen();
  ASSERT_TRUE(drain());
  ASSERT_TRUE(staging->accept(l, kNow));
  ASSERT_TRUE(staging->finish(plan()));
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    auto fs = disk.clone();
    fs->reseed(seed);
    fs->power_cycle();
    for (const auto& s : l.segments) EXPECT_GE(fs->stat(file(s.base)).value().mtime, *s.mtime);
    seglog::SegmentedLog::OpenOptions o;
    o.directory = staged_path();
    auto log = seglog::SegmentedLog::open(*fs, std::move(o));
    ASSERT_TRUE(log);
    EXPECT_EQ(SourceLog::records(*fs, staged_path(), *log.value()->view()), source.records());
  }
}

TEST(Disposal, FLP_21_QUA_4_QUA_5_OnlyWhatIsElsewhereIsRemoved) {
  DisposalCase c;
  c.row_exists = true;
  EXPECT_EQ(judge_disposal(c), Disposal::remove) << "no record";
  c.holds_records = true;
  c.log = LogId(7);
  c.end = Offset(90);
  EXPECT_EQ(judge_disposal(c), Disposal::ask_owner);
  c.owner = DisposalCase::Owner{LogId(7), Offset(90)};
  EXPECT_EQ(judge_disposal(c), Disposal::remove);
  c.owner->hwm = Offset(89);
  EXPECT_EQ(judge_disposal(c), Disposal::set_aside) << "the owner does not have all of it";
  c.owner->hwm = Offset(500);
  c.owner->log = LogId(8);
  EXPECT_EQ(judge_disposal(c), Disposal::set_aside) << "another log";
  c.owner->log = LogId(7);
  c.source_gone = true;
  EXPECT_EQ(judge_disposal(c), Disposal::set_aside) << "the source is dead";
  c.source_gone = false;
  c.row_exists = false;
  EXPECT_EQ(judge_disposal(c), Disposal::set_aside) << "a topic that is merely unknown";
  c.topic_deleted = true;
  EXPECT_EQ(judge_disposal(c), Disposal::remove);
  c.topic_deleted = false;
  c.row_exists = c.owned_here = true;
  EXPECT_EQ(judge_disposal(c), Disposal::keep) << "nothing from the source is at the path";
}

TEST(Disposal, QUA_6_FLP_16_CopyOfAnEarlierAttemptAtThePath_MakesTheStagingRedundant) {
  DisposalCase c;
  c.row_exists = c.holds_records = c.owned_here = true;
  c.installed_from_source = true;
  EXPECT_EQ(judge_disposal(c), Disposal::remove);
  c.took_off = true;
  EXPECT_EQ(judge_disposal(c), Disposal::keep) << "this move removed its own install";
}

TEST_F(StagingTest, DUR_1_DUR_3_DUR_4_NoMarkerIsOnTheDiskBeforeTheCopyIs) {
  source.append(100);
  reopen();
  ASSERT_TRUE(drain());
  // The power goes before each disk call of finish(): whenever the marker is there, all of it is.
  std::uint64_t with_marker = 0, cuts = 0;
  for (std::uint64_t n = 1;; ++n) {
    auto fs = disk.clone();
    fs->reseed(n);
    auto reopened = Staging::open(*fs, staged_path(), owner());
    ASSERT_TRUE(reopened);
    while (reopened.value()->read_back_one().value()) {
    }
    ASSERT_TRUE(reopened.value()->accept(source.listing(), kNow));
    fs->cut_power_at(fs->ops() + n);
    auto finished = reopened.value()->finish(plan());
    reopened.value().reset();
    fs->cancel_cut();
    fs->power_cycle();
    const auto marker = read_marker(*fs, staged_path());
    if (marker && marker.value()) {
      ++with_marker;
      EXPECT_TRUE(marker.value()->durable_at);
      seglog::SegmentedLog::OpenOptions o;
      o.directory = staged_path();
      auto log = seglog::SegmentedLog::open(*fs, std::move(o));
      ASSERT_TRUE(log) << "cut " << n << ": " << log.error().text();
      EXPECT_TRUE(log.value()->open_report().clean) << "cut " << n;
      EXPECT_EQ(SourceLog::records(*fs, staged_path(), *log.value()->view()), source.records());
    }
    if (finished) break;
    ++cuts;
  }
  EXPECT_GT(cuts, 10u);
  EXPECT_GT(with_marker, 0u);
}

TEST_F(StagingTest, DUR_2_SealedSegment_IsDurableAsItsLastChunkLands) {
  source.append(200);
  reopen();
  ASSERT_TRUE(list());
  const Offset second = source.listing().segments[1].base;
  for (const SegmentRange& r : staging->missing(1000)) {
    if (r.base == second) break;
    ASSERT_TRUE(staging->append(r, source.chunk(r.base, r.from, r.bytes).value()));
    ASSERT_TRUE(sync_sealed(disk, *staging, r.base));
  }
  ASSERT_TRUE(disk.sync_dir(staged_path()));
  EXPECT_EQ(disk.durable_bytes(file(Offset(0))), disk.seen_bytes(file(Offset(0))));
}

TEST_F(StagingTest, G57_NeverUsedPartition_BecomesAnEmptyLog) {
  wire::Listing nothing;
  nothing.incarnation = kLife;
  reopen();
  ASSERT_TRUE(staging->accept(nothing, kNow));
  EXPECT_TRUE(staging->missing(1000).empty());
  EXPECT_EQ(problem(), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->hwm(), Offset(0));
}

TEST_F(StagingTest, NeverUsedPartition_ThatIsUsedAfterAll_IsCopied) {
  wire::Listing nothing;
  nothing.incarnation = kLife;
  reopen();
  ASSERT_TRUE(staging->accept(nothing, kNow));
  ASSERT_TRUE(staging->finish(plan()));  // the freeze lapses then
  source.append(12);
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
  auto copy = install();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->id(), kLog);
  EXPECT_EQ(SourceLog::records(disk, kPlace, *copy->view()), source.records());
}

TEST_F(StagingTest, G12_EmptySegment_IsStagedToo) {
  wire::Listing l;
  l.incarnation = kLife;
  l.log = kLog;
  l.hwm = Offset(0);
  l.segments = {{Offset(0), 0, false, kNow}};
  reopen();
  ASSERT_TRUE(staging->accept(l, kNow));
  EXPECT_TRUE(disk.seen_bytes(file(Offset(0))));
  EXPECT_EQ(problem(), "");
  ASSERT_TRUE(staging->sync());
  reopen();
  EXPECT_EQ(problem(), "") << "also after a restart";
}

TEST_F(StagingTest, StartOver_KeepsThatTheSourceWasReached) {
  source.append(50);
  reopen();
  ASSERT_TRUE(drain());
  ASSERT_TRUE(staging->finish(plan()));
  ASSERT_TRUE(staging->start_over());
  EXPECT_EQ(staging->bytes(), 0u);
  reopen();
  EXPECT_EQ(staging->bytes(), 0u);
  EXPECT_EQ(staging->highest_hwm(), Offset(50));
  ASSERT_TRUE(drain());
  EXPECT_EQ(problem(), "");
}

TEST_F(StagingTest, StagingOfAnotherMove_IsNotTouched) {
  source.append(50);
  reopen();
  ASSERT_TRUE(pass());
  staging.reset();
  const std::uint64_t before = disk.digest();
  auto other = Staging::open(disk, staged_path(), owner(RaftIndex(41)));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Errc::conflict);
  EXPECT_EQ(disk.digest(), before);

  const StagingFound found = inspect_staging(disk, staged_path()).value();
  EXPECT_TRUE(found.present);
  EXPECT_TRUE(found.holds_records);
  EXPECT_EQ(found.end, Offset(50));
  EXPECT_EQ(found.log, kLog);
  ASSERT_TRUE(found.record);
  EXPECT_EQ(found.record->move_id, RaftIndex(40));
}

TEST_F(StagingTest, G18_QuarantinesOfOneName_NeverOverwrite) {
  source.append(10);
  for (const char* name :
       {"orders-3.quarantine", "orders-3.quarantine.2", "orders-3.quarantine.3"}) {
    reopen();
    ASSERT_TRUE(pass());
    staging.reset();
    EXPECT_EQ(set_aside_staging(disk, staged_path()).value(), join_path(kMoves, name));
  }
}

TEST_F(StagingTest, G17_NamesNearTheLimit_AreHashedAndDistinct) {
  EXPECT_EQ(staging_name({"a-b", PartitionId(12)}), "a-b-12");
  const std::string a(255, 'a');
  const std::string b = std::string(254, 'a') + "b";
  const std::string name = staging_name({a, PartitionId(107)});
  EXPECT_LE(name.size() + std::string(".quarantine.999").size(), 255u);
  EXPECT_NE(name, staging_name({b, PartitionId(107)}));
  EXPECT_TRUE(name.ends_with("-107"));
  EXPECT_NE(name.find('~'), std::string::npos);
}

TEST_F(StagingTest, Record_SurvivesWordForWord) {
  source.append(30);
  source.frontier = Offset(4);
  StagingRecord record;
  record.partition = kPartition;
  record.incarnation = kLife;
  record.move_id = RaftIndex(40);
  record.source = "s";
  record.highest_hwm = Offset(30);
  record.synced = {{Offset(0), 4000}, {Offset(20), 0}};
  record.newest = TakenListing{source.listing(), kNow};
  const std::string text = encode_staging_record(record);
  EXPECT_EQ(decode_staging_record(text), record);
  for (std::size_t i = 0; i < text.size(); i += 7) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_EQ(decode_staging_record(damaged), std::nullopt) << i;
    EXPECT_EQ(decode_staging_record(text.substr(0, i)), std::nullopt) << i;
  }
}

// Every disk call of copying and finishing, lost in every way a power cut loses things: what is
// found afterwards is resumed, and ends as the source's log.
TEST_F(StagingTest, PowerCutAtEveryDiskCall_ResumesToTheSameCopy) {
  source.append(90);
  for (const auto how : {sim::SimFs::Cut::before_call, sim::SimFs::Cut::during_call}) {
    for (std::uint64_t n = 1;; ++n) {
      sim::SimFs fs(n * 31);
      ASSERT_TRUE(make_directories(fs, kMoves));
      fs.cut_power_at(fs.ops() + n, {}, how);
      bool whole = false;
      for (int life = 0; life < 2 && !whole; ++life) {
        whole = [&]() -> bool {
          auto opened = Staging::open(fs, staged_path(), owner());
          if (!opened) return false;
          Staging& s = *opened.value();
          while (true) {
            auto more = s.read_back_one();
            if (!more) return false;
            if (!more.value()) break;
          }
          if (!s.accept(source.listing(), kNow)) return false;
          for (const SegmentRange& r : s.missing(1500)) {
            if (!s.append(r, source.chunk(r.base, r.from, r.bytes).value())) return false;
          }
          for (const Offset base : s.undigested(true)) {
            EXPECT_TRUE(s.compare(base, source.digests(base)).empty());
            if (!sync_sealed(fs, s, base)) return false;
          }
          if (!s.sync()) return false;
          auto verdict = s.verify(true);
          if (!verdict) return false;
          EXPECT_EQ(verdict.value().problem, "") << "cut " << n;
          return s.finish(plan()).has_value();
        }();
        if (life == 0 && whole) break;
        if (!whole) fs.power_cycle();
      }
      ASSERT_TRUE(whole) << "cut " << n;
      fs.cancel_cut();
      const bool passed = !fs.frozen() && fs.stats.cuts == 0;
      fs.power_cycle();
      seglog::SegmentedLog::OpenOptions o;
      o.directory = staged_path();
      auto log = seglog::SegmentedLog::open(fs, std::move(o));
      ASSERT_TRUE(log) << log.error().text();
      EXPECT_EQ(SourceLog::records(fs, staged_path(), *log.value()->view()), source.records());
      if (passed) break;
    }
  }
}

}  // namespace
}  // namespace narad::moves
