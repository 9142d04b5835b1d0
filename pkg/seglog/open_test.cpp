// Opening a log whose files contradict what else is known of it.
#include <gtest/gtest.h>

#include "pkg/seglog/log.h"
#include "pkg/seglog/test_log.h"

namespace narad::seglog {
namespace {

using namespace testing;

// The last commit is damaged, nothing follows it, and the watermark file lags: by itself that is
// the picture of a sync that never completed.
TEST(Open, LastCommitDamagedAndKnownToHaveBeenCommitted_IsAHoleAndItsOffsetsAreNotReused) {
  for (const bool payload : {true, false}) {
    for (const bool known : {false, true}) {
      auto fs = new_disk();
      auto log = open_log(*fs);
      ASSERT_TRUE(append(*log, recs(4, 1, 5)));
      const std::uint64_t at = log->view()->active.bytes;
      ASSERT_TRUE(append(*log, recs(4, 6, 9)));
      log.reset();
      fs->process_restart();
      ASSERT_TRUE(
          fs->corrupt(file_path(Offset(0)), at + (payload ? kHeaderBytes + 3 : 3), std::byte{4}));
      auto o = options();
      if (known) o.durable_below = Offset(8);
      auto opened = SegmentedLog::open(*fs, o);
      ASSERT_TRUE(opened) << opened.error().text();
      log = std::move(opened).value();
      const OpenReport& report = log->open_report();
      if (!known) {
        EXPECT_EQ(log->hwm(), Offset(5));
        EXPECT_GT(report.cut_bytes, 0u);
        EXPECT_FALSE(report.ended_below);
        const std::vector<OriginMark> marks{{OriginId(4), Sequence(9)}};
        EXPECT_EQ(report.cut_origins, payload ? marks : std::vector<OriginMark>{});
        continue;
      }
      EXPECT_EQ(report.cut_bytes, 0u);
      EXPECT_EQ(report.ended_below, Offset(8));
      EXPECT_EQ(log->hwm(), Offset(8));
      EXPECT_EQ(report.lost, (std::vector<LostRange>{{Offset(5), Offset(8)}}));
      auto next = append(*log, recs(4, 10, 10));
      ASSERT_TRUE(next);
      EXPECT_GE(next.value().first, Offset(8));
      auto content = read_all(*fs, *log->view(), Offset(0));
      ASSERT_TRUE(content);
      EXPECT_EQ(dump(content.value().lost), "[5,8) ");
      // It stays so.
      ASSERT_TRUE(log->close());
      log = open_log(*fs);
      EXPECT_EQ(log->hwm(), Offset(9));
      EXPECT_TRUE(log->open_report().clean);
    }
  }
}

TEST(Open, LogCutShortBelowWhatWasAcked_ReportsTheLossAlsoAfterACleanClose) {
  auto fs = new_disk();
  auto log = open_log(*fs);
  ASSERT_TRUE(append(*log, recs(4, 1, 5)));
  ASSERT_TRUE(log->close());
  log.reset();
  auto o = options();
  o.durable_below = Offset(5);
  EXPECT_TRUE(SegmentedLog::open(*fs, o).value()->open_report().clean) << "nothing is missing";
  o.durable_below = Offset(7);
  auto opened = SegmentedLog::open(*fs, o);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened.value()->hwm(), Offset(7));
  EXPECT_EQ(opened.value()->open_report().ended_below, Offset(7));
  EXPECT_EQ(opened.value()->open_report().lost, (std::vector<LostRange>{{Offset(5), Offset(7)}}));
}

// A file that is named like a segment must not hide the records behind its name.
TEST(Open, StraySegmentFile_IsSetAsideAndHidesNothing) {
  struct Case {
    std::uint64_t base_from_end;  // how far below the watermark
    std::size_t bytes;
    bool persist;
  };
  for (const auto& [below, bytes, persist] :
       {Case{3, 0, false}, Case{3, 0, true}, Case{3, 10, true}, Case{3, 200, true},
        Case{30, 0, true}, Case{30, 40, false}}) {
    auto fs = new_disk();
    auto log = open_log(*fs, small());
    const std::vector<Rec> all = fill(*log, 3);
    ASSERT_GT(all.size(), 30u);
    if (persist) ASSERT_TRUE(log->persist_hwm());
    const Offset base(all.size() - below);
    ASSERT_FALSE(fs->seen_bytes(file_path(base)));
    log.reset();
    fs->process_restart();
    const std::string garbage(bytes, 'g');
    ASSERT_TRUE(replace_file(*fs, file_path(base), as_bytes(garbage)));
    log = open_log(*fs, small());
    expect_content(*fs, *log, all);
    ASSERT_EQ(log->open_report().strays.size(), 1u);
    const std::string aside = log->open_report().strays[0];
    EXPECT_EQ(aside, cat(file_path(base), ".stray"));
    EXPECT_EQ(to_text(*fs->seen_bytes(aside)), garbage) << "kept";
    ASSERT_TRUE(append(*log, recs(9, 1, 3)));
    ASSERT_TRUE(log->close());
    log = open_log(*fs, small());
    EXPECT_TRUE(log->open_report().clean);
    EXPECT_TRUE(log->open_report().strays.empty());
  }
}

// The active segment whose control frame is damaged, right behind a full one, is no stray.
TEST(Open, DamagedActiveSegmentThatFollowsItsPredecessor_IsNoStray) {
  auto fs = new_disk();
  auto log = open_log(*fs, small());
  fill(*log, 3);
  const Offset base = log->view()->active.base;
  ASSERT_TRUE(log->persist_hwm());
  log.reset();
  fs->process_restart();
  ASSERT_TRUE(fs->corrupt(file_path(base), 3, std::byte{1}));
  log = open_log(*fs, small());
  EXPECT_TRUE(log->open_report().strays.empty());
}

}  // namespace
}  // namespace narad::seglog
