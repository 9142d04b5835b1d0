#pragma once
// The random numbers of a run: splitmix64, the same everywhere.
#include <cstdint>

namespace narad::raft::simtest {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  std::uint64_t range(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  // True once in `n` times; never if n is 0.
  bool one_in(std::uint64_t n) { return n != 0 && below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace narad::raft::simtest
