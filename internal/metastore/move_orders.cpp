#include "internal/metastore/move_orders.h"

#include <utility>

#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

constexpr std::string_view kLook = "narad cluster moves shows what is";

Error to_error(const OrderRefusal& refusal) { return Error(refusal.code, refusal.detail); }

// What this node shows after it is what the leader has.
Task<Result<void>> catch_up(Proposer& proposer) {
  auto confirmed = co_await proposer.barrier(kOrderBarrier);
  if (confirmed) co_return ok();
  co_return Error(Errc::unavailable,
                  cat("no leader confirms how things stand, and nothing was changed: ",
                      confirmed.error().text()));
}

Assignment row_of(const State& state, const TopicPartition& partition) {
  const Assignment* row = state.assignment(partition.topic, partition.partition);
  return row != nullptr ? *row : Assignment{};
}

// ---- start

StartAnswer as_judged(StartVerdict verdict) {
  StartAnswer answer;
  answer.refusal = std::move(verdict.refusal);
  answer.before = answer.now = verdict.row;
  if (verdict.fate == StartFate::there) answer.outcome = StartOutcome::there;
  if (verdict.fate == StartFate::on_its_way) {
    answer.outcome = StartOutcome::on_its_way;
    answer.move_id = verdict.row.move_id;
  }
  return answer;
}

StartAnswer begun(const Assignment& before, const Assignment& now) {
  StartAnswer answer;
  const bool moves = !now.target_node.empty();
  answer.outcome = moves || before.used ? StartOutcome::started : StartOutcome::given;
  answer.move_id = moves ? now.move_id : now.owned_by_move;
  answer.before = before;
  answer.now = now;
  return answer;
}

// Somebody was faster. What they did may be what was asked for.
StartAnswer overtaken(const State& state, const MoveWish& wish, const Assignment& before) {
  StartVerdict verdict = judge_start(state, wish);
  const bool other_owner = verdict.row.owner_node != before.owner_node;
  const bool again = verdict.fate == StartFate::start;
  StartAnswer answer = as_judged(std::move(verdict));
  if (!again) return answer;
  const std::string target = answer.now.target_node.empty()
                                 ? std::string("and does not move")
                                 : cat("and moves to ", answer.now.target_node);
  answer.refusal = {
      Errc::conflict, other_owner ? "owner_changed" : "move_changed",
      cat(to_string(wish.partition), " was changed while the order was under way: it is on ",
          answer.now.owner_node, ' ', target, ". Give the order again if it is to go to ",
          wish.to)};
  return answer;
}

// The order may have been applied, or may yet be. What it was to bring about may be there.
Task<Result<StartAnswer>> resolve_start(Proposer& proposer, MoveWish wish, Assignment before,
                                        Error unknown) {
  auto confirmed = co_await proposer.barrier(kOrderBarrier);
  if (confirmed) {
    const StartVerdict verdict = judge_start(*proposer.view(), wish);
    const bool held = verdict.fate == StartFate::there || verdict.fate == StartFate::on_its_way;
    if (held && verdict.row != before) co_return begun(before, verdict.row);
  }
  co_return unknown.with_context(
      cat("whether the move of ", to_string(wish.partition), " was started is not known; ", kLook));
}

// ---- abort

AbortAnswer not_aborted(std::string rule, std::string detail, const Assignment& read,
                        const Assignment& now) {
  AbortAnswer answer;
  answer.refusal = {Errc::conflict, std::move(rule), std::move(detail)};
  answer.read = read;
  answer.now = now;
  return answer;
}

