#pragma once
// What the owner's side of moves (internal/moves/source.h) sees of this node's partitions: listings
// in an order in which nothing is ahead of what is listed after it, committed bytes, digests. Lives
// on the node's loop.
#include <string>

#include "internal/moves/source.h"
#include "internal/node/partitions.h"

namespace narad::node {

class SourcePartitions final : public moves::SourcePartitions {
 public:
  // References outlive this.
  SourcePartitions(Env& env, Partitions& partitions, metastore::Proposer& metastore)
      : env_(env), partitions_(partitions), metastore_(metastore) {}

  // Errors: as Partitions::open, and unavailable for what the disk says.
  Task<Result<wire::Listing>> list(wire::MoveRef move, bool settled) override;
  Task<Result<Offset>> settled_hwm(wire::MoveRef move) override;
  // not_found: the segment is gone (retention); invalid_argument: `from` is beyond what is
  // committed.
  Task<Result<std::string>> read(wire::MoveRef move, Offset base, std::uint64_t from,
                                 std::uint64_t length) override;
  Task<Result<wire::SegmentDigests>> digests(wire::MoveRef move, Offset base) override;
  Task<void> wait_for_leases(TopicPartition partition, Nanos at_most) override;
  void wake(const TopicPartition& partition) override { partitions_.wake_topic(partition.topic); }
  Task<void> close_elsewhere() override { (void)co_await partitions_.close_elsewhere(); }

 private:
  Task<Result<Pin>> open(wire::MoveRef move);

  Env& env_;
  Partitions& partitions_;
  metastore::Proposer& metastore_;
};

}  // namespace narad::node
