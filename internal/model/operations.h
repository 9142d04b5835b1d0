#pragma once
// What an operator is told of plans and of members that are to leave: values that internal/cluster
// fills and internal/api shows. Pure.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "internal/model/names.h"
#include "pkg/base/ids.h"

namespace narad {

// ---- decommission

// Why a member cannot leave the cluster, or not yet.
enum class DrainRule : std::uint8_t {
  owns_partitions,   // they move off first
  move_target,       // partitions are on their way to it
  min_voters,        // fewer than three voters would be left
  no_live_majority,  // no more than half of the voters left would be alive
  is_leader,         // it hands leadership over first
  no_receiver,       // nobody is there to take its partitions
  dead_owner,        // it is dead, and owns partitions that hold messages
  ingress_backlog,   // messages that it took are not handed over yet
  unreachable,       // what its ingress WAL holds is not known
};
inline constexpr std::array kDrainRules{
    DrainRule::owns_partitions,  DrainRule::move_target,     DrainRule::min_voters,
    DrainRule::no_live_majority, DrainRule::is_leader,       DrainRule::no_receiver,
    DrainRule::dead_owner,       DrainRule::ingress_backlog, DrainRule::unreachable};
std::string_view to_string(DrainRule rule);

struct DrainReason {
  DrainRule rule = DrainRule::owns_partitions;
  std::string detail;     // what is so, and what ends it: for people
  bool hopeless = false;  // does not pass by itself: a request to begin is refused
  friend bool operator==(const DrainReason&, const DrainReason&) = default;
};

struct DrainVerdict {
  std::string node;
  bool draining = false;
  bool leaving = false;          // nothing can stop it any more
  std::uint64_t partitions = 0;  // that it owns
  std::uint64_t unused = 0;      // of these: never used, so that they change hands at once
  std::uint64_t inbound = 0;     // moves that end here
  std::vector<DrainReason> reasons;

  bool hopeless() const;
  bool has(DrainRule rule) const;
};

// What came of the request that a member leaves.
struct DrainOutcome {
  bool accepted = false;  // it drains; otherwise the verdict says why that would be hopeless
  bool already = false;   // and did before
  bool removed = false;   // long done: it has left the cluster
  DrainVerdict verdict;
};

// ---- stopping for a while

// Why a member should not be stopped now.
enum class StopRule : std::uint8_t {
  owns_partitions,   // nobody else has what they hold
  move_source,       // moves away from it would wait
  move_target,       // moves to it would be called off
  ingress_backlog,   // messages that it took are not handed over yet
  no_live_majority,  // no more than half of the voters would answer
  unreachable,       // what its ingress WAL holds is not known
};
inline constexpr std::array kStopRules{StopRule::owns_partitions,  StopRule::move_source,
                                       StopRule::move_target,      StopRule::ingress_backlog,
                                       StopRule::no_live_majority, StopRule::unreachable};
std::string_view to_string(StopRule rule);

struct StopReason {
  StopRule rule = StopRule::owns_partitions;
  std::string detail;  // for people
  friend bool operator==(const StopReason&, const StopReason&) = default;
};

struct StopVerdict {
  std::string node;
  std::vector<StopReason> reasons;
  bool safe() const { return reasons.empty(); }
};

// ---- quarantine

// What a node keeps aside instead of deleting it.
enum class SetAsideKind : std::uint8_t {
  partition,  // the copy of a partition that another node owns, or that made room for another copy
  staged,     // what a move that ended had copied so far
  topic,      // a whole topic directory, of a life that the metadata does not know
};
inline constexpr std::array kSetAsideKinds{SetAsideKind::partition, SetAsideKind::staged,
                                           SetAsideKind::topic};
std::string_view to_string(SetAsideKind kind);

struct SetAsideCopy {
  SetAsideKind kind = SetAsideKind::partition;
  std::string topic;                     // as far as its name says
  std::optional<PartitionId> partition;  // nothing: of a topic
  std::string disk, path;
  std::uint64_t bytes = 0;  // of all files in it
  std::string why;          // empty: not known
  UnixMillis since{0};      // 0: not known
  friend bool operator==(const SetAsideCopy&, const SetAsideCopy&) = default;
};

// ---- plans

// One step of a plan: a move, or a partition that was never used and changes hands at once.
struct PlannedMove {
  TopicPartition partition;
  std::string from, to, to_disk, reason;
  bool at_once = false;
  friend bool operator==(const PlannedMove&, const PlannedMove&) = default;
};

// A target that was taken back.
struct ClearedTarget {
  TopicPartition partition;
  std::string to, reason;
  friend bool operator==(const ClearedTarget&, const ClearedTarget&) = default;
};

struct RebalanceOutcome {
  std::vector<ClearedTarget> cleared;
  std::vector<PlannedMove> moves;
  std::uint64_t wanted = 0;  // moves that an even cluster takes, those above included
  friend bool operator==(const RebalanceOutcome&, const RebalanceOutcome&) = default;
};

// Where a partition is, or is to be.
struct PartitionPlace {
  std::string owner, owner_disk;
  std::string target, target_disk;  // empty: it stays
  RaftIndex move_id{0};
  friend bool operator==(const PartitionPlace&, const PartitionPlace&) = default;
};

// Why a partition is where it is (`narad cluster explain`).
struct ReceiverShare {
  std::string node;
  std::string standing;     // empty: takes partitions; else why not: dead, draining, leaving
  std::uint64_t owned = 0;  // settled there, or on their way there
  std::uint64_t share = 0;  // how many it is to have
  friend bool operator==(const ReceiverShare&, const ReceiverShare&) = default;
};
struct Explanation {
  TopicPartition partition;
  PartitionPlace place;
  bool used = false;
  std::string verdict;  // of the planner: moves, in_flight, at_home, …
  std::string text;     // the same in words
  std::string would_go_to;
  std::vector<ReceiverShare> members;
};

}  // namespace narad
