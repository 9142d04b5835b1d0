#include "internal/cluster/voters.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad::cluster {
namespace {

using raft::MemberRole;
using raft::ReplicaId;

bool may_vote(const metastore::State& state, const std::string& node) {
  const metastore::Member* m = state.members.find(node);
  return m != nullptr && m->status == metastore::MemberStatus::alive && !m->draining && !m->leaving;
}

// A majority of the voters, `more` of them being promoted learners that are reachable, answers.
bool majority_answers(const VoterPicture& p, std::size_t more) {
  std::size_t voters = more, there = more;
  for (const raft::Member& m : p.configuration.members()) {
    if (m.role != MemberRole::voter) continue;
    ++voters;
    if (p.reachable.contains(m.replica)) ++there;
  }
  return there >= voters / 2 + 1;
}

// A voter that will be one no longer before long: its member is leaving, or drains and has nothing
// left. Its vote does not count when the others are made an odd number, so that whoever takes it
// over is there before it goes.
bool gives_up_its_vote(const metastore::State& state, const std::string& node) {
  const metastore::Member* m = state.members.find(node);
  if (m == nullptr) return state.tombstones.contains(node);
  return m->leaving || (m->draining && !state.partition_naming(node));
}

}  // namespace

std::optional<raft::ConfigurationChange> next_promotion(const VoterPicture& p,
                                                        const metastore::State& state) {
  std::vector<ReplicaId> ready;
  for (ReplicaId id : p.caught_up) {
    const raft::Member* m = p.configuration.find(id);
    if (m == nullptr || m->role != MemberRole::learner || !p.reachable.contains(id)) continue;
    if (may_vote(state, m->node)) ready.push_back(id);
  }
  if (ready.empty()) return std::nullopt;
  std::vector<raft::Member> staying;
  for (const raft::Member& m : p.configuration.members()) {
    const bool votes = m.role == MemberRole::voter;
    if (!votes || !gives_up_its_vote(state, m.node)) staying.push_back(m);
  }
  const auto counted = raft::Configuration::make(std::move(staying));
  NARAD_ASSERT(counted.has_value());  // a part of one that is sound
  const ReplicaId next = raft::next_promotion(counted.value(), ready, p.voters_max);
  if (next == ReplicaId() || !majority_answers(p, 1)) return std::nullopt;
  return raft::ConfigurationChange{raft::ConfigurationChange::Kind::promote, next, ""};
}

ReplicaId heir(const VoterPicture& p, const metastore::State& state) {
  const raft::Member* best = nullptr;
  bool best_drains = false;
  for (const raft::Member& m : p.configuration.members()) {
    if (m.role != MemberRole::voter || m.replica == p.self || !p.reachable.contains(m.replica)) {
      continue;
    }
    const metastore::Member* member = state.members.find(m.node);
    const bool fit =
        member != nullptr && member->status == metastore::MemberStatus::alive && !member->leaving;
    if (!fit) continue;
    const bool better = best == nullptr || (best_drains && !member->draining) ||
                        (best_drains == member->draining && m.node < best->node);
    if (!better) continue;
    best = &m;
    best_drains = member->draining;
  }
  return best == nullptr ? ReplicaId() : best->replica;
}

Departure next_departure(const VoterPicture& p, const metastore::State& state, UnixMillis wall) {
  for (const raft::Member& m : p.configuration.members()) {
    const metastore::Member* member = state.members.find(m.node);
    const bool goes = state.tombstones.contains(m.node) || (member != nullptr && member->leaving);
    if (!goes) continue;
    if (m.replica == p.self) return HandOver{};
    // Never the last voter, and never so that no majority of the rest answers.
    if (m.role == MemberRole::voter) {
      VoterPicture rest = p;
      auto without =
          raft::apply(p.configuration, {raft::ConfigurationChange::Kind::remove, m.replica, ""});
      if (!without) continue;
      rest.configuration = std::move(without.value());
      if (!majority_answers(rest, 0)) continue;
    }
    return RemoveReplica{m.replica, m.node};
  }
  Departure next;
  state.members.for_each([&](const std::shared_ptr<const metastore::Member>& m) {
    if (!m->leaving || p.configuration.find_node(m->id) != nullptr) return;
    if (std::holds_alternative<std::monostate>(next)) {
      next = metastore::RemoveMember{m->id, m->drain_id, wall};
    }
  });
  return next;
}

}  // namespace narad::cluster
