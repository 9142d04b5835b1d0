#pragma once
// Moves as bodies: what is under way, what has ended, what an order came to (http-api 7). Pure.
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "internal/api/broker.h"
#include "internal/metastore/state.h"

namespace narad::api {

// A destination that has received nothing for so long is stalled, and no time is predicted.
inline constexpr std::uint64_t kStalledAfterMs = 30'000;
// Seconds until what is left has been copied, at the rate of now; nothing where that would be a
// guess: nothing arrives, or as much is written as arrives.
std::optional<std::uint64_t> seconds_left(const wire::MoveReport& report);
// Seconds since a byte arrived, if bytes are left and it is too long ago.
std::optional<std::uint64_t> stalled_seconds(const wire::MoveReport& report);

struct MovesShown {
  std::string topic, node;                 // only of this topic, from or to this node; empty: all
  const ReportsByNode* reports = nullptr;  // of the destinations, if they were asked
  std::optional<std::size_t> history;      // so many that have ended, the newest first
};
// `{"moves":[…]}`, with what all moves are held to if that is set, and "history" if asked for; and
// a newline.
std::string moves_body(const metastore::State& state, const MovesShown& shown);
// The destinations of the moves under way that would be shown.
std::set<std::string> destinations(const metastore::State& state, const MovesShown& shown);

// One move, under way or ended, and a newline; nothing if it is not known (any more).
std::optional<std::string> move_body(const metastore::State& state, RaftIndex move_id,
                                     const ReportsByNode& reports);
// Where a move that is under way goes; empty if it is not under way.
std::string destination_of(const metastore::State& state, RaftIndex move_id);

// Of a move whose partition takes in as much as it may fetch, or more: both in bytes a second.
struct TooSlow {
  std::uint64_t written = 0;
  std::uint64_t budget = 0;
};
// What an order came to, and a newline.
std::string start_body(const TopicPartition& partition, const metastore::StartAnswer& answer,
                       const std::optional<TooSlow>& slow);
std::string abort_body(const TopicPartition& partition, const metastore::AbortAnswer& answer);

// What each node may receive by moves: `{"set":false}`, or true with "max_bytes_per_second"; after
// an order whether it changed anything. And a newline.
std::string throttle_body(std::optional<std::uint64_t> rate, std::optional<bool> changed);
// `{"max_bytes_per_second":…}`. All errors are invalid_argument.
Result<std::uint64_t> parse_throttle(std::string body);

// What an order to hold moves back, or not to, came to: as `state` shows it; and a newline.
// REQUIRES: it was not refused.
std::string pause_body(const metastore::State& state, const metastore::PauseWish& wish,
                       const metastore::PauseAnswer& answer);

// `{"topic":…,"partition":…,"to":…[,"disk":…][,"max_bytes_per_second":…]}`. All errors are
// invalid_argument.
Result<metastore::MoveWish> parse_move_wish(std::string body);

}  // namespace narad::api
