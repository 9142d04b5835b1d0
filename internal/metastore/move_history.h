#pragma once
// Keeps State::moves as entries are applied: private to apply(). Nothing is decided by it.
#include <string>

#include "internal/metastore/state.h"

namespace narad::metastore {

// The entry `index` gave the partition of `row` a target; `row` is as it stands now, or, if it was
// given at once, as it stood before (`to_*` say where it went).
struct MoveStart {
  RaftIndex index{0};
  std::string topic;
  PartitionId partition{0};
  std::string to_node, to_disk;
  std::string reason;
  UnixMillis now{0};
};
void begin_move_record(State& state, const Assignment& before, MoveStart start);

struct MoveEnd {
  RaftIndex index{0};
  MoveOutcome outcome = MoveOutcome::cleared;
  UnixMillis now{0};
  std::string why;
  std::string receipt;  // left out if it is longer than kReceiptBytesMax
};
// Does nothing if no record of that move is running.
void end_move_record(State& state, RaftIndex move_id, MoveEnd end);

// All that ran in a topic ended with it. `row` is what it was.
void end_move_records(State& state, const TopicRow& row, RaftIndex index);

}  // namespace narad::metastore
