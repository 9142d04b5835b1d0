#pragma once
// The orders that an operator gives about moves, on top of any Proposer, at any node: start one,
// abort one, hold them back. What they come to is decided in move_rules.h. Each looks behind a
// barrier first, so that it acts on what the leader has and not on what this node has heard of so
// far.
#include <optional>
#include <string>

#include "internal/metastore/metastore.h"
#include "internal/metastore/move_rules.h"

namespace narad::metastore {

// How long the leader may take to confirm what is read here.
inline constexpr Nanos kOrderBarrier = std::chrono::seconds(2);

enum class StartOutcome : std::uint8_t {
  started,
  given,       // it was never used: there was nothing to copy, and it is there now
  there,       // already; nothing was changed
  on_its_way,  // already; nothing was changed
  refused,
};
struct StartAnswer {
  StartOutcome outcome = StartOutcome::refused;
  OrderRefusal refusal;
  RaftIndex move_id{0};  // started, given, on_its_way
  Assignment before;     // as it was judged
  Assignment now;        // and as it stands
};
// Errors: not_found (topic, partition or member); unavailable (nothing was changed);
// unknown_outcome.
Task<Result<StartAnswer>> start_move(Env& env, Proposer& proposer, MoveWish wish);

struct AbortAnswer {
  bool aborted = false;
  OrderRefusal refusal;  // why not
  Assignment read;       // what was to be aborted; without a target if there was none
  Assignment now;        // as the leader has it
};
// Clears the target as it was read, and reads the outcome back from the leader (ABT-2, ABT-6,
// ABT-7): `aborted` is true exactly if the owner is the one it was and that target is no longer
// set. `why` goes to the history. Errors: not_found; unavailable (nothing was changed);
// unknown_outcome (it may or may not be aborted, or may yet be: ABT-9).
Task<Result<AbortAnswer>> abort_move(Env& env, Proposer& proposer, AbortWish wish, std::string why);

// What holds moves back, as it stands after an order.
struct RateAnswer {
  bool changed = false;
  std::optional<std::uint64_t> now;  // State::move_rate
};
// Puts what each node may receive by moves, whatever stood before. Errors: invalid_argument;
// unavailable (nothing was changed); unknown_outcome.
Task<Result<RateAnswer>> set_move_rate(Proposer& proposer, std::optional<std::uint64_t> rate);

struct PauseAnswer {
  bool changed = false;
  std::optional<OrderRefusal> refusal;  // of one move; then nothing was changed
  Assignment now;                       // of a partition: as it stands
};
// Holds moves back, or lets them go on. Errors: not_found (topic, partition or member); unavailable
// (nothing was changed); unknown_outcome.
Task<Result<PauseAnswer>> pause_moves(Proposer& proposer, PauseWish wish);

}  // namespace narad::metastore
