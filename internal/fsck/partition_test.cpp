// One partition: what a start would make of it, and what was acked.
#include <gmock/gmock.h>

#include "internal/fsck/check.h"
#include "internal/fsck/store_testing.h"
#include "pkg/base/checksum.h"
#include "pkg/seglog/read.h"
#include "pkg/sim/rng.h"

namespace narad::fsck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kPartition;
using testing::texts;

std::unique_ptr<sim::SimFs> partition(bool clean = true) {
  auto fs = std::make_unique<sim::SimFs>(1);
  testing::must(make_directories(*fs, kPartition));
  testing::fill_partition(*fs, clean);
  testing::fill_consumer_state(*fs);
  return fs;
}

Report check(FileSystem& fs, bool payloads = false) {
  Report report;
  CheckOptions options;
  options.payloads = payloads;
  check_partition(fs, kPartition, testing::kIncarnation, report, options);
  return report;
}

std::string segment(std::uint64_t base) {
  return join_path(kPartition, seglog::segment_name(Offset(base)));
}
std::vector<std::uint64_t> bases(sim::SimFs& fs) {
  std::vector<std::uint64_t> out;
  const std::vector<std::string> names = fs.list(kPartition).value();
  for (const std::string& name : names) {
    if (auto base = seglog::parse_log_file_name(name, seglog::kSegmentSuffix)) {
      out.push_back(base->value());
    }
  }
  return out;
}

TEST(CheckPartition, SoundOne_IsClean) {
  auto fs = partition();
  EXPECT_EQ(bases(*fs).size(), 3u);
  EXPECT_THAT(check(*fs).findings(), IsEmpty()) << check(*fs).text();
  EXPECT_THAT(check(*fs, true).findings(), IsEmpty());
}

TEST(CheckPartition, AnyByteOfASealedSegment_IsFoundWithItsPlaceAndOffsets) {
  auto sound = partition();
  const std::string path = segment(bases(*sound)[1]);
  const std::size_t size = sound->seen_bytes(path)->size();
  const std::size_t control = seglog::kHeaderBytes + 12;
  for (std::size_t at = 0; at < size; ++at) {
    auto fs = sound->clone();
    ASSERT_TRUE(fs->corrupt(path, at, std::byte{0x20}));
    const Report report = check(*fs, true);
    ASSERT_NE(report.findings().size(), 0u) << "byte " << at;
    const Finding& first = report.findings().front();
    ASSERT_EQ(first.where, path);
    ASSERT_TRUE(first.bytes && first.bytes->from <= at && at < first.bytes->to)
        << "byte " << at << "\n"
        << report.text();
    ASSERT_EQ(report.result(), kProblems) << report.text();
    // The control frame at the beginning holds no record.
    ASSERT_EQ(first.offsets.has_value(), at >= control) << report.text();
  }
}

TEST(CheckPartition, DamagedHeader_IsFoundWithoutReadingPayloads) {
  auto fs = partition();
  const std::uint64_t base = bases(*fs)[0];
  const std::size_t control = seglog::kHeaderBytes + 12;
  ASSERT_TRUE(fs->corrupt(segment(base), control + 9, std::byte{1}));
  const Report report = check(*fs);
  ASSERT_EQ(report.count(Kind::problem), 1u) << report.text();
  EXPECT_EQ(report.findings()[0].offsets, (Span{0, 5}));
}

TEST(CheckPartition, MissingSegment_IsFoundWithItsOffsets) {
  auto fs = partition();
  const auto all = bases(*fs);
  ASSERT_TRUE(fs->remove(segment(all[1])));
  const Report report = check(*fs);
  ASSERT_EQ(report.count(Kind::problem), 1u) << report.text();
  EXPECT_EQ(report.findings().back().offsets, (Span{all[1], all[2]})) << report.text();
}

TEST(CheckPartition, TornEndAboveTheWatermark_IsANote) {
  auto fs = partition(false);
  const std::string active = segment(bases(*fs).back());
  const std::uint64_t size = fs->seen_bytes(active)->size();
  auto file = fs->open(active, OpenMode::read_write).value();
  testing::must(file->truncate(size - 10));
  file.reset();
  const Report report = check(*fs);
  EXPECT_EQ(report.result(), kClean) << report.text();
  ASSERT_EQ(report.count(Kind::note), 1u) << report.text();
  EXPECT_THAT(report.findings()[0].what, HasSubstr("never completed"));
  EXPECT_EQ(report.findings()[0].bytes->to, size - 10);
}

TEST(CheckPartition, DamageBelowTheWatermark_IsAProblemInTheActiveSegmentToo) {
  auto fs = partition();
  const std::string active = segment(bases(*fs).back());
  ASSERT_TRUE(fs->corrupt(active, fs->seen_bytes(active)->size() - 3, std::byte{1}));
  const Report report = check(*fs, true);
  EXPECT_EQ(report.result(), kProblems) << report.text();
}

