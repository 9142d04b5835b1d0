// Faults stop: what must come true then.
#include <algorithm>

#include "pkg/base/text.h"
#include "pkg/raft/sim_test/cluster.h"

namespace narad::raft::simtest {

namespace {
// 10 seconds at 50 ms a tick.
constexpr std::uint64_t kLivenessTime = 200 * kTick;
constexpr std::uint64_t kQuietTime = 60 * kTick;
}  // namespace

Cluster::Finding Cluster::make_peace() {
  peace_ = true;
  blocked_.clear();
  lose_one_in_ = double_one_in_ = slow_one_in_ = 0;
  latency_max_ = 100;
  for (auto& [id, m] : machines_) {
    m.disk_slow = 1;
    m.replica->damage_one_in = 0;
    if (m.replica->up()) continue;
    if (Finding f = boot(id)) return f;
  }
  // What is still in flight arrives within the longest delay; time is counted from there.
  const std::uint64_t calm = now_ + 35 * kTick;
  while (now_ < calm) {
    if (Finding f = one_event()) return f;
  }
  if (Finding f = settle(now_ + kLivenessTime)) return f;
  // Whoever was removed, or never admitted, is still there and disturbs nobody.
  const Term term = leader()->core().term();
  const ReplicaId who = leader()->core().self();
  const std::uint64_t quiet = now_ + kQuietTime;
  while (now_ < quiet) {
    if (Finding f = one_event()) return f;
    Replica* l = leader();
    if (l == nullptr || l->core().term() != term || l->core().self() != who) {
      return cat("leader ", who, " of term ", term, " was disturbed in peace");
    }
  }
  return std::nullopt;
}

// A leader takes a proposal, and every member applies it.
Cluster::Finding Cluster::settle(std::uint64_t deadline) {
  ProposalId asked;
  while (now_ < deadline) {
    if (Finding f = one_event()) return f;
    Replica* l = leader();
    if (l == nullptr) continue;
    if (asked.term != l->core().term()) {
      Result<ProposalId> p = l->core().propose(payload_of("peace"));
      if (!p) continue;
      asked = p.value();
      if (Finding f = worked(l->core().self())) return f;
    }
    if (settled(asked.index)) return std::nullopt;
  }
  std::string state;
  for (auto& [id, m] : machines_) {
    const Core& c = m.replica->core();
    state +=
        cat("\n  replica ", id, " ", to_string(c.role()), " ", to_string(c.soft_state().standing),
            " term ", c.term(), " leader ", c.leader(), " log ", c.log().base(), "..",
            c.log().last(), " commit ", c.commit_index(), " applied ", c.applied_index(),
            c.installing() ? " installing" : "", "; ", describe(c.membership().current()));
  }
  return cat("no progress within the liveness bound after faults stopped", state);
}

bool Cluster::settled(Index index) {
  Replica* l = leader();
  for (const Member& member : l->core().membership().current().members()) {
    if (gone_.count(member.replica) != 0) continue;
    auto m = machines_.find(member.replica);
    if (m == machines_.end() || m->second.replica->state_index() < index) return false;
  }
  return l->core().commit_index() >= index;
}

}  // namespace narad::raft::simtest
