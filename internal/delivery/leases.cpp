#include "internal/delivery/leases.h"

#include <algorithm>
#include <utility>

#include "pkg/base/assert.h"

namespace narad::delivery {
namespace {
constexpr std::size_t kSpareSlots = 16;
}  // namespace

std::string_view to_string(ReserveOutcome outcome) {
  switch (outcome) {
    case ReserveOutcome::leased:
      return "leased";
    case ReserveOutcome::empty:
      return "empty";
    case ReserveOutcome::cap:
      return "cap";
    case ReserveOutcome::ahead_full:
      return "ahead_full";
    case ReserveOutcome::all_reserved:
      return "all_reserved";
  }
  return "unknown";
}

LeaseNonce first_nonce(std::uint64_t random) {
  return LeaseNonce((random & ((std::uint64_t{1} << 62) - 1)) + 1);
}

LeaseTable::LeaseTable(const ConsumerPositions& start, LeaseNonce first_nonce)
    : frontier_(start.frontier), next_nonce_(first_nonce) {
  NARAD_ASSERT(first_nonce.value() >= 1);
  for (const OffsetRun& run : start.acked_ahead) {
    const OffsetRun ahead{std::max(run.begin, frontier_), run.end};
    if (ahead.begin < ahead.end) acked_.insert(ahead);
  }
  fresh_ = frontier_;
  absorb();
}

// ---- handing out --------------------------------------------------------------------------

ReserveOutcome LeaseTable::reserve(Nanos now, LogBounds bounds, LeaseCaps caps, Nanos visibility,
                                   std::size_t count, std::vector<Lease>& out) {
  NARAD_ASSERT(count > 0);
  follow(now, bounds);
  std::uint64_t room = 0;
  const ReserveOutcome outcome = look(bounds, caps, room);
  if (outcome != ReserveOutcome::leased) return outcome;
  room = std::min<std::uint64_t>(room, count);
  const Nanos expiry = now + visibility;
  for (std::uint64_t n = 0; n < room; ++n) {
    const std::optional<Offset> offset = lowest_free(bounds.hwm);
    if (!offset) break;
    lease(*offset, expiry, out);
  }
  return ReserveOutcome::leased;
}

std::uint64_t LeaseTable::ready(Nanos now, LogBounds bounds, LeaseCaps caps) {
  follow(now, bounds);
  std::uint64_t room = 0;
  if (look(bounds, caps, room) != ReserveOutcome::leased) return 0;
  const std::uint64_t fresh = bounds.hwm > fresh_ ? bounds.hwm.minus(fresh_) : 0;
  return std::min(room, returned_.size() + fresh);
}

void LeaseTable::follow(Nanos now, LogBounds bounds) {
  expire(now);
  advance_to(std::min(bounds.oldest, bounds.hwm));
}

ReserveOutcome LeaseTable::look(LogBounds bounds, LeaseCaps caps, std::uint64_t& room) {
  if (leases_.size() >= caps.in_flight_max) return ReserveOutcome::cap;
  if (frontier_ >= bounds.hwm) return ReserveOutcome::empty;
  room = caps.in_flight_max - leases_.size();
  const std::optional<Offset> lowest = lowest_free(bounds.hwm);
  if (ahead_full(caps)) {
    // Only the record that holds the frontier back may go out; it is free or leased, for the
    // frontier itself is never settled.
    if (lowest != frontier_) return ReserveOutcome::ahead_full;
    room = 1;
  }
  return lowest ? ReserveOutcome::leased : ReserveOutcome::all_reserved;
}

std::optional<Offset> LeaseTable::lowest_free(Offset hwm) {
  // Everything given back lies below fresh_.
  if (!returned_.empty()) {
    const Offset lowest = returned_.first();
    return lowest < hwm ? std::optional(lowest) : std::nullopt;
  }
  for (;;) {
    const Offset past = lost_.run_end(acked_.run_end(fresh_));
    if (past == fresh_) break;
    fresh_ = past;
  }
  return fresh_ < hwm ? std::optional(fresh_) : std::nullopt;
}

void LeaseTable::lease(Offset offset, Nanos expiry, std::vector<Lease>& out) {
  if (offset == fresh_) {
    fresh_ = fresh_.next();
  } else {
    const std::uint64_t taken = returned_.erase(offset);
    NARAD_ASSERT(taken == 1);
  }
  const LeaseNonce nonce = next_nonce_;
  next_nonce_ = next_nonce_.next();
  const bool fresh = leases_.emplace(offset, Held{nonce, expiry}).second;
  NARAD_ASSERT(fresh);
  push_slot(Slot{expiry, offset, nonce});
  out.push_back(Lease{offset, nonce});
}

// ---- settling -----------------------------------------------------------------------------

LeaseTable::Leases::iterator LeaseTable::find_live(Nanos now, Lease lease) {
  expire(now);
  auto it = leases_.find(lease.offset);
  return it != leases_.end() && it->second.nonce == lease.nonce ? it : leases_.end();
}

SettleStatus LeaseTable::ack(Nanos now, Lease lease, LeaseCaps caps) {
  auto it = find_live(now, lease);
  if (it == leases_.end()) return SettleStatus::stale;
  if (lease.offset == frontier_) {
    leases_.erase(it);
    frontier_ = frontier_.next();
    absorb();
  } else {
    if (ahead_full(caps)) return SettleStatus::ahead_full;
    leases_.erase(it);
    acked_.insert(lease.offset);
  }
  compact_slots();
  return SettleStatus::done;
}

SettleStatus LeaseTable::extend(Nanos now, Lease lease, Nanos visibility) {
  auto it = find_live(now, lease);
  if (it == leases_.end()) return SettleStatus::stale;
  const Nanos expiry = now + visibility;
  if (expiry == it->second.expiry) return SettleStatus::done;
  it->second.expiry = expiry;
  push_slot(Slot{expiry, lease.offset, lease.nonce});
  return SettleStatus::done;
}

SettleStatus LeaseTable::nack(Nanos now, Lease lease) {
  auto it = find_live(now, lease);
  if (it == leases_.end()) return SettleStatus::stale;
  give_back(it);
  compact_slots();
  return SettleStatus::done;
}

void LeaseTable::give_back(Leases::iterator it) {
  returned_.insert(it->first);
  leases_.erase(it);
}

void LeaseTable::absorb() {
  for (;;) {
    const Offset past = lost_.run_end(acked_.run_end(frontier_));
    if (past == frontier_) break;
    frontier_ = past;
  }
  acked_.erase({Offset(0), frontier_});
  lost_.erase({Offset(0), frontier_});
  fresh_ = std::max(fresh_, frontier_);
}

bool LeaseTable::ahead_full(LeaseCaps caps) const {
  // A run of lost records counts once: the cap bounds what the set costs, and a damaged stretch of
  // a million records must not hold back the acks of those around it.
  return acked_.size() + lost_.run_count() >= caps.acked_ahead_max;
}

bool LeaseTable::lose(Nanos now, Lease lease) {
  auto it = find_live(now, lease);
  if (it == leases_.end()) return false;
  leases_.erase(it);
  lost_.insert(lease.offset);
  absorb();
  compact_slots();
  return true;
}

std::uint64_t LeaseTable::mark_lost(OffsetRun range, Offset hwm) {
  range.begin = std::max(range.begin, frontier_);
  range.end = std::min(range.end, hwm);
  if (range.begin >= range.end) return 0;
  std::uint64_t newly = 0;
  const auto mark = [&](Offset begin, Offset end) {
    while (begin < end) {  // around what is acked
      const Offset acked_end = acked_.run_end(begin);
      if (acked_end > begin) {
        begin = acked_end;
        continue;
      }
      const Offset stop = std::min(end, acked_.next_begin(begin).value_or(end));
      returned_.erase({begin, stop});
      newly += lost_.insert({begin, stop});
      begin = stop;
    }
  };
  Offset from = range.begin;
  for (Offset leased : leased_in(range)) {
    mark(from, leased);
    from = leased.next();
  }
  mark(from, range.end);
  absorb();
  return newly;
}

// ---- time and the log's bounds ------------------------------------------------------------

std::uint64_t LeaseTable::expire(Nanos now) {
  std::uint64_t expired = 0;
  while (!slots_.empty() && slots_.front().expiry <= now) {
    std::pop_heap(slots_.begin(), slots_.end(), Later{});
    const Slot slot = slots_.back();
    slots_.pop_back();
    if (!slot_is_live(slot)) continue;
    give_back(leases_.find(slot.offset));
    ++expired;
  }
  if (expired > 0) compact_slots();
  return expired;
}

std::optional<Nanos> LeaseTable::next_expiry() {
  while (!slots_.empty()) {
    if (slot_is_live(slots_.front())) return slots_.front().expiry;
    std::pop_heap(slots_.begin(), slots_.end(), Later{});
    slots_.pop_back();
  }
  return std::nullopt;
}

std::uint64_t LeaseTable::dropped_below(Offset oldest) const {
  if (oldest <= frontier_) return 0;
  const OffsetRun range{frontier_, oldest};
  return range.count() - acked_.count_in(range) - lost_.count_in(range);
}

std::uint64_t LeaseTable::advance_to(Offset oldest) {
  if (oldest <= frontier_) return 0;
  const std::uint64_t dropped = dropped_below(oldest);
  const OffsetRun range{frontier_, oldest};
  for (Offset leased : leased_in(range)) leases_.erase(leased);
  returned_.erase(range);
  frontier_ = oldest;
  absorb();
  compact_slots();
  dropped_total_ += dropped;
  return dropped;
}

bool LeaseTable::clamp(Offset hwm) {
  const OffsetRun beyond{hwm, Offset(~std::uint64_t{0})};
  bool forgot = frontier_ > hwm;
  frontier_ = std::min(frontier_, hwm);
  fresh_ = std::min(fresh_, hwm);
  if (acked_.erase(beyond) > 0) forgot = true;
  lost_.erase(beyond);
  returned_.erase(beyond);
  for (Offset leased : leased_in(beyond)) leases_.erase(leased);
  compact_slots();
  return forgot;
}

// ---- slots --------------------------------------------------------------------------------

bool LeaseTable::slot_is_live(const Slot& slot) const {
  auto it = leases_.find(slot.offset);
  return it != leases_.end() && it->second.nonce == slot.nonce && it->second.expiry == slot.expiry;
}

void LeaseTable::push_slot(Slot slot) {
  slots_.push_back(slot);
  std::push_heap(slots_.begin(), slots_.end(), Later{});
  compact_slots();
}

// Slots of ended leases are dropped once they outnumber the live ones, so the heap stays within
// twice the leases at a constant price per operation.
void LeaseTable::compact_slots() {
  if (slots_.size() <= 2 * leases_.size() + kSpareSlots) return;
  slots_.clear();
  for (const auto& [offset, held] : leases_) slots_.push_back({held.expiry, offset, held.nonce});
  std::make_heap(slots_.begin(), slots_.end(), Later{});
}

std::vector<Offset> LeaseTable::leased_in(OffsetRun range) const {
  std::vector<Offset> out;
  if (range.begin >= range.end || leases_.empty()) return out;
  if (range.count() <= leases_.size()) {
    for (Offset at = range.begin; at < range.end; at = at.next()) {
      if (leases_.contains(at)) out.push_back(at);
    }
    return out;
  }
  for (const auto& [offset, held] : leases_) {
    if (range.begin <= offset && offset < range.end) out.push_back(offset);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void LeaseTable::check_invariants() const {
  NARAD_ASSERT(acked_.invariants_hold());
  NARAD_ASSERT(lost_.invariants_hold());
  NARAD_ASSERT(returned_.invariants_hold());
  NARAD_ASSERT(frontier_ <= fresh_);
  NARAD_ASSERT(!acked_.contains(frontier_), "the frontier is settled");
  NARAD_ASSERT(!lost_.contains(frontier_), "the frontier is settled");
  NARAD_ASSERT(acked_.empty() || acked_.first() > frontier_);
  NARAD_ASSERT(lost_.empty() || lost_.first() > frontier_);
  NARAD_ASSERT(returned_.empty() || returned_.first() >= frontier_);
  NARAD_ASSERT(returned_.empty() || returned_.last() < fresh_);
  for (const OffsetRun& run : acked_.runs()) NARAD_ASSERT(lost_.count_in(run) == 0);
  for (const OffsetRun& run : returned_.runs()) {
    NARAD_ASSERT(acked_.count_in(run) == 0);
    NARAD_ASSERT(lost_.count_in(run) == 0);
  }
  std::size_t live_slots = 0;
  for (const Slot& slot : slots_) live_slots += slot_is_live(slot) ? 1 : 0;
  NARAD_ASSERT(live_slots >= leases_.size(), "a lease has no slot and would never expire");
  NARAD_ASSERT(slots_.size() <= 2 * leases_.size() + kSpareSlots);
  for (const auto& [offset, held] : leases_) {
    NARAD_ASSERT(frontier_ <= offset);
    NARAD_ASSERT(offset < fresh_);
    NARAD_ASSERT(held.nonce < next_nonce_);
    NARAD_ASSERT(!acked_.contains(offset));
    NARAD_ASSERT(!lost_.contains(offset));
    NARAD_ASSERT(!returned_.contains(offset));
  }
  // Below fresh_ every offset is in exactly one place.
  if (frontier_ < fresh_) {
    const OffsetRun known{frontier_, fresh_};
    NARAD_ASSERT(acked_.count_in(known) + lost_.count_in(known) + returned_.size() +
                     leases_.size() ==
                 known.count());
  }
}

}  // namespace narad::delivery
