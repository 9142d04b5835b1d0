#pragma once
// The broker as clients of this node see it: what the HTTP handlers ask (api::Broker) and where the
// dispatcher hands records over (dispatch::CommitTarget). Decides by the applied state where a
// partition lives, and asks this node's own partitions or the node that owns them. Lives on the
// node's loop.
#include <functional>
#include <memory>
#include <string>

#include "internal/api/broker.h"
#include "internal/cluster/operations.h"
#include "internal/cluster/rounds.h"
#include "internal/dispatch/target.h"
#include "internal/ingress/ingress.h"
#include "internal/metastore/metastore.h"
#include "internal/node/drain.h"
#include "internal/node/local_broker.h"
#include "internal/node/move_reports.h"
#include "internal/node/partitions.h"
#include "internal/node/remote_owners.h"
#include "internal/node/wakes.h"
#include "pkg/async/timeout.h"

namespace narad::node {

class Broker final : public api::Broker, public dispatch::CommitTarget {
 public:
  // All of them outlive the broker. `remote` and `wakes` are null on a node without peers.
  struct Parts {
    cluster::Operations& operations;
    metastore::Proposer& metastore;
    ingress::Ingress& ingress;
    Partitions& partitions;
    LocalBroker& local;
    RemoteOwners* remote = nullptr;
    Wakes* wakes = nullptr;
    Drain* drain = nullptr;                               // null: never refuses
    std::function<api::ClusterInfo()> cluster_info = {};  // empty: this node is all there is
    peer::Caller* peers = nullptr;
    std::function<wire::MoveReports()> own_moves = {};  // that this node works on; empty: none
    // What it keeps aside; empty: not known.
    std::function<Task<Result<wire::SetAsideCopies>>()> own_quarantine = {};
  };
  Broker(Env& env, std::string node_id, Parts parts, std::function<api::Readiness()> readiness);

  // ---- api::Broker
  metastore::ViewPtr view() const override;
  Task<void> catch_up() override;
  Task<Result<Topic>> create_topic(metastore::TopicSpec spec) override;
  Task<Result<Topic>> alter_topic(std::string name, metastore::TopicPatch patch) override;
  Task<Result<void>> delete_topic(std::string name) override;
  Task<Result<void>> put_schema(std::string name, Incarnation incarnation, std::uint32_t version,
                                std::string schema) override;
  Task<Result<std::vector<api::PartitionStat>>> partition_stats(
      std::string topic, std::optional<PartitionId> partition) override;
  Task<Result<void>> produce(MessagePtr message) override;
  Task<Result<void>> produce_batch(std::vector<MessagePtr> messages) override;
  Task<Result<std::vector<api::LeasedMessage>>> consume(api::ConsumeRequest request) override;
  Task<Result<std::optional<StoredRecord>>> replay(api::ReplayRequest request) override;
  Task<Result<void>> settle(std::string topic, Incarnation incarnation, ReceiptHandle handle,
                            SettleMode mode) override;
  Task<std::vector<Result<void>>> settle_batch(std::string topic, Incarnation incarnation,
                                               std::vector<ReceiptHandle> handles,
                                               SettleMode mode) override;
  Task<Result<metastore::StartAnswer>> start_move(metastore::MoveWish wish) override;
  Task<Result<metastore::RateAnswer>> set_move_rate(
      std::optional<std::uint64_t> bytes_per_second) override;
  Task<Result<metastore::PauseAnswer>> pause_moves(metastore::PauseWish wish) override;
  Task<Result<metastore::AbortAnswer>> abort_move(metastore::AbortWish wish,
                                                  std::string why) override;
  Task<std::optional<std::uint64_t>> write_rate(TopicPartition partition, Nanos deadline) override;
  Task<api::ReportsByNode> move_reports(std::vector<std::string> nodes, Nanos deadline) override;
  Task<api::QuarantineByNode> quarantine(std::vector<std::string> nodes, Nanos deadline) override;
  Task<std::vector<DrainVerdict>> drains() override;
  Task<Result<DrainVerdict>> drain_verdict(std::string node, bool wal_lost) override;
  Task<Result<DrainOutcome>> decommission(std::string node, bool wal_lost) override;
  Task<Result<>> cancel_decommission(std::string node) override;
  Task<Result<StopVerdict>> safe_to_stop(std::string node) override;
  Task<Result<RebalanceOutcome>> rebalance(bool dry_run) override;
  Task<Result<Explanation>> explain(TopicPartition partition) override;
  api::Readiness readiness() const override;
  api::ClusterInfo cluster_info() const override;

