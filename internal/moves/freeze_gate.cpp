#include "internal/moves/freeze_gate.h"

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::moves {

Ownership ownership_of(const Assignment& row) {
  return {row.incarnation, row.owner_node, row.owner_disk, row.owned_by_move};
}

std::string_view to_string(GatePhase phase) {
  switch (phase) {
    case GatePhase::unsure:
      return "unsure";
    case GatePhase::open:
      return "open";
    case GatePhase::arming:
      return "arming";
    case GatePhase::rearming:
      return "rearming";
    case GatePhase::settling:
      return "settling";
    case GatePhase::shut:
      return "shut";
    case GatePhase::voiding:
      return "voiding";
    case GatePhase::gone:
      return "gone";
  }
  return "?";
}

namespace {

Error gone_error() {
  return Error(Errc::not_owner, "the partition has another home now: ask the node that owns it");
}
Error unsure_error() {
  return Error(Errc::unavailable,
               "this node was started and has not yet heard from the leader whether the partition "
               "is still its own");
}
Error frozen_error() {
  return Error(Errc::unavailable,
               "the partition is frozen for the last step of its move to another node; try again");
}
Error over_error() {
  return Error(Errc::conflict, "that freeze is not in force: ask for a new one");
}

}  // namespace

// ---- rows --------------------------------------------------------------------------------------

void FreezeGate::see(const Assignment* row, bool known) {
  if (phase_ == GatePhase::gone) return;
  if (row == nullptr || ownership_of(*row) != ownership_) {
    leave();
    return;
  }
  row_move_ = row->move_id;
  row_epoch_ = row->freeze_epoch;
  row_armed_ = row->freeze_armed;
  switch (phase_) {
    case GatePhase::unsure:
      if (known) begin(*row);
      return;
    case GatePhase::open:
      if (row_armed_) void_epoch(row_epoch_);
      return;
    case GatePhase::arming:
      return;  // what the row shows may be the entry whose answer is on its way
    case GatePhase::rearming:
      // The freeze that kept it closed is over. An armed one may be the one asked for.
      if (row_epoch_ <= epoch_ || row_armed_) return;
      phase_ = GatePhase::arming;
      epoch_ = 0;
      reported_ = false;
      return;
    case GatePhase::settling:
    case GatePhase::shut:
    case GatePhase::voiding:
      look_at_freeze(*row);
      return;
    case GatePhase::gone:
      return;
  }
}

void FreezeGate::begin(const Assignment& row) {
  if (row.freeze_armed) {
    void_epoch(row.freeze_epoch);
  } else {
    open();
  }
}

void FreezeGate::look_at_freeze(const Assignment& row) {
  if (row.freeze_epoch > epoch_) {
    begin(row);  // whoever armed a later one, nobody holds it
  } else if (phase_ != GatePhase::voiding && row.move_id != move_) {
    void_epoch(epoch_);  // no flip can come any more: do not wait for the time to pass
  }
}

void FreezeGate::open() {
  phase_ = GatePhase::open;
  epoch_ = 0;
  move_ = RaftIndex(0);
  reported_ = false;
  nonce_.clear();
}

void FreezeGate::void_epoch(std::uint64_t epoch) {
  // A freeze that this process did not report may have been reported by an earlier one.
  reported_ = reported_ || phase_ == GatePhase::unsure || epoch != epoch_;
  phase_ = GatePhase::voiding;
  epoch_ = epoch;
  nonce_.clear();
}

void FreezeGate::leave() {
  phase_ = GatePhase::gone;
  row_move_ = RaftIndex(0);
  nonce_.clear();
}

// ---- freezes -----------------------------------------------------------------------------------

Result<FreezeAttempt> FreezeGate::ask(RaftIndex move, bool current) {
  if (phase_ == GatePhase::gone) return gone_error();
  if (phase_ == GatePhase::unsure) return unsure_error();
  if (move == RaftIndex(0) || row_move_ != move) {
    if (current) return Error(Errc::conflict, cat("move ", move, " is over"));
    return Error(Errc::unavailable,
                 cat("this node does not know of move ", move, ", and hears of no leader"));
  }
  if (phase_ == GatePhase::voiding) {
    return Error(Errc::unavailable, "an earlier freeze of the partition is being ended");
  }
  phase_ = closed() ? GatePhase::rearming : GatePhase::arming;
  nonce_.clear();
  move_ = move;
  attempt_ = attempt_.next();
  return attempt_;
}

void FreezeGate::armed(FreezeAttempt attempt, Settling settling) {
  if (!is(attempt, GatePhase::arming) && !is(attempt, GatePhase::rearming)) return;
  const bool in_force = row_armed_ && row_epoch_ == settling.epoch && row_move_ == move_;
  if (!in_force) {  // it was over before its answer arrived
    after_proposal();
    return;
  }
  phase_ = GatePhase::settling;
  epoch_ = settling.epoch;
  reported_ = false;
  until_ = settling.lapse;
}

void FreezeGate::not_armed(FreezeAttempt attempt) {
  if (is(attempt, GatePhase::arming) || is(attempt, GatePhase::rearming)) after_proposal();
}

void FreezeGate::after_proposal() {
  if (phase_ == GatePhase::rearming && row_epoch_ <= epoch_) {
    void_epoch(epoch_);
  } else if (row_armed_) {
    void_epoch(row_epoch_);
  } else {
    open();
  }
}

Result<wire::FreezeToken> FreezeGate::report(FreezeAttempt attempt, std::string nonce,
                                             Nanos until) {
  NARAD_ASSERT(!nonce.empty());
  if (phase_ == GatePhase::gone) return gone_error();
  if (!is(attempt, GatePhase::settling)) return over_error();
  phase_ = GatePhase::shut;
  reported_ = true;
  nonce_ = std::move(nonce);
  until_ = until;
  return wire::FreezeToken{epoch_, nonce_};
}

void FreezeGate::give_up(FreezeAttempt attempt) {
  if (is(attempt, GatePhase::settling)) void_epoch(epoch_);
}

Result<void> FreezeGate::holds(const wire::FreezeToken& token, Nanos now) {
  tick(now);
  if (phase_ == GatePhase::gone) return gone_error();
  const bool same = phase_ == GatePhase::shut && token.epoch == epoch_ && token.nonce == nonce_;
  if (!same) return over_error();
  return ok();
}

Result<void> FreezeGate::extend(const wire::FreezeToken& token, Nanos now, Nanos until) {
  NARAD_TRY(holds(token, now));
  until_ = until;
  return ok();
}

void FreezeGate::tick(Nanos now) {
  if (const auto at = due(); at && now >= *at) void_epoch(epoch_);
}

std::optional<Nanos> FreezeGate::due() const {
  if (phase_ != GatePhase::settling && phase_ != GatePhase::shut) return std::nullopt;
  return until_;
}

std::optional<std::uint64_t> FreezeGate::to_void() const {
  if (phase_ != GatePhase::voiding) return std::nullopt;
  return epoch_;
}

// ---- what may pass -----------------------------------------------------------------------------

bool FreezeGate::closed() const { return phase_ != GatePhase::open && phase_ != GatePhase::arming; }

Result<void> FreezeGate::may_append() const {
  if (phase_ == GatePhase::gone) return gone_error();
  if (phase_ == GatePhase::unsure) return unsure_error();
  if (closed()) return frozen_error();
  return ok();
}

Result<void> FreezeGate::may_publish() const {
  if (phase_ == GatePhase::gone) return gone_error();
  if (phase_ == GatePhase::unsure) return unsure_error();
  if (closed() && reported_) return frozen_error();
  return ok();
}

Result<void> FreezeGate::may_lease() const { return may_append(); }

Result<void> FreezeGate::may_settle() const {
  if (phase_ == GatePhase::gone) return gone_error();
  if (phase_ == GatePhase::unsure) return unsure_error();
  return ok();
}

void FreezeGate::check_invariants() const {
  const bool shut = phase_ == GatePhase::shut;
  NARAD_ASSERT(nonce_.empty() != shut);
  NARAD_ASSERT(!shut || reported_);
  NARAD_ASSERT(phase_ != GatePhase::open || !reported_);
  NARAD_ASSERT(phase_ != GatePhase::arming || !reported_);
  if (phase_ == GatePhase::settling || shut) {
    NARAD_ASSERT(row_epoch_ == epoch_ && row_armed_ && row_move_ == move_);
  }
  NARAD_ASSERT(phase_ != GatePhase::rearming || epoch_ > 0);
}

}  // namespace narad::moves
