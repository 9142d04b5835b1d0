#include "internal/metastore/apply.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "internal/metastore/move_history.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

CommandResult refuse(ResultCode code, std::string text) {
  return {code, std::move(text), std::monostate{}};
}
CommandResult invalid(std::string text) { return refuse(ResultCode::invalid, std::move(text)); }
CommandResult done() { return {}; }
template <class Row>
CommandResult done(Row row) {
  return {ResultCode::done, {}, std::move(row)};
}

CommandResult topic_not_found() { return refuse(ResultCode::not_found, "topic not found"); }
CommandResult member_not_found(std::string_view id) {
  return refuse(ResultCode::not_found, cat("member not found: ", id));
}
CommandResult other_incarnation(const Topic& topic) {
  return {ResultCode::conflict,
          cat("topic ", topic.name, " was deleted and created again (it is now incarnation ",
              to_hex16(topic.incarnation.value()), ")"),
          topic};
}

std::string describe(const TopicPartition& tp, const Assignment& a) {
  return a.owner_node.empty()
             ? cat(to_string(tp), " is not assigned")
             : cat(to_string(tp), " is owned by ", a.owner_node, " on disk ", a.owner_disk);
}

// The first rule that the settings of a topic break, or empty.
std::string settings_problem(const Topic& t) {
  if (t.partitions < 1 || t.partitions > kTopicPartitionsMax) {
    return cat("partitions must be between 1 and ", kTopicPartitionsMax);
  }
  if (t.retention_ms != 0 && t.retention_ms < kRetentionMillisMin) {
    return cat("retention_ms must be 0 (keep for ever) or at least ", kRetentionMillisMin);
  }
  if (t.visibility_timeout_ms < 0) return "visibility_timeout_ms must not be negative";
  if (t.max_in_flight_per_partition < 1) return "max_in_flight_per_partition must be at least 1";
  if (t.max_acked_ahead_per_partition < 1) {
    return "max_acked_ahead_per_partition must be at least 1";
  }
  return {};
}

// Gives row.assignments its entries from `first` on, going round the members that may receive:
// alive, not draining, not leaving, in the order of their ids, and round the disks of each. Without
// one the entries stay unassigned.
void place(State& state, TopicRow& row, std::uint32_t first, RaftIndex index) {
  std::vector<const Member*> receivers;
  state.members.for_each([&](const std::shared_ptr<const Member>& m) {
    if (m->status == MemberStatus::alive && !m->draining && !m->leaving) {
      receivers.push_back(m.get());
    }
  });
  row.assignments.resize(row.topic.partitions);
  for (std::uint32_t p = first; p < row.topic.partitions; ++p) {
    Assignment& a = row.assignments[p];
    a.incarnation = row.topic.incarnation;
    a.changed_at = index;
    if (receivers.empty()) continue;
    const std::uint64_t turn = state.placed++;
    const Member& member = *receivers[turn % receivers.size()];
    a.owner_node = member.id;
    a.owner_disk = member.disks[turn / receivers.size() % member.disks.size()];
  }
}

void store(State& state, TopicRow row, RaftIndex index) {
  row.changed_at = index;
  state.topics.put(std::make_shared<const TopicRow>(std::move(row)));
}
void store(State& state, Member member) {
  state.members.put(std::make_shared<const Member>(std::move(member)));
}

void remember_deleted(State& state, const Topic& topic, RaftIndex index) {
  state.deleted.put(std::make_shared<const DeletedTopic>(
      DeletedTopic{deleted_id(topic.name, topic.incarnation), index}));
  if (state.deleted.size() <= kDeletedTopicsKept) return;
  const DeletedTopic* oldest = nullptr;
  state.deleted.for_each([&](const std::shared_ptr<const DeletedTopic>& d) {
    if (oldest == nullptr || d->deleted_at < oldest->deleted_at) oldest = d.get();
  });
  const std::string key = oldest->id;
  state.deleted.erase(key);
}

