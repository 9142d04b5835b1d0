// Frames, records, control frames, watermark slots, digests, names: to bytes and back, and what
// every wrong byte is taken for.
#include <gtest/gtest.h>

#include <algorithm>

#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/seglog/control.h"
#include "pkg/seglog/digest.h"
#include "pkg/seglog/frame.h"
#include "pkg/seglog/hwm.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/scan.h"
#include "pkg/sim/rng.h"

namespace narad::seglog {
namespace {

constexpr LogId kLog{0x1122334455667788};

Bytes make_frame(Offset base, const std::vector<RecordView>& records, Compression compression = {},
                 std::uint16_t flags = 0) {
  Bytes out;
  FrameWriter writer(out, kLog, compression);
  writer.begin();
  for (const RecordView& r : records) writer.add(r);
  FrameHeader header;
  header.base = base;
  header.flags = flags;
  header.commit_time = UnixMillis(1'700'000'000'123);
  header.origin = OriginId(77);
  header.last_sequence = Sequence(9000);
  writer.end(header);
  return out;
}

TEST(Frame, RecordsOfAllShapes_WrittenAndRead_AreEqual) {
  const std::string big(100'000, 'x');
  const std::vector<RecordView> records = {{"k", "v"}, {"", ""}, {"key", big}, {big, "\0z"}};
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    const Bytes frame = make_frame(Offset(5), records, Compression{codec, 3});
    const HeaderCheck check = decode_header(frame, kLog);
    ASSERT_EQ(check.status, HeaderStatus::good);
    EXPECT_EQ(check.header.codec, codec);
    EXPECT_EQ(check.header.frame_bytes(), frame.size());
    EXPECT_EQ(check.header.end(), Offset(9));
    EXPECT_EQ(check.header.origin, OriginId(77));
    const ByteView stored = ByteView(frame).subspan(kHeaderBytes);
    ASSERT_TRUE(payload_verifies(check.header, stored, kLog));
    Bytes scratch;
    auto raw = raw_payload(check.header, stored, scratch);
    ASSERT_TRUE(raw);
    std::size_t total = 0;
    for (const RecordView& r : records) total += record_bytes(r);
    EXPECT_EQ(raw.value().size(), total);
    RecordReader reader(raw.value());
    for (const RecordView& expected : records) {
      auto r = reader.next();
      ASSERT_TRUE(r && r.value());
      EXPECT_EQ(r.value()->key, expected.key);
      EXPECT_EQ(r.value()->payload, expected.payload);
    }
    auto end = reader.next();
    ASSERT_TRUE(end);
    EXPECT_FALSE(end.value());
  }
}

TEST(Frame, IncompressiblePayload_WithZstd_IsStoredAsItIs) {
  sim::Rng rng(3);
  std::string noise(4096, ' ');
  for (char& c : noise) c = static_cast<char>(rng.next());
  const Bytes frame = make_frame(Offset(0), {{"k", noise}}, Compression{Codec::zstd, 1});
  EXPECT_EQ(decode_header(frame, kLog).header.codec, Codec::none);
}

TEST(Frame, AnyByteOfHeaderOrPayloadChanged_Decoded_IsNotTrusted) {
  const Bytes good = make_frame(Offset(5), {{"key", "payload"}, {"k2", "p2"}});
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(1 << bit);
      const HeaderCheck check = decode_header(bad, kLog);
      if (i < kHeaderBytes) {
        EXPECT_EQ(check.status, HeaderStatus::damaged) << "byte " << i;
      } else {
        ASSERT_EQ(check.status, HeaderStatus::good);
        EXPECT_FALSE(payload_verifies(check.header, ByteView(bad).subspan(kHeaderBytes), kLog));
      }
    }
  }
}

TEST(Frame, AnotherLogsId_Decoded_IsDamage) {
  const Bytes frame = make_frame(Offset(5), {{"key", "payload"}});
  EXPECT_EQ(decode_header(frame, LogId(kLog.value() + 1)).status, HeaderStatus::damaged);
}

// Rewrites the header checksum over changed fields, as a newer release (or a forger) would.
Bytes reseal(Bytes frame) {
  store_le(frame.data() + 28, std::uint32_t{0});
  store_le(frame.data() + 28, xxh3_low(ByteView(frame).first(kHeaderBytes), kLog.value()));
  return frame;
}

TEST(Frame, UnknownVersionCodecOrFlagThatProvesItself_Decoded_IsUnsupported) {
  for (const std::size_t at : {std::size_t{4}, std::size_t{5}, std::size_t{7}}) {
    Bytes frame = make_frame(Offset(5), {{"key", "payload"}});
    frame[at] = std::byte{9};
    EXPECT_EQ(decode_header(frame, kLog).status, HeaderStatus::damaged);
    EXPECT_EQ(decode_header(reseal(frame), kLog).status, HeaderStatus::unsupported) << at;
  }
}

