#include "internal/node/move_metrics.h"

#include <gtest/gtest.h>

#include "pkg/metrics/narad_metrics.h"

namespace narad::node {
namespace {

struct Published {
  Published() { metrics::declare_narad_metrics(registry); }
  void publish(const moves::RunnerStats& stats, std::size_t in_flight) {
    publisher.publish(stats, in_flight, std::make_shared<const metastore::State>(), "d");
  }
  double blocked(const char* reason) {
    return registry.gauge("narad_moves_blocked", {reason}).value();
  }
  metrics::Registry registry;
  MoveMetrics publisher{registry};
};

TEST(MoveMetrics, OBS_5_MovesThatThisDestinationCannotFinish_AreCountedByReason) {
  Published p;
  moves::RunnerStats stats;
  stats.blocked_unverifiable = 1;
  stats.blocked_copy_behind = 2;
  p.publish(stats, 5);
  EXPECT_EQ(p.blocked("copy_unverifiable"), 1);
  EXPECT_EQ(p.blocked("source_dead_copy_behind"), 2);
  EXPECT_EQ(p.blocked("source_went_back"), 0);
  EXPECT_EQ(p.registry.gauge("narad_moves_inflight").value(), 5);
  stats.blocked_unverifiable = 0;
  stats.blocked_copy_behind = 0;
  p.publish(stats, 0);
  EXPECT_EQ(p.blocked("copy_unverifiable"), 0) << "over";
  EXPECT_EQ(p.blocked("source_dead_copy_behind"), 0);
  EXPECT_EQ(p.registry.gauge("narad_moves_inflight").value(), 0);
}

}  // namespace
}  // namespace narad::node
