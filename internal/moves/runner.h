#pragma once
// The move runner of a node: finds the moves whose target this node is, and works on each until it
// is the owner or the move has ended (RUN, CPY, FLP; moves.md, "Worker"). The decisions are
// mover.h; the files are staging.h. Lives on the node's loop.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "internal/metastore/metastore.h"
#include "internal/moves/calls.h"
#include "internal/moves/mover.h"
#include "pkg/async/task_group.h"

namespace narad::moves {

// Where a copy may be put on this node.
struct MoveDisk {
  std::string id;
  std::string path;
  bool usable = false;
};

// What the runner needs of the node's partitions and disks (internal/node). Each of these runs
// under the topic's lock, with the partition closed.
class InstallPlace {
 public:
  virtual ~InstallPlace() = default;
  virtual MoveDisk disk(const std::string& id) const = 0;
  virtual std::vector<MoveDisk> disks() const = 0;
  virtual std::string partition_directory(const std::string& disk_id,
                                          const TopicPartition& partition) const = 0;
  // Makes the topic directory carry `incarnation`, which the applied state still shows (INC-1,
  // INC-2). The directory of another life of the name is removed if its deletion is known, else set
  // aside.
  virtual Task<Result<void>> prepare(TopicPartition partition, Incarnation incarnation,
                                     std::string disk_id) = 0;
  // Renames `staged` onto the partition's path. What is there is set aside if it holds records
  // (INS-2), with its consumer state. Answers where it was put, or nothing.
  virtual Task<Result<std::string>> install(TopicPartition partition, Incarnation incarnation,
                                            std::string disk_id, std::string staged) = 0;
  // Renames the install of this very move back to `staged` (FLP-15, INS-5, INS-6); conflict if the
  // path holds anything else. REQUIRES (proof): a barrier made after the last proposal of this flip
  // showed that it can never apply.
  virtual Task<Result<void>> take_off(TopicPartition partition, Incarnation incarnation,
                                      std::string disk_id, std::string staged,
                                      RaftIndex move_id) = 0;
};

struct RunnerStats {
  std::uint64_t started = 0, done = 0, ended_without_flip = 0, force_promoted = 0;
  std::uint64_t bytes = 0;  // received
  std::uint64_t full_passes = 0, skipped_ticks = 0;
  std::uint64_t blocked_unverifiable = 0, blocked_copy_behind = 0, blocked_went_back = 0;  // now
  std::uint64_t set_aside = 0;  // copies put in quarantine by this runner
};

class Runner {
 public:
  // References outlive this.
  Runner(Env& env, std::string node_id, metastore::Proposer& metastore, SourceCalls& source,
         LeaderCalls& leader, InstallPlace& place, RunnerTiming timing = {});
  ~Runner();  // REQUIRES: stop() has returned, or the node was killed

  void start();
  Task<void> stop();  // cancels the workers; what is staged and installed stays

  std::vector<wire::MoveReport> reports() const;
  RunnerStats stats() const;
  // Copying leaves room to others while that number grows (pace.h).
  void give_way_to(std::function<std::uint64_t()> written);
  // After each tick, for what runs with them (the sweep counts ticks: RUN-8).
  void on_tick(std::function<void()> listener);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::moves
