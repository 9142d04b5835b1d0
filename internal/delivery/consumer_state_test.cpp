#include "internal/delivery/consumer_state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "pkg/base/text.h"

namespace narad::delivery {
namespace {

OffsetRun run(std::uint64_t begin, std::uint64_t end) { return {Offset(begin), Offset(end)}; }

const SnapshotId kId{0x0123'4567'89ab'cdef, 7};
const ConsumerPositions kPositions{Offset(1000),
                                   {run(1002, 1003), run(1010, 1100), run(5000, 5001)}};
const std::vector<OffsetRun> kFirstAcks{run(1000, 1001), run(1200, 1300)};
const std::vector<OffsetRun> kSecondAcks{run(0, 3), run(1001, 1002)};

Bytes journal_bytes() {
  Bytes out = encode_journal_header(kId.identity);
  for (const auto& acks : {kFirstAcks, kSecondAcks}) {
    const Bytes entry = encode_journal_entry(kId, acks);
    out.insert(out.end(), entry.begin(), entry.end());
  }
  return out;
}

Bytes file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return to_bytes(std::string(std::istreambuf_iterator<char>(in), {}));
}

TEST(ConsumerSnapshot, Encoded_DecodesToTheSame) {
  for (const ConsumerPositions& positions :
       {kPositions, ConsumerPositions{}, ConsumerPositions{Offset(0), {run(1, 2)}}}) {
    const DecodedSnapshot out = decode_snapshot(encode_snapshot(kId, positions));
    EXPECT_EQ(out.readability, Readability::intact) << out.problem;
    EXPECT_EQ(out.id.identity, kId.identity);
    EXPECT_EQ(out.id.sequence, kId.sequence);
    EXPECT_EQ(out.positions, positions);
  }
}

TEST(ConsumerSnapshot, AnyByteFlipped_IsDamaged) {
  const Bytes good = encode_snapshot(kId, kPositions);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[at] ^= std::byte(1 << bit);
      const DecodedSnapshot out = decode_snapshot(bad);
      ASSERT_EQ(out.readability, Readability::damaged) << "byte " << at << " bit " << bit;
      ASSERT_FALSE(out.problem.empty());
      ASSERT_EQ(out.positions, ConsumerPositions{});
    }
  }
}

TEST(ConsumerSnapshot, CutAnywhereOrWithBytesBehind_IsDamaged) {
  Bytes bytes = encode_snapshot(kId, kPositions);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(decode_snapshot(ByteView(bytes).first(size)).readability, Readability::damaged);
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode_snapshot(bytes).readability, Readability::damaged);
}

TEST(ConsumerJournal, Entries_DecodeInOrderWithTheirSnapshot) {
  const Bytes bytes = journal_bytes();
  const DecodedJournal out = decode_journal(bytes);
  EXPECT_EQ(out.readability, Readability::intact);
  EXPECT_EQ(out.problem, "");
  ASSERT_EQ(out.entries.size(), 2u);
  EXPECT_EQ(out.entries[0].at, kConsumerHeaderBytes);
  EXPECT_EQ(out.entries[0].sequence, kId.sequence);
  EXPECT_EQ(out.entries[0].runs, kFirstAcks);
  EXPECT_EQ(out.entries[1].runs, kSecondAcks);
  EXPECT_EQ(out.end, bytes.size());
}

TEST(ConsumerJournal, AnyByteFlipped_StopsAtThatEntryAndInventsNothing) {
  const Bytes good = journal_bytes();
  const std::uint64_t second = decode_journal(good).entries[1].at;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[at] ^= std::byte(1 << bit);
      const DecodedJournal out = decode_journal(bad);
      ASSERT_FALSE(out.problem.empty()) << "byte " << at;
      const bool header = at < kConsumerHeaderBytes;
      ASSERT_EQ(out.readability, header ? Readability::damaged : Readability::intact);
      ASSERT_EQ(out.entries.size(), !header && at >= second ? 1u : 0u);
      if (!out.entries.empty()) {
        ASSERT_EQ(out.entries[0].runs, kFirstAcks);
      }
    }
  }
}

TEST(ConsumerJournal, CutAnywhere_KeepsTheWholeEntriesBeforeTheCut) {
  const Bytes bytes = journal_bytes();
  const std::uint64_t second = decode_journal(bytes).entries[1].at;
  for (std::size_t size = kConsumerHeaderBytes; size < bytes.size(); ++size) {
    const DecodedJournal out = decode_journal(ByteView(bytes).first(size));
    ASSERT_EQ(out.entries.size(), size >= second ? 1u : 0u);
    ASSERT_EQ(out.end, size >= second ? second : kConsumerHeaderBytes);
    ASSERT_EQ(out.problem.empty(), size == second || size == kConsumerHeaderBytes);
  }
}

TEST(ConsumerJournal, EntryOfAnotherLife_DoesNotVerify) {
  Bytes bytes = encode_journal_header(kId.identity);
  const Bytes entry = encode_journal_entry({kId.identity + 1, kId.sequence}, kFirstAcks);
  bytes.insert(bytes.end(), entry.begin(), entry.end());
  EXPECT_TRUE(decode_journal(bytes).entries.empty());
}

TEST(ConsumerState, HeaderOfALaterVersion_IsToldApartFromDamage) {
  const DecodedSnapshot snapshot =
      decode_snapshot(file_bytes("testdata/golden/consumer_state/later.consumer.offset"));
  EXPECT_EQ(snapshot.readability, Readability::unknown_version);
  EXPECT_EQ(snapshot.version, 2u);
  const DecodedJournal journal =
      decode_journal(file_bytes("testdata/golden/consumer_state/later.consumer.acks"));
  EXPECT_EQ(journal.readability, Readability::unknown_version);
  EXPECT_EQ(journal.version, 2u);
}

// The files of version 1 as they were first written: read for ever, and still written like that.
TEST(ConsumerState, GoldenFilesOfVersion1_AreReadAndWritten) {
  const Bytes snapshot = file_bytes("testdata/golden/consumer_state/v1.consumer.offset");
  const DecodedSnapshot out = decode_snapshot(snapshot);
  EXPECT_EQ(out.readability, Readability::intact) << out.problem;
  EXPECT_EQ(out.id.sequence, kId.sequence);
  EXPECT_EQ(out.positions, kPositions);
  EXPECT_EQ(to_hex(snapshot), to_hex(encode_snapshot(kId, kPositions)));

  const Bytes journal = file_bytes("testdata/golden/consumer_state/v1.consumer.acks");
  EXPECT_EQ(decode_journal(journal).entries.size(), 2u);
  EXPECT_EQ(to_hex(journal), to_hex(journal_bytes()));
}

}  // namespace
}  // namespace narad::delivery
