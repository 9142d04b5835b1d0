#include "internal/metastore/move_budget.h"

#include <algorithm>

namespace narad::metastore {

void Receivers::see(const Assignment& a) {
  // Between two disks of one node nothing is sent.
  if (a.target_node.empty() || a.owner_node.empty() || a.target_node == a.owner_node) return;
  by_source_[a.owner_node].insert(a.target_node);
}

std::size_t Receivers::of(const std::string& source) const {
  const auto at = by_source_.find(source);
  return at == by_source_.end() ? 1 : at->second.size();
}

Receivers receivers_of(const State& state) {
  Receivers receivers;
  state.topics.for_each([&](const TopicRowPtr& row) {
    for (const Assignment& a : row->assignments) receivers.see(a);
  });
  return receivers;
}

std::uint64_t sending_share(std::uint64_t budget, std::size_t receivers) {
  if (budget == 0) return 0;
  return std::max<std::uint64_t>(1, budget / std::max<std::size_t>(1, receivers));
}

std::uint64_t budget_of(const State& state, const Receivers& receivers, const Assignment& move) {
  std::uint64_t all = state.move_rate.value_or(0);
  if (move.owner_node != move.target_node) all = sending_share(all, receivers.of(move.owner_node));
  if (all == 0 || move.move_rate == 0) return std::max(all, move.move_rate);
  return std::min(all, move.move_rate);
}

}  // namespace narad::metastore
