// A WAL segment of any bytes: never a crash, and what is accepted is encoded the same way again.
#include <cstdlib>

#include "internal/ingress/wal_format.h"

using namespace narad;
using namespace narad::ingress;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
  const SegmentScan scan = scan_segment(bytes);
  const OriginId origin =
      scan.header.state == HeaderState::good ? scan.header.header.origin : OriginId(1);
  (void)find_witness(bytes, std::min<std::uint64_t>(scan.end_at, size), origin, Sequence(1));
  if (scan.header.state != HeaderState::good) return 0;
  std::size_t at = kSegmentHeaderBytes;
  std::uint64_t frames = 0;
  for (; at < scan.end_at; ++frames) {
    auto frame = decode_frame(bytes.subspan(at), origin);
    if (!frame) std::abort();
    MessagePtr message = to_message(frame->message);
    const std::size_t wanted = frame_bytes(*message).value();
    if (wanted > frame->bytes) std::abort();  // only longer than needed, never shorter
    if (wanted == frame->bytes) {
      Bytes again(wanted);
      encode_frame(again.data(), wanted, *message);
      seal_frames(again, 1, origin, frame->sequence, frame->synced);
      if (!std::equal(again.begin(), again.end(), bytes.begin() + static_cast<long>(at))) {
        // Equal in size, it may still spell a length in a longer way and another in a shorter one.
        if (!decode_frame(again, origin)) std::abort();
      }
    }
    at += frame->bytes;
  }
  if (frames != scan.frames || at != scan.end_at) std::abort();
  return 0;
}
