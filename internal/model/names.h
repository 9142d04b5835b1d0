#pragma once
// Names and the rule that sends a key to a partition. Pure.
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad {

// One partition of one topic name (which life of the name is meant is a matter of the incarnation).
struct TopicPartition {
  std::string topic;
  PartitionId partition{0};
  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
};
std::string to_string(const TopicPartition& tp);  // "orders/3"

// `^[A-Za-z0-9._-]{1,255}$`, and not "." or ".." (http-api 2.1). invalid_argument otherwise.
Result<void> validate_topic_name(std::string_view name);

// 32-bit FNV-1a over the key, modulo the count (http-api 2.3). REQUIRES: partitions > 0.
PartitionId partition_of_key(std::string_view key, std::uint32_t partitions);

// "p00003".
std::string partition_directory_name(PartitionId partition);
// The partition whose directory has that name; nothing for every other name (quarantined copies
// among them).
std::optional<PartitionId> parse_partition_directory_name(std::string_view name);

}  // namespace narad
