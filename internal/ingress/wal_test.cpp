// The WAL on a simulated disk: what each kind of damage means at the next start, and what each
// failing call does to the one that met it. Crash points are swept in wal_crash_test.cpp.
#include "internal/ingress/wal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "pkg/base/text.h"
#include "pkg/base/two_slot.h"
#include "pkg/sim/sim_fs.h"

namespace narad::ingress {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kDir = "/data/ingress";

Bytes frames_of(const std::vector<std::string>& payloads) {
  Bytes out;
  for (const std::string& payload : payloads) {
    const Message m{Incarnation(7), "orders", PartitionId(3), "k", UnixMillis(5), payload};
    const std::size_t size = frame_bytes(m).value();
    out.resize(out.size() + size);
    encode_frame(out.data() + out.size() - size, size, m);
  }
  return out;
}

class WalTest : public testing::Test {
 protected:
  // Opens (recovers, begins a segment) as a start of the node does.
  Result<Inspection> open(std::uint64_t origin) {
    writer.reset();
    NARAD_TRY(Inspection inspection, inspect_wal(fs, kDir));
    NARAD_TRY(recover_wal(fs, options, inspection));
    NARAD_TRY(writer, WalWriter::create(fs, options, OriginId(origin), inspection.next));
    checkpoint.emplace(fs, kDir, inspection.checkpoint_slot + 1);
    return inspection;
  }
  void must_open(std::uint64_t origin) {
    auto r = open(origin);
    ASSERT_TRUE(r) << r.error().text();
  }
  Result<Sequence> append(const std::vector<std::string>& payloads) {
    Bytes frames = frames_of(payloads);
    return writer->append(frames, payloads.size());
  }
  void must_append(const std::vector<std::string>& payloads) {
    auto r = append(payloads);
    ASSERT_TRUE(r) << r.error().text();
  }
  // "origin:sequence=payload" of everything kept.
  std::vector<std::string> records() {
    auto inspection = inspect_wal(fs, kDir);
    if (!inspection) return {inspection.error().text()};
    std::vector<std::string> out;
    for (const SegmentInfo& segment : inspection.value().segments) {
      ReadPosition position;
      Sequence from = segment.first;
      while (from < segment.end) {
        auto r = read_records(fs, kDir, segment, from, segment.end, 2, 1 << 20, position);
        if (!r) {
          out.push_back(r.error().text());
          return out;
        }
        for (const DurableRecord& record : r.value().records) {
          out.push_back(cat(record.origin, ":", record.sequence, "=", record.message->payload));
        }
        position = r.value().next;
        from = position.sequence;
      }
    }
    return out;
  }
  std::string path(Sequence first) { return segment_path(kDir, first); }
  // The refusal of a start, which must change nothing.
  std::string refusal(Errc code) {
    writer.reset();
    fs.sync_dir(kDir).value();
    const std::uint64_t before = fs.digest();
    auto r = inspect_wal(fs, kDir);
    EXPECT_EQ(fs.digest(), before);
    if (r) return "started";
    EXPECT_EQ(r.error().code(), code);
    EXPECT_EQ(r.error().os_errno(), 0);
    return r.error().text();
  }
  void write_raw(const std::string& file, std::uint64_t at, ByteView bytes) {
    auto f = fs.open(file, OpenMode::create);
    ASSERT_TRUE(f);
    ASSERT_TRUE(write_all(*f.value(), bytes, at));
    ASSERT_TRUE(f.value()->sync());
  }

  sim::SimFs fs;
  WalOptions options{kDir, 4096, 1024, 5};
  std::unique_ptr<WalWriter> writer;
  std::optional<CheckpointFile> checkpoint;
};

// ---- starts ---------------------------------------------------------------------------------

TEST_F(WalTest, FirstStart_MakesAnEmptyWal) {
  auto r = open(11);
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r.value().next, Sequence(1));
  EXPECT_THAT(r.value().remarks, IsEmpty());
  must_append({"a"});
  EXPECT_THAT(records(), testing::ElementsAre("11:1=a"));
}

