#include "internal/cluster/safe_stop.h"

#include <vector>

#include "internal/cluster/reasons.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using metastore::Member;
using metastore::MemberStatus;
using metastore::State;

// So many of a kind, and the first of them in words.
struct Found {
  std::uint64_t count = 0;
  std::string first;
  void add(std::string text) {
    if (count++ == 0) first = std::move(text);
  }
  std::string example() const { return cat("(", first, count > 1 ? " and more" : "", ")"); }
};

class Judge {
 public:
  Judge(const State& state, const std::string& node, const raft::Configuration& configuration,
        const wire::LeaderFacts& facts)
      : state_(state), node_(node), configuration_(configuration), facts_(facts) {
    verdict_.node = node;
  }

  StopVerdict run() {
    look_at_partitions();
    judge_partitions();
    judge_moves();
    judge_messages();
    judge_votes();
    return std::move(verdict_);
  }

 private:
  void keep(StopRule rule, std::string detail) {
    verdict_.reasons.push_back({rule, std::move(detail)});
  }

  bool is_dead(const std::string& id) const {
    const Member* m = state_.members.find(id);
    return m == nullptr || m->status == MemberStatus::dead;
  }

  void look_at_partitions() {
    state_.topics.for_each([&](const metastore::TopicRowPtr& row) {
      for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
        const Assignment& a = row->assignments[p];
        const std::string name = to_string(TopicPartition{row->topic.name, PartitionId(p)});
        const bool moves = !a.target_node.empty();
        // What was never used is given to another member once this one reads dead.
        if (a.owner_node == node_ && a.used) owned_.add(name);
        if (a.owner_node == node_ && moves) sources_.add(cat(name, " to ", a.target_node));
        if (a.target_node != node_ || a.owner_node == node_) continue;
        inbound_.add(cat(name, " from ", a.owner_node));
        if (is_dead(a.owner_node)) rescues_.add(cat(name, " from ", a.owner_node));
      }
    });
  }

  void judge_partitions() {
    if (owned_.count == 0) return;
    keep(StopRule::owns_partitions,
         cat("has the only copy of ", counted(owned_.count, "partition", "partitions"),
             " with messages ", owned_.example(),
             ": while it is stopped nobody can consume them, and what is produced into them waits. "
             "narad cluster decommission moves all of them off, narad cluster moves start one"));
  }

  void judge_moves() {
    if (sources_.count > 0) {
      keep(StopRule::move_source,
           cat("is the source of ", counted(sources_.count, "move", "moves"), " ",
               sources_.example(), ", which would wait until it is back"));
    }
    if (inbound_.count == 0) return;
    std::string detail =
        cat("is the destination of ", counted(inbound_.count, "move", "moves"), " ",
            inbound_.example(), ", which are called off when it stays away for two minutes");
    if (rescues_.count > 0) {
      detail +=
          cat("; of ", counted(rescues_.count, "partition", "partitions"), " ", rescues_.example(),
              " it may have the last copy that can be reached, since the owner is dead");
    }
    keep(StopRule::move_target, std::move(detail));
  }

  // What it took from clients and has not handed over.
  void judge_messages() {
    const wire::MemberFacts* f = facts_.find(node_);
    if (f == nullptr || !f->drain || f->silent_ms > kAnswersWithinMs) {
      keep(StopRule::unreachable,
           cat("the leader does not hear of ", node_, ": what its ingress WAL holds is not known"));
      return;
    }
    const wire::DrainStatus& s = *f->drain;
    if (!s.wal_open) {
      keep(StopRule::unreachable,
           cat(node_, " does not say what its ingress WAL holds: see its log and /readyz"));
      return;
    }
    if (s.wal_records + s.unanswered == 0) return;
    keep(StopRule::ingress_backlog,
         cat("its ingress WAL holds ",
             counted(s.wal_records, "message that is", "messages that are"),
             " not handed over to a partition yet, and ", s.unanswered,
             " being accepted: what is left when it stops is delivered once it is back"));
  }

  // The leader hears of it, and not only of a time before this leader was elected.
  bool answers(const std::string& id) const {
    if (is_dead(id)) return false;
    const wire::MemberFacts* f = facts_.find(id);
    return f != nullptr && f->drain && f->silent_ms <= kAnswersWithinMs;
  }

  void judge_votes() {
    const raft::Member* own = configuration_.find_node(node_);
    if (own == nullptr || own->role != raft::MemberRole::voter) return;
    std::size_t voters = 0, there = 0;
    std::string silent;
    for (const raft::Member& m : configuration_.members()) {
      if (m.role != raft::MemberRole::voter) continue;
      ++voters;
      if (m.node == node_) continue;
      if (answers(m.node)) {
        ++there;
      } else {
        silent += cat(silent.empty() ? "" : ", ", m.node);
      }
    }
    if (there * 2 > voters) return;
    keep(StopRule::no_live_majority,
         cat("without it only ", there, " of ", voters, " voters would answer",
             silent.empty() ? std::string() : cat(" (not heard of: ", silent, ")"),
             ": nothing could be created, moved or decided until it is back"));
  }

  const State& state_;
  const std::string& node_;
  const raft::Configuration& configuration_;
  const wire::LeaderFacts& facts_;
  Found owned_, sources_, inbound_, rescues_;
  StopVerdict verdict_;
};

}  // namespace

StopVerdict judge_stop(const State& state, const std::string& node,
                       const raft::Configuration& configuration, const wire::LeaderFacts& facts) {
  NARAD_ASSERT(state.members.contains(node), node);
  return Judge(state, node, configuration, facts).run();
}

}  // namespace narad::cluster
