#pragma once
// The randomness door. Thread-safe.
#include <cstdint>

namespace narad {

class Random {
 public:
  virtual ~Random() = default;
  // 64 uniform bits. In production from the operating system's generator; good enough for ids,
  // nonces and origins. Secrets (salts, proofs) use the security module's own source.
  virtual std::uint64_t next() = 0;
};

}  // namespace narad
