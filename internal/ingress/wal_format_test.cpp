#include "internal/ingress/wal_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "pkg/base/two_slot.h"
#include "pkg/sim/rng.h"

namespace narad::ingress {
namespace {

constexpr OriginId kOrigin{0x1122334455667788};

Message message(std::string payload = "hello", std::string key = "k") {
  return Message{
      Incarnation(7),    "orders", PartitionId(3), std::move(key), UnixMillis(1700000000123),
      std::move(payload)};
}

Bytes frames_of(const std::vector<Message>& messages, Sequence first, Sequence synced,
                OriginId origin = kOrigin) {
  Bytes out;
  for (const Message& m : messages) {
    const std::size_t size = frame_bytes(m).value();
    out.resize(out.size() + size);
    encode_frame(out.data() + out.size() - size, size, m);
  }
  seal_frames(out, messages.size(), origin, first, synced);
  return out;
}

Bytes segment_of(Sequence first, const Bytes& frames, std::size_t zeros = 0) {
  const auto header = encode_header({kOrigin, first});
  Bytes out(header.begin(), header.end());
  out.insert(out.end(), frames.begin(), frames.end());
  out.resize(out.size() + zeros);
  return out;
}

TEST(WalFrame, AnyMessage_ComesBackWhole) {
  sim::Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    Message m = message();
    m.incarnation = Incarnation(rng.next());
    m.partition = PartitionId(static_cast<std::uint32_t>(rng.next()));
    m.accepted_at = UnixMillis(static_cast<std::int64_t>(rng.next()));
    m.key.assign(rng.below(300), 'k');
    m.payload.resize(rng.below(70000));
    for (char& c : m.payload) c = static_cast<char>(rng.next());
    const Sequence sequence(1 + rng.below(1'000'000));
    Bytes bytes = frames_of({m}, sequence, Sequence(sequence.value() - 1));
    auto frame = decode_frame(bytes, kOrigin);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->bytes, bytes.size());
    EXPECT_EQ(frame->sequence, sequence);
    EXPECT_EQ(frame->synced.value(), sequence.value() - 1);
    MessagePtr back = to_message(frame->message);
    EXPECT_EQ(back->incarnation, m.incarnation);
    EXPECT_EQ(back->topic, m.topic);
    EXPECT_EQ(back->partition, m.partition);
    EXPECT_EQ(back->key, m.key);
    EXPECT_EQ(back->accepted_at, m.accepted_at);
    EXPECT_EQ(back->payload, m.payload);
  }
}

TEST(WalFrame, EveryFlippedBit_IsRefused) {
  const Bytes good = frames_of({message()}, Sequence(9), Sequence(4));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(decode_frame(bad, kOrigin)) << bit;
  }
}

TEST(WalFrame, EveryShorterPrefix_IsRefused) {
  const Bytes good = frames_of({message()}, Sequence(9), Sequence(4));
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(decode_frame(ByteView(good).first(n), kOrigin)) << n;
  }
}

TEST(WalFrame, AnotherOrigin_IsRefused) {
  const Bytes good = frames_of({message()}, Sequence(9), Sequence(4));
  EXPECT_FALSE(decode_frame(good, OriginId(kOrigin.value() + 1)));
}

TEST(WalFrame, LengthBeyondTheLimit_IsRefusedBeforeItIsUsed) {
  Bytes bytes = frames_of({message()}, Sequence(9), Sequence(4));
  store_le<std::uint32_t>(bytes.data(), 0xffffffff);
  EXPECT_FALSE(decode_frame(bytes, kOrigin));
}

TEST(WalFrame, MessageBeyondTheLimit_IsTooLarge) {
  Message m = message(std::string(kFramePayloadBytesMax, 'x'));
  auto size = frame_bytes(m);
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code(), Errc::too_large);
}

