#pragma once
// What a leader knows of one other replica, and how fast it may send to it. A state machine of
// three states, without messages: the core asks may_append() and tells what was sent and answered.
//
//   probe      the matching position is being looked for: one append at a time
//   replicate  appends go ahead of their answers, up to a number of bytes and messages
//   snapshot   the log it needs is gone: chunks of a snapshot go instead
#include <cstdint>
#include <deque>
#include <memory>

#include "pkg/raft/types.h"

namespace narad::raft {

struct FlowLimits {
  std::uint64_t inflight_bytes_max;
  std::size_t inflight_messages_max;
};

class Progress {
 public:
  enum class State : std::uint8_t { probe, replicate, snapshot };

  explicit Progress(Index next) : next_(next) {}

  State state() const { return state_; }
  Index match() const { return match_; }  // durable there, and equal to the leader's log
  Index next() const { return next_; }    // the next entry to send
  std::uint64_t inflight_bytes() const { return inflight_bytes_; }
  const std::shared_ptr<const SnapshotMeta>& snapshot() const { return snapshot_; }
  std::uint64_t snapshot_offset() const { return snapshot_offset_; }

  bool may_append(const FlowLimits& limits) const;
  // REQUIRES: may_append. `last` and `bytes` describe the entries sent (none: last == next - 1).
  void sent(Index last, std::uint64_t bytes);

  // The replica holds everything up to `index`. True if that is news.
  bool matched(Index index);
  // It refused an append after `refused`; `retry` is the highest position that may match. True if
  // the answer belongs to what is outstanding and a new attempt should go out.
  bool refused(Index refused, Index retry);

  // A heartbeat was answered; the replica had received entries up to `received` by then. True if
  // something seems lost and should be sent again.
  bool heard(Index received);

  void become_snapshot(std::shared_ptr<const SnapshotMeta> snapshot);
  // The outstanding chunk at `answered` was answered. True if the next one should go out.
  bool chunk_answered(std::uint64_t answered, std::uint64_t next_offset);
  void restart_snapshot();
  // The snapshot is in place, or cannot be had: look for the matching position again.
  void leave_snapshot();

  // The highest commit index it was told.
  Index commit_sent() const { return commit_sent_; }
  void told_commit(Index commit) { commit_sent_ = commit; }

  // Has answered anything since the last clear_active(), for check-quorum.
  bool active() const { return active_; }
  void mark_active() { active_ = true; }
  void clear_active() { active_ = false; }

  // The last read round it has confirmed.
  std::uint64_t round() const { return round_; }
  void confirm_round(std::uint64_t round) { round_ = round > round_ ? round : round_; }

  // Ticks that a removed replica is still served, so that it learns of its removal; < 0: a member.
  int departing_ticks = -1;

 private:
  void become_probe(Index next);

  struct Flight {
    Index last;
    std::uint64_t bytes;
  };
  State state_ = State::probe;
  Index match_;
  Index next_;
  Index commit_sent_;
  bool probe_sent_ = false;
  bool active_ = false;
  int beats_waiting_ = 0;  // heartbeats answered since anything outstanding moved
  int beats_short_ = 0;    // of these, consecutive ones that showed less than was sent
  std::deque<Flight> inflight_;
  std::uint64_t inflight_bytes_ = 0;
  std::uint64_t round_ = 0;
  std::shared_ptr<const SnapshotMeta> snapshot_;
  std::uint64_t snapshot_offset_ = 0;
};

}  // namespace narad::raft
