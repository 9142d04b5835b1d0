#pragma once
// Asks the destinations of moves what they work on, all at once. Lives on the node's loop.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "internal/api/broker.h"
#include "internal/peer/peers.h"
#include "pkg/async/task_group.h"

namespace narad::node {

class MoveReportDesk {
 public:
  // `self` is asked through `own` (empty: it works on none), the others through `peers`, which is
  // null on a node without any, and otherwise outlives this up to stop().
  MoveReportDesk(Env& env, peer::Caller* peers, std::string self,
                 std::function<wire::MoveReports()> own);

  // One entry per node asked. unreachable: no answer within `deadline`. Answers as soon as all
  // have.
  Task<api::ReportsByNode> ask(std::vector<std::string> nodes, Nanos deadline);
  Task<void> stop() { return tasks_.stop(); }

 private:
  struct Round;
  static Task<void> ask_one(MoveReportDesk* self, std::string node, Nanos deadline,
                            std::shared_ptr<Round> round);
  Task<Result<wire::MoveReports>> reports_of(std::string node, Nanos deadline);

  Env& env_;
  peer::Caller* const peers_;
  const std::string self_;
  const std::function<wire::MoveReports()> own_;
  TaskGroup tasks_;
};

}  // namespace narad::node
