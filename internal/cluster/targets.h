#pragma once
// Moves that are under way, as the leader looks at them: what holds them up, and whose targets are
// to be taken back (TGT, DEC-10, DEC-12, OBS-1, OBS-2). Pure.
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "internal/cluster/planner.h"
#include "internal/metastore/command.h"
#include "internal/metastore/state.h"
#include "pkg/base/text.h"
#include "pkg/raft/configuration.h"

namespace narad::cluster {

// How long the leader has not heard of a member, on its own clock, since its own election at the
// earliest.
using Silence = std::function<Nanos(const std::string& node)>;

struct TargetRules {
  Nanos dead_target_abort_after = std::chrono::minutes(2);
};

// A target is taken back if its member
// - does not exist any more,
// - does not have the disk that the copy was to go to, and the source lives: the next plan names
//   one that it has. If the source is dead, that disk may hold the last copy,
// - is dead and has been silent for longer than the rule says: until then it may come back and
//   finish its copy,
// - is dead or drains, and is no replica of the Raft configuration: it cannot hear of its moves,
// - drains, and the source lives: it is to receive nothing. If the source is dead or gone, the
//   target may hold the last copy, and keeps its move.
// It never endangers data: the owner stays what it was.
std::vector<metastore::ClearTarget> targets_to_clear(const metastore::State& state,
                                                     const raft::Configuration& configuration,
                                                     const Silence& silence,
                                                     const TargetRules& rules);

inline constexpr Nanos kHoldAborted = std::chrono::minutes(5);
// Partitions whose move an operator aborted less than `hold` ago, by wall clocks: planning them
// again at once would make the abort a joke.
std::set<TopicPartition> held_partitions(const metastore::State& state, UnixMillis now,
                                         Nanos hold = kHoldAborted);

// Partitions whose present owner got them by a move that an operator ordered, as far as the history
// goes back (metastore::kMovesKept).
std::set<TopicPartition> pinned_partitions(const metastore::State& state);
// Node and disk from which a move was given back for lack of room less than `hold` ago.
std::set<std::pair<std::string, std::string>> full_disks(const metastore::State& state,
                                                         UnixMillis now, Nanos hold);

// Those limits, with what operators have ordered so far.
PlannerLimits with_orders(PlannerLimits limits, const metastore::State& state, UnixMillis now,
                          Nanos hold_aborted);

// A move that is under way, by its id.
struct MoveUnderWay {
  TopicPartition partition;
  RaftIndex move_id{0};
  std::string from, to;
  std::vector<std::string_view> blocks;
};
std::vector<MoveUnderWay> moves_under_way(const metastore::State& state);

}  // namespace narad::cluster
