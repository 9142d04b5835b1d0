#pragma once
// The two-slot codec shared by `hwm`, `checkpoint` and fan-out cursors: two 512-byte slots written
// alternately, each {magic u32, version u32, sequence u64, value bytes, checksum u64}, so that a
// torn write of one slot never costs the last good value (storage.md, "HWM file"). Pure.
//
// Usage: decode() what the file holds; to store, write encode(sequence + 1, …) at slot_offset() of
// that sequence, then sync. Slots are one sector each: a torn write damages at most the slot
// written.
#include <array>
#include <cstdint>
#include <optional>

#include "pkg/base/bytes.h"

namespace narad::two_slot {

inline constexpr std::size_t kSlotBytes = 512;
inline constexpr std::size_t kFileBytes = 2 * kSlotBytes;
inline constexpr std::size_t kValueBytesMax = kSlotBytes - 4 - 4 - 8 - 4 - 8;

struct Slot {
  std::uint64_t sequence = 0;
  Bytes value;
};

// Where the slot of `sequence` lies in the file: even sequences first, odd second.
inline std::uint64_t slot_offset(std::uint64_t sequence) { return (sequence & 1) * kSlotBytes; }

// One slot's 512 bytes. REQUIRES: value.size() <= kValueBytesMax. `seed` binds the slot to its
// owner.
std::array<std::byte, kSlotBytes> encode(std::uint32_t magic, std::uint64_t seed,
                                         std::uint64_t sequence, ByteView value);

// The newest slot that verifies. Bytes past two slots are ignored; missing bytes count as damaged.
std::optional<Slot> decode(ByteView file, std::uint32_t magic, std::uint64_t seed);

// True if a slot carries `magic` but a version this release does not know (refuse, do not modify).
bool unknown_version(ByteView file, std::uint32_t magic);

}  // namespace narad::two_slot
