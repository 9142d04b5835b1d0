#include "internal/moves/sweep_rules.h"

#include <gtest/gtest.h>

#include <functional>

namespace narad::moves {
namespace {

constexpr std::int64_t kHour = 3'600'000;
constexpr LogId kLog{7};

SweepTerms terms() {
  SweepTerms t;
  t.self = "old";
  t.now = UnixMillis(100 * kHour);
  t.retention_ms = 10 * kHour;
  t.clock_trusted = true;
  return t;
}

// Three segments, of records 0 to 29, all young.
LocalCopy copy() {
  LocalCopy c;
  c.log = kLog;
  for (const std::uint64_t base : {0, 10, 20}) {
    c.segments.push_back({Offset(base), 1000 + base, base != 20, UnixMillis(99 * kHour)});
  }
  c.end = Offset(30);
  return c;
}

// The owner after a move from "old" at offset 30; it has gone on since.
wire::Listing owner() {
  wire::Listing l;
  l.incarnation = Incarnation(5);
  l.log = kLog;
  l.hwm = Offset(50);
  for (const LocalSegment& s : copy().segments) {
    l.segments.push_back({s.base, s.sealed ? s.bytes : s.bytes + 500, s.sealed, s.mtime});
  }
  wire::MoveMarker marker;
  marker.source = "old";
  marker.self = "new";
  marker.incarnation = Incarnation(5);
  marker.promoted_hwm = Offset(30);
  marker.durable_at = UnixMillis(98 * kHour);
  l.marker = marker;
  return l;
}

SweepVerdict verdict(const LocalCopy& c, const wire::Listing& l) {
  return judge_stale_copy(c, l, terms()).verdict;
}

TEST(SweepRules, SWP_7_everything_vouched_for_is_reclaimed) {
  EXPECT_EQ(verdict(copy(), owner()), SweepVerdict::reclaim);
}

TEST(SweepRules, SWP_3_SWP_4_beyond_the_lower_of_hwm_and_promotion_is_quarantined) {
  LocalCopy longer = copy();
  longer.end = Offset(31);
  EXPECT_EQ(verdict(longer, owner()), SweepVerdict::quarantine);
  wire::Listing behind = owner();
  behind.hwm = Offset(29);
  EXPECT_EQ(verdict(copy(), behind), SweepVerdict::quarantine);
  wire::Listing promoted_less = owner();
  promoted_less.marker->promoted_hwm = Offset(25);
  promoted_less.marker->force_promoted = true;
  EXPECT_EQ(verdict(copy(), promoted_less), SweepVerdict::quarantine);
}

TEST(SweepRules, SWP_6a_an_owner_without_records_vouches_for_nothing) {
  wire::Listing empty = owner();
  empty.segments.clear();
  empty.hwm = Offset(0);
  EXPECT_EQ(verdict(copy(), empty), SweepVerdict::quarantine);
  wire::Listing all_expired = owner();
  all_expired.segments = {{Offset(50), 100, false, UnixMillis(99 * kHour)}};
  EXPECT_EQ(verdict(copy(), all_expired), SweepVerdict::quarantine);
}

TEST(SweepRules, SWP_6b_MRK_7_an_owner_without_marker_did_not_get_its_records_here) {
  wire::Listing unmarked = owner();
  unmarked.marker.reset();
  EXPECT_EQ(verdict(copy(), unmarked), SweepVerdict::quarantine);
}

TEST(SweepRules, SWP_6c_a_marker_from_another_node_vouches_for_that_node) {
  wire::Listing onward = owner();
  onward.marker->source = "third";
  EXPECT_EQ(verdict(copy(), onward), SweepVerdict::quarantine);
}

TEST(SweepRules, SWP_6d_a_missing_or_shorter_segment_is_quarantined) {
  wire::Listing hole = owner();
  hole.segments.erase(hole.segments.begin() + 1);
  EXPECT_EQ(verdict(copy(), hole), SweepVerdict::quarantine);
  wire::Listing shorter = owner();
  shorter.segments[0].bytes -= 1;
  EXPECT_EQ(verdict(copy(), shorter), SweepVerdict::quarantine);
  wire::Listing active_shorter = owner();  // its size is not compared (G50)
  active_shorter.segments[2].bytes = 10;
  EXPECT_EQ(verdict(copy(), active_shorter), SweepVerdict::reclaim);
}

TEST(SweepRules, SWP_9_a_leftover_install_is_judged_like_any_copy) {
  // This node was a destination once: the owner never got its records from it.
  wire::Listing never_moved = owner();
  never_moved.marker->source = "elsewhere";
  EXPECT_EQ(verdict(copy(), never_moved), SweepVerdict::quarantine);
}

// It was called dead and went on serving: what it took after the promotion is nowhere else.
TEST(SweepRules, SRC_15_a_cut_off_source_keeps_what_it_took_after_the_promotion) {
  wire::Listing promoted = owner();
  promoted.marker->force_promoted = true;
  promoted.marker->promoted_hwm = Offset(25);
  promoted.hwm = Offset(90);  // the same offsets are other records there
  EXPECT_EQ(verdict(copy(), promoted), SweepVerdict::quarantine);
  LocalCopy stopped = copy();
  stopped.end = Offset(25);
  EXPECT_EQ(verdict(stopped, promoted), SweepVerdict::reclaim) << "it took nothing more";
}

TEST(SweepRules, SWP_5_only_unexpired_records_count) {
  LocalCopy old = copy();
  for (LocalSegment& s : old.segments) s.mtime = UnixMillis(80 * kHour);
  wire::Listing unmarked = owner();
  unmarked.marker.reset();
  EXPECT_FALSE(holds_wanted_records(old, terms()));
  EXPECT_EQ(verdict(old, unmarked), SweepVerdict::reclaim);
  SweepTerms distrusted = terms();
  distrusted.clock_trusted = false;
  EXPECT_TRUE(holds_wanted_records(old, distrusted));
  EXPECT_EQ(judge_stale_copy(old, unmarked, distrusted).verdict, SweepVerdict::quarantine);
  SweepTerms for_ever = terms();
  for_ever.retention_ms = 0;
  EXPECT_TRUE(holds_wanted_records(old, for_ever));
  // One in the future has no age.
  old.segments[2].mtime = UnixMillis(200 * kHour);
  EXPECT_TRUE(holds_wanted_records(old, terms()));
}

TEST(SweepRules, SegmentThatExpiresWithinMinutes_MayBeGoneAtTheOwner) {
  LocalCopy c = copy();
  c.segments[0].mtime = UnixMillis(90 * kHour + 60'000);  // expires in a minute
  wire::Listing l = owner();
  l.segments.erase(l.segments.begin());
  EXPECT_EQ(verdict(c, l), SweepVerdict::reclaim);
  c.segments[0].mtime = UnixMillis(90 * kHour + 10 * 60'000);  // in ten
  EXPECT_EQ(verdict(c, l), SweepVerdict::quarantine);
}

TEST(SweepRules, DUR_5_an_undurable_copy_is_left_five_minutes) {
  wire::Listing undurable = owner();
  undurable.marker->durable_at.reset();
  EXPECT_EQ(verdict(copy(), undurable), SweepVerdict::defer);
  undurable.marker_age_ms = 5 * 60 * 1000 - 1;
  EXPECT_EQ(verdict(copy(), undurable), SweepVerdict::defer);
  undurable.marker_age_ms = 5 * 60 * 1000;
  EXPECT_EQ(verdict(copy(), undurable), SweepVerdict::reclaim);
}

TEST(SweepRules, AnotherLogOrAnotherLife_IsNeverReclaimed) {
  wire::Listing other_log = owner();
  other_log.log = LogId(8);
  EXPECT_EQ(verdict(copy(), other_log), SweepVerdict::quarantine);
  LocalCopy nameless = copy();
  nameless.log.reset();
  EXPECT_EQ(verdict(nameless, owner()), SweepVerdict::quarantine);
  wire::Listing other_life = owner();
  other_life.marker->incarnation = Incarnation(4);
  EXPECT_EQ(verdict(copy(), other_life), SweepVerdict::quarantine);
  wire::Listing older_peer = owner();  // says nothing of its log
  older_peer.log = LogId(0);
  EXPECT_EQ(verdict(copy(), older_peer), SweepVerdict::reclaim);
}

TEST(SweepRules, DirectoryWithoutSegments_GoesOnlyIfItIsEmpty) {
  LocalCopy nothing;
  nothing.empty_directory = true;
  EXPECT_EQ(verdict(nothing, owner()), SweepVerdict::reclaim);
  nothing.empty_directory = false;  // its segments are gone, or something else lies there
  EXPECT_EQ(verdict(nothing, owner()), SweepVerdict::quarantine);
  LocalCopy never_written = copy();
  never_written.segments = {{Offset(0), 60, false, UnixMillis(99 * kHour)}};
  never_written.end = Offset(0);
  wire::Listing unmarked = owner();
  unmarked.marker.reset();
  EXPECT_EQ(verdict(never_written, unmarked), SweepVerdict::reclaim);
}

TEST(SweepRules, NeverUsedPartition_GoesUnlessARecordIsFound) {
  LocalCopy copy;
  copy.empty_directory = true;
  EXPECT_EQ(judge_unused_copy(copy).verdict, SweepVerdict::reclaim);
  copy.empty_directory = false;
  EXPECT_EQ(judge_unused_copy(copy).verdict, SweepVerdict::reclaim);
  copy.segments = {{Offset(0), 60, false, UnixMillis(1)}};
  EXPECT_EQ(judge_unused_copy(copy).verdict, SweepVerdict::reclaim);
  copy.end = Offset(1);
  EXPECT_EQ(judge_unused_copy(copy).verdict, SweepVerdict::quarantine);
  copy.segments = {{Offset(0), 60, true, UnixMillis(1)}, {Offset(1), 60, false, UnixMillis(1)}};
  EXPECT_EQ(judge_unused_copy(copy).verdict, SweepVerdict::quarantine) << "a sealed segment";
}

}  // namespace
}  // namespace narad::moves
