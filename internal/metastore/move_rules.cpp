#include "internal/metastore/move_rules.h"

#include <algorithm>
#include <map>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

OrderRefusal not_found(std::string rule, std::string detail) {
  return {Errc::not_found, std::move(rule), std::move(detail)};
}
OrderRefusal conflict(std::string rule, std::string detail) {
  return {Errc::conflict, std::move(rule), std::move(detail)};
}

OrderRefusal no_move(const TopicPartition& partition, const Assignment& row) {
  return conflict("no_move",
                  cat("no move of ", to_string(partition), " is under way: its owner is ",
                      row.owner_node.empty() ? "nobody" : row.owner_node));
}

// The partition, or why there is none.
struct Found {
  const TopicRow* topic = nullptr;
  const Assignment* row = nullptr;
  std::optional<OrderRefusal> refusal;
};
Found find(const State& state, const TopicPartition& partition) {
  Found found;
  found.topic = state.topics.find(partition.topic);
  if (found.topic == nullptr) {
    found.refusal = not_found("no_such_topic", "topic not found");
  } else if (partition.partition.value() >= found.topic->assignments.size()) {
    found.refusal = not_found("no_such_partition",
                              cat("topic ", partition.topic, " has ",
                                  found.topic->assignments.size(), " partitions, numbered from 0"));
  } else {
    found.row = &found.topic->assignments[partition.partition.value()];
  }
  return found;
}

bool is_at(const MoveWish& wish, const std::string& node, const std::string& disk) {
  return node == wish.to && (wish.disk.empty() || wish.disk == disk);
}

std::optional<OrderRefusal> not_a_receiver(const Member& m, const std::string& disk) {
  if (m.status == MemberStatus::dead) {
    return conflict("target_dead", cat("node ", m.id, " is dead: start it, or choose another"));
  }
  if (m.leaving) {
    return conflict("target_leaving", cat("node ", m.id, " is leaving the cluster"));
  }
  if (m.draining) {
    return conflict("target_draining",
                    cat("node ", m.id, " is draining: take that back with narad cluster ",
                        "decommission ", m.id, " --cancel, or choose another"));
  }
  if (disk.empty() || std::find(m.disks.begin(), m.disks.end(), disk) != m.disks.end()) {
    return std::nullopt;
  }
  std::string disks;
  for (const std::string& d : m.disks) disks += cat(disks.empty() ? "" : ", ", d);
  return conflict("no_such_disk", cat("node ", m.id, " has no disk ", disk, ", but ", disks));
}

// Counts partitions as the planner does: at home, or on their way there.
std::string emptiest_disk(const State& state, const Member& m) {
  std::map<std::string_view, std::size_t> load;
  state.topics.for_each([&](const TopicRowPtr& topic) {
    for (const Assignment& a : topic->assignments) {
      const bool moves = !a.target_node.empty();
      if ((moves ? a.target_node : a.owner_node) != m.id) continue;
      ++load[moves ? a.target_disk : a.owner_disk];
    }
  });
  return *std::min_element(m.disks.begin(), m.disks.end(),
                           [&](const auto& a, const auto& b) { return load[a] < load[b]; });
}

StartVerdict refused(const Assignment& row, OrderRefusal refusal) {
  StartVerdict verdict;
  verdict.row = row;
  verdict.refusal = std::move(refusal);
  return verdict;
}
StartVerdict settled(const Assignment& row, StartFate fate) {
  StartVerdict verdict;
  verdict.row = row;
  verdict.fate = fate;
  return verdict;
}

bool same_ownership(const Assignment& a, const Assignment& b) {
  // A flip between two disks of one node leaves the node's name as it was.
  return a.incarnation == b.incarnation && a.owner_node == b.owner_node &&
         a.owner_disk == b.owner_disk && a.owned_by_move == b.owned_by_move;
}

}  // namespace

std::string_view standing_of(const State& state, std::string_view node) {
  const Member* member = state.members.find(node);
  if (member == nullptr) return "not_a_member";
  if (member->status == MemberStatus::dead) return "dead";
  return member->draining || member->leaving ? "draining" : "alive";
}

std::vector<std::string_view> blocks_of(const State& state, const Assignment& move) {
  NARAD_ASSERT(!move.target_node.empty());
  std::vector<std::string_view> blocks;
  const std::string_view source = standing_of(state, move.owner_node);
  if (source == "dead" || source == "not_a_member") blocks.emplace_back("source_dead");
  const std::string_view target = standing_of(state, move.target_node);
  if (target == "dead") blocks.emplace_back("target_dead");
  if (target == "not_a_member") blocks.emplace_back("target_not_member");
  return blocks;
}

std::vector<std::string_view> pauses_of(const State& state, const Assignment& move) {
  NARAD_ASSERT(!move.target_node.empty());
  const auto paused = [&](const std::string& node) {
    const Member* member = state.members.find(node);
    return member != nullptr && member->moves_paused;
  };
  std::vector<std::string_view> by;
  if (move.paused) by.emplace_back("move");
  if (paused(move.owner_node)) by.emplace_back("source");
  if (paused(move.target_node)) by.emplace_back("target");
  if (state.moves_paused) by.emplace_back("cluster");
  return by;
}

