#pragma once
// What the API takes from the configuration (http-api 4). Values; set once at start.
#include <chrono>
#include <cstdint>

#include "pkg/base/text.h"

namespace narad::api {

inline constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 20;  // payload, JSON body
inline constexpr std::uint64_t kKeyBytesMax = std::uint64_t{64} << 10;     // in a batch
inline constexpr std::uint32_t kBatchRecordsMax = 10'000;
inline constexpr std::uint32_t kConsumeMax = 1'000;   // messages of one answer
inline constexpr std::size_t kSettleMax = 1'000;      // handles of one ack:batch
inline constexpr std::size_t kMovesShownMax = 1'000;  // ended moves of one answer

struct Options {
  std::uint32_t default_partitions = 3;
  std::uint32_t max_partitions = 108;
  std::int64_t default_retention_ms = 604'800'000;  // 0 = keep for ever
  std::int64_t default_visibility_timeout_ms = 30'000;
  std::int64_t default_max_in_flight = 1024;
  std::int64_t default_max_acked_ahead = 1024;
  Nanos max_consume_wait = std::chrono::seconds(10);  // 0: kWaitCeiling
  std::uint64_t max_batch_bytes = std::uint64_t{16} << 20;
};

inline constexpr Nanos kWaitCeiling = std::chrono::seconds(30);

}  // namespace narad::api
