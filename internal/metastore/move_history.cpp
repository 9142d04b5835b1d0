#include "internal/metastore/move_history.h"

#include <utility>

namespace narad::metastore {
namespace {

void put(State& state, MoveRecord record) {
  state.moves.put(std::make_shared<const MoveRecord>(std::move(record)));
}

// One that has ended rather than one that runs.
void forget_oldest(State& state) {
  if (state.moves.size() <= kMovesKept) return;
  std::string oldest = state.moves.after("", 1).front()->id;
  for (const auto& record : state.moves.after("", kMovesKept)) {
    if (record->outcome == MoveOutcome::running) continue;
    oldest = record->id;
    break;
  }
  state.moves.erase(oldest);
}

}  // namespace

void begin_move_record(State& state, const Assignment& before, MoveStart start) {
  if (before.move_id != RaftIndex(0)) {
    MoveEnd replaced;
    replaced.index = start.index;
    replaced.outcome = MoveOutcome::replaced;
    replaced.now = start.now;
    end_move_record(state, before.move_id, std::move(replaced));
  }
  MoveRecord record;
  record.id = move_key(start.index);
  record.move_id = start.index;
  record.topic = std::move(start.topic);
  record.incarnation = before.incarnation;
  record.partition = start.partition;
  record.from_node = before.owner_node;
  record.from_disk = before.owner_disk;
  record.to_node = std::move(start.to_node);
  record.to_disk = std::move(start.to_disk);
  record.reason = std::move(start.reason);
  record.started = start.now;
  put(state, std::move(record));
  forget_oldest(state);
}

void end_move_record(State& state, RaftIndex move_id, MoveEnd end) {
  const MoveRecord* old = state.moves.find(move_key(move_id));
  if (old == nullptr || old->outcome != MoveOutcome::running) return;
  MoveRecord record = *old;
  record.outcome = end.outcome;
  record.ended_at = end.index;
  record.ended = end.now;
  record.why = std::move(end.why);
  if (end.receipt.size() <= kReceiptBytesMax) record.receipt = std::move(end.receipt);
  put(state, std::move(record));
}

void end_move_records(State& state, const TopicRow& row, RaftIndex index) {
  for (const Assignment& a : row.assignments) {
    if (a.move_id == RaftIndex(0)) continue;
    MoveEnd end;
    end.index = index;
    end.outcome = MoveOutcome::topic_deleted;
    end_move_record(state, a.move_id, std::move(end));
  }
}

}  // namespace narad::metastore
