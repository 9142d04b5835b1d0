#pragma once
// What the log of a replica is applied to.
#include <functional>
#include <span>
#include <string>

#include "pkg/async/task.h"
#include "pkg/base/result.h"
#include "pkg/raft/types.h"

namespace narad::raftnode {

// Takes the bytes of a snapshot in order.
using SnapshotSink = std::function<Result<void>(ByteView)>;
// Writes a snapshot; runs once, inside a job, and owns what it writes.
using SnapshotWriter = std::function<Result<void>(const SnapshotSink&)>;

// All calls on the loop.
class StateMachine {
 public:
  virtual ~StateMachine() = default;
  // In order, each entry exactly once in the life of this object, all kinds. Never suspends.
  virtual void apply(std::span<const raft::Entry> entries) = 0;
  // Proposals that were not applied by now: the replica began anew after `why`, as after a crash,
  // or has stopped for good. `certain`: none of them can still be applied.
  virtual void abandoned(const Error& why, bool certain) = 0;
  // Freezes the state as applied now.
  virtual SnapshotWriter freeze() = 0;
  // Returns when a power cut leaves a state that has applied `index`. unavailable: not now.
  virtual Task<Result<void>> make_durable(raft::Index index) = 0;
  // Replaces the whole state, durably, by the snapshot in the file at `path`, whose checksum was
  // verified. data_loss: the bytes make no sense, nothing was changed.
  virtual Task<Result<void>> install(std::string path, raft::SnapshotMeta meta) = 0;
  // Role, term, leader, standing or trouble may have changed.
  virtual void status_changed() = 0;
};

}  // namespace narad::raftnode
