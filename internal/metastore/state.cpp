#include "internal/metastore/state.h"

#include <algorithm>

#include "internal/metastore/codec.h"
#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad::metastore {

std::string_view to_string(MemberStatus status) {
  return status == MemberStatus::alive ? "alive" : "dead";
}

bool operator==(const TopicRow& a, const TopicRow& b) {
  if (a.topic != b.topic || a.assignments != b.assignments || a.changed_at != b.changed_at ||
      a.schemas.size() != b.schemas.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.schemas.size(); ++i) {
    if (*a.schemas[i] != *b.schemas[i]) return false;
  }
  return true;
}

std::optional<TopicPartition> State::partition_naming(std::string_view member) const {
  std::optional<TopicPartition> found;
  topics.for_each([&](const TopicRowPtr& row) {
    for (std::uint32_t p = 0; !found && p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      if (a.owner_node != member && a.target_node != member) continue;
      found = TopicPartition{row->topic.name, PartitionId(p)};
    }
  });
  return found;
}

const Assignment* State::assignment(std::string_view topic, PartitionId partition) const {
  const TopicRow* row = topics.find(topic);
  if (row == nullptr || partition.value() >= row->assignments.size()) return nullptr;
  return &row->assignments[partition.value()];
}

std::string deleted_id(std::string_view topic, Incarnation incarnation) {
  return cat(topic, "@", to_hex16(incarnation.value()));
}

std::optional<std::pair<std::string, Incarnation>> parse_deleted_id(std::string_view id) {
  const std::size_t at = id.rfind('@');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const auto bits = parse_hex16(id.substr(at + 1));
  if (!bits) return std::nullopt;
  return std::pair(std::string(id.substr(0, at)), Incarnation(*bits));
}

bool State::paused(const Assignment& move) const {
  if (move.target_node.empty()) return false;
  if (move.paused || moves_paused) return true;
  for (const std::string* node : {&move.owner_node, &move.target_node}) {
    const Member* member = members.find(*node);
    if (member != nullptr && member->moves_paused) return true;
  }
  return false;
}

bool State::needs_home(const Assignment& a) const {
  if (a.owner_node.empty()) return true;
  if (a.used || !a.target_node.empty()) return false;
  const Member* owner = members.find(a.owner_node);
  return owner != nullptr &&
         std::find(owner->disks.begin(), owner->disks.end(), a.owner_disk) == owner->disks.end();
}

std::string_view to_string(MoveOutcome outcome) {
  switch (outcome) {
    case MoveOutcome::running:
      return "running";
    case MoveOutcome::moved:
      return "moved";
    case MoveOutcome::promoted:
      return "promoted";
    case MoveOutcome::given:
      return "given";
    case MoveOutcome::cleared:
      return "cleared";
    case MoveOutcome::replaced:
      return "replaced";
    case MoveOutcome::topic_deleted:
      return "topic_deleted";
  }
  return "?";
}

std::string move_key(RaftIndex move_id) {
  std::string digits = to_string(move_id);
  return std::string(20 - digits.size(), '0') + digits;
}

bool State::was_deleted(std::string_view topic, Incarnation incarnation) const {
  return deleted.contains(deleted_id(topic, incarnation));
}

std::uint64_t digest(const State& state) {
  std::uint64_t sum = 0;
  // Each piece is sealed with the sum before it, so that order and boundaries count.
  const auto add = [&](std::string_view text) { sum = xxh3(as_bytes(text), sum); };
  add(encode_summary(state));
  state.topics.for_each([&](const TopicRowPtr& row) {
    add(encode_topic(row->topic, row->changed_at));
    for (const Assignment& a : row->assignments) add(encode_assignment(a));
    for (const auto& s : row->schemas) add(encode_schema(*s));
  });
  state.members.for_each([&](const auto& m) { add(encode_member(*m)); });
  state.tombstones.for_each([&](const auto& t) { add(encode_tombstone(*t)); });
  state.deleted.for_each([&](const auto& d) { add(encode_deleted_topic(*d)); });
  state.users.for_each([&](const UserPtr& u) { add(encode_user(*u)); });
  state.moves.for_each([&](const auto& m) { add(encode_move(*m)); });
  return sum;
}

