#include "internal/wire/operation_messages.h"

#include "internal/wire/json_fields.h"
#include "pkg/json/writer.h"

namespace narad::wire {
namespace {

constexpr std::size_t kNameBytesMax = 255;
constexpr std::size_t kReasonBytesMax = 255;
constexpr std::size_t kPathBytesMax = 8192;
constexpr std::size_t kWhyBytesMax = 1024;
constexpr std::size_t kMembersMax = 4096;
constexpr std::size_t kStepsMax = 1 << 12;

// ---- writing -----------------------------------------------------------------------------------

void write_partition(json::Writer& w, const TopicPartition& tp) {
  w.member("topic", tp.topic).member("partition", tp.partition);
}

void write_facts(json::Writer& w, const MemberFacts& m) {
  w.begin_object().member("id", m.id).member("silent_ms", m.silent_ms);
  if (m.drain) {
    w.key("drain")
        .begin_object()
        .member("id", m.drain->drain_id)
        .member("refuses_produce", m.drain->refuses_produce)
        .member("unanswered", m.drain->unanswered)
        .member("wal_open", m.drain->wal_open)
        .member("wal_records", m.drain->wal_records)
        .end_object();
  }
  w.end_object();
}

// ---- reading -----------------------------------------------------------------------------------

void read_partition(Fields& f, TopicPartition& tp) {
  std::uint64_t p = 0;
  f.text("topic", tp.topic, kNameBytesMax).number("partition", p, UINT32_MAX);
  tp.partition = PartitionId(static_cast<std::uint32_t>(p));
}

void read_drain(Fields& f, DrainStatus& d) {
  f.number("id", d.drain_id)
      .flag("refuses_produce", d.refuses_produce)
      .number("unanswered", d.unanswered)
      .flag("wal_open", d.wal_open)
      .number("wal_records", d.wal_records);
}

void read_facts(Fields& f, MemberFacts& m) {
  f.text("id", m.id, kNameBytesMax).number("silent_ms", m.silent_ms);
  if (!f.has("drain")) return;
  Fields d(f.object("drain"));
  read_drain(d, m.drain.emplace());
  if (!d.ok()) f.fail(cat("drain: ", d.problem()));
}

void read_move(Fields& f, PlannedMove& m) {
  read_partition(f, m.partition);
  f.text("from", m.from, kNameBytesMax)
      .text("to", m.to, kNameBytesMax)
      .text("to_disk", m.to_disk, kNameBytesMax)
      .text("reason", m.reason, kReasonBytesMax)
      .flag("at_once", m.at_once);
}

void read_cleared(Fields& f, ClearedTarget& c) {
  read_partition(f, c.partition);
  f.text("to", c.to, kNameBytesMax).text("reason", c.reason, kReasonBytesMax);
}

void read_kind(Fields& f, SetAsideKind& kind) {
  std::string word;
  f.text("kind", word, kNameBytesMax);
  for (const SetAsideKind k : kSetAsideKinds) {
    if (to_string(k) == word) {
      kind = k;
      return;
    }
  }
  f.fail("kind", "is none that is known");
}

void read_copy(Fields& f, SetAsideCopy& c) {
  read_kind(f, c.kind);
  f.text("topic", c.topic, kNameBytesMax)
      .text("disk", c.disk, kNameBytesMax)
      .text("path", c.path, kPathBytesMax)
      .number("bytes", c.bytes)
      .text("why", c.why, kWhyBytesMax)
      .number("since_ms", c.since);
  if (!f.has("partition")) return;
  std::uint64_t p = 0;
  f.number("partition", p, UINT32_MAX);
  c.partition = PartitionId(static_cast<std::uint32_t>(p));
}

// Each element of a list, read by `read`.
template <class T>
void read_list(Fields& f, std::string_view name, std::size_t max, std::vector<T>& out,
               void (*read)(Fields&, T&)) {
  f.each(name, max, [&](json::Value v) {
    Fields item(v);
    T value;
    read(item, value);
    if (!item.ok()) f.fail(cat(name, ": ", item.problem()));
    out.push_back(std::move(value));
  });
}

}  // namespace

const MemberFacts* LeaderFacts::find(std::string_view id) const {
  for (const MemberFacts& m : members) {
    if (m.id == id) return &m;
  }
  return nullptr;
}

std::string encode(const LeaderFacts& m) {
  json::Writer w;
  w.begin_object().member("leader", m.leader).member("term", m.term).key("members").begin_array();
  for (const MemberFacts& f : m.members) write_facts(w, f);
  w.end_array().end_object();
  return w.take();
}

std::string encode(const RebalanceOutcome& m) {
  json::Writer w;
  w.begin_object().key("cleared").begin_array();
  for (const ClearedTarget& c : m.cleared) {
    w.begin_object();
    write_partition(w, c.partition);
    w.member("to", c.to).member("reason", c.reason).end_object();
  }
  w.end_array().key("moves").begin_array();
  for (const PlannedMove& p : m.moves) {
    w.begin_object();
    write_partition(w, p.partition);
    w.member("from", p.from)
        .member("to", p.to)
        .member("to_disk", p.to_disk)
        .member("reason", p.reason)
        .member("at_once", p.at_once)
        .end_object();
  }
  w.end_array().member("wanted", m.wanted).end_object();
  return w.take();
}

std::string encode(const SetAsideCopies& m) {
  json::Writer w;
  w.begin_object().key("copies").begin_array();
  for (const SetAsideCopy& c : m.copies) {
    w.begin_object().member("kind", to_string(c.kind)).member("topic", c.topic);
    if (c.partition) w.member("partition", *c.partition);
    w.member("disk", c.disk).member("path", c.path).member("bytes", c.bytes);
    w.member("why", c.why).member("since_ms", c.since).end_object();
  }
  w.end_array().member("left_out", m.left_out).end_object();
  return w.take();
}

Result<LeaderFacts> decode_leader_facts(std::string_view body) {
  return decode_object<LeaderFacts>(
      {"what the leader knows", kOperationMessageBytesMax}, body, [](Fields& f, LeaderFacts& m) {
        f.text("leader", m.leader, kNameBytesMax).number("term", m.term);
        read_list(f, "members", kMembersMax, m.members, read_facts);
      });
}

Result<RebalanceOutcome> decode_rebalance_outcome(std::string_view body) {
  return decode_object<RebalanceOutcome>(
      {"what came of a pass over the moves", kOperationMessageBytesMax}, body,
      [](Fields& f, RebalanceOutcome& m) {
        read_list(f, "cleared", kStepsMax, m.cleared, read_cleared);
        read_list(f, "moves", kStepsMax, m.moves, read_move);
        f.number("wanted", m.wanted);
      });
}

Result<SetAsideCopies> decode_set_aside_copies(std::string_view body) {
  return decode_object<SetAsideCopies>({"what is in quarantine", kOperationMessageBytesMax}, body,
                                       [](Fields& f, SetAsideCopies& m) {
                                         read_list(f, "copies", kSetAsideMax, m.copies, read_copy);
                                         f.number("left_out", m.left_out);
                                       });
}

}  // namespace narad::wire