TEST(WalFrame, LargestMessage_ComesBack) {
  Message m = message();
  const std::size_t overhead = frame_bytes(m).value() - kFrameHeaderBytes - m.payload.size();
  m.payload.assign(kFramePayloadBytesMax - overhead - 3, 'x');  // its length takes 4 bytes, not 1
  ASSERT_EQ(frame_bytes(m).value(), kFrameHeaderBytes + kFramePayloadBytesMax);
  EXPECT_TRUE(decode_frame(frames_of({m}, Sequence(1), Sequence(0)), kOrigin));
}

TEST(WalHeader, EveryFlippedBit_IsDamagedOrUnknown) {
  const auto good = encode_header({kOrigin, Sequence(17)});
  auto reading = decode_header(good);
  ASSERT_EQ(reading.state, HeaderState::good);
  EXPECT_EQ(reading.header.origin, kOrigin);
  EXPECT_EQ(reading.header.first, Sequence(17));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_NE(decode_header(bad).state, HeaderState::good) << bit;
  }
}

TEST(WalHeader, LaterVersion_IsUnknownNotDamaged) {
  auto header = encode_header({kOrigin, Sequence(17)});
  store_le<std::uint32_t>(header.data() + 4, kSegmentVersion + 1);
  EXPECT_EQ(decode_header(header).state, HeaderState::unknown_version);
}

TEST(WalSegment, ZerosBehindTheFrames_AreItsEnd) {
  const Bytes frames =
      frames_of({message("a"), message("b"), message("c")}, Sequence(5), Sequence(4));
  for (std::size_t zeros : {0, 1, 23, 4096}) {
    SegmentScan scan = scan_segment(segment_of(Sequence(5), frames, zeros));
    EXPECT_EQ(scan.end, Sequence(8));
    EXPECT_EQ(scan.frames, 3u);
    EXPECT_EQ(scan.end_at, kSegmentHeaderBytes + frames.size());
    EXPECT_TRUE(scan.zeros_behind);
  }
}

TEST(WalSegment, SequenceThatSkips_EndsTheWalk) {
  Bytes frames = frames_of({message("a")}, Sequence(5), Sequence(4));
  const Bytes more = frames_of({message("b")}, Sequence(7), Sequence(4));
  frames.insert(frames.end(), more.begin(), more.end());
  SegmentScan scan = scan_segment(segment_of(Sequence(5), frames));
  EXPECT_EQ(scan.end, Sequence(6));
  EXPECT_FALSE(scan.zeros_behind);
}

TEST(WalWitness, LaterFrameThatSaysSynced_IsFound) {
  const Bytes torn =
      frames_of({message("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")}, Sequence(5), Sequence(4));
  const Bytes same_group = frames_of({message("b")}, Sequence(6), Sequence(4));
  const Bytes next_group = frames_of({message("c")}, Sequence(7), Sequence(6));
  Bytes bytes = segment_of(Sequence(5), torn);
  bytes[kSegmentHeaderBytes + 30] ^= std::byte{1};
  bytes.insert(bytes.end(), same_group.begin(), same_group.end());
  EXPECT_FALSE(find_witness(bytes, kSegmentHeaderBytes, kOrigin, Sequence(5)));
  const std::size_t at = bytes.size();
  bytes.insert(bytes.end(), next_group.begin(), next_group.end());
  auto witness = find_witness(bytes, kSegmentHeaderBytes, kOrigin, Sequence(5));
  ASSERT_TRUE(witness);
  EXPECT_TRUE(witness->certain);
  EXPECT_EQ(witness->at, at);
  EXPECT_EQ(witness->sequence, Sequence(7));
  EXPECT_EQ(witness->synced, Sequence(6));
}

TEST(WalWitness, FramesInsideAPayload_AreNotBelieved) {
  const Bytes inner = frames_of({message("c")}, Sequence(6), Sequence(5), OriginId(99));
  Bytes bytes =
      segment_of(Sequence(5), frames_of({message(to_text(inner))}, Sequence(5), Sequence(4)));
  bytes[kSegmentHeaderBytes + 4] ^= std::byte{1};
  EXPECT_FALSE(find_witness(bytes, kSegmentHeaderBytes, kOrigin, Sequence(5)));
}

