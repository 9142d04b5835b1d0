#pragma once
// Everything about moves of one node, bound to each other and to the node: the owner's side
// (moves::Source), the runner with the places where copies go, the sweep, and the calls to other
// nodes. Decides nothing. Lives on the node's loop.
//
//   MoveParts moves(env, config, data, metastore, plane, hooks);
//   partition_options.gate = ... moves.gate(...)
//   moves.attach(partitions, trusted);       // freezes are followed from here on
//   plane->listen(local, wakes, moves.desk());
//   moves.start(accepted);                   // once the node is ready: copies are made
//   ...
//   co_await moves.stop_working();  co_await plane->stop();  co_await moves.stop();
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "internal/moves/runner.h"
#include "internal/moves/source.h"
#include "internal/moves/sweep.h"
#include "internal/node/move_hooks.h"
#include "internal/node/move_routes.h"
#include "internal/node/partitions.h"
#include "pkg/config/config.h"

namespace narad::node {

class ClusterPlane;
class DataDir;

struct MoveStats {
  moves::SourceStats source;
  moves::RunnerStats runner;
  moves::SweepStats sweep;
};

class MoveParts {
 public:
  // References outlive this. `plane`: null on a node without peers, which has no moves.
  MoveParts(Env& env, const Config& config, const DataDir& data, metastore::Proposer& metastore,
            ClusterPlane* plane, MoveHooks hooks);
  ~MoveParts();  // REQUIRES: stop() has returned, or the node was killed

  moves::Source& source() { return *source_; }
  std::shared_ptr<CommitGate> gate(const TopicPartition& id, const Assignment& row);

  void attach(Partitions& partitions, std::function<bool()> clock_trusted);
  // What ClusterPlane::listen() needs. REQUIRES: attached, and a plane.
  MoveDesk desk();
  // Works on moves to this node, and sweeps; copying leaves room to what is committed here, and to
  // the records `accepted`, a number that grows. Nothing without a plane. REQUIRES: attached.
  void start(std::function<std::uint64_t()> accepted);
  Task<void> stop_working();
  Task<void> stop();

  std::vector<wire::MoveReport> reports() const;
  MoveStats stats() const;

 private:
  std::optional<moves::LeaseProof> lease_proof() const;
  Task<void> sweep_loop();
  void open_runner(Partitions& partitions, std::function<bool()> clock_trusted);

  Env& env_;
  const Config& config_;
  const DataDir& data_;
  metastore::Proposer& metastore_;
  ClusterPlane* plane_;
  const MoveHooks hooks_;
  const std::string node_id_;

  // In the order of their making.
  struct Parts;
  std::unique_ptr<metastore::Proposer> source_metastore_;  // null: that of the node
  std::unique_ptr<metastore::Proposer> runner_metastore_;
  std::unique_ptr<moves::Source> source_;
  std::unique_ptr<Parts> parts_;
  Event sweep_due_;
  TaskGroup tasks_;
};

}  // namespace narad::node
