#include "internal/node/move_reports.h"

#include <utility>

#include "internal/node/remote_source.h"
#include "pkg/base/text.h"

namespace narad::node {

MoveReportDesk::MoveReportDesk(Env& env, peer::Caller* peers, std::string self,
                               std::function<wire::MoveReports()> own)
    : peers_(peers),
      self_(std::move(self)),
      own_(std::move(own)),
      all_(env, [this](std::string node, Nanos deadline) {
        return reports_of(std::move(node), deadline);
      }) {}

Task<Result<wire::MoveReports>> MoveReportDesk::reports_of(std::string node, Nanos deadline) {
  if (node == self_) co_return own_ ? own_() : wire::MoveReports{};
  if (peers_ == nullptr) {
    co_return Error(Errc::unavailable, cat("this node does not know where ", node, " is"));
  }
  co_return co_await ask_for_moves(*peers_, std::move(node), deadline);
}

}  // namespace narad::node
