#pragma once
// What the `hwm` file remembers, and how: two alternating 512-byte slots (pkg/base/two_slot.h), so
// that a torn write never costs the last good value. Pure.
//
// Value: {u64 high watermark, u64 log id, u8 clean}. `clean` is set by the last write of a clean
// close, after its last sync, and withdrawn before the first write that follows.
#include <array>
#include <optional>

#include "pkg/base/bytes.h"
#include "pkg/base/ids.h"
#include "pkg/base/two_slot.h"

namespace narad::seglog {

struct HwmValue {
  Offset hwm{0};
  LogId log{0};
  bool clean = false;
  friend bool operator==(const HwmValue&, const HwmValue&) = default;
};

struct HwmState {
  std::uint64_t sequence = 0;  // of the newest slot; 0 if none verifies
  std::optional<HwmValue> value;
  bool unsupported = false;  // a newer release wrote it
};
HwmState decode_hwm_file(ByteView file);
// The slot for `sequence`; it belongs at two_slot::slot_offset(sequence).
std::array<std::byte, two_slot::kSlotBytes> encode_hwm_slot(std::uint64_t sequence,
                                                            const HwmValue& value);
// A whole file with one valid slot.
Bytes encode_hwm_file(std::uint64_t sequence, const HwmValue& value);

}  // namespace narad::seglog