TEST_F(WalTest, UncleanStop_KeepsEverythingInAFreshFile) {
  must_open(11);
  must_append({"a", "b"});
  const auto old = fs.stat(path(Sequence(1))).value().id;
  writer.reset();
  fs.process_restart();
  auto r = open(12);
  ASSERT_TRUE(r);
  EXPECT_FALSE(r.value().clean);
  EXPECT_EQ(r.value().next, Sequence(3));
  EXPECT_NE(fs.stat(path(Sequence(1))).value().id, old);
  must_append({"c"});
  EXPECT_THAT(records(), testing::ElementsAre("11:1=a", "11:2=b", "12:3=c"));
}

TEST_F(WalTest, CleanStop_CopiesNothing) {
  must_open(11);
  must_append({"a"});
  ASSERT_TRUE(writer->close());
  ASSERT_TRUE(checkpoint->store({Sequence(1), Sequence(2)}));
  const auto old = fs.stat(path(Sequence(1))).value().id;
  auto r = open(12);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r.value().clean);
  EXPECT_EQ(fs.stat(path(Sequence(1))).value().id, old);
  EXPECT_THAT(records(), testing::ElementsAre("11:1=a"));
  writer.reset();
  EXPECT_FALSE(inspect_wal(fs, kDir).value().clean);  // the mark holds for one start
}

TEST_F(WalTest, SeveralOrigins_LieSideBySide) {
  for (std::uint64_t origin = 1; origin <= 4; ++origin) {
    must_open(origin);
    must_append({cat("x", origin)});
  }
  writer.reset();
  EXPECT_THAT(records(), testing::ElementsAre("1:1=x1", "2:2=x2", "3:3=x3", "4:4=x4"));
}

TEST_F(WalTest, LastSegmentWithoutARecord_IsReplaced) {
  must_open(11);
  must_append({"a"});
  must_open(12);
  auto r = open(13);
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().empty, Sequence(2));
  must_append({"b"});
  EXPECT_THAT(records(), testing::ElementsAre("11:1=a", "13:2=b"));
}

TEST_F(WalTest, TornGroup_IsCutAtTheFirstBadFrame) {
  must_open(11);
  must_append({"a"});
  const std::uint64_t end = kSegmentHeaderBytes + frames_of({"a"}).size();
  Bytes torn = frames_of({std::string(100, 'b'), "c", "d"});
  seal_frames(torn, 3, OriginId(11), Sequence(2), Sequence(1));
  torn[50] ^= std::byte{1};  // the first is damaged, the others of the same group are whole
  write_raw(path(Sequence(1)), end, torn);
  auto r = open(12);
  ASSERT_TRUE(r) << r.error().text();
  ASSERT_TRUE(r.value().cut);
  EXPECT_EQ(r.value().cut->first_lost, Sequence(2));
  EXPECT_EQ(r.value().cut->at, end);
  EXPECT_EQ(r.value().cut->bytes, torn.size());
  must_append({"e"});
  EXPECT_THAT(records(), testing::ElementsAre("11:1=a", "12:2=e"));
}

TEST_F(WalTest, FirstGroupTorn_LeavesNothing) {
  must_open(11);
  Bytes torn = frames_of({"a"});
  seal_frames(torn, 1, OriginId(11), Sequence(1), Sequence(0));
  torn.back() ^= std::byte{1};
  write_raw(path(Sequence(1)), kSegmentHeaderBytes, torn);
  auto r = open(12);
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_TRUE(r.value().cut);
  EXPECT_EQ(r.value().empty, Sequence(1));
  EXPECT_THAT(records(), IsEmpty());
}

TEST_F(WalTest, CheckpointFileGone_HandsEverythingOverAgain) {
  must_open(11);
  must_append({"a", "b"});
  ASSERT_TRUE(checkpoint->store({Sequence(2), Sequence(0)}));
  ASSERT_TRUE(fs.remove(kDir + "/checkpoint"));
  auto r = open(12);
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().checkpoint.lowest, Sequence(1));
}

