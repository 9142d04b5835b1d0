// Planted bugs of moves: what a node believes or says of the log, and the gate in front of commits.
#include <map>
#include <utility>

#include "internal/simtest/defects.h"

namespace narad::simtest {
namespace {

using metastore::Command;
using metastore::CommandResult;
using metastore::ViewPtr;

// Passes everything on; the defects below replace what they bend.
class PassingProposer : public metastore::Proposer {
 public:
  explicit PassingProposer(metastore::Proposer& inner) : inner_(inner) {}
  Task<Result<CommandResult>> propose(Command command) override {
    return inner_.propose(std::move(command));
  }
  ViewPtr view() const override { return inner_.view(); }
  Event& changed() override { return inner_.changed(); }
  Task<Result<RaftIndex>> barrier(Nanos deadline) override { return inner_.barrier(deadline); }
  metastore::LeaderView leader() const override { return inner_.leader(); }
  bool caught_up() const override { return inner_.caught_up(); }

 protected:
  // The flip under a freeze that is armed for it; `refused` if that cannot be had.
  Task<Result<CommandResult>> flip_anew(metastore::CompleteMove flip,
                                        Result<CommandResult> refused) {
    Command arm = metastore::ArmFreeze{flip.name, flip.incarnation, flip.partition,
                                       flip.source_node, flip.move_id};
    auto armed = co_await inner_.propose(std::move(arm));
    if (!armed || !armed.value().done()) co_return refused;
    flip.epoch = std::get<metastore::AssignmentRow>(armed.value().row).assignment.freeze_epoch;
    Command again = std::move(flip);
    co_return co_await inner_.propose(std::move(again));
  }

  metastore::Proposer& inner_;
};

// A flip that is refused because its freeze is over is made to fit the freeze that is in force, or
// a new one: as if no entry compared the epochs.
class FlipWithoutEpoch final : public PassingProposer {
 public:
  using PassingProposer::PassingProposer;
  Task<Result<CommandResult>> propose(Command command) override {
    auto* flip = std::get_if<metastore::CompleteMove>(&command);
    if (flip == nullptr) co_return co_await inner_.propose(std::move(command));
    metastore::CompleteMove again = *flip;
    auto result = co_await inner_.propose(std::move(command));
    if (!result || result.value().code != metastore::ResultCode::conflict) co_return result;
    co_return co_await flip_anew(std::move(again), std::move(result));
  }
};

// A flip that is refused because another move has taken the place of its own is made to fit that
// one, and a freeze of it: as if no entry compared move ids. (An epoch alone would refuse it, too:
// none ever comes again. So both are left out here.)
class FlipWithoutMoveId final : public PassingProposer {
 public:
  using PassingProposer::PassingProposer;
  Task<Result<CommandResult>> propose(Command command) override {
    auto* flip = std::get_if<metastore::CompleteMove>(&command);
    if (flip == nullptr) co_return co_await inner_.propose(std::move(command));
    metastore::CompleteMove again = *flip;
    auto result = co_await inner_.propose(std::move(command));
    if (!result || result.value().code != metastore::ResultCode::conflict) co_return result;
    const auto* row = std::get_if<metastore::AssignmentRow>(&result.value().row);
    if (row == nullptr || row->assignment.target_node.empty()) co_return result;
    if (row->assignment.move_id == again.move_id) co_return result;
    again.move_id = row->assignment.move_id;
    co_return co_await flip_anew(std::move(again), std::move(result));
  }
};

// A promotion that is refused because its source has come back is made to fit a mark of now: as if
// any death of the source would do.
class PromoteWithoutMark final : public PassingProposer {
 public:
  using PassingProposer::PassingProposer;
  Task<Result<CommandResult>> propose(Command command) override {
    auto* promote = std::get_if<metastore::ForcePromote>(&command);
    if (promote == nullptr) co_return co_await inner_.propose(std::move(command));
    metastore::ForcePromote again = *promote;
    auto result = co_await inner_.propose(std::move(command));
    if (!result || result.value().code != metastore::ResultCode::conflict) co_return result;
    (void)co_await inner_.barrier(std::chrono::seconds(5));
    const metastore::Member* source = inner_.view()->members.find(again.source_node);
    if (source == nullptr) co_return result;
    metastore::MarkDead mark{source->id, source->stamp};
    Command kill = std::move(mark);
    auto marked = co_await inner_.propose(std::move(kill));
    if (!marked || !marked.value().done()) co_return result;
    again.dead_mark = std::get<metastore::Member>(marked.value().row).dead_mark;
    Command promoted = std::move(again);
    co_return co_await inner_.propose(std::move(promoted));
  }
};

// Believes a freeze to be void as soon as it would propose that.
class ThawWithoutVoid final : public PassingProposer {
 public:
  using PassingProposer::PassingProposer;
  Task<Result<CommandResult>> propose(Command command) override {
    auto* freeze = std::get_if<metastore::VoidFreeze>(&command);
    if (freeze == nullptr) co_return co_await inner_.propose(std::move(command));
    thawed_[{freeze->name, freeze->partition}] = freeze->epoch;
    shown_of_ = nullptr;
    inner_.changed().notify_all();
    co_return CommandResult{};
  }
  ViewPtr view() const override {
    ViewPtr base = inner_.view();
    if (thawed_.empty()) return base;
    // The same object as long as nothing changes: who waits for a change compares them.
    if (shown_of_ != base) shown_ = bend(base);
    shown_of_ = base;
    return shown_;
  }

