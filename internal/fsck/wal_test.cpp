// The ingress WAL: what a start refuses, and where.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "internal/fsck/check.h"
#include "internal/fsck/store_testing.h"
#include "pkg/base/two_slot.h"
#include "pkg/sim/rng.h"

namespace narad::fsck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kIngress;
using testing::texts;

std::unique_ptr<sim::SimFs> wal(bool clean = true) {
  auto fs = std::make_unique<sim::SimFs>(1);
  testing::must(make_directories(*fs, kIngress));
  testing::fill_wal(*fs, clean);
  return fs;
}

Report check(FileSystem& fs) {
  Report report;
  check_wal(fs, kIngress, report);
  return report;
}

struct SegmentFile {
  std::string path;
  Sequence first;
  std::uint64_t end_at;  // of its frames
};
std::vector<SegmentFile> segments(sim::SimFs& fs) {
  std::vector<SegmentFile> out;
  const std::vector<std::string> names = fs.list(kIngress).value();
  for (const std::string& name : names) {
    if (auto first = ingress::parse_segment_name(name)) {
      const std::string path = join_path(kIngress, name);
      const auto scan = ingress::scan_segment(*fs.seen_bytes(path));
      out.push_back({path, *first, scan.end_at});
    }
  }
  return out;
}
// Where the n-th frame of a segment begins.
std::uint64_t frame_at(sim::SimFs& fs, const SegmentFile& segment, std::size_t n) {
  const Bytes bytes = *fs.seen_bytes(segment.path);
  const OriginId origin = ingress::decode_header(bytes).header.origin;
  std::uint64_t at = ingress::kSegmentHeaderBytes;
  for (; n > 0; --n) at += ingress::decode_frame(ByteView(bytes).subspan(at), origin)->bytes;
  return at;
}
// The WAL would be refused for damaged records, or not.
bool start_refuses(FileSystem& fs) {
  auto inspection = ingress::inspect_wal(fs, kIngress);
  return !inspection && inspection.error().code() == Errc::data_loss;
}

TEST(CheckWal, SoundOne_IsCleanAndCounted) {
  for (bool clean : {true, false}) {
    auto fs = wal(clean);
    ASSERT_GE(segments(*fs).size(), 3u);
    const Report report = check(*fs);
    EXPECT_THAT(report.findings(), IsEmpty()) << report.text();
    EXPECT_EQ(report.counters.wal_records, 30u);
    EXPECT_EQ(report.counters.wal_records_pending, 26u);
  }
}

TEST(CheckWal, EmptyOne_IsClean) {
  sim::SimFs fs(1);
  testing::must(make_directories(fs, kIngress));
  EXPECT_EQ(check(fs).result(), kClean);
  ASSERT_TRUE(fs.rmdir(kIngress));
  EXPECT_EQ(check(fs).result(), kUnchecked) << "a directory that is not there was not checked";
}

TEST(CheckWal, TornEnd_IsANote) {
  auto fs = wal(false);
  const SegmentFile last = segments(*fs).back();
  ASSERT_TRUE(fs->corrupt(last.path, last.end_at - 1, std::byte{1}));
  ASSERT_FALSE(start_refuses(*fs));
  const Report report = check(*fs);
  EXPECT_EQ(report.result(), kClean) << report.text();
  ASSERT_EQ(report.count(Kind::note), 1u);
  EXPECT_THAT(report.findings()[0].what, HasSubstr("nothing from record 30 on was acknowledged"));
}

TEST(CheckWal, DamagedRecordInTheMiddle_IsNamedWithBytesAndSequence) {
  auto fs = wal();
  const auto all = segments(*fs);
  const std::uint64_t at = frame_at(*fs, all[1], 3);
  const std::uint64_t end = frame_at(*fs, all[1], 4);
  const std::uint64_t sequence = all[1].first.value() + 3;
  ASSERT_TRUE(fs->corrupt(all[1].path, at + 30, std::byte{1}));
  ASSERT_TRUE(start_refuses(*fs));
  const Report report = check(*fs);
  ASSERT_EQ(report.count(Kind::problem), 2u) << report.text();
  EXPECT_EQ(report.findings()[0].where, all[1].path);
  EXPECT_EQ(report.findings()[0].bytes, (Span{at, end}));
  EXPECT_EQ(report.findings()[0].sequences, (Span{sequence, sequence + 1}));
  const Finding& verdict = report.findings()[1];
  EXPECT_THAT(verdict.what, HasSubstr("does not start on this WAL; at least 1 of them"));
  EXPECT_THAT(verdict.remedy, HasSubstr("mv /data/ingress /data/ingress.damaged"));
  EXPECT_THAT(verdict.remedy, HasSubstr("25 intact records"));
  // What a person reads.
  std::ifstream golden("testdata/messages/fsck_wal_damaged.txt");
  const std::string expected{std::istreambuf_iterator<char>(golden), {}};
  EXPECT_EQ(report.text(), expected);
}

TEST(CheckWal, EveryFrameDamagedInTurn_IsNamed) {
  auto sound = wal();
  const auto all = segments(*sound);
  for (const SegmentFile& segment : all) {
    for (std::size_t n = 0; frame_at(*sound, segment, n) < segment.end_at; ++n) {
      auto fs = sound->clone();
      const std::uint64_t at = frame_at(*sound, segment, n);
      ASSERT_TRUE(fs->corrupt(segment.path, at + 4, std::byte{0x80}));
      const Report report = check(*fs);
      ASSERT_FALSE(report.findings().empty());
      ASSERT_EQ(report.findings()[0].where, segment.path) << report.text();
      ASSERT_EQ(report.findings()[0].bytes->from, at) << report.text();
      // The end of the last segment may be a write that never completed.
      ASSERT_EQ(report.result(), start_refuses(*fs) ? kProblems : kClean) << report.text();
    }
  }
}