TEST(CheckPartition, LogEndsBelowTheWatermark_IsAProblem) {
  auto fs = partition();
  ASSERT_TRUE(fs->remove(segment(bases(*fs).back())));
  const Report report = check(*fs);
  ASSERT_EQ(report.count(Kind::problem), 1u) << report.text();
  EXPECT_THAT(report.findings()[0].what, HasSubstr("but the high watermark is 60"));
}

TEST(CheckPartition, WatermarkWithoutSegments_IsAProblem) {
  auto fs = partition();
  for (std::uint64_t base : bases(*fs)) ASSERT_TRUE(fs->remove(segment(base)));
  EXPECT_THAT(texts(check(*fs), Kind::problem),
              ElementsAre(HasSubstr("has a high watermark but no segment")));
}

TEST(CheckPartition, WatermarkMissingOrDamaged_IsSaid) {
  auto fs = partition();
  auto damaged = fs->clone();
  ASSERT_TRUE(fs->remove(kPartition + "/hwm"));
  EXPECT_EQ(check(*fs).count(Kind::note), 1u) << check(*fs).text();
  EXPECT_EQ(check(*fs).result(), kClean);
  testing::put(*damaged, kPartition + "/hwm", "garbage");
  EXPECT_EQ(check(*damaged).result(), kProblems);
}

TEST(CheckPartition, SegmentOfAnotherLog_IsAProblem) {
  auto fs = partition();
  const auto all = bases(*fs);
  sim::SimFs other(2);
  testing::must(make_directories(other, kPartition));
  seglog::SegmentedLog::OpenOptions options;
  options.directory = kPartition;
  options.create_if_missing = true;
  options.fresh_id = LogId(9);
  auto log = seglog::SegmentedLog::open(other, options).value();
  testing::append_records(*log, 5);
  testing::must(log->close());
  testing::must(replace_file(*fs, segment(all[1]), *other.seen_bytes(segment(0))));
  EXPECT_THAT(texts(check(*fs), Kind::problem), ElementsAre(HasSubstr("belongs to log")));
}

// Whatever happens to the files: a log that opens without losing anything has no problem here, and
// one that loses records or is refused has.
TEST(CheckPartition, RandomDamage_AgreesWithWhatOpeningTheLogSays) {
  std::uint64_t lost = 0, fine = 0, cut = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    sim::Rng random(sim::derive(seed, "damage"));
    auto fs = partition(random.below(2) == 0);
    for (const char* name : {delivery::kSnapshotFileName, delivery::kJournalFileName}) {
      ASSERT_TRUE(fs->remove(join_path(kPartition, name)));
    }
    const auto all = bases(*fs);
    const std::string path = segment(all[random.below(all.size())]);
    const std::uint64_t size = fs->seen_bytes(path)->size();
    const std::uint64_t what = random.below(8);
    if (what < 5) {
      ASSERT_TRUE(fs->corrupt(path, random.below(size), std::byte{4}));
    } else if (what == 5) {
      testing::must(fs->open(path, OpenMode::read_write).value()->truncate(random.below(size)));
    } else if (what == 6) {
      ASSERT_TRUE(fs->remove(path));
    }
    const Report report = check(*fs, true);
    seglog::SegmentedLog::OpenOptions options;
    options.directory = kPartition;
    auto copy = fs->clone();
    auto log = seglog::SegmentedLog::open(*copy, options);
    bool loses = !log;
    if (log) {
      loses = !log.value()->open_report().lost.empty() || log.value()->open_report().hwm_missing;
      cut += log.value()->open_report().cut_bytes > 0 ? 1 : 0;
      // Opening looks at the active segment only; the rest is found when it is read.
      const auto view = log.value()->view();
      Offset next = view->oldest();
      while (next < view->hwm) {
        seglog::ReadRequest request;
        request.from = next;
        auto outcome = seglog::read_records(*copy, kPartition, *view, request,
                                            [](Offset, UnixMillis, const seglog::RecordView&) {});
        ASSERT_TRUE(outcome);
        loses |= !outcome.value().lost.empty();
        next = outcome.value().next;
      }
    }
    (loses ? lost : fine) += 1;
    // Damage that costs no record (a control frame) is a problem of the disk all the same.
    bool costs = false;
    for (const std::string& problem : texts(report, Kind::problem)) {
      costs |= problem.find("no record is missing") == std::string::npos;
    }
    ASSERT_EQ(costs, loses) << "seed " << seed << " " << path << "\n"
                            << (log ? "" : log.error().text()) << "\n"
                            << report.text();
  }
  EXPECT_GT(lost, 50u);
  EXPECT_GT(fine, 50u);
  EXPECT_GT(cut, 5u);
}

