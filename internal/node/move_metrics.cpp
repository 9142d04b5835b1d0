#include "internal/node/move_metrics.h"

#include <utility>

namespace narad::node {

void MoveMetrics::publish(const moves::RunnerStats& stats, std::size_t in_flight,
                          const metastore::ViewPtr& state, const std::string& self) {
  const auto blocked = [&](std::string_view reason, std::uint64_t count) {
    registry_.gauge("narad_moves_blocked", {std::string(reason)}).set(static_cast<double>(count));
  };
  blocked("copy_unverifiable", stats.blocked_unverifiable);
  blocked("source_dead_copy_behind", stats.blocked_copy_behind);
  blocked("source_went_back", stats.blocked_went_back);
  registry_.gauge("narad_moves_inflight").set(static_cast<double>(in_flight));
  registry_.counter("narad_moves_bytes_total").add(static_cast<double>(stats.bytes - bytes_));
  bytes_ = stats.bytes;
  count_ended(state, self);
}

void MoveMetrics::count_ended(const metastore::ViewPtr& state, const std::string& self) {
  const metastore::ViewPtr before = std::exchange(seen_, state);
  if (before == nullptr || before == state) return;
  using metastore::MoveOutcome;
  using metastore::MoveRecord;
  before->moves.diff(state->moves, [&](const MoveRecord* was, const MoveRecord* is) {
    if (is == nullptr || is->to_node != self) return;
    const bool moved = is->outcome == MoveOutcome::moved;
    if (!moved && is->outcome != MoveOutcome::promoted) return;
    if (was != nullptr && was->outcome == is->outcome) return;
    registry_.counter("narad_moves_total", {moved ? "completed" : "force_promoted"}).add(1);
    const auto took = static_cast<double>(is->ended.value() - is->started.value()) / 1000;
    if (is->started.value() != 0 && took >= 0)
      registry_.histogram("narad_moves_duration_seconds").observe(took);
  });
}

}  // namespace narad::node
