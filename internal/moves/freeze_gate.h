#pragma once
// FreezeGate: what may pass at the owner of a partition while it is being moved, for one ownership
// of it (docs/internals/moves.md, "The freeze at the source": this is that table). Pure: rows, the
// answers to proposals and the time are told to it; it says what may pass, what to propose, and
// what to answer. source.h runs it.
//
// Two rules carry it. A gate that was shut under a freeze opens only at the sight of a row with a
// higher epoch, never because time has passed. And nothing becomes visible behind a listing that
// was reported under a freeze: whoever reports one has seen the commits end that passed before.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "internal/model/topic.h"
#include "internal/wire/move_messages.h"
#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad::moves {

using Nanos = std::chrono::nanoseconds;

// One time in which one (node, disk) owns a partition. Never comes again: each flip has a move id
// of its own, and what was never moved was placed once.
struct Ownership {
  Incarnation incarnation{0};
  std::string node;
  std::string disk;
  RaftIndex by_move{0};  // Assignment::owned_by_move
  friend bool operator==(const Ownership&, const Ownership&) = default;
};
Ownership ownership_of(const Assignment& row);

enum class GatePhase : std::uint8_t {
  unsure,    // nothing is known since the start
  open,      // no freeze
  arming,    // arm_freeze is proposed; no earlier freeze can be in force
  rearming,  // the same, in place of a freeze that may still be in force: it stays closed
  settling,  // armed; commits under way and leases come to their end
  shut,      // reported: a flip may come
  voiding,   // void_freeze is proposed until a row shows a higher epoch
  gone,      // this ownership is over
};
std::string_view to_string(GatePhase phase);

// Names one attempt at a freeze, within one gate.
using FreezeAttempt = StrongNumber<struct FreezeAttemptTag>;

class FreezeGate {
 public:
  explicit FreezeGate(Ownership ownership) : ownership_(std::move(ownership)) {}

  // ---- the applied state. `row`: as it stands now; null: no such partition, or another life of
  // the topic. `known`: a barrier that was made after this process started has been applied. To be
  // called before each of the questions below; rows never go back.
  void see(const Assignment* row, bool known);

  // ---- freezes of a destination
  // A new freeze, in place of one in force: arm_freeze for that move is to be proposed, and what
  // came of it told. `current`: this node's state is the leader's (Proposer::caught_up()). Errors:
  // conflict (the move is not this partition's present one), not_owner, unavailable.
  Result<FreezeAttempt> ask(RaftIndex move, bool current);
  // arm_freeze was done with that epoch. Leases get until `until`, then the listing is taken behind
  // the commits under way, and report() called. If nobody has by `lapse`, the freeze is voided.
  struct Settling {
    std::uint64_t epoch = 0;
    Nanos lapse{0};
  };
  void armed(FreezeAttempt attempt, Settling settling);
  // arm_freeze was refused, or what came of it is unknown. The row decides: if the entry is applied
  // later, it shows a freeze that nobody holds, and that is voided.
  void not_armed(FreezeAttempt attempt);
  // The listing is there. The token answered names the freeze from now on, until `until`.
  // conflict: that attempt is over.
  Result<wire::FreezeToken> report(FreezeAttempt attempt, std::string nonce, Nanos until);
  // The listing could not be had.
  void give_up(FreezeAttempt attempt);

  // ok if the token names the freeze in force; otherwise conflict.
  Result<void> holds(const wire::FreezeToken& token, Nanos now);
  // The same, and the freeze is in force until `until`.
  Result<void> extend(const wire::FreezeToken& token, Nanos now, Nanos until);

  // Time has passed.
  void tick(Nanos now);
  // When it is to be told next; nothing: never.
  std::optional<Nanos> due() const;
  // The epoch that is to be voided, again and again, as long as this answers it.
  std::optional<std::uint64_t> to_void() const;

  // ---- what may pass. unavailable: not now, try again; not_owner: never again.
  // Before an append: nothing is appended in any phase in which a flip may come.
  Result<void> may_append() const;
  // After the sync of what passed before: it becomes visible, and counts as committed.
  Result<void> may_publish() const;
  Result<void> may_lease() const;
  Result<void> may_settle() const;
  // Whether it takes a move lease to commit: the partition is being moved. (From a listing until
  // its move ended the row shows that move, since no other listing is served; and before a barrier
  // was made after the start nothing is committed at all.)
  bool needs_lease() const { return row_move_ != RaftIndex(0); }

  GatePhase phase() const { return phase_; }
  const Ownership& ownership() const { return ownership_; }
  RaftIndex present_move() const { return row_move_; }
  void check_invariants() const;

 private:
  bool closed() const;
  bool is(FreezeAttempt attempt, GatePhase phase) const {
    return phase_ == phase && attempt == attempt_;
  }
  void begin(const Assignment& row);
  void look_at_freeze(const Assignment& row);
  void after_proposal();
  void open();
  void void_epoch(std::uint64_t epoch);
  void leave();

  const Ownership ownership_;
  GatePhase phase_ = GatePhase::unsure;
  // Of the row as last seen.
  RaftIndex row_move_{0};
  std::uint64_t row_epoch_ = 0;
  bool row_armed_ = false;

  std::uint64_t epoch_ = 0;  // of the freeze that keeps it closed
  RaftIndex move_{0};        // whose freeze that is, or is to be
  FreezeAttempt attempt_{0};
  bool reported_ = false;  // somebody may hold a listing that was taken under epoch_
  std::string nonce_;      // while shut
  Nanos until_{0};         // while settling or shut
};

}  // namespace narad::moves
