#include "internal/cluster/targets.h"

#include <algorithm>

#include "internal/metastore/move_rules.h"

namespace narad::cluster {
namespace {

using metastore::Member;
using metastore::MemberStatus;
using metastore::State;

template <class F>
void for_each_move(const State& state, F visit) {
  state.topics.for_each([&](const metastore::TopicRowPtr& row) {
    for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      if (!a.target_node.empty()) visit(TopicPartition{row->topic.name, PartitionId(p)}, a);
    }
  });
}

// Moves that were cleared less than `hold` ago, for a reason that begins so.
template <class F>
void for_each_cleared(const State& state, std::string_view why, UnixMillis now, Nanos hold,
                      F visit) {
  const auto hold_ms = std::chrono::duration_cast<std::chrono::milliseconds>(hold).count();
  state.moves.for_each([&](const std::shared_ptr<const metastore::MoveRecord>& m) {
    const bool so = m->outcome == metastore::MoveOutcome::cleared && m->why.starts_with(why);
    const auto age = now.minus(m->ended);  // by two nodes' clocks: apart, but not held for hours
    if (so && age < hold_ms && age > -hold_ms) visit(*m);
  });
}

bool lost(const State& state, const std::string& node) {
  const Member* m = state.members.find(node);
  return m == nullptr || m->status == MemberStatus::dead;
}

// Why the target is to be taken back, or empty.
std::string_view why_clear(const State& state, const raft::Configuration& configuration,
                           const Silence& silence, const TargetRules& rules, const Assignment& a) {
  const Member* target = state.members.find(a.target_node);
  if (target == nullptr) return "target_not_member";
  const auto& disks = target->disks;
  const bool no_disk = std::find(disks.begin(), disks.end(), a.target_disk) == disks.end();
  if (no_disk && !lost(state, a.owner_node)) return "target_disk_missing";
  const bool dead = target->status == MemberStatus::dead;
  if (dead && silence(target->id) > rules.dead_target_abort_after) return "target_dead";
  if (!dead && !target->draining) return {};
  if (configuration.find_node(target->id) == nullptr) return "target_outside_raft";
  if (target->draining && !lost(state, a.owner_node)) return "target_draining";
  return {};
}

}  // namespace

std::vector<metastore::ClearTarget> targets_to_clear(const State& state,
                                                     const raft::Configuration& configuration,
                                                     const Silence& silence,
                                                     const TargetRules& rules) {
  std::vector<metastore::ClearTarget> clears;
  for_each_move(state, [&](const TopicPartition& tp, const Assignment& a) {
    const std::string_view why = why_clear(state, configuration, silence, rules, a);
    if (why.empty()) return;
    clears.push_back(
        {tp.topic, a.incarnation, tp.partition, a.target_node, a.move_id, std::string(why)});
  });
  return clears;
}

std::set<TopicPartition> held_partitions(const State& state, UnixMillis now, Nanos hold) {
  std::set<TopicPartition> held;
  for_each_cleared(state, metastore::kAbortedBy, now, hold,
                   [&](const metastore::MoveRecord& m) { held.insert({m.topic, m.partition}); });
  return held;
}

std::set<std::pair<std::string, std::string>> full_disks(const State& state, UnixMillis now,
                                                         Nanos hold) {
  std::set<std::pair<std::string, std::string>> full;
  for_each_cleared(state, metastore::kTargetFull, now, hold,
                   [&](const metastore::MoveRecord& m) { full.insert({m.to_node, m.to_disk}); });
  return full;
}

std::set<TopicPartition> pinned_partitions(const State& state) {
  std::set<TopicPartition> pinned;
  state.moves.for_each([&](const std::shared_ptr<const metastore::MoveRecord>& m) {
    if (m->reason != metastore::kByOperator) return;
    const Assignment* a = state.assignment(m->topic, m->partition);
    if (a != nullptr && a->owned_by_move == m->move_id) pinned.insert({m->topic, m->partition});
  });
  return pinned;
}

PlannerLimits with_orders(PlannerLimits limits, const State& state, UnixMillis now,
                          Nanos hold_aborted) {
  limits.held = held_partitions(state, now, hold_aborted);
  limits.pinned = pinned_partitions(state);
  limits.full = full_disks(state, now, hold_aborted);
  return limits;
}

std::vector<MoveUnderWay> moves_under_way(const State& state) {
  std::vector<MoveUnderWay> moves;
  for_each_move(state, [&](const TopicPartition& tp, const Assignment& a) {
    moves.push_back({tp, a.move_id, a.owner_node, a.target_node, metastore::blocks_of(state, a)});
  });
  return moves;
}

}  // namespace narad::cluster