CommandResult run(State& state, RaftIndex, const FoundCluster& c) {
  if (!parse_hex16(c.cluster_id)) return invalid("cluster_id must be 16 hex digits");
  if (state.cluster_id.empty()) state.cluster_id = c.cluster_id;
  if (state.cluster_id == c.cluster_id) return done();
  return refuse(ResultCode::conflict,
                cat("this is cluster ", state.cluster_id, ", not ", c.cluster_id));
}

CommandResult run(State& state, RaftIndex index, const CreateTopic& c) {
  if (auto name = validate_topic_name(c.name); !name) return invalid(name.error().text());
  if (c.incarnation.value() == 0) return invalid("incarnation must not be 0");
  TopicRow row;
  row.topic.name = c.name;
  row.topic.incarnation = c.incarnation;
  row.topic.partitions = c.partitions;
  row.topic.retention_ms = c.retention_ms;
  row.topic.visibility_timeout_ms = c.visibility_timeout_ms;
  row.topic.max_in_flight_per_partition = c.max_in_flight_per_partition;
  row.topic.max_acked_ahead_per_partition = c.max_acked_ahead_per_partition;
  row.topic.created_at_s = c.created_at_s;
  row.topic.owner = c.owner;
  if (auto problem = settings_problem(row.topic); !problem.empty()) return invalid(problem);
  if (c.schema && (c.schema->empty() || c.schema->size() > kSchemaBytesMax)) {
    return invalid(cat("schema must have 1 to ", kSchemaBytesMax, " bytes"));
  }
  if (const TopicRow* old = state.topics.find(c.name)) {
    return {ResultCode::exists, "topic already exists", old->topic};
  }
  if (state.was_deleted(c.name, c.incarnation)) {
    return refuse(ResultCode::conflict,
                  "a deleted topic of this name had this incarnation: draw another");
  }
  if (c.schema) {
    row.schemas.push_back(
        std::make_shared<const SchemaVersion>(SchemaVersion{1, *c.schema, index}));
    state.versions.schemas = index;
  }
  place(state, row, 0, index);
  state.versions.topics = index;
  state.versions.assignments = index;
  Topic topic = row.topic;
  store(state, std::move(row), index);
  return done(std::move(topic));
}

CommandResult run(State& state, RaftIndex index, const UpdateTopic& c) {
  const TopicRow* old = state.topics.find(c.name);
  if (old == nullptr) return topic_not_found();
  if (old->topic.incarnation != c.incarnation) return other_incarnation(old->topic);
  TopicRow row = *old;
  if (c.retention_ms) row.topic.retention_ms = *c.retention_ms;
  if (c.visibility_timeout_ms) row.topic.visibility_timeout_ms = *c.visibility_timeout_ms;
  if (c.max_in_flight_per_partition) {
    row.topic.max_in_flight_per_partition = *c.max_in_flight_per_partition;
  }
  if (c.max_acked_ahead_per_partition) {
    row.topic.max_acked_ahead_per_partition = *c.max_acked_ahead_per_partition;
  }
  const std::uint32_t before = row.topic.partitions;
  if (c.partitions) {
    if (*c.partitions <= before) {
      return invalid(cat("partitions can only grow: the topic has ", before));
    }
    row.topic.partitions = *c.partitions;
  }
  if (auto problem = settings_problem(row.topic); !problem.empty()) return invalid(problem);
  if (row.topic == old->topic) return done(row.topic);
  if (c.partitions) {
    place(state, row, before, index);
    state.versions.assignments = index;
  }
  state.versions.topics = index;
  Topic topic = row.topic;
  store(state, std::move(row), index);
  return done(std::move(topic));
}

CommandResult run(State& state, RaftIndex index, const DeleteTopic& c) {
  const TopicRow* old = state.topics.find(c.name);
  if (old == nullptr) return topic_not_found();
  if (old->topic.incarnation != c.incarnation) return other_incarnation(old->topic);
  Topic topic = old->topic;
  end_move_records(state, *old, index);
  if (!old->schemas.empty()) state.versions.schemas = index;
  state.versions.topics = index;
  state.versions.assignments = index;
  state.topics.erase(c.name);
  remember_deleted(state, topic, index);
  return done(std::move(topic));
}

