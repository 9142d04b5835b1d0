#include "internal/moves/cursor_rules.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"

namespace narad::moves {
namespace {

using From = CursorStart::From;

const wire::ChildLink kA{"orders-a", "000000000000000a"};
const wire::ChildLink kAgain{"orders-a", "00000000000000aa"};  // attached anew
const wire::ChildLink kB{"orders-b", "000000000000000b"};
constexpr Offset kOldest{40}, kHwm{100};
constexpr Incarnation kLife{7};

FanoutCursor cursor(const wire::ChildLink& link, std::uint64_t next) {
  return {3, *parse_hex16(link.epoch), Offset(next), link.child};
}
CursorStart start(const LinkRecords& records, const wire::ChildLink& link) {
  return cursor_start(records, link, kOldest, kHwm);
}

TEST(CursorRules, CUR_3_StoredPosition_IsGoneOnFrom) {
  LinkRecords records;
  records.cursors = {cursor(kB, 50), cursor(kA, 70)};
  for (const bool installed : {false, true}) {
    if (installed) records.installed = {kA, kB};
    EXPECT_EQ(start(records, kA), (CursorStart{From::cursor, Offset(70)}));
    EXPECT_EQ(start(records, kB), (CursorStart{From::cursor, Offset(50)}));
  }
}

TEST(CursorRules, StoredPositionBelowWhatIsRetained_IsKept_SoThatWhatWasMissedCanBeCounted) {
  LinkRecords records;
  records.cursors = {cursor(kA, 10)};
  EXPECT_EQ(start(records, kA), (CursorStart{From::cursor, Offset(10)}));
}

TEST(CursorRules, CUR_6_StoredPositionPastTheWatermark_IsLoweredToIt) {
  LinkRecords records;
  records.cursors = {cursor(kA, 101)};
  EXPECT_EQ(start(records, kA), (CursorStart{From::cursor, kHwm}));
}

TEST(CursorRules, CUR_7_CUR_9_LinkOfTheMarkerWithoutACursor_BeginsAtTheOldestAndNeverAtTheTail) {
  LinkRecords records;
  records.installed = {kB, kA};
  EXPECT_EQ(start(records, kA), (CursorStart{From::oldest, kOldest}));
  records.cursors = {cursor(kB, 70)};
  EXPECT_EQ(start(records, kA), (CursorStart{From::oldest, kOldest}));
}

TEST(CursorRules, CUR_7_CursorThatDoesNotVerify_WasSomewhereBehindTheTail) {
  LinkRecords records;
  records.damaged = {cursor_file_name(kA.child)};
  EXPECT_EQ(start(records, kA), (CursorStart{From::oldest, kOldest}));
  EXPECT_EQ(start(records, kB), (CursorStart{From::tail, kHwm}));
}

TEST(CursorRules, CUR_7_MarkerThatCannotBeRead_MayHaveNamedIt) {
  LinkRecords records;
  records.marker_unreadable = true;
  EXPECT_EQ(start(records, kA), (CursorStart{From::oldest, kOldest}));
}

TEST(CursorRules, CUR_10_LinkAttachedLater_BeginsAtTheTail) {
  LinkRecords records;
  EXPECT_EQ(start(records, kA), (CursorStart{From::tail, kHwm})) << "no move brought this copy";
  records.installed = {kA, kB};
  records.cursors = {cursor(kA, 50), cursor(kB, 60)};
  EXPECT_EQ(start(records, kAgain), (CursorStart{From::tail, kHwm}))
      << "neither marker nor cursor of an earlier attachment speak of it";
}

TEST(CursorRules, G24_LinkWithoutACursor_IsAnchoredWhereItWouldStartAtTheSource) {
  LinkRecords records;
  records.cursors = {cursor(kA, 50)};
  records.installed = {kB};
  const wire::ChildLink fresh{"orders-c", "000000000000000c"};
  const std::vector<wire::Sidecar> shipped{{kA.child, "as it is"}};
  const auto all = with_anchors(shipped, records, {kA, kB, fresh}, kLife, kOldest, kHwm);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0], shipped[0]);
  const auto lost = decode_cursor_file(as_bytes(all[1].bytes), kLife);
  const auto at_tail = decode_cursor_file(as_bytes(all[2].bytes), kLife);
  EXPECT_EQ(lost, (FanoutCursor{1, 0xb, kOldest, kB.child})) << "it came without, too";
  EXPECT_EQ(at_tail, (FanoutCursor{1, 0xc, kHwm, fresh.child}));
}

TEST(CursorRules, G24_CursorOfAnEarlierAttachment_MakesWayForTheAnchor) {
  LinkRecords records;
  records.cursors = {cursor(kA, 50)};
  const std::vector<wire::Sidecar> shipped{{kA.child, "of the attachment before"}};
  const auto all = with_anchors(shipped, records, {kAgain}, kLife, kOldest, kHwm);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(decode_cursor_file(as_bytes(all[0].bytes), kLife),
            (FanoutCursor{1, 0xaa, kHwm, kA.child}));
}

TEST(CursorRules, Links_AreJoinedByChildAndEpoch) {
  EXPECT_EQ(joined_links({kA}, {kB, kA, kAgain}), (std::vector{kA, kB, kAgain}));
  EXPECT_EQ(joined_links({}, {}), std::vector<wire::ChildLink>{});
}

}  // namespace
}  // namespace narad::moves