namespace {

// Nothing names a removed member, and a member that is leaving has nothing left.
void check_partition_names(const State& state, const std::string& topic, const Assignment& a) {
  for (const std::string* node : {&a.owner_node, &a.target_node}) {
    if (node->empty()) continue;
    NARAD_ASSERT(!state.tombstones.contains(*node), cat(topic, " names ", *node));
    const Member* member = state.members.find(*node);
    if (member != nullptr) NARAD_ASSERT(!member->leaving, cat(topic, " names ", *node));
  }
}

void check_topic(const State& state, const TopicRow& row) {
  const Topic& t = row.topic;
  NARAD_ASSERT(validate_topic_name(t.name).has_value(), t.name);
  NARAD_ASSERT(t.incarnation.value() != 0, t.name);
  NARAD_ASSERT(!state.was_deleted(t.name, t.incarnation), t.name);
  NARAD_ASSERT(t.partitions >= 1, t.name);
  NARAD_ASSERT(row.assignments.size() == t.partitions, t.name);
  NARAD_ASSERT(row.changed_at.value() > 0, t.name);
  NARAD_ASSERT(row.changed_at <= state.applied, t.name);
  for (const Assignment& a : row.assignments) {
    NARAD_ASSERT(a.incarnation == t.incarnation, t.name);
    NARAD_ASSERT(a.changed_at <= row.changed_at, t.name);
    NARAD_ASSERT(a.owner_node.empty() == a.owner_disk.empty(), t.name);
    if (a.owner_node.empty()) NARAD_ASSERT(!a.used, t.name);
    // A target and its move id come and go together, and only an armed freeze needs both.
    NARAD_ASSERT(a.target_node.empty() == (a.move_id.value() == 0), t.name);
    if (a.freeze_armed || a.paused || a.move_rate != 0)
      NARAD_ASSERT(!a.target_node.empty(), t.name);
    if (!a.target_node.empty()) {
      NARAD_ASSERT(a.used, t.name);  // what was never used is given at once
      NARAD_ASSERT(a.target_node != a.owner_node || a.target_disk != a.owner_disk, t.name);
    }
    if (a.move_id.value() > 0) NARAD_ASSERT(a.move_id != a.owned_by_move, t.name);
    check_partition_names(state, t.name, a);
  }
  for (std::size_t i = 0; i < row.schemas.size(); ++i) {
    NARAD_ASSERT(row.schemas[i]->version == i + 1, t.name);
    NARAD_ASSERT(row.schemas[i]->index <= row.changed_at, t.name);
    NARAD_ASSERT(!row.schemas[i]->text.empty(), t.name);
  }
}

void check_member(const State& state, const Member& m) {
  NARAD_ASSERT(!m.id.empty());
  NARAD_ASSERT(!m.disks.empty(), m.id);
  NARAD_ASSERT(m.stamp.value() > 0, m.id);
  NARAD_ASSERT(m.stamp <= state.applied, m.id);
  NARAD_ASSERT(m.changed_at <= state.versions.members, m.id);
  NARAD_ASSERT((m.status == MemberStatus::dead) == (m.dead_mark.value() > 0), m.id);
  NARAD_ASSERT(m.draining == (m.drain_id.value() > 0), m.id);
  if (m.leaving || m.wal_lost) NARAD_ASSERT(m.draining, m.id);
  if (m.wal_lost) NARAD_ASSERT(m.status == MemberStatus::dead, m.id);
  NARAD_ASSERT(!state.tombstones.contains(m.id), m.id);
}

void check_move(const State& state, const MoveRecord& m) {
  NARAD_ASSERT(m.id == move_key(m.move_id), m.id);
  NARAD_ASSERT(m.move_id <= state.applied && m.ended_at <= state.applied, m.id);
  const bool running = m.outcome == MoveOutcome::running;
  NARAD_ASSERT(running == (m.ended_at == RaftIndex(0)), m.id);
  const Assignment* row = state.assignment(m.topic, m.partition);
  const bool moving =
      row != nullptr && row->incarnation == m.incarnation && row->move_id == m.move_id;
  NARAD_ASSERT(running == moving, m.id);
}

void check_user(const State& state, const User& u) {
  NARAD_ASSERT(validate_username(u.username).has_value(), u.username);
  NARAD_ASSERT(is_password_hash(u.password_hash), u.username);
  NARAD_ASSERT(u.changed_at.value() > 0, u.username);
  NARAD_ASSERT(u.changed_at <= state.versions.users, u.username);
  for (const Grant& g : u.grants) NARAD_ASSERT(validate_grant(g).has_value(), u.username);
}

}  // namespace

void check_invariants(const State& state) {
  state.topics.check_invariants();
  state.members.check_invariants();
  state.tombstones.check_invariants();
  state.deleted.check_invariants();
  NARAD_ASSERT(state.deleted.size() <= kDeletedTopicsKept);
  state.users.check_invariants();
  state.moves.check_invariants();
  NARAD_ASSERT(state.moves.size() <= kMovesKept);
  state.moves.for_each([&](const auto& m) { check_move(state, *m); });
  for (RaftIndex version :
       {state.versions.topics, state.versions.schemas, state.versions.assignments,
        state.versions.members, state.versions.users}) {
    NARAD_ASSERT(version <= state.applied);
  }
  state.topics.for_each([&](const TopicRowPtr& row) { check_topic(state, *row); });
  state.members.for_each([&](const auto& m) { check_member(state, *m); });
  if (state.move_rate && *state.move_rate != 0) {
    NARAD_ASSERT(*state.move_rate >= kMoveRateMin, cat(*state.move_rate));
  }
  std::size_t roots = 0;
  state.users.for_each([&](const UserPtr& u) {
    check_user(state, *u);
    if (u->root) ++roots;
  });
  NARAD_ASSERT(roots <= 1, "more than one root user");
}

}  // namespace narad::metastore
