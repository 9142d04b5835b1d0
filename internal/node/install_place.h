#pragma once
// Where moves put the copies that arrive at this node: the partition directories of its disks
// (internal/moves/runner.h). Each act runs under the topic's lock with the partition closed, and
// looks at the applied state and at the directory's incarnation again there (INS-4, INS-5, INC-2).
// Lives on the node's loop.
#include <string>

#include "internal/moves/runner.h"
#include "internal/node/data_dir.h"
#include "internal/node/partitions.h"

namespace narad::node {

class CopyPlace final : public moves::InstallPlace {
 public:
  // References outlive this.
  CopyPlace(Env& env, std::string node_id, const DataDir& data, Partitions& partitions,
            metastore::Proposer& metastore);

  moves::MoveDisk disk(const std::string& id) const override;
  std::vector<moves::MoveDisk> disks() const override;
  std::string partition_directory(const std::string& disk_id,
                                  const TopicPartition& partition) const override;
  // Errors, here and below: conflict (another incarnation, another copy at the path), unavailable
  // (the disk; an earlier life of the topic is still being removed), and what the disk said.
  Task<Result<void>> prepare(TopicPartition partition, Incarnation incarnation,
                             std::string disk_id) override;
  Task<Result<std::string>> install(TopicPartition partition, Incarnation incarnation,
                                    std::string disk_id, std::string staged) override;
  Task<Result<void>> take_off(TopicPartition partition, Incarnation incarnation,
                              std::string disk_id, std::string staged, RaftIndex move_id) override;

 private:
  // The state still shows this life of the topic, and nothing of another one is open here.
  Result<void> still_this_life(const TopicPartition& partition, Incarnation incarnation) const;
  Result<void> not_the_owner(const TopicPartition& partition, const std::string& disk_id) const;
  Result<Disk> usable(const std::string& disk_id) const;

  Env& env_;
  const std::string node_id_;
  const DataDir& data_;
  Partitions& partitions_;
  metastore::Proposer& metastore_;
};

}  // namespace narad::node
