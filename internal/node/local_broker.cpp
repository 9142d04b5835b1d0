#include "internal/node/local_broker.h"

#include <algorithm>
#include <map>
#include <utility>

#include "pkg/base/text.h"

namespace narad::node {
namespace {

// How long a consume that has found messages goes on to fill its answer from other partitions.
constexpr Nanos kFillTime = std::chrono::milliseconds(10);
// Keys and payloads of one answer, of all partitions together; one record may exceed it. Two of the
// largest fit into an answer between nodes.
constexpr std::uint64_t kAnswerBytes = 16u << 20;

// A lease that cannot be live because its partition has nothing out: what release 2.x answers.
Error stale_handle() { return Error(Errc::gone, "receipt handle is not a live lease"); }

Result<void> settle_result(delivery::SettleStatus status) {
  switch (status) {
    case delivery::SettleStatus::done:
      return ok();
    case delivery::SettleStatus::stale:
      return stale_handle();
    case delivery::SettleStatus::ahead_full:
      return Error(
          Errc::unavailable,
          "too many out-of-order acks are waiting for earlier ones; the lease is kept, retry");
  }
  return Error(Errc::internal, "unknown settle status");
}

delivery::LeaseCaps caps_of(const Topic& topic) {
  delivery::LeaseCaps caps;
  caps.in_flight_max = static_cast<std::uint64_t>(topic.max_in_flight_per_partition);
  caps.acked_ahead_max = static_cast<std::uint64_t>(topic.max_acked_ahead_per_partition);
  return caps;
}

Nanos visibility_of(const Topic& topic) {
  // Very long time-outs are capped at a century, so that adding them to a clock cannot overflow.
  constexpr std::int64_t kMillisMax = 100ll * 365 * 24 * 3'600'000;
  return std::chrono::milliseconds(std::min(topic.visibility_timeout_ms, kMillisMax));
}

}  // namespace

LocalBroker::LocalBroker(Env& env, std::string node_id, metastore::Proposer& metastore,
                         Partitions& partitions, moves::Source* moves)
    : env_(env),
      node_id_(std::move(node_id)),
      metastore_(metastore),
      partitions_(partitions),
      moves_(moves) {}

Result<metastore::TopicRowPtr> LocalBroker::row(const std::string& topic,
                                                Incarnation incarnation) const {
  auto found = metastore_.view()->topics.get(topic);
  if (!found || found->topic.incarnation != incarnation) {
    return Error(Errc::not_found, "topic not found");
  }
  return found;
}

Result<void> LocalBroker::may_lease(const TopicPartition& id, Incarnation incarnation) const {
  if (moves_ == nullptr) return ok();
  return moves_->may_lease(id, incarnation);
}

Result<void> LocalBroker::may_settle(const TopicPartition& id, Incarnation incarnation) const {
  if (moves_ == nullptr) return ok();
  return moves_->may_settle(id, incarnation);
}

// ---- reading ---------------------------------------------------------------------------------

Task<Result<std::vector<api::LeasedMessage>>> LocalBroker::consume(
    std::string name, Incarnation incarnation, std::optional<PartitionId> pinned,
    std::uint32_t max) {
  NARAD_CO_TRY(auto topic, row(name, incarnation));
  const auto count = static_cast<std::uint32_t>(topic->assignments.size());
  std::uint32_t begin = 0, looks = count;
  if (pinned) {
    begin = pinned->value();
    looks = 1;
    if (begin >= count) co_return Error(Errc::not_found, "no such partition");
    const std::string& owner = topic->assignments[begin].owner_node;
    if (owner.empty()) co_return Error(Errc::not_owner, "the partition has no owner yet");
    if (owner != node_id_) {
      co_return Error(Errc::not_owner, cat("the partition is owned by node ", owner));
    }
  } else {
    begin = count == 0 ? 0 : rotation_++ % count;
  }
  std::optional<Error> trouble;
  std::vector<api::LeasedMessage> messages;
  Nanos first_lease{0};
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < looks; ++i) {
    // The leases of what was found run already: a slow disk elsewhere must not eat them up.
    if (!messages.empty() && env_.clock.mono() - first_lease > kFillTime) break;
    const std::uint32_t p = (begin + i) % count;
    const Assignment& assignment = topic->assignments[p];
    if (!assignment.used || assignment.owner_node != node_id_) continue;
    const auto room = max - static_cast<std::uint32_t>(messages.size());
    const std::uint64_t left = kAnswerBytes - std::min(bytes, kAnswerBytes);
    if (left == 0) break;
    auto part = co_await consume_from(TopicPartition{name, PartitionId(p)}, topic, room, left);
    if (!part) {
      // One bad partition does not keep the messages of the others back, and one that has just
      // moved away is nobody's trouble here.
      if (pinned || part.error().code() != Errc::not_owner) trouble = part.error();
      continue;
    }
    if (messages.empty()) first_lease = env_.clock.mono();
    for (const auto& m : part.value()) bytes += m.record.key.size() + m.record.payload.size();
    std::move(part.value().begin(), part.value().end(), std::back_inserter(messages));
    if (messages.size() >= max) break;
  }
  if (messages.empty() && trouble) co_return *trouble;
  co_return messages;
}

