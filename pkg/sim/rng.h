#pragma once
// The simulator's random numbers: splitmix64, the same on every platform, and named streams.
//
// Every purpose, node and fault draws from a stream of its own, derived from (seed, purpose,
// index): taking one fault out of a plan must not reshuffle all the others, or shrinking fails. No
// floating point: chances are in parts per million. Draw into a named variable, never inside a
// function's argument list (evaluation order differs between compilers).
#include <cstdint>
#include <string_view>

#include "pkg/env/random.h"

namespace narad::sim {

// A chance in parts per million; kAlways is certainty.
using Ppm = std::uint32_t;
inline constexpr Ppm kAlways = 1'000'000;

class Rng final : public Random {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n); 0 if n is 0. (The bias of the modulus does not matter here.)
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  // Uniform in [low, high], both included. REQUIRES: low <= high.
  std::uint64_t range(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  // Draws nothing if `odds` is 0, so that a fault that is off changes no other draw.
  bool chance(Ppm odds) { return odds != 0 && below(kAlways) < odds; }

 private:
  std::uint64_t state_;
};

// The seed of the stream for `purpose` number `index`.
inline std::uint64_t derive(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0) {
  std::uint64_t h = seed ^ 0xcbf29ce484222325ull;
  for (char c : purpose) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  Rng mix(h);
  const std::uint64_t first = mix.next();
  Rng again(first ^ (index * 0xd6e8feb86659fd93ull));
  return again.next();
}

}  // namespace narad::sim
