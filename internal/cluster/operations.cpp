#include "internal/cluster/operations.h"

#include <algorithm>
#include <utility>

#include "internal/cluster/safe_stop.h"
#include "internal/metastore/apply.h"
#include "internal/peer/server.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using metastore::Member;
using metastore::State;

std::uint64_t millis(Nanos d) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

Error no_member(const std::string& id) { return {Errc::not_found, cat("member not found: ", id)}; }

PartitionPlace place_of(const Assignment& a) {
  return {a.owner_node, a.owner_disk, a.target_node, a.target_disk, a.move_id};
}

// The partition's row, or not_found that says what is missing.
Result<Assignment> row_of(const State& state, const TopicPartition& tp) {
  if (!state.topics.contains(tp.topic)) return Error(Errc::not_found, "topic not found");
  const Assignment* a = state.assignment(tp.topic, tp.partition);
  if (a == nullptr) return Error(Errc::not_found, cat("no such partition: ", to_string(tp)));
  return *a;
}

// An order to decommission it asks for nothing new.
bool holds(const Member& m, bool wal_lost) {
  return m.leaving || (m.draining && (!wal_lost || m.wal_lost));
}

std::string standing_for_receiving(const Member& m) {
  if (m.status == metastore::MemberStatus::dead) return "dead";
  if (m.leaving) return "leaving";
  return m.draining ? "draining" : "";
}

std::string told(const State& state, const MovePlan& plan, const Explained& e,
                 const Assignment& a) {
  const auto share_of = [&](const std::string& node) {
    const auto at = std::find_if(plan.shares.begin(), plan.shares.end(),
                                 [&](const Share& s) { return s.node == node; });
    return at == plan.shares.end() ? Share{node, 0, 0} : *at;
  };
  const Share owner = share_of(a.owner_node);
  const Member* member = state.members.find(a.owner_node);
  const bool drains = member != nullptr && member->draining;
  const std::string why =
      drains ? cat(a.owner_node, " is being decommissioned")
             : cat(a.owner_node, " has ", owner.owned, " partitions and a share of ", owner.share);
  switch (e.verdict) {
    case Verdict::moves:
      return cat(why, ": the next pass sends it to ", e.to);
    case Verdict::waits:
      return cat(why, ": it is to go to ", e.to, " once fewer moves are under way");
    case Verdict::in_flight:
      return cat("it is on its way from ", a.owner_node, " to ", a.target_node, " (move ",
                 a.move_id, state.paused(a) ? "), and paused" : ")");
    case Verdict::at_home:
      return cat(why, ": it stays");
    case Verdict::pinned:
      return cat("an operator has moved it to ", a.owner_node, ": it stays until that node drains");
    case Verdict::held:
      return "an operator aborted its last move a short while ago: it stays for some minutes";
    case Verdict::dead_owner:
      return cat("its owner ", a.owner_node, " is dead, so nobody can copy it: start ",
                 a.owner_node, " again with its disks");
    case Verdict::disk_missing:
      return cat("it lies on disk ", a.owner_disk, ", which ", a.owner_node,
                 " does not have, so nobody can copy it: mount that disk and start ", a.owner_node,
                 " again");
    case Verdict::no_receiver:
      return cat(why,
                 ", but no member is there to take it: none is alive that neither drains nor "
                 "leaves");
    case Verdict::no_room:
      return cat(why,
                 ", but nobody who could take it has room: moves to their disks were given back a "
                 "short while ago. Free space there, or add a node");
    case Verdict::unassigned:
      return "nobody owns it yet: it is placed as soon as a member is alive that can take it";
  }
  return {};
}

http::Response respond(const Error& error) {
  const int status = error.code() == Errc::not_leader ? 421 : 503;
  return http::json_response(
      status,
      wire::encode(wire::MemberRefusal{
          error.code() == Errc::not_leader ? wire::Refused::not_leader : wire::Refused::unavailable,
          std::string(error.text()),
          {},
          RaftIndex(0),
          UnixMillis(0)}) +
          "\n");
}

}  // namespace

Operations::Operations(Env& env, Parts parts, OperationsOptions options)
    : env_(env),
      consensus_(parts.consensus),
      leadership_(parts.leadership),
      balancer_(parts.balancer),
      caller_(parts.caller),
      node_(std::move(parts.node)),
      own_status_(std::move(parts.own_status)),
      options_(std::move(options)) {}