Task<Result<std::vector<api::LeasedMessage>>> LocalBroker::consume_from(TopicPartition id,
                                                                        metastore::TopicRowPtr row,
                                                                        std::uint32_t max,
                                                                        std::uint64_t bytes_max) {
  const Incarnation life = row->topic.incarnation;
  std::vector<api::LeasedMessage> messages;
  if (auto may = may_lease(id, life); !may) {
    if (may.error().code() == Errc::not_owner) co_return may.error();
    co_return messages;  // whoever waits is woken when that is over
  }
  NARAD_CO_TRY(Pin pin, co_await partitions_.open(id, life, OpenFor::read));
  delivery::ConsumeOptions options;
  options.records_max = max;
  options.bytes_max = bytes_max;
  options.visibility = visibility_of(row->topic);
  options.caps = caps_of(row->topic);
  // Asked when leases are taken, so that a freeze which began meanwhile counts.
  if (moves_ != nullptr) options.may_lease = [this, &id, life] { return !!may_lease(id, life); };
  auto result = co_await pin->delivery->consume(std::move(options));
  if (!result) {
    // Closed under our hands because it moved?
    if (auto may = may_lease(id, life); !may && may.error().code() == Errc::not_owner) {
      co_return may.error();
    }
    co_return result.error();
  }
  messages.reserve(result.value().records.size());
  for (auto& leased : result.value().records) {
    api::LeasedMessage message;
    message.handle = ReceiptHandle{id.partition, leased.record.offset, leased.nonce.value()};
    message.record = std::move(leased.record);
    messages.push_back(std::move(message));
  }
  co_return messages;
}

Task<Result<std::optional<StoredRecord>>> LocalBroker::replay(TopicPartition id,
                                                              Incarnation incarnation,
                                                              Offset offset) {
  NARAD_CO_TRY(auto topic, row(id.topic, incarnation));
  if (id.partition.value() >= topic->assignments.size()) {
    co_return Error(Errc::not_found, "no such partition");
  }
  const std::optional<StoredRecord> nothing;
  if (!topic->assignments[id.partition.value()].used) co_return nothing;
  NARAD_CO_TRY(Pin pin, co_await partitions_.open(id, incarnation, OpenFor::read));
  if (offset >= pin->log->hwm()) co_return nothing;
  auto batch = co_await pin->log->read(offset, 1, 0);
  if (!batch) {
    // Closed under our hands because it moved?
    auto may = may_settle(id, incarnation);
    co_return !may && may.error().code() == Errc::not_owner ? may.error() : batch.error();
  }
  for (auto& record : batch.value().records) {
    if (record.offset == offset) co_return std::optional<StoredRecord>(std::move(record));
  }
  co_return Error(Errc::gone, cat("the record at offset ", offset, " is unreadable"));
}

