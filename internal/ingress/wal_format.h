#pragma once
// The bytes of the ingress WAL (storage.md, "Ingress WAL"; decisions.md, "Formats"). Pure.
//
// A segment file `<20-digit first sequence>.wal` is a header and frames, then zeros (space reserved
// ahead) or the end of the file. Integers are little-endian.
//
//   header, 64 bytes              frame
//    0  u32  magic "NRDW"          0  u32  length of the payload
//    4  u32  version = 1           4  u32  checksum: low half of XXH3-64, seeded with the origin,
//    8  u64  origin                        over everything behind this field
//   16  u64  first sequence        8  u64  sequence
//   24       zeros                16  u64  synced: highest sequence known durable when this frame
//   56  u64  checksum: XXH3-64             was written (0: none)
//            over bytes 0 to 55,  24       payload: u64 incarnation, string topic, varint
//            partition, seeded with the              string key, i64 accept time (Unix ms), varint
//            attribute origin                       count (0), string body; a string is varint
//            length, bytes
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "internal/model/message.h"
#include "pkg/base/bytes.h"
#include "pkg/base/result.h"

namespace narad::ingress {

inline constexpr std::uint32_t kSegmentMagic = 0x5744524e;  // "NRDW"
inline constexpr std::uint32_t kSegmentVersion = 1;
inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::size_t kFrameHeaderBytes = 24;
// A longer payload is damage; accept() refuses messages that would make one. It stays below what a
// frame of a partition log holds (16 MiB), so that whatever is accepted can be handed over: a
// record takes fewer bytes there than here.
inline constexpr std::size_t kFramePayloadBytesMax = (16u << 20) - (4u << 10);
// u64, four one-byte varints, i64, empty strings: no payload is shorter.
inline constexpr std::size_t kFramePayloadBytesMin = 8 + 1 + 1 + 1 + 8 + 1 + 1;
static_assert(kFramePayloadBytesMin < kFramePayloadBytesMax);

struct SegmentHeader {
  OriginId origin{0};
  Sequence first{0};
};
std::array<std::byte, kSegmentHeaderBytes> encode_header(const SegmentHeader& header);

enum class HeaderState : std::uint8_t { good, damaged, unknown_version };
struct HeaderReading {
  HeaderState state = HeaderState::damaged;
  SegmentHeader header;  // meaningful if good
};
// Of the first bytes of a segment; too few are damaged.
HeaderReading decode_header(ByteView segment);

// ---- frames ---------------------------------------------------------------------------------

// The whole size of the message's frame; too_large if its payload is over the limit.
Result<std::size_t> frame_bytes(const Message& message);
// Writes the frame but for checksum, sequence and synced, which seal_frames() adds once they are
// known. REQUIRES: `size` is frame_bytes(message) and as much room at `to`.
void encode_frame(std::byte* to, std::size_t size, const Message& message);
// Completes `count` frames that lie back to back and fill `frames` exactly.
void seal_frames(std::span<std::byte> frames, std::uint64_t count, OriginId origin, Sequence first,
                 Sequence synced);

// The parts of a payload, pointing into it.
struct MessageView {
  Incarnation incarnation{0};
  std::string_view topic;
  PartitionId partition{0};
  std::string_view key;
  UnixMillis accepted_at{0};
  std::string_view payload;
};
MessagePtr to_message(const MessageView& view);

struct Frame {
  Sequence sequence{0};
  Sequence synced{0};
  MessageView message;
  std::size_t bytes = 0;  // header and payload
};
// The intact frame at the start of `bytes`, or nothing: too short, a length out of bounds, a wrong
// checksum, `synced` not below the sequence, or a payload that is not a message.
std::optional<Frame> decode_frame(ByteView bytes, OriginId origin);

// ---- segments -------------------------------------------------------------------------------

// What a walk over a whole segment found.
struct SegmentScan {
  HeaderReading header;
  Sequence end{0};           // one past the last of the intact frames from the start on
  std::uint64_t end_at = 0;  // where they end; 0 if the header is not good
  std::uint64_t frames = 0;
  bool zeros_behind = true;  // nothing but zeros follows them
};
SegmentScan scan_segment(ByteView segment);

// An intact frame that says that `lost` was durable when it was written.
struct Witness {
  std::uint64_t at = 0;
  Sequence sequence{0};
  Sequence synced{0};
  bool certain = true;  // false: too many possible frames to check them all; count it as one
};
// Looks for one at any byte from `from` on.
std::optional<Witness> find_witness(ByteView segment, std::uint64_t from, OriginId origin,
                                    Sequence lost);

// "00000000000000000001.wal", and back (nothing for any other name).
std::string segment_name(Sequence first);
std::optional<Sequence> parse_segment_name(std::string_view name);

// ---- checkpoint -----------------------------------------------------------------------------

// The value in the two-slot file `checkpoint` (pkg/base/two_slot.h).
struct Checkpoint {
  Sequence lowest{1};     // not yet handed over; everything below is
  Sequence clean_end{0};  // 0, or: closed cleanly, everything below this is durable
};
inline constexpr std::uint32_t kCheckpointMagic = 0x4344524e;         // "NRDC"
inline constexpr std::uint64_t kCheckpointSeed = 0x6e61726164636b70;  // the file stands alone
Bytes encode_checkpoint(const Checkpoint& checkpoint);
// Nothing if it is not exactly one.
std::optional<Checkpoint> decode_checkpoint(ByteView value);

}  // namespace narad::ingress
