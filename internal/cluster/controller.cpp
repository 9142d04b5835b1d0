#include "internal/cluster/controller.h"

#include "internal/cluster/placement.h"
#include "pkg/base/text.h"

namespace narad::cluster {

VoterPicture picture_of(const RaftView& raft, std::size_t voters_max) {
  VoterPicture picture;
  picture.configuration = raft.configuration;
  picture.self = raft.self;
  picture.reachable = raft.reachable;
  picture.reachable.insert(raft.self);
  picture.caught_up = raft.caught_up;
  picture.voters_max = voters_max;
  return picture;
}

Task<bool> hand_over_leadership(Env& env, Consensus& consensus, Nanos limit) {
  const RaftView raft = consensus.raft();
  if (!raft.leads) co_return true;
  const ReplicaId to = heir(picture_of(raft, 5), *consensus.view());
  const raft::Member* member = raft.configuration.find(to);
  if (member == nullptr) co_return false;
  std::string node = member->node;
  auto handed = co_await consensus.transfer_leadership(node, limit);
  if (!handed) {
    NARAD_LOG_WARN(env.log, "leadership not handed over; the others elect a leader by themselves",
                   {"to", node}, {"why", handed.error()});
    co_return false;
  }
  NARAD_LOG_INFO(env.log, "leadership handed over", {"to", node});
  co_return true;
}

Controller::Controller(Env& env, Consensus& consensus, Leadership& leadership,
                       std::function<std::uint64_t()> cluster_id, ControllerOptions options)
    : env_(env),
      consensus_(consensus),
      leadership_(leadership),
      cluster_id_(std::move(cluster_id)),
      options_(options),
      balancer_(env, consensus, leadership, options.balancer),
      tasks_(env) {}

void Controller::start() {
  tasks_.spawn("controller", run());
  balancer_.start();
}

Task<void> Controller::stop() {
  co_await tasks_.stop();
  co_await balancer_.stop();
}

bool Controller::leads(std::uint64_t term) const {
  const RaftView raft = consensus_.raft();
  return raft.leads && raft.term == term;
}

Task<void> Controller::run() {
  for (;;) {
    while (consensus_.leader_node().empty() || !consensus_.raft().leads) {
      (void)co_await consensus_.changed().wait_for(options_.look);
    }
    co_await lead(consensus_.raft().term);
  }
}

// As long as this node leads in `term`.
Task<void> Controller::lead(std::uint64_t term) {
  leadership_.liveness.elected(env_.clock.mono());
  leadership_.drains.clear();
  leadership_.term = term;
  leadership_.began.notify_all();
  leadership_.settled.notify_all();
  seen_members_ = seen_assignments_ = RaftIndex(0);
  NARAD_LOG_INFO(env_.log, "leading the cluster", {"term", term});
  while (leads(term)) {
    if (co_await found_entry()) {
      co_await mark_dead();
      co_await promote();
      co_await balancer_.retire();
      co_await depart();
      co_await assign();
    }
    co_await sleep_for(env_, options_.look);
    leadership_.liveness.awake(env_.clock.mono());
  }
  leadership_.term = 0;
  NARAD_LOG_INFO(env_.log, "leads no longer", {"term", term});
}

Task<void> Controller::propose(metastore::Command entry, const char* what) {
  auto result = co_await consensus_.propose(std::move(entry));
  if (!result) {
    NARAD_LOG_INFO(env_.log, "controller: not done now", {"what", what}, {"why", result.error()});
  } else if (!result.value().done()) {
    NARAD_LOG_INFO(env_.log, "controller: refused", {"what", what}, {"why", result.value().text});
  }
}

// The first entry of the cluster. True once it is applied.
Task<bool> Controller::found_entry() {
  if (!consensus_.view()->cluster_id.empty()) co_return true;
  if (cluster_id_() == 0) co_return false;
  metastore::FoundCluster entry;
  entry.cluster_id = to_hex16(cluster_id_());
  metastore::Command command = std::move(entry);
  co_await propose(std::move(command), "founding entry");
  co_return !consensus_.view()->cluster_id.empty();
}

Task<void> Controller::mark(metastore::MarkDead entry) {
  const std::string id = entry.id;
  metastore::Command command = std::move(entry);
  auto result = co_await consensus_.propose(std::move(command));
  if (!result && result.error().code() == Errc::unknown_outcome) {
    // It may still apply. A round after it settles that: what it could become is applied then.
    (void)co_await consensus_.barrier(options_.barrier_deadline);
  }
  if (result && result.value().done()) {
    NARAD_LOG_WARN(env_.log, "member marked dead: not heard for too long", {"node", id});
  }
  leadership_.liveness.mark_ended(id);
  leadership_.settled.notify_all();
}

Task<void> Controller::mark_dead() {
  auto stamps = leadership_.liveness.stamps_due(*consensus_.view(), env_.clock.mono(),
                                                env_.clock.wall_millis());
  if (stamps) {
    metastore::Command command = std::move(*stamps);
    co_await propose(std::move(command), "stamps");
  }
  std::vector<metastore::MarkDead> marks =
      leadership_.liveness.overdue(*consensus_.view(), env_.clock.mono());
  for (metastore::MarkDead& entry : marks) {
    // One that was heard while the others were being marked is not.
    const bool heard = leadership_.liveness.recently_heard(entry.id, env_.clock.mono());
    if (heard) {
      leadership_.liveness.mark_ended(entry.id);
      leadership_.settled.notify_all();
      continue;
    }
    // What this node judged as the leader says nothing once another leads.
    if (!consensus_.raft().leads) {
      leadership_.liveness.mark_ended(entry.id);
      leadership_.settled.notify_all();
      continue;
    }
    co_await mark(std::move(entry));
  }
}

Task<void> Controller::promote() {
  const auto change =
      next_promotion(picture_of(consensus_.raft(), options_.voters_max), *consensus_.view());
  if (!change) co_return;
  auto done = co_await consensus_.propose_change(*change);
  if (done) {
    NARAD_LOG_INFO(env_.log, "non-voter promoted", {"replica", to_hex16(change->replica.value())});
  } else {
    NARAD_LOG_INFO(env_.log, "non-voter not promoted now", {"why", done.error()});
  }
}

Task<void> Controller::depart() {
  const Departure next = next_departure(picture_of(consensus_.raft(), options_.voters_max),
                                        *consensus_.view(), env_.clock.wall_millis());
  if (const auto* replica = std::get_if<RemoveReplica>(&next)) {
    const raft::ConfigurationChange change{raft::ConfigurationChange::Kind::remove,
                                           replica->replica, ""};
    auto done = co_await consensus_.propose_change(change);
    if (!done) {
      NARAD_LOG_INFO(env_.log, "replica not removed now", {"node", replica->node},
                     {"why", done.error()});
    }
  } else if (const auto* member = std::get_if<metastore::RemoveMember>(&next)) {
    metastore::Command command = *member;
    co_await propose(std::move(command), "remove member");
  } else if (std::holds_alternative<HandOver>(next)) {
    (void)co_await hand_over_leadership(env_, consensus_, options_.hand_over_deadline);
  }
}

// Looked at again only when members or assignments have changed.
Task<void> Controller::assign() {
  const metastore::ViewPtr view = consensus_.view();
  if (view->versions.members == seen_members_ && view->versions.assignments == seen_assignments_) {
    co_return;
  }
  std::vector<metastore::AssignPartition> entries =
      assign_unassigned(*view, options_.assignments_max);
  if (entries.empty()) {
    seen_members_ = view->versions.members;
    seen_assignments_ = view->versions.assignments;
    co_return;
  }
  for (metastore::AssignPartition& entry : entries) {
    if (!consensus_.raft().leads) co_return;
    metastore::Command command = std::move(entry);
    co_await propose(std::move(command), "assign partition");
  }
}

}  // namespace narad::cluster
