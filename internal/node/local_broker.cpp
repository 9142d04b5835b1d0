#include "internal/node/local_broker.h"

#include <map>
#include <utility>

#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::node {
namespace {

// How long a consume that has found messages goes on to fill its answer from other partitions.
constexpr Nanos kFillTime = std::chrono::milliseconds(10);

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
                         ingress::Ingress& ingress, Partitions& partitions,
                         std::function<api::Readiness()> readiness)
    : env_(env),
      node_id_(std::move(node_id)),
      metastore_(metastore),
      ingress_(ingress),
      partitions_(partitions),
      readiness_(std::move(readiness)) {}

metastore::ViewPtr LocalBroker::view() const { return metastore_.view(); }

api::Readiness LocalBroker::readiness() const { return readiness_(); }

Result<metastore::TopicRowPtr> LocalBroker::row(const std::string& topic,
                                                Incarnation incarnation) const {
  auto found = metastore_.view()->topics.get(topic);
  if (!found || found->topic.incarnation != incarnation) {
    return Error(Errc::not_found, "topic not found");
  }
  return found;
}

// ---- topics ----------------------------------------------------------------------------------

Task<Result<Topic>> LocalBroker::create_topic(metastore::TopicSpec spec) {
  return metastore::create_topic(env_, metastore_, std::move(spec));
}

Task<Result<Topic>> LocalBroker::alter_topic(std::string name, metastore::TopicPatch patch) {
  auto result = co_await metastore::alter_topic(metastore_, name, std::move(patch));
  if (result) {
    // Caps may have grown, partitions may have come: let those who wait look again.
    auto waiters = partitions_.topic_waiters(name);
    waiters->wake(waiters->size());
  }
  co_return result;
}

Task<Result<void>> LocalBroker::delete_topic(std::string name) {
  NARAD_CO_TRY(Incarnation incarnation, co_await metastore::delete_topic(metastore_, name));
  // Proof for the removal: the metastore has just applied the deletion of this incarnation.
  if (auto removed = co_await partitions_.remove_topic(name, incarnation); !removed) {
    NARAD_LOG_ERROR(env_.log, "data of a deleted topic not removed; the next start sets it aside",
                    {"topic", name}, {"error", removed.error()});
  }
  co_return ok();
}

Task<Result<void>> LocalBroker::put_schema(std::string name, Incarnation incarnation,
                                           std::uint32_t version, std::string schema) {
  return metastore::put_schema(metastore_, std::move(name), incarnation, version,
                               std::move(schema));
}

Task<Result<std::vector<api::PartitionStat>>> LocalBroker::partition_stats(
    std::string topic, std::optional<PartitionId> only) {
  auto found = metastore_.view()->topics.get(topic);
  if (!found) co_return Error(Errc::not_found, "topic not found");
  std::vector<api::PartitionStat> stats;
  for (std::uint32_t p = 0; p < found->assignments.size(); ++p) {
    if (only && only->value() != p) continue;
    const Assignment& assignment = found->assignments[p];
    api::PartitionStat stat;
    stat.index = PartitionId(p);
    stat.owner_node = assignment.owner_node;
    stat.segments = 1;  // what an owned partition has from its first day (http-api 1.5)
    if (assignment.used) {
      const TopicPartition id{topic, PartitionId(p)};
      NARAD_CO_TRY(Pin pin, co_await partitions_.open(id, found->topic.incarnation, OpenFor::read));
      const seglog::LogStats log = pin->log->stats().log;
      stat.segments = log.segments;
      stat.oldest_offset = log.oldest;
      stat.next_offset = pin->log->log_end();
      stat.high_watermark = pin->log->hwm();
      stat.size_bytes = log.bytes;
      // A lone segment was last modified by the last commit.
      const UnixMillis oldest = log.segments > 1 ? log.oldest_mtime : log.last_commit;
      stat.oldest_segment_at_s = oldest.value() / 1000;
    }
    stats.push_back(std::move(stat));
  }
  co_return stats;
}

