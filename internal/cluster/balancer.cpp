#include "internal/cluster/balancer.h"

#include <algorithm>

#include "internal/cluster/controller.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::cluster {
Balancer::Balancer(Env& env, Consensus& consensus, Leadership& leadership, BalancerOptions options)
    : env_(env),
      consensus_(consensus),
      leadership_(leadership),
      options_(std::move(options)),
      placement_(env),
      tasks_(env) {}

void Balancer::start() { tasks_.spawn("balancer", run()); }

bool Balancer::leads(std::uint64_t term) const {
  if (term == 0 || leadership_.term != term) return false;
  const RaftView raft = consensus_.raft();
  return raft.leads && raft.term == term;
}

Task<void> Balancer::run() {
  for (;;) {
    // Not before this term's silence is counted from its beginning.
    while (!leads(leadership_.term)) (void)co_await leadership_.began.wait_for(options_.every);
    const std::uint64_t term = leadership_.term;
    report_ = {};
    watched_.clear();
    told_.clear();
    co_await serve(term);
    report_ = {};
  }
}

Task<void> Balancer::serve(std::uint64_t term) {
  while (leads(term)) {
    const bool founded = !consensus_.view()->cluster_id.empty();
    bool made = false;
    if (founded) {
      auto outcome = co_await pass_alone();
      made = outcome.has_value();
      if (!made && leads(term)) {
        NARAD_LOG_INFO(env_.log, "no pass over the moves now", {"why", outcome.error()});
      }
    }
    if (made) {
      co_await wait_for_work(term);
    } else {
      (void)co_await consensus_.changed().wait_for(options_.retry);
      co_await sleep_for(env_, options_.pause);
    }
  }
}

// Until members have changed, a move has ended, more is to be given out at once, or it is time.
Task<void> Balancer::wait_for_work(std::uint64_t term) {
  const Deadline next = Deadline::after(env_, options_.every);
  co_await sleep_for(env_, options_.pause);
  while (leads(term) && !next.passed(env_)) {
    const metastore::ViewPtr view = consensus_.view();
    if (more_at_once_ || view->versions.members != seen_members_ || something_ended()) co_return;
    (void)co_await consensus_.changed().wait_for(std::min(next.left(env_), options_.retry));
  }
}

bool Balancer::something_ended() const {
  const metastore::ViewPtr view = consensus_.view();
  if (view->versions.assignments == seen_assignments_) return false;
  return std::any_of(watched_.begin(), watched_.end(), [&](const MoveUnderWay& m) {
    const Assignment* a = view->assignment(m.partition.topic, m.partition.partition);
    return a == nullptr || a->move_id != m.move_id;
  });
}

struct Balancer::Asked {
  explicit Asked(Env& env) : ended(env) {}
  std::optional<Result<RebalanceOutcome>> outcome;
  Event ended;
};

Task<Result<RebalanceOutcome>> Balancer::rebalance() {
  // All who ask before it begins share one.
  std::shared_ptr<Asked> asked = waiting_;
  if (!asked) {
    asked = waiting_ = std::make_shared<Asked>(env_);
    tasks_.spawn("pass", pass_asked(this, asked));  // which may begin at once
  }
  while (!asked->outcome && !tasks_.stopping()) {
    (void)co_await asked->ended.wait_for(options_.retry);
  }
  if (!asked->outcome) co_return Error(Errc::unavailable, "the node is shutting down");
  co_return *asked->outcome;
}

Task<void> Balancer::pass_asked(Balancer* self, std::shared_ptr<Asked> asked) {
  Mutex::Guard guard = co_await self->placement_.lock();
  self->waiting_.reset();
  asked->outcome.emplace(co_await self->pass());
  asked->ended.notify_all();
}

Task<Result<RebalanceOutcome>> Balancer::pass_alone() {
  Mutex::Guard guard = co_await placement_.lock();
  co_return co_await pass();
}

Task<Result<RebalanceOutcome>> Balancer::pass() {
  const std::uint64_t term = leadership_.term;
  if (!leads(term)) co_return Error(Errc::not_leader, "this node does not lead");
  NARAD_CO_TRY(co_await consensus_.barrier(options_.barrier_deadline));
  if (!leads(term)) co_return Error(Errc::not_leader, "this node leads no longer");
  // Whatever changes from here on asks for another pass.
  seen_members_ = consensus_.view()->versions.members;
  seen_assignments_ = consensus_.view()->versions.assignments;
  RebalanceOutcome out;
  co_await clear_targets(out);
  co_await set_targets(out);
  tell_of_blocks();
  co_return out;
}

