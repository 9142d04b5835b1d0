#include "internal/moves/mover.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad::moves {
namespace {

std::uint64_t millis(Nanos d) {
  return d <= Nanos(0) ? 0
                       : static_cast<std::uint64_t>(
                             std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

}  // namespace

std::string_view to_string(Do what) {
  switch (what) {
    case Do::look:
      return "look";
    case Do::settle:
      return "settle";
    case Do::resolve:
      return "resolve";
    case Do::pass:
      return "pass";
    case Do::prepare:
      return "prepare";
    case Do::freeze:
      return "freeze";
    case Do::verify:
      return "verify";
    case Do::fence:
      return "fence";
    case Do::start_over:
      return "start_over";
    case Do::finish:
      return "finish";
    case Do::install:
      return "install";
    case Do::flip:
      return "flip";
    case Do::silence:
      return "silence";
    case Do::promote:
      return "promote";
    case Do::let_go:
      return "let_go";
    case Do::take_off:
      return "take_off";
    case Do::wait:
      return "wait";
    case Do::give_back:
      return "give_back";
    case Do::dispose:
      return "dispose";
    case Do::done:
      return "done";
  }
  NARAD_ASSERT(false, "unknown step");
}

RowSeen row_seen(const metastore::State& state, const MoveKey& key) {
  RowSeen seen;
  const Assignment* row = state.assignment(key.partition.topic, key.partition.partition);
  if (row != nullptr && row->incarnation == key.incarnation) {
    seen.row = *row;
    seen.paused = state.paused(*row);
  }
  if (const metastore::Member* source = state.members.find(key.source)) {
    seen.source_is_member = true;
    seen.source_dead = source->status == metastore::MemberStatus::dead;
    seen.dead_mark = source->dead_mark;
  }
  return seen;
}

FlipFate judge_flip(const MoveKey& key, const RowSeen& seen, const Proposal& proposal) {
  // Whatever lies at the path went with its topic's directory.
  if (!seen.row) return FlipFate::elsewhere;
  const Assignment& row = *seen.row;
  if (row.owned_by_move == key.move_id && row.owner_node == key.self) return FlipFate::done;
  // A later move has flipped. Ours may have before it; then the copy was this node's own for a
  // while, and it is for the sweep to say what becomes of it.
  if (row.owned_by_move > key.move_id || row.owned_by_move == key.move_id) {
    return FlipFate::elsewhere;
  }
  // No flip of a move as late as ours has applied. Ours names a move and an epoch (or a dead mark)
  // that the row must show, and neither ever comes again.
  if (row.move_id != key.move_id) return FlipFate::ended;
  if (proposal.forced) {
    const bool dead = !seen.source_is_member || seen.source_dead;
    const RaftIndex mark = seen.source_is_member ? seen.dead_mark : RaftIndex(0);
    const bool same = !proposal.dead_mark || *proposal.dead_mark == mark;
    return dead && same ? FlipFate::open : FlipFate::lapsed;
  }
  const bool armed = row.freeze_armed && row.freeze_epoch == proposal.epoch;
  return armed ? FlipFate::open : FlipFate::lapsed;
}

Mover::Mover(RunnerTiming timing, MoveKey key, Nanos now)
    : timing_(std::move(timing)), key_(std::move(key)), began_(now) {
  at_path_ = true;  // for all it knows
}

Step Mover::next(Nanos now) {
  Step step;
  step.what = Do::done;
  if (flipped_ || stage_ == Do::done) return step;
  if (over_ && stage_ != Do::dispose) {
    const bool finds_out = stage_ == Do::look || stage_ == Do::settle || stage_ == Do::resolve ||
                           stage_ == Do::take_off;
    if (!at_path_) {
      // The entry that ended the move ended its freeze.
      end_freeze(now);
      stage_ = Do::dispose;
      wait_until_ = Nanos(0);
    } else if (!finds_out) {
      stage_ = proposal_ ? Do::resolve : Do::look;
      wait_until_ = Nanos(0);
    }
  }
  const bool unpromotable = forced_ && !at_path_ && (!dead_ || dead_mark_ != forced_mark_);
  if (unpromotable && stage_ != Do::look) begin_attempt(now);  // the source came back
  if (rest(now)) {
    step.what = Do::wait;
    step.until = Nanos::max();
    return step;
  }
  if (stage_ == Do::wait || now < wait_until_) {
    step.what = Do::wait;
    step.until = stage_ == Do::wait ? Nanos::max() : wait_until_;
    return step;
  }
  step.what = stage_;
  step.frozen = stage_ == Do::pass && draining_ && round_passes_ == 0;
  if (freeze_) step.epoch = freeze_->epoch;
  if (forced_) step.epoch = 0;
  if (stage_ == Do::flip || (stage_ == Do::let_go && proposal_)) step.epoch = proposal_->epoch;
  if (stage_ == Do::promote) step.dead_mark = *proposal_->dead_mark;
  if (stage_ == Do::install) at_path_ = true;
  return step;
}

void Mover::on_view(Nanos now, const RowSeen& seen) {
  if (seen.row && seen.row->owned_by_move == key_.move_id && seen.row->owner_node == key_.self) {
    end_freeze(now);
    flipped_ = true;
    return;
  }
  paused_ = seen.paused;
  over_ = !seen.row || seen.row->move_id != key_.move_id || seen.row->target_node != key_.self;
  const bool dead = !seen.source_is_member || seen.source_dead;
  const RaftIndex mark = seen.source_is_member ? seen.dead_mark : RaftIndex(0);
  if (dead && (!dead_ || mark != dead_mark_)) dead_since_ = now;  // SRC-4
  if (!dead) {
    behind_ = false;
    behind_noted_.reset();
    unverifiable_without_source_ = false;
  }
  dead_ = dead;
  dead_mark_ = mark;
}

// True while there is nothing to do but to wait for the end of a pause. A freeze is let go first;
// what is staged stays, and the move is taken up at the look, or at the throwing away that was due.
bool Mover::rest(Nanos now) {
  resting_ = false;
  if (!must_rest() || stage_ == Do::let_go || stage_ == Do::dispose) return false;
  checks_hold_ = false;
  if (freeze_) {
    stage_ = Do::let_go;
    after_let_go_ = Do::look;
    resume_at_ = now;
    wait_until_ = Nanos(0);
    return false;
  }
  if (stage_ != Do::start_over && stage_ != Do::wait) begin_attempt(now);
  forced_tried_ = false;
  resting_ = true;
  return true;
}

// ---- attempts
// ------------------------------------------------------------------------------------

void Mover::begin_attempt(Nanos now) {
  stage_ = Do::look;
  wait_until_ = now;
  forced_ = false;
}

void Mover::retry_from(Do what, Nanos now, Nanos jitter, std::string why) {
  last_error_ = std::move(why);
  stage_ = what;
  wait_until_ = now + timing_.retry + jitter;
}

// The attempt failed: the freeze is not held while nothing comes of it.
void Mover::pause(Nanos now, Nanos jitter, std::string why) {
  last_error_ = std::move(why);
  forced_ = false;
  forced_tried_ = false;
  const Nanos resume = now + timing_.retry + jitter;
  if (freeze_) {
    stage_ = Do::let_go;
    after_let_go_ = Do::look;
    resume_at_ = resume;
    wait_until_ = Nanos(0);
    return;
  }
  stage_ = Do::look;
  wait_until_ = resume;
}

void Mover::end_freeze(Nanos now) {
  if (freeze_) last_frozen_ = now - freeze_->since;
  freeze_.reset();
  draining_ = false;
}

void Mover::on_let_go(Nanos now) {
  end_freeze(now);
  stage_ = after_let_go_;
  wait_until_ = stage_ == Do::resolve ? now + timing_.between_passes : resume_at_;
  if (stage_ == Do::wait || stage_ == Do::start_over) wait_until_ = Nanos(0);
}

void Mover::on_looked(Nanos now, std::optional<Found> installed) {
  const bool first = std::exchange(first_look_, false);
  if (installed) {
    at_path_ = true;
    if (!proposal_) {
      proposal_ = Proposal{installed->forced, installed->epoch, std::nullopt};
      first_proposal_ = now;
      // What an earlier process proposed, and when, nobody knows.
      if (first) last_unknown_ = now;
    }
    stage_ = Do::settle;
    return;
  }
  at_path_ = false;
  proposal_.reset();
  last_unknown_.reset();
  proposing_stopped_ = false;
  if (blocked_unverifiable_) {
    stage_ = Do::wait;
    return;
  }
  if (promotable(now) && !forced_tried_) {
    stage_ = Do::silence;
    return;
  }
  start_copying();
}

void Mover::start_copying() {
  ++attempts_;
  stage_ = Do::pass;
  wait_until_ = Nanos(0);
  forced_ = false;
  draining_ = false;
  converged_ = false;
  round_passes_ = stale_passes_ = 0;
  best_pass_.reset();
}

void Mover::on_settled(Nanos now) {
  stage_ = Do::resolve;
  wait_until_ = now;
}

// ---- copying and draining
// --------------------------------------------------------------------------

void Mover::on_pass(Nanos now, std::uint64_t bytes, Offset hwm) {
  ++passes_total_;
  ++round_passes_;
  blocked_went_back_ = false;
  waits_for_source_ = false;
  if (draining_) {
    on_progress(now);
    after_drain_pass(now, bytes, hwm);
  } else {
    after_copy_pass(now, bytes);
  }
}

void Mover::on_broken_off(Nanos now) {
  if (!freeze_) begin_attempt(now);
}

// G15: the first pass copies what was there, the later ones what has come since.
void Mover::after_copy_pass(Nanos now, std::uint64_t bytes) {
  stage_ = Do::prepare;
  if (round_passes_ >= 2) {
    if (bytes <= timing_.lag_bytes) {
      converged_ = true;
      return;
    }
    const bool progress = !best_pass_ || bytes < *best_pass_;
    if (progress) best_pass_ = bytes;
    stale_passes_ = progress ? 0 : stale_passes_ + 1;
  }
  if (round_passes_ >= timing_.passes_max || stale_passes_ >= timing_.passes_without_progress_max) {
    note(Note::not_converged);
    return;
  }
  stage_ = Do::pass;
  wait_until_ = now + timing_.between_passes;
}

// CPY-8: one quiet pass may have listed before an append whose HWM it saw.
void Mover::after_drain_pass(Nanos now, std::uint64_t bytes, Offset hwm) {
  if (freeze_gone()) {
    freeze_again(now, Nanos(0), "the freeze ended during the drain");
    return;
  }
  const bool quiet = bytes == 0;
  const bool ended = quiet && last_pass_quiet_ && hwm == last_hwm_;
  last_pass_quiet_ = quiet;
  last_hwm_ = hwm;
  if (ended) {
    stage_ = Do::verify;
    drain_ended_ = now;
    return;
  }
  stage_ = Do::pass;
  if (round_passes_ > timing_.passes_max) {
    pause(now, Nanos(0), "the drain did not come to an end: the source goes on changing");
  }
}

void Mover::on_went_back(Nanos now, Nanos jitter, std::string why) {
  if (!blocked_went_back_) note(Note::went_back);
  blocked_went_back_ = true;
  pause(now, jitter, std::move(why));
}

void Mover::on_no_room(Nanos now, Nanos jitter, std::string why) {
  if (dead_ || proposal_) {
    on_failed(now, jitter, std::move(why));
    return;
  }
  if (!std::exchange(no_room_noted_, true)) note(Note::no_room);
  last_error_ = std::move(why);
  stage_ = Do::give_back;
  wait_until_ = Nanos(0);
}

void Mover::on_given_back(Nanos now, Nanos jitter) { pause(now, jitter, last_error_); }

void Mover::on_prepared(Nanos now) {
  prepare_noted_ = false;
  stage_ = forced_ ? Do::verify : Do::freeze;
  if (!forced_ && copy_ended_ == Nanos(0)) copy_ended_ = now;
}

void Mover::on_frozen(Nanos now, std::uint64_t epoch, bool token, Nanos ttl) {
  if (!token) note(Note::no_token);
  freeze_ = Freeze{epoch, token, ttl > Nanos(0) ? ttl : timing_.freeze_ttl, now, now, now};
  draining_ = true;
  round_passes_ = 0;
  last_pass_quiet_ = false;
  drain_began_ = now;
  stage_ = Do::pass;
  wait_until_ = Nanos(0);
}

// FEN-6.
void Mover::freeze_again(Nanos now, Nanos jitter, std::string why) {
  const bool hung = freeze_ && freeze_->hung;
  ++fences_refused_;
  if (hung || fences_refused_ > 1) {
    pause(now, jitter, std::move(why));
    return;
  }
  last_error_ = std::move(why);
  end_freeze(now);
  stage_ = Do::freeze;
}

// ---- verifying
// ---------------------------------------------------------------------------------------

void Mover::on_verified(Nanos now, Nanos jitter, std::string problem, Offset end,
                        std::optional<Offset> highest_hwm) {
  copy_end_ = end;
  verify_ended_ = now;
  on_progress(now);
  if (forced_) {
    judge_without_source(std::move(problem), end, highest_hwm);
    return;
  }
  if (freeze_gone()) {
    freeze_again(now, jitter, "the freeze ended during the verify");  // VER-9
    return;
  }
  if (problem.empty()) {
    stage_ = Do::finish;
    return;
  }
  last_error_ = std::move(problem);
  checks_hold_ = true;
  stage_ = Do::fence;
  if (!freeze_->token) count_verify_failure(now);
}

// SRC-8 to SRC-11.
void Mover::judge_without_source(std::string problem, Offset end,
                                 std::optional<Offset> highest_hwm) {
  if (problem.empty() && highest_hwm && end >= *highest_hwm) {
    behind_ = unverifiable_without_source_ = false;
    stage_ = Do::finish;
    return;
  }
  const bool reaches = highest_hwm && end >= *highest_hwm;
  behind_ = !reaches;
  unverifiable_without_source_ = reaches;
  if (behind_noted_ != dead_mark_) note(reaches ? Note::unverifiable : Note::copy_behind);
  behind_noted_ = dead_mark_;
  last_error_ = problem.empty() ? std::string("the source was never reached") : std::move(problem);
  forced_tried_ = true;
  start_copying();
}

// The freeze held, and what was copied under it is not what the source listed.
void Mover::count_verify_failure(Nanos now) {
  checks_hold_ = false;
  ++verify_failures_;
  stage_ = Do::let_go;
  wait_until_ = Nanos(0);
  resume_at_ = now;
  if (verify_failures_ == 1) {
    note(Note::verify_failed);
    after_let_go_ = Do::start_over;
    return;
  }
  note(Note::unverifiable);
  blocked_unverifiable_ = true;
  after_let_go_ = Do::wait;
}

void Mover::on_started_over(Nanos now) { begin_attempt(now); }

// ---- fence, install, flip
// ------------------------------------------------------------------------------

void Mover::on_finished(Nanos now) {
  on_progress(now);
  if (forced_) {
    stage_ = Do::install;
    return;
  }
  if (freeze_gone()) {
    freeze_again(now, Nanos(0), "the freeze ended before the fence");
    return;
  }
  stage_ = freeze_->token ? Do::fence : Do::install;
}

void Mover::on_fenced(Nanos now) {
  if (freeze_) freeze_->armed_at = now;  // FEN-5
  if (checks_hold_) {
    count_verify_failure(now);
    return;
  }
  fences_refused_ = 0;
  stage_ = proposal_ ? Do::flip : Do::install;
}

void Mover::on_installed(Nanos now) {
  at_path_ = true;
  proposal_ = Proposal{forced_, forced_ ? 0 : freeze_->epoch, std::nullopt};
  if (forced_) proposal_->dead_mark = forced_mark_;
  first_proposal_ = now;
  proposing_stopped_ = false;
  stage_ = forced_ ? Do::promote : Do::flip;
}

void Mover::on_proposed(Nanos now, Nanos jitter, ProposalOutcome outcome) {
  if (outcome == ProposalOutcome::done) {
    end_freeze(now);
    flipped_ = true;
    return;
  }
  if (outcome == ProposalOutcome::refused) {
    // By what stood in the row when it was applied; an earlier proposal may still be on its way.
    last_error_ = "the flip was refused";
    refused_ = true;
    stage_ = Do::resolve;
    wait_until_ = now;
    return;
  }
  // FLP-4: an error is no evidence of failure.
  if (outcome == ProposalOutcome::unknown) last_unknown_ = now;
  retry_from(Do::resolve, now, jitter, "what became of the flip is not known yet");
}

void Mover::on_row(Nanos now, Nanos began, const RowSeen& seen) {
  on_view(now, seen);
  if (flipped_) return;
  NARAD_ASSERT(proposal_.has_value());
  wait_until_ = Nanos(0);
  switch (judge_flip(key_, seen, *proposal_)) {
    case FlipFate::done:
      flipped_ = true;
      return;
    case FlipFate::open:
      propose_again(now);
      return;
    case FlipFate::lapsed:
    case FlipFate::ended:
      undo(now, began);
      return;
    case FlipFate::elsewhere:
      at_path_ = false;
      end_freeze(now);
      stage_ = Do::dispose;
      return;
  }
}

// FLP-9, FLP-10. The row shows the freeze in force, so the source has committed nothing since.
void Mover::propose_again(Nanos now) {
  if (std::exchange(refused_, false)) wait_until_ = now + timing_.retry;
  if (proposal_->forced) {
    forced_ = true;
    if (proposal_->dead_mark) {
      stage_ = Do::promote;
    } else if (promotable(now)) {
      stage_ = Do::silence;
    } else {
      stage_ = Do::resolve;
      wait_until_ = now + timing_.retry;
    }
    return;
  }
  if (proposing_stopped_ || now - first_proposal_ > timing_.propose_again_for) {
    stop_proposing();
    return;
  }
  const bool holds_token = freeze_ && freeze_->token && !freeze_->lost;
  stage_ = holds_token ? Do::fence : Do::flip;
}

void Mover::stop_proposing() {
  if (!proposing_stopped_) note(Note::flip_unresolved);
  proposing_stopped_ = true;
  stage_ = Do::let_go;
  wait_until_ = Nanos(0);
  after_let_go_ = Do::resolve;
}

// FLP-13, FLP-14: the row shows that no flip of this copy can apply any more. The pause is kept all
// the same.
void Mover::undo(Nanos now, Nanos began) {
  if (last_unknown_ && began < *last_unknown_ + timing_.quiet_before_undo) {
    stage_ = Do::resolve;
    wait_until_ = std::max(now, *last_unknown_ + timing_.quiet_before_undo);
    return;
  }
  stage_ = Do::take_off;
}

void Mover::on_taken_off(Nanos now) {
  at_path_ = false;
  took_off_ = true;
  proposal_.reset();
  last_unknown_.reset();
  proposing_stopped_ = false;
  end_freeze(now);
  begin_attempt(now);  // FLP-18; next() disposes if the move is over
}

void Mover::on_disposed(Nanos) { stage_ = Do::done; }

// ---- without the source
// ----------------------------------------------------------------------------------

bool Mover::promotable(Nanos now) const {
  return dead_ && now - dead_since_ > timing_.force_promote_after;
}

void Mover::on_silence(Nanos now, Nanos silent) {
  const bool both = promotable(now) && silent > timing_.force_promote_after;
  forced_mark_ = dead_mark_;
  if (at_path_) {
    if (both) proposal_->dead_mark = dead_mark_;
    stage_ = both ? Do::promote : Do::resolve;
    if (!both) wait_until_ = now + timing_.retry;
    return;
  }
  forced_tried_ = true;
  if (!both) {
    start_copying();
    return;
  }
  forced_ = true;
  stage_ = Do::prepare;
}

// ---- refusals and failures
// ---------------------------------------------------------------------------------

void Mover::on_refused(Nanos now, Nanos jitter, std::string why) {
  if (stage_ == Do::take_off) {
    // INS-8: it travelled with its topic's directory, and is the sweep's business.
    note(Note::take_off_refused);
    at_path_ = false;
    proposal_.reset();
    end_freeze(now);
    pause(now, jitter, std::move(why));
    return;
  }
  if (stage_ != Do::fence) {
    on_failed(now, jitter, std::move(why));
    return;
  }
  if (freeze_) freeze_->lost = true;
  if (std::exchange(checks_hold_, false)) {
    pause(now, jitter, std::move(why));  // VER-9: not counted
  } else if (proposal_) {
    stop_proposing();
  } else {
    freeze_again(now, jitter, std::move(why));
  }
}

void Mover::on_failed(Nanos now, Nanos jitter, std::string why) {
  switch (stage_) {
    case Do::look:
    case Do::settle:
    case Do::resolve:
    case Do::start_over:
    case Do::dispose:
      retry_from(stage_, now, jitter, std::move(why));
      return;
    case Do::take_off:
      retry_from(Do::resolve, now, jitter, std::move(why));
      return;
    case Do::fence:
      if (proposal_ && !checks_hold_) {
        // The source cannot be asked; the row shows the freeze, and the flip names it.
        stage_ = Do::flip;
        return;
      }
      break;
    case Do::silence:
      if (at_path_) {
        retry_from(Do::resolve, now, jitter, std::move(why));
      } else {
        forced_tried_ = true;
        last_error_ = std::move(why);
        start_copying();
      }
      return;
    case Do::let_go:
      on_let_go(now);
      return;
    case Do::prepare:
      if (!prepare_noted_) note(Note::prepare_refused);
      prepare_noted_ = true;
      break;
    case Do::pass:
      waits_for_source_ = true;
      break;
    default:
      break;
  }
  checks_hold_ = false;
  pause(now, jitter, std::move(why));
}

// ---- the freeze
// --------------------------------------------------------------------------------------------

Mover::Keeping Mover::keep(Nanos now) {
  if (freeze_gone() || flipped_ || over_ || stage_ == Do::let_go) return {};
  const bool flipping = proposal_ && at_path_;
  const Nanos hung_at = freeze_->progress_at + timing_.hung_after;
  if (flipping) {
    if (proposing_stopped_ || now - first_proposal_ > timing_.propose_again_for) return {};
  } else if (now > hung_at) {
    freeze_->hung = true;
    note(Note::hung);
    last_error_ = "nothing advanced for too long: the freeze was let go";
    return {Keep::let_go, Nanos(0), freeze_->epoch};
  }
  const Nanos due = freeze_->armed_at + freeze_->ttl / 4;
  if (now < due) return {Keep::wait, flipping ? due : std::min(due, hung_at + Nanos(1)), 0};
  return {Keep::rearm, Nanos(0), freeze_->epoch};
}

void Mover::on_rearmed(Nanos now) {
  if (freeze_) freeze_->armed_at = now;
}

void Mover::on_rearm_refused(Nanos) {
  if (freeze_) freeze_->lost = true;
}

void Mover::on_progress(Nanos now) {
  if (freeze_) freeze_->progress_at = now;
}

// ---- reports
// -------------------------------------------------------------------------------------------------

std::string_view Mover::phase() const {
  if (flipped_) return "done";
  if (over_ || stage_ == Do::done) return "aborted";
  if (resting_) return "paused";
  if (!blocked().empty()) return "blocked";
  if (proposal_) return "flipping";
  switch (stage_) {
    case Do::pass:
      if (draining_) return "draining";
      return waits_for_source_ ? "waiting_for_source" : "copying";
    case Do::freeze:
      return "freezing";
    case Do::verify:
      return "draining";
    case Do::fence:
    case Do::finish:
      return "fencing";
    case Do::install:
      return "installing";
    case Do::silence:
      return "waiting_for_source";
    default:
      if (waits_for_source_) return "waiting_for_source";
      return attempts_ == 0 ? "queued" : "copying";
  }
}

std::string_view Mover::blocked() const {
  if (blocked_unverifiable_ || unverifiable_without_source_) return "copy_unverifiable";
  if (behind_) return "source_dead_copy_behind";
  if (blocked_went_back_) return "source_went_back";
  return {};
}

Nanos Mover::frozen_for(Nanos now) const { return freeze_ ? now - freeze_->since : last_frozen_; }

wire::Receipt Mover::receipt(Nanos now) const {
  wire::Receipt r;
  r.passes = passes_total_;
  r.retries = attempts_ > 0 ? attempts_ - 1 : 0;
  r.frozen_ms = forced_ ? 0 : millis(frozen_for(now));
  r.copy_ms = millis((copy_ended_ == Nanos(0) ? now : copy_ended_) - began_);
  if (!forced_) r.drain_ms = millis(drain_ended_ - drain_began_);
  if (!forced_) r.verify_ms = millis(verify_ended_ - drain_ended_);
  return r;
}

wire::Receipt Mover::receipt_of_flip(Nanos now, wire::Receipt marked) const {
  // One that an earlier process made ready: it alone knew.
  if (forced_ || !freeze_ || verify_ended_ == Nanos(0)) return marked;
  marked.frozen_ms = millis(frozen_for(now));
  marked.install_ms = millis(now - verify_ended_);
  return marked;
}

std::vector<Note> Mover::take_notes() { return std::exchange(notes_, {}); }

}  // namespace narad::moves
