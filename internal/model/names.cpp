#include "internal/model/names.h"

#include <charconv>

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad {

std::string to_string(const TopicPartition& tp) { return cat(tp.topic, "/", tp.partition); }

Result<void> validate_topic_name(std::string_view name) {
  const bool fits = !name.empty() && name.size() <= 255 && name != "." && name != "..";
  const bool characters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  if (fits && characters) return ok();
  return Error(Errc::invalid_argument,
               "invalid topic name: use 1 to 255 of A-Z a-z 0-9 . _ - (and not \".\" or \"..\")");
}

PartitionId partition_of_key(std::string_view key, std::uint32_t partitions) {
  NARAD_ASSERT(partitions > 0);
  return PartitionId(fnv1a32(key) % partitions);
}

std::string partition_directory_name(PartitionId partition) {
  std::string digits = std::to_string(partition.value());
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "p" + digits;
}

std::optional<PartitionId> parse_partition_directory_name(std::string_view name) {
  if (name.size() < 6 || name.size() > 11 || name.front() != 'p') return std::nullopt;
  const std::string_view digits = name.substr(1);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  const PartitionId partition(value);
  if (partition_directory_name(partition) != name) return std::nullopt;
  return partition;
}

}  // namespace narad
