#pragma once
// What nodes ask each other about messages: commits from dispatchers, reads and settlements for
// clients that reached another node than the owner, and wake-ups. Pure; bodies of the calls listed
// in docs/internals/peer-protocol.md.
//
// Every body begins with a version byte; numbers are LEB128 or little-endian, strings are counted.
// Bytes behind the known fields are ignored, so that a later release may add some. Golden files:
// testdata/wire/broker.v1.txt.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "internal/model/message.h"
#include "internal/model/receipt.h"

namespace narad::wire {

// At most so many records, handles or names in one body; longer counts are refused unread.
inline constexpr std::uint64_t kItemsMax = 65'536;

struct CommitCall {
  TopicPartition partition;
  CommitBatch batch;
};
std::string encode(const CommitCall& call);
Result<CommitCall> decode_commit(std::string_view body);
std::string encode(const CommitOutcome& outcome);
Result<CommitOutcome> decode_commit_outcome(std::string_view body);

// Leases up to `max` records of the partitions that the receiver owns, without waiting.
struct ConsumeCall {
  std::string topic;
  Incarnation incarnation{0};
  std::optional<PartitionId> partition;  // nothing: any of them
  std::uint32_t max = 1;
};
struct LeasedRecord {
  ReceiptHandle handle;
  StoredRecord record;
};
std::string encode(const ConsumeCall& call);
Result<ConsumeCall> decode_consume(std::string_view body);
std::string encode(const std::vector<LeasedRecord>& records);
Result<std::vector<LeasedRecord>> decode_leased(std::string_view body);

struct SettleCall {
  std::string topic;
  Incarnation incarnation{0};
  SettleMode mode = SettleMode::ack;
  std::vector<ReceiptHandle> handles;
};
std::string encode(const SettleCall& call);
Result<SettleCall> decode_settle(std::string_view body);
// One outcome per handle, in their order.
std::string encode(const std::vector<Result<void>>& outcomes);
Result<std::vector<Result<void>>> decode_settled(std::string_view body);

struct ReplayCall {
  TopicPartition partition;
  Incarnation incarnation{0};
  Offset offset{0};
};
std::string encode(const ReplayCall& call);
Result<ReplayCall> decode_replay(std::string_view body);
std::string encode(const std::optional<StoredRecord>& record);
Result<std::optional<StoredRecord>> decode_replayed(std::string_view body);

struct StatsCall {
  std::string topic;
  Incarnation incarnation{0};
  std::vector<PartitionId> partitions;
};
struct PartitionStat {
  PartitionId index{0};
  std::uint64_t segments = 0;
  Offset oldest_offset{0};
  Offset next_offset{0};
  Offset high_watermark{0};
  std::uint64_t size_bytes = 0;
  std::int64_t oldest_segment_at_s = 0;  // Unix seconds; 0: unknown
  friend bool operator==(const PartitionStat&, const PartitionStat&) = default;
};
std::string encode(const StatsCall& call);
Result<StatsCall> decode_stats(std::string_view body);
std::string encode(const std::vector<PartitionStat>& stats);
Result<std::vector<PartitionStat>> decode_stats_answer(std::string_view body);

// "For the next `ttl` milliseconds tell me when there may be messages in these topics."
struct InterestCall {
  std::uint64_t ttl_ms = 0;
  std::vector<std::string> topics;
};
std::string encode(const InterestCall& call);
Result<InterestCall> decode_interest(std::string_view body);

// "There may be that many messages more for you in these topics."
struct WakeCall {
  struct Topic {
    std::string name;
    std::uint64_t records = 0;
  };
  std::vector<Topic> topics;
};
std::string encode(const WakeCall& call);
Result<WakeCall> decode_wake(std::string_view body);

// An error as the body of a refusal: {"code":"not_owner","error":"…"}. A body of another shape
// reads as `internal` with the bytes as text (shortened).
std::string encode_error(const Error& error);
Error decode_error(std::string_view body);

}  // namespace narad::wire