TEST_F(WalTest, CheckpointFileDamaged_HandsEverythingOverAgainAndSaysSo) {
  must_open(11);
  must_append({"a", "b"});
  ASSERT_TRUE(checkpoint->store({Sequence(2), Sequence(0)}));
  for (std::uint64_t at : {100u, 600u}) {
    ASSERT_TRUE(fs.corrupt(kDir + "/checkpoint", at, std::byte{1}));
  }
  auto r = open(12);
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().checkpoint.lowest, Sequence(1));
  EXPECT_THAT(r.value().remarks, testing::ElementsAre(HasSubstr("is damaged")));
}

TEST_F(WalTest, NewestCheckpointSlotTorn_FallsBackToTheOther) {
  must_open(11);
  must_append({"a", "b", "c"});
  ASSERT_TRUE(checkpoint->store({Sequence(2), Sequence(0)}));
  ASSERT_TRUE(checkpoint->store({Sequence(3), Sequence(0)}));
  Bytes file = fs.seen_bytes(kDir + "/checkpoint").value();
  const auto newest = two_slot::decode(file, kCheckpointMagic, kCheckpointSeed)->sequence;
  ASSERT_TRUE(fs.corrupt(kDir + "/checkpoint", two_slot::slot_offset(newest) + 30, std::byte{1}));
  EXPECT_EQ(inspect_wal(fs, kDir).value().checkpoint.lowest, Sequence(2));
}

TEST_F(WalTest, SegmentsBelowTheCheckpoint_AreRemovedUnread) {
  must_open(11);
  must_append({"a"});
  must_open(12);
  must_append({"b"});
  ASSERT_TRUE(checkpoint->store({Sequence(2), Sequence(0)}));
  ASSERT_TRUE(fs.corrupt(path(Sequence(1)), 70, std::byte{1}));  // nobody needs it any more
  auto r = open(13);
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_FALSE(fs.seen_bytes(path(Sequence(1))));
  EXPECT_THAT(records(), testing::ElementsAre("12:2=b"));
}

TEST_F(WalTest, EverythingHandedOver_LeavesOnlyTheNewSegment) {
  must_open(11);
  must_append({"a", "b"});
  ASSERT_TRUE(checkpoint->store({Sequence(3), Sequence(0)}));
  auto r = open(12);
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().next, Sequence(3));
  EXPECT_THAT(fs.list(kDir).value(),
              testing::ElementsAre("00000000000000000003.wal", "checkpoint"));
}

TEST_F(WalTest, RecordsLostBelowTheCheckpoint_AreRemarkedAndNeverRenumbered) {
  must_open(11);
  must_append({"a", "b"});
  ASSERT_TRUE(checkpoint->store({Sequence(9), Sequence(0)}));
  auto r = open(12);
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().next, Sequence(9));
  EXPECT_THAT(r.value().remarks, testing::ElementsAre(HasSubstr("lost bytes")));
}

TEST_F(WalTest, LeftoversAreRemoved_ForeignFilesAreLeftAlone) {
  must_open(11);
  must_append({"a"});
  write_raw(path(Sequence(2)) + ".tmp", 0, as_bytes("half a copy"));
  write_raw(kDir + "/checkpoint.tmp", 0, as_bytes("half"));
  write_raw(kDir + "/notes.txt", 0, as_bytes("mine"));
  auto r = open(12);
  ASSERT_TRUE(r);
  EXPECT_THAT(r.value().remarks, testing::ElementsAre(HasSubstr("notes.txt")));
  EXPECT_THAT(fs.list(kDir).value(),
              testing::ElementsAre("00000000000000000001.wal", "00000000000000000002.wal",
                                   "checkpoint", "notes.txt"));
}

// ---- refusals -------------------------------------------------------------------------------

