#pragma once
// Which partitions should move where: the smallest set of moves that evens out how many partitions
// each node owns and empties the nodes that drain. Pure: the same state gives the same plan, and a
// plan that is under way is never undone by the next one.
//
// With T movable partitions over R receivers (members that are alive and neither drain nor leave)
// each receiver's share is floor(T/R) or ceil(T/R); the nodes that hold most keep the larger
// shares. A partition that is on its way counts where it goes and is left alone; one whose owner is
// dead does not count at all, unless that owner drains and the partition was never used: there is
// nothing of it to be copied (moves.md, "Planner and controller"; PLN, DEC).
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "internal/metastore/command.h"
#include "internal/metastore/state.h"

namespace narad::cluster {

// Reasons that the planner gives its moves.
inline constexpr std::string_view kDraining = "draining";
inline constexpr std::string_view kJoined = "joined";

struct PlannerLimits {
  std::size_t in_flight_max = 8;  // moves, of the whole cluster
  // Partitions that were never used and change hands at once: in one plan. They are no moves, and
  // take no place of one.
  std::size_t unused_max = 256;
  // Partitions that an operator's abort keeps where they are for a while.
  std::set<TopicPartition> held{};
  // Partitions that an operator has put where they are: they go only if their owner drains.
  std::set<TopicPartition> pinned{};
  // Disks (of a node) that had no room for a partition a short while ago: they get none.
  std::set<std::pair<std::string, std::string>> full{};
};

// Why a partition stays, or what is done about it.
enum class Verdict : std::uint8_t {
  moves,         // part of this plan
  in_flight,     // is moving already
  at_home,       // its owner has no more than its share
  waits,         // would move, but enough others are moving
  pinned,        // an operator has put it there
  held,          // an operator aborted its last move a short while ago
  dead_owner,    // its owner is dead: nobody can copy it now
  disk_missing,  // its owner does not have the disk that it lies on: nobody can copy it now
  no_receiver,   // there is nobody to take it
  no_room,       // nobody who could take it has room for more
  unassigned,    // nobody owns it: placement, not a move
};
std::string_view to_string(Verdict verdict);

struct Explained {
  TopicPartition partition;
  Verdict verdict = Verdict::at_home;
  std::string to{};  // where it would go: of moves and waits
};

// A member that takes partitions: what it has (on its way included) before this plan, and should
// have.
struct Share {
  std::string node;
  std::size_t owned = 0;
  std::size_t share = 0;
};

struct MovePlan {
  std::vector<metastore::SetTarget> moves;  // at most what the limits leave room for
  std::size_t wanted = 0;                   // moves that would be made without limits
  std::size_t given = 0;                    // of `moves`, never used: they change hands at once
  std::vector<Explained> explained;         // every partition, in order
  std::vector<Share> shares;                // by node id
};

MovePlan plan_moves(const metastore::State& state, const PlannerLimits& limits = {});

}  // namespace narad::cluster