TEST(Frame, LengthsThatMakeNoSenseUnderAValidChecksum_Decoded_AreDamage) {
  struct Case {
    std::size_t at;
    std::uint32_t value;
  };
  for (const Case c : {Case{16, 0}, Case{16, 1000}, Case{20, 0}, Case{20, kFrameBytesMax},
                       Case{24, kFrameBytesMax}, Case{24, 3}, Case{20, 0xffffffff}}) {
    Bytes frame = make_frame(Offset(5), {{"key", "payload"}});
    store_le(frame.data() + c.at, c.value);
    EXPECT_EQ(decode_header(reseal(frame), kLog).status, HeaderStatus::damaged)
        << c.at << " " << c.value;
  }
  Bytes frame = make_frame(Offset(5), {{"key", "payload"}});
  store_le(frame.data() + 8, ~std::uint64_t{0});  // base + records overflows
  EXPECT_EQ(decode_header(reseal(frame), kLog).status, HeaderStatus::damaged);
}

TEST(RecordReader, ArbitraryBytes_Walked_EndOrFailAndNeverRunAway) {
  sim::Rng rng(11);
  for (int round = 0; round < 20'000; ++round) {
    Bytes raw(rng.below(40));
    for (std::byte& b : raw) b = static_cast<std::byte>(rng.below(6));
    RecordReader reader(raw);
    std::size_t n = 0;
    while (true) {
      auto r = reader.next();
      if (!r || !r.value()) break;
      ASSERT_LE(++n, raw.size());
    }
  }
}

TEST(RecordReader, RecordOfAnotherVersion_Read_IsUnavailableNotDamage) {
  Bytes raw = to_bytes(std::string_view("\x04\x02\x00\x00z", 5));
  auto r = RecordReader(raw).next();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
}

TEST(Frame, PayloadThatUnpacksToAnotherLength_Unpacked_IsDataLoss) {
  const Bytes frame =
      make_frame(Offset(5), {{"key", std::string(1000, 'a')}}, Compression{Codec::zstd, 1});
  FrameHeader header = decode_header(frame, kLog).header;
  header.raw_bytes += 1;
  Bytes scratch;
  auto raw = raw_payload(header, ByteView(frame).subspan(kHeaderBytes), scratch);
  ASSERT_FALSE(raw);
  EXPECT_EQ(raw.error().code(), Errc::data_loss);
}

// ---- control frames
// ------------------------------------------------------------------------------

Control some_control() {
  Control c;
  c.log = kLog;
  c.base = Offset(42);
  c.commit_time = UnixMillis(1'700'000'000'000);
  c.sync_head = true;
  c.origins = {{OriginId(1), Sequence(10), UnixMillis(5)},
               {OriginId(9), Sequence(2), UnixMillis(6)}};
  return c;
}

TEST(ControlFrame, WithOrigins_WrittenAndRead_IsEqual) {
  Bytes out = to_bytes("before");
  append_control_frame(out, some_control());
  const ControlCheck check = decode_control_frame(ByteView(out).subspan(6));
  ASSERT_EQ(check.status, HeaderStatus::good);
  EXPECT_EQ(check.control, some_control());
  EXPECT_EQ(check.frame_bytes, out.size() - 6);
}

TEST(ControlFrame, AnyByteChangedOrMissing_Decoded_IsDamage) {
  Bytes good;
  append_control_frame(good, some_control());
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= std::byte{0x40};
    EXPECT_EQ(decode_control_frame(bad).status, HeaderStatus::damaged) << i;
    EXPECT_EQ(decode_control_frame(ByteView(good).first(i)).status, HeaderStatus::damaged) << i;
  }
}

TEST(ControlFrame, OfANewerVersion_Decoded_IsUnsupported) {
  Bytes frame;
  append_control_frame(frame, some_control());
  frame[4] = std::byte{2};
  EXPECT_EQ(decode_control_frame(reseal(frame)).status, HeaderStatus::unsupported);
}

