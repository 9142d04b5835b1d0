#include "pkg/raft/progress.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad::raft {

namespace {
// Heartbeats a replica may answer while something is outstanding before it is sent again: soon when
// the answers show that it never arrived, late when a slow disk may be the reason.
constexpr int kBeatsShortMax = 2;
constexpr int kBeatsWaitingMax = 20;
}  // namespace

bool Progress::may_append(const FlowLimits& limits) const {
  switch (state_) {
    case State::probe:
      return !probe_sent_;
    case State::replicate:
      // A single entry above the limit goes alone.
      return inflight_.empty() || (inflight_bytes_ < limits.inflight_bytes_max &&
                                   inflight_.size() < limits.inflight_messages_max);
    case State::snapshot:
      return false;
  }
  return false;
}

void Progress::sent(Index last, std::uint64_t bytes) {
  NARAD_ASSERT(last.next() >= next_, "an append begins at the next entry");
  if (state_ == State::probe) {
    probe_sent_ = true;
    beats_waiting_ = 0;
    beats_short_ = 0;
    return;
  }
  if (last < next_) return;
  if (inflight_.empty()) beats_waiting_ = 0;
  beats_short_ = 0;
  inflight_.push_back({last, bytes});
  inflight_bytes_ += bytes;
  next_ = last.next();
}

bool Progress::matched(Index index) {
  bool news = index > match_;
  if (news) match_ = index;
  next_ = std::max(next_, match_.next());
  while (!inflight_.empty() && inflight_.front().last <= match_) {
    inflight_bytes_ -= inflight_.front().bytes;
    inflight_.pop_front();
  }
  if (news) beats_waiting_ = 0;
  if (state_ == State::probe && index.next() >= next_) {
    state_ = State::replicate;
    probe_sent_ = false;
  }
  return news;
}

bool Progress::refused(Index refused, Index retry) {
  if (state_ == State::snapshot || refused <= match_) return false;
  if (state_ == State::probe && refused.next() != next_) return false;
  become_probe(std::max(match_.next(), std::min(refused, retry.next())));
  return true;
}

bool Progress::heard(Index received) {
  bool waiting = state_ == State::replicate ? !inflight_.empty() : true;
  if (state_ == State::probe && !probe_sent_) return true;
  if (!waiting) return false;
  ++beats_waiting_;
  bool arrived = state_ == State::replicate && received.next() >= next_;
  beats_short_ = arrived ? 0 : beats_short_ + 1;
  if (beats_short_ < kBeatsShortMax && beats_waiting_ < kBeatsWaitingMax) return false;
  beats_waiting_ = 0;
  beats_short_ = 0;
  if (state_ != State::snapshot) become_probe(match_.next());
  return true;
}

void Progress::become_probe(Index next) {
  state_ = State::probe;
  probe_sent_ = false;
  inflight_.clear();
  inflight_bytes_ = 0;
  next_ = next;
}

void Progress::become_snapshot(std::shared_ptr<const SnapshotMeta> snapshot) {
  become_probe(next_);
  state_ = State::snapshot;
  snapshot_ = std::move(snapshot);
  snapshot_offset_ = 0;
  beats_waiting_ = 0;
  beats_short_ = 0;
}

bool Progress::chunk_answered(std::uint64_t answered, std::uint64_t next_offset) {
  if (state_ != State::snapshot || answered != snapshot_offset_) return false;
  if (next_offset > snapshot_->size_bytes) return false;
  beats_waiting_ = 0;
  beats_short_ = 0;
  bool at_end = next_offset == snapshot_offset_;
  snapshot_offset_ = next_offset;
  // Answered at the same place: damaged on the way (the clock of heartbeats sends it again), or
  // whole and being installed.
  return !at_end && next_offset < snapshot_->size_bytes;
}

void Progress::restart_snapshot() {
  if (state_ == State::snapshot) snapshot_offset_ = 0;
}

void Progress::leave_snapshot() {
  snapshot_.reset();
  snapshot_offset_ = 0;
  become_probe(match_.next());
}

}  // namespace narad::raft
