#pragma once
// The on-disk layout of a partition log: constants only (docs/internals/partition-log.md). All
// integers are little-endian; every checksum is XXH3-64 seeded with the log id.
//
// A segment is a sequence of frames and nothing else. Frame header, 64 bytes:
//    0  u32 magic "NRDF"        4  u8  version      5  u8 codec        6  u16 flags
//    8  u64 base offset        16  u32 records     20  u32 stored payload bytes
//   24  u32 raw payload bytes  28  u32 header checksum (low half, over the header with 0 here)
//   32  i64 commit time, ms    40  u64 origin      48  u64 last origin sequence
//   56  u64 payload checksum (over the stored payload)
// Payload before the codec: per record {varint length, record}; a record is {u8 version, varint key
// length, key, varint attribute count, payload}. Fixed for every version to come: magic, version,
// the header's size and checksum, and the log id as the first field of a control frame's payload.
#include <cstdint>

namespace narad::seglog {

inline constexpr std::uint32_t kFrameMagic = 0x4644524e;  // "NRDF"
inline constexpr std::uint8_t kFrameVersion = 1;
inline constexpr std::uint8_t kRecordVersion = 1;
inline constexpr std::size_t kHeaderBytes = 64;
// Header and stored payload together, and the raw payload: a larger length is damage.
inline constexpr std::size_t kFrameBytesMax = 16u << 20;
// Length, version, key length and attribute count: one byte each.
inline constexpr std::size_t kRecordBytesMin = 4;

enum class Codec : std::uint8_t { none = 0, zstd = 1 };

inline constexpr std::uint16_t kFlagRerouted = 1u << 0;  // not this partition's own records
inline constexpr std::uint16_t kFlagControl = 1u << 1;   // no records; payload of control.h
inline constexpr std::uint16_t kFlagSyncHead = 1u << 2;  // all before it was synced when written
inline constexpr std::uint16_t kFlagsKnown = kFlagRerouted | kFlagControl | kFlagSyncHead;

inline constexpr std::uint32_t kHwmMagic = 0x4844524e;  // "NRDH", file `hwm`
inline constexpr std::uint32_t kSumMagic = 0x5344524e;  // "NRDS", files `<base>.sum`
inline constexpr std::uint32_t kSumVersion = 1;
inline constexpr std::uint64_t kBlockBytes = 1u << 20;  // what one digest of a .sum covers

// The origin table (origin_table.h).
inline constexpr std::size_t kOriginsMax = 1024;
inline constexpr std::int64_t kOriginMillisMax = std::int64_t{7} * 24 * 3600 * 1000;

}  // namespace narad::seglog