TEST_F(WalTest, DamageBehindWhichASyncedFrameLies_RefusesAndChangesNothing) {
  must_open(11);
  must_append({"a"});
  must_append({"b"});
  ASSERT_TRUE(fs.corrupt(path(Sequence(1)), kSegmentHeaderBytes + 30, std::byte{1}));
  const std::string text = refusal(Errc::data_loss);
  EXPECT_THAT(text, HasSubstr(cat("record 1 at byte ", kSegmentHeaderBytes)));
  EXPECT_THAT(text, HasSubstr(path(Sequence(1))));
  EXPECT_THAT(text, HasSubstr("narad fsck wal " + kDir));
}

TEST_F(WalTest, DamageInAnEarlierSegment_Refuses) {
  must_open(11);
  must_append({"a"});
  must_open(12);  // holds no record: that it was begun proves enough
  ASSERT_TRUE(fs.corrupt(path(Sequence(1)), kSegmentHeaderBytes + 30, std::byte{1}));
  EXPECT_THAT(refusal(Errc::data_loss), HasSubstr("record 1 at byte 64"));
}

TEST_F(WalTest, Trap57_EarlierSegmentTooShort_Refuses) {
  must_open(11);
  must_append({"a", "b"});
  must_open(12);
  must_append({"c"});
  auto f = fs.open(path(Sequence(1)), OpenMode::read_write).value();
  ASSERT_TRUE(f->truncate(f->size().value() - 1));
  ASSERT_TRUE(f->sync());
  f.reset();
  EXPECT_THAT(refusal(Errc::data_loss), HasSubstr("record 2"));
}

TEST_F(WalTest, SegmentMissingInTheMiddle_Refuses) {
  for (std::uint64_t origin = 1; origin <= 3; ++origin) {
    must_open(origin);
    must_append({"x"});
  }
  ASSERT_TRUE(fs.remove(path(Sequence(2))));
  EXPECT_THAT(refusal(Errc::data_loss), HasSubstr("record 2"));
}

TEST_F(WalTest, FirstSegmentMissing_Refuses) {
  for (std::uint64_t origin = 1; origin <= 3; ++origin) {
    must_open(origin);
    must_append({"x"});
  }
  ASSERT_TRUE(fs.remove(path(Sequence(1))));
  EXPECT_THAT(refusal(Errc::data_loss), HasSubstr("records 1 to 1 are missing"));
}

TEST_F(WalTest, HeaderDamagedBeforeRecords_Refuses) {
  must_open(11);
  must_append({"a"});
  ASSERT_TRUE(fs.corrupt(path(Sequence(1)), 9, std::byte{1}));
  EXPECT_THAT(refusal(Errc::data_loss), HasSubstr("header of 00000000000000000001.wal"));
}

TEST_F(WalTest, SegmentUnderAWrongName_Refuses) {
  must_open(11);
  must_append({"a"});
  writer.reset();
  ASSERT_TRUE(fs.remove(kDir + "/checkpoint"));
  ASSERT_TRUE(fs.rename(path(Sequence(1)), path(Sequence(5))));
  EXPECT_THAT(refusal(Errc::data_loss), HasSubstr("says in its header"));
}

TEST_F(WalTest, RecordsMissingSinceTheCleanStop_Refuses) {
  must_open(11);
  must_append({"a"});
  must_append({"b"});
  ASSERT_TRUE(writer->close());
  ASSERT_TRUE(checkpoint->store({Sequence(1), Sequence(3)}));
  auto f = fs.open(path(Sequence(1)), OpenMode::read_write).value();
  ASSERT_TRUE(f->truncate(f->size().value() - 5));
  ASSERT_TRUE(f->sync());
  f.reset();
  EXPECT_THAT(refusal(Errc::data_loss), HasSubstr("last clean stop"));
}

TEST_F(WalTest, LaterSegmentVersion_Refuses) {
  must_open(11);
  must_append({"a"});
  ASSERT_TRUE(fs.corrupt(path(Sequence(1)), 4, std::byte{3}));  // 1 becomes 2
  EXPECT_THAT(refusal(Errc::invalid_argument), HasSubstr("format version"));
}

