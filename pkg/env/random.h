#pragma once
// The randomness door. Thread-safe.
#include <cstdint>

namespace narad {

class Random {
 public:
  virtual ~Random() = default;
  // 64 uniform bits. In production from the operating system's generator, and nothing that was
  // given out is kept: good for ids, nonces and origins, and for secrets (salts, keys, passwords).
  virtual std::uint64_t next() = 0;
};

}  // namespace narad
