#include "internal/wire/member_messages.h"

#include <algorithm>
#include <array>

#include "internal/wire/json_fields.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/json/writer.h"

namespace narad::wire {
namespace {

constexpr std::size_t kIdBytesMax = 255;
constexpr std::size_t kTextBytesMax = 4096;
constexpr std::size_t kAddressBytesMax = 512;
constexpr std::size_t kDisksMax = 256;

// ---- writing -----------------------------------------------------------------------------------

void write_id(json::Writer& w, std::string_view name, std::uint64_t value) {
  w.member(name, to_hex16(value));
}

void write_member(json::Writer& w, const MemberInfo& m) {
  w.key("member").begin_object().member("id", m.id);
  write_id(w, "replica", m.replica.value());
  w.member("boot_id", m.boot_id)
      .member("http_addr", m.http_addr)
      .member("cluster_addr", m.cluster_addr)
      .key("disks")
      .begin_array();
  for (const std::string& disk : m.disks) w.value(disk);
  w.end_array().end_object();
}

void write_drain(json::Writer& w, const DrainStatus& d) {
  w.member("id", d.drain_id)
      .member("wal_records", d.wal_records)
      .member("refuses_produce", d.refuses_produce)
      .member("unanswered", d.unanswered)
      .member("wal_open", d.wal_open);
}

// ---- reading -----------------------------------------------------------------------------------

template <class T, class F>
Result<T> decode(std::string_view what, std::string_view body, F read) {
  return decode_object<T>({what, kMemberMessageBytesMax}, body, read);
}

void read_member(Fields& outer, MemberInfo& m) {
  const auto object = outer.object("member");
  if (!object) return;
  Fields f(*object);
  f.text("id", m.id, kIdBytesMax)
      .id("replica", m.replica)
      .text("boot_id", m.boot_id, kIdBytesMax)
      .text("http_addr", m.http_addr, kAddressBytesMax)
      .text("cluster_addr", m.cluster_addr, kAddressBytesMax)
      .each("disks", kDisksMax, [&](json::Value v) {
        if (!v.is(json::Kind::string) || v.as_string().empty() ||
            v.as_string().size() > kIdBytesMax) {
          f.fail("disks", "holds something that is no disk id");
          return;
        }
        m.disks.emplace_back(v.as_string());
      });
  if (f.problem().empty() && m.id.empty()) f.fail("id", "is empty");
  if (f.problem().empty() && m.replica.value() == 0) f.fail("replica", "is 0");
  if (!f.problem().empty()) outer.fail(cat("member: ", f.problem()));
}

void read_drain(Fields& f, DrainStatus& d) {
  f.number("id", d.drain_id).number("wal_records", d.wal_records);
  if (!f.has("refuses_produce")) return;  // an older release
  f.flag("refuses_produce", d.refuses_produce)
      .number("unanswered", d.unanswered)
      .flag("wal_open", d.wal_open);
}

raft::Member read_founder(Fields& outer, json::Value v) {
  raft::Member m;
  Fields f(v);
  std::string role;
  f.text("node", m.node, kIdBytesMax).id("replica", m.replica).text("role", role, 16);
  if (f.problem().empty() && role != "voter" && role != "learner") f.fail("role", "is unknown");
  m.role = role == "voter" ? raft::MemberRole::voter : raft::MemberRole::learner;
  if (!f.problem().empty()) outer.fail(cat("founding: ", f.problem()));
  return m;
}

MemberAddress read_address(Fields& outer, json::Value v) {
  MemberAddress a;
  Fields f(v);
  f.text("id", a.id, kIdBytesMax).text("cluster_addr", a.cluster_addr, kAddressBytesMax);
  if (!f.problem().empty()) outer.fail(cat("members: ", f.problem()));
  return a;
}

constexpr std::array kReasons{Refused::not_leader, Refused::unavailable,   Refused::unknown,
                              Refused::replaced,   Refused::other_cluster, Refused::removed,
                              Refused::invalid};

}  // namespace

std::string_view to_string(Refused reason) {
  switch (reason) {
    case Refused::not_leader:
      return "not_leader";
    case Refused::unavailable:
      return "unavailable";
    case Refused::unknown:
      return "unknown";
    case Refused::replaced:
      return "replaced";
    case Refused::other_cluster:
      return "other_cluster";
    case Refused::removed:
      return "removed";
    case Refused::invalid:
      return "invalid";
  }
  NARAD_ASSERT(false, "unknown reason");
}

int status_of(Refused reason) {
  switch (reason) {
    case Refused::not_leader:
      return 421;
    case Refused::unavailable:
      return 503;
    case Refused::unknown:
      return 404;
    case Refused::replaced:
    case Refused::other_cluster:
      return 409;
    case Refused::removed:
      return 410;
    case Refused::invalid:
      return 400;
  }
  NARAD_ASSERT(false, "unknown reason");
}

std::string encode(const WhoAnswer& m) {
  json::Writer w;
  w.begin_object().member("node", m.node);
  write_id(w, "replica", m.replica.value());
  write_id(w, "cluster", m.cluster_id);
  w.key("founding").begin_array();
  for (const raft::Member& f : m.founding) {
    w.begin_object().member("node", f.node);
    write_id(w, "replica", f.replica.value());
    w.member("role", f.role == raft::MemberRole::voter ? "voter" : "learner").end_object();
  }
  w.end_array().member("leader", m.leader).key("members").begin_array();
  for (const MemberAddress& a : m.members) {
    w.begin_object().member("id", a.id).member("cluster_addr", a.cluster_addr).end_object();
  }
  w.end_array().end_object();
  return w.take();
}

std::string encode(const JoinRequest& m) {
  json::Writer w;
  w.begin_object();
  write_id(w, "cluster", m.cluster_id);
  write_member(w, m.member);
  w.end_object();
  return w.take();
}

std::string encode(const JoinAnswer& m) {
  json::Writer w;
  w.begin_object();
  write_id(w, "cluster", m.cluster_id);
  w.member("leader", m.leader).member("index", m.index).end_object();
  return w.take();
}

std::string encode(const HeartbeatRequest& m) {
  json::Writer w;
  w.begin_object();
  write_member(w, m.member);
  w.key("drain").begin_object();
  write_drain(w, m.drain);
  w.end_object().end_object();
  return w.take();
}

std::string encode(const HeartbeatAnswer& m) {
  json::Writer w;
  w.begin_object()
      .member("index", m.index)
      .member("term", m.term)
      .member("leader", m.leader)
      .member("leader_wall_ms", m.leader_wall)
      .end_object();
  return w.take();
}

std::string encode(const MemberRefusal& m) {
  json::Writer w;
  w.begin_object()
      .member("error", m.error)
      .member("reason", to_string(m.reason))
      .member("leader", m.leader)
      .member("removed_at", m.removed_at)
      .member("removed_at_ms", m.removed_ms)
      .end_object();
  return w.take();
}

Result<WhoAnswer> decode_who_answer(std::string_view body) {
  return decode<WhoAnswer>("the answer to who are you", body, [](Fields& f, WhoAnswer& m) {
    f.text("node", m.node, kIdBytesMax)
        .id("replica", m.replica)
        .id("cluster", m.cluster_id)
        .each("founding", kFoundersMax,
              [&](json::Value v) { m.founding.push_back(read_founder(f, v)); })
        .text("leader", m.leader, kIdBytesMax)
        .each("members", raft::kMembersMax,
              [&](json::Value v) { m.members.push_back(read_address(f, v)); });
    if (!f.problem().empty()) return;
    if (m.node.empty()) f.fail("node", "is empty");
    if (m.replica.value() == 0) f.fail("replica", "is 0");
    if (auto made = raft::Configuration::make(m.founding); !made) f.fail(made.error().text());
    if (m.cluster_id == 0 && !m.founding.empty()) f.fail("founding", "without a cluster");
  });
}

Result<JoinRequest> decode_join_request(std::string_view body) {
  return decode<JoinRequest>("the request to join", body, [](Fields& f, JoinRequest& m) {
    f.id("cluster", m.cluster_id);
    read_member(f, m.member);
    if (f.problem().empty() && m.member.disks.empty()) f.fail("member: disks", "is empty");
  });
}

Result<JoinAnswer> decode_join_answer(std::string_view body) {
  return decode<JoinAnswer>("the answer to a request to join", body, [](Fields& f, JoinAnswer& m) {
    f.id("cluster", m.cluster_id).text("leader", m.leader, kIdBytesMax).number("index", m.index);
  });
}

Result<HeartbeatRequest> decode_heartbeat_request(std::string_view body) {
  return decode<HeartbeatRequest>("the heartbeat", body, [](Fields& f, HeartbeatRequest& m) {
    read_member(f, m.member);
    if (f.problem().empty() && m.member.disks.empty()) f.fail("member: disks", "is empty");
    const auto drain = f.object("drain");
    if (!drain) return;
    Fields d(*drain);
    read_drain(d, m.drain);
    if (!d.problem().empty()) f.fail(cat("drain: ", d.problem()));
  });
}

Result<HeartbeatAnswer> decode_heartbeat_answer(std::string_view body) {
  return decode<HeartbeatAnswer>("the answer to a heartbeat", body,
                                 [](Fields& f, HeartbeatAnswer& m) {
                                   f.number("index", m.index)
                                       .number("term", m.term)
                                       .text("leader", m.leader, kIdBytesMax)
                                       .number("leader_wall_ms", m.leader_wall);
                                 });
}

MemberRefusal decode_refusal(int status, std::string_view body) {
  auto read = decode<MemberRefusal>("the refusal", body, [](Fields& f, MemberRefusal& m) {
    std::string reason;
    f.text("error", m.error, kTextBytesMax)
        .text("reason", reason, 32)
        .text("leader", m.leader, kIdBytesMax)
        .number("removed_at", m.removed_at)
        .number("removed_at_ms", m.removed_ms);
    if (!f.problem().empty()) return;
    const auto known = std::find_if(kReasons.begin(), kReasons.end(),
                                    [&](Refused r) { return to_string(r) == reason; });
    if (known == kReasons.end()) {
      f.fail("reason", "is unknown");
      return;
    }
    m.reason = *known;
  });
  if (read && status_of(read.value().reason) == status) return std::move(read.value());
  MemberRefusal other;
  std::string text(body.substr(0, 200));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  other.error = cat("it answered status ", status, text.empty() ? "" : ": ", text);
  return other;
}

}  // namespace narad::wire
