#pragma once
// Consensus over the metastore and its Raft group. Lives on the node's loop.
#include "internal/cluster/consensus.h"
#include "internal/metastore/metastore.h"

namespace narad::cluster {

class RaftConsensus final : public Consensus {
 public:
  // `store` outlives this. It was opened with raft.promote_learners = false: the controller
  // promotes, by rules that know members (voters.h).
  explicit RaftConsensus(metastore::Metastore& store) : store_(store) {}

  RaftView raft() const override;
  std::string leader_node() const override { return store_.leader().node; }
  bool caught_up() const override { return store_.caught_up(); }
  metastore::ViewPtr view() const override { return store_.view(); }
  Event& changed() override { return store_.changed(); }
  Task<Result<metastore::CommandResult>> propose(metastore::Command command) override {
    return store_.propose(std::move(command));
  }
  Task<Result<RaftIndex>> barrier(Nanos deadline) override { return store_.barrier(deadline); }
  Task<Result<>> propose_change(raft::ConfigurationChange change) override {
    return store_.propose_change(std::move(change));
  }
  Task<Result<>> transfer_leadership(std::string node, Nanos deadline) override {
    return store_.transfer_leadership(std::move(node), deadline);
  }

 private:
  metastore::Metastore& store_;
};

}  // namespace narad::cluster
