#pragma once
// One replica in the simulator: a core, what its disk holds, and Readies on their way to the disk.
// The disk stores Readies in order, each whole; a crash keeps some of those on the way and loses
// the rest. The applied state is stored more lazily than the log and never falls below its
// snapshot.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/raft/core.h"
#include "pkg/raft/invariants.h"
#include "pkg/raft/sim_test/oracle.h"
#include "pkg/raft/sim_test/rng.h"

namespace narad::raft::simtest {

struct Counters {
  std::map<std::string, std::uint64_t> all;
  void hit(const std::string& mark, std::uint64_t n = 1) { all[mark] += n; }
};

// A snapshot is its index and state, and filler that makes it several chunks long.
std::string snapshot_text(Index index, std::uint64_t state);

class Replica {
 public:
  using Finding = std::optional<std::string>;
  using Sender = std::function<void(Message)>;

  Replica(Options options, StartState first, Oracle& oracle, Counters& counters);

  bool up() const { return core_ != nullptr; }
  Core& core() { return *core_; }
  const Core& core() const { return *core_; }
  const Options& options() const { return options_; }
  bool stopped() const { return up() && core_->fault().has_value(); }

  Finding boot();
  void crash(Rng& rng);
  // An empty disk under a new replica id is another Replica; this one is gone.

  // Takes what the core wants done; sends what may go at once.
  Finding collect(const Sender& send);
  bool has_writes() const { return !writes_.empty(); }
  // The disk finishes the oldest write.
  Finding store_one(const Sender& send);
  void snapshot(std::uint64_t keep_entries);
  // Once in so many snapshots received is damaged on this disk.
  std::uint64_t damage_one_in = 0;
  Rng disk_rng{1};

  // By context: the highest index committed anywhere when it was asked.
  std::map<std::uint64_t, Index> reads_asked;
  std::map<ProposalId, std::uint64_t> proposed;  // digest of what was proposed
  Index state_index() const { return applied_; }

 private:
  struct Disk {
    StartState state;  // state.applied: durable in the applied state
    std::uint64_t applied_state = 0;
    std::map<Index, std::string> snapshots;
    std::string staged;
  };
  Finding write(const Ready& r);
  Finding apply(const std::vector<Entry>& entries);
  Finding install(const SnapshotMeta& meta);
  Finding answers(const Ready& r);
  void post(Message m, const Sender& send) const;

  Options options_;
  Oracle& oracle_;
  Counters& counters_;
  Disk disk_;
  std::unique_ptr<Core> core_;
  InvariantChecker checker_;
  std::deque<Ready> writes_;
  Index applied_;
  std::uint64_t state_ = 0;
};

}  // namespace narad::raft::simtest
