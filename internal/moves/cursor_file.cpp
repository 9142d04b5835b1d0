#include "internal/moves/cursor_file.h"

#include <algorithm>

#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/base/two_slot.h"

namespace narad::moves {
namespace {

constexpr std::uint32_t kCursorMagic = 0x4344524e;  // "NRDC"
constexpr std::string_view kPrefix = "fanout-";
constexpr std::string_view kSuffix = ".offset";
constexpr std::size_t kChildBytesKept = 180;
constexpr std::size_t kNameBytesMax = 255 - 4;  // ".tmp"

}  // namespace

std::string cursor_file_name(const std::string& child) {
  if (kPrefix.size() + child.size() + kSuffix.size() <= kNameBytesMax) {
    return cat(kPrefix, child, kSuffix);
  }
  return cat(kPrefix, child.substr(0, kChildBytesKept), "~", to_hex16(xxh3(as_bytes(child), 0)),
             kSuffix);
}

bool is_cursor_file_name(std::string_view name) {
  return name.size() > kPrefix.size() + kSuffix.size() && name.starts_with(kPrefix) &&
         name.ends_with(kSuffix);
}

Bytes encode_cursor_file(const FanoutCursor& cursor, Incarnation parent) {
  Bytes value;
  ByteWriter w(value);
  w.u64(cursor.epoch);
  w.u64(cursor.next.value());
  w.bytes(as_bytes(cursor.child));
  const auto slot = two_slot::encode(kCursorMagic, parent.value(), cursor.sequence, value);
  Bytes file(two_slot::kFileBytes);
  std::copy(slot.begin(), slot.end(),
            file.begin() + static_cast<std::ptrdiff_t>(two_slot::slot_offset(cursor.sequence)));
  return file;
}

std::optional<FanoutCursor> decode_cursor_file(ByteView file, Incarnation parent) {
  const auto slot = two_slot::decode(file, kCursorMagic, parent.value());
  if (!slot) return std::nullopt;
  ByteReader r(slot->value);
  FanoutCursor cursor;
  cursor.sequence = slot->sequence;
  cursor.epoch = r.u64();
  cursor.next = Offset(r.u64());
  cursor.child = to_text(r.bytes(r.remaining()));
  if (!r.ok() || cursor.child.empty()) return std::nullopt;
  return cursor;
}

}  // namespace narad::moves