TEST(WalNames, SegmentNames_SortAsTheirSequences) {
  EXPECT_EQ(segment_name(Sequence(1)), "00000000000000000001.wal");
  EXPECT_EQ(parse_segment_name("00000000000000000042.wal"), Sequence(42));
  EXPECT_EQ(parse_segment_name("18446744073709551615.wal"), Sequence(UINT64_MAX));
  for (const char* bad :
       {"", "1.wal", "00000000000000000000.wal", "0000000000000000000a.wal",
        "00000000000000000001.wal.tmp", "18446744073709551616.wal", "checkpoint"}) {
    EXPECT_FALSE(parse_segment_name(bad)) << bad;
  }
}

TEST(WalCheckpoint, Value_ComesBackAndNothingElseDoes) {
  const Bytes value = encode_checkpoint({Sequence(5), Sequence(9)});
  auto back = decode_checkpoint(value);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->lowest, Sequence(5));
  EXPECT_EQ(back->clean_end, Sequence(9));
  for (std::size_t n = 0; n < value.size(); ++n) {
    EXPECT_FALSE(decode_checkpoint(ByteView(value).first(n)));
  }
  EXPECT_FALSE(decode_checkpoint(encode_checkpoint({Sequence(0), Sequence(0)})));
  EXPECT_FALSE(decode_checkpoint(encode_checkpoint({Sequence(9), Sequence(5)})));
}

// ---- golden files ---------------------------------------------------------------------------

Bytes golden_segment() {
  Message utf8 = message("{\"total\": 12.5, \"name\": \"M\xc3\xbcller\"}", "customer-17");
  Message binary = message(std::string("\0\x01\xff\xfe", 4), "");
  binary.incarnation = Incarnation(0xfedcba9876543210);
  binary.partition = PartitionId(107);
  Message empty = message("", "key-1b");
  Bytes frames = frames_of({message(), utf8}, Sequence(4711), Sequence(4710));
  const Bytes second = frames_of({binary, empty}, Sequence(4713), Sequence(4712));
  frames.insert(frames.end(), second.begin(), second.end());
  return segment_of(Sequence(4711), frames, 100);
}

Bytes golden_checkpoint() {
  Bytes file(two_slot::kFileBytes);
  for (std::uint64_t slot : {6, 7}) {
    const Checkpoint value{Sequence(4700 + slot), Sequence(slot == 7 ? 4715 : 0)};
    const auto bytes =
        two_slot::encode(kCheckpointMagic, kCheckpointSeed, slot, encode_checkpoint(value));
    std::copy(bytes.begin(), bytes.end(),
              file.begin() + static_cast<std::ptrdiff_t>(two_slot::slot_offset(slot)));
  }
  return file;
}

Bytes golden_file(const std::string& name, const Bytes& wanted) {
  const std::string path = "testdata/ingress/v1/" + name;
  if (std::getenv("NARAD_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << as_chars(wanted);
  }
  std::ifstream in(path, std::ios::binary);
  return to_bytes(std::string(std::istreambuf_iterator<char>(in), {}));
}

TEST(WalGolden, SegmentOfVersion1_IsReadAndWrittenTheSame) {
  const Bytes file = golden_file("00000000000000004711.wal", golden_segment());
  EXPECT_EQ(file, golden_segment());
  SegmentScan scan = scan_segment(file);
  EXPECT_EQ(scan.header.header.first, Sequence(4711));
  EXPECT_EQ(scan.end, Sequence(4715));
  EXPECT_TRUE(scan.zeros_behind);
}

TEST(WalGolden, CheckpointOfVersion1_IsReadAndWrittenTheSame) {
  const Bytes file = golden_file("checkpoint", golden_checkpoint());
  EXPECT_EQ(file, golden_checkpoint());
  auto slot = two_slot::decode(file, kCheckpointMagic, kCheckpointSeed);
  ASSERT_TRUE(slot);
  auto value = decode_checkpoint(slot->value);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->lowest, Sequence(4707));
  EXPECT_EQ(value->clean_end, Sequence(4715));
}

}  // namespace
}  // namespace narad::ingress