CommandResult run(State& state, RaftIndex index, const PutSchema& c) {
  const TopicRow* old = state.topics.find(c.name);
  if (old == nullptr) return topic_not_found();
  if (old->topic.incarnation != c.incarnation) return other_incarnation(old->topic);
  if (c.schema.empty() || c.schema.size() > kSchemaBytesMax) {
    return invalid(cat("schema must have 1 to ", kSchemaBytesMax, " bytes"));
  }
  const std::uint64_t next = old->schemas.size() + 1;
  if (c.version != next) {
    const std::string text =
        cat("the schema of ", c.name, " was changed meanwhile: the next version is ", next);
    if (old->schemas.empty()) return refuse(ResultCode::conflict, text);
    return {ResultCode::conflict, text, *old->schema()};
  }
  TopicRow row = *old;
  SchemaVersion version{c.version, c.schema, index};
  row.schemas.push_back(std::make_shared<const SchemaVersion>(version));
  state.versions.schemas = index;
  store(state, std::move(row), index);
  return done(std::move(version));
}

CommandResult run(State& state, RaftIndex index, const AssignPartition& c) {
  const TopicPartition tp{c.name, c.partition};
  const TopicRow* old = state.topics.find(c.name);
  if (old == nullptr) return topic_not_found();
  if (old->topic.incarnation != c.incarnation) return other_incarnation(old->topic);
  if (c.partition.value() >= old->assignments.size()) {
    return refuse(ResultCode::not_found, cat("no such partition: ", to_string(tp)));
  }
  const Assignment& current = old->assignments[c.partition.value()];
  if (!state.needs_home(current)) {
    return {ResultCode::conflict, describe(tp, current), AssignmentRow{tp, current}};
  }
  const Member* member = state.members.find(c.node);
  if (member == nullptr) return member_not_found(c.node);
  if (member->status != MemberStatus::alive || member->draining || member->leaving) {
    return {ResultCode::conflict,
            cat("member ", c.node, " takes no partitions: it is ",
                member->status == MemberStatus::dead ? "dead" : "draining"),
            *member};
  }
  if (std::find(member->disks.begin(), member->disks.end(), c.disk) == member->disks.end()) {
    return {ResultCode::conflict, cat("member ", c.node, " has no disk ", c.disk), *member};
  }
  TopicRow row = *old;
  Assignment& a = row.assignments[c.partition.value()];
  a.owner_node = c.node;
  a.owner_disk = c.disk;
  a.changed_at = index;
  ++state.placed;
  AssignmentRow result{tp, a};
  state.versions.assignments = index;
  store(state, std::move(row), index);
  return done(std::move(result));
}

CommandResult run(State& state, RaftIndex index, const MarkUsed& c) {
  const TopicPartition tp{c.name, c.partition};
  const TopicRow* old = state.topics.find(c.name);
  if (old == nullptr) return topic_not_found();
  if (old->topic.incarnation != c.incarnation) return other_incarnation(old->topic);
  if (c.partition.value() >= old->assignments.size()) {
    return refuse(ResultCode::not_found, cat("no such partition: ", to_string(tp)));
  }
  const Assignment& current = old->assignments[c.partition.value()];
  if (current.owner_node.empty() || current.owner_node != c.node || current.owner_disk != c.disk) {
    return {ResultCode::conflict, describe(tp, current), AssignmentRow{tp, current}};
  }
  if (current.used) return done(AssignmentRow{tp, current});
  TopicRow row = *old;
  Assignment& a = row.assignments[c.partition.value()];
  a.used = true;
  a.changed_at = index;
  AssignmentRow result{tp, a};
  state.versions.assignments = index;
  store(state, std::move(row), index);
  return done(std::move(result));
}

