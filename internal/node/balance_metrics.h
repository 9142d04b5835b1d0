#pragma once
// Publishes what holds moves and departures up, as the leader sees it (OBS-4, OBS-7). Gauges are
// set each time: what is over, or seen by another leader now, becomes 0.
#include <set>
#include <string>
#include <utility>

#include "internal/cluster/balancer.h"
#include "pkg/metrics/registry.h"

namespace narad::node {

class BalanceMetrics {
 public:
  explicit BalanceMetrics(metrics::Registry& registry) : registry_(registry) {}
  // An empty report: this node does not lead.
  void publish(const cluster::BalancerReport& report);

 private:
  void publish_moves(const cluster::BalancerReport& report);
  void publish_drains(const cluster::BalancerReport& report);

  metrics::Registry& registry_;
  std::set<std::pair<std::string, std::string>> drains_;  // node and reason, with a series
};

}  // namespace narad::node
