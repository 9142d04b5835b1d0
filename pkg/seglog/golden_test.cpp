// Files of every format as the first release writes them. They are read for ever: a change here is
// a new version beside the old one, never an edit of the files.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "pkg/seglog/digest.h"
#include "pkg/seglog/test_log.h"

namespace narad::seglog {
namespace {

using namespace testing;

constexpr const char* kGolden = "testdata/seglog/";
constexpr UnixMillis kNow{1'767'225'600'000};

Bytes golden(const std::string& name) {
  std::ifstream in(kGolden + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name << " is missing";
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return to_bytes(text);
}

void expect_golden(const std::string& name, ByteView bytes) {
  if (std::getenv("NARAD_WRITE_GOLDEN") != nullptr) {
    std::ofstream(kGolden + name, std::ios::binary) << as_chars(bytes);
  }
  EXPECT_EQ(to_hex(golden(name)), to_hex(bytes)) << name;
}

// Two segments: plain, compressed, rerouted and originless frames, with a table in between.
std::unique_ptr<sim::SimFs> write_all_kinds() {
  auto fs = new_disk();
  Knobs knobs;
  knobs.segment_bytes = 600;
  auto log = SegmentedLog::open(*fs, options(knobs));
  EXPECT_TRUE(log);
  EXPECT_TRUE(append(*log.value(), recs(0x0101, 1, 3), kNow));
  EXPECT_TRUE(append(*log.value(), recs(0, 1, 1), UnixMillis(kNow.value() + 1)));
  auto rerouted = recs(0x0202, 7, 7);
  rerouted.front().rerouted = true;
  EXPECT_TRUE(append(*log.value(), rerouted, UnixMillis(kNow.value() + 2)));
  EXPECT_TRUE(append(*log.value(), recs(0x0303, 40, 48), UnixMillis(kNow.value() + 3)));
  EXPECT_EQ(log.value()->view()->segments(), 2u);
  EXPECT_TRUE(log.value()->close());
  return fs;
}

TEST(GoldenFiles, WrittenToday_AreByteForByteTheSame) {
  auto fs = write_all_kinds();
  expect_golden("segment-sealed.v1.log", *fs->seen_bytes(file_path(Offset(0))));
  expect_golden("segment-active.v1.log", *fs->seen_bytes(file_path(Offset(5))));
  expect_golden("segment-sealed.v1.sum", *fs->seen_bytes(file_path(Offset(0), kSumSuffix)));
  expect_golden("hwm.v1", *fs->seen_bytes("/p/hwm"));
}

TEST(GoldenFiles, OfTheFirstRelease_AreReadWhole) {
  auto fs = new_disk();
  const auto put = [&](const std::string& path, const std::string& name) {
    ASSERT_TRUE(replace_file(*fs, path, golden(name)));
  };
  put(file_path(Offset(0)), "segment-sealed.v1.log");
  put(file_path(Offset(5)), "segment-active.v1.log");
  put(file_path(Offset(0), kSumSuffix), "segment-sealed.v1.sum");
  put("/p/hwm", "hwm.v1");
  auto log = SegmentedLog::open(*fs, options());
  ASSERT_TRUE(log) << log.error().text();
  EXPECT_TRUE(log.value()->open_report().clean);
  EXPECT_EQ(log.value()->id(), kLog);
  EXPECT_EQ(log.value()->hwm(), Offset(14));
  EXPECT_EQ(log.value()->last_commit(), UnixMillis(kNow.value() + 3));
  EXPECT_TRUE(log.value()->origins().known(OriginId(0x0101), Sequence(3)));
  EXPECT_FALSE(log.value()->origins().known(OriginId(0x0202), Sequence(7)));
  EXPECT_TRUE(log.value()->origins().known(OriginId(0x0303), Sequence(48)));
  auto content = read_all(*fs, *log.value()->view(), Offset(0));
  ASSERT_TRUE(content);
  EXPECT_TRUE(content.value().lost.empty());
  ASSERT_EQ(content.value().records.size(), 14u);
  EXPECT_EQ(content.value().records[0].first, "k257-1");
  EXPECT_EQ(content.value().records[13].second, rec(0x0303, 48).payload);
  const auto sum = decode_sum(golden("segment-sealed.v1.sum"), kLog);
  ASSERT_TRUE(sum);
  BlockDigester direct(kLog);
  direct.update(golden("segment-sealed.v1.log"));
  EXPECT_EQ(sum->digests, direct.digests());
}

// What zstd writes may differ between its versions; what it wrote once must be read for ever.
TEST(GoldenFiles, CompressedSegment_IsReadWhole) {
  if (std::getenv("NARAD_WRITE_GOLDEN") != nullptr) {
    auto fs = new_disk();
    Knobs knobs;
    knobs.compression = {Codec::zstd, 3};
    auto log = SegmentedLog::open(*fs, options(knobs));
    ASSERT_TRUE(append(*log.value(), recs(1, 1, 20, 200), kNow));
    ASSERT_TRUE(log.value()->close());
    expect_golden("segment-zstd.v1.log", *fs->seen_bytes(file_path(Offset(0))));
  }
  auto fs = new_disk();
  ASSERT_TRUE(replace_file(*fs, file_path(Offset(0)), golden("segment-zstd.v1.log")));
  auto log = SegmentedLog::open(*fs, options());
  ASSERT_TRUE(log) << log.error().text();
  auto content = read_all(*fs, *log.value()->view(), Offset(0));
  ASSERT_TRUE(content);
  ASSERT_EQ(content.value().records.size(), 20u);
  EXPECT_EQ(content.value().records[19].second, rec(1, 20, 200).payload);
}

}  // namespace
}  // namespace narad::seglog
