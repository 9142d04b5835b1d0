#pragma once
// Publishes what moves of this node count, as metrics (OBS-5). Gauges are set each time, so that
// one that is over becomes 0.
#include <cstddef>
#include <cstdint>
#include <string>

#include "internal/metastore/state.h"
#include "internal/moves/runner.h"
#include "pkg/metrics/registry.h"

namespace narad::node {

class MoveMetrics {
 public:
  explicit MoveMetrics(metrics::Registry& registry) : registry_(registry) {}
  // `in_flight`: moves to this node that it works on now.
  void publish(const moves::RunnerStats& stats, std::size_t in_flight,
               const metastore::ViewPtr& state, const std::string& self);

 private:
  // Moves to this node that have ended since the last time.
  void count_ended(const metastore::ViewPtr& state, const std::string& self);

  metrics::Registry& registry_;
  metastore::ViewPtr seen_;  // null before the first time: what ended earlier is not counted
  std::uint64_t bytes_ = 0;
};

}  // namespace narad::node
