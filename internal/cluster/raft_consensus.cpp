#include "internal/cluster/raft_consensus.h"

namespace narad::cluster {

// As the core counts for its own promotions (raft::Options::caught_up_entries).
constexpr std::uint64_t kCaughtUpEntries = 16;

RaftView RaftConsensus::raft() const {
  raftnode::Status status = store_.raft_status();
  RaftView view;
  view.leads = status.is_leader && status.leads_own_term;
  view.term = status.term.value();
  view.leader = std::move(status.leader_node);
  view.self = status.replica;
  view.configuration = std::move(status.configuration);
  if (!status.is_leader) return view;
  view.reachable.insert(status.replica);
  for (const auto& [replica, follower] : status.followers) {
    if (!follower.active) continue;
    view.reachable.insert(replica);
    const bool near = follower.match.value() + kCaughtUpEntries >= status.commit.value();
    if (follower.role == raft::MemberRole::learner && near) view.caught_up.push_back(replica);
  }
  return view;
}

}  // namespace narad::cluster
