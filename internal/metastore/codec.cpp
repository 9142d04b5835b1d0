#include "internal/metastore/codec.h"

#include "internal/metastore/fields.h"

namespace narad::metastore {
namespace {

inline constexpr std::array kRoles{TopicRole::standalone, TopicRole::parent, TopicRole::child};
inline constexpr std::array kOutcomes{
    MoveOutcome::running, MoveOutcome::moved,    MoveOutcome::promoted,     MoveOutcome::given,
    MoveOutcome::cleared, MoveOutcome::replaced, MoveOutcome::topic_deleted};
inline constexpr std::array kStatuses{MemberStatus::alive, MemberStatus::dead};

// The flat form of State's summary.
struct Summary {
  std::string cluster_id;
  RaftIndex applied{0};
  Versions versions;
  std::uint64_t placed = 0;
  std::optional<std::uint64_t> move_rate;
  bool moves_paused = false;
};

template <Described<Summary> C, class F>
void describe(C& s, F& f) {
  f("cluster_id", s.cluster_id);
  f("applied", s.applied);
  f("topics_version", s.versions.topics);
  f("schemas_version", s.versions.schemas);
  f("assignments_version", s.versions.assignments);
  f("members_version", s.versions.members);
  f("users_version", s.versions.users);
  f("placed", s.placed);
  f("move_rate", s.move_rate);
  f.later("moves_paused", s.moves_paused);
}

template <Described<DecodedTopic> C, class F>
void describe(C& row, F& f) {
  auto& t = row.topic;
  f("name", t.name);
  f.hex("incarnation", t.incarnation);
  f("partitions", t.partitions);
  f("retention_ms", t.retention_ms);
  f("visibility_timeout_ms", t.visibility_timeout_ms);
  f("max_in_flight_per_partition", t.max_in_flight_per_partition);
  f("max_acked_ahead_per_partition", t.max_acked_ahead_per_partition);
  f("created_at", t.created_at_s);
  f("owner", t.owner);
  f.choice("role", t.role, kRoles);
  f("children", t.children);
  f("parent", t.parent);
  f("attach_epoch", t.attach_epoch);
  f("fanout_delay_ms", t.fanout_delay_ms);
  f("changed_at", row.changed_at);
}

template <Described<Assignment> C, class F>
void describe(C& a, F& f) {
  f.hex("incarnation", a.incarnation);
  f("owner_node", a.owner_node);
  f("owner_disk", a.owner_disk);
  f("used", a.used);
  f("target_node", a.target_node);
  f("target_disk", a.target_disk);
  f("move_id", a.move_id);
  f.hex("freeze_epoch", a.freeze_epoch);
  f("freeze_armed", a.freeze_armed);
  f.later("owned_by_move", a.owned_by_move);
  f.later("paused", a.paused);
  f.later("move_rate", a.move_rate);
  f("changed_at", a.changed_at);
}

template <Described<SchemaVersion> C, class F>
void describe(C& s, F& f) {
  f("version", s.version);
  f("index", s.index);
  f("text", s.text);
}

template <Described<Member> C, class F>
void describe(C& m, F& f) {
  f("id", m.id);
  f("http_addr", m.http_addr);
  f("cluster_addr", m.cluster_addr);
  f("boot_id", m.boot_id);
  f("disks", m.disks);
  f.choice("status", m.status, kStatuses);
  f("last_seen_ms", m.last_seen);
  f("stamp", m.stamp);
  f("dead_mark", m.dead_mark);
  f("draining", m.draining);
  f("drain_id", m.drain_id);
  f("leaving", m.leaving);
  f.later("wal_lost", m.wal_lost);
  f.later("moves_paused", m.moves_paused);
  f("changed_at", m.changed_at);
}

template <Described<DeletedTopic> C, class F>
void describe(C& d, F& f) {
  f("id", d.id);
  f("deleted_at", d.deleted_at);
}

template <Described<MoveRecord> C, class F>
void describe(C& m, F& f) {
  f("move_id", m.move_id);
  f("topic", m.topic);
  f.hex("incarnation", m.incarnation);
  f("partition", m.partition);
  f("from_node", m.from_node);
  f("from_disk", m.from_disk);
  f("to_node", m.to_node);
  f("to_disk", m.to_disk);
  f("reason", m.reason);
  f.choice("outcome", m.outcome, kOutcomes);
  f("why", m.why);
  f("ended_at", m.ended_at);
  f("started_ms", m.started);
  f("ended_ms", m.ended);
  f("receipt", m.receipt);
}

template <Described<Tombstone> C, class F>
void describe(C& t, F& f) {
  f("id", t.id);
  f("removed_at", t.removed_at);
  f("removed_at_ms", t.removed_ms);
}

template <Described<User> C, class F>
void describe(C& u, F& f) {
  f("username", u.username);
  f("password_hash", u.password_hash);
  f("grants", u.grants);
  f("root", u.root);
  f("created_at_ms", u.created_at);
  f("updated_at_ms", u.updated_at);
  f("changed_at", u.changed_at);
}

template <class T>
std::string encode(const T& value) {
  json::Writer writer;
  writer.begin_object();
  FieldWriter f(writer);
  describe(value, f);
  writer.end_object();
  return writer.take();
}

template <class T>
Result<T> decode(std::string_view what, std::string_view text) {
  const auto damaged = [&](const Error& e) {
    return Error(Errc::data_loss, cat("stored ", what, " cannot be read: ", e.text()));
  };
  auto document = json::Document::parse(std::string(text), json::kBodyDepthMax);
  if (!document) return damaged(document.error());
  T out;
  FieldReader f(document.value().root());
  describe(out, f);
  if (auto done = f.finish(); !done) return damaged(done.error());
  return out;
}

}  // namespace

std::string encode_summary(const State& s) {
  return encode(
      Summary{s.cluster_id, s.applied, s.versions, s.placed, s.move_rate, s.moves_paused});
}
std::string encode_topic(const Topic& topic, RaftIndex changed_at) {
  return encode(DecodedTopic{topic, changed_at});
}
std::string encode_assignment(const Assignment& assignment) { return encode(assignment); }
std::string encode_schema(const SchemaVersion& schema) { return encode(schema); }
std::string encode_member(const Member& member) { return encode(member); }
std::string encode_tombstone(const Tombstone& tombstone) { return encode(tombstone); }
std::string encode_deleted_topic(const DeletedTopic& deleted) { return encode(deleted); }
std::string encode_move(const MoveRecord& move) { return encode(move); }
std::string encode_user(const User& user) { return encode(user); }

Result<void> decode_summary(std::string_view text, State& out) {
  NARAD_TRY(auto s, decode<Summary>("summary", text));
  out.cluster_id = std::move(s.cluster_id);
  out.applied = s.applied;
  out.versions = s.versions;
  out.placed = s.placed;
  out.move_rate = s.move_rate;
  out.moves_paused = s.moves_paused;
  return ok();
}
Result<DecodedTopic> decode_topic(std::string_view text) {
  return decode<DecodedTopic>("topic", text);
}
Result<Assignment> decode_assignment(std::string_view text) {
  return decode<Assignment>("assignment", text);
}
Result<SchemaVersion> decode_schema(std::string_view text) {
  return decode<SchemaVersion>("schema", text);
}
Result<Member> decode_member(std::string_view text) { return decode<Member>("member", text); }
Result<Tombstone> decode_tombstone(std::string_view text) {
  return decode<Tombstone>("tombstone", text);
}
Result<MoveRecord> decode_move(std::string_view text) {
  NARAD_TRY(auto move, decode<MoveRecord>("move", text));
  move.id = move_key(move.move_id);
  return move;
}

Result<DeletedTopic> decode_deleted_topic(std::string_view text) {
  NARAD_TRY(auto deleted, decode<DeletedTopic>("deleted topic", text));
  if (!parse_deleted_id(deleted.id)) {
    return Error(Errc::data_loss, cat("stored deleted topic has the bad id ", deleted.id));
  }
  return deleted;
}
Result<User> decode_user(std::string_view text) { return decode<User>("user", text); }

}  // namespace narad::metastore
