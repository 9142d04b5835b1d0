#include "internal/ingress/wal_format.h"

#include <algorithm>
#include <cstring>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad::ingress {
namespace {

constexpr std::size_t kHeaderChecksumAt = 56;
constexpr std::size_t kFrameChecksumAt = 4;
constexpr std::size_t kFrameSequenceAt = 8;
constexpr std::size_t kFrameSyncedAt = 16;
constexpr std::size_t kNameDigits = 20;
constexpr std::string_view kNameEnd = ".wal";

std::size_t payload_bytes(const Message& m) {
  return 8 + varint_size(m.topic.size()) + m.topic.size() + varint_size(m.partition.value()) +
         varint_size(m.key.size()) + m.key.size() + 8 + 1 + varint_size(m.payload.size()) +
         m.payload.size();
}

std::byte* put_varint(std::byte* to, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) *to++ = static_cast<std::byte>(v | 0x80);
  *to++ = static_cast<std::byte>(v);
  return to;
}

std::byte* put_string(std::byte* to, std::string_view s) {
  to = put_varint(to, s.size());
  if (!s.empty()) std::memcpy(to, s.data(), s.size());
  return to + s.size();
}

std::string_view take_string(ByteReader& in) {
  const std::uint64_t size = in.varint();
  return as_chars(in.bytes(size));
}

std::optional<MessageView> decode_payload(ByteView payload) {
  ByteReader in(payload);
  MessageView m;
  m.incarnation = Incarnation(in.u64());
  m.topic = take_string(in);
  const std::uint64_t partition = in.varint();
  m.key = take_string(in);
  m.accepted_at = UnixMillis(static_cast<std::int64_t>(in.u64()));
  const std::uint64_t attributes = in.varint();
  m.payload = take_string(in);
  if (!in.ok() || in.remaining() != 0 || attributes != 0) return std::nullopt;
  if (partition > UINT32_MAX || m.topic.empty()) return std::nullopt;
  m.partition = PartitionId(static_cast<std::uint32_t>(partition));
  return m;
}

std::uint32_t frame_checksum(ByteView frame, OriginId origin) {
  return xxh3_low(frame.subspan(kFrameSequenceAt), origin.value());
}

}  // namespace

std::array<std::byte, kSegmentHeaderBytes> encode_header(const SegmentHeader& header) {
  std::array<std::byte, kSegmentHeaderBytes> out{};
  store_le(out.data(), kSegmentMagic);
  store_le(out.data() + 4, kSegmentVersion);
  store_le(out.data() + 8, header.origin.value());
  store_le(out.data() + 16, header.first.value());
  store_le(out.data() + kHeaderChecksumAt,
           xxh3(ByteView(out).first(kHeaderChecksumAt), header.origin.value()));
  return out;
}

HeaderReading decode_header(ByteView segment) {
  HeaderReading out;
  if (segment.size() < kSegmentHeaderBytes) return out;
  ByteReader in(segment.first(kSegmentHeaderBytes));
  if (in.u32() != kSegmentMagic) return out;
  const std::uint32_t version = in.u32();
  const OriginId origin(in.u64());
  const Sequence first(in.u64());
  const bool verifies = load_le<std::uint64_t>(segment.data() + kHeaderChecksumAt) ==
                        xxh3(segment.first(kHeaderChecksumAt), origin.value());
  // A later version may keep its checksum elsewhere, so it is not asked to verify.
  if (version > kSegmentVersion) {
    out.state = HeaderState::unknown_version;
    return out;
  }
  if (!verifies || version != kSegmentVersion || origin.value() == 0 || first.value() == 0) {
    return out;
  }
  out.state = HeaderState::good;
  out.header = SegmentHeader{origin, first};
  return out;
}

Result<std::size_t> frame_bytes(const Message& message) {
  const std::size_t payload = payload_bytes(message);
  if (payload > kFramePayloadBytesMax) {
    return Error(Errc::too_large, cat("the message takes ", payload,
                                      " bytes with its key; at most ", kFramePayloadBytesMax,
                                      " are accepted. Send it in parts, or store it elsewhere "
                                      "and send its address"));
  }
  return kFrameHeaderBytes + payload;
}

void encode_frame(std::byte* to, std::size_t size, const Message& message) {
  std::byte* const begin = to;
  store_le(to, static_cast<std::uint32_t>(size - kFrameHeaderBytes));
  std::memset(to + kFrameChecksumAt, 0, kFrameHeaderBytes - kFrameChecksumAt);
  to += kFrameHeaderBytes;
  store_le(to, message.incarnation.value());
  to = put_string(to + 8, message.topic);
  to = put_varint(to, message.partition.value());
  to = put_string(to, message.key);
  store_le(to, message.accepted_at.value());
  to = put_varint(to + 8, 0);
  to = put_string(to, message.payload);
  NARAD_ASSERT(to == begin + size);
}