void Operations::add_routes(peer::Server& server) {
  server.route(kLeaderFactsRoute, peer::Lane::control,
               [this](peer::Sender, http::Request) { return serve_facts(this); });
  peer::RouteOptions pass;
  pass.runs_to_its_end = true;
  server.route(
      kRebalanceRoute, peer::Lane::control,
      [this](peer::Sender, http::Request) { return serve_rebalance(this); }, pass);
}

// ---- the leader's node -----------------------------------------------------------------------

wire::LeaderFacts Operations::own_facts() const {
  wire::LeaderFacts facts;
  facts.leader = node_;
  facts.term = consensus_.raft().term;
  const Nanos now = env_.clock.mono();
  consensus_.view()->members.for_each([&](const std::shared_ptr<const Member>& m) {
    wire::MemberFacts f;
    f.id = m->id;
    f.silent_ms = millis(leadership_.liveness.silence(m->id, now));
    const auto drain = leadership_.drains.find(m->id);
    if (drain != leadership_.drains.end()) f.drain = drain->second;
    if (own_status_ && m->id == node_) f = {m->id, 0, own_status_()};
    facts.members.push_back(std::move(f));
  });
  return facts;
}

Task<Result<wire::LeaderFacts>> Operations::facts() {
  const RaftView raft = consensus_.raft();
  if (raft.leads) co_return own_facts();
  if (raft.leader.empty() || raft.leader == node_ || caller_ == nullptr) {
    co_return Error(Errc::unavailable, "no leader of the metadata is known at the moment");
  }
  peer::Call call(http::Method::get, "/peer/v1/leader/facts");
  auto response = co_await caller_->call(raft.leader, peer::Lane::control, std::move(call),
                                         options_.ask_deadline);
  if (!response) {
    co_return Error(Errc::unavailable,
                    cat("leader ", raft.leader, " does not answer: ", response.error().text()));
  }
  if (response.value().status != 200) {
    co_return Error(
        Errc::unavailable,
        cat("leader ", raft.leader, " answered ",
            wire::decode_refusal(response.value().status, response.value().body).error));
  }
  auto facts = wire::decode_leader_facts(response.value().body);
  if (!facts) co_return Error(Errc::unavailable, facts.error().text());
  co_return std::move(facts.value());
}

Task<http::Response> Operations::serve_facts(Operations* self) {
  if (!self->consensus_.raft().leads) {
    co_return respond(Error(Errc::not_leader, cat(self->node_, " does not lead")));
  }
  co_return http::json_response(200, wire::encode(self->own_facts()) + "\n");
}

Task<http::Response> Operations::serve_rebalance(Operations* self) {
  if (self->balancer_ == nullptr) {
    co_return respond(Error(Errc::not_leader, cat(self->node_, " does not lead")));
  }
  auto outcome = co_await self->balancer_->rebalance();
  if (!outcome) co_return respond(outcome.error());
  co_return http::json_response(200, wire::encode(outcome.value()) + "\n");
}

// ---- common ----------------------------------------------------------------------------------

// What everybody was told before this call, everywhere.
Task<Result<metastore::ViewPtr>> Operations::fresh_view() {
  auto round = co_await consensus_.barrier(options_.barrier_deadline);
  if (!round) {
    co_return Error(Errc::unavailable,
                    cat("the metadata cannot be read now: ", round.error().text()));
  }
  co_return consensus_.view();
}

DrainPicture Operations::picture(const std::string& node, const wire::LeaderFacts* facts) const {
  const RaftView raft = consensus_.raft();
  DrainPicture p;
  p.configuration = raft.configuration;
  p.leader = raft.leader;
  p.leader_told = facts != nullptr;
  const wire::MemberFacts* f = facts == nullptr ? nullptr : facts->find(node);
  if (f != nullptr) p.status = f->drain;
  return p;
}

// Its outcome, or an error that says whether it may have happened.
Task<Result<metastore::CommandResult>> Operations::propose(metastore::Command command) {
  auto result = co_await consensus_.propose(std::move(command));
  if (result) co_return result;
  if (result.error().code() != Errc::unknown_outcome) co_return result.error();
  co_return Error(Errc::unknown_outcome, cat("it may have happened: look before you try again (",
                                             result.error().text(), ")"));
}

// ---- members ---------------------------------------------------------------------------------