// ---- consumer state -----------------------------------------------------------------------

const std::string kSnapshot = kPartition + "/" + delivery::kSnapshotFileName;
const std::string kJournal = kPartition + "/" + delivery::kJournalFileName;

TEST(CheckConsumer, AnyByteFlipped_IsFound) {
  auto sound = partition();
  for (const std::string& path : {kSnapshot, kJournal}) {
    const std::size_t size = sound->seen_bytes(path)->size();
    for (std::size_t at = 0; at < size; ++at) {
      auto fs = sound->clone();
      ASSERT_TRUE(fs->corrupt(path, at, std::byte{2}));
      const Report report = check(*fs);
      ASSERT_FALSE(report.findings().empty()) << path << " byte " << at;
    }
  }
}

TEST(CheckConsumer, TornLastEntry_IsANoteAndDamageBeforeOthersAProblem) {
  auto fs = partition();
  const std::size_t size = fs->seen_bytes(kJournal)->size();
  auto middle = fs->clone();
  ASSERT_TRUE(fs->corrupt(kJournal, size - 1, std::byte{2}));
  EXPECT_EQ(check(*fs).result(), kClean) << check(*fs).text();
  EXPECT_EQ(check(*fs).count(Kind::note), 1u);
  ASSERT_TRUE(middle->corrupt(kJournal, delivery::kConsumerHeaderBytes + 25, std::byte{2}));
  EXPECT_THAT(texts(check(*middle), Kind::problem),
              ElementsAre(HasSubstr("does not verify, and others follow it")));
}

// Consumers acked what the log does not hold: the disk lost it.
TEST(CheckConsumer, PositionsAboveTheLog_AreALoss) {
  auto fs = partition();
  const delivery::SnapshotId id{testing::kIncarnation.value(), 9};
  testing::must(replace_file(
      *fs, kSnapshot, delivery::encode_snapshot(id, {Offset(70), {{Offset(75), Offset(80)}}})));
  ASSERT_TRUE(fs->remove(kJournal));
  const Report report = check(*fs);
  ASSERT_EQ(report.count(Kind::problem), 1u) << report.text();
  EXPECT_EQ(report.findings()[0].offsets, (Span{60, 80}));
  EXPECT_THAT(report.findings()[0].what,
              HasSubstr("consumers have acked records below 80: they were committed"));
}

// As a start judges it: the last commit, damaged, with a watermark file that lags.
TEST(CheckPartition, DamagedLastCommitThatWasAcked_IsAProblem) {
  for (const bool acked : {false, true}) {
    auto fs = partition(false);
    auto opened = delivery::ConsumerFiles::open(*fs, kPartition, testing::kIncarnation.value(),
                                                Offset(acked ? 70 : 60));
    testing::must(opened.value().files->snapshot({Offset(acked ? 70 : 60), {}}));
    const std::string path = segment(bases(*fs).back());
    ASSERT_TRUE(fs->corrupt(path, fs->seen_bytes(path)->size() - 3, std::byte{1}));
    const Report report = check(*fs, true);
    EXPECT_EQ(report.result(), acked ? kProblems : kClean) << report.text();
    if (!acked) continue;
    EXPECT_THAT(texts(report, Kind::problem),
                ::testing::Contains(HasSubstr("consumers have acked records below 70")));
  }
}

TEST(CheckPartition, StraySegmentFile_IsAProblemAndTheRecordsBehindItAreRead) {
  auto fs = partition();
  const auto sound = bases(*fs);
  for (const std::uint64_t base : {sound[0] + 3, sound.back() + 2}) {
    auto copy = fs->clone();
    testing::put(*copy, segment(base), "x");
    const Report report = check(*copy, true);
    EXPECT_THAT(texts(report, Kind::problem), ElementsAre(HasSubstr("is named like a segment")))
        << report.text();
    EXPECT_EQ(report.findings()[0].where, segment(base));
  }
}

TEST(CheckConsumer, StateOfAnotherLife_IsAProblemAndOfALaterReleaseUnchecked) {
  auto fs = partition();
  auto later = fs->clone();
  testing::must(replace_file(*fs, kSnapshot, delivery::encode_snapshot({5, 1}, {Offset(7), {}})));
  EXPECT_THAT(texts(check(*fs), Kind::problem).at(0), HasSubstr("belongs to incarnation"));
  Bytes bytes = *later->seen_bytes(kSnapshot);
  store_le(bytes.data() + 4, std::uint32_t{2});
  store_le(bytes.data() + 24, xxh3(ByteView(bytes).first(24), 0));
  testing::must(replace_file(*later, kSnapshot, bytes));
  EXPECT_NE(check(*later).result() & kUnchecked, 0);
}

}  // namespace
}  // namespace narad::fsck