 private:
  ViewPtr bend(const ViewPtr& base) const {
    auto bent = std::make_shared<metastore::State>(*base);
    bool any = false;
    for (const auto& [id, epoch] : thawed_) {
      const auto row = base->topics.get(id.topic);
      if (!row || id.partition.value() >= row->assignments.size()) continue;
      const Assignment& a = row->assignments[id.partition.value()];
      if (!a.freeze_armed || a.freeze_epoch != epoch) continue;
      auto thawed = std::make_shared<metastore::TopicRow>(*bent->topics.get(id.topic));
      Assignment& b = thawed->assignments[id.partition.value()];
      b.freeze_armed = false;
      ++b.freeze_epoch;
      bent->topics.put(std::move(thawed));
      any = true;
    }
    if (!any) return base;
    // Another version than that of any state that was applied.
    bent->versions.assignments = base->versions.assignments.plus(std::uint64_t{1} << 62);
    return bent;
  }

  std::map<TopicPartition, std::uint64_t> thawed_;
  mutable ViewPtr shown_of_, shown_;
};

class GateWithoutSecondLook final : public CommitGate {
 public:
  explicit GateWithoutSecondLook(std::shared_ptr<CommitGate> inner) : inner_(std::move(inner)) {}
  Result<void> before_append(const CommitBatch& batch) override {
    return inner_->before_append(batch);
  }
  Result<void> after_sync() override { return ok(); }

 private:
  std::shared_ptr<CommitGate> inner_;
};

template <class T>
node::MoveHooks::WrapMetastore wrap() {
  return [](metastore::Proposer& inner) -> std::unique_ptr<metastore::Proposer> {
    return std::make_unique<T>(inner);
  };
}

}  // namespace

node::MoveHooks move_hooks(Defect defect) {
  node::MoveHooks hooks;
  if (defect == Defect::flip_without_epoch) hooks.runner_metastore = wrap<FlipWithoutEpoch>();
  if (defect == Defect::flip_without_move_id) hooks.runner_metastore = wrap<FlipWithoutMoveId>();
  if (defect == Defect::promote_without_mark) hooks.runner_metastore = wrap<PromoteWithoutMark>();
  hooks.believes_less = defect == Defect::believes_less;
  if (defect == Defect::thaw_without_void) hooks.source_metastore = wrap<ThawWithoutVoid>();
  if (defect == Defect::no_move_lease) hooks.move_lease = std::chrono::hours(1);
  if (defect == Defect::no_check_after_sync) {
    hooks.gate = [](std::shared_ptr<CommitGate> inner) -> std::shared_ptr<CommitGate> {
      return std::make_shared<GateWithoutSecondLook>(std::move(inner));
    };
  }
  return hooks;
}

}  // namespace narad::simtest
