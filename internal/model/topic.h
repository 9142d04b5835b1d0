#pragma once
// A topic as the metastore keeps it, and its settings. Pure values.
#include <cstdint>
#include <string>
#include <vector>

#include "internal/model/names.h"

namespace narad {

enum class TopicRole : std::uint8_t { standalone, parent, child };
std::string_view to_string(TopicRole role);

inline constexpr std::int64_t kRetentionMillisMin = 3'600'000;
inline constexpr std::uint32_t kPartitionsMax = 108;

struct Topic {
  std::string name;
  Incarnation incarnation{0};
  std::uint32_t partitions = 0;
  std::int64_t retention_ms = 0;  // 0 = keep for ever
  std::int64_t visibility_timeout_ms = 0;
  std::int64_t max_in_flight_per_partition = 0;
  std::int64_t max_acked_ahead_per_partition = 0;
  std::int64_t created_at_s = 0;  // Unix seconds
  std::string owner;              // creator's username, or empty
  TopicRole role = TopicRole::standalone;
  std::vector<std::string> children;  // parents only, attach order
  std::string parent;                 // children only
  std::string attach_epoch;           // children only, 16 hex digits
  std::int64_t fanout_delay_ms = 0;   // delay children only
  friend bool operator==(const Topic&, const Topic&) = default;
};

// Where one partition lives and what is happening to it (raft-and-metastore.md). Rows already carry
// what moves need, so that formats do not change under them.
struct Assignment {
  Incarnation incarnation{0};
  std::string owner_node;
  std::string owner_disk;
  bool used = false;        // set before the first frame is written
  std::string target_node;  // empty: no move
  std::string target_disk;
  RaftIndex move_id{0};  // index of the entry that set the target
  std::uint64_t freeze_epoch = 0;
  bool freeze_armed = false;
  RaftIndex owned_by_move{0};   // the move that made the present owner the owner; 0: placement
  RaftIndex changed_at{0};      // index of the entry that last changed this row
  bool paused = false;          // its move is to wait; ends with the move
  std::uint64_t move_rate = 0;  // bytes per second that its move is held to, if any; likewise
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

}  // namespace narad
