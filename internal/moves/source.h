#pragma once
// The owner's side of moves: gates in front of commits and leases, freezes, the lease under which a
// partition that is being moved may be committed to, and what a destination copies (moves.md,
// "Fenced by the log, not by a clock"; docs/internals/moves.md, "The freeze at the source"). The
// decisions are freeze_gate.h and move_lease.h; this runs them: it follows the metastore, proposes
// arm_freeze and void_freeze, and serves the calls of SourceCalls. Lives on the node's loop.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "internal/metastore/metastore.h"
#include "internal/moves/calls.h"
#include "internal/moves/move_lease.h"
#include "internal/partition/partition.h"
#include "pkg/async/task_group.h"

namespace narad::moves {

struct SourceTiming {
  Nanos freeze_ttl = std::chrono::seconds(30);
  Nanos lease_drain = std::chrono::milliseconds(500);  // at most a quarter of the TTL
  Nanos move_lease = std::chrono::seconds(15);         // since the last answered heartbeat was sent
  Nanos barrier_deadline = std::chrono::seconds(5);
  Nanos retry = std::chrono::seconds(1);
};

// What the source needs of the partitions of its node (internal/node/source_partitions.h).
class SourcePartitions {
 public:
  virtual ~SourcePartitions() = default;
  // What the partition holds now. `settled`: behind every commit that is under way (a commit that
  // passed the gate before ends first), so that with the gate shut nothing can land behind it.
  // Opens the partition if it was used and is not open; one never used answers an empty listing.
  virtual Task<Result<wire::Listing>> list(wire::MoveRef move, bool settled) = 0;
  // Its watermark, behind every commit that is under way.
  virtual Task<Result<Offset>> settled_hwm(wire::MoveRef move) = 0;
  virtual Task<Result<std::string>> read(wire::MoveRef move, Offset base, std::uint64_t from,
                                         std::uint64_t length) = 0;
  virtual Task<Result<wire::SegmentDigests>> digests(wire::MoveRef move, Offset base) = 0;
  // Until no lease of the partition is out, at most so long; at once if it is not open.
  virtual Task<void> wait_for_leases(TopicPartition partition, Nanos at_most) = 0;
  // Long-polls of the topic look again: leases are given again, or the owner changed.
  virtual void wake(const TopicPartition& partition) = 0;
  // Closes what is open here and lives elsewhere by the applied state.
  virtual Task<void> close_elsewhere() = 0;
};

struct SourceStats {
  std::uint64_t freezes = 0;       // armed and reported
  std::uint64_t fences = 0;        // passed
  std::uint64_t voids = 0;         // freezes ended by this node
  std::uint64_t refused_gate = 0;  // commits refused because of a freeze
  std::uint64_t refused_lease = 0;
  std::uint64_t commits = 0;              // batches synced into the partitions of this node
  std::uint64_t commits_failed_late = 0;  // by the check after the sync
  std::size_t frozen = 0;                 // partitions that take no commits now
  Nanos last_frozen{0};                   // how long the last freeze lasted
};

class Source {
 public:
  // `lease`: the newest proof; nothing if no heartbeat of this process was answered. `has_peers`
  // false: a lone node, which needs no lease. References outlive this.
  Source(Env& env, std::string node_id, metastore::Proposer& metastore, bool has_peers,
         std::function<std::optional<LeaseProof>()> lease, SourceTiming timing = {});
  ~Source();  // REQUIRES: stop() has returned, or the node was killed

  void attach(SourcePartitions& partitions);  // outlives the use of this, up to stop()
  void start();                               // follows the metastore
  Task<void> stop();

  // ---- gates, asked by partitions and the local broker
  // Of the ownership that `row` shows, under which the partition is opened. It looks at the applied
  // state each time it is asked, refuses for good once that ownership is over, and must not be
  // asked after this object is gone.
  std::shared_ptr<CommitGate> gate(const TopicPartition& partition, const Assignment& row);
  // `unavailable` with the reason if no new lease may be given now, or nothing may be settled;
  // not_owner if the partition lives elsewhere.
  Result<void> may_lease(const TopicPartition& partition, Incarnation incarnation);
  Result<void> may_settle(const TopicPartition& partition, Incarnation incarnation);

  // ---- calls of a destination, the other end of SourceCalls
  Task<Result<wire::Listing>> listing(wire::MoveRef move);
  Task<Result<std::string>> chunk(wire::MoveRef move, Offset base, std::uint64_t from,
                                  std::uint64_t length);
  Task<Result<wire::SegmentDigests>> digests(wire::MoveRef move, Offset base);
  Task<Result<wire::FreezeAnswer>> freeze(wire::FreezeRequest request);

  SourceStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::moves
