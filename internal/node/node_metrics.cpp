#include "internal/node/node_metrics.h"

#include "pkg/base/text.h"

namespace narad::node {
namespace {
double d(std::uint64_t n) { return static_cast<double>(n); }
}  // namespace

void NodeMetrics::add(std::string_view family, const metrics::LabelValues& labels,
                      std::uint64_t opening, std::uint64_t total) {
  auto& seen = seen_[{opening, std::string(family)}];
  if (total > seen) registry_.counter(family, labels).add(d(total - seen));
  seen = total;
}

void NodeMetrics::publish_partition(const OpenPartition& p, UnixMillis now) {
  const metrics::LabelValues labels{p.id.topic, to_string(p.id.partition)};
  const PartitionStats log = p.log->stats();
  const delivery::DeliveryStats consumers = p.delivery->stats();
  registry_.gauge("narad_partition_size_bytes", labels).set(d(log.log.bytes));
  registry_.gauge("narad_segments", labels).set(d(log.log.segments));
  registry_.gauge("narad_consumer_lag_messages", labels).set(d(consumers.lag));
  registry_.gauge("narad_consumer_dropped_messages", labels).set(d(consumers.dropped));
  registry_.gauge("narad_inflight_size", labels).set(d(consumers.in_flight));
  registry_.gauge("narad_acked_ahead_size", labels).set(d(consumers.acked_ahead));
  double age = 0;
  if (consumers.lag > 0 && log.log.oldest_mtime.value() > 0 && now > log.log.oldest_mtime) {
    age = static_cast<double>(now.minus(log.log.oldest_mtime)) / 1000;
  }
  registry_.gauge("narad_oldest_unconsumed_message_age_seconds", labels).set(age);
  add("narad_messages_produced_total", labels, p.opening, log.log.records);
  add("narad_bytes_produced_total", labels, p.opening, log.log.record_bytes);
  add("narad_messages_consumed_total", labels, p.opening, consumers.delivered_total);
  add("narad_bytes_consumed_total", labels, p.opening, consumers.delivered_bytes_total);
  add("narad_consumer_corrupt_skipped_total", labels, p.opening, consumers.corrupt_skipped_total);
  add("narad_consume_state_unreadable_total", labels, p.opening, consumers.state_unreadable_total);
  add("narad_origin_dropped_total", labels, p.opening, log.log.origins_dropped);
  add("narad_ack_extended_total", {p.id.topic}, p.opening, consumers.extended_total);
  add("narad_nack_total", {p.id.topic}, p.opening, consumers.nacked_total);
  add("narad_ack_rejected_total", {"cap"}, p.opening, consumers.ack_rejected_total);
}

void NodeMetrics::publish(const metastore::State& state, const Partitions& partitions,
                          const ingress::Ingress& ingress, const dispatch::Dispatcher& dispatcher,
                          bool clock_trusted, UnixMillis now) {
  for (auto it = topics_.begin(); it != topics_.end();) {
    if (state.topics.contains(*it)) {
      ++it;
      continue;
    }
    registry_.remove_series("topic", *it);
    it = topics_.erase(it);
  }
  // Gauges of partitions are set anew as a whole: those that have closed lose theirs.
  for (std::string_view name :
       {"narad_partition_size_bytes", "narad_segments", "narad_consumer_lag_messages",
        "narad_consumer_dropped_messages", "narad_inflight_size", "narad_acked_ahead_size",
        "narad_oldest_unconsumed_message_age_seconds", "narad_topic_bytes"}) {
    registry_.clear(name);
  }
  const auto open = partitions.open_now();
  std::uint64_t latched = 0;
  std::map<std::string, std::uint64_t> topic_bytes;
  std::set<std::uint64_t> alive;
  for (const auto& partition : open) {
    topics_.insert(partition->id.topic);
    alive.insert(partition->opening);
    publish_partition(*partition, now);
    topic_bytes[partition->id.topic] += partition->log->stats().log.bytes;
    if (partition->log->latched()) ++latched;
  }
  std::erase_if(seen_, [&](const auto& item) { return !alive.contains(item.first.first); });
  for (const auto& [topic, bytes] : topic_bytes) {
    registry_.gauge("narad_topic_bytes", {topic}).set(d(bytes));
  }
  registry_.gauge("narad_topics_total").set(d(state.topics.size()));
  registry_.gauge("narad_partitions_total").set(d(open.size()));
  registry_.gauge("narad_partitions_latched").set(d(latched));
  registry_.gauge("narad_clock_trusted").set(clock_trusted ? 1 : 0);
  const auto wal = ingress.stats();
  registry_.gauge("narad_ingress_backlog_bytes").set(d(wal.backlog_bytes));
  registry_.counter("narad_ingress_refused_total").set_total(d(wal.refused));
  const auto plan = dispatcher.stats();
  registry_.gauge("narad_dispatch_unsettled_records").set(d(plan.unsettled));
  registry_.counter("narad_dispatch_rerouted_total").set_total(d(plan.rerouted));
  registry_.counter("narad_dispatch_discarded_total").set_total(d(plan.discarded));
}

}  // namespace narad::node
