#pragma once
// XXH3-64, the checksum of every Narad format, always seeded with what the bytes belong to (the log
// id in segments, the origin in the ingress WAL) so that bytes of one thing never verify as
// another.
#include <cstdint>

#include "pkg/base/bytes.h"

namespace narad {

std::uint64_t xxh3(ByteView bytes, std::uint64_t seed);
// The low 32 bits of the same.
inline std::uint32_t xxh3_low(ByteView bytes, std::uint64_t seed) {
  return static_cast<std::uint32_t>(xxh3(bytes, seed));
}

// 32-bit FNV-1a: the key-to-partition hash of the wire contract (http-api 2.3).
std::uint32_t fnv1a32(std::string_view bytes);

}  // namespace narad
