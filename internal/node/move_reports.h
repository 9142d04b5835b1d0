#pragma once
// Asks the destinations of moves what they work on, all at once. Lives on the node's loop.
#include <functional>
#include <string>
#include <vector>

#include "internal/api/broker.h"
#include "internal/node/ask_all.h"
#include "internal/peer/peers.h"

namespace narad::node {

class MoveReportDesk {
 public:
  // `self` is asked through `own` (empty: it works on none), the others through `peers`, which is
  // null on a node without any, and otherwise outlives this up to stop().
  MoveReportDesk(Env& env, peer::Caller* peers, std::string self,
                 std::function<wire::MoveReports()> own);

  // As AskAll::ask().
  Task<api::ReportsByNode> ask(std::vector<std::string> nodes, Nanos deadline) {
    return all_.ask(std::move(nodes), deadline);
  }
  Task<void> stop() { return all_.stop(); }

 private:
  Task<Result<wire::MoveReports>> reports_of(std::string node, Nanos deadline);

  peer::Caller* const peers_;
  const std::string self_;
  const std::function<wire::MoveReports()> own_;
  AskAll<wire::MoveReports> all_;
};

}  // namespace narad::node