TEST(CheckWal, MissingSegment_IsNamedWithItsSequences) {
  auto fs = wal();
  const auto all = segments(*fs);
  ASSERT_TRUE(fs->remove(all[1].path));
  ASSERT_TRUE(start_refuses(*fs));
  const Report report = check(*fs);
  EXPECT_EQ(report.findings()[0].where, all[2].path) << report.text();
  EXPECT_EQ(report.findings()[0].sequences, (Span{all[1].first.value(), all[2].first.value()}));
}

TEST(CheckWal, DamagedHeader_StillFindsItsRecords) {
  auto fs = wal();
  const auto all = segments(*fs);
  ASSERT_TRUE(fs->corrupt(all[1].path, 9, std::byte{1}));
  const Report report = check(*fs);
  EXPECT_EQ(report.result(), kProblems);
  EXPECT_EQ(report.findings()[0].bytes, (Span{0, ingress::kSegmentHeaderBytes}));
  EXPECT_EQ(report.counters.wal_records, 30u) << report.text();
}

TEST(CheckWal, DamageThatWasHandedOver_NeedsNothing) {
  auto fs = wal();
  const auto all = segments(*fs);
  ASSERT_TRUE(fs->corrupt(all[0].path, frame_at(*fs, all[0], 1) + 30, std::byte{1}));
  const Report report = check(*fs);
  EXPECT_THAT(report.findings()[0].remedy, HasSubstr("were handed over"));
}

TEST(CheckWal, CheckpointMissingOrDamaged_IsAProblemThatStartsAnyway) {
  auto fs = wal();
  auto missing = fs->clone();
  testing::put(*fs, kIngress + "/checkpoint", "garbage");
  ASSERT_FALSE(start_refuses(*fs));
  EXPECT_THAT(texts(check(*fs), Kind::problem), ElementsAre(HasSubstr("no slot that verifies")));
  ASSERT_TRUE(missing->remove(kIngress + "/checkpoint"));
  EXPECT_EQ(check(*missing).result(), kClean) << "nothing was handed over then";
}

TEST(CheckWal, LaterReleases_AreUnchecked) {
  auto fs = wal();
  const auto all = segments(*fs);
  // A version byte without the checksum to match is damage; with it, a later release.
  const Bytes bytes = *fs->seen_bytes(kIngress + "/checkpoint");
  Bytes changed = bytes;
  for (std::size_t slot : {std::size_t{0}, two_slot::kSlotBytes}) {
    store_le(changed.data() + slot, ingress::kCheckpointMagic);
    store_le(changed.data() + slot + 4, std::uint32_t{9});
  }
  testing::must(replace_file(*fs, kIngress + "/checkpoint", changed));
  EXPECT_EQ(check(*fs).result(), kUnchecked) << check(*fs).text();
}

TEST(CheckWal, NodeRunning_IsNotChecked) {
  auto fs = wal();
  testing::put(*fs, "/data/LOCK", "");
  auto lock = fs->open("/data/LOCK", OpenMode::read_write).value();
  ASSERT_TRUE(lock->try_lock().value());
  EXPECT_EQ(check(*fs).result(), kUnchecked);
}

// Whatever happens to the files: if a start refuses, this names a problem; if a start goes on
// without losing anything acknowledged, this does not call it refused.
TEST(CheckWal, RandomDamage_AgreesWithWhatAStartSays) {
  std::uint64_t refused = 0, started = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    sim::Rng random(sim::derive(seed, "wal damage"));
    auto fs = wal(random.below(2) == 0);
    const auto all = segments(*fs);
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      const SegmentFile& segment = all[random.below(all.size())];
      const auto bytes = fs->seen_bytes(segment.path);
      if (!bytes || bytes->empty()) continue;
      const std::uint64_t what = random.below(12);
      if (what < 8) {
        ASSERT_TRUE(fs->corrupt(segment.path, random.below(bytes->size()),
                                std::byte(1u << random.below(8))));
      } else if (what < 10) {
        testing::must(fs->open(segment.path, OpenMode::read_write)
                          .value()
                          ->truncate(random.below(bytes->size())));
      } else if (what == 10) {
        ASSERT_TRUE(fs->remove(segment.path));
      }
    }
    const bool refuses = start_refuses(*fs);
    const Report report = check(*fs);
    (refuses ? refused : started) += 1;
    const bool says_refused = report.text().find("does not start on this WAL") != std::string::npos;
    ASSERT_EQ(says_refused, refuses) << "seed " << seed << "\n" << report.text();
    if (refuses) {
      // The verdict never stands alone: something is named.
      ASSERT_GE(report.count(Kind::problem), 2u) << "seed " << seed << "\n" << report.text();
    }
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(started, 30u);
}

TEST(WalCheck, DirectoryWithoutAWal_IsNotCalledClean) {
  sim::SimFs fs(1);
  ASSERT_TRUE(make_directories(fs, "/data/elsewhere"));
  Report report;
  check_wal(fs, "/data/elsewhere", report);
  EXPECT_EQ(report.result(), 8);
  EXPECT_NE(report.text().find("no ingress WAL is here"), std::string::npos) << report.text();
}

}  // namespace
}  // namespace narad::fsck
