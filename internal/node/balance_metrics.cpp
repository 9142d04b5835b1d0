#include "internal/node/balance_metrics.h"

#include <array>
#include <map>
#include <string_view>

namespace narad::node {
namespace {

// Those of metastore::blocks_of(): present with 0 from the start, so that an alarm sees them rise.
constexpr std::array<std::string_view, 3> kBlocks{"source_dead", "target_dead",
                                                  "target_not_member"};

}  // namespace

void BalanceMetrics::publish(const cluster::BalancerReport& report) {
  publish_moves(report);
  publish_drains(report);
}

void BalanceMetrics::publish_moves(const cluster::BalancerReport& report) {
  std::map<std::string_view, std::uint64_t> counts;
  for (const std::string_view block : kBlocks) counts[block] = 0;
  for (const cluster::MoveUnderWay& move : report.blocked) {
    for (const std::string_view block : move.blocks) ++counts[block];
  }
  for (const auto& [block, count] : counts) {
    registry_.gauge("narad_moves_blocked", {std::string(block)}).set(static_cast<double>(count));
  }
}

void BalanceMetrics::publish_drains(const cluster::BalancerReport& report) {
  std::set<std::pair<std::string, std::string>> now;
  for (const DrainVerdict& drain : report.drains) {
    for (const DrainReason& reason : drain.reasons) {
      now.emplace(drain.node, std::string(to_string(reason.rule)));
    }
  }
  drains_.insert(now.begin(), now.end());
  for (const auto& series : drains_) {
    registry_.gauge("narad_decommission_blocked", {series.first, series.second})
        .set(now.contains(series) ? 1 : 0);
  }
}

}  // namespace narad::node
