// What goes wrong, and what clients and operators do meanwhile.
#include <algorithm>

#include "pkg/base/text.h"
#include "pkg/raft/sim_test/cluster.h"

namespace narad::raft::simtest {

namespace {
constexpr std::uint64_t kNodes = 7;
}

Cluster::Finding Cluster::act() {
  std::uint64_t dice = rng_.below(100);
  if (restless_ && dice < 25) return jump_clocks();
  if (dice < 60) return act_client();
  if (dice < 85) return act_fault();
  return changes_members_ ? act_members() : act_client();
}

// ---- clients
// --------------------------------------------------------------------------------------

Cluster::Finding Cluster::act_client() {
  ReplicaId id = pick();
  // Mostly who leads, sometimes somebody who thinks so, or does not.
  if (Replica* l = leader(); l != nullptr && rng_.below(3) != 0) id = l->core().self();
  Replica& r = *machines_.at(id).replica;
  if (!r.up()) return std::nullopt;
  std::uint64_t dice = rng_.below(10);
  if (dice < 6) {
    std::uint64_t many = rng_.range(1, 4);
    for (std::uint64_t i = 0; i < many; ++i) {
      std::string text = cat("v", next_value_++);
      text.append(rng_.below(60), '.');
      Payload payload = payload_of(text);
      Result<ProposalId> p = r.core().propose(payload);
      if (!p) {
        counters_.hit(cat("proposal refused: ", to_string(p.error().code())));
        break;
      }
      const Entry as{p.value().index, p.value().term, EntryKind::command, payload};
      r.proposed[p.value()] = digest(as);
    }
  } else if (dice < 9) {
    std::uint64_t context = next_value_++;
    if (r.core().read_index(context)) r.reads_asked[context] = oracle_.committed();
  } else {
    r.snapshot(rng_.below(10));
  }
  return worked(id);
}

// ---- faults
// ---------------------------------------------------------------------------------------

Cluster::Finding Cluster::act_fault() {
  ReplicaId id = pick();
  Machine& m = machines_.at(id);
  std::uint64_t dice = rng_.below(20);
  if (dice < 5) {
    if (!m.replica->up()) return boot(id);
    if (rng_.below(3) < crash_weight_) crash(id);
  } else if (dice < 9) {
    for (auto& [other, machine] : machines_) {
      if (machine.replica->up() || rng_.below(2) == 0) continue;
      if (Finding f = boot(other)) return f;
    }
  } else if (dice < 11) {
    partition();
  } else if (dice < 15) {
    blocked_.clear();
  } else if (dice < 16) {
    draw_weather();
  } else if (dice < 17) {
    m.disk_slow = rng_.below(2) == 0 ? 1 : rng_.range(10, 100);
  } else if (Replica* l = leader(); l != nullptr) {
    if (dice < 18) {
      crash(l->core().self());
    } else {
      if (l->core().transfer_leadership(id)) counters_.hit("transfer begun");
      return worked(l->core().self());
    }
  }
  return std::nullopt;
}

// Some processes were paused: all their ticks come at once.
Cluster::Finding Cluster::jump_clocks() {
  counters_.hit("clock jump");
  for (std::uint64_t left = rng_.range(1, 4); left > 0; --left) {
    ReplicaId id = pick();
    Replica& r = *machines_.at(id).replica;
    if (!r.up() || r.core().role() == Role::leader) continue;
    for (std::uint64_t ticks = rng_.range(8, 25); ticks > 0; --ticks) r.core().tick();
    if (Finding f = worked(id)) return f;
  }
  return std::nullopt;
}

void Cluster::draw_weather() {
  bool bad = rng_.below(2) == 0;
  lose_one_in_ = bad ? rng_.range(5, 50) : 0;
  double_one_in_ = rng_.below(2) == 0 ? rng_.range(5, 30) : 0;
  slow_one_in_ = rng_.below(2) == 0 ? rng_.range(5, 100) : 0;
  latency_max_ = rng_.below(3) == 0 ? rng_.range(500, 3000) : rng_.range(10, 300);
}

void Cluster::partition() {
  blocked_.clear();
  std::vector<ReplicaId> ids;
  for (auto& [id, m] : machines_) ids.push_back(id);
  std::set<ReplicaId> left;
  for (ReplicaId id : ids) {
    if (rng_.below(2) == 0) left.insert(id);
  }
  if (Replica* l = leader(); l != nullptr && rng_.below(2) == 0) left = {l->core().self()};
  std::uint64_t shape = rng_.below(4);
  ReplicaId bridge = ids[rng_.below(ids.size())];
  for (ReplicaId a : ids) {
    for (ReplicaId b : ids) {
      if (left.count(a) == 0 || left.count(b) != 0) continue;
      if (shape == 3 && (a == bridge || b == bridge)) continue;
      if (shape != 1) blocked_.insert({a, b});
      if (shape != 2) blocked_.insert({b, a});
    }
  }
  const char* names[] = {"partition", "partition, one way in", "partition, one way out",
                         "partition with a bridge"};
  counters_.hit(names[shape]);
}

// ---- members
// --------------------------------------------------------------------------------------

// Would `c` still have a majority of disks that exist, if `without` went too? A learner whose disk
// has just gone may yet be promoted by a leader that has not noticed.
bool Cluster::survives(const Configuration& c, ReplicaId without) const {
  std::size_t left = 0;
  std::size_t counted = 0;
  for (const Member& m : c.members()) {
    bool gone = m.replica == without || gone_.count(m.replica) != 0;
    bool voter = m.role == MemberRole::voter;
    if (voter || gone) ++counted;
    if (voter && !gone) ++left;
  }
  return c.empty() || left >= counted / 2 + 1;
}

Cluster::Finding Cluster::act_members() {
  std::uint64_t dice = rng_.below(12);
  if (dice < 3) {
    join();
    return std::nullopt;
  }
  if (dice == 3) {
    wipe();
    return std::nullopt;
  }
  if (dice == 4) {
    tidy_up();
    return std::nullopt;
  }
  ReplicaId at = pick();
  if (Replica* l = leader(); l != nullptr && rng_.below(4) != 0) at = l->core().self();
  Replica& l = *machines_.at(at).replica;
  if (!l.up() || l.core().role() != Role::leader) return std::nullopt;
  ReplicaId target = pick();
  using Kind = ConfigurationChange::Kind;
  const Kind kinds[] = {Kind::add_learner, Kind::add_learner, Kind::add_learner, Kind::promote,
                        Kind::promote,     Kind::demote,      Kind::remove};
  ConfigurationChange change{kinds[dice - 5], target, machines_.at(target).replica->options().node};
  const Configuration& current = l.core().membership().current();
  if (change.kind == Kind::remove && rng_.below(3) == 0) change.replica = at;
  Result<Configuration> next = apply(current, change);
  if (!next || !survives(next.value(), ReplicaId())) return std::nullopt;
  if (!l.core().propose_change(change)) return std::nullopt;
  counters_.hit(change.kind == Kind::remove && change.replica == at ? "leader removes itself"
                                                                    : "membership change");
  return worked(at);
}

void Cluster::join() {
  std::set<std::string> used;
  for (auto& [id, m] : machines_) used.insert(m.replica->options().node);
  for (std::uint64_t n = 1; n <= kNodes; ++n) {
    std::string name = cat("n", n);
    if (used.count(name) != 0) continue;
    add_machine(name, StartState());
    counters_.hit("newcomer");
    return;
  }
}

// A disk is emptied: the node comes back as another replica. Only while every configuration that
// may be in force anywhere can do without it.
void Cluster::wipe() {
  ReplicaId id = pick();
  for (auto& [other, m] : machines_) {
    if (!m.replica->up()) return;
    if (!survives(m.replica->core().membership().current(), id)) return;
  }
  std::string node = machines_.at(id).replica->options().node;
  machines_.erase(id);
  gone_.insert(id);
  add_machine(node, StartState());
  counters_.hit("disk emptied");
}

// A node that learned that it is out goes away, or stays and may disturb nobody.
void Cluster::tidy_up() {
  Replica* l = leader();
  if (l == nullptr) return;
  for (auto& [id, m] : machines_) {
    if (!m.replica->up() || m.replica->core().soft_state().standing != Standing::outside) continue;
    const Membership& own = m.replica->core().membership();
    if (own.current_index() > m.replica->core().commit_index()) continue;
    if (l->core().membership().current().find(id) != nullptr) continue;
    if (l->core().membership().current_index() > l->core().commit_index()) continue;
    if (!survives(own.current(), id)) continue;
    counters_.hit("removed replica gone");
    gone_.insert(id);
    machines_.erase(id);
    return;
  }
}

}  // namespace narad::raft::simtest