TEST_F(WalTest, LaterCheckpointVersion_Refuses) {
  must_open(11);
  for (std::uint64_t slot : {0u, 512u}) {
    fs.corrupt(kDir + "/checkpoint", slot + 4, std::byte{3});
  }
  EXPECT_THAT(refusal(Errc::invalid_argument), HasSubstr("checkpoint"));
}

TEST_F(WalTest, UnreadableDirectory_IsAnErrorOfTheDiskNotARefusal) {
  must_open(11);
  writer.reset();
  fs.fail_call(sim::FsCall::pread, 1, true);
  auto r = inspect_wal(fs, kDir);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().os_errno(), EIO);
}

// ---- writing --------------------------------------------------------------------------------

TEST_F(WalTest, GroupThatWouldPassTheSegmentLimit_BeginsTheNext) {
  must_open(11);
  for (int i = 0; i < 5; ++i) must_append({std::string(1500, 'x')});
  auto sealed = writer->take_sealed();
  ASSERT_EQ(sealed.size(), 2u);
  EXPECT_EQ(sealed[0].first, Sequence(1));
  EXPECT_EQ(sealed[0].end, Sequence(3));
  EXPECT_EQ(sealed[1].end, Sequence(5));
  EXPECT_EQ(writer->segment().first, Sequence(5));
  EXPECT_EQ(fs.stat(path(Sequence(1))).value().size, sealed[0].bytes);
  EXPECT_EQ(records().size(), 5u);
}

TEST_F(WalTest, GroupLargerThanASegment_StaysWhole) {
  must_open(11);
  must_append({"a"});
  must_append(std::vector<std::string>(20, std::string(1000, 'x')));
  EXPECT_EQ(writer->take_sealed().size(), 1u);
  EXPECT_EQ(records().size(), 21u);
}

TEST_F(WalTest, SpaceIsReservedAhead_InSteps) {
  must_open(11);
  must_append({"a"});
  EXPECT_EQ(writer->segment().bytes, 1024u);
  EXPECT_EQ(fs.seen_bytes(path(Sequence(1)))->size(), 1024u);
  const auto before = fs.calls(sim::FsCall::allocate);
  must_append({"b"});
  EXPECT_EQ(fs.calls(sim::FsCall::allocate), before);
  must_append({std::string(1000, 'c')});
  EXPECT_EQ(writer->segment().bytes, 2048u);
}

TEST_F(WalTest, FullDisk_RefusesBeforeWritingAndRecovers) {
  options.disk_reserve_percent = 0;
  must_open(11);
  must_append({"a"});
  fs.faults.capacity_bytes = fs.used_bytes() + 100;
  auto r = append({std::string(2000, 'x')});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_EQ(writer->health(), WalWriter::Health::good);
  EXPECT_FALSE(writer->repair() && append({std::string(2000, 'x')}));
  fs.faults.capacity_bytes = 1 << 20;
  ASSERT_TRUE(writer->repair());
  must_append({"b"});
  EXPECT_THAT(records(), testing::ElementsAre("11:1=a", "11:2=b"));
}

TEST_F(WalTest, LastPercentsOfTheDisk_AreNotWrittenInto) {
  fs.faults.capacity_bytes = 100'000;
  must_open(11);
  Result<Sequence> r = Sequence(0);
  while (r) r = append({std::string(900, 'x')});
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_THAT(r.error().text(), HasSubstr("kept free"));
  const auto space = fs.space(kDir).value();
  EXPECT_GE(space.available, space.total / 20);
  EXPECT_LT(space.available, space.total / 20 + 2 * 1024);
}