// The first rule that what a member says of itself breaks, or empty.
std::string member_problem(const RegisterMember& c) {
  if (c.id.empty() || c.disks.empty()) return "a member needs an id and a disk";
  if (c.id.size() > kMemberIdBytesMax) {
    return cat("a member id has at most ", kMemberIdBytesMax, " bytes");
  }
  if (c.disks.size() > kMemberDisksMax) {
    return cat("a member has at most ", kMemberDisksMax, " disks");
  }
  for (const std::string& disk : c.disks) {
    if (disk.empty()) return "a disk needs an id";
    if (disk.size() > kMemberIdBytesMax) return "the id of a disk is too long";
  }
  for (const std::string* text : {&c.http_addr, &c.cluster_addr, &c.boot_id}) {
    if (text->size() > kMemberAddressBytesMax) return "an address of the member is too long";
  }
  return {};
}

// ---- moves

// The assignment that a command about a move names, or why there is none.
struct Place {
  const TopicRow* row = nullptr;
  const Assignment* now = nullptr;
  TopicPartition tp;
  std::optional<CommandResult> refusal;
};
template <class C>
Place place_of(const State& state, const C& c) {
  Place p;
  p.tp = TopicPartition{c.name, c.partition};
  p.row = state.topics.find(c.name);
  if (p.row == nullptr) {
    p.refusal = topic_not_found();
  } else if (p.row->topic.incarnation != c.incarnation) {
    p.refusal = other_incarnation(p.row->topic);
  } else if (c.partition.value() >= p.row->assignments.size()) {
    p.refusal = refuse(ResultCode::not_found, cat("no such partition: ", to_string(p.tp)));
  } else {
    p.now = &p.row->assignments[c.partition.value()];
  }
  return p;
}
CommandResult in_the_way(const Place& p, std::string why) {
  return {ResultCode::conflict, cat(to_string(p.tp), ": ", why), AssignmentRow{p.tp, *p.now}};
}
CommandResult as_it_stands(const Place& p) { return done(AssignmentRow{p.tp, *p.now}); }

std::string move_now(const Assignment& a) {
  if (a.target_node.empty()) return "no move is under way";
  return cat("move ", a.move_id, " to ", a.target_node, " is under way");
}

// Puts the changed assignment in force.
CommandResult put(State& state, const Place& p, RaftIndex index, Assignment a) {
  TopicRow row = *p.row;
  a.changed_at = index;
  AssignmentRow result{p.tp, a};
  row.assignments[p.tp.partition.value()] = std::move(a);
  state.versions.assignments = index;
  store(state, std::move(row), index);
  return done(std::move(result));
}

// No freeze of this move is in force any more, and none that a source still holds can be: whoever
// holds one sees a higher epoch and opens again.
void end_freeze(Assignment& a) {
  if (a.freeze_armed) ++a.freeze_epoch;
  a.freeze_armed = false;
}
void end_move(Assignment& a) {
  a.target_node.clear();
  a.target_disk.clear();
  a.move_id = RaftIndex(0);
  a.paused = false;
  a.move_rate = 0;
}
void flip(Assignment& a) {
  a.owner_node = a.target_node;
  a.owner_disk = a.target_disk;
  a.owned_by_move = a.move_id;
  end_move(a);
  a.freeze_armed = false;
}

// Why the member cannot receive a partition on that disk, or empty.
std::string not_a_receiver(const Member& m, const std::string& disk) {
  if (m.status == MemberStatus::dead) return cat("member ", m.id, " is dead");
  if (m.leaving) return cat("member ", m.id, " is leaving");
  if (m.draining) return cat("member ", m.id, " is draining");
  if (std::find(m.disks.begin(), m.disks.end(), disk) == m.disks.end()) {
    return cat("member ", m.id, " has no disk ", disk);
  }
  return {};
}

// Why moves cannot be held to that, or empty. 0: they are not.
std::string rate_problem(std::uint64_t rate) {
  if (rate != 0 && rate < kMoveRateMin) {
    return cat("moves get at least ", kMoveRateMin, " bytes per second (0: no limit)");
  }
  if (rate > kMoveRateMax) return cat("moves get at most ", kMoveRateMax, " bytes per second");
  return {};
}