// ---- messages --------------------------------------------------------------------------------

Task<Result<void>> LocalBroker::produce(MessagePtr message) {
  auto sequence = co_await ingress_.accept(std::move(message));
  if (!sequence) co_return sequence.error();
  co_return ok();
}

Task<Result<void>> LocalBroker::produce_batch(std::vector<MessagePtr> messages) {
  auto first = co_await ingress_.accept_batch(std::move(messages));
  if (!first) co_return first.error();
  co_return ok();
}

Task<Result<std::vector<api::LeasedMessage>>> LocalBroker::consume(api::ConsumeRequest request) {
  const Deadline deadline = Deadline::after(env_, request.wait);
  // Enrolled before the first look, so that a message which lands meanwhile is not missed.
  delivery::Waiters::Ticket ticket(env_, partitions_.topic_waiters(request.topic));
  for (;;) {
    auto found = co_await consume_once(request);
    if (found && !found.value().empty()) ticket.found();
    if (!found || !found.value().empty()) co_return found;
    if (request.local_only || waits_ended_ || !co_await ticket.wait(deadline)) co_return found;
  }
}

Task<Result<std::vector<api::LeasedMessage>>> LocalBroker::consume_once(
    const api::ConsumeRequest& request) {
  NARAD_CO_TRY(auto topic, row(request.topic, request.incarnation));
  const auto count = static_cast<std::uint32_t>(topic->assignments.size());
  std::uint32_t begin = 0, looks = count;
  if (request.partition) {
    begin = request.partition->value();
    looks = 1;
    if (begin >= count) co_return Error(Errc::not_found, "no such partition");
    const std::string& owner = topic->assignments[begin].owner_node;
    if (!owner.empty() && owner != node_id_) {
      co_return Error(Errc::not_owner, cat("the partition is owned by node ", owner));
    }
  } else {
    begin = count == 0 ? 0 : rotation_++ % count;
  }
  std::optional<Error> trouble;
  std::vector<api::LeasedMessage> messages;
  Nanos first_lease{0};
  for (std::uint32_t i = 0; i < looks; ++i) {
    // The leases of what was found run already: a slow disk elsewhere must not eat them up.
    if (!messages.empty() && env_.clock.mono() - first_lease > kFillTime) break;
    const std::uint32_t p = (begin + i) % count;
    const Assignment& assignment = topic->assignments[p];
    if (!assignment.used || assignment.owner_node != node_id_) continue;
    const auto room = request.max - static_cast<std::uint32_t>(messages.size());
    auto part = co_await consume_from(TopicPartition{request.topic, PartitionId(p)}, topic, room);
    if (!part) {
      // One bad partition does not keep the messages of the others back.
      trouble = part.error();
      continue;
    }
    if (messages.empty()) first_lease = env_.clock.mono();
    std::move(part.value().begin(), part.value().end(), std::back_inserter(messages));
    if (messages.size() >= request.max) break;
  }
  if (messages.empty() && trouble) co_return *trouble;
  co_return messages;
}

Task<Result<std::vector<api::LeasedMessage>>> LocalBroker::consume_from(TopicPartition id,
                                                                        metastore::TopicRowPtr row,
                                                                        std::uint32_t max) {
  NARAD_CO_TRY(Pin pin, co_await partitions_.open(id, row->topic.incarnation, OpenFor::read));
  delivery::ConsumeOptions options;
  options.records_max = max;
  options.visibility = visibility_of(row->topic);
  options.caps = caps_of(row->topic);
  NARAD_CO_TRY(auto result, co_await pin->delivery->consume(std::move(options)));
  std::vector<api::LeasedMessage> messages;
  messages.reserve(result.records.size());
  for (auto& leased : result.records) {
    api::LeasedMessage message;
    message.handle = ReceiptHandle{id.partition, leased.record.offset, leased.nonce.value()};
    message.record = std::move(leased.record);
    messages.push_back(std::move(message));
  }
  co_return messages;
}

