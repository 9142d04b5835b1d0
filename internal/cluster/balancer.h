#pragma once
// What the leader does about moves and departures: takes back targets that nobody can reach, gives
// partitions new ones so that the cluster is even and draining members become empty, and lets a
// member leave once nothing keeps it. It writes targets and nothing else (OWN-4): copying and
// taking over is the destination's work. Lives on the node's loop of every node, and sleeps where
// that does not lead.
//
// The decisions are planner.h, targets.h and decommission.h; each entry is checked again by
// apply(). A pass runs every ten seconds, at once on gaining leadership, when members change, and
// when a move has ended; one at a time, behind a barrier (PLN-7). The lock that orders passes also
// spans judging a departure and writing it (DEC-11).
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "internal/cluster/consensus.h"
#include "internal/cluster/decommission.h"
#include "internal/cluster/leadership.h"
#include "internal/cluster/planner.h"
#include "internal/cluster/targets.h"
#include "internal/model/operations.h"
#include "pkg/async/task_group.h"

namespace narad::cluster {

struct BalancerOptions {
  Nanos every = std::chrono::seconds(10);
  Nanos pause = std::chrono::milliseconds(100);  // between passes
  Nanos retry = std::chrono::seconds(1);         // after a pass that could not be made
  Nanos hold_aborted = kHoldAborted;
  Nanos barrier_deadline = std::chrono::seconds(5);
  Nanos hand_over_deadline = std::chrono::milliseconds(500);
  std::size_t voters_max = 5;
  TargetRules targets;
  PlannerLimits planner;
};

// What this leader sees; empty while this node does not lead.
struct BalancerReport {
  std::vector<MoveUnderWay> blocked;  // moves that something holds up
  std::vector<DrainVerdict> drains;   // one per member that drains, by id
};

class Balancer {
 public:
  Balancer(Env& env, Consensus& consensus, Leadership& leadership, BalancerOptions options = {});

  void start();
  Task<void> stop() { return tasks_.stop(); }

  // A pass now; it runs to its end whatever becomes of the caller. Errors: not_leader, unavailable.
  Task<Result<RebalanceOutcome>> rebalance();
  // Looks at the members that drain, and takes the next step of one that may go. Called every
  // second by the controller of a leader.
  Task<void> retire();

  const BalancerReport& report() const { return report_; }

 private:
  struct Batch;
  struct Asked;
  Task<void> run();
  Task<void> serve(std::uint64_t term);
  Task<Result<RebalanceOutcome>> pass();
  Task<Result<RebalanceOutcome>> pass_alone();
  static Task<void> pass_asked(Balancer* self, std::shared_ptr<Asked> asked);
  Task<void> clear_targets(RebalanceOutcome& out);
  Task<void> set_targets(RebalanceOutcome& out);
  // What came of each, in order; nothing: not known, or certainly not applied.
  using Results = std::vector<std::optional<metastore::CommandResult>>;
  Task<Results> propose_all(std::vector<metastore::Command> entries);
  static Task<void> propose_one(Balancer* self, std::shared_ptr<Batch> batch, std::size_t i,
                                metastore::Command entry);
  Task<void> wait_for_work(std::uint64_t term);
  bool leads(std::uint64_t term) const;
  bool something_ended() const;
  void tell_of_blocks();
  void tell_of_drain(const DrainVerdict& verdict);
  DrainPicture picture(const std::string& node) const;
  static Task<void> let_go_once(Balancer* self, std::string id);
  Task<bool> let_go(std::string id);

  Env& env_;
  Consensus& consensus_;
  Leadership& leadership_;
  const BalancerOptions options_;
  Mutex placement_;
  BalancerReport report_;
  std::vector<MoveUnderWay> watched_;  // as the last pass left them
  std::set<std::string> told_;         // what was logged in this term
  RaftIndex seen_members_{0};          // versions that the last pass began with
  RaftIndex seen_assignments_{0};
  bool letting_go_ = false;
  std::shared_ptr<Asked> waiting_;  // a pass that was asked for and has not begun
  bool more_at_once_ = false;       // the last plan had more than it could give out
  TaskGroup tasks_;
};

}  // namespace narad::cluster