CommandResult run(State& state, RaftIndex index, const SetTarget& c) {
  if (auto problem = rate_problem(c.max_bytes_per_second); !problem.empty())
    return invalid(problem);
  const Place p = place_of(state, c);
  if (p.refusal) return *p.refusal;
  if (c.target_node.empty() || c.target_disk.empty())
    return invalid("a target needs node and disk");
  if (p.now->owner_node.empty() || p.now->owner_node != c.owner_node) {
    return in_the_way(p, describe(p.tp, *p.now));
  }
  if (p.now->move_id != c.move_id) return in_the_way(p, move_now(*p.now));
  if (c.target_node == p.now->owner_node && c.target_disk == p.now->owner_disk) {
    return in_the_way(p, "it is there already");
  }
  const Member* target = state.members.find(c.target_node);
  if (target == nullptr) return member_not_found(c.target_node);
  if (auto why = not_a_receiver(*target, c.target_disk); !why.empty()) return in_the_way(p, why);
  Assignment a = *p.now;
  a.paused = false;  // that was another move
  begin_move_record(state, a,
                    {index, c.name, c.partition, c.target_node, c.target_disk, c.reason, c.now});
  end_freeze(a);
  if (!a.used) {
    // Nothing was ever written to it: there is nothing to copy, and an owner that is about to write
    // the first frame marks it used before, which is refused from this entry on.
    end_move_record(state, index, {index, MoveOutcome::given, c.now, {}, {}});
    a.target_node = c.target_node;
    a.target_disk = c.target_disk;
    a.move_id = index;
    flip(a);  // an ownership of its own, which never comes again
    return put(state, p, index, std::move(a));
  }
  a.target_node = c.target_node;
  a.target_disk = c.target_disk;
  a.move_id = index;
  a.move_rate = c.max_bytes_per_second;
  return put(state, p, index, std::move(a));
}

CommandResult run(State& state, RaftIndex index, const ArmFreeze& c) {
  const Place p = place_of(state, c);
  if (p.refusal) return *p.refusal;
  if (p.now->owner_node != c.owner_node) return in_the_way(p, describe(p.tp, *p.now));
  if (c.move_id.value() == 0 || p.now->move_id != c.move_id) {
    return in_the_way(p, move_now(*p.now));
  }
  Assignment a = *p.now;
  ++a.freeze_epoch;
  a.freeze_armed = true;
  return put(state, p, index, std::move(a));
}

CommandResult run(State& state, RaftIndex index, const VoidFreeze& c) {
  const Place p = place_of(state, c);
  if (p.refusal) return *p.refusal;
  if (p.now->owner_node != c.owner_node) return in_the_way(p, describe(p.tp, *p.now));
  if (!p.now->freeze_armed || p.now->freeze_epoch != c.epoch) return as_it_stands(p);
  Assignment a = *p.now;
  end_freeze(a);
  return put(state, p, index, std::move(a));
}

CommandResult run(State& state, RaftIndex index, const CompleteMove& c) {
  const Place p = place_of(state, c);
  if (p.refusal) return *p.refusal;
  if (c.move_id.value() == 0) return invalid("a move has an id");
  if (p.now->owned_by_move == c.move_id) return as_it_stands(p);
  if (p.now->owner_node != c.source_node) return in_the_way(p, describe(p.tp, *p.now));
  if (p.now->move_id != c.move_id) return in_the_way(p, move_now(*p.now));
  if (!p.now->freeze_armed || p.now->freeze_epoch != c.epoch) {
    return in_the_way(p, "the freeze under which the copy was finished is over");
  }
  if (!state.members.contains(p.now->target_node)) {
    return in_the_way(p, cat("its target ", p.now->target_node, " is no member any more"));
  }
  Assignment a = *p.now;
  end_move_record(state, a.move_id, {index, MoveOutcome::moved, c.now, {}, c.receipt});
  flip(a);
  return put(state, p, index, std::move(a));
}

