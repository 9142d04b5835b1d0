#include "internal/simtest/ownership.h"

#include <utility>

namespace narad::simtest {

std::vector<Ownership::Change> Ownership::shown(const metastore::ViewPtr& view) {
  std::vector<Change> out;
  if (newest_ != nullptr && view->applied <= newest_->applied) return out;
  const metastore::ViewPtr before = std::exchange(newest_, view);
  const auto look = [&](const metastore::TopicRow*, const metastore::TopicRow* after) {
    if (after != nullptr) look_at(*after, *view, out);
  };
  if (before != nullptr) {
    before->topics.diff(view->topics, look);
  } else {
    view->topics.for_each([&](const auto& row) { look(nullptr, row.get()); });
  }
  return out;
}

void Ownership::look_at(const metastore::TopicRow& row, const metastore::State& state,
                        std::vector<Change>& out) {
  for (std::uint32_t p = 0; p < row.assignments.size(); ++p) {
    const Assignment& a = row.assignments[p];
    const LogName log{{row.topic.name, PartitionId(p)}, row.topic.incarnation};
    Known& known = logs_[log];
    // Whoever was asked before did not know of this freeze.
    const Nanos armed_after = known.armed ? known.armed_after : asked_all_;
    const bool other_freeze = a.freeze_armed && (!known.armed || known.epoch != a.freeze_epoch);
    if (other_freeze) known.armed_after = asked_all_;
    known.armed = a.freeze_armed;
    known.epoch = a.freeze_epoch;
    // It may have been away and come back since the last look: another move gave it.
    const bool same_owner = a.owner_node == known.owner;
    const bool another_move =
        std::exchange(known.owned_by_move, a.owned_by_move) != a.owned_by_move;
    if (same_owner && !another_move) continue;
    Change change{log, std::exchange(known.owner, a.owner_node), a.owner_node};
    const auto* move = state.moves.find(metastore::move_key(a.owned_by_move));
    if (move != nullptr && move->to_node == a.owner_node) change.how = move->outcome;
    change.armed_after = same_owner ? Nanos(0) : armed_after;
    known.changed = ++changes_;
    out.push_back(std::move(change));
  }
}

std::optional<std::string> Ownership::owner(const LogName& log) const {
  const auto known = logs_.find(log);
  if (known == logs_.end() || known->second.owner.empty()) return std::nullopt;
  return known->second.owner;
}

bool Ownership::changed_since(const LogName& log, std::uint64_t changes) const {
  const auto known = logs_.find(log);
  return known != logs_.end() && known->second.changed > changes;
}

}  // namespace narad::simtest