Task<std::vector<DrainVerdict>> Operations::drains() {
  std::vector<DrainVerdict> out;
  if (draining_members(*consensus_.view()).empty()) co_return out;
  const Result<wire::LeaderFacts> facts = co_await this->facts();
  const metastore::ViewPtr view = consensus_.view();
  for (const std::string& id : draining_members(*view)) {
    const DrainPicture seen = picture(id, facts ? &facts.value() : nullptr);
    out.push_back(judge_drain(*view, id, seen, DrainAsked::during));
  }
  std::sort(out.begin(), out.end(),
            [](const DrainVerdict& a, const DrainVerdict& b) { return a.node < b.node; });
  co_return out;
}

Task<Result<DrainVerdict>> Operations::verdict(std::string node, bool wal_lost) {
  NARAD_CO_TRY(const metastore::ViewPtr before, co_await fresh_view());
  if (!before->members.contains(node)) co_return no_member(node);
  NARAD_CO_TRY(wire::LeaderFacts known, co_await facts());
  const metastore::ViewPtr view = consensus_.view();
  const Member* member = view->members.find(node);
  if (member == nullptr) co_return no_member(node);
  const DrainAsked asked = member->draining ? DrainAsked::during : DrainAsked::before;
  DrainVerdict verdict = judge_drain(*view, node, picture(node, &known), asked, wal_lost);
  if (holds(*member, wal_lost) || (!member->draining && verdict.hopeless())) co_return verdict;
  State after = *view;  // what its entry would come to (DEC-18)
  const auto entered =
      metastore::apply(after, after.applied.next(), metastore::SetDraining{node, true, wal_lost});
  if (!entered.done()) co_return metastore::to_error(entered);
  co_return verdict;
}

Task<Result<DrainOutcome>> Operations::decommission(std::string node, bool wal_lost) {
  NARAD_CO_TRY(const metastore::ViewPtr view, co_await fresh_view());
  DrainOutcome out;
  out.verdict.node = node;
  const Member* member = view->members.find(node);
  if (member == nullptr) {
    if (!view->tombstones.contains(node)) co_return no_member(node);
    out.accepted = out.already = out.removed = true;
    co_return out;
  }
  out.verdict = judge_drain(*view, node, picture(node, nullptr), DrainAsked::before, wal_lost);
  out.already = member->draining;
  if (holds(*member, wal_lost)) {
    out.accepted = true;
    co_return out;
  }
  if (!member->draining && out.verdict.hopeless()) co_return out;
  metastore::Command entry = metastore::SetDraining{node, true, wal_lost};
  NARAD_CO_TRY(auto result, co_await propose(std::move(entry)));
  if (!result.done()) co_return metastore::to_error(result);
  out.accepted = true;
  out.verdict.draining = true;
  co_return out;
}

Task<Result<>> Operations::cancel(std::string node) {
  NARAD_CO_TRY(const metastore::ViewPtr view, co_await fresh_view());
  const Member* member = view->members.find(node);
  if (member == nullptr && view->tombstones.contains(node)) {
    co_return Error(Errc::conflict, cat("member ", node, " has left the cluster already"));
  }
  if (member == nullptr) co_return no_member(node);
  if (!member->draining) co_return ok();
  const RaftIndex drain_id = member->drain_id;
  metastore::Command entry = metastore::SetDraining{node, false};
  NARAD_CO_TRY(auto result, co_await propose(std::move(entry)));
  if (!result.done()) co_return metastore::to_error(result);
  co_await clear_moves_of(std::move(node), drain_id);
  co_return ok();
}

// The moves away from it that began under that drain. One that stays under way (its flip won, or no
// leader was there) does no harm: the next passes even out what it leaves.
Task<void> Operations::clear_moves_of(std::string node, RaftIndex drain_id) {
  const metastore::ViewPtr view = consensus_.view();
  std::vector<metastore::ClearTarget> clears;
  view->topics.for_each([&](const metastore::TopicRowPtr& row) {
    for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      if (a.owner_node != node || a.target_node.empty() || a.move_id < drain_id) continue;
      const auto* m = view->moves.find(metastore::move_key(a.move_id));
      if (m == nullptr || m->reason != kDraining) continue;  // an operator's own
      clears.push_back({row->topic.name, a.incarnation, PartitionId(p), a.target_node, a.move_id,
                        "drain cancelled", env_.clock.wall_millis()});
    }
  });
  for (metastore::ClearTarget& clear : clears) {
    metastore::Command entry = std::move(clear);
    auto result = co_await propose(std::move(entry));
    if (!result) co_return;
  }
}