Task<void> Balancer::clear_targets(RebalanceOutcome& out) {
  const Silence silence = [this](const std::string& node) {
    return leadership_.liveness.silence(node, env_.clock.mono());
  };
  std::vector<metastore::ClearTarget> clears = targets_to_clear(
      *consensus_.view(), consensus_.raft().configuration, silence, options_.targets);
  if (clears.empty()) co_return;
  for (metastore::ClearTarget& c : clears) c.now = env_.clock.wall_millis();
  std::vector<metastore::Command> entries(clears.begin(), clears.end());
  const Results results = co_await propose_all(std::move(entries));
  for (std::size_t i = 0; i < clears.size(); ++i) {
    if (!results[i] || !results[i]->done()) continue;
    const TopicPartition tp{clears[i].name, clears[i].partition};
    NARAD_LOG_WARN(env_.log, "move called off", {"partition", to_string(tp)},
                   {"to", clears[i].target_node}, {"move", clears[i].move_id},
                   {"why", clears[i].reason});
    out.cleared.push_back({tp, clears[i].target_node, clears[i].reason});
  }
}

Task<void> Balancer::set_targets(RebalanceOutcome& out) {
  const metastore::ViewPtr view = consensus_.view();
  MovePlan plan = plan_moves(
      *view, with_orders(options_.planner, *view, env_.clock.wall_millis(), options_.hold_aborted));
  for (metastore::SetTarget& m : plan.moves) m.now = env_.clock.wall_millis();
  out.wanted = plan.wanted;
  watched_ = moves_under_way(*view);
  std::vector<metastore::Command> entries(plan.moves.begin(), plan.moves.end());
  const Results results = co_await propose_all(std::move(entries));
  std::size_t given = 0;
  for (std::size_t i = 0; i < plan.moves.size(); ++i) {
    const metastore::SetTarget& move = plan.moves[i];
    if (!results[i] || !results[i]->done()) continue;
    const TopicPartition tp{move.name, move.partition};
    const Assignment& row = std::get<metastore::AssignmentRow>(results[i]->row).assignment;
    const bool at_once = row.move_id.value() == 0;
    given += at_once ? 1 : 0;
    out.moves.push_back(
        {tp, move.owner_node, move.target_node, move.target_disk, move.reason, at_once});
    if (at_once) continue;
    watched_.push_back({tp, row.move_id, move.owner_node, move.target_node, {}});
    NARAD_LOG_INFO(env_.log, "partition is to move", {"partition", to_string(tp)},
                   {"from", move.owner_node}, {"to", move.target_node}, {"reason", move.reason});
  }
  if (given > 0) {
    NARAD_LOG_INFO(env_.log, "partitions that were never used have changed hands",
                   {"partitions", given});
  }
  more_at_once_ = given > 0 && plan.given >= options_.planner.unused_max;
}

// ---- entries, together -----------------------------------------------------------------------

struct Balancer::Batch {
  Batch(Env& env, std::size_t n) : results(n), pending(n), ended(env) {}
  Results results;
  std::size_t pending;
  Event ended;
};

Task<void> Balancer::propose_one(Balancer* self, std::shared_ptr<Batch> batch, std::size_t i,
                                 metastore::Command entry) {
  auto result = co_await self->consensus_.propose(std::move(entry));
  if (!result || !result.value().done()) {
    NARAD_LOG_INFO(self->env_.log, "target not written now",
                   {"why", result ? result.value().text : std::string(result.error().text())});
  }
  if (result) batch->results[i] = std::move(result.value());
  --batch->pending;
  batch->ended.notify_all();
}

// They share syncs.
Task<Balancer::Results> Balancer::propose_all(std::vector<metastore::Command> entries) {
  auto batch = std::make_shared<Batch>(env_, entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    tasks_.spawn("targets", propose_one(this, batch, i, std::move(entries[i])));
  }
  while (batch->pending > 0 && !tasks_.stopping()) {
    (void)co_await batch->ended.wait_for(options_.retry);
  }
  co_return batch->results;
}

// ---- departures ------------------------------------------------------------------------------

DrainPicture Balancer::picture(const std::string& node) const {
  const RaftView raft = consensus_.raft();
  DrainPicture p;
  p.configuration = raft.configuration;
  p.leader = raft.leader;
  const auto at = leadership_.drains.find(node);
  if (at != leadership_.drains.end()) p.status = at->second;
  return p;
}

