#include "internal/cluster/decommission.h"

#include <algorithm>

#include "internal/cluster/planner.h"
#include "internal/cluster/reasons.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using metastore::Member;
using metastore::MemberStatus;
using metastore::State;
using raft::MemberRole;

bool receives(const Member& m) {
  return m.status == MemberStatus::alive && !m.draining && !m.leaving;
}

class Judge {
 public:
  Judge(const State& state, const Member& member, const DrainPicture& picture, DrainAsked asked,
        bool wal_lost)
      : state_(state), member_(member), picture_(picture), asked_(asked), wal_lost_(wal_lost) {
    verdict_.node = member.id;
    verdict_.draining = member.draining;
    verdict_.leaving = member.leaving;
  }

  DrainVerdict run() {
    if (member_.leaving) return std::move(verdict_);
    look_at_partitions();
    judge_partitions();
    judge_inbound();
    judge_messages();
    judge_leadership();
    judge_voters();
    return std::move(verdict_);
  }

 private:
  bool dead() const { return member_.status == MemberStatus::dead; }
  const std::string& id() const { return member_.id; }
  void keep(DrainRule rule, std::string detail, bool hopeless = false) {
    verdict_.reasons.push_back({rule, std::move(detail), hopeless});
  }

  void look_at_partitions() {
    state_.topics.for_each([&](const metastore::TopicRowPtr& row) {
      for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
        const Assignment& a = row->assignments[p];
        if (a.used && !a.target_node.empty()) ++in_flight_;
        if (state_.paused(a)) ++(a.owner_node == id() ? paused_ : paused_elsewhere_);
        if (a.owner_node == id()) look_at_owned(*row, a, p);
        if (a.target_node == id() && a.owner_node != id()) look_at_inbound(*row, a, p);
      }
    });
  }

  void look_at_owned(const metastore::TopicRow& row, const Assignment& a, std::uint32_t p) {
    ++verdict_.partitions;
    if (!a.used) ++verdict_.unused;
    if (!a.target_node.empty()) ++outbound_;
    const auto& disks = member_.disks;
    if (a.used && std::find(disks.begin(), disks.end(), a.owner_disk) == disks.end()) {
      if (stranded_++ == 0)
        first_stranded_ = to_string(TopicPartition{row.topic.name, PartitionId(p)});
    }
    std::string& first = a.used ? first_used_ : first_unused_;
    if (first.empty()) first = to_string(TopicPartition{row.topic.name, PartitionId(p)});
  }

  void look_at_inbound(const metastore::TopicRow& row, const Assignment& a, std::uint32_t p) {
    ++verdict_.inbound;
    const Member* source = state_.members.find(a.owner_node);
    const bool lost = source == nullptr || source->status == MemberStatus::dead;
    std::string& first = lost ? first_rescue_ : first_inbound_;
    if (lost) ++rescues_;
    if (first.empty()) {
      first =
          cat(to_string(TopicPartition{row.topic.name, PartitionId(p)}), " from ", a.owner_node);
    }
  }

  void judge_partitions() {
    if (verdict_.partitions == 0) return;
    const std::uint64_t used = verdict_.partitions - verdict_.unused;
    if (dead() && used > 0) {
      keep(
          DrainRule::dead_owner,
          cat(id(), " is dead and owns ", counted(used, "partition", "partitions"),
              " with messages (", first_used_, used > 1 ? " and more" : "",
              "): nobody can copy them. Start ", id(), " again with its disks; it is drained then"),
          true);
    }
    if (!dead() && stranded_ > 0) {
      keep(DrainRule::dead_owner,
           cat(id(), " owns ", counted(stranded_, "partition", "partitions"), " with messages (",
               first_stranded_, stranded_ > 1 ? " and more" : "",
               ") on disks that it does not have: nobody can copy them. Mount those disks and "
               "start it again"),
           true);
    }
    if (!has_receiver()) {
      keep(DrainRule::no_receiver,
           cat("no other member can take its ",
               counted(verdict_.partitions, "partition", "partitions"),
               ": none is alive that neither drains nor leaves. Add a node, or cancel another "
               "drain"),
           true);
    }
    const std::uint64_t moving = dead() ? verdict_.unused : verdict_.partitions;
    if (moving == 0) return;
    keep(DrainRule::owns_partitions,
         cat("owns ", counted(moving, "partition", "partitions"), ", ",
             outbound_ == 0 ? std::string("none") : cat(outbound_), " on the way (",
             first_used_.empty() || dead() ? first_unused_ : first_used_,
             moving > 1 ? " and more" : "", ")", what_waits_for_a_person()));
  }

  // Paused moves keep their places among those that are under way at once.
  std::string what_waits_for_a_person() const {
    if (state_.moves_paused) {
      return "; all moves are paused: narad cluster moves resume --all lets them go on";
    }
    if (member_.moves_paused) {
      return cat("; its moves are paused: narad cluster moves resume --node ", id(),
                 " lets them go on");
    }
    if (paused_ > 0) {
      return cat("; ", paused_, " of these moves ", paused_ == 1 ? "is" : "are",
                 " paused: narad cluster moves says by what, narad cluster moves resume lets them "
                 "go on");
    }
    const bool places_left = in_flight_ < PlannerLimits{}.in_flight_max;
    if (outbound_ > 0 || paused_elsewhere_ == 0 || places_left) return {};
    return cat("; its own wait for a place, and ",
               counted(paused_elsewhere_, "paused move of another node takes one",
                       "paused moves of other nodes take some"),
               ": see narad cluster moves");
  }

  bool has_receiver() const {
    bool found = false;
    state_.members.for_each([&](const std::shared_ptr<const Member>& m) {
      found = found || (m->id != id() && receives(*m));
    });
    return found;
  }

  void judge_inbound() {
    if (verdict_.inbound == 0) return;
    if (rescues_ == 0) {
      keep(DrainRule::move_target,
           cat("is the destination of ", counted(verdict_.inbound, "move", "moves"), " (",
               first_inbound_, "), which the leader calls off"));
      return;
    }
    keep(DrainRule::move_target,
         cat("is the destination of ", counted(verdict_.inbound, "move", "moves"), ", and ",
             first_rescue_, " may have its last copy here, since that node is dead: ", id(),
             " stays until it owns the partition and has moved it on. Start the dead node again, "
             "or abort the move if its disks are gone for good"));
  }

  // What it took from clients and has not handed over.
  void judge_messages() {
    if (dead()) {
      if (wal_lost_ || member_.wal_lost) return;
      keep(DrainRule::unreachable,
           cat(id(),
               " is dead: whether its ingress WAL holds messages that were accepted and not "
               "handed over is not known. Start it again, or give them up with --wal-lost"));
      return;
    }
    if (asked_ == DrainAsked::before || !picture_.leader_told) return;
    if (!picture_.status) {
      keep(DrainRule::unreachable, cat("the leader has not heard from ", id(),
                                       " what its ingress WAL holds; it says so every 5 s"));
      return;
    }
    const wire::DrainStatus& s = *picture_.status;
    if (s.empty_under(member_.drain_id)) return;
    if (s.drain_id != member_.drain_id || !s.refuses_produce) {
      keep(DrainRule::ingress_backlog, cat(id(), " has not said yet that it refuses messages"));
    } else if (!s.wal_open) {
      keep(DrainRule::ingress_backlog,
           cat(id(), " cannot open its ingress WAL: see its log and /readyz"));
    } else {
      keep(DrainRule::ingress_backlog,
           cat("its ingress WAL holds ",
               counted(s.wal_records, "message that is", "messages that are"),
               " not handed over to a partition yet, and ", s.unanswered, " being accepted"));
    }
  }

  void judge_leadership() {
    if (picture_.leader != id()) return;
    keep(DrainRule::is_leader, "leads the cluster, and hands that over once nothing else keeps it");
  }

  // The voters that would be left, and how many of them are alive.
  struct Rest {
    std::size_t voters = 0, alive = 0;
    std::vector<std::string> candidates;  // non-voters that can take a vote over
    std::vector<std::string> dead;
  };
  Rest rest() const {
    Rest r;
    for (const raft::Member& m : picture_.configuration.members()) {
      if (m.node == id()) continue;
      const Member* row = state_.members.find(m.node);
      if (row == nullptr && state_.tombstones.contains(m.node)) continue;
      const bool gone =
          row != nullptr && (row->leaving || (asked_ == DrainAsked::before && row->draining));
      if (gone) continue;
      const bool alive = row != nullptr && row->status == MemberStatus::alive;
      if (m.role != MemberRole::voter) {
        if (alive && receives(*row)) r.candidates.push_back(m.node);
        continue;
      }
      ++r.voters;
      if (alive) ++r.alive;
      if (!alive) r.dead.push_back(m.node);
    }
    return r;
  }

  void judge_voters() {
    const raft::Member* own = picture_.configuration.find_node(id());
    if (own == nullptr || own->role != MemberRole::voter) return;
    Rest r = rest();
    // Once nothing else keeps it, only votes that are there count.
    const bool last = asked_ == DrainAsked::during && verdict_.reasons.empty();
    std::string next;
    while (!r.candidates.empty() && (r.voters < kMinVoters || r.alive * 2 <= r.voters)) {
      if (last) {
        next = cat("; ", r.candidates.front(), " becomes one first");
        break;
      }
      r.candidates.pop_back();
      ++r.voters;
      ++r.alive;
    }
    if (r.voters < kMinVoters) {
      keep(DrainRule::min_voters,
           cat("without it the metadata would have ", counted(r.voters, "voter", "voters"),
               ", and needs ", kMinVoters, next.empty() ? cat(": add a node first") : next),
           next.empty());
    }
    if (r.alive * 2 <= r.voters) {
      std::string names;
      for (const std::string& d : r.dead) names += cat(names.empty() ? "" : ", ", d);
      keep(DrainRule::no_live_majority,
           cat("without it only ", r.alive, " of ", r.voters, " voters would be alive (",
               names.empty() ? std::string("none is") : cat(names, " not"), ")",
               next.empty() ? cat(": start them again, or decommission them first") : next),
           next.empty());
    }
  }

  const State& state_;
  const Member& member_;
  const DrainPicture& picture_;
  const DrainAsked asked_;
  const bool wal_lost_;
  std::uint64_t outbound_ = 0, rescues_ = 0;
  std::uint64_t paused_ = 0, paused_elsewhere_ = 0, in_flight_ = 0;
  std::uint64_t stranded_ = 0;  // with messages, on disks that a living owner does not have
  std::string first_stranded_;
  std::string first_used_, first_unused_, first_inbound_, first_rescue_;
  DrainVerdict verdict_;
};

}  // namespace

DrainVerdict judge_drain(const State& state, const std::string& node, const DrainPicture& picture,
                         DrainAsked asked, bool wal_lost) {
  const Member* member = state.members.find(node);
  NARAD_ASSERT(member != nullptr, node);
  return Judge(state, *member, picture, asked, wal_lost).run();
}

bool may_leave(const DrainVerdict& verdict) {
  return verdict.draining && !verdict.leaving && verdict.reasons.empty();
}

std::vector<std::string> draining_members(const State& state) {
  std::vector<std::string> dead, alive;
  state.members.for_each([&](const std::shared_ptr<const Member>& m) {
    if (!m->draining || m->leaving) return;
    (m->status == MemberStatus::dead ? dead : alive).push_back(m->id);
  });
  dead.insert(dead.end(), alive.begin(), alive.end());
  return dead;
}

}  // namespace narad::cluster