// The answer that holds for good, or nothing: the move is under way, and what was proposed may
// still end it.
std::optional<Result<AbortAnswer>> read_back(const State& state, const TopicPartition& partition,
                                             const Assignment& read) {
  const Assignment now = row_of(state, partition);
  const std::string name = to_string(partition);
  switch (judge_aborted(state, partition, read)) {
    case AbortFate::aborted: {
      AbortAnswer answer;
      answer.aborted = true;
      answer.read = read;
      answer.now = now;
      return answer;
    }
    case AbortFate::moved:
      return not_aborted("already_moved",
                         cat("the move of ", name, " to ", read.target_node,
                             " was not aborted: its owner is no longer what it was, but ",
                             now.owner_node, " since move ", now.owned_by_move),
                         read, now);
    case AbortFate::set_again:
      return not_aborted("set_again",
                         cat("move ", read.move_id, " of ", name, " is over, and move ",
                             now.move_id, " goes to ", now.target_node, " again"),
                         read, now);
    case AbortFate::gone:
      return Result<AbortAnswer>(Error(
          Errc::not_found, cat("topic ", partition.topic,
                               " was deleted meanwhile, and the move of ", name, " with it")));
    case AbortFate::under_way:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Task<Result<StartAnswer>> start_move(Env& env, Proposer& proposer, MoveWish wish) {
  NARAD_CO_TRY(co_await catch_up(proposer));
  StartVerdict verdict = judge_start(*proposer.view(), wish);
  if (verdict.refusal.code == Errc::not_found) co_return to_error(verdict.refusal);
  if (verdict.fate != StartFate::start) co_return as_judged(std::move(verdict));
  verdict.order.now = env.clock.wall_millis();
  const Assignment before = verdict.row;
  Command command = std::move(verdict.order);
  auto result = co_await proposer.propose(std::move(command));
  if (!result && result.error().code() == Errc::unknown_outcome) {
    co_return co_await resolve_start(proposer, std::move(wish), before, result.error());
  }
  if (!result) co_return result.error();
  if (result.value().done()) {
    co_return begun(before, std::get<AssignmentRow>(result.value().row).assignment);
  }
  const ResultCode code = result.value().code;
  if (code != ResultCode::conflict && code != ResultCode::not_found) {
    co_return metastore::to_error(result.value());
  }
  StartAnswer answer = overtaken(*proposer.view(), wish, before);
  if (answer.refusal.code == Errc::not_found) co_return to_error(answer.refusal);
  co_return answer;
}

Task<Result<AbortAnswer>> abort_move(Env& env, Proposer& proposer, AbortWish wish,
                                     std::string why) {
  NARAD_CO_TRY(co_await catch_up(proposer));
  AbortVerdict verdict = judge_abort(*proposer.view(), wish);
  if (verdict.refusal && verdict.refusal->code == Errc::not_found) {
    co_return to_error(*verdict.refusal);
  }
  const Assignment read = verdict.row;
  if (verdict.refusal) {
    co_return not_aborted(verdict.refusal->rule, verdict.refusal->detail, read, read);
  }
  verdict.order.reason = std::move(why);
  verdict.order.now = env.clock.wall_millis();
  Command command = std::move(verdict.order);
  auto result = co_await proposer.propose(std::move(command));
  // Whatever came of the proposal: the leader says how things stand (ABT-6).
  const std::string name = cat("move ", read.move_id, " of ", to_string(wish.partition));
  auto confirmed = co_await proposer.barrier(kOrderBarrier);
  if (!confirmed) {
    co_return Error(Errc::unknown_outcome,
                    cat("whether ", name, " was aborted could not be read back (",
                        confirmed.error().text(), "); ", kLook));
  }
  if (auto answer = read_back(*proposer.view(), wish.partition, read)) co_return std::move(*answer);
  if (!result && result.error().code() == Errc::unknown_outcome) {
    co_return result.error().with_context(
        cat("whether ", name, " will be aborted is not known; ", kLook));
  }
  if (!result) co_return result.error().with_context(cat(name, " was not aborted"));
  // Only an order that this build cannot give is refused while the move is what it was.
  co_return metastore::to_error(result.value());
}

Task<Result<RateAnswer>> set_move_rate(Proposer& proposer, std::optional<std::uint64_t> rate) {
  NARAD_CO_TRY(co_await catch_up(proposer));
  RateAnswer answer;
  answer.changed = proposer.view()->move_rate != rate;
  answer.now = rate;
  if (!answer.changed) co_return answer;
  Command command = SetMoveRate{rate};
  auto result = co_await proposer.propose(std::move(command));
  if (!result && result.error().code() == Errc::unknown_outcome) {
    // It may have been applied; then it shows.
    const auto confirmed = co_await proposer.barrier(kOrderBarrier);
    if (confirmed && proposer.view()->move_rate == rate) co_return answer;
    co_return result.error().with_context(
        "whether the throttle was changed is not known; narad cluster throttle shows what is");
  }
  if (!result) co_return result.error();
  if (!result.value().done()) co_return metastore::to_error(result.value());
  co_return answer;
}

namespace {

// By the state of now; `before` is the move that was judged, if it was one.
PauseAnswer as_it_is(const State& state, const PauseWish& wish, const PauseVerdict& before) {
  PauseVerdict verdict = judge_pause(state, wish);
  PauseAnswer answer;
  answer.now = verdict.row;
  answer.refusal = std::move(verdict.refusal);
  if (answer.refusal || verdict.row.move_id == before.row.move_id) return answer;
  answer.refusal = {Errc::conflict, "move_changed",
                    cat("another move of ", to_string(*wish.partition), " began meanwhile: move ",
                        verdict.row.move_id, " to ", verdict.row.target_node)};
  return answer;
}

}  // namespace

Task<Result<PauseAnswer>> pause_moves(Proposer& proposer, PauseWish wish) {
  NARAD_CO_TRY(co_await catch_up(proposer));
  const PauseVerdict verdict = judge_pause(*proposer.view(), wish);
  if (verdict.refusal && verdict.refusal->code == Errc::not_found) {
    co_return to_error(*verdict.refusal);
  }
  PauseAnswer answer;
  answer.now = verdict.row;
  answer.refusal = verdict.refusal;
  if (answer.refusal || verdict.holds) co_return answer;
  Command command = verdict.order;
  auto result = co_await proposer.propose(std::move(command));
  if (!result && result.error().code() == Errc::unknown_outcome) {
    // It may have been applied; then it shows.
    const auto confirmed = co_await proposer.barrier(kOrderBarrier);
    const PauseVerdict seen = judge_pause(*proposer.view(), wish);
    const bool same = !seen.refusal && seen.row.move_id == verdict.row.move_id;
    if (!confirmed || !same || !seen.holds) {
      co_return result.error().with_context(cat("whether that was done is not known; ", kLook));
    }
  } else if (!result) {
    co_return result.error();
  }
  answer = as_it_is(*proposer.view(), wish, verdict);
  if (answer.refusal && answer.refusal->code == Errc::not_found) {
    co_return to_error(*answer.refusal);
  }
  if (answer.refusal) co_return answer;
  if (result && !result.value().done()) co_return metastore::to_error(result.value());
  answer.changed = true;
  co_return answer;
}

}  // namespace narad::metastore
