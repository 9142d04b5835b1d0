#include "pkg/raft/configuration.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::raft {

namespace {
constexpr std::uint8_t kFormat = 1;
Error invalid(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }
}  // namespace

Result<Configuration> Configuration::make(std::vector<Member> members) {
  if (members.size() > kMembersMax) {
    return invalid(cat("a configuration of ", members.size(), " members; at most ", kMembersMax));
  }
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.replica < b.replica; });
  std::vector<std::string_view> nodes;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& m = members[i];
    if (m.replica == ReplicaId()) return invalid("replica id 0 in a configuration");
    if (i > 0 && members[i - 1].replica == m.replica) {
      return invalid(cat("replica ", m.replica.value(), " twice in a configuration"));
    }
    if (m.node.empty() || m.node.size() > kNodeNameBytesMax) {
      return invalid(cat("replica ", m.replica.value(), " has a node name of ", m.node.size(),
                         " bytes; 1 to ", kNodeNameBytesMax, " are allowed"));
    }
    nodes.push_back(m.node);
  }
  std::sort(nodes.begin(), nodes.end());
  auto twice = std::adjacent_find(nodes.begin(), nodes.end());
  if (twice != nodes.end()) return invalid(cat("node ", *twice, " twice in a configuration"));
  Configuration c;
  c.members_ = std::move(members);
  return c;
}

const Member* Configuration::find(ReplicaId replica) const {
  auto at = std::lower_bound(members_.begin(), members_.end(), replica,
                             [](const Member& m, ReplicaId wanted) { return m.replica < wanted; });
  return at != members_.end() && at->replica == replica ? &*at : nullptr;
}

const Member* Configuration::find_node(std::string_view node) const {
  for (const Member& m : members_) {
    if (m.node == node) return &m;
  }
  return nullptr;
}

bool Configuration::is_voter(ReplicaId replica) const {
  const Member* m = find(replica);
  return m != nullptr && m->role == MemberRole::voter;
}

std::vector<ReplicaId> Configuration::voters() const {
  std::vector<ReplicaId> out;
  for (const Member& m : members_) {
    if (m.role == MemberRole::voter) out.push_back(m.replica);
  }
  return out;
}

std::size_t Configuration::voter_count() const {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(),
                    [](const Member& m) { return m.role == MemberRole::voter; }));
}

Bytes Configuration::encode() const {
  Bytes out;
  ByteWriter w(out);
  w.u8(kFormat);
  w.u32(static_cast<std::uint32_t>(members_.size()));
  for (const Member& m : members_) {
    w.u64(m.replica.value());
    w.u8(static_cast<std::uint8_t>(m.role));
    w.u8(static_cast<std::uint8_t>(m.node.size()));
    w.bytes(as_bytes(m.node));
  }
  return out;
}

Result<Configuration> Configuration::decode(ByteView bytes) {
  auto bad = [](std::string_view what) {
    return Error(Errc::data_loss, cat("a stored Raft configuration is damaged: ", what));
  };
  ByteReader r(bytes);
  std::uint8_t format = r.u8();
  if (!r.ok() || format != kFormat) return bad(cat("format ", format, ", expected ", kFormat));
  std::uint32_t count = r.u32();
  if (!r.ok() || count > kMembersMax) return bad(cat(count, " members"));
  std::vector<Member> members;
  for (std::uint32_t i = 0; i < count; ++i) {
    Member m;
    m.replica = ReplicaId(r.u64());
    std::uint8_t role = r.u8();
    m.node = to_text(r.bytes(r.u8()));
    if (!r.ok()) return bad("it ends early");
    if (role > 1) return bad(cat("role ", role));
    m.role = static_cast<MemberRole>(role);
    members.push_back(std::move(m));
  }
  if (r.remaining() != 0) return bad(cat(r.remaining(), " bytes too many"));
  Result<Configuration> made = make(std::move(members));
  if (!made) return bad(made.error().text());
  return made;
}

std::string describe(const Configuration& c) {
  std::string out;
  for (const Member& m : c.members()) {
    if (!out.empty()) out += ' ';
    out += cat(m.node, "(", m.replica.value(), ")", m.role == MemberRole::learner ? "L" : "");
  }
  return out;
}

namespace {

Result<Configuration> add_learner(const Configuration& from, const ConfigurationChange& change) {
  if (from.find(change.replica) != nullptr) {
    return Error(Errc::exists, cat("replica ", change.replica.value(), " is a member already"));
  }
  std::vector<Member> members;
  for (const Member& m : from.members()) {
    if (m.node != change.node) members.push_back(m);
  }
  members.push_back({change.replica, change.node, MemberRole::learner});
  return Configuration::make(std::move(members));
}

Result<Configuration> alter(const Configuration& from, const ConfigurationChange& change) {
  using Kind = ConfigurationChange::Kind;
  const Member* target = from.find(change.replica);
  if (target == nullptr) {
    return Error(Errc::not_found, cat("replica ", change.replica.value(), " is not a member"));
  }
  if (change.kind == Kind::promote && target->role == MemberRole::voter) {
    return Error(Errc::exists, cat("replica ", change.replica.value(), " is a voter already"));
  }
  if (change.kind == Kind::demote && target->role == MemberRole::learner) {
    return Error(Errc::exists, cat("replica ", change.replica.value(), " is a learner already"));
  }
  std::vector<Member> members;
  for (Member m : from.members()) {
    if (m.replica == change.replica) {
      if (change.kind == Kind::remove) continue;
      m.role = change.kind == Kind::promote ? MemberRole::voter : MemberRole::learner;
    }
    members.push_back(std::move(m));
  }
  return Configuration::make(std::move(members));
}

}  // namespace

Result<Configuration> apply(const Configuration& from, const ConfigurationChange& change) {
  bool adds = change.kind == ConfigurationChange::Kind::add_learner;
  NARAD_TRY(Configuration to, adds ? add_learner(from, change) : alter(from, change));
  if (to.voter_count() == 0) {
    return Error(Errc::conflict, "the change would leave no voter; add and promote another first");
  }
  return to;
}

ReplicaId next_promotion(const Configuration& c, const std::vector<ReplicaId>& ready,
                         std::size_t voters_max) {
  std::size_t voters = c.voter_count();
  if (ready.empty() || voters >= voters_max) return ReplicaId();
  bool becomes_odd = voters % 2 == 0;
  bool second_follows = ready.size() >= 2 && voters + 2 <= voters_max;
  return becomes_odd || second_follows ? ready.front() : ReplicaId();
}

}  // namespace narad::raft
