#pragma once
// The broker of one node: what the HTTP handlers ask (api::Broker) and where the dispatcher hands
// records over (dispatch::CommitTarget), both answered from the partitions that live here. Lives on
// the node's loop.
#include <functional>
#include <memory>
#include <string>

#include "internal/api/broker.h"
#include "internal/dispatch/target.h"
#include "internal/ingress/ingress.h"
#include "internal/metastore/metastore.h"
#include "internal/node/partitions.h"

namespace narad::node {

class LocalBroker final : public api::Broker, public dispatch::CommitTarget {
 public:
  // All of them outlive the broker.
  LocalBroker(Env& env, std::string node_id, metastore::Proposer& metastore,
              ingress::Ingress& ingress, Partitions& partitions,
              std::function<api::Readiness()> readiness);

  // ---- api::Broker
  metastore::ViewPtr view() const override;
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
  api::Readiness readiness() const override;

  // Answers every waiting consume with what there is, now and from now on: the node is stopping.
  void end_waits();

  // ---- dispatch::CommitTarget
  dispatch::Route route(const TopicPartition& partition, Incarnation incarnation) const override;
  Task<Result<CommitOutcome>> commit(TopicPartition partition, CommitBatch batch) override;
  Task<Result<bool>> confirm_gone(std::string topic, Incarnation incarnation) override;
  Event& routing_changed() override;

 private:
  // The row of that life of the topic, or not_found.
  Result<metastore::TopicRowPtr> row(const std::string& topic, Incarnation incarnation) const;
  Task<Result<std::vector<api::LeasedMessage>>> consume_once(const api::ConsumeRequest& request);
  Task<Result<std::vector<api::LeasedMessage>>> consume_from(TopicPartition id,
                                                             metastore::TopicRowPtr row,
                                                             std::uint32_t max);

  Env& env_;
  std::string node_id_;
  metastore::Proposer& metastore_;
  ingress::Ingress& ingress_;
  Partitions& partitions_;
  std::function<api::Readiness()> readiness_;
  bool waits_ended_ = false;
  std::uint32_t rotation_ = 0;  // where the next unpinned consume begins
};

}  // namespace narad::node
