// Every byte of a small log is damaged, one at a time: what is answered is right, or reported lost,
// offset by offset.
#include <gtest/gtest.h>

#include "pkg/seglog/test_log.h"

namespace narad::seglog {
namespace {

using namespace testing;
using sim::SimFs;

struct Frame {
  Offset segment;
  std::uint64_t at, end;
  Offset from, to;
};

// A log of three segments with a few frames each.
struct Made {
  std::unique_ptr<SimFs> fs = new_disk();
  std::vector<Rec> all;
  std::vector<Frame> frames;
  std::vector<SegmentInfo> segments;
  std::uint64_t last_batch_from = 0;  // first offset of the last commit

  Made(bool close, bool persist) {
    Knobs knobs;
    knobs.segment_bytes = 900;
    knobs.frame_raw_bytes = 120;
    auto log = SegmentedLog::open(*fs, options(knobs));
    NARAD_ASSERT(log.has_value());
    for (std::uint64_t s = 1; log.value()->view()->segments() < 3 || s % 9 != 1; s += 3) {
      const auto batch = recs(4, s, s + 2);
      last_batch_from = all.size();
      NARAD_ASSERT(append(*log.value(), batch).has_value());
      all.insert(all.end(), batch.begin(), batch.end());
    }
    segments = *log.value()->view()->sealed;
    segments.push_back(log.value()->view()->active);
    if (persist) NARAD_ASSERT(log.value()->persist_hwm().has_value());
    if (close) NARAD_ASSERT(log.value()->close().has_value());
    log.value().reset();
    fs->process_restart();
    for (const SegmentInfo& s : segments) {
      const Bytes bytes = *fs->seen_bytes(file_path(s.base));
      MemorySource source(bytes);
      ScanOptions o;
      o.log = kLog;
      o.bytes = bytes.size();
      o.expected = s.base;
      SegmentScanner scanner(source, o);
      while (scanner.next().value()) {
        const ScanItem& i = scanner.item();
        NARAD_ASSERT(i.kind == ScanItem::Kind::frame);
        frames.push_back({s.base, i.at, i.at + i.bytes, i.from, i.to});
      }
    }
    fs->power_cycle();  // everything is durable: the base of all clones
  }
};

// Opens a damaged clone and compares. `lost`: what must be reported, unless the frame belongs to
// the last commit and its durability is not on record, when it may be cut instead.
void check(SimFs& fs, const Made& made, Offset from, Offset to, bool may_cut,
           const std::string& what) {
  auto log = SegmentedLog::open(fs, options());
  ASSERT_TRUE(log) << what << ": " << log.error().text();
  log.value()->check_invariants();
  auto content = read_all(fs, *log.value()->view(), Offset(0));
  ASSERT_TRUE(content) << what << ": " << content.error().text();
  std::uint64_t end = made.all.size();
  if (log.value()->open_report().cut_bytes > 0) {
    ASSERT_TRUE(may_cut) << what;
    end = log.value()->hwm().value();
    ASSERT_EQ(end, from.value()) << what;
    ASSERT_TRUE(fs.stat(file_path(made.segments.back().base, kCutSuffix))) << what;
    to = from;
  }
  ASSERT_EQ(log.value()->hwm(), Offset(end)) << what;
  const std::vector<LostRange> lost =
      from == to ? std::vector<LostRange>{} : std::vector<LostRange>{{from, to}};
  ASSERT_EQ(content.value().lost, lost) << what << ": " << dump(content.value().lost);
  for (std::uint64_t i = 0; i < end; ++i) {
    if (Offset(i) >= from && Offset(i) < to) {
      ASSERT_FALSE(content.value().records.contains(i)) << what;
    } else {
      ASSERT_EQ(content.value().records[i].first, made.all[i].key) << what;
      ASSERT_EQ(content.value().records[i].second, made.all[i].payload) << what;
    }
  }
  // It goes on: the next record gets the next offset, and is there after a crash.
  auto r = append(*log.value(), {rec(5, 1)});
  ASSERT_TRUE(r) << what << ": " << r.error().text();
  ASSERT_EQ(r.value().first, Offset(end)) << what;
  log.value().reset();
  fs.power_cycle();
  log = SegmentedLog::open(fs, options());
  ASSERT_TRUE(log) << what << ": " << log.error().text();
  ASSERT_EQ(log.value()->hwm(), Offset(end + 1)) << what;
  content = read_all(fs, *log.value()->view(), Offset(0));
  ASSERT_TRUE(content) << what;
  ASSERT_EQ(content.value().lost, lost) << what;
}

void damage_every_byte(bool close, bool persist) {
  const Made made(close, persist);
  ASSERT_EQ(made.segments.size(), 3u);
  for (const Frame& frame : made.frames) {
    for (std::uint64_t at = frame.at; at < frame.end; ++at) {
      for (const std::byte mask : {std::byte{1}, std::byte{0xff}}) {
        auto fs = made.fs->clone();
        ASSERT_TRUE(fs->corrupt(file_path(frame.segment), at, mask));
        const bool may_cut = !close && !persist && frame.from.value() >= made.last_batch_from;
        ASSERT_NO_FATAL_FAILURE(check(
            *fs, made, frame.from, frame.to, may_cut,
            cat("segment ", frame.segment, ", byte ", at, " ^ ", std::to_integer<unsigned>(mask))));
      }
    }
  }
}

TEST(DamagedByte, AnyOfACleanlyClosedLog_IsReportedExactlyOrHarmless) {
  damage_every_byte(true, true);
}

TEST(DamagedByte, AnyOfAKilledLogWithItsWatermarkOnDisk_IsReportedExactlyOrHarmless) {
  damage_every_byte(false, true);
}

TEST(DamagedByte, AnyOfAKilledLog_IsReportedOrCutFromTheLastCommitAndKeptAside) {
  damage_every_byte(false, false);
}

TEST(DamagedByte, AnyOfTheWatermarkFile_CostsNothing) {
  for (const bool close : {true, false}) {
    const Made made(close, true);
    for (std::uint64_t at = 0; at < two_slot::kFileBytes; ++at) {
      auto fs = made.fs->clone();
      fs->corrupt("/p/hwm", at, std::byte{0x10});
      auto log = SegmentedLog::open(*fs, options());
      if (!log) {  // the flip made a version that proves nothing, but is refused all the same
        ASSERT_EQ(log.error().code(), Errc::unavailable) << at;
        ASSERT_EQ(at % two_slot::kSlotBytes / 4, 1u) << at;
        continue;
      }
      ASSERT_EQ(log.value()->hwm(), Offset(made.all.size())) << at;
      auto content = read_all(*fs, *log.value()->view(), Offset(0));
      ASSERT_TRUE(content);
      ASSERT_TRUE(content.value().lost.empty());
      ASSERT_EQ(content.value().records.size(), made.all.size());
    }
  }
}

TEST(DamagedBytes, RandomStretchesOfAnyFile_NeverCrashAndNeverLie) {
  const Made made(false, true);
  sim::Rng rng(99);
  std::uint64_t refused = 0, lost = 0;
  for (int round = 0; round < 3000; ++round) {
    auto fs = made.fs->clone();
    for (std::uint64_t n = rng.range(1, 3); n > 0; --n) {
      const std::uint64_t pick = rng.below(made.segments.size() + 1);
      const std::string path =
          pick == made.segments.size() ? "/p/hwm" : file_path(made.segments[pick].base);
      const std::uint64_t size = fs->stat(path).value().size;
      const std::uint64_t at = rng.below(size);
      for (std::uint64_t i = at, length = rng.range(1, 200); i < size && length > 0;
           ++i, --length) {
        fs->corrupt(path, i, static_cast<std::byte>(rng.next()));
      }
    }
    auto log = SegmentedLog::open(*fs, options());
    if (!log) {
      ++refused;
      continue;
    }
    auto content = read_all(*fs, *log.value()->view(), Offset(0));
    ASSERT_TRUE(content) << content.error().text();
    std::uint64_t accounted = content.value().records.size();
    for (const LostRange& l : content.value().lost) accounted += l.to.minus(l.from);
    ASSERT_EQ(accounted, log.value()->hwm().value());
    for (const auto& [offset, r] : content.value().records) {
      ASSERT_EQ(r.first, made.all[offset].key);
      ASSERT_EQ(r.second, made.all[offset].payload);
    }
    lost += content.value().lost.empty() ? 0 : 1;
  }
  EXPECT_GT(lost, 1000u);
  EXPECT_LT(refused, 600u);
}

TEST(DamagedSegment, WholeControlFramesAndWatermarkGone_IsRefusedUnchanged) {
  const Made made(true, true);
  auto fs = made.fs->clone();
  for (const SegmentInfo& s : made.segments) {
    ASSERT_TRUE(fs->corrupt(file_path(s.base), 70, std::byte{1}));
  }
  ASSERT_TRUE(fs->remove("/p/hwm"));
  const auto digest = fs->digest();
  auto log = SegmentedLog::open(*fs, options());
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code(), Errc::data_loss);
  EXPECT_EQ(fs->digest(), digest);
}

TEST(SilentRot, UnderAnOpenLog_IsReportedByReadsAndByNothingElse) {
  auto fs = new_disk();
  auto log = SegmentedLog::open(*fs, options());
  ASSERT_TRUE(log);
  std::vector<std::uint64_t> starts;
  for (std::uint64_t s = 1; s <= 9; s += 3) {
    starts.push_back(log.value()->view()->active.bytes);
    ASSERT_TRUE(append(*log.value(), recs(1, s, s + 2)));
  }
  ASSERT_TRUE(fs->corrupt(file_path(Offset(0)), starts[1] + 20, std::byte{1}));
  auto content = read_all(*fs, *log.value()->view(), Offset(0));
  ASSERT_TRUE(content);
  EXPECT_EQ(content.value().lost, (std::vector<LostRange>{{Offset(3), Offset(6)}}));
  // From inside the hole, through the index.
  content = read_all(*fs, *log.value()->view(), Offset(4));
  ASSERT_TRUE(content);
  EXPECT_EQ(content.value().lost, (std::vector<LostRange>{{Offset(4), Offset(6)}}));
  EXPECT_EQ(content.value().records.size(), 3u);
  ASSERT_TRUE(append(*log.value(), recs(1, 10, 10)));
}

}  // namespace
}  // namespace narad::seglog
