#pragma once
// Where the sweep of moves finds and touches copies: the partition directories of this node
// (internal/moves/sweep.h). Lives on the node's loop.
#include <functional>
#include <string>

#include "internal/moves/sweep.h"
#include "internal/node/data_dir.h"
#include "internal/node/partitions.h"

namespace narad::node {

class StaleCopies final : public moves::SweepPlace {
 public:
  // References outlive this.
  StaleCopies(Env& env, std::string node_id, const DataDir& data, Partitions& partitions,
              metastore::Proposer& metastore, std::function<bool()> clock_trusted);

  Task<Result<std::vector<moves::StaleCopy>>> stale_copies() override;
  Task<Result<moves::LocalCopy>> inspect(moves::StaleCopy copy) override;
  Task<Result<void>> reclaim(moves::StaleCopy copy, moves::LocalCopy seen) override;
  Task<Result<std::string>> set_aside(moves::StaleCopy copy, std::string why) override;
  bool clock_trusted() const override { return clock_trusted_(); }

 private:
  // conflict unless the applied state still shows what the copy was judged by (SWP-13, SWP-16).
  Result<void> still_stale(const moves::StaleCopy& copy) const;

  Env& env_;
  const std::string node_id_;
  const DataDir& data_;
  Partitions& partitions_;
  metastore::Proposer& metastore_;
  const std::function<bool()> clock_trusted_;
};

}  // namespace narad::node
