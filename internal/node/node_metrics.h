#pragma once
// Publishes what the parts of a node count, as metrics: the per-partition gauges of open partitions
// and the totals of the actors. Totals of a partition go on across closing and opening it.
#include <map>
#include <set>
#include <string>

#include "internal/dispatch/dispatcher.h"
#include "internal/ingress/ingress.h"
#include "internal/node/partitions.h"
#include "pkg/metrics/registry.h"

namespace narad::node {

class NodeMetrics {
 public:
  explicit NodeMetrics(metrics::Registry& registry) : registry_(registry) {}
  void publish(const metastore::State& state, const Partitions& partitions,
               const ingress::Ingress& ingress, const dispatch::Dispatcher& dispatcher,
               bool clock_trusted, UnixMillis now);

 private:
  void publish_partition(const OpenPartition& partition, UnixMillis now);
  // Adds what a total of this opening has grown by since the last time.
  void add(std::string_view family, const metrics::LabelValues& labels, std::uint64_t opening,
           std::uint64_t total);

  metrics::Registry& registry_;
  std::set<std::string> topics_;  // with series
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> seen_;
};

}  // namespace narad::node
