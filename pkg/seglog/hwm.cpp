#include "pkg/seglog/hwm.h"

#include "pkg/seglog/format.h"

namespace narad::seglog {
namespace {
// The log id is part of the value, so that a log whose only control frame rots can still be read;
// the slots themselves are not bound to it.
constexpr std::uint64_t kSeed = 0;
constexpr std::size_t kValueBytes = 8 + 8 + 1;
}  // namespace

HwmState decode_hwm_file(ByteView file) {
  HwmState state;
  const auto slot = two_slot::decode(file, kHwmMagic, kSeed);
  state.unsupported = two_slot::unknown_version(file, kHwmMagic);
  if (!slot) return state;
  state.sequence = slot->sequence;
  if (slot->value.size() != kValueBytes) {
    state.unsupported = true;  // the slot proves itself: a newer release wrote it
    return state;
  }
  ByteReader in(slot->value);
  HwmValue value;
  value.hwm = Offset(in.u64());
  value.log = LogId(in.u64());
  value.clean = (in.u8() & 1) != 0;
  state.value = value;
  return state;
}

std::array<std::byte, two_slot::kSlotBytes> encode_hwm_slot(std::uint64_t sequence,
                                                            const HwmValue& value) {
  Bytes bytes;
  ByteWriter out(bytes);
  out.u64(value.hwm.value());
  out.u64(value.log.value());
  out.u8(value.clean ? 1 : 0);
  return two_slot::encode(kHwmMagic, kSeed, sequence, bytes);
}

Bytes encode_hwm_file(std::uint64_t sequence, const HwmValue& value) {
  Bytes file(two_slot::kFileBytes);
  const auto slot = encode_hwm_slot(sequence, value);
  std::copy(slot.begin(), slot.end(),
            file.begin() + static_cast<std::ptrdiff_t>(two_slot::slot_offset(sequence)));
  return file;
}

}  // namespace narad::seglog
