#include "pkg/base/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace narad {

std::uint64_t xxh3(ByteView bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint32_t fnv1a32(std::string_view bytes) {
  std::uint32_t hash = 0x811c9dc5u;
  for (char c : bytes) {
    hash ^= static_cast<std::uint8_t>(c);
    hash *= 0x01000193u;
  }
  return hash;
}

}  // namespace narad