TEST(ControlPayload, DisorderCountOrLogWrong_Decoded_IsDataLoss) {
  Bytes frame;
  append_control_frame(frame, some_control());
  const Bytes payload(frame.begin() + kHeaderBytes, frame.end());
  ASSERT_TRUE(decode_control_payload(payload, kLog));
  Bytes disorder = payload;
  store_le(disorder.data() + 12, std::uint64_t{9});
  Bytes count = payload;
  store_le(count.data() + 8, std::uint32_t{3});
  Bytes huge = payload;
  store_le(huge.data() + 8, ~std::uint32_t{0});
  for (const Bytes& bad : {disorder, count, huge}) {
    auto r = decode_control_payload(bad, kLog);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), Errc::data_loss);
  }
  EXPECT_FALSE(decode_control_payload(payload, LogId(1)));
}

// ---- hwm, names, digests
// ---------------------------------------------------------------------------

TEST(HwmFile, TornSlot_Decoded_FallsBackToTheOther) {
  Bytes file = encode_hwm_file(7, {Offset(100), kLog, false});
  const auto newer = encode_hwm_slot(8, {Offset(120), kLog, true});
  std::copy(newer.begin(), newer.end(), file.begin());
  HwmState state = decode_hwm_file(file);
  EXPECT_EQ(state.sequence, 8u);
  EXPECT_EQ(state.value, (HwmValue{Offset(120), kLog, true}));
  for (std::size_t i = 0; i < two_slot::kSlotBytes; ++i) {
    Bytes torn = file;
    torn[i] ^= std::byte{1};
    state = decode_hwm_file(torn);
    ASSERT_TRUE(state.value) << i;
    EXPECT_EQ(*state.value, (HwmValue{Offset(100), kLog, false})) << i;
  }
  EXPECT_FALSE(decode_hwm_file({}).value);
  EXPECT_FALSE(decode_hwm_file(ByteView(file).first(100)).value);
}

TEST(LogFileName, BasesOfAllLengths_FormattedAndParsed_AreEqual) {
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{42}, ~std::uint64_t{0}}) {
    const std::string name = segment_name(Offset(n));
    EXPECT_EQ(name.size(), 24u);
    EXPECT_EQ(parse_log_file_name(name, kSegmentSuffix), Offset(n));
  }
  EXPECT_EQ(segment_name(Offset(42)), "00000000000000000042.log");
}

TEST(LogFileName, ForeignNames_Parsed_AreNothing) {
  for (const char* name :
       {"", ".log", "42.log", "00000000000000000042.sum", "000000000000000000042.log",
        "0000000000000000004x.log", "99999999999999999999.log", "+0000000000000000042.log",
        "00000000000000000042.log.tmp"}) {
    EXPECT_FALSE(parse_log_file_name(name, kSegmentSuffix)) << name;
  }
}

TEST(BlockDigester, BytesInPiecesOfAnySize_Digested_EqualOneShotPerBlock) {
  Bytes data(2 * kBlockBytes + 12345);
  sim::Rng rng(5);
  for (std::byte& b : data) b = static_cast<std::byte>(rng.next());
  BlockDigester d(kLog);
  ByteView left = data;
  while (!left.empty()) {
    const std::size_t n = std::min<std::size_t>(left.size(), 1 + rng.below(300'000));
    d.update(left.first(n));
    left = left.subspan(n);
  }
  std::vector<std::uint64_t> expected;
  for (std::size_t at = 0; at < data.size(); at += kBlockBytes) {
    expected.push_back(
        xxh3(ByteView(data).subspan(at, std::min<std::size_t>(kBlockBytes, data.size() - at)),
             kLog.value()));
  }
  EXPECT_EQ(d.digests(), expected);
  EXPECT_EQ(d.bytes(), data.size());
}

TEST(BlockDigester, RewoundPastABlockBoundary_Continued_ForgetsWhatCameBetween) {
  BlockDigester a(kLog), b(kLog);
  const Bytes first(kBlockBytes - 10, std::byte{1}), lost(100, std::byte{2}),
      next(50, std::byte{3});
  a.update(first);
  b.update(first);
  const auto mark = a.mark();
  a.update(lost);
  a.rewind(mark);
  a.update(next);
  b.update(next);
  EXPECT_EQ(a.digests(), b.digests());
  EXPECT_EQ(a.bytes(), b.bytes());
}

TEST(SumFile, AnyByteChangedOrMissing_Decoded_IsNothing) {
  const Sum sum{kBlockBytes * 2 + 1, {1, 2, 3}};
  const Bytes good = encode_sum(sum, kLog);
  EXPECT_EQ(good.size(), sum_file_bytes(sum.segment_bytes));
  ASSERT_EQ(decode_sum(good, kLog), sum);
  EXPECT_FALSE(decode_sum(good, LogId(1)));
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode_sum(bad, kLog)) << i;
    EXPECT_FALSE(decode_sum(ByteView(good).first(i), kLog)) << i;
  }
}

}  // namespace
}  // namespace narad::seglog
