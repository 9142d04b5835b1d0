#pragma once
// For tests of this directory and its users: a Proposer that applies at once, and can refuse.
#include <optional>

#include "internal/metastore/apply.h"
#include "internal/metastore/metastore.h"

namespace narad::security {

class TestProposer final : public metastore::Proposer {
 public:
  explicit TestProposer(Env& env) : changed_(env) {}

  std::optional<Error> refuse;
  bool leads = true;
  std::function<void()> before_apply;  // a rival that is faster
  std::size_t proposals = 0;

  metastore::CommandResult apply(const metastore::Command& command) {
    auto next = std::make_shared<metastore::State>(*view_);
    auto result = metastore::apply(*next, next->applied.next(), command);
    metastore::check_invariants(*next);
    view_ = next;
    changed_.notify_all();
    return result;
  }

  Task<Result<metastore::CommandResult>> propose(metastore::Command command) override {
    ++proposals;
    if (refuse) co_return *refuse;
    if (before_apply) std::exchange(before_apply, {})();
    co_return apply(command);
  }
  metastore::ViewPtr view() const override { return view_; }
  Event& changed() override { return changed_; }
  Task<Result<RaftIndex>> barrier(Nanos) override { co_return view_->applied; }
  metastore::LeaderView leader() const override { return {"n1", leads, 1}; }
  bool caught_up() const override { return leads; }

 private:
  metastore::ViewPtr view_ = std::make_shared<const metastore::State>();
  Event changed_;
};

}  // namespace narad::security
