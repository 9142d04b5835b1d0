// What the owner lists and ships of a partition: committed bytes, in an order in which nothing is
// ahead of what is listed after it.
#include "internal/node/source_partitions.h"

#include "internal/moves/cursor_file.h"
#include "internal/node/move_world_for_test.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/sums.h"

namespace narad::node {
namespace {

using namespace testing;

class MoveListing : public MoveWorld {
 protected:
  Result<std::string> chunk(Offset base, std::uint64_t from, std::uint64_t length,
                            std::uint32_t p = 0) {
    return run(life->source->chunk(move(p), base, from, length));
  }
  // All that is listed of a segment, in pieces.
  std::string whole(const wire::ListedSegment& segment, std::uint64_t piece = 1000) {
    std::string out;
    while (out.size() < segment.bytes) {
      auto part = chunk(segment.base, out.size(), std::min(piece, segment.bytes - out.size()));
      EXPECT_TRUE(part);
      if (!part || part.value().empty()) break;
      out += part.value();
    }
    return out;
  }
  std::string on_disk(Offset base, std::uint32_t p = 0) {
    const auto bytes = solo.machine.disk().seen_bytes(path(p, seglog::segment_name(base)));
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
  void write_file(const std::string& name, std::string_view text) {
    const ByteView bytes(reinterpret_cast<const std::byte*>(text.data()), text.size());
    ASSERT_TRUE(replace_file(solo.machine.disk(), path(0, name), bytes));
  }
};

seglog::Knobs small_segments() {
  seglog::Knobs knobs;
  knobs.segment_bytes = 4096;
  return knobs;
}

TEST_F(MoveListing, CMT_4_AGE_2_NamesTheMoveTheLogAndEverySegment) {
  knobs = small_segments();
  begin(1, 0);
  const UnixMillis began = env.clock.wall_millis();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(produce(0, 5, 100));
    settle(1s);
  }
  set_target();
  const auto listed = list();
  ASSERT_TRUE(listed) << listed.error().text();
  const wire::Listing& l = listed.value();
  EXPECT_EQ(l.move_id, row().move_id);
  EXPECT_EQ(l.incarnation, topic.incarnation);
  EXPECT_EQ(l.log, opened()->log->id());
  EXPECT_EQ(l.hwm, Offset(100));
  EXPECT_EQ(l.frontier, Offset(0));
  EXPECT_GT(l.bytes_per_second, 0u);
  ASSERT_GT(l.segments.size(), 2u);
  ASSERT_TRUE(l.listed_at);
  for (std::size_t i = 0; i < l.segments.size(); ++i) {
    const wire::ListedSegment& s = l.segments[i];
    EXPECT_EQ(s.sealed, i + 1 < l.segments.size());
    EXPECT_EQ(s.bytes, on_disk(s.base).size()) << "sealed ones whole, the active one as committed";
    ASSERT_TRUE(s.mtime);
    EXPECT_GE(*s.mtime, began);
    EXPECT_LE(*s.mtime, *l.listed_at);
    if (i > 0) EXPECT_GT(*s.mtime, *l.segments[i - 1].mtime);
    EXPECT_EQ(whole(s), on_disk(s.base));
  }
}

// A commit fails after its bytes were written, and its truncation takes a while.
TEST_F(MoveListing, CMT_1_CMT_2_CMT_9_BytesOfNoCommit_AreNeitherListedNorRead) {
  has_peers = true;
  begin(1, 0);
  settle();
  ASSERT_TRUE(produce(0, 2));
  set_target();
  renew_lease();
  const std::uint64_t committed = list().value().segments.back().bytes;
  const auto commit = spawn(committing(0, 3));
  ASSERT_TRUE(wait_for([&] { return on_disk(Offset(0)).size() > committed; }));
  proof.reset();
  solo.machine.blocking().latency_min = 1s;
  settle(1us);
  solo.machine.blocking().latency_min = Nanos(0);

  const wire::Listing listed = list().value();
  EXPECT_EQ(listed.hwm, Offset(2));
  EXPECT_EQ(listed.segments.back().bytes, committed);
  const auto bytes = chunk(Offset(0), 0, wire::kChunkBytesMax);
  ASSERT_GT(on_disk(Offset(0)).size(), committed) << "they were there all the time";
  EXPECT_EQ(bytes.value().size(), committed);
  expect_error(chunk(Offset(0), committed + 1, 10), Errc::invalid_argument);

  ASSERT_TRUE(wait_for([&] { return commit->has_value(); }));
  expect_error(**commit, Errc::unavailable);
  EXPECT_EQ(on_disk(Offset(0)).size(), committed);
  renew_lease();
  ASSERT_TRUE(produce(0, 1));
  const wire::Listing after = list().value();
  EXPECT_EQ(after.hwm, Offset(3)) << "the offset went to a later record";
  EXPECT_EQ(whole(after.segments.back()), on_disk(Offset(0)));
}

TEST_F(MoveListing, Chunk_OfWhatIsNotThere) {
  begin();
  set_target();
  const std::uint64_t committed = list().value().segments.back().bytes;
  EXPECT_EQ(chunk(Offset(0), committed, 100).value(), "") << "the end of what is committed";
  expect_error(chunk(Offset(0), committed + 1, 100), Errc::invalid_argument);
  expect_error(chunk(Offset(1), 0, 100), Errc::not_found);
  wire::MoveRef other = move();
  other.move_id = other.move_id.next();
  expect_error(run(life->source->chunk(other, Offset(0), 0, 10)), Errc::conflict);
  expect_error(run(life->source->digests(other, Offset(0))), Errc::conflict);
  expect_error(run(life->source->listing(other)), Errc::conflict);
  other.move_id = RaftIndex(0);  // outside of a move, nothing but the listing is served
  expect_error(run(life->source->chunk(other, Offset(0), 0, 10)), Errc::conflict);
  EXPECT_TRUE(run(life->source->listing(other)));
}

TEST_F(MoveListing, Chunk_OfASegmentThatRetentionTook_IsNotFound) {
  knobs = small_segments();
  begin(1, 0);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(produce(0, 5, 100));
  set_target();
  const Offset oldest = list().value().segments.front().base;
  const UnixMillis later(env.clock.wall_millis().value() + 7'200'000);
  auto removed = run(opened()->log->apply_retention(later, 3'600'000, true));
  ASSERT_GT(removed.value().segments, 0u);
  expect_error(chunk(oldest, 0, 100), Errc::not_found);
  EXPECT_GT(list().value().segments.front().base, oldest);
}

TEST_F(MoveListing, OfAMoveThatIsNotKnownHere_IsRefused) {
  begin();
  wire::MoveRef unknown = move();
  unknown.move_id = RaftIndex(99);
  expect_error(run(life->source->listing(unknown)), Errc::conflict);
  life->reins->reachable = false;
  expect_error(run(life->source->listing(unknown)), Errc::unavailable);
  unknown.incarnation = Incarnation(1);
  life->reins->reachable = true;
  expect_error(run(life->source->listing(unknown)), Errc::gone);
  unknown = move();
  unknown.partition.topic = "nothing";
  expect_error(run(life->source->listing(unknown)), Errc::not_found);
}

TEST_F(MoveListing, OfAPartitionThatWasNeverUsed_IsEmpty) {
  begin(1, 0);
  const auto listed = list();
  ASSERT_TRUE(listed) << listed.error().text();
  EXPECT_EQ(listed.value().log, LogId(0));
  EXPECT_EQ(listed.value().hwm, Offset(0));
  EXPECT_TRUE(listed.value().segments.empty());
  EXPECT_FALSE(row().used) << "and it stays unused";
}

TEST_F(MoveListing, SRC_13_AfterACrash_TheListingIsOfTheRecoveredLog) {
  begin();
  set_target();
  crash();
  start();
  ASSERT_FALSE(opened());
  const auto listed = list();
  ASSERT_TRUE(listed) << listed.error().text();
  EXPECT_EQ(listed.value().hwm, Offset(5));
  EXPECT_EQ(whole(listed.value().segments.back()), on_disk(Offset(0)));
}

// Bytes of a frame that was being written as the process died.
TEST_F(MoveListing, CMT_3_OfAClosedLog_TheEndIsFoundByItsHeaders) {
  begin();
  set_target();
  const std::string committed = on_disk(Offset(0));
  const std::string file = path(0, seglog::segment_name(Offset(0)));
  crash();
  {
    auto segment = solo.machine.disk().open(file, OpenMode::read_write);
    ASSERT_TRUE(segment) << segment.error().text();
    const std::string torn(40, 'x');
    ASSERT_TRUE(write_all(*segment.value(), as_bytes(torn), committed.size()));
  }
  start();
  ASSERT_FALSE(opened());
  ASSERT_EQ(on_disk(Offset(0)).size(), committed.size() + 40);
  const auto listed = list();
  ASSERT_TRUE(listed) << listed.error().text();
  EXPECT_EQ(listed.value().hwm, Offset(5));
  ASSERT_EQ(listed.value().segments.size(), 1u);
  EXPECT_EQ(listed.value().segments.back().bytes, committed.size());
  EXPECT_EQ(whole(listed.value().segments.back()), committed);
}

// The times that a listing carries are those that retention goes by, open or not.
TEST_F(MoveListing, AGE_1_TimesOfItsFiles_AreTheAgesThatRetentionSees) {
  knobs = small_segments();
  begin(2, 0);
  metastore::TopicPatch patch;
  patch.retention_ms = 3'600'000;
  ASSERT_TRUE(run(metastore::alter_topic(*life->store, "orders", patch)));
  std::vector<std::vector<wire::ListedSegment>> before;
  for (const std::uint32_t p : {0u, 1u}) {
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(produce(p, 5, 100));
    before.push_back(list(p).value().segments);
    ASSERT_GT(before.back().size(), 2u);
  }
  stop();
  start();
  const UnixMillis now = env.clock.wall_millis();
  const UnixMillis old(now.value() - 3'600'001);
  for (const std::uint32_t p : {0u, 1u}) {
    const std::string file = path(p, seglog::segment_name(before[p][0].base));
    ASSERT_TRUE(solo.machine.disk().set_mtime(file, old));
  }
  EXPECT_EQ(list(0).value().segments.front().mtime, old);
  ASSERT_TRUE(opened(0));
  ASSERT_FALSE(opened(1));
  const auto removed = run(life->partitions->apply_retention(now, true));
  ASSERT_TRUE(removed) << removed.error().text();
  ASSERT_EQ(removed.value().size(), 2u);
  for (const auto& item : removed.value()) EXPECT_EQ(item.outcome.segments, 1u);
  EXPECT_FALSE(opened(1)) << "it was judged as it lay there";
  for (const std::uint32_t p : {0u, 1u}) {
    EXPECT_EQ(list(p).value().segments.front().base, before[p][1].base);
  }
}

TEST_F(MoveListing, OfAPartitionWhoseDataIsMissing_IsUnavailable) {
  begin();
  set_target();
  stop();
  ASSERT_TRUE(solo.machine.disk().rename("/data/topics/orders/p00000", "/data/elsewhere"));
  start();
  const auto listed = list();
  expect_error(listed, Errc::unavailable);
  EXPECT_NE(listed.error().text().find("data_missing"), std::string::npos);
}

TEST_F(MoveListing, CON_1_CON_3_PositionsAreNeverAheadOfTheWatermark) {
  begin(1, 1);
  set_target();
  for (int round = 0; round < 40; ++round) {
    const auto commit = spawn(committing(0, 4));
    const auto listed = spawn(life->source->listing(move()));
    const auto leases = consume(3);
    // Out of order, so that some are acked ahead.
    for (std::size_t i = leases.size(); i > 0; --i) {
      if ((round + i) % 3 != 0) ASSERT_TRUE(settle_one(leases[i - 1]));
    }
    ASSERT_TRUE(wait_for([&] { return listed->has_value() && commit->has_value(); }));
    const wire::Listing& l = (**listed).value();
    EXPECT_LE(l.frontier, l.hwm);
    Offset above = l.frontier;
    for (const wire::AckedRun& run : l.acked_ahead) {
      EXPECT_GT(run.begin, above);
      EXPECT_GT(run.end, run.begin);
      above = run.end;
    }
    EXPECT_LE(above, l.hwm);
  }
  const wire::Listing last = list().value();
  EXPECT_GT(last.frontier, Offset(0));
  EXPECT_FALSE(last.acked_ahead.empty());
  const auto positions = opened()->delivery->positions();
  EXPECT_EQ(last.frontier, positions.frontier);
}

TEST_F(MoveListing, Digests_AreThoseOfWhatIsListed) {
  knobs = small_segments();
  begin(1, 0);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(produce(0, 5, 100));
  set_target();
  const wire::Listing listed = list().value();
  ASSERT_GT(listed.segments.size(), 2u);
  for (const bool reopened : {false, true}) {
    for (const wire::ListedSegment& s : listed.segments) {
      const auto digests = run(life->source->digests(move(), s.base));
      ASSERT_TRUE(digests) << digests.error().text();
      EXPECT_EQ(digests.value().segment_bytes, s.bytes);
      seglog::BlockDigester expected(listed.log);
      const std::string bytes = on_disk(s.base);
      expected.update(ByteView(reinterpret_cast<const std::byte*>(bytes.data()), s.bytes));
      ASSERT_EQ(digests.value().blocks.size(), 1u);
      EXPECT_EQ(digests.value().blocks.front(), expected.digests().front());
    }
    expect_error(run(life->source->digests(move(), Offset(1))), Errc::not_found);
    if (reopened) break;
    // After a clean close the digests of the active segment are not known: read from the disk.
    stop();
    start();
  }
}

TEST_F(MoveListing, Digests_OfTheActiveSegmentAreReadFromTheDiskOnce) {
  begin(1, 0);
  ASSERT_TRUE(produce(0, 5, 100));
  stop();
  start();
  set_target();
  const wire::ListedSegment active = list().value().segments.back();
  const auto first = run(life->source->digests(move(), active.base));
  ASSERT_TRUE(first) << first.error().text();
  ASSERT_TRUE(first.value().blocks.front());
  // What the disk does from here on does not change what was written.
  const std::string file = path(0, seglog::segment_name(active.base));
  ASSERT_TRUE(solo.machine.disk().corrupt(file, active.bytes - 3, std::byte{1}));
  const auto second = run(life->source->digests(move(), active.base));
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second.value().blocks, first.value().blocks);
}

TEST_F(MoveListing, MRK_6_TheMarkerOfItsOwnCopyIsListedWithItsAge) {
  begin();
  set_target();
  EXPECT_FALSE(list().value().marker);
  wire::MoveMarker marker;
  marker.move_id = RaftIndex(3);
  marker.epoch = 2;
  marker.source = "away";
  marker.self = "here";
  marker.incarnation = topic.incarnation;
  marker.promoted_hwm = Offset(4);
  marker.installed_at = env.clock.wall_millis();
  write_file(wire::kMoveMarkerFileName, wire::encode_marker_file(marker));
  settle(10s);
  const wire::Listing listed = list().value();
  EXPECT_EQ(listed.marker, marker);
  ASSERT_TRUE(listed.marker_age_ms);
  EXPECT_GE(*listed.marker_age_ms, 10'000u);
  EXPECT_LT(*listed.marker_age_ms, 11'000u);
  write_file(wire::kMoveMarkerFileName, "torn");
  EXPECT_FALSE(list().value().marker) << "unreadable counts as none (G22)";
  EXPECT_FALSE(list().value().marker_age_ms);
}

TEST_F(MoveListing, CUR_1_CUR_4_CursorsThatVerifyAreSentAndOthersAreNot) {
  begin();
  set_target();
  const auto text = [](const Bytes& b) {
    return std::string(reinterpret_cast<const char*>(b.data()), b.size());
  };
  const Bytes good = moves::encode_cursor_file({1, 9, Offset(3), "orders.copy"}, topic.incarnation);
  Bytes torn = moves::encode_cursor_file({1, 9, Offset(3), "orders.late"}, topic.incarnation);
  for (std::byte& b : torn) b ^= std::byte{1};
  write_file(moves::cursor_file_name("orders.copy"), text(good));
  write_file(moves::cursor_file_name("orders.late"), text(torn));
  const wire::Listing listed = list().value();
  ASSERT_EQ(listed.cursors.size(), 1u);
  EXPECT_EQ(listed.cursors.front(), (wire::Sidecar{"orders.copy", text(good)}));
}

// Four links: one with a cursor, one that came here without its own, one whose own is damaged, and
// one that is new here.
TEST_F(MoveListing, G24_CUR_7_EveryLinkIsShippedACursor) {
  begin();
  ASSERT_TRUE(produce(0, 3));
  const wire::ChildLink kept{"orders.kept", "0000000000000009"};
  const wire::ChildLink lost{"orders.lost", "000000000000000a"};
  const wire::ChildLink torn{"orders.torn", "000000000000000b"};
  const wire::ChildLink fresh{"orders.fresh", "000000000000000c"};
  life->reins->links->links = {kept, lost, torn, fresh};
  const Bytes file = moves::encode_cursor_file({1, 9, Offset(3), kept.child}, topic.incarnation);
  write_file(moves::cursor_file_name(kept.child), as_chars(file));
  write_file(moves::cursor_file_name(torn.child), "torn");
  wire::MoveMarker marker;
  marker.move_id = RaftIndex(3);
  marker.source = "away";
  marker.self = "here";
  marker.incarnation = topic.incarnation;
  marker.links = {kept, lost};
  write_file(wire::kMoveMarkerFileName, wire::encode_marker_file(marker));
  set_target();
  const auto next_of = [this](const wire::Listing& l, const wire::ChildLink& link) {
    std::optional<Offset> next;
    for (const wire::Sidecar& s : l.cursors) {
      const auto cursor = moves::decode_cursor_file(as_bytes(s.bytes), topic.incarnation);
      if (s.child != link.child || !cursor) continue;
      EXPECT_EQ(to_hex16(cursor->epoch), link.epoch);
      next = cursor->next;
    }
    return next;
  };
  EXPECT_EQ(next_of(list().value(), fresh), Offset(8));
  ASSERT_TRUE(produce(0, 2));
  wire::FreezeAnswer answer = freeze().value();
  for (const wire::Listing& l : {*answer.listing, list().value()}) {
    EXPECT_EQ(l.links, life->reins->links->links);
    ASSERT_TRUE(l.marker);
    EXPECT_EQ(l.hwm, Offset(10));
    EXPECT_EQ(next_of(l, kept), Offset(3));
    EXPECT_EQ(next_of(l, lost), Offset(0)) << "never the tail: its backlog would be skipped";
    EXPECT_EQ(next_of(l, torn), Offset(0));
    EXPECT_EQ(next_of(l, fresh), Offset(10)) << "nothing from before its attachment";
  }
}

}  // namespace
}  // namespace narad::node
