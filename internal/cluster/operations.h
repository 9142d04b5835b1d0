#pragma once
// What operators ask of members and plans, on whichever node they ask: shows, verdicts, and the
// entries that follow from them. Lives on the node's loop. Orders to move one partition are
// metastore/move_orders.h.
//
// Writes are entries whose preconditions apply() checks, made through any node; what was judged is
// read behind a barrier. Only the leader knows how long it has not
// heard of whom, and what members said of their drains: its node is asked for that.
#include <functional>
#include <string>
#include <vector>

#include "internal/cluster/balancer.h"
#include "internal/cluster/consensus.h"
#include "internal/cluster/leadership.h"
#include "internal/model/operations.h"
#include "internal/peer/peers.h"
#include "internal/wire/operation_messages.h"

namespace narad::peer {
class Server;
}

namespace narad::cluster {

inline constexpr std::string_view kLeaderFactsRoute = "GET /peer/v1/leader/facts";
inline constexpr std::string_view kRebalanceRoute = "POST /peer/v1/rebalance";

struct OperationsOptions {
  Nanos barrier_deadline = std::chrono::seconds(5);
  Nanos ask_deadline = std::chrono::milliseconds(1500);  // of another node, for a show
  Nanos pass_deadline = std::chrono::seconds(15);        // of the leader, for a pass
  Nanos hold_aborted = kHoldAborted;                     // as the balancer's
  TargetRules targets;
  PlannerLimits planner;
};

class Operations {
 public:
  // All references outlive this. `balancer` and `caller` are null on a node without peers.
  struct Parts {
    Consensus& consensus;
    Leadership& leadership;
    std::string node;
    Balancer* balancer = nullptr;
    peer::Caller* caller = nullptr;
    // What this node says of itself where nobody sends heartbeats; empty: there are heartbeats.
    std::function<wire::DrainStatus()> own_status = {};
  };
  Operations(Env& env, Parts parts, OperationsOptions options = {});

  void add_routes(peer::Server& server);

  // ---- shows, from the local replica
  // What each draining member waits for, by id.
  Task<std::vector<DrainVerdict>> drains();

  // ---- members. Errors: not_found (no such member), unavailable.
  // Whether it could be decommissioned, or what its drain waits for; changes nothing.
  Task<Result<DrainVerdict>> verdict(std::string node, bool wal_lost);
  // Errors also: conflict (wal_lost of a living member), unknown_outcome.
  Task<Result<DrainOutcome>> decommission(std::string node, bool wal_lost);
  // Ends the drain, and the moves that it began. Errors also: conflict (it is leaving, or left),
  // unknown_outcome.
  Task<Result<>> cancel(std::string node);

  // Whether it may be stopped for a while. Errors: not_found, unavailable.
  Task<Result<StopVerdict>> safe_to_stop(std::string node);

  // ---- plans
  // What a pass would do; or does, on the leader. Errors: unavailable, unknown_outcome.
  Task<Result<RebalanceOutcome>> rebalance(bool dry_run);
  // Errors: not_found (topic, partition), unavailable.
  Task<Result<Explanation>> explain(TopicPartition partition);

 private:
  wire::LeaderFacts own_facts() const;
  Task<Result<wire::LeaderFacts>> facts();
  Task<Result<metastore::ViewPtr>> fresh_view();
  DrainPicture picture(const std::string& node, const wire::LeaderFacts* facts) const;
  Task<Result<metastore::CommandResult>> propose(metastore::Command command);
  Task<void> clear_moves_of(std::string node, RaftIndex drain_id);
  static Task<http::Response> serve_facts(Operations* self);
  static Task<http::Response> serve_rebalance(Operations* self);

  Env& env_;
  Consensus& consensus_;
  Leadership& leadership_;
  Balancer* const balancer_;
  peer::Caller* const caller_;
  const std::string node_;
  const std::function<wire::DrainStatus()> own_status_;
  const OperationsOptions options_;
};

}  // namespace narad::cluster