StartVerdict judge_start(const State& state, const MoveWish& wish) {
  const Found found = find(state, wish.partition);
  if (found.refusal) return refused({}, *found.refusal);
  const Assignment& row = *found.row;
  const Member* target = state.members.find(wish.to);
  if (target == nullptr) {
    return refused(row, not_found("no_such_member", cat("no member is called ", wish.to,
                                                        "; narad cluster members lists them")));
  }
  if (row.owner_node.empty()) {
    return refused(row, conflict("no_owner",
                                 "the partition has no owner yet: the leader gives it "
                                 "one as soon as a live member can take it"));
  }
  const bool moves = !row.target_node.empty();
  if (moves && is_at(wish, row.target_node, row.target_disk)) {
    return settled(row, StartFate::on_its_way);
  }
  if (is_at(wish, row.owner_node, row.owner_disk)) {
    if (!moves) return settled(row, StartFate::there);
    return refused(
        row, conflict("moves_away", cat("it is there, and move ", row.move_id, " takes it to ",
                                        row.target_node, ": abort that move to keep it")));
  }
  if (auto why = not_a_receiver(*target, wish.disk)) return refused(row, *why);
  StartVerdict verdict = settled(row, StartFate::start);
  verdict.order.name = wish.partition.topic;
  verdict.order.incarnation = found.topic->topic.incarnation;
  verdict.order.partition = wish.partition.partition;
  verdict.order.owner_node = row.owner_node;
  verdict.order.move_id = row.move_id;
  verdict.order.target_node = wish.to;
  verdict.order.target_disk = wish.disk.empty() ? emptiest_disk(state, *target) : wish.disk;
  verdict.order.reason = kByOperator;
  verdict.order.max_bytes_per_second = wish.max_bytes_per_second;
  return verdict;
}

AbortVerdict judge_abort(const State& state, const AbortWish& wish) {
  AbortVerdict verdict;
  const Found found = find(state, wish.partition);
  verdict.refusal = found.refusal;
  if (verdict.refusal) return verdict;
  verdict.row = *found.row;
  const Assignment& row = verdict.row;
  if (row.target_node.empty()) {
    verdict.refusal = no_move(wish.partition, row);
    return verdict;
  }
  if (wish.target && *wish.target != row.target_node) {
    verdict.refusal = conflict(
        "other_target", cat(to_string(wish.partition), " moves from ", row.owner_node, " to ",
                            row.target_node, " (move ", row.move_id, "), not to ", *wish.target));
    return verdict;
  }
  verdict.order.name = wish.partition.topic;
  verdict.order.incarnation = found.topic->topic.incarnation;
  verdict.order.partition = wish.partition.partition;
  verdict.order.target_node = row.target_node;
  verdict.order.move_id = row.move_id;
  return verdict;
}

AbortFate judge_aborted(const State& now, const TopicPartition& partition, const Assignment& read) {
  NARAD_ASSERT(!read.target_node.empty());
  const Assignment* row = now.assignment(partition.topic, partition.partition);
  if (row == nullptr || row->incarnation != read.incarnation) return AbortFate::gone;
  if (!same_ownership(*row, read)) return AbortFate::moved;
  if (row->target_node != read.target_node) return AbortFate::aborted;
  return row->move_id == read.move_id ? AbortFate::under_way : AbortFate::set_again;
}

namespace {

PauseVerdict judge_pause_of_one(const State& state, const TopicPartition& partition, bool pause) {
  PauseVerdict verdict;
  const Found found = find(state, partition);
  verdict.refusal = found.refusal;
  if (verdict.refusal) return verdict;
  verdict.row = *found.row;
  if (verdict.row.target_node.empty()) {
    verdict.refusal = no_move(partition, verdict.row);
    return verdict;
  }
  verdict.holds = verdict.row.paused == pause;
  PauseMove order;
  order.name = partition.topic;
  order.incarnation = found.topic->topic.incarnation;
  order.partition = partition.partition;
  order.move_id = verdict.row.move_id;
  order.paused = pause;
  verdict.order = std::move(order);
  return verdict;
}

}  // namespace

PauseVerdict judge_pause(const State& state, const PauseWish& wish) {
  if (wish.partition) return judge_pause_of_one(state, *wish.partition, wish.pause);
  PauseVerdict verdict;
  verdict.order = PauseMoves{wish.node, wish.pause};
  if (wish.node.empty()) {
    verdict.holds = state.moves_paused == wish.pause;
    return verdict;
  }
  const Member* member = state.members.find(wish.node);
  if (member == nullptr) {
    verdict.refusal = not_found("no_such_member", cat("no member is called ", wish.node,
                                                      "; narad cluster members lists them"));
    return verdict;
  }
  verdict.holds = member->moves_paused == wish.pause;
  return verdict;
}

}  // namespace narad::metastore
