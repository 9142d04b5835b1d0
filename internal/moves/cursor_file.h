#pragma once
// A fan-out cursor, `fanout-<child>.offset` in the directory of a parent's partition: how far the
// records of the partition have gone to the child (storage.md, "Fan-out cursor"). Two alternating
// slots (pkg/base/two_slot.h) of magic "NRDC", seeded with the incarnation of the parent; the value
// is {u64 attach epoch, u64 next offset, the child's name}. Pure.
#include <optional>
#include <string>
#include <string_view>

#include "internal/model/names.h"
#include "pkg/base/bytes.h"

namespace narad::moves {

struct FanoutCursor {
  std::uint64_t sequence = 0;  // of the slot
  std::uint64_t epoch = 0;     // of the attachment
  Offset next{0};              // the first offset that has not gone to the child
  std::string child;
  friend bool operator==(const FanoutCursor&, const FanoutCursor&) = default;
};

// "fanout-<child>.offset"; a name that would not fit a file system is shortened and hashed.
std::string cursor_file_name(const std::string& child);
bool is_cursor_file_name(std::string_view name);

// A file with one valid slot.
Bytes encode_cursor_file(const FanoutCursor& cursor, Incarnation parent);
// The newest slot that verifies; nothing if none does.
std::optional<FanoutCursor> decode_cursor_file(ByteView file, Incarnation parent);

}  // namespace narad::moves
