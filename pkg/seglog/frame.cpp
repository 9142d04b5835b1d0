#include "pkg/seglog/frame.h"

#include <zstd.h>

#include <array>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad::seglog {
namespace {

constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kCodecAt = 5;
constexpr std::size_t kFlagsAt = 6;
constexpr std::size_t kBaseAt = 8;
constexpr std::size_t kRecordsAt = 16;
constexpr std::size_t kStoredAt = 20;
constexpr std::size_t kRawAt = 24;
constexpr std::size_t kChecksumAt = 28;
constexpr std::size_t kCommitTimeAt = 32;
constexpr std::size_t kOriginAt = 40;
constexpr std::size_t kSequenceAt = 48;
constexpr std::size_t kPayloadChecksumAt = 56;
static_assert(kPayloadChecksumAt + 8 == kHeaderBytes);
static_assert(kFrameBytesMax <= 0xffffffffu, "lengths are 32 bits");

std::uint32_t header_checksum(std::span<const std::byte> header, LogId seed) {
  std::array<std::byte, kHeaderBytes> bytes;
  std::copy(header.begin(), header.begin() + kHeaderBytes, bytes.begin());
  store_le(bytes.data() + kChecksumAt, std::uint32_t{0});
  return xxh3_low(bytes, seed.value());
}

// Whether the fields of a header that proved itself make sense together.
bool is_plausible(const FrameHeader& h) {
  if (h.stored_bytes > kFrameBytesMax - kHeaderBytes) return false;
  if (h.raw_bytes > kFrameBytesMax - kHeaderBytes) return false;
  if (h.codec == Codec::none && h.stored_bytes != h.raw_bytes) return false;
  if (h.base.value() > ~std::uint64_t{0} - h.records) return false;
  if (h.is_control()) return h.records == 0 && h.codec == Codec::none;
  return h.records > 0 && h.records <= h.raw_bytes / kRecordBytesMin && h.stored_bytes > 0;
}

void append(Bytes& out, std::string_view text) {
  const ByteView bytes = as_bytes(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

constexpr std::size_t kVarintBytesMax = 10;

std::size_t put_varint(std::byte* to, std::uint64_t value) {
  std::size_t n = 0;
  for (; value >= 0x80; value >>= 7) to[n++] = static_cast<std::byte>(value | 0x80);
  to[n++] = static_cast<std::byte>(value);
  return n;
}

std::size_t body_bytes(const RecordView& record) {
  return 1 + varint_size(record.key.size()) + record.key.size() + 1 + record.payload.size();
}

}  // namespace

void encode_header(const FrameHeader& header, LogId seed, std::span<std::byte> out) {
  NARAD_ASSERT(out.size() >= kHeaderBytes);
  NARAD_ASSERT(is_plausible(header), "a frame header that no reader would accept");
  std::byte* to = out.data();
  store_le(to, kFrameMagic);
  store_le(to + kVersionAt, kFrameVersion);
  store_le(to + kCodecAt, static_cast<std::uint8_t>(header.codec));
  store_le(to + kFlagsAt, header.flags);
  store_le(to + kBaseAt, header.base.value());
  store_le(to + kRecordsAt, header.records);
  store_le(to + kStoredAt, header.stored_bytes);
  store_le(to + kRawAt, header.raw_bytes);
  store_le(to + kChecksumAt, std::uint32_t{0});
  store_le(to + kCommitTimeAt, header.commit_time.value());
  store_le(to + kOriginAt, header.origin.value());
  store_le(to + kSequenceAt, header.last_sequence.value());
  store_le(to + kPayloadChecksumAt, header.payload_checksum);
  store_le(to + kChecksumAt, xxh3_low(ByteView(to, kHeaderBytes), seed.value()));
}

HeaderCheck decode_header(ByteView bytes, LogId seed) {
  HeaderCheck check;
  if (bytes.size() < kHeaderBytes) return check;
  const std::byte* from = bytes.data();
  if (load_le<std::uint32_t>(from) != kFrameMagic) return check;
  if (load_le<std::uint32_t>(from + kChecksumAt) != header_checksum(bytes, seed)) return check;
  FrameHeader& h = check.header;
  const auto codec = load_le<std::uint8_t>(from + kCodecAt);
  h.flags = load_le<std::uint16_t>(from + kFlagsAt);
  if (load_le<std::uint8_t>(from + kVersionAt) != kFrameVersion ||
      codec > static_cast<std::uint8_t>(Codec::zstd) || (h.flags & ~kFlagsKnown) != 0) {
    check.status = HeaderStatus::unsupported;
    return check;
  }
  h.codec = static_cast<Codec>(codec);
  h.base = Offset(load_le<std::uint64_t>(from + kBaseAt));
  h.records = load_le<std::uint32_t>(from + kRecordsAt);
  h.stored_bytes = load_le<std::uint32_t>(from + kStoredAt);
  h.raw_bytes = load_le<std::uint32_t>(from + kRawAt);
  h.commit_time = UnixMillis(load_le<std::int64_t>(from + kCommitTimeAt));
  h.origin = OriginId(load_le<std::uint64_t>(from + kOriginAt));
  h.last_sequence = Sequence(load_le<std::uint64_t>(from + kSequenceAt));
  h.payload_checksum = load_le<std::uint64_t>(from + kPayloadChecksumAt);
  check.status = is_plausible(h) ? HeaderStatus::good : HeaderStatus::damaged;
  return check;
}

bool payload_verifies(const FrameHeader& header, ByteView stored, LogId seed) {
  return stored.size() == header.stored_bytes &&
         xxh3(stored, seed.value()) == header.payload_checksum;
}

std::size_t record_bytes(const RecordView& record) {
  const std::size_t body = body_bytes(record);
  return varint_size(body) + body;
}

// ---- writing -------------------------------------------------------------------------------

void FrameWriter::begin() {
  start_ = out_.size();
  records_ = 0;
  out_.resize(start_ + kHeaderBytes);
}

void FrameWriter::add(const RecordView& record) {
  // {length, version, key length} key {attribute count} payload, in four appends.
  std::array<std::byte, 2 * kVarintBytesMax + 1> prefix;
  std::size_t n = put_varint(prefix.data(), body_bytes(record));
  prefix[n++] = std::byte{kRecordVersion};
  n += put_varint(prefix.data() + n, record.key.size());
  out_.insert(out_.end(), prefix.begin(), prefix.begin() + static_cast<std::ptrdiff_t>(n));
  append(out_, record.key);
  out_.push_back(std::byte{0});
  append(out_, record.payload);
  ++records_;
}

FrameHeader FrameWriter::end(FrameHeader header) {
  const std::size_t payload_at = start_ + kHeaderBytes;
  header.records = records_;
  header.raw_bytes = static_cast<std::uint32_t>(raw_bytes());
  header.codec = Codec::none;
  if (compression_.codec == Codec::zstd) {
    Bytes packed(ZSTD_compressBound(header.raw_bytes));
    const std::size_t n = ZSTD_compress(packed.data(), packed.size(), out_.data() + payload_at,
                                        header.raw_bytes, compression_.level);
    if (!ZSTD_isError(n) && n < header.raw_bytes) {  // otherwise it does not pay
      std::copy_n(packed.begin(), n, out_.begin() + static_cast<std::ptrdiff_t>(payload_at));
      out_.resize(payload_at + n);
      header.codec = Codec::zstd;
    }
  }
  header.stored_bytes = static_cast<std::uint32_t>(out_.size() - payload_at);
  header.payload_checksum = xxh3(ByteView(out_).subspan(payload_at), seed_.value());
  encode_header(header, seed_, std::span(out_).subspan(start_, kHeaderBytes));
  return header;
}

// ---- reading -------------------------------------------------------------------------------

Result<ByteView> raw_payload(const FrameHeader& header, ByteView stored, Bytes& scratch) {
  if (header.codec == Codec::none) return stored;
  scratch.resize(header.raw_bytes);
  const std::size_t n =
      ZSTD_decompress(scratch.data(), scratch.size(), stored.data(), stored.size());
  if (ZSTD_isError(n) || n != header.raw_bytes) {
    return Error(Errc::data_loss,
                 cat("the frame at offset ", header.base, " does not unpack to the ",
                     header.raw_bytes, " bytes it promises"));
  }
  return ByteView(scratch);
}

Result<std::optional<RecordView>> RecordReader::next() {
  if (in_.remaining() == 0) return std::optional<RecordView>{};
  ByteReader body(in_.bytes(in_.varint()));
  const std::uint8_t version = body.u8();
  if (body.ok() && version != kRecordVersion) {
    return Error(Errc::unavailable,
                 cat("a record of version ", version,
                     ": written by a newer release; upgrade this node to read it"));
  }
  const ByteView key = body.bytes(body.varint());
  const std::uint64_t attributes = body.varint();
  if (!in_.ok() || !body.ok() || attributes != 0) {
    return Error(Errc::data_loss, "a verified frame holds a record that cannot be read");
  }
  return std::optional<RecordView>(
      RecordView{as_chars(key), as_chars(body.bytes(body.remaining()))});
}

}  // namespace narad::seglog
