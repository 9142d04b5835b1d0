#pragma once
// What the leader does by itself: founding entry, stamps, dead marks, promotions, departures,
// partitions that nobody owns, and (balancer.h) those that are to live elsewhere. On gaining
// leadership at once and then every second: a look costs next to nothing when nothing is to be
// done. Lives on the node's loop of every node and sleeps where that does not lead.
//
// Everything it does is an entry whose preconditions apply() checks again, or one membership change
// of Raft; it repeats what is not done at its next look, so no outcome needs to be remembered.
#include <functional>
#include <string>

#include "internal/cluster/balancer.h"
#include "internal/cluster/consensus.h"
#include "internal/cluster/leadership.h"
#include "internal/cluster/voters.h"
#include "pkg/async/task_group.h"

namespace narad::cluster {

struct ControllerOptions {
  Nanos look = std::chrono::seconds(1);
  Nanos barrier_deadline = std::chrono::seconds(5);
  Nanos hand_over_deadline = std::chrono::milliseconds(500);
  std::size_t voters_max = 5;
  std::size_t assignments_max = 256;  // per look
  BalancerOptions balancer;
};

class Controller {
 public:
  // `cluster_id` answers the id of node.json.
  Controller(Env& env, Consensus& consensus, Leadership& leadership,
             std::function<std::uint64_t()> cluster_id, ControllerOptions options = {});

  void start();
  Task<void> stop();
  Balancer& balancer() { return balancer_; }
  const Balancer& balancer() const { return balancer_; }

 private:
  Task<void> run();
  Task<void> lead(std::uint64_t term);
  Task<bool> found_entry();
  Task<void> mark_dead();
  Task<void> mark(metastore::MarkDead entry);
  Task<void> promote();
  Task<void> depart();
  Task<void> assign();
  Task<void> propose(metastore::Command entry, const char* what);
  bool leads(std::uint64_t term) const;

  Env& env_;
  Consensus& consensus_;
  Leadership& leadership_;
  const std::function<std::uint64_t()> cluster_id_;
  const ControllerOptions options_;
  Balancer balancer_;
  RaftIndex seen_members_{0};  // versions looked at by assign()
  RaftIndex seen_assignments_{0};
  TaskGroup tasks_;
};

VoterPicture picture_of(const RaftView& raft, std::size_t voters_max);

// Before a stop: lets the best other voter lead, within `limit`. True if this node does not lead
// when it answers.
Task<bool> hand_over_leadership(Env& env, Consensus& consensus, Nanos limit);

}  // namespace narad::cluster
