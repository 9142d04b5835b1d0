#pragma once
// The stale-copy sweep of a node: finds partition directories that this node does not own any more,
// asks the owner, and reclaims or sets aside (sweep_rules.h). Runs with every 30th tick of the move
// runner. Lives on the node's loop.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "internal/metastore/metastore.h"
#include "internal/moves/calls.h"
#include "internal/moves/sweep_rules.h"
#include "pkg/async/event.h"

namespace narad::moves {

// A partition directory of this node, of the life of its topic that the metastore shows, whose
// partition another node owns and that is not on its way back here. It may be of a partition that
// was never used: made for a first record whose MarkUsed came to nothing.
struct StaleCopy {
  TopicPartition partition;
  Incarnation incarnation{0};
  std::string disk_id;
  std::string directory;
  std::string owner;  // by the state that was looked at
  bool used = true;   // likewise
};

// What the sweep needs of the node's disks and partitions. Both acts run under the topic's lock
// with the partition closed, and are refused (conflict) unless the applied state still shows the
// incarnation, the owner and the use of `copy`, no target here, and the directory carries that
// incarnation (SWP-10 to SWP-13).
class SweepPlace {
 public:
  virtual ~SweepPlace() = default;
  virtual Task<Result<std::vector<StaleCopy>>> stale_copies() = 0;
  virtual Task<Result<LocalCopy>> inspect(StaleCopy copy) = 0;
  // Deletes it if it still ends where `seen` does. REQUIRES (proof): judge_stale_copy() answered
  // `reclaim` for `seen` and what the owner listed, and a barrier made after that listing has
  // shown the same owner; or judge_unused_copy() did, and a barrier made after that look has shown
  // that the partition is another node's and still not used.
  virtual Task<Result<void>> reclaim(StaleCopy copy, LocalCopy seen) = 0;
  // Answers where it is now.
  virtual Task<Result<std::string>> set_aside(StaleCopy copy, std::string why) = 0;
  virtual bool clock_trusted() const = 0;
};

struct SweepStats {
  std::uint64_t sweeps = 0, reclaimed = 0, quarantined = 0, deferred = 0;
};

class Sweep {
 public:
  static constexpr std::uint64_t kTicks = 30;

  // References outlive this.
  Sweep(Env& env, std::string node_id, metastore::Proposer& metastore, SourceCalls& owners,
        SweepPlace& place);

  // One look at every stale copy. Errors: what kept it from finding them.
  Task<Result<void>> run();
  // Counts a tick of the runner; true with every 30th (RUN-8).
  bool tick() { return ++ticks_ % kTicks == 0; }
  SweepStats stats() const { return stats_; }

 private:
  Task<void> look_at(StaleCopy copy);
  Task<Judgement> judge(StaleCopy copy, LocalCopy& seen);
  Task<Judgement> judge_by_owner(StaleCopy copy, LocalCopy& seen);
  SweepTerms terms(const StaleCopy& copy) const;

  Env& env_;
  const std::string node_id_;
  metastore::Proposer& metastore_;
  SourceCalls& owners_;
  SweepPlace& place_;
  std::map<TopicPartition, std::string> told_;  // why it waits, as it was logged
  SweepStats stats_;
  std::uint64_t ticks_ = 0;
};

}  // namespace narad::moves