void seal_frames(std::span<std::byte> frames, std::uint64_t count, OriginId origin, Sequence first,
                 Sequence synced) {
  NARAD_ASSERT(synced < first);
  for (std::uint64_t i = 0; i < count; ++i) {
    NARAD_ASSERT(frames.size() >= kFrameHeaderBytes);
    const std::size_t size = kFrameHeaderBytes + load_le<std::uint32_t>(frames.data());
    NARAD_ASSERT(size <= frames.size());
    store_le(frames.data() + kFrameSequenceAt, first.plus(i).value());
    store_le(frames.data() + kFrameSyncedAt, synced.value());
    store_le(frames.data() + kFrameChecksumAt, frame_checksum(frames.first(size), origin));
    frames = frames.subspan(size);
  }
  NARAD_ASSERT(frames.empty());
}

MessagePtr to_message(const MessageView& view) {
  return std::make_shared<const Message>(Message{view.incarnation, std::string(view.topic),
                                                 view.partition, std::string(view.key),
                                                 view.accepted_at, std::string(view.payload)});
}

std::optional<Frame> decode_frame(ByteView bytes, OriginId origin) {
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  const auto length = load_le<std::uint32_t>(bytes.data());
  if (length < kFramePayloadBytesMin || length > kFramePayloadBytesMax) return std::nullopt;
  if (length > bytes.size() - kFrameHeaderBytes) return std::nullopt;
  ByteView frame = bytes.first(kFrameHeaderBytes + length);
  Frame out;
  out.bytes = frame.size();
  out.sequence = Sequence(load_le<std::uint64_t>(frame.data() + kFrameSequenceAt));
  out.synced = Sequence(load_le<std::uint64_t>(frame.data() + kFrameSyncedAt));
  if (out.synced >= out.sequence) return std::nullopt;
  if (load_le<std::uint32_t>(frame.data() + kFrameChecksumAt) != frame_checksum(frame, origin)) {
    return std::nullopt;
  }
  auto message = decode_payload(frame.subspan(kFrameHeaderBytes));
  if (!message) return std::nullopt;
  out.message = *message;
  return out;
}

SegmentScan scan_segment(ByteView segment) {
  SegmentScan out;
  out.header = decode_header(segment);
  std::uint64_t at = std::min(kSegmentHeaderBytes, segment.size());
  if (out.header.state == HeaderState::good) {
    out.end = out.header.header.first;
    while (auto frame = decode_frame(segment.subspan(at), out.header.header.origin)) {
      if (frame->sequence != out.end) break;
      out.end = out.end.next();
      ++out.frames;
      at += frame->bytes;
    }
    out.end_at = at;
  }
  ByteView rest = segment.subspan(at);
  out.zeros_behind =
      std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; });
  return out;
}

std::optional<Witness> find_witness(ByteView segment, std::uint64_t from, OriginId origin,
                                    Sequence lost) {
  // Somebody's payload may hold bytes that look like frame headers; they cannot verify without the
  // origin, but checking each costs a hash of up to 16 MiB. Beyond this much, doubt decides.
  std::uint64_t budget = std::uint64_t{4} << 30;
  for (std::uint64_t at = from; at + kFrameHeaderBytes <= segment.size(); ++at) {
    ByteView bytes = segment.subspan(at);
    const Sequence sequence(load_le<std::uint64_t>(bytes.data() + kFrameSequenceAt));
    const Sequence synced(load_le<std::uint64_t>(bytes.data() + kFrameSyncedAt));
    if (synced < lost || synced >= sequence) continue;
    // Sequences are dense: so many frames cannot lie in between.
    if (sequence.minus(lost) > (at - from) / (kFrameHeaderBytes + kFramePayloadBytesMin) + 1) {
      continue;
    }
    const auto length = load_le<std::uint32_t>(bytes.data());
    if (length > kFramePayloadBytesMax || length > bytes.size() - kFrameHeaderBytes) continue;
    if (budget < length) return Witness{at, sequence, synced, false};
    budget -= length;
    if (decode_frame(bytes, origin)) return Witness{at, sequence, synced, true};
  }
  return std::nullopt;
}

std::string segment_name(Sequence first) {
  std::string digits = std::to_string(first.value());
  return cat(std::string(kNameDigits - digits.size(), '0'), digits, kNameEnd);
}

std::optional<Sequence> parse_segment_name(std::string_view name) {
  if (name.size() != kNameDigits + kNameEnd.size() || !name.ends_with(kNameEnd)) {
    return std::nullopt;
  }
  auto first = parse_number<std::uint64_t>(name.substr(0, kNameDigits));
  if (!first || *first == 0) return std::nullopt;
  return Sequence(*first);
}

Bytes encode_checkpoint(const Checkpoint& checkpoint) {
  Bytes out;
  ByteWriter w(out);
  w.u64(checkpoint.lowest.value());
  w.u64(checkpoint.clean_end.value());
  return out;
}

std::optional<Checkpoint> decode_checkpoint(ByteView value) {
  ByteReader in(value);
  Checkpoint out;
  out.lowest = Sequence(in.u64());
  out.clean_end = Sequence(in.u64());
  if (!in.ok() || in.remaining() != 0 || out.lowest.value() == 0) return std::nullopt;
  if (out.clean_end.value() != 0 && out.clean_end < out.lowest) return std::nullopt;
  return out;
}

}  // namespace narad::ingress
