#include "pkg/base/two_slot.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"

namespace narad::two_slot {
namespace {
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksumAt = kSlotBytes - 8;
}  // namespace

std::array<std::byte, kSlotBytes> encode(std::uint32_t magic, std::uint64_t seed,
                                         std::uint64_t sequence, ByteView value) {
  NARAD_ASSERT(value.size() <= kValueBytesMax);
  std::array<std::byte, kSlotBytes> slot{};
  store_le(slot.data(), magic);
  store_le(slot.data() + 4, kVersion);
  store_le(slot.data() + 8, sequence);
  store_le(slot.data() + 16, static_cast<std::uint32_t>(value.size()));
  std::copy(value.begin(), value.end(), slot.begin() + 20);
  store_le(slot.data() + kChecksumAt, xxh3(ByteView(slot).first(kChecksumAt), seed));
  return slot;
}

std::optional<Slot> decode(ByteView file, std::uint32_t magic, std::uint64_t seed) {
  std::optional<Slot> best;
  for (std::size_t at : {std::size_t{0}, kSlotBytes}) {
    if (file.size() < at + kSlotBytes) break;
    ByteView slot = file.subspan(at, kSlotBytes);
    ByteReader in(slot);
    if (in.u32() != magic || in.u32() != kVersion) continue;
    const std::uint64_t sequence = in.u64();
    const std::uint32_t length = in.u32();
    if (length > kValueBytesMax) continue;
    if (load_le<std::uint64_t>(slot.data() + kChecksumAt) != xxh3(slot.first(kChecksumAt), seed)) {
      continue;
    }
    if (best && best->sequence >= sequence) continue;
    ByteView value = in.bytes(length);
    best = Slot{sequence, Bytes(value.begin(), value.end())};
  }
  return best;
}

bool unknown_version(ByteView file, std::uint32_t magic) {
  for (std::size_t at : {std::size_t{0}, kSlotBytes}) {
    if (file.size() < at + 8) break;
    ByteReader in(file.subspan(at));
    if (in.u32() == magic && in.u32() > kVersion) return true;
  }
  return false;
}

}  // namespace narad::two_slot
