// Walking damaged segments, and what recovery makes of the walk: pure, over memory.
#include "pkg/seglog/scan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/seglog/control.h"
#include "pkg/seglog/recovery.h"
#include "pkg/sim/rng.h"

namespace narad::seglog {
namespace {

constexpr LogId kLog{0xabcdef};

// Builds a segment frame by frame and remembers where each one lies.
class Segment {
 public:
  explicit Segment(std::uint64_t base = 0) : next_(base) {
    Control control;
    control.log = kLog;
    control.base = Offset(base);
    control.sync_head = true;
    starts.push_back(0);
    append_control_frame(bytes, control);
  }
  Segment& frame(std::uint32_t records, bool sync_head, std::string_view payload = "payload") {
    starts.push_back(bytes.size());
    FrameWriter writer(bytes, kLog, {});
    writer.begin();
    for (std::uint32_t i = 0; i < records; ++i) writer.add({"key", payload});
    FrameHeader header;
    header.base = Offset(next_);
    header.origin = OriginId(1);
    header.last_sequence = Sequence(next_ + records);
    header.commit_time = UnixMillis(static_cast<std::int64_t>(next_));
    if (sync_head) header.flags = kFlagSyncHead;
    writer.end(header);
    next_ += records;
    return *this;
  }
  // Damages a byte of the header (or of the payload) of frame i; 0 is the control frame.
  Segment& damage_header(std::size_t i) {
    bytes[starts[i] + 9] ^= std::byte{0xff};
    return *this;
  }
  Segment& damage_payload(std::size_t i) {
    bytes[starts[i] + kHeaderBytes + 3] ^= std::byte{0xff};
    return *this;
  }
  std::uint64_t next() const { return next_; }

  Bytes bytes;
  std::vector<std::size_t> starts;

