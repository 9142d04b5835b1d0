#pragma once
// Moves as operators deal with them: how each side of one stands, what an order to move a partition
// comes to, and whether an abort took effect (ABT, OBS-1, OBS-2). Pure: the waiting is in
// move_orders.h.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "internal/metastore/command.h"
#include "internal/metastore/state.h"

namespace narad::metastore {

// "alive", "dead", "draining" (and alive), "not_a_member".
std::string_view standing_of(const State& state, std::string_view node);

// What keeps a move from getting on, as far as the state says: "source_dead" (dead, or no member
// any more), "target_dead", "target_not_member". REQUIRES: a move is under way.
std::vector<std::string_view> blocks_of(const State& state, const Assignment& move);

// What makes the move wait: "move" (it was paused by itself), "source", "target" (all moves of that
// node were), "cluster" (all were). REQUIRES: a move is under way.
std::vector<std::string_view> pauses_of(const State& state, const Assignment& move);

// Why an order is refused: one word for programs, a sentence for people.
struct OrderRefusal {
  Errc code = Errc::conflict;  // or not_found
  std::string rule;
  std::string detail;
};

// The reason of a move that an operator ordered. The partition is pinned by it: nothing but a drain
// of its new owner moves it on.
inline constexpr std::string_view kByOperator = "operator";

// How the reason of a clearing begins when the destination gave the move back: its disk has no room
// for the partition. What it lacked follows.
inline constexpr std::string_view kTargetFull = "target_full: ";

// ---- start

struct MoveWish {
  TopicPartition partition;
  std::string to;    // node
  std::string disk;  // empty: the one of the node's disks that has the fewest partitions
  std::uint64_t max_bytes_per_second = 0;  // of this move, besides the throttle of all; 0: none
};

enum class StartFate : std::uint8_t { start, there, on_its_way, refused };
struct StartVerdict {
  StartFate fate = StartFate::refused;
  OrderRefusal refusal;  // refused
  SetTarget order;       // start; without the time
  Assignment row;        // as it stands; empty if there is no such partition
};
// A running move to another place is replaced, which is one entry.
StartVerdict judge_start(const State& state, const MoveWish& wish);

// ---- abort

// How the reason begins that an operator's abort leaves in the history; who it was follows.
inline constexpr std::string_view kAbortedBy = "aborted by ";

struct AbortWish {
  TopicPartition partition;
  std::optional<std::string> target;  // only if it moves there
};
struct AbortVerdict {
  std::optional<OrderRefusal> refusal;
  ClearTarget order;  // without time and reason
  Assignment row;     // as it stands; empty if there is no such partition
};
AbortVerdict judge_abort(const State& state, const AbortWish& wish);

// What became of the move that `read` shows, by the row as the leader has it now.
enum class AbortFate : std::uint8_t {
  aborted,    // the owner is the one it was, and that target is no longer set: for good
  moved,      // the partition has another owner, or a later ownership of the same one
  under_way,  // the very move is still there
  set_again,  // it is gone, and a later move goes to the same node
  gone,       // there is no such partition in this life of the topic
};
// REQUIRES: a move is under way in `read`.
AbortFate judge_aborted(const State& now, const TopicPartition& partition, const Assignment& read);

// ---- pause and resume

struct PauseWish {
  std::optional<TopicPartition> partition;  // the move of this one
  std::string node;                         // or what moves from or to this one; neither: all
  bool pause = false;                       // or resume
};
struct PauseVerdict {
  std::optional<OrderRefusal> refusal;
  bool holds = false;  // it is so already
  Command order;       // a PauseMove or PauseMoves; if neither refused nor so already
  Assignment row;      // of a partition, as it stands
};
PauseVerdict judge_pause(const State& state, const PauseWish& wish);

}  // namespace narad::metastore