CommandResult run(State& state, RaftIndex index, const ForcePromote& c) {
  const Place p = place_of(state, c);
  if (p.refusal) return *p.refusal;
  if (c.move_id.value() == 0) return invalid("a move has an id");
  if (p.now->owned_by_move == c.move_id) return as_it_stands(p);
  if (p.now->owner_node != c.source_node) return in_the_way(p, describe(p.tp, *p.now));
  if (p.now->move_id != c.move_id) return in_the_way(p, move_now(*p.now));
  if (!state.members.contains(p.now->target_node)) {
    return in_the_way(p, cat("its target ", p.now->target_node, " is no member any more"));
  }
  const Member* source = state.members.find(c.source_node);
  const RaftIndex mark = source == nullptr ? RaftIndex(0) : source->dead_mark;
  if (mark != c.dead_mark || (source != nullptr && source->status != MemberStatus::dead)) {
    return in_the_way(p, cat("source ", c.source_node, " is not dead under entry ", c.dead_mark));
  }
  Assignment a = *p.now;
  end_move_record(state, a.move_id, {index, MoveOutcome::promoted, c.now, c.reason, c.receipt});
  ++a.freeze_epoch;
  flip(a);
  return put(state, p, index, std::move(a));
}

CommandResult run(State& state, RaftIndex index, const ClearTarget& c) {
  const Place p = place_of(state, c);
  if (p.refusal) return *p.refusal;
  if (p.now->target_node.empty()) return in_the_way(p, move_now(*p.now));
  if (p.now->target_node != c.target_node || p.now->move_id != c.move_id) {
    return in_the_way(p, move_now(*p.now));
  }
  Assignment a = *p.now;
  end_move_record(state, a.move_id, {index, MoveOutcome::cleared, c.now, c.reason, {}});
  end_freeze(a);
  end_move(a);
  return put(state, p, index, std::move(a));
}

CommandResult run(State& state, RaftIndex, const SetMoveRate& c) {
  const auto problem = rate_problem(c.bytes_per_second.value_or(0));
  if (!problem.empty()) return invalid(problem);
  state.move_rate = c.bytes_per_second;
  return done();
}

CommandResult run(State& state, RaftIndex index, const PauseMove& c) {
  const Place p = place_of(state, c);
  if (p.refusal) return *p.refusal;
  if (c.move_id.value() == 0) return invalid("a move has an id");
  if (p.now->move_id != c.move_id) return in_the_way(p, move_now(*p.now));
  if (p.now->paused == c.paused) return as_it_stands(p);
  Assignment a = *p.now;
  a.paused = c.paused;
  return put(state, p, index, std::move(a));
}

CommandResult run(State& state, RaftIndex index, const PauseMoves& c) {
  if (c.node.empty()) {
    state.moves_paused = c.paused;
    return done();
  }
  const Member* old = state.members.find(c.node);
  if (old == nullptr) return member_not_found(c.node);
  if (old->moves_paused == c.paused) return done(*old);
  Member member = *old;
  member.moves_paused = c.paused;
  member.changed_at = index;
  state.versions.members = index;
  store(state, member);
  return done(std::move(member));
}

CommandResult run(State& state, RaftIndex index, const RegisterMember& c) {
  if (auto problem = member_problem(c); !problem.empty()) return invalid(problem);
  if (const Tombstone* t = state.tombstones.find(c.id)) {
    return refuse(ResultCode::conflict,
                  cat("member ", c.id, " was removed from this cluster (entry ", t->removed_at,
                      "): start the machine under a new node id with an empty data directory"));
  }
  const Member* old = state.members.find(c.id);
  Member member = old != nullptr ? *old : Member{};
  member.id = c.id;
  member.http_addr = c.http_addr;
  member.cluster_addr = c.cluster_addr;
  member.boot_id = c.boot_id;
  member.disks = c.disks;
  member.status = MemberStatus::alive;
  member.dead_mark = RaftIndex(0);
  member.wal_lost = false;  // it is back, and so is its WAL
  if (old == nullptr || member != *old) {
    member.changed_at = index;
    state.versions.members = index;
  }
  member.last_seen = c.now;
  member.stamp = index;
  store(state, member);
  return done(std::move(member));
}

