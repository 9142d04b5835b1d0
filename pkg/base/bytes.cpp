#include "pkg/base/bytes.h"

namespace narad {

std::uint64_t ByteReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = u8();
    if (!ok_) return 0;
    const std::uint64_t part = byte & 0x7fu;
    if (shift == 63 && part > 1) break;  // would not fit 64 bits
    value |= part << shift;
    if ((byte & 0x80u) == 0) return value;
  }
  ok_ = false;
  return 0;
}

ByteView ByteReader::bytes(std::uint64_t n) {
  if (!ok_ || n > remaining()) {
    ok_ = false;
    return {};
  }
  ByteView part = view_.subspan(at_, static_cast<std::size_t>(n));
  at_ += part.size();
  return part;
}

void ByteWriter::varint(std::uint64_t v) {
  while (v >= 0x80) {
    u8(static_cast<std::uint8_t>(v | 0x80));
    v >>= 7;
  }
  u8(static_cast<std::uint8_t>(v));
}

std::size_t varint_size(std::uint64_t v) {
  std::size_t n = 1;
  while (v >= 0x80) {
    v >>= 7;
    ++n;
  }
  return n;
}

}  // namespace narad