TEST_F(WalTest, FailedWrite_IsTakenBackAndItsSequencesAreReused) {
  must_open(11);
  must_append({"a"});
  fs.faults.short_write = sim::kAlways;  // so that a part of the group gets written
  fs.fail_call(sim::FsCall::pwrite, 3);
  auto r = append({"lost", "lost too"});
  ASSERT_FALSE(r);
  EXPECT_EQ(writer->health(), WalWriter::Health::good);
  fs.faults.short_write = 0;
  auto again = append({"b"});
  ASSERT_TRUE(again);
  EXPECT_EQ(again.value(), Sequence(2));
  EXPECT_THAT(records(), testing::ElementsAre("11:1=a", "11:2=b"));
}

TEST_F(WalTest, FailedWrite_IsGoneFromTheDiskBeforeItIsAnswered) {
  must_open(11);
  must_append({"a"});
  fs.faults.short_write = sim::kAlways;
  fs.fail_call(sim::FsCall::pwrite, 4);
  ASSERT_FALSE(append({"lost", "lost too"}));
  EXPECT_EQ(fs.durable_bytes(path(Sequence(1))), fs.seen_bytes(path(Sequence(1))));
  EXPECT_EQ(fs.seen_bytes(path(Sequence(1)))->size(), writer->segment().bytes);
}

TEST_F(WalTest, FailedWriteThatCannotBeTakenBack_IsUnknownUntilRepaired) {
  must_open(11);
  must_append({"a"});
  fs.fail_call(sim::FsCall::pwrite, 1);
  fs.fail_call(sim::FsCall::truncate, 1, true);
  auto r = append({"b"});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unknown_outcome);
  EXPECT_EQ(writer->health(), WalWriter::Health::torn);
  auto next = append({"c"});
  ASSERT_FALSE(next);
  EXPECT_NE(next.error().code(), Errc::unknown_outcome);  // nothing of it was written
  EXPECT_FALSE(writer->repair());
  fs.clear_failures();
  ASSERT_TRUE(writer->repair());
  EXPECT_EQ(writer->health(), WalWriter::Health::good);
  must_append({"d"});
  EXPECT_THAT(records(), testing::ElementsAre("11:1=a", "11:2=d"));
}

TEST_F(WalTest, FailedSync_LatchesForEver) {
  must_open(11);
  must_append({"a"});
  fs.fail_call(sim::FsCall::sync, 1);
  ASSERT_FALSE(append({"b"}));
  EXPECT_EQ(writer->health(), WalWriter::Health::sync_failed);
  ASSERT_FALSE(append({"c"}));
  EXPECT_FALSE(writer->repair());
  EXPECT_FALSE(writer->roll());
  EXPECT_FALSE(writer->close());
}

TEST_F(WalTest, FailedSyncOfTheDirectoryAtARoll_Latches) {
  must_open(11);
  must_append({std::string(3000, 'x')});
  fs.fail_call(sim::FsCall::sync_dir, 1);
  ASSERT_FALSE(append({std::string(3000, 'x')}));
  EXPECT_EQ(writer->health(), WalWriter::Health::sync_failed);
}

TEST_F(WalTest, RollThatFindsNoSpace_RefusesAndIsRepeated) {
  must_open(11);
  must_append({std::string(3000, 'x')});
  fs.fail_call(sim::FsCall::rename, 1, false, ENOSPC);
  ASSERT_FALSE(append({std::string(3000, 'y')}));
  EXPECT_EQ(writer->health(), WalWriter::Health::good);
  EXPECT_THAT(writer->take_sealed(), IsEmpty());
  must_append({std::string(3000, 'z')});
  EXPECT_EQ(writer->take_sealed().size(), 1u);
  EXPECT_EQ(records().size(), 2u);
}

TEST_F(WalTest, RollOfAnEmptySegment_DoesNothing) {
  must_open(11);
  ASSERT_TRUE(writer->roll());
  EXPECT_THAT(writer->take_sealed(), IsEmpty());
}

TEST_F(WalTest, ShortReadsAndWrites_ChangeNothing) {
  fs.faults.short_read = fs.faults.short_write = 500'000;
  for (std::uint64_t origin = 1; origin <= 3; ++origin) {
    must_open(origin);
    for (int i = 0; i < 10; ++i) must_append({std::string(400, 'x'), "y"});
  }
  EXPECT_EQ(records().size(), 60u);
}

