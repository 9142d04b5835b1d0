#pragma once
// Fingerprints of credentials: 128 bits under a random key (SipHash-2-4 with its longer output), so
// that caches hold no passwords and nobody without the key can aim for one. Pure; a value.
#include <cstdint>
#include <functional>
#include <string_view>

namespace narad::security {

struct Fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  // Without an early end, as passwords are compared.
  friend bool operator==(const Fingerprint& a, const Fingerprint& b) {
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
  }
};

struct FingerprintKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

Fingerprint fingerprint(const FingerprintKey& key, std::string_view text);

}  // namespace narad::security

template <>
struct std::hash<narad::security::Fingerprint> {
  std::size_t operator()(const narad::security::Fingerprint& f) const noexcept { return f.low; }
};
