#include "internal/node/balance_metrics.h"

#include <gtest/gtest.h>

#include "pkg/metrics/narad_metrics.h"

namespace narad::node {
namespace {

using cluster::BalancerReport;
using cluster::MoveUnderWay;

struct Published {
  Published() { metrics::declare_narad_metrics(registry); }
  double moves(const char* reason) {
    return registry.gauge("narad_moves_blocked", {reason}).value();
  }
  bool says(std::string_view line) { return registry.expose().find(line) != std::string::npos; }
  metrics::Registry registry;
  BalanceMetrics publisher{registry};
};

MoveUnderWay blocked_by(std::vector<std::string_view> blocks) {
  MoveUnderWay move;
  move.blocks = std::move(blocks);
  return move;
}

TEST(BalanceMetrics, OBS_4_BlockedMoves_AreCountedByReason) {
  Published p;
  p.publisher.publish({});
  EXPECT_TRUE(p.says("narad_moves_blocked{reason=\"source_dead\"} 0\n"));
  BalancerReport report;
  report.blocked = {blocked_by({"source_dead"}), blocked_by({"source_dead", "target_dead"}),
                    blocked_by({"target_not_member"})};
  p.publisher.publish(report);
  EXPECT_EQ(p.moves("source_dead"), 2);
  EXPECT_EQ(p.moves("target_dead"), 1);
  EXPECT_EQ(p.moves("target_not_member"), 1);
}

TEST(BalanceMetrics, OBS_7_DrainsThatWait_AreShownByNodeAndReason) {
  Published p;
  BalancerReport report;
  report.drains = {
      {"n3", true, false, 2, 0, 0, {{DrainRule::owns_partitions, "owns 2 partitions"}}}};
  p.publisher.publish(report);
  EXPECT_TRUE(p.says("narad_decommission_blocked{node=\"n3\",reason=\"owns_partitions\"} 1\n"));
  report.drains[0].reasons = {{DrainRule::ingress_backlog, "holds 7 messages"}};
  p.publisher.publish(report);
  EXPECT_TRUE(p.says("narad_decommission_blocked{node=\"n3\",reason=\"owns_partitions\"} 0\n"));
  EXPECT_TRUE(p.says("narad_decommission_blocked{node=\"n3\",reason=\"ingress_backlog\"} 1\n"));
}

TEST(BalanceMetrics, G48_WhatIsOverOrSeenByAnotherLeader_IsZero) {
  Published p;
  BalancerReport report;
  report.blocked = {blocked_by({"target_dead"})};
  report.drains = {{"n3", true, false, 1, 0, 0, {{DrainRule::no_receiver, "nobody", true}}}};
  p.publisher.publish(report);
  p.publisher.publish({});
  EXPECT_EQ(p.moves("target_dead"), 0);
  EXPECT_TRUE(p.says("narad_decommission_blocked{node=\"n3\",reason=\"no_receiver\"} 0\n"));
}

}  // namespace
}  // namespace narad::node