Task<void> Balancer::retire() {
  report_.drains.clear();
  std::string next;
  bool hand_over = false;
  {
    const metastore::ViewPtr view = consensus_.view();
    for (const std::string& id : draining_members(*view)) {
      DrainVerdict verdict = judge_drain(*view, id, picture(id), DrainAsked::during);
      tell_of_drain(verdict);
      if (next.empty() && may_leave(verdict)) next = id;
      hand_over = hand_over || (verdict.reasons.size() == 1 && verdict.has(DrainRule::is_leader));
      report_.drains.push_back(std::move(verdict));
    }
  }
  std::sort(report_.drains.begin(), report_.drains.end(),
            [](const auto& a, const auto& b) { return a.node < b.node; });
  // One at a time: the guards of the next count this one as gone.
  if (!next.empty()) {
    // A pass may hold the lock for long; the controller has more to do than wait for it.
    if (!std::exchange(letting_go_, true)) tasks_.spawn("let go", let_go_once(this, next));
  } else if (hand_over) {
    (void)co_await hand_over_leadership(env_, consensus_, options_.hand_over_deadline);
  }
}

Task<void> Balancer::let_go_once(Balancer* self, std::string id) {
  (void)co_await self->let_go(std::move(id));
  self->letting_go_ = false;
}

// The step from which there is no way back. Judged once more, behind a barrier, under the lock that
// keeps passes out; apply() refuses it if a partition names the member by then, or if its drain is
// another one.
Task<bool> Balancer::let_go(std::string id) {
  Mutex::Guard guard = co_await placement_.lock();
  const std::uint64_t term = leadership_.term;
  if (!leads(term)) co_return false;
  auto round = co_await consensus_.barrier(options_.barrier_deadline);
  if (!round || !leads(term)) co_return false;
  const metastore::ViewPtr view = consensus_.view();
  const metastore::Member* member = view->members.find(id);
  if (member == nullptr) co_return false;
  const DrainVerdict verdict = judge_drain(*view, id, picture(id), DrainAsked::during);
  if (!may_leave(verdict)) co_return false;
  metastore::Command entry = metastore::Leaving{id, member->drain_id, member->dead_mark};
  auto result = co_await consensus_.propose(std::move(entry));
  const bool done = result.has_value() && result.value().done();
  if (done) {
    NARAD_LOG_INFO(env_.log, "member is empty and leaves the cluster", {"node", id});
  } else {
    NARAD_LOG_INFO(env_.log, "member cannot leave now", {"node", id},
                   {"why", result ? result.value().text : std::string(result.error().text())});
  }
  co_return done;
}

// ---- what is said of it ----------------------------------------------------------------------

void Balancer::tell_of_blocks() {
  report_.blocked.clear();
  for (const MoveUnderWay& m : moves_under_way(*consensus_.view())) {
    if (m.blocks.empty()) continue;
    report_.blocked.push_back(m);
    for (const std::string_view block : m.blocks) {
      if (!told_.insert(cat("move ", m.move_id, " ", block)).second) continue;
      NARAD_LOG_ERROR(env_.log, "a move is blocked", {"partition", to_string(m.partition)},
                      {"from", m.from}, {"to", m.to}, {"move", m.move_id}, {"why", block});
    }
  }
}

// Each reason once per drain and term: what passes by itself quietly, the rest aloud.
void Balancer::tell_of_drain(const DrainVerdict& verdict) {
  const metastore::ViewPtr view = consensus_.view();
  const metastore::Member* member = view->members.find(verdict.node);
  for (const DrainReason& r : verdict.reasons) {
    if (!told_.insert(cat("drain ", member->drain_id, " ", to_string(r.rule))).second) continue;
    const bool passes = r.rule == DrainRule::owns_partitions || r.rule == DrainRule::is_leader ||
                        r.rule == DrainRule::ingress_backlog;
    if (r.hopeless || r.rule == DrainRule::move_target) {
      NARAD_LOG_ERROR(env_.log, "decommission is blocked", {"node", verdict.node},
                      {"rule", to_string(r.rule)}, {"why", r.detail});
    } else if (passes) {
      NARAD_LOG_INFO(env_.log, "decommission waits", {"node", verdict.node},
                     {"rule", to_string(r.rule)}, {"why", r.detail});
    } else {
      NARAD_LOG_WARN(env_.log, "decommission waits", {"node", verdict.node},
                     {"rule", to_string(r.rule)}, {"why", r.detail});
    }
  }
}

}  // namespace narad::cluster
