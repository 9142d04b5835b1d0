#include "internal/node/move_reports.h"

#include <utility>

#include "internal/node/remote_source.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::node {

struct MoveReportDesk::Round {
  explicit Round(Env& env) : changed(env) {}
  api::ReportsByNode answers;
  std::size_t open = 0;
  Event changed;
};

MoveReportDesk::MoveReportDesk(Env& env, peer::Caller* peers, std::string self,
                               std::function<wire::MoveReports()> own)
    : env_(env), peers_(peers), self_(std::move(self)), own_(std::move(own)), tasks_(env) {}

Task<Result<wire::MoveReports>> MoveReportDesk::reports_of(std::string node, Nanos deadline) {
  if (node == self_) co_return own_ ? own_() : wire::MoveReports{};
  if (peers_ == nullptr) {
    co_return Error(Errc::unavailable, cat("this node does not know where ", node, " is"));
  }
  co_return co_await ask_for_moves(*peers_, std::move(node), deadline);
}

Task<void> MoveReportDesk::ask_one(MoveReportDesk* self, std::string node, Nanos deadline,
                                   std::shared_ptr<Round> round) {
  auto answer = co_await self->reports_of(node, deadline);
  round->answers.insert_or_assign(std::move(node), std::move(answer));
  --round->open;
  round->changed.notify_all();
}

Task<api::ReportsByNode> MoveReportDesk::ask(std::vector<std::string> nodes, Nanos deadline) {
  const Deadline end = Deadline::after(env_, deadline);
  auto round = std::make_shared<Round>(env_);
  round->open = nodes.size();
  for (const std::string& node : nodes) {
    tasks_.spawn("ask for moves", ask_one(this, node, deadline, round));
  }
  while (round->open > 0 && !end.passed(env_)) {
    (void)co_await round->changed.wait_for(end.left(env_));
  }
  api::ReportsByNode answers = std::move(round->answers);
  for (const std::string& node : nodes) {
    answers.try_emplace(node, Error(Errc::unreachable, cat("node ", node, " did not answer in ",
                                                           format_duration(deadline))));
  }
  co_return answers;
}

}  // namespace narad::node
