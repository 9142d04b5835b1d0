#include "internal/security/fingerprint.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace narad::security {
namespace {

// The first vectors of the algorithm's authors: key 00 01 … 0f, input 00 01 …
TEST(Fingerprint, PublishedVectors_AreMet) {
  const FingerprintKey key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  const Fingerprint none = fingerprint(key, "");
  EXPECT_EQ(none.low, 0xe6a825ba047f81a3u);
  EXPECT_EQ(none.high, 0x930255c71472f66du);
  const Fingerprint one = fingerprint(key, std::string_view("\0", 1));
  EXPECT_EQ(one.low, 0x44af996bd8c187dau);
  EXPECT_EQ(one.high, 0x45fc229b11597634u);
}

TEST(Fingerprint, EveryBitOfTextAndKey_Counts) {
  const FingerprintKey key{1, 2};
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  const auto add = [&](const FingerprintKey& k, const std::string& text) {
    const Fingerprint f = fingerprint(k, text);
    EXPECT_TRUE(seen.emplace(f.low, f.high).second) << text.size();
  };
  for (std::size_t length = 0; length < 40; ++length) add(key, std::string(length, '\0'));
  const std::string base(23, 'x');
  add(key, base);
  for (std::size_t bit = 0; bit < base.size() * 8; ++bit) {
    std::string text = base;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    add(key, text);
  }
  for (int bit = 0; bit < 64; ++bit) {
    add({key.low ^ (std::uint64_t{1} << bit), key.high}, base);
    add({key.low, key.high ^ (std::uint64_t{1} << bit)}, base);
  }
}

}  // namespace
}  // namespace narad::security
