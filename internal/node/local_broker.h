#pragma once
// What this node does with the partitions that live here: for its own clients, for clients that
// reached another node, and for the dispatchers of all nodes. Nothing here waits for messages or
// asks another node. Lives on the node's loop.
#include <optional>
#include <string>
#include <vector>

#include "internal/api/broker.h"
#include "internal/metastore/metastore.h"
#include "internal/moves/source.h"
#include "internal/node/partitions.h"

namespace narad::node {

class LocalBroker {
 public:
  // All of them outlive the broker. `moves` says what leases and settlements may do while a
  // partition is moved; null: always all.
  LocalBroker(Env& env, std::string node_id, metastore::Proposer& metastore, Partitions& partitions,
              moves::Source* moves = nullptr);

  // Leases up to `max` records of `partition`, or of any that lives here, from a rotating start. A
  // partition that is frozen for a move has nothing at the moment.
  // Errors: not_found, not_owner (pinned only), unavailable, data_loss.
  Task<Result<std::vector<api::LeasedMessage>>> consume(std::string topic, Incarnation incarnation,
                                                        std::optional<PartitionId> partition,
                                                        std::uint32_t max);
  // As api::Broker::replay.
  Task<Result<std::optional<StoredRecord>>> replay(TopicPartition id, Incarnation incarnation,
                                                   Offset offset);
  // One outcome per handle, in their order. Errors as api::Broker::settle, and not_owner.
  Task<std::vector<Result<void>>> settle(std::string topic, Incarnation incarnation,
                                         std::vector<ReceiptHandle> handles, SettleMode mode);
  // In the order of `partitions`. Errors: not_found, not_owner, unavailable.
  Task<Result<std::vector<api::PartitionStat>>> stats(std::string topic, Incarnation incarnation,
                                                      std::vector<PartitionId> partitions);
  // As dispatch::CommitTarget::commit; not_owner if the partition lives elsewhere.
  Task<Result<CommitOutcome>> commit(TopicPartition id, CommitBatch batch);

 private:
  // The row of that life of the topic, or not_found.
  Result<metastore::TopicRowPtr> row(const std::string& topic, Incarnation incarnation) const;
  Result<void> may_lease(const TopicPartition& id, Incarnation incarnation) const;
  Result<void> may_settle(const TopicPartition& id, Incarnation incarnation) const;
  Task<Result<std::vector<api::LeasedMessage>>> consume_from(TopicPartition id,
                                                             metastore::TopicRowPtr row,
                                                             std::uint32_t max,
                                                             std::uint64_t bytes_max);
  Task<Result<api::PartitionStat>> stat(TopicPartition id, metastore::TopicRowPtr row);

  Env& env_;
  std::string node_id_;
  metastore::Proposer& metastore_;
  Partitions& partitions_;
  moves::Source* const moves_;
  std::uint32_t rotation_ = 0;  // where the next unpinned consume begins
};

}  // namespace narad::node
