#pragma once
// What the HTTP handlers ask of the broker. Declared by its user (internal/api), implemented by
// internal/node. All calls are made on the node's loop and take values; results carry the error
// code that status.cpp turns into a status and the text that the client reads.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "internal/metastore/move_orders.h"
#include "internal/metastore/state.h"
#include "internal/metastore/topics.h"
#include "internal/model/message.h"
#include "internal/model/operations.h"
#include "internal/model/receipt.h"
#include "internal/wire/move_messages.h"
#include "internal/wire/operation_messages.h"
#include "pkg/async/task.h"

namespace narad::api {

// Queue read: leases up to `max` records. Fewer than `max` are returned as soon as at least one is
// there; none once `wait` has passed.
struct ConsumeRequest {
  std::string topic;
  Incarnation incarnation{0};            // of the row the handler checked
  std::optional<PartitionId> partition;  // pinned to it; otherwise any, from a rotating start
  std::uint32_t max = 1;                 // 1 to kConsumeMax
  Nanos wait{0};                         // long-poll budget, already clamped
  bool local_only = false;               // only partitions of this node, never waits
};

struct LeasedMessage {
  StoredRecord record;
  ReceiptHandle handle;  // carries the partition
};

struct ReplayRequest {
  std::string topic;
  Incarnation incarnation{0};
  PartitionId partition{0};
  Offset offset{0};
};

struct PartitionStat {
  PartitionId index{0};
  std::uint64_t segments = 0;
  Offset oldest_offset{0};
  Offset next_offset{0};
  Offset high_watermark{0};
  std::uint64_t size_bytes = 0;
  std::int64_t oldest_segment_at_s = 0;  // Unix seconds; 0 = unknown, left out of the answer
  std::string owner_node;                // empty: left out
};

struct Readiness {
  bool ready = false;
  bool shutting_down = false;
  std::vector<std::string> waiting_for;  // why not ready, in words
};

// Who does what in the cluster, as this node knows it.
struct ClusterInfo {
  std::string leader;                        // node id; empty: none known
  std::map<std::string, std::string> roles;  // by node: "leader", "voter", "non-voter"
};

// By node: the moves that it works on as their destination, or why it did not say. `unreachable` if
// it did not answer in time.
using ReportsByNode = std::map<std::string, Result<wire::MoveReports>>;

// By node: what it keeps in quarantine, or why it did not say, as above.
using QuarantineByNode = std::map<std::string, Result<wire::SetAsideCopies>>;

class Broker {
 public:
  virtual ~Broker() = default;

  // The state that this node has applied.
  virtual metastore::ViewPtr view() const = 0;

  // Waits until view() shows all that was answered as done anywhere before this call, or until it
  // cannot be had soon (about a second): then what is known here has to do.
  virtual Task<void> catch_up() { co_return; }

  // ---- topics. Durable and visible in view() when they answer.
  // Errors: exists, unavailable, unknown_outcome.
  virtual Task<Result<Topic>> create_topic(metastore::TopicSpec spec) = 0;
  // Errors: not_found, invalid_argument (partitions not growing), conflict.
  virtual Task<Result<Topic>> alter_topic(std::string name, metastore::TopicPatch patch) = 0;
  // Metadata is gone and the local data set aside when it answers. Errors: not_found.
  virtual Task<Result<void>> delete_topic(std::string name) = 0;
  // Errors: not_found, conflict (`version` is not the newest + 1 any more).
  virtual Task<Result<void>> put_schema(std::string name, Incarnation incarnation,
                                        std::uint32_t version, std::string schema) = 0;
  // One entry per assigned partition (or just `partition`), ascending. Zero-valued entries, one per
  // partition, if nothing is assigned. Errors: not_found, not_owner, unavailable.
  virtual Task<Result<std::vector<PartitionStat>>> partition_stats(
      std::string topic, std::optional<PartitionId> partition) = 0;

  // ---- messages.
  // Durable in this node's ingress WAL when they answer ok; a batch is all or nothing. Errors:
  // unavailable (disk full or failing, backlog over its limit, shutting down).
  virtual Task<Result<void>> produce(MessagePtr message) = 0;
  virtual Task<Result<void>> produce_batch(std::vector<MessagePtr> messages) = 0;
  // Empty: nothing within the wait. Errors: not_found, not_owner, unavailable, data_loss.
  virtual Task<Result<std::vector<LeasedMessage>>> consume(ConsumeRequest request) = 0;
  // Nothing at or past the high watermark. Errors: not_found, gone (below the oldest, or
  // unreadable), not_owner, unavailable.
  virtual Task<Result<std::optional<StoredRecord>>> replay(ReplayRequest request) = 0;
  // Errors: gone (no live lease with that nonce), unavailable (acked-ahead window full).
  virtual Task<Result<void>> settle(std::string topic, Incarnation incarnation,
                                    ReceiptHandle handle, SettleMode mode) = 0;
  // One outcome per handle, in their order.
  virtual Task<std::vector<Result<void>>> settle_batch(std::string topic, Incarnation incarnation,
                                                       std::vector<ReceiptHandle> handles,
                                                       SettleMode mode) = 0;

  // ---- moves: as metastore/move_orders.h has them.
  virtual Task<Result<metastore::StartAnswer>> start_move(metastore::MoveWish wish) = 0;
  virtual Task<Result<metastore::AbortAnswer>> abort_move(metastore::AbortWish wish,
                                                          std::string why) = 0;
  virtual Task<Result<metastore::RateAnswer>> set_move_rate(
      std::optional<std::uint64_t> bytes_per_second) = 0;
  virtual Task<Result<metastore::PauseAnswer>> pause_moves(metastore::PauseWish wish) = 0;
  // Bytes per second that were written into the partition lately, as its owner has it; nothing if
  // it does not say so within `deadline`.
  virtual Task<std::optional<std::uint64_t>> write_rate(TopicPartition partition,
                                                        Nanos deadline) = 0;
  // Asks all of `nodes` at once, and takes no longer than `deadline`.
  virtual Task<ReportsByNode> move_reports(std::vector<std::string> nodes, Nanos deadline) = 0;

  virtual Task<QuarantineByNode> quarantine(std::vector<std::string> nodes, Nanos deadline) = 0;

  // ---- members and plans: as cluster/operations.h has them.
  // What each draining member waits for, by id, as far as it can be had within about two seconds.
  virtual Task<std::vector<DrainVerdict>> drains() = 0;
  virtual Task<Result<DrainVerdict>> drain_verdict(std::string node, bool wal_lost) = 0;
  virtual Task<Result<DrainOutcome>> decommission(std::string node, bool wal_lost) = 0;
  virtual Task<Result<>> cancel_decommission(std::string node) = 0;
  virtual Task<Result<StopVerdict>> safe_to_stop(std::string node) = 0;
  virtual Task<Result<RebalanceOutcome>> rebalance(bool dry_run) = 0;
  virtual Task<Result<Explanation>> explain(TopicPartition partition) = 0;

  virtual Readiness readiness() const = 0;
  virtual ClusterInfo cluster_info() const { return {}; }
};

}  // namespace narad::api
