// A WAL segment of any bytes, and a payload of any bytes under a good checksum: never a crash, and
// what is accepted means the same after it is encoded again.
#include <cstdlib>

#include "internal/ingress/wal_format.h"

using namespace narad;
using namespace narad::ingress;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_frame(const Frame& frame, OriginId origin) {
  MessagePtr message = to_message(frame.message);
  const std::size_t size = frame_bytes(*message).value();
  require(size <= frame.bytes);  // a length may be spelled in more bytes than it needs
  Bytes again(size);
  encode_frame(again.data(), size, *message);
  seal_frames(again, 1, origin, frame.sequence, frame.synced);
  auto back = decode_frame(again, origin);
  require(back.has_value());
  require(back->message.topic == message->topic && back->message.key == message->key);
  require(back->message.payload == message->payload);
  require(back->message.partition == message->partition);
  require(back->message.incarnation == message->incarnation);
  require(back->message.accepted_at == message->accepted_at);
}

void check_segment(ByteView bytes) {
  const SegmentScan scan = scan_segment(bytes);
  const bool good = scan.header.state == HeaderState::good;
  const OriginId origin = good ? scan.header.header.origin : OriginId(1);
  (void)find_witness(bytes, std::min<std::uint64_t>(scan.end_at, bytes.size()), origin,
                     Sequence(1));
  if (!good) return;
  std::size_t at = kSegmentHeaderBytes;
  std::uint64_t frames = 0;
  for (; at < scan.end_at; ++frames) {
    auto frame = decode_frame(bytes.subspan(at), origin);
    require(frame.has_value());
    check_frame(*frame, origin);
    at += frame->bytes;
  }
  require(frames == scan.frames && at == scan.end_at);
}

Bytes sealed(ByteView payload, OriginId origin) {
  Bytes frame(kFrameHeaderBytes + payload.size());
  store_le(frame.data(), static_cast<std::uint32_t>(payload.size()));
  std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderBytes);
  seal_frames(frame, 1, origin, Sequence(9), Sequence(8));
  return frame;
}

// Checksums keep mutations out of the payload's parser, so it gets them under a good one.
void check_payload(ByteView payload) {
  const OriginId origin(7);
  const Bytes frame = sealed(payload, origin);
  auto decoded = decode_frame(frame, origin);
  if (!decoded) return;
  check_frame(*decoded, origin);
  Bytes longer(payload.begin(), payload.end());
  longer.push_back(std::byte{0});
  require(!decode_frame(sealed(longer, origin), origin));  // nothing may follow a message
}

// A segment as the writer makes it, with a byte of it changed: the bytes say which, and what the
// messages hold.
void check_made(ByteView bytes) {
  if (bytes.size() < 3) return;
  const std::size_t damage_at =
      static_cast<std::size_t>(bytes[0]) + 256 * (bytes[1] == std::byte{1});
  const ByteView text = bytes.subspan(3, std::min<std::size_t>(bytes.size() - 3, 60));
  const SegmentHeader header{OriginId(7), Sequence(5)};
  const auto head = encode_header(header);
  Bytes segment(head.begin(), head.end());
  for (std::uint64_t n = 0; n < 4; ++n) {
    const Message m{Incarnation(1), "t",          PartitionId(0), std::string(as_chars(text)),
                    UnixMillis(5),  to_text(text)};
    const std::size_t size = frame_bytes(m).value();
    segment.resize(segment.size() + size);
    const std::span<std::byte> frame(segment.data() + segment.size() - size, size);
    encode_frame(frame.data(), size, m);
    seal_frames(frame, 1, header.origin, header.first.plus(n), header.first.plus(n - 1));
  }
  require(scan_segment(segment).frames == 4);
  segment[damage_at % segment.size()] ^= bytes[2];
  check_segment(segment);
  const SegmentScan scan = scan_segment(segment);
  const auto witness =
      find_witness(segment, scan.end_at, header.origin, header.first.plus(scan.frames));
  require(!witness || witness->synced >= header.first.plus(scan.frames));
}

void check_name(std::string_view name) {
  if (auto first = parse_segment_name(name)) require(segment_name(*first) == name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
  check_segment(bytes);
  check_payload(bytes);
  check_made(bytes);
  check_name(as_chars(bytes));
  (void)decode_frame(bytes, OriginId(7));
  return 0;
}