 private:
  std::uint64_t next_;
};

std::string describe(const ScanItem& item) {
  if (item.kind == ScanItem::Kind::frame) {
    return cat(item.header.is_control() ? "control" : "frame", " ", item.from, "-", item.to,
               item.verified ? "" : " unverified");
  }
  return cat("damage ", item.from, "-", item.to, item.open_ended ? "?" : "", " of ", item.bytes,
             " bytes");
}

std::vector<std::string> scan(const Segment& segment, Offset end = kNoOffset,
                              Offset verify_from = Offset(0), std::uint64_t base = 0) {
  MemorySource source(segment.bytes);
  ScanOptions o;
  o.log = kLog;
  o.expected = Offset(base);
  o.bytes = segment.bytes.size();
  o.end = end;
  o.verify_from = verify_from;
  SegmentScanner scanner(source, o);
  std::vector<std::string> out;
  while (scanner.next().value()) out.push_back(describe(scanner.item()));
  return out;
}

using Lines = std::vector<std::string>;

TEST(Scan, IntactSegment_Walked_ShowsEveryFrame) {
  Segment s;
  s.frame(2, true).frame(3, true);
  EXPECT_EQ(scan(s), (Lines{"control 0-0", "frame 0-2", "frame 2-5"}));
  EXPECT_EQ(scan(s, Offset(5), Offset(2)),
            (Lines{"control 0-0", "frame 0-2 unverified", "frame 2-5"}));
}

TEST(Scan, HeaderDamaged_NextFrameIsFoundAndTheRangeIsExact) {
  Segment s;
  s.frame(2, true).frame(3, true).frame(1, true).damage_header(2);
  const std::size_t bytes = s.starts[3] - s.starts[2];
  EXPECT_EQ(scan(s), (Lines{"control 0-0", "frame 0-2", cat("damage 2-5 of ", bytes, " bytes"),
                            "frame 5-6"}));
}

TEST(Scan, PayloadDamaged_TheHeaderTellsWhatIsLost) {
  Segment s;
  s.frame(2, true).frame(3, true).frame(1, true).damage_payload(2);
  const std::size_t bytes = s.starts[3] - s.starts[2];
  EXPECT_EQ(scan(s), (Lines{"control 0-0", "frame 0-2", cat("damage 2-5 of ", bytes, " bytes"),
                            "frame 5-6"}));
}

TEST(Scan, LastHeaderDamaged_OnlyTheEndOfTheSegmentTellsWhatIsLost) {
  Segment s;
  s.frame(2, true).frame(3, true).damage_header(2);
  const std::size_t bytes = s.bytes.size() - s.starts[2];
  EXPECT_EQ(scan(s).back(), cat("damage 2-2? of ", bytes, " bytes"));
  EXPECT_EQ(scan(s, Offset(5)).back(), cat("damage 2-5 of ", bytes, " bytes"));
}

TEST(Scan, FramesMissingBeforeTheNextSegment_AreReportedWithoutBytes) {
  Segment s;
  s.frame(2, true);
  EXPECT_EQ(scan(s, Offset(7)), (Lines{"control 0-0", "frame 0-2", "damage 2-7 of 0 bytes"}));
}

TEST(Scan, FramesAtOrPastTheNextSegmentsBase_AreNoPartOfTheLog) {
  Segment s;
  s.frame(2, true).frame(3, true);
  EXPECT_EQ(scan(s, Offset(2)), (Lines{"control 0-0", "frame 0-2"}));
  s.damage_header(1);
  const std::size_t bytes = s.starts[2] - s.starts[1];
  EXPECT_EQ(scan(s, Offset(2)), (Lines{"control 0-0", cat("damage 0-2 of ", bytes, " bytes")}));
}

TEST(Scan, TornTail_IsOpenEndedDamage) {
  Segment s;
  s.frame(2, true).frame(3, true);
  s.bytes.resize(s.bytes.size() - 1);
  const std::size_t bytes = s.bytes.size() - s.starts[2];
  EXPECT_EQ(scan(s).back(), cat("damage 2-5? of ", bytes, " bytes"));
  s.bytes.resize(s.starts[2] + 10);
  EXPECT_EQ(scan(s).back(), "damage 2-2? of 10 bytes");
}

TEST(Scan, BytesOfAFrameInsideAPayload_NeverLookLikeAFrame) {
  // A payload that holds a whole frame of another log, and one that even claims this log's bytes.
  Bytes foreign;
  FrameWriter writer(foreign, LogId(99), {});
  writer.begin();
  writer.add({"evil", "evil"});
  FrameHeader header;
  header.base = Offset(2);
  writer.end(header);
  Segment s;
  s.frame(2, true).frame(1, true, as_chars(foreign)).frame(1, true).damage_header(2);
  const std::size_t bytes = s.starts[3] - s.starts[2];
  EXPECT_EQ(scan(s), (Lines{"control 0-0", "frame 0-2", cat("damage 2-3 of ", bytes, " bytes"),
                            "frame 3-4"}));
}

TEST(Scan, FramesOfThisLogAtImpossibleOffsets_AreNotTakenAfterDamage) {
  Segment s, stale, far(2 + records_max_in(200) + 1);
  s.frame(2, true).frame(2, true).damage_header(2);
  s.bytes.resize(s.starts[2] + 70);
  stale.frame(1, true);  // base 0: below what is expected
  s.bytes.insert(s.bytes.end(), stale.bytes.begin(), stale.bytes.end());
  far.frame(1, true);  // further on than the bytes between could hold
  s.bytes.insert(s.bytes.end(), far.bytes.begin() + static_cast<std::ptrdiff_t>(far.starts[1]),
                 far.bytes.end());
  EXPECT_EQ(scan(s).back(), cat("damage 2-2? of ", s.bytes.size() - s.starts[2], " bytes"));
}

TEST(Scan, FrameWithAnotherBaseInItsPlace_IsDamage) {
  Segment s, other(5);
  s.frame(2, true);
  other.frame(1, true);
  s.bytes.insert(s.bytes.end(), other.bytes.begin() + static_cast<std::ptrdiff_t>(other.starts[1]),
                 other.bytes.end());
  const Lines lines = scan(s);
  EXPECT_TRUE(lines.back().starts_with("damage 2-2?")) << lines.back();
}

TEST(Scan, FrameOfANewerRelease_IsRefused) {
  Segment s;
  s.frame(2, true).frame(1, true);
  const std::size_t at = s.starts[2];
  s.bytes[at + 4] = std::byte{2};
  store_le(s.bytes.data() + at + 28, std::uint32_t{0});
  store_le(s.bytes.data() + at + 28,
           xxh3_low(ByteView(s.bytes).subspan(at, kHeaderBytes), kLog.value()));
  for (const bool behind_damage : {false, true}) {
    if (behind_damage) s.damage_header(1);
    MemorySource source(s.bytes);
    ScanOptions o;
    o.log = kLog;
    o.bytes = s.bytes.size();
    SegmentScanner scanner(source, o);
    Result<bool> more = true;
    while ((more = scanner.next()) && more.value()) {
    }
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code(), Errc::unavailable);
  }
}

TEST(Scan, ArbitraryDamage_Walked_AccountsForEveryByteAndOffset) {
  sim::Rng rng(77);
  for (int round = 0; round < 3000; ++round) {
    Segment s;
    const std::uint64_t frames = rng.below(6);
    for (std::uint64_t i = 0; i < frames; ++i) {
      s.frame(static_cast<std::uint32_t>(rng.range(1, 4)), rng.below(2) == 0);
    }
    for (std::uint64_t n = rng.below(4); n > 0; --n) {
      s.bytes[rng.below(s.bytes.size())] = static_cast<std::byte>(rng.next());
    }
    if (rng.below(4) == 0) s.bytes.resize(rng.below(s.bytes.size() + 1));
    const bool known_end = rng.below(2) == 0;
    const Offset end = known_end ? Offset(s.next()) : kNoOffset;
    MemorySource source(s.bytes);
    ScanOptions o;
    o.log = kLog;
    o.bytes = s.bytes.size();
    o.end = end;
    SegmentScanner scanner(source, o);
    std::uint64_t at = 0;
    Offset expected{0};
    while (scanner.next().value()) {
      const ScanItem& item = scanner.item();
      ASSERT_EQ(item.at, at);
      ASSERT_EQ(item.from, expected);
      ASSERT_LE(item.from, item.to);
      at += item.bytes;
      expected = item.to;
    }
    if (known_end) {
      ASSERT_EQ(expected, end);
    } else {
      ASSERT_EQ(at, s.bytes.size());
    }
  }
}

// ---- recovery
// --------------------------------------------------------------------------------------------

RecoveryPlan recover(const Segment& s, std::uint64_t persisted) {
  MemorySource source(s.bytes);
  ScanOptions o;
  o.log = kLog;
  o.bytes = s.bytes.size();
  SegmentScanner scanner(source, o);
  Recovery recovery(Offset(0), Offset(persisted), OriginTable(), UnixMillis(0));
  while (scanner.next().value()) {
    EXPECT_TRUE(recovery.feed(scanner.item(), kLog));
  }
  return recovery.finish(s.bytes.size());
}

using Holes = std::vector<LostRange>;

TEST(Recovery, IntactSegment_KeepsAllAndRaisesTheWatermark) {
  Segment s;
  s.frame(2, true).frame(3, true);
  const RecoveryPlan plan = recover(s, 2);
  EXPECT_FALSE(plan.cut_at);
  EXPECT_FALSE(plan.seal);
  EXPECT_EQ(plan.hwm, Offset(5));
  EXPECT_EQ(plan.keep_bytes, s.bytes.size());
  EXPECT_TRUE(plan.table.known(OriginId(1), Sequence(5)));
  EXPECT_EQ(plan.last_commit, UnixMillis(2));
}

TEST(Recovery, TornLastBatch_IsCutAtItsFirstDamagedByteAndNotInTheTable) {
  // One sync of three frames; the second was torn, the third landed.
  Segment s;
  s.frame(2, true).frame(1, true).frame(1, false).frame(1, false).damage_payload(3);
  const RecoveryPlan plan = recover(s, 2);
  EXPECT_EQ(plan.cut_at, s.starts[3]);
  EXPECT_EQ(plan.keep_bytes, s.starts[3]);
  EXPECT_EQ(plan.hwm, Offset(3));
  EXPECT_TRUE(plan.holes.empty());
  EXPECT_FALSE(plan.seal);
  EXPECT_TRUE(plan.table.known(OriginId(1), Sequence(3)));
  EXPECT_FALSE(plan.table.known(OriginId(1), Sequence(4)));
}

TEST(Recovery, DamageBelowTheWatermark_IsAHoleAndTheSegmentIsSealed) {
  Segment s;
  s.frame(2, true).frame(1, true).frame(2, true).damage_header(2);
  const RecoveryPlan plan = recover(s, 5);
  EXPECT_FALSE(plan.cut_at);
  EXPECT_EQ(plan.keep_bytes, s.bytes.size());
  EXPECT_EQ(plan.holes, (Holes{{Offset(2), Offset(3)}}));
  EXPECT_TRUE(plan.seal);
  EXPECT_EQ(plan.hwm, Offset(5));
}

TEST(Recovery, DamageAboveTheWatermarkFollowedByASyncHead_WasDurableAndIsAHole) {
  Segment s;
  s.frame(2, true).frame(1, true).frame(2, true).damage_header(2);
  const RecoveryPlan plan = recover(s, 0);
  EXPECT_FALSE(plan.cut_at);
  EXPECT_EQ(plan.holes, (Holes{{Offset(2), Offset(3)}}));
  EXPECT_EQ(plan.hwm, Offset(5));
  EXPECT_TRUE(plan.seal);
}

TEST(Recovery, DurableDamageAndATornTail_TheHoleStaysTheTailIsCut) {
  Segment s;
  s.frame(2, true).frame(1, true).frame(2, true).frame(1, true).frame(1, false);
  s.damage_payload(1).damage_header(4);
  const RecoveryPlan plan = recover(s, 2);
  EXPECT_EQ(plan.cut_at, s.starts[4]);
  EXPECT_EQ(plan.holes, (Holes{{Offset(0), Offset(2)}}));
  EXPECT_EQ(plan.hwm, Offset(5));
  EXPECT_TRUE(plan.seal);
}

TEST(Recovery, EndBelowTheWatermark_KeepsEveryByteAndGoesOnAtTheWatermark) {
  Segment s;
  s.frame(2, true).frame(3, true).damage_header(2);
  RecoveryPlan plan = recover(s, 5);
  EXPECT_FALSE(plan.cut_at);
  EXPECT_EQ(plan.keep_bytes, s.bytes.size());
  EXPECT_EQ(plan.holes, (Holes{{Offset(2), Offset(5)}}));
  EXPECT_EQ(plan.hwm, Offset(5));
  EXPECT_TRUE(plan.seal);
  s.bytes.resize(s.starts[2]);
  plan = recover(s, 5);
  EXPECT_EQ(plan.holes, (Holes{{Offset(2), Offset(5)}}));
  EXPECT_TRUE(plan.seal);
}

TEST(Recovery, DamagedFrameAcrossTheWatermark_LosesNothingThatCannotExist) {
  Segment s;
  s.frame(2, true).frame(3, true).damage_payload(2);
  const RecoveryPlan plan = recover(s, 3);
  EXPECT_EQ(plan.hwm, Offset(3));
  EXPECT_EQ(plan.holes, (Holes{{Offset(2), Offset(3)}}));
}

TEST(Recovery, EmptyOrWhollyDamagedSegmentWithoutRecords_StartsAgain) {
  Segment s;
  s.damage_header(0);
  const RecoveryPlan plan = recover(s, 0);
  EXPECT_EQ(plan.cut_at, 0u);
  EXPECT_EQ(plan.keep_bytes, 0u);
  EXPECT_EQ(plan.hwm, Offset(0));
  EXPECT_FALSE(plan.seal);
}

// Random scripts of commits, torn the way power cuts tear, against what was acknowledged.
TEST(Recovery, RandomTornSyncs_KeepWhatWasAcknowledgedAndAddOnlyAPrefixOfTheLastBatch) {
  sim::Rng rng(2024);
  std::uint64_t cuts = 0;
  for (int round = 0; round < 5000; ++round) {
    Segment s;
    const std::uint64_t batches = rng.range(1, 5);
    std::uint64_t acknowledged = 0, persisted = 0;
    std::size_t last_batch_at = 0, last_batch_frame = 0;
    for (std::uint64_t b = 0; b < batches; ++b) {
      acknowledged = s.next();
      if (rng.below(3) == 0) persisted = acknowledged;
      last_batch_at = s.bytes.size();
      last_batch_frame = s.starts.size();
      const std::uint64_t frames = rng.range(1, 4);
      for (std::uint64_t f = 0; f < frames; ++f) {
        s.frame(static_cast<std::uint32_t>(rng.range(1, 3)), f == 0,
                std::string(rng.below(300), 'p'));
      }
    }
    // The last batch's sync did not complete: each sector of it landed or reads as zeros.
    const Bytes whole = s.bytes;
    for (std::size_t at = last_batch_at; at < s.bytes.size();) {
      const std::size_t n = std::min<std::size_t>(512 - at % 512, s.bytes.size() - at);
      if (rng.below(2) == 0)
        std::fill_n(s.bytes.begin() + static_cast<std::ptrdiff_t>(at), n, std::byte{0});
      at += n;
    }
    const RecoveryPlan plan = recover(s, persisted);
    ASSERT_GE(plan.hwm, Offset(acknowledged));
    ASSERT_TRUE(plan.holes.empty());
    ASSERT_FALSE(plan.seal);
    // The first frame of the batch that changed says how much of the batch can be kept.
    std::size_t keep = whole.size();
    for (std::size_t f = last_batch_frame; f < s.starts.size(); ++f) {
      const std::size_t end = f + 1 < s.starts.size() ? s.starts[f + 1] : whole.size();
      if (!std::equal(whole.begin() + static_cast<std::ptrdiff_t>(s.starts[f]),
                      whole.begin() + static_cast<std::ptrdiff_t>(end),
                      s.bytes.begin() + static_cast<std::ptrdiff_t>(s.starts[f]))) {
        keep = s.starts[f];
        break;
      }
    }
    ASSERT_EQ(plan.keep_bytes, keep);
    cuts += plan.cut_at ? 1 : 0;
  }
  EXPECT_GT(cuts, 1000u);
}

// ---- origin table
// -------------------------------------------------------------------------------------------

TEST(OriginTable, SevenDaysOlderThanTheNewest_IsDroppedWhenANewOriginComes) {
  OriginTable t;
  t.advance(OriginId(1), Sequence(5), UnixMillis(1000));
  t.advance(OriginId(2), Sequence(5), UnixMillis(1001));
  t.advance(OriginId(3), Sequence(1), UnixMillis(1001 + kOriginMillisMax));
  EXPECT_FALSE(t.known(OriginId(1), Sequence(1)));
  EXPECT_TRUE(t.known(OriginId(2), Sequence(5)));
  EXPECT_EQ(t.dropped(), 1u);
  t.check_invariants();
}

TEST(OriginTable, MoreThanItsLimit_DropsTheLeastRecentlyUsed) {
  OriginTable t;
  for (std::uint64_t o = 1; o <= kOriginsMax; ++o) {
    t.advance(OriginId(o), Sequence(1), UnixMillis(static_cast<std::int64_t>(o)));
  }
  t.touch(OriginId(1));
  t.advance(OriginId(5000), Sequence(1), UnixMillis(9999));
  EXPECT_EQ(t.size(), kOriginsMax);
  EXPECT_TRUE(t.known(OriginId(1), Sequence(1)));
  EXPECT_FALSE(t.known(OriginId(2), Sequence(1)));
  EXPECT_EQ(t.dropped(), 1u);
  const OriginTable again(t.entries());
  EXPECT_EQ(again.entries(), t.entries());
  t.check_invariants();
  again.check_invariants();
}

TEST(OriginTable, ReroutedControlAndOriginlessFrames_ChangeNothing) {
  OriginTable t;
  FrameHeader h;
  h.records = 1;
  h.last_sequence = Sequence(9);
  t.advance(h);
  h.origin = OriginId(1);
  h.flags = kFlagRerouted;
  t.advance(h);
  h.flags = kFlagControl;
  t.advance(h);
  EXPECT_EQ(t.size(), 0u);
  h.flags = 0;
  t.advance(h);
  EXPECT_TRUE(t.known(OriginId(1), Sequence(9)));
  t.advance(OriginId(1), Sequence(4), UnixMillis(5));
  EXPECT_TRUE(t.known(OriginId(1), Sequence(9))) << "never falls";
}

}  // namespace
}  // namespace narad::seglog