Task<Result<std::vector<api::PartitionStat>>> LocalBroker::stats(
    std::string name, Incarnation incarnation, std::vector<PartitionId> partitions) {
  NARAD_CO_TRY(auto topic, row(name, incarnation));
  std::vector<api::PartitionStat> stats;
  for (const PartitionId p : partitions) {
    if (p.value() >= topic->assignments.size()) {
      co_return Error(Errc::not_found, "no such partition");
    }
    NARAD_CO_TRY(auto one, co_await stat(TopicPartition{name, p}, topic));
    stats.push_back(std::move(one));
  }
  co_return stats;
}

Task<Result<api::PartitionStat>> LocalBroker::stat(TopicPartition id, metastore::TopicRowPtr row) {
  const Assignment& assignment = row->assignments[id.partition.value()];
  api::PartitionStat stat;
  stat.index = id.partition;
  stat.owner_node = assignment.owner_node;
  stat.segments = 1;  // what an owned partition has from its first day (http-api 1.5)
  if (!assignment.used) co_return stat;
  NARAD_CO_TRY(Pin pin, co_await partitions_.open(id, row->topic.incarnation, OpenFor::read));
  const seglog::LogStats log = pin->log->stats().log;
  stat.segments = log.segments;
  stat.oldest_offset = log.oldest;
  stat.next_offset = pin->log->log_end();
  stat.high_watermark = pin->log->hwm();
  stat.size_bytes = log.bytes;
  // A lone segment was last modified by the last commit.
  const UnixMillis oldest = log.segments > 1 ? log.oldest_mtime : log.last_commit;
  stat.oldest_segment_at_s = oldest.value() / 1000;
  co_return stat;
}

// ---- settling --------------------------------------------------------------------------------

Task<std::vector<Result<void>>> LocalBroker::settle(std::string topic, Incarnation incarnation,
                                                    std::vector<ReceiptHandle> handles,
                                                    SettleMode mode) {
  std::vector<Result<void>> results(handles.size(), Result<void>(stale_handle()));
  auto found = row(topic, incarnation);
  if (!found) {
    results.assign(handles.size(), Result<void>(found.error()));
    co_return results;
  }
  std::map<PartitionId, std::vector<std::size_t>> by_partition;
  for (std::size_t i = 0; i < handles.size(); ++i) by_partition[handles[i].partition].push_back(i);
  for (const auto& [partition, indices] : by_partition) {
    const auto& assignments = found.value()->assignments;
    if (partition.value() >= assignments.size() || !assignments[partition.value()].used) continue;
    const TopicPartition id{topic, partition};
    auto pin = co_await partitions_.open(id, incarnation, OpenFor::read);
    Result<void> may = ok();
    if (!pin) may = pin.error();
    if (may) may = may_settle(id, incarnation);
    if (!may) {
      for (std::size_t i : indices) results[i] = may.error();
      continue;
    }
    std::vector<delivery::Lease> leases;
    leases.reserve(indices.size());
    for (std::size_t i : indices) {
      leases.push_back({handles[i].offset, delivery::LeaseNonce(handles[i].nonce)});
    }
    const Topic& settings = found.value()->topic;
    auto statuses = pin.value()->delivery->settle_many(mode, leases, caps_of(settings),
                                                       visibility_of(settings));
    for (std::size_t k = 0; k < indices.size(); ++k) {
      results[indices[k]] = settle_result(statuses[k]);
    }
  }
  co_return results;
}

// ---- hand-over -------------------------------------------------------------------------------

Task<Result<CommitOutcome>> LocalBroker::commit(TopicPartition id, CommitBatch batch) {
  if (metastore_.view()->applied < batch.assignment_index) {
    co_return Error(Errc::unavailable, "this node has not applied the sender's assignment yet");
  }
  NARAD_CO_TRY(Pin pin, co_await partitions_.open(id, batch.incarnation, OpenFor::commit));
  co_return co_await pin->log->commit(std::move(batch));
}

}  // namespace narad::node
