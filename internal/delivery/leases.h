#pragma once
// LeaseTable: which records of one partition are settled, which are out with a consumer, and which
// to hand out next. A pure core: time (mono) and the log's bounds are passed in, nothing is read or
// written. Owned by Delivery (delivery.h), which makes acks durable; the table itself forgets all
// leases with the process, so after a restart what was not acked is handed out again.
//
// Of every offset at or above the frontier exactly one holds: acked ahead, lost (unreadable),
// leased, given back (expired or nacked), or fresh (never handed out). The lowest offset that is
// given back or fresh goes out first.
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "internal/delivery/offset_set.h"
#include "pkg/base/text.h"

namespace narad::delivery {

// Names one lease of a partition for the life of that partition's opening; at least 1.
using LeaseNonce = StrongNumber<struct LeaseNonceTag>;

// What is settled, as it is stored and moved: every offset below `frontier`, and the runs of
// `acked_ahead`, which lie above it, ascending and apart.
struct ConsumerPositions {
  Offset frontier{0};  // the lowest offset that is not settled
  std::vector<OffsetRun> acked_ahead;
  friend bool operator==(const ConsumerPositions&, const ConsumerPositions&) = default;
};

// The topic's limits, as they stand at the call: a change takes effect with the next one.
struct LeaseCaps {
  std::uint64_t in_flight_max = 1024;
  std::uint64_t acked_ahead_max = 1024;
};

// The records of a partition that exist: [oldest, hwm).
struct LogBounds {
  Offset oldest{0};
  Offset hwm{0};
};

struct Lease {
  Offset offset{0};
  LeaseNonce nonce{0};
  friend bool operator==(const Lease&, const Lease&) = default;
};

enum class ReserveOutcome : std::uint8_t {
  leased,        // at least one
  empty,         // everything below the HWM is settled
  cap,           // as many leases are live as the topic allows
  ahead_full,    // the acked-ahead set is full and the record at the frontier is out
  all_reserved,  // all that is left is out with consumers
};
std::string_view to_string(ReserveOutcome outcome);

enum class SettleStatus : std::uint8_t {
  done,
  stale,       // no live lease of that nonce (410)
  ahead_full,  // an ack out of order while the acked-ahead set is full; nothing changed (503)
};

class LeaseTable {
 public:
  // Nonces count up from `first_nonce` (see first_nonce()). `start` is sorted out, not trusted:
  // runs below the frontier or touching it are taken in.
  LeaseTable(const ConsumerPositions& start, LeaseNonce first_nonce);

  // Leases up to `count` records, lowest first, until `now + visibility`, and appends them to
  // `out`. Takes expired leases back first, and passes records that retention deleted
  // (dropped_total). Hands out nothing at or above the HWM. REQUIRES: count > 0.
  ReserveOutcome reserve(Nanos now, LogBounds bounds, LeaseCaps caps, Nanos visibility,
                         std::size_t count, std::vector<Lease>& out);
  // How many records reserve() could hand out now, at most (some of them may be settled); 0 if
  // none.
  std::uint64_t ready(Nanos now, LogBounds bounds, LeaseCaps caps);

  // Settles the record; the frontier passes every settled record behind it.
  SettleStatus ack(Nanos now, Lease lease, LeaseCaps caps);
  // The lease ends at `now + visibility`, under the same nonce.
  SettleStatus extend(Nanos now, Lease lease, Nanos visibility);
  // Gives the record back at once.
  SettleStatus nack(Nanos now, Lease lease);

  // The record of a live lease turned out to be unreadable: as mark_lost() for it alone, lease and
  // all. False if there is no such lease any more.
  bool lose(Nanos now, Lease lease);
  // The records of `range` below `hwm` cannot be read: none of them is handed out again. Those that
  // are settled stay so, those out under a live lease stay leased (they were delivered). Answers
  // how many are lost newly.
  std::uint64_t mark_lost(OffsetRun range, Offset hwm);

  // Takes back what expired; answers how many.
  std::uint64_t expire(Nanos now);
  // When the next live lease ends; nothing if there is none.
  std::optional<Nanos> next_expiry();

  // Retention deleted everything below `oldest`: the frontier goes there at once, leases below it
  // end. Answers how many of the deleted records were not settled.
  std::uint64_t advance_to(Offset oldest);
  // Nothing at or above `hwm` exists: forgets every position there, so that offsets which are given
  // to other records later are delivered. True if a settled position was forgotten (then what is
  // stored must be written anew before the HWM rises).
  bool clamp(Offset hwm);

  Offset frontier() const { return frontier_; }
  // Every position lies below it. An HWM below it asks for clamp().
  Offset position_end() const {
    return acked_.empty() ? fresh_ : std::max(fresh_, acked_.last().next());
  }
  ConsumerPositions positions() const { return {frontier_, acked_.runs()}; }
  std::uint64_t in_flight() const { return leases_.size(); }
  std::uint64_t acked_ahead() const { return acked_.size(); }
  std::uint64_t lost_ahead() const { return lost_.size(); }
  // Unsettled records in [frontier, oldest): deleted by retention before they were acked.
  std::uint64_t dropped_below(Offset oldest) const;
  std::uint64_t dropped_total() const { return dropped_total_; }
  bool is_live(Nanos now, Lease lease) { return find_live(now, lease) != leases_.end(); }
  // Where the records begin that were never handed out.
  Offset fresh() const { return fresh_; }

  // Full check; aborts with the rule that is broken. Cost: everything in the table.
  void check_invariants() const;

 private:
  struct Held {
    LeaseNonce nonce;
    Nanos expiry;
  };
  // A lease that was extended or settled leaves its slot behind: a slot counts only if nonce and
  // expiry match the lease.
  struct Slot {
    Nanos expiry;
    Offset offset;
    LeaseNonce nonce;
  };
  struct Later {
    bool operator()(const Slot& a, const Slot& b) const {
      return a.expiry != b.expiry ? a.expiry > b.expiry : a.offset > b.offset;
    }
  };
  using Leases = std::unordered_map<Offset, Held>;

  // Why reserve() would hand out nothing, or `leased`. Also how many it may hand out at most.
  ReserveOutcome look(LogBounds bounds, LeaseCaps caps, std::uint64_t& room);
  void follow(Nanos now, LogBounds bounds);
  // The lowest offset that is free and below `hwm`; moves fresh_ past what is settled.
  std::optional<Offset> lowest_free(Offset hwm);
  void lease(Offset offset, Nanos expiry, std::vector<Lease>& out);
  Leases::iterator find_live(Nanos now, Lease lease);
  void give_back(Leases::iterator it);
  // Takes in settled runs that begin at the frontier.
  void absorb();
  bool ahead_full(LeaseCaps caps) const;
  bool slot_is_live(const Slot& slot) const;
  void push_slot(Slot slot);
  void compact_slots();
  std::vector<Offset> leased_in(OffsetRun range) const;

  Offset frontier_{0};
  Offset fresh_{0};  // nothing at or above it was ever handed out
  OffsetSet acked_;
  OffsetSet lost_;
  OffsetSet returned_;
  Leases leases_;
  std::vector<Slot> slots_;  // heap, earliest expiry first
  LeaseNonce next_nonce_;
  std::uint64_t dropped_total_ = 0;
};

// A start for the nonces of one opening, of 64 random bits: at least 1, within 62 bits, so that a
// handle of an earlier opening settles nothing and the counter never leaves a handle's range.
LeaseNonce first_nonce(std::uint64_t random);

}  // namespace narad::delivery