  // Answers every waiting consume with what there is, now and from now on: the node is stopping.
  void end_waits();
  // After the last call. Idempotent.
  Task<void> stop();

  // ---- dispatch::CommitTarget
  dispatch::Route route(const TopicPartition& partition, Incarnation incarnation) const override;
  Task<Result<CommitOutcome>> commit(TopicPartition partition, CommitBatch batch) override;
  Task<Result<bool>> confirm_gone(std::string topic, Incarnation incarnation) override;
  Event& routing_changed() override;

 private:
  using Messages = std::vector<api::LeasedMessage>;
  // The row of that life of the topic, or not_found.
  Result<metastore::TopicRowPtr> row(const std::string& topic, Incarnation incarnation) const;
  // Who owns the partition and may be asked: this node's id, another one's; or not_owner (nobody,
  // or no way to ask), owner_down (known dead).
  Result<std::string> owner_of(const metastore::TopicRow& row, PartitionId partition) const;
  bool is_alive(const std::string& node) const;
  // unavailable if this node is to take no messages any more.
  Result<Drain::Admitted> admit();
  // The live nodes other than this one with used partitions of the topic.
  std::vector<std::string> owners_elsewhere(const metastore::TopicRow& row) const;

  // An answer, and whether it only says that whoever was asked is not the owner. The nodes see a
  // new owner one after the other, so that is asked again for a while.
  template <class T>
  struct Routed {
    Result<T> result;
    bool elsewhere = false;
  };
  // Waits a little for the next attempt; false once it has taken too long.
  Task<Result<wire::SetAsideCopies>> quarantine_of(std::string node, Nanos deadline);
  Task<bool> ask_again(Deadline patience);
  Deadline patience() const;

  Task<Result<Messages>> look(const api::ConsumeRequest& request,
                              delivery::Waiters::Ticket& ticket);
  Task<Result<Messages>> look_pinned(const api::ConsumeRequest& request);
  Task<Routed<Messages>> look_at_owner(const api::ConsumeRequest& request);
  Task<Messages> look_elsewhere(const api::ConsumeRequest& request, std::string first,
                                bool& all_answered);
  // What to do before waiting.
  enum class Next : std::uint8_t { wait, wait_briefly, look_again, give_up };
  Task<Next> prepare_to_wait(const api::ConsumeRequest& request);
  using PartitionStats = std::vector<api::PartitionStat>;
  Task<Routed<PartitionStats>> gather_stats(std::string topic, std::optional<PartitionId> only);
  Task<Routed<std::optional<StoredRecord>>> replay_at_owner(api::ReplayRequest request);
  // One outcome per handle.
  Task<std::vector<Routed<void>>> settle_some(std::string topic, Incarnation incarnation,
                                              std::vector<ReceiptHandle> handles, SettleMode mode);
  Task<std::vector<Result<void>>> settle_at(std::string owner, std::string topic,
                                            Incarnation incarnation,
                                            std::vector<ReceiptHandle> handles, SettleMode mode);

  Env& env_;
  std::string node_id_;
  cluster::Operations& operations_;
  metastore::Proposer& metastore_;
  ingress::Ingress& ingress_;
  Partitions& partitions_;
  LocalBroker& local_;
  RemoteOwners* remote_;
  Wakes* wakes_;
  Drain* drain_;
  std::function<api::ClusterInfo()> cluster_info_;
  std::function<api::Readiness()> readiness_;
  MoveReportDesk reports_;
  peer::Caller* const peers_;
  const std::function<Task<Result<wire::SetAsideCopies>>()> own_quarantine_;
  AskAll<wire::SetAsideCopies> quarantine_;
  cluster::Rounds rounds_;  // of catch_up()
  bool waits_ended_ = false;
  std::uint32_t rotation_ = 0;  // of the owners that an unpinned consume asks
};

}  // namespace narad::node