CommandResult run(State& state, RaftIndex index, const Heartbeats& c) {
  for (const std::string& id : c.ids) {
    const Member* old = state.members.find(id);
    if (old == nullptr || old->status != MemberStatus::alive) continue;
    Member member = *old;
    member.last_seen = c.now;
    member.stamp = index;
    store(state, std::move(member));
  }
  return done();
}

CommandResult run(State& state, RaftIndex index, const MarkDead& c) {
  const Member* old = state.members.find(c.id);
  if (old == nullptr) return member_not_found(c.id);
  if (old->status == MemberStatus::dead) return done(*old);
  if (old->stamp != c.stamp) {
    return {ResultCode::conflict, cat("member ", c.id, " was seen again (entry ", old->stamp, ")"),
            *old};
  }
  Member member = *old;
  member.status = MemberStatus::dead;
  member.dead_mark = index;
  member.changed_at = index;
  state.versions.members = index;
  store(state, member);
  return done(std::move(member));
}

CommandResult run(State& state, RaftIndex index, const SetDraining& c) {
  const Member* old = state.members.find(c.id);
  if (old == nullptr) return member_not_found(c.id);
  if (c.wal_lost && !c.draining) return invalid("wal_lost belongs to a drain that begins");
  if (c.wal_lost && old->status != MemberStatus::dead) {
    return {ResultCode::conflict,
            cat("member ", c.id, " is alive: its ingress WAL is not lost, and empties by itself"),
            *old};
  }
  if (old->draining == c.draining && (!c.wal_lost || old->wal_lost)) return done(*old);
  if (!c.draining && old->leaving) {
    return {ResultCode::conflict,
            cat("member ", c.id, " is leaving: its drain cannot be cancelled any more"), *old};
  }
  Member member = *old;
  member.draining = c.draining;
  if (member.draining != old->draining) member.drain_id = c.draining ? index : RaftIndex(0);
  member.wal_lost = c.draining && (old->wal_lost || c.wal_lost);
  member.changed_at = index;
  state.versions.members = index;
  store(state, member);
  return done(std::move(member));
}

// Why the member cannot go under this drain, or empty.
std::string not_under_drain(const Member& m, RaftIndex drain_id) {
  if (!m.draining) return cat("member ", m.id, " is not draining");
  if (m.drain_id != drain_id) {
    return cat("member ", m.id, " is draining under entry ", m.drain_id, ", not ", drain_id,
               ": its drain was cancelled and begun again meanwhile");
  }
  return {};
}

CommandResult run(State& state, RaftIndex index, const Leaving& c) {
  const Member* old = state.members.find(c.id);
  if (old == nullptr) return member_not_found(c.id);
  if (auto why = not_under_drain(*old, c.drain_id); !why.empty()) {
    return {ResultCode::conflict, why, *old};
  }
  if (old->leaving) return done(*old);
  if (old->dead_mark != c.dead_mark) {
    return {ResultCode::conflict, cat("member ", c.id, " died or returned since it was judged"),
            *old};
  }
  if (auto partition = state.partition_naming(c.id)) {
    return {ResultCode::conflict,
            cat("member ", c.id, " still owns or receives ", to_string(*partition)), *old};
  }
  Member member = *old;
  member.leaving = true;
  member.changed_at = index;
  state.versions.members = index;
  store(state, member);
  return done(std::move(member));
}

