#include "internal/security/fingerprint.h"

#include <bit>
#include <cstring>

namespace narad::security {
namespace {

// The four words of SipHash's state.
struct Words {
  std::uint64_t a, b, c, d;
  void round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }
  void absorb(std::uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
  std::uint64_t squeeze() {
    for (int i = 0; i < 4; ++i) round();
    return a ^ b ^ c ^ d;
  }
};

// Up to eight bytes, the first one lowest.
std::uint64_t load(const char* at, std::size_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  static_assert(std::endian::native == std::endian::little);
  return word;
}

}  // namespace

Fingerprint fingerprint(const FingerprintKey& key, std::string_view text) {
  Words s{key.low ^ 0x736f6d6570736575u, key.high ^ 0x646f72616e646f6du ^ 0xeeu,
          key.low ^ 0x6c7967656e657261u, key.high ^ 0x7465646279746573u};
  const std::size_t whole = text.size() / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8) s.absorb(load(text.data() + i, 8));
  const std::uint64_t length = static_cast<std::uint64_t>(text.size()) << 56;
  s.absorb(length | load(text.data() + whole, text.size() - whole));
  Fingerprint out;
  s.c ^= 0xee;
  out.low = s.squeeze();
  s.b ^= 0xdd;
  out.high = s.squeeze();
  return out;
}

}  // namespace narad::security
