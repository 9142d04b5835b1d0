#pragma once
// What the HTTP API takes and answers, as values. Times and sizes keep the units of the wire.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad::client {

struct PartitionStats {
  PartitionId index{0};
  std::int64_t segments = 0;
  Offset oldest_offset{0};
  Offset next_offset{0};
  Offset high_watermark{0};
  std::uint64_t size_bytes = 0;
  std::int64_t oldest_segment_at_s = 0;  // Unix seconds; 0 when unknown
  std::string owner_node;
};

struct TopicInfo {
  std::string name;
  std::uint32_t partitions = 0;
  std::int64_t retention_ms = 0;  // 0 = for ever
  std::int64_t visibility_timeout_ms = 0;
  std::int64_t max_in_flight_per_partition = 0;
  std::int64_t max_acked_ahead_per_partition = 0;
  std::int64_t created_at_s = 0;
  std::string owner;
  std::string role;  // "standalone", "parent", "child"
  std::vector<std::string> children;
  std::string parent;
  std::int64_t fanout_delay_ms = 0;
  std::vector<PartitionStats> stats;  // only from Client::topic()
};

struct TopicPage {
  std::vector<TopicInfo> topics;
  std::string next_page_token;  // empty on the last page
};

// 0 and empty mean "the server's default".
struct NewTopic {
  std::string name{};
  std::uint32_t partitions = 0;
  std::int64_t retention_ms = 0;  // -1 = for ever
  std::int64_t visibility_timeout_ms = 0;
  std::int64_t max_in_flight_per_partition = 0;
  std::int64_t max_acked_ahead_per_partition = 0;
  std::string parent{};
  std::int64_t fanout_delay_ms = 0;
  std::string schema{};  // a JSON text
};

// 0 and empty mean "leave as it is".
struct TopicChange {
  std::uint32_t partitions = 0;
  std::int64_t retention_ms = 0;
  std::int64_t visibility_timeout_ms = 0;
  std::int64_t max_in_flight_per_partition = 0;
  std::int64_t max_acked_ahead_per_partition = 0;
  std::string schema{};
};

struct Received {
  std::string topic;
  PartitionId partition{0};
  Offset offset{0};
  std::string key;
  std::string payload;  // byte for byte what was produced
  std::int64_t timestamp_s = 0;
  std::string receipt_handle;  // empty on replay
};

struct BatchRecord {
  std::string key;  // empty: the server makes one
  std::string value{};
};
inline constexpr std::size_t kBatchRecordsMax = 10'000;
inline constexpr std::size_t kBatchBytesMax = std::size_t{16} << 20;
inline constexpr std::size_t kAckHandlesMax = 1'000;
inline constexpr std::size_t kConsumeMax = 1'000;

enum class AckMode : std::uint8_t { ack, extend, nack };
std::string_view to_string(AckMode mode);

struct AckResult {
  std::string handle;
  int status = 0;  // as the single call would have answered: 204, 400, 410, 503
};

struct MemberInfo {
  std::string id;
  std::string addr;
  std::string status;  // "alive" or "dead"
  bool draining = false;
  std::int64_t owned_partitions = 0;
  std::int64_t outbound_moves = 0;
};

// ---- bodies (pure; used by Client and by tests) -----------------------------------------------

// `NRB1`, u32 count, then per record u32 key length, u32 value length, key, value.
std::string encode_batch(const std::vector<BatchRecord>& records);
std::string encode_new_topic(const NewTopic& topic);
std::string encode_topic_change(const TopicChange& change);

// Unknown members are overlooked: a newer server may say more. data_loss if the text is not JSON or
// lacks what it must have.
Result<TopicInfo> decode_topic(std::string text);
Result<TopicPage> decode_topic_page(std::string text);
Result<Received> decode_received(std::string text);
Result<std::vector<Received>> decode_received_list(std::string text);
Result<std::vector<AckResult>> decode_ack_results(std::string text);
Result<std::vector<MemberInfo>> decode_members(std::string text);
// The text of an error answer: its `error` member, or the trimmed body, or "<empty body>".
std::string error_text(std::string_view body);

}  // namespace narad::client