CommandResult run(State& state, RaftIndex index, const RemoveMember& c) {
  if (state.tombstones.contains(c.id)) return done();
  const Member* old = state.members.find(c.id);
  if (old == nullptr) return member_not_found(c.id);
  if (auto why = not_under_drain(*old, c.drain_id); !why.empty()) {
    return {ResultCode::conflict, why, *old};
  }
  if (!old->leaving) {
    return {ResultCode::conflict, cat("member ", c.id, " is not leaving yet"), *old};
  }
  Member gone = *old;
  // Destroys only what names an empty member: `leaving` was granted while it owned and received
  // nothing, and no command gives a leaving member anything.
  state.members.erase(c.id);
  state.tombstones.put(std::make_shared<const Tombstone>(Tombstone{c.id, index, c.now}));
  state.versions.members = index;
  return done(std::move(gone));
}

CommandResult user_not_found() { return refuse(ResultCode::not_found, "user not found"); }

CommandResult invalid_hash() { return invalid("password_hash must be a bcrypt hash"); }

// The first rule that a list of grants breaks, or empty.
std::string grants_problem(const std::vector<Grant>& grants) {
  for (const Grant& g : grants) {
    if (auto valid = validate_grant(g); !valid) return valid.error().text();
  }
  return {};
}

CommandResult changed_meanwhile(const User& user) {
  return {ResultCode::conflict, cat("user ", user.username, " was changed meanwhile"), user};
}

CommandResult store(State& state, User user, RaftIndex index) {
  user.changed_at = index;
  state.versions.users = index;
  state.users.put(std::make_shared<const User>(user));
  return done(std::move(user));
}

CommandResult run(State& state, RaftIndex index, const CreateUser& c) {
  if (auto name = validate_username(c.username); !name) return invalid(name.error().text());
  if (!is_password_hash(c.password_hash)) return invalid_hash();
  if (auto problem = grants_problem(c.grants); !problem.empty()) return invalid(problem);
  if (const User* old = state.users.find(c.username)) {
    return {ResultCode::exists, "user already exists", *old};
  }
  if (c.root && !state.users.empty()) {
    return refuse(ResultCode::exists, "users exist already: root is only ever the first");
  }
  User user;
  user.username = c.username;
  user.password_hash = c.password_hash;
  user.grants = c.grants;
  user.root = c.root;
  user.created_at = user.updated_at = c.now;
  return store(state, std::move(user), index);
}

CommandResult run(State& state, RaftIndex index, const SetUserGrants& c) {
  if (auto problem = grants_problem(c.grants); !problem.empty()) return invalid(problem);
  const User* old = state.users.find(c.username);
  if (old == nullptr) return user_not_found();
  if (old->changed_at != c.version) return changed_meanwhile(*old);
  if (old->root) return invalid("the root user needs no grants");
  User user = *old;
  user.grants = c.grants;
  user.updated_at = c.now;
  return store(state, std::move(user), index);
}

CommandResult run(State& state, RaftIndex index, const SetUserPassword& c) {
  if (!is_password_hash(c.password_hash)) return invalid_hash();
  const User* old = state.users.find(c.username);
  if (old == nullptr) return user_not_found();
  if (old->changed_at != c.version) return changed_meanwhile(*old);
  User user = *old;
  user.password_hash = c.password_hash;
  user.updated_at = c.now;
  return store(state, std::move(user), index);
}

CommandResult run(State& state, RaftIndex index, const DeleteUser& c) {
  const User* old = state.users.find(c.username);
  if (old == nullptr) return user_not_found();
  if (old->changed_at != c.version) return changed_meanwhile(*old);
  if (old->root) return invalid("the root user cannot be deleted");
  User user = *old;
  state.users.erase(c.username);
  state.versions.users = index;
  return done(std::move(user));
}

CommandResult run(State&, RaftIndex, const Unsupported& c) {
  return refuse(ResultCode::unsupported, cat("unsupported command \"", c.op, "\", version ",
                                             c.version, ": all members must run one release"));
}

}  // namespace

CommandResult apply(State& state, RaftIndex index, const Command& command) {
  NARAD_ASSERT(index > state.applied, cat(index, " after ", state.applied));
  CommandResult result = std::visit([&](const auto& c) { return run(state, index, c); }, command);
  state.applied = index;
  return result;
}

}  // namespace narad::metastore
