#pragma once
// Distinct types for numbers that must not mix. Explicit construction, comparison within a kind,
// and the few arithmetic steps that make sense for a position (next, difference, advance).
#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace narad {

template <class Tag, class Rep = std::uint64_t>
class StrongNumber {
 public:
  using rep = Rep;
  constexpr StrongNumber() = default;
  constexpr explicit StrongNumber(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongNumber, StrongNumber) = default;
  // The position `n` further on, and the distance between two positions (REQUIRES later >=
  // earlier).
  constexpr StrongNumber plus(Rep n) const { return StrongNumber(static_cast<Rep>(value_ + n)); }
  constexpr Rep minus(StrongNumber earlier) const {
    return static_cast<Rep>(value_ - earlier.value_);
  }
  constexpr StrongNumber next() const { return plus(1); }
  friend std::string to_string(StrongNumber n) { return std::to_string(n.value_); }

 private:
  Rep value_{0};
};

using Offset = StrongNumber<struct OffsetTag>;  // position of a record in a partition
using PartitionId = StrongNumber<struct PartitionTag, std::uint32_t>;  // index within a topic
using Sequence = StrongNumber<struct SequenceTag>;        // position in an ingress WAL, from 1
using OriginId = StrongNumber<struct OriginTag>;          // epoch of an ingress WAL; 0 = none
using LogId = StrongNumber<struct LogIdTag>;              // random identity of one partition log
using Incarnation = StrongNumber<struct IncarnationTag>;  // one life of a topic name
using RaftIndex = StrongNumber<struct RaftIndexTag>;      // position in the Raft log

// Wall-clock time in milliseconds since the Unix epoch.
using UnixMillis = StrongNumber<struct UnixMillisTag, std::int64_t>;

// 16 lower-case hex digits: how digests, nonces, epochs and incarnations appear in JSON and files.
std::string to_hex16(std::uint64_t value);

}  // namespace narad

template <class Tag, class Rep>
struct std::hash<narad::StrongNumber<Tag, Rep>> {
  std::size_t operator()(narad::StrongNumber<Tag, Rep> n) const noexcept {
    return std::hash<Rep>{}(n.value());
  }
};