Task<Result<StopVerdict>> Operations::safe_to_stop(std::string node) {
  NARAD_CO_TRY(const metastore::ViewPtr before, co_await fresh_view());
  if (!before->members.contains(node)) co_return no_member(node);
  NARAD_CO_TRY(const wire::LeaderFacts known, co_await facts());
  const metastore::ViewPtr view = consensus_.view();
  if (!view->members.contains(node)) co_return no_member(node);
  co_return judge_stop(*view, node, consensus_.raft().configuration, known);
}

// ---- plans -----------------------------------------------------------------------------------

Task<Result<RebalanceOutcome>> Operations::rebalance(bool dry_run) {
  if (!dry_run) {
    const RaftView raft = consensus_.raft();
    if (raft.leads && balancer_ != nullptr) co_return co_await balancer_->rebalance();
    if (!raft.leads && caller_ != nullptr && !raft.leader.empty() && raft.leader != node_) {
      peer::Call call(http::Method::post, "/peer/v1/rebalance");
      NARAD_CO_TRY(auto response, co_await caller_->call(raft.leader, peer::Lane::control,
                                                         std::move(call), options_.pass_deadline));
      if (response.status == 200) co_return wire::decode_rebalance_outcome(response.body);
      co_return Error(Errc::unavailable,
                      cat("leader ", raft.leader, " answered: ",
                          wire::decode_refusal(response.status, response.body).error));
    }
    if (!raft.leads) co_return Error(Errc::unavailable, "no leader of the metadata is known now");
    // A lone node has nowhere to move anything to: what it would do is what it does.
  }
  NARAD_CO_TRY(const wire::LeaderFacts known, co_await facts());
  NARAD_CO_TRY(const metastore::ViewPtr view, co_await fresh_view());
  const Silence silence = [&known](const std::string& node) -> Nanos {
    const wire::MemberFacts* f = known.find(node);
    return std::chrono::milliseconds(f == nullptr ? 0 : f->silent_ms);
  };
  RebalanceOutcome out;
  State after = *view;  // as it would be once those targets are taken back
  const auto clears =
      targets_to_clear(after, consensus_.raft().configuration, silence, options_.targets);
  for (const metastore::ClearTarget& c : clears) {
    (void)metastore::apply(after, after.applied.next(), c);
    out.cleared.push_back({{c.name, c.partition}, c.target_node, c.reason});
  }
  const MovePlan plan = plan_moves(
      after, with_orders(options_.planner, after, env_.clock.wall_millis(), options_.hold_aborted));
  out.wanted = plan.wanted;
  for (const metastore::SetTarget& m : plan.moves) {
    const Assignment* a = after.assignment(m.name, m.partition);
    out.moves.push_back({{m.name, m.partition},
                         m.owner_node,
                         m.target_node,
                         m.target_disk,
                         m.reason,
                         a != nullptr && !a->used});
  }
  co_return out;
}

Task<Result<Explanation>> Operations::explain(TopicPartition partition) {
  NARAD_CO_TRY(const metastore::ViewPtr view, co_await fresh_view());
  NARAD_CO_TRY(const Assignment row, row_of(*view, partition));
  const MovePlan plan = plan_moves(
      *view, with_orders(options_.planner, *view, env_.clock.wall_millis(), options_.hold_aborted));
  const auto e = std::find_if(plan.explained.begin(), plan.explained.end(),
                              [&](const Explained& x) { return x.partition == partition; });
  Explanation out;
  out.partition = partition;
  out.place = place_of(row);
  out.used = row.used;
  out.verdict = to_string(e->verdict);
  out.text = told(*view, plan, *e, row);
  out.would_go_to = e->to;
  view->members.for_each([&](const std::shared_ptr<const Member>& m) {
    ReceiverShare r;
    r.node = m->id;
    r.standing = standing_for_receiving(*m);
    for (const Share& s : plan.shares) {
      if (s.node != m->id) continue;
      r.owned = s.owned;
      r.share = s.share;
    }
    out.members.push_back(std::move(r));
  });
  co_return out;
}

}  // namespace narad::cluster