Task<Result<std::optional<StoredRecord>>> LocalBroker::replay(api::ReplayRequest request) {
  NARAD_CO_TRY(auto topic, row(request.topic, request.incarnation));
  if (request.partition.value() >= topic->assignments.size()) {
    co_return Error(Errc::not_found, "no such partition");
  }
  const std::optional<StoredRecord> nothing;
  if (!topic->assignments[request.partition.value()].used) co_return nothing;
  const TopicPartition id{request.topic, request.partition};
  NARAD_CO_TRY(Pin pin, co_await partitions_.open(id, request.incarnation, OpenFor::read));
  if (request.offset >= pin->log->hwm()) co_return nothing;
  NARAD_CO_TRY(auto batch, co_await pin->log->read(request.offset, 1, 0));
  for (auto& record : batch.records) {
    if (record.offset == request.offset) co_return std::optional<StoredRecord>(std::move(record));
  }
  co_return Error(Errc::gone, cat("the record at offset ", request.offset, " is unreadable"));
}

Task<Result<void>> LocalBroker::settle(std::string topic, Incarnation incarnation,
                                       ReceiptHandle handle, SettleMode mode) {
  std::vector<ReceiptHandle> handles{handle};
  auto results = co_await settle_batch(std::move(topic), incarnation, std::move(handles), mode);
  co_return std::move(results.front());
}

Task<std::vector<Result<void>>> LocalBroker::settle_batch(std::string topic,
                                                          Incarnation incarnation,
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
    if (!pin) {
      for (std::size_t i : indices) results[i] = pin.error();
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
    for (std::size_t k = 0; k < indices.size(); ++k)
      results[indices[k]] = settle_result(statuses[k]);
  }
  co_return results;
}

void LocalBroker::end_waits() {
  waits_ended_ = true;
  partitions_.wake_all();
}

// ---- hand-over -------------------------------------------------------------------------------

dispatch::Route LocalBroker::route(const TopicPartition& partition, Incarnation incarnation) const {
  dispatch::Route route;
  const auto view = metastore_.view();
  const auto* found = view->topics.find(partition.topic);
  if (found == nullptr || found->topic.incarnation != incarnation) return route;
  route.topic_known = true;
  route.partitions = found->topic.partitions;
  if (partition.partition.value() >= found->assignments.size()) return route;
  const Assignment& assignment = found->assignments[partition.partition.value()];
  route.assignment_index = assignment.changed_at;
  if (assignment.owner_node.empty()) return route;
  route.owner = dispatch::OwnerState::alive;
  if (assignment.owner_node != node_id_) {
    const auto* member = view->members.find(assignment.owner_node);
    if (member == nullptr || member->status == metastore::MemberStatus::dead) {
      route.owner = dispatch::OwnerState::dead;
    }
  }
  return route;
}

Task<Result<CommitOutcome>> LocalBroker::commit(TopicPartition partition, CommitBatch batch) {
  if (metastore_.view()->applied < batch.assignment_index) {
    co_return Error(Errc::unavailable, "this node has not applied the sender's assignment yet");
  }
  NARAD_CO_TRY(Pin pin, co_await partitions_.open(partition, batch.incarnation, OpenFor::commit));
  co_return co_await pin->log->commit(std::move(batch));
}

Task<Result<bool>> LocalBroker::confirm_gone(std::string topic, Incarnation incarnation) {
  // A lone node is its own leader. Proof is the deletion itself, never that the topic is not there:
  // a metastore put back from a backup lacks the topics that are younger than it.
  const auto view = metastore_.view();
  if (view->was_deleted(topic, incarnation)) co_return true;
  const auto* found = view->topics.find(topic);
  if (found != nullptr && found->topic.incarnation == incarnation) co_return false;
  co_return Error(Errc::unavailable,
                  cat("the metastore knows neither topic ", topic, " of incarnation ",
                      to_hex16(incarnation.value()),
                      " nor its deletion (is it a restored, older copy?): its records are kept"));
}

Event& LocalBroker::routing_changed() { return metastore_.changed(); }

}  // namespace narad::node