TEST_F(WalTest, OneDatasyncAGroup_AndNoOtherSync) {
  must_open(11);
  must_append({"a"});
  const auto syncs = fs.calls(sim::FsCall::sync);
  const auto dirs = fs.calls(sim::FsCall::sync_dir);
  must_append({"b", "c"});
  EXPECT_EQ(fs.calls(sim::FsCall::sync), syncs + 1);
  EXPECT_EQ(fs.calls(sim::FsCall::sync_dir), dirs);
  EXPECT_EQ(fs.durable_bytes(path(Sequence(1))), fs.seen_bytes(path(Sequence(1))));
}

TEST_F(WalTest, EveryFrame_SaysWhatWasDurableWhenItWasWritten) {
  must_open(11);
  must_append({"a", "b"});
  must_append({"c"});
  const Bytes bytes = fs.seen_bytes(path(Sequence(1))).value();
  std::vector<std::uint64_t> synced;
  std::size_t at = kSegmentHeaderBytes;
  while (auto frame = decode_frame(ByteView(bytes).subspan(at), OriginId(11))) {
    synced.push_back(frame->synced.value());
    at += frame->bytes;
  }
  EXPECT_THAT(synced, testing::ElementsAre(0, 0, 2));
}

TEST_F(WalTest, CheckpointStore_SurvivesAFailedSyncByWritingAnew) {
  must_open(11);
  must_append({"a", "b"});
  const auto old = fs.stat(kDir + "/checkpoint").value().id;
  fs.fail_call(sim::FsCall::sync, 1);
  EXPECT_FALSE(checkpoint->store({Sequence(2), Sequence(0)}));
  ASSERT_TRUE(checkpoint->store({Sequence(3), Sequence(0)}));
  EXPECT_NE(fs.stat(kDir + "/checkpoint").value().id, old);
  EXPECT_EQ(inspect_wal(fs, kDir).value().checkpoint.lowest, Sequence(3));
}

// ---- reading --------------------------------------------------------------------------------

TEST_F(WalTest, ReadFromTheMiddle_NeedsNoPosition) {
  must_open(11);
  must_append({"a", "b", std::string(300'000, 'c'), "d"});
  auto r = read_records(fs, kDir, writer->segment(), Sequence(3), Sequence(5), 10, 1 << 30, {});
  ASSERT_TRUE(r) << r.error().text();
  ASSERT_EQ(r.value().records.size(), 2u);
  EXPECT_EQ(r.value().records[0].message->payload.size(), 300'000u);
  EXPECT_EQ(r.value().records[1].message->payload, "d");
}

TEST_F(WalTest, ReadLimits_StopItButNeverBeforeTheFirstRecord) {
  must_open(11);
  must_append({std::string(500, 'a'), "b", "c"});
  auto one = read_records(fs, kDir, writer->segment(), Sequence(1), Sequence(4), 5, 1, {});
  EXPECT_EQ(one.value().records.size(), 1u);
  auto two = read_records(fs, kDir, writer->segment(), Sequence(1), Sequence(4), 2, 1 << 20, {});
  EXPECT_EQ(two.value().records.size(), 2u);
  auto end = read_records(fs, kDir, writer->segment(), Sequence(1), Sequence(2), 9, 1 << 20, {});
  EXPECT_EQ(end.value().records.size(), 1u);
}

TEST_F(WalTest, ReadOfADamagedRecord_NamesThePlace) {
  must_open(11);
  must_append({"a", "b"});
  ASSERT_TRUE(fs.corrupt(path(Sequence(1)), kSegmentHeaderBytes + 20, std::byte{1}));
  auto r = read_records(fs, kDir, writer->segment(), Sequence(1), Sequence(3), 9, 1 << 20, {});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::data_loss);
  EXPECT_THAT(r.error().text(), HasSubstr("record 1 at byte 64"));
}

}  // namespace
}  // namespace narad::ingress
