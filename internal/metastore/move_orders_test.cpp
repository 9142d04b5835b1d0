// The orders of operators about moves: what each comes to, and that an abort is answered with the
// truth whatever else happens to the partition meanwhile.
#include "internal/metastore/move_orders.h"

#include <gtest/gtest.h>

#include <map>

#include "internal/metastore/apply.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::metastore {
namespace {

constexpr PartitionId kP{0};
constexpr Incarnation kLife{7};
const TopicPartition kOrders{"orders", kP};

RegisterMember member(std::string id) {
  return {id, id + ":7942", id + ":7943", "boot", {"d1", "d2"}, UnixMillis(1000)};
}

// The leader's log, whose newest state is what a barrier shows; this node may have heard less.
class Log final : public Proposer {
 public:
  explicit Log(Env& env) : changed_(env) {
    run(member("s"));
    CreateTopic c;
    c.name = "orders";
    c.incarnation = kLife;
    c.partitions = 2;
    c.visibility_timeout_ms = 30'000;
    c.max_in_flight_per_partition = 100;
    c.max_acked_ahead_per_partition = 100;
    run(c);
    for (const char* id : {"d", "e"}) run(member(id));
    run(MarkUsed{"orders", kLife, kP, "s", "d1"});
    view_ = state_;
  }

  // ---- what happens meanwhile
  std::function<void()> before_propose, before_barrier;
  enum class Fault : std::uint8_t { none, answer_lost, not_sent, comes_late };
  Fault fault = Fault::none;    // of the next proposal
  bool barrier_fails = false;   // from the one behind the proposal on
  std::vector<Command> late;    // sent, and not applied yet
  std::vector<ViewPtr> states;  // after each entry
  std::size_t proposals = 0;
  RaftIndex asked{0};  // the move that was to be aborted

  CommandResult run(const Command& command) {
    auto next = std::make_shared<State>(*state_);
    CommandResult result = apply(*next, next->applied.next(), command);
    check_invariants(*next);
    state_ = next;
    states.push_back(state_);
    return result;
  }
  const State& truth() const { return *state_; }
  const Assignment& row() const { return *state_->assignment("orders", kP); }
  RaftIndex set_target(const std::string& node, std::string disk = "d1") {
    SetTarget c{"orders", kLife,           kP,       row().owner_node, row().move_id,
                node,     std::move(disk), "joined", UnixMillis(5)};
    EXPECT_TRUE(run(c).done());
    return row().move_id;
  }
  void arm() { run(ArmFreeze{"orders", kLife, kP, row().owner_node, row().move_id}); }
  CompleteMove flip() const {
    return {"orders",           kLife,        kP, row().owner_node, row().move_id,
            row().freeze_epoch, UnixMillis(9)};
  }

  // ---- Proposer
  Task<Result<CommandResult>> propose(Command command) override {
    ++proposals;
    if (const auto* clear = std::get_if<ClearTarget>(&command)) asked = clear->move_id;
    if (before_propose) before_propose();
    if (fault == Fault::not_sent) co_return Error(Errc::unavailable, "no leader");
    if (fault == Fault::comes_late) {
      late.push_back(std::move(command));
      co_return Error(Errc::unknown_outcome, "no answer in time");
    }
    auto result = run(command);
    if (fault == Fault::answer_lost) co_return Error(Errc::unknown_outcome, "no answer in time");
    view_ = state_;
    co_return result;
  }
  ViewPtr view() const override { return view_; }
  Event& changed() override { return changed_; }
  Task<Result<RaftIndex>> barrier(Nanos) override {
    if (before_barrier) before_barrier();
    if (barrier_fails && proposals > 0) co_return Error(Errc::unavailable, "no leader confirms");
    view_ = state_;
    co_return view_->applied;
  }
  LeaderView leader() const override { return {"n1", false, 1}; }
  bool caught_up() const override { return true; }

 private:
  ViewPtr state_ = std::make_shared<const State>();
  ViewPtr view_ = state_;  // of this node
  Event changed_;
};

struct World {
  sim::Solo solo;
  Log log{solo.env()};

  Result<AbortAnswer> abort(std::optional<std::string> target = {}, TopicPartition p = kOrders) {
    const AbortWish wish{std::move(p), std::move(target)};
    return solo.run([&](Env& env) { return abort_move(env, log, wish, "aborted by ops"); });
  }
  Result<StartAnswer> start(std::string to, std::string disk = {}, TopicPartition p = kOrders) {
    const MoveWish wish{std::move(p), std::move(to), std::move(disk)};
    return solo.run([&](Env& env) { return start_move(env, log, wish); });
  }
};

// ---- how things stand -------------------------------------------------------------------------

TEST(MoveStanding, OBS_1_EachSideIsAliveDeadDrainingOrNoMember) {
  World w;
  EXPECT_EQ(standing_of(w.log.truth(), "s"), "alive");
  EXPECT_EQ(standing_of(w.log.truth(), "x"), "not_a_member");
  w.log.run(SetDraining{"d", true});
  EXPECT_EQ(standing_of(w.log.truth(), "d"), "draining");
  w.log.run(MarkDead{"d", w.log.truth().members.find("d")->stamp});
  EXPECT_EQ(standing_of(w.log.truth(), "d"), "dead") << "which is the worse of the two";
}

TEST(MoveStanding, OBS_2_DeadOrMissingSidesBlockAMove) {
  World w;
  w.log.set_target("d");
  EXPECT_TRUE(blocks_of(w.log.truth(), w.log.row()).empty());
  w.log.run(MarkDead{"s", w.log.truth().members.find("s")->stamp});
  using Blocks = std::vector<std::string_view>;
  EXPECT_EQ(blocks_of(w.log.truth(), w.log.row()), Blocks{"source_dead"});
  w.log.run(MarkDead{"d", w.log.truth().members.find("d")->stamp});
  EXPECT_EQ(blocks_of(w.log.truth(), w.log.row()), (Blocks{"source_dead", "target_dead"}));
  Assignment gone = w.log.row();
  gone.owner_node = "x";
  gone.target_node = "y";
  EXPECT_EQ(blocks_of(w.log.truth(), gone), (Blocks{"source_dead", "target_not_member"}));
}

// ---- start ------------------------------------------------------------------------------------

TEST(StartMove, APartition_IsGivenATargetByAnOperator) {
  World w;
  const auto answer = w.start("d", "d2");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer.value().outcome, StartOutcome::started);
  EXPECT_EQ(w.log.row().target_node, "d");
  EXPECT_EQ(w.log.row().target_disk, "d2");
  EXPECT_EQ(answer.value().move_id, w.log.row().move_id);
  const MoveRecord* record = w.log.truth().moves.find(move_key(answer.value().move_id));
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->reason, "operator");
  EXPECT_EQ(record->started, w.solo.env().clock.wall_millis());
}

TEST(StartMove, WithoutADisk_TheOneWithTheFewestPartitionsIsTaken) {
  World w;
  w.log.set_target("d", "d1");
  // The other partition was never used: it is given at once.
  const auto answer = w.start("d", {}, {"orders", PartitionId(1)});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer.value().outcome, StartOutcome::given);
  EXPECT_EQ(answer.value().now.owner_node, "d");
  EXPECT_EQ(answer.value().now.owner_disk, "d2") << "d1 gets what is on its way";
  EXPECT_GT(answer.value().move_id, RaftIndex(0));
}

TEST(StartMove, WhatIsThereOrOnItsWay_IsLeftAlone) {
  World w;
  EXPECT_EQ(w.start("s").value().outcome, StartOutcome::there);
  EXPECT_EQ(w.start("s", "d1").value().outcome, StartOutcome::there);
  const RaftIndex move = w.log.set_target("d");
  EXPECT_EQ(w.start("d").value().outcome, StartOutcome::on_its_way);
  EXPECT_EQ(w.start("d", "d1").value().move_id, move);
  EXPECT_EQ(w.log.proposals, 0u);
  // Another disk of the target is another place.
  const auto other = w.start("d", "d2");
  EXPECT_EQ(other.value().outcome, StartOutcome::started);
  EXPECT_GT(w.log.row().move_id, move);
}

TEST(StartMove, AnotherDiskOfTheOwner_IsAPlaceToo) {
  World w;
  EXPECT_EQ(w.start("s", "d2").value().outcome, StartOutcome::started);
  EXPECT_EQ(w.log.row().target_node, "s");
}

TEST(StartMove, WhatIsUnknown_IsNotFound) {
  World w;
  EXPECT_EQ(w.start("d", {}, {"nope", kP}).error().code(), Errc::not_found);
  EXPECT_EQ(w.start("d", {}, {"orders", PartitionId(2)}).error().code(), Errc::not_found);
  EXPECT_EQ(w.start("x").error().code(), Errc::not_found);
  EXPECT_EQ(w.log.proposals, 0u);
}

TEST(StartMove, WhoCannotReceive_IsRefusedByName) {
  World w;
  const auto rule = [&](const std::string& to, const std::string& disk = {}) {
    const auto answer = w.start(to, disk);
    EXPECT_EQ(answer.value().outcome, StartOutcome::refused);
    EXPECT_NE(answer.value().refusal.detail, "");
    return answer.value().refusal.rule;
  };
  EXPECT_EQ(rule("d", "d9"), "no_such_disk");
  w.log.run(MarkDead{"d", w.log.truth().members.find("d")->stamp});
  EXPECT_EQ(rule("d"), "target_dead");
  w.log.run(SetDraining{"e", true});
  EXPECT_EQ(rule("e"), "target_draining");
  w.log.run(Leaving{"e", w.log.truth().members.find("e")->drain_id});
  EXPECT_EQ(rule("e"), "target_leaving");
  w.log.run(member("d"));
  w.log.set_target("d");
  EXPECT_EQ(rule("s"), "moves_away");
  EXPECT_EQ(w.log.proposals, 0u);
}

TEST(StartMove, RivalWasFaster_TheAnswerIsWhatTheRivalMade) {
  World other, same;
  other.log.before_propose = [&] { other.log.set_target("e"); };
  const auto refused = other.start("d");
  EXPECT_EQ(refused.value().outcome, StartOutcome::refused);
  EXPECT_EQ(refused.value().refusal.rule, "move_changed");
  EXPECT_EQ(refused.value().now.target_node, "e");
  same.log.before_propose = [&] { same.log.set_target("d"); };
  EXPECT_EQ(same.start("d").value().outcome, StartOutcome::on_its_way);
}

TEST(StartMove, OwnerChangedMeanwhile_IsSaid) {
  World w;
  w.log.set_target("e");
  w.log.before_propose = [&] {
    w.log.arm();
    w.log.run(w.log.flip());
  };
  const auto answer = w.start("d");
  EXPECT_EQ(answer.value().refusal.rule, "owner_changed");
  EXPECT_EQ(answer.value().now.owner_node, "e");
}

TEST(StartMove, AnswerLost_IsResolvedByReading) {
  World applied, lost, blind;
  applied.log.fault = Log::Fault::answer_lost;
  EXPECT_EQ(applied.start("d").value().outcome, StartOutcome::started);
  lost.log.fault = Log::Fault::comes_late;
  EXPECT_EQ(lost.start("d").error().code(), Errc::unknown_outcome);
  blind.log.fault = Log::Fault::answer_lost;
  blind.log.barrier_fails = true;
  EXPECT_EQ(blind.start("d").error().code(), Errc::unknown_outcome);
}

TEST(StartMove, NoLeader_ChangesNothingAndSaysSo) {
  World w;
  w.log.proposals = 1;  // so that the first barrier fails
  w.log.barrier_fails = true;
  const auto answer = w.start("d");
  EXPECT_EQ(answer.error().code(), Errc::unavailable);
  EXPECT_NE(answer.error().text().find("nothing was changed"), std::string::npos);
  EXPECT_EQ(w.abort().error().code(), Errc::unavailable);
}

// ---- abort ------------------------------------------------------------------------------------

TEST(AbortMove, ABT_2_ABT_7_TheTargetAsReadIsCleared_AndTheOwnerStays) {
  World w;
  const RaftIndex move = w.log.set_target("d");
  const auto answer = w.abort();
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_TRUE(answer.value().aborted);
  EXPECT_EQ(answer.value().read.move_id, move);
  EXPECT_EQ(w.log.row().owner_node, "s");
  EXPECT_EQ(w.log.row().target_node, "");
  const MoveRecord* record = w.log.truth().moves.find(move_key(move));
  EXPECT_EQ(record->outcome, MoveOutcome::cleared);
  EXPECT_EQ(record->why, "aborted by ops");
  EXPECT_EQ(record->ended, w.solo.env().clock.wall_millis());
}

TEST(AbortMove, ABT_4_UnderAnArmedFreeze_EndsIt) {
  World w;
  w.log.set_target("d");
  w.log.arm();
  const CompleteMove flip = w.log.flip();
  EXPECT_TRUE(w.abort().value().aborted);
  EXPECT_FALSE(w.log.row().freeze_armed) << "the owner opens again";
  EXPECT_EQ(w.log.run(flip).code, ResultCode::conflict) << "however late it arrives";
  EXPECT_EQ(w.log.row().owner_node, "s");
}

TEST(AbortMove, ABT_5_ThePartitionMayBePlannedAgain) {
  World w;
  w.log.set_target("d");
  EXPECT_TRUE(w.abort().value().aborted);
  EXPECT_GT(w.log.set_target("d"), RaftIndex(0));
}

TEST(AbortMove, ABT_3_AMoveToAnotherNode_IsLeftAlone) {
  World w;
  w.log.set_target("e");
  const auto answer = w.abort("d");
  EXPECT_FALSE(answer.value().aborted);
  EXPECT_EQ(answer.value().refusal.rule, "other_target");
  EXPECT_EQ(w.log.row().target_node, "e");
  EXPECT_EQ(w.log.proposals, 0u);
  EXPECT_TRUE(w.abort("e").value().aborted);
}

TEST(AbortMove, NoMoveUnderWay_IsRefused) {
  World w;
  EXPECT_EQ(w.abort().value().refusal.rule, "no_move");
  EXPECT_EQ(w.abort({}, {"nope", kP}).error().code(), Errc::not_found);
  EXPECT_EQ(w.abort({}, {"orders", PartitionId(2)}).error().code(), Errc::not_found);
}

TEST(AbortMove, ABT_6_TheFlipWasFaster_IsReadBack) {
  World w;
  w.log.set_target("d");
  w.log.arm();
  w.log.before_propose = [&] { w.log.run(w.log.flip()); };
  const auto answer = w.abort();
  EXPECT_FALSE(answer.value().aborted);
  EXPECT_EQ(answer.value().refusal.rule, "already_moved");
  EXPECT_EQ(answer.value().now.owner_node, "d");
  EXPECT_EQ(answer.value().now.target_node, "");
}

TEST(AbortMove, ABT_2_PlannedElsewhereMeanwhile_TheNewMoveIsUntouched) {
  World w;
  w.log.set_target("d");
  RaftIndex later{0};
  w.log.before_propose = [&] { later = w.log.set_target("e"); };
  const auto answer = w.abort();
  EXPECT_TRUE(answer.value().aborted) << "the owner is the same, and the move to d is gone";
  EXPECT_EQ(answer.value().now.target_node, "e");
  EXPECT_EQ(w.log.row().move_id, later);
}

TEST(AbortMove, ABT_7_PlannedThereAgainMeanwhile_IsNoSuccess) {
  World w;
  w.log.set_target("d");
  w.log.before_barrier = [&] {
    if (w.log.proposals > 0) w.log.set_target("d");
  };
  const auto answer = w.abort();
  EXPECT_FALSE(answer.value().aborted);
  EXPECT_EQ(answer.value().refusal.rule, "set_again");
  EXPECT_EQ(answer.value().now.target_node, "d");
}

TEST(AbortMove, MoveBetweenTheDisksOfOneNode_IsTold) {
  World w;
  w.log.set_target("s", "d2");
  w.log.arm();
  w.log.before_propose = [&] { w.log.run(w.log.flip()); };
  EXPECT_EQ(w.abort().value().refusal.rule, "already_moved") << "though the owner is s as before";
}

TEST(AbortMove, TopicDeletedMeanwhile_IsNotFound) {
  World w;
  w.log.set_target("d");
  w.log.before_propose = [&] { w.log.run(DeleteTopic{"orders", kLife}); };
  EXPECT_EQ(w.abort().error().code(), Errc::not_found);
}

TEST(AbortMove, ABT_6_ABT_9_WhatCannotBeReadBack_IsUnknown) {
  World blind, late, lost;
  blind.log.set_target("d");
  blind.log.barrier_fails = true;
  EXPECT_EQ(blind.abort().error().code(), Errc::unknown_outcome);
  // It may yet be applied: to say that the move goes on would be a guess.
  late.log.set_target("d");
  late.log.fault = Log::Fault::comes_late;
  EXPECT_EQ(late.abort().error().code(), Errc::unknown_outcome);
  // The answer was lost, but what it did is there to be read.
  lost.log.set_target("d");
  lost.log.fault = Log::Fault::answer_lost;
  EXPECT_TRUE(lost.abort().value().aborted);
}

TEST(AbortMove, CertainlyNotSent_IsUnavailable) {
  World w;
  w.log.set_target("d");
  w.log.fault = Log::Fault::not_sent;
  EXPECT_EQ(w.abort().error().code(), Errc::unavailable);
  EXPECT_EQ(w.log.row().target_node, "d");
}

// ---- an abort among everything else -----------------------------------------------------------

// What happens to a partition while somebody aborts its move: flips and clears that were read about
// at any time before and come at any time after.
class Rivals {
 public:
  Rivals(Log& log, sim::Rng rng, bool all) : log_(log), rng_(rng), all_(all) {}

  void some() {
    for (std::uint64_t n = rng_.below(4); n > 0; --n) one();
  }
  // Everything that was sent arrives.
  void rest() {
    while (!sent_.empty()) arrive();
    for (Command& command : log_.late) log_.run(command);
    log_.late.clear();
  }

 private:
  void one() {
    if (log_.truth().assignment("orders", kP) == nullptr) return;
    switch (rng_.below(all_ ? 10 : 5)) {
      case 0:
      case 1:
        return log_.arm();
      case 2:  // the destination proposes its flip, which may take its time
        sent_.push_back(log_.flip());
        if (rng_.below(2) == 0) arrive();
        return;
      case 3:
        if (!sent_.empty()) arrive();
        return;
      case 4:
        log_.run(VoidFreeze{"orders", kLife, kP, log_.row().owner_node, log_.row().freeze_epoch});
        return;
      case 5:
        return plan();
      case 6:  // the controller takes the target back
        sent_.push_back(ClearTarget{"orders", kLife, kP, log_.row().target_node, log_.row().move_id,
                                    "target_dead", UnixMillis(1)});
        return;
      case 7:
        return promote();
      case 8:
        return plan();
      default:
        if (rng_.below(20) == 0) log_.run(DeleteTopic{"orders", kLife});
    }
  }
  void arrive() {
    const std::size_t i = rng_.below(sent_.size());
    const Command command = sent_[i];
    sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(i));
    log_.run(command);
  }
  void plan() {
    static const char* const kNodes[] = {"s", "d", "e"};
    static const char* const kDisks[] = {"d1", "d2"};
    log_.run(SetTarget{"orders", kLife, kP, log_.row().owner_node, log_.row().move_id,
                       kNodes[rng_.below(3)], kDisks[rng_.below(2)], "joined", UnixMillis(1)});
  }
  void promote() {
    const std::string owner = log_.row().owner_node;
    log_.run(MarkDead{owner, log_.truth().members.find(owner)->stamp});
    log_.run(ForcePromote{"orders", kLife, kP, owner, log_.row().move_id,
                          log_.truth().members.find(owner)->dead_mark, "dead", UnixMillis(1)});
    log_.run(member(owner));
  }

  Log& log_;
  sim::Rng rng_;
  const bool all_;
  std::vector<Command> sent_;
};

// What is wrong with the answer to an abort; empty if it is true. `at` is what the leader
// had when it was given.
std::string lie_in(const Result<AbortAnswer>& answer, const State& at, const Log& log) {
  const RaftIndex move = log.asked;
  bool moved = false;  // ever, also after the answer
  for (const ViewPtr& state : log.states) {
    const Assignment* row = state->assignment("orders", kP);
    moved = moved || (row != nullptr && row->owned_by_move == move);
  }
  const Assignment* row = at.assignment("orders", kP);
  if (!answer) {
    if (answer.error().code() == Errc::not_found) return row != nullptr ? "it is there" : "";
    const bool open = row != nullptr && row->move_id == move;
    return log.barrier_fails || open ? "" : "the leader knew what became of it";
  }
  if (row == nullptr) return "there was nothing left to answer about";
  const Assignment& read = answer.value().read;
  if (read.move_id != move) return "an answer about another move";
  if (answer.value().now.owner_node != row->owner_node) return "another owner than the present one";
  if (answer.value().now.target_node != row->target_node) return "another target than the present";
  const bool same_owner = row->owner_node == read.owner_node &&
                          row->owner_disk == read.owner_disk &&
                          row->owned_by_move == read.owned_by_move;
  if (answer.value().aborted) {
    if (moved) return "aborted, and yet it moved";
    if (!same_owner) return "aborted, with another owner";
    return row->target_node == read.target_node ? "aborted, and it still goes there" : "";
  }
  const std::string& rule = answer.value().refusal.rule;
  if (rule == "already_moved") return same_owner ? "it has not moved" : "";
  if (rule == "set_again") {
    return same_owner && row->target_node == read.target_node && row->move_id != move
               ? ""
               : "it was not set again";
  }
  return cat("refused by ", rule, " although a move was under way");
}

struct Tally {
  std::map<std::string, int> answers;
  std::string lie;  // the first one
};

using Abort = std::function<Result<AbortAnswer>(World&)>;

Tally race(std::uint64_t first_seed, int rounds, bool all, const Abort& abort) {
  Tally tally;
  for (int i = 0; i < rounds; ++i) {
    sim::Rng rng(first_seed + static_cast<std::uint64_t>(i));
    World w;
    w.log.set_target("d");
    Rivals rivals(w.log,
                  sim::Rng(sim::derive(first_seed + static_cast<std::uint64_t>(i), "rivals")), all);
    w.log.before_propose = w.log.before_barrier = [&] { rivals.some(); };
    if (all && rng.below(3) == 0) w.log.fault = static_cast<Log::Fault>(rng.below(4));
    w.log.barrier_fails = all && rng.below(10) == 0;
    const auto answer = abort(w);
    const ViewPtr at = w.log.states.back();
    rivals.some();
    rivals.rest();
    ++tally.answers[answer ? (answer.value().aborted ? "aborted" : answer.value().refusal.rule)
                           : std::string(to_string(answer.error().code()))];
    if (w.log.asked == RaftIndex(0)) continue;  // it had ended before anything was read
    const std::string lie = lie_in(answer, *at, w.log);
    if (!lie.empty() && tally.lie.empty()) tally.lie = cat("round ", i, ": ", lie);
  }
  return tally;
}

Result<AbortAnswer> as_built(World& w) { return w.abort(); }

// Item 7 of the specification's wish: among freezes and flips the answer is exactly "aborted" or
// "already moved", and true.
TEST(AbortMove, ABT_6_ABT_7_TenThousandRacesWithFreezeAndFlip_AreAnsweredTruly) {
  const Tally tally = race(1, 10'000, false, as_built);
  EXPECT_EQ(tally.lie, "");
  for (const auto& [answer, count] : tally.answers) {
    // The flip may also have come before anything was read: then there is no move to abort.
    EXPECT_TRUE(answer == "aborted" || answer == "already_moved" || answer == "no_move") << answer;
    EXPECT_GT(count, 100) << answer << ": hardly tried";
  }
  EXPECT_EQ(tally.answers.size(), 3u);
}

TEST(AbortMove, ABT_2_ABT_9_RacesWithEverythingThatMayHappen_AreAnsweredTruly) {
  const Tally tally = race(1'000'000, 10'000, true, as_built);
  EXPECT_EQ(tally.lie, "");
  for (const char* answer : {"aborted", "already_moved", "set_again", "no_move", "unknown_outcome",
                             "unavailable", "not_found"}) {
    EXPECT_GT(tally.answers.contains(answer) ? tally.answers.at(answer) : 0, 10) << answer;
  }
}

// The checker sees through what looks right: an answer by the target alone, which a flip takes away
// as well, and one by what this node has heard of so far.
TEST(AbortMove, PlantedAnswers_AreCaught) {
  const auto by_target = [](World& w) {
    auto answer = w.abort();
    if (answer && answer.value().now.target_node.empty()) answer.value().aborted = true;
    return answer;
  };
  EXPECT_NE(race(1, 2'000, false, by_target).lie, "");
  const auto by_hearsay = [](World& w) {
    auto answer = w.abort();
    if (answer && answer.value().read.move_id != RaftIndex(0)) {
      answer.value().aborted = true;
      answer.value().now = answer.value().read;
      answer.value().now.target_node.clear();
    }
    return answer;
  };
  EXPECT_NE(race(1, 2'000, false, by_hearsay).lie, "");
}

TEST(StartMove, RateOfTheMove_IsInTheRow) {
  World w;
  MoveWish wish{kOrders, "d", "", 4096};
  const auto started = w.solo.run([&](Env& env) { return start_move(env, w.log, wish); });
  EXPECT_EQ(started.value().outcome, StartOutcome::started);
  EXPECT_EQ(w.log.row().move_rate, 4096u);
  wish = {kOrders, "e", "", 7};
  const auto refused = w.solo.run([&](Env& env) { return start_move(env, w.log, wish); });
  EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
  EXPECT_EQ(w.log.row().target_node, "d");
}

// ---- the throttle

struct Throttled : World {
  Result<RateAnswer> set(std::optional<std::uint64_t> rate) {
    return solo.run([&](Env&) { return set_move_rate(log, rate); });
  }
};

TEST(MoveRateOrder, WhatHoldsAlready_IsSaidAndNotProposed) {
  Throttled w;
  EXPECT_TRUE(w.set(5'000'000).value().changed);
  EXPECT_EQ(w.log.truth().move_rate, 5'000'000u);
  const auto again = w.set(5'000'000);
  EXPECT_FALSE(again.value().changed);
  EXPECT_EQ(again.value().now, 5'000'000u);
  EXPECT_EQ(w.log.proposals, 1u);
  EXPECT_TRUE(w.set(std::nullopt).value().changed);
  EXPECT_EQ(w.log.truth().move_rate, std::nullopt);
}

TEST(MoveRateOrder, AnswerLost_IsReadBack) {
  Throttled w;
  w.log.fault = Log::Fault::answer_lost;
  EXPECT_TRUE(w.set(5'000'000).value().changed);
  w.log.fault = Log::Fault::comes_late;
  EXPECT_EQ(w.set(6'000'000).error().code(), Errc::unknown_outcome);
  EXPECT_EQ(w.log.truth().move_rate, 5'000'000u);
}

TEST(MoveRateOrder, NobodyLeadsOrNonsense_ChangesNothing) {
  Throttled w;
  EXPECT_EQ(w.set(7).error().code(), Errc::invalid_argument);
  w.log.fault = Log::Fault::not_sent;
  EXPECT_EQ(w.set(5'000'000).error().code(), Errc::unavailable);
  EXPECT_EQ(w.log.truth().move_rate, std::nullopt);
}

// ---- pause and resume

struct Pausing : World {
  Result<PauseAnswer> one(bool pause, TopicPartition p = kOrders) {
    return give({std::move(p), "", pause});
  }
  Result<PauseAnswer> of(std::string node, bool pause) {
    return give({std::nullopt, std::move(node), pause});
  }
  Result<PauseAnswer> give(PauseWish wish) {
    return solo.run([&](Env&) { return pause_moves(log, wish); });
  }
  std::vector<std::string_view> pauses() { return pauses_of(log.truth(), log.row()); }
};
using Names = std::vector<std::string_view>;

TEST(PauseOrder, EachIsItsOwn_AndWhatHoldsAlreadyIsSaid) {
  Pausing w;
  w.log.set_target("d");
  for (const bool pause : {true, false}) {
    EXPECT_TRUE(w.one(pause).value().changed);
    EXPECT_FALSE(w.one(pause).value().changed);
    EXPECT_TRUE(w.of("d", pause).value().changed);
    EXPECT_FALSE(w.of("d", pause).value().changed);
    EXPECT_TRUE(w.of("", pause).value().changed);
    EXPECT_FALSE(w.of("", pause).value().changed);
    EXPECT_EQ(w.pauses(), pause ? (Names{"move", "target", "cluster"}) : Names{});
  }
  EXPECT_EQ(w.log.proposals, 6u);
}

TEST(PauseOrder, WhatIsNotThere_IsRefused) {
  Pausing w;
  EXPECT_EQ(w.one(true).value().refusal->rule, "no_move");
  EXPECT_EQ(w.one(true, {"orders", PartitionId(9)}).error().code(), Errc::not_found);
  EXPECT_EQ(w.one(true, {"nope", kP}).error().code(), Errc::not_found);
  EXPECT_EQ(w.of("nobody", true).error().code(), Errc::not_found);
  EXPECT_EQ(w.log.proposals, 0u);
}

TEST(PauseOrder, AnotherMoveMeanwhile_IsNotPaused) {
  Pausing w;
  w.log.set_target("d");
  w.log.before_propose = [&] { w.log.set_target("e"); };
  const auto answer = w.one(true);
  ASSERT_TRUE(answer.value().refusal);
  EXPECT_EQ(answer.value().refusal->rule, "move_changed");
  EXPECT_FALSE(answer.value().changed);
  EXPECT_FALSE(w.log.row().paused);
}

TEST(PauseOrder, EndedMeanwhile_IsSaid) {
  Pausing w;
  w.log.set_target("d");
  w.log.arm();
  w.log.before_propose = [&] { EXPECT_TRUE(w.log.run(w.log.flip()).done()); };
  EXPECT_EQ(w.one(true).value().refusal->rule, "no_move");
}

TEST(PauseOrder, AnswerLost_IsReadBack) {
  Pausing w;
  w.log.set_target("d");
  w.log.fault = Log::Fault::answer_lost;
  EXPECT_TRUE(w.one(true).value().changed);
  EXPECT_TRUE(w.of("", true).value().changed);
  w.log.fault = Log::Fault::comes_late;
  EXPECT_EQ(w.one(false).error().code(), Errc::unknown_outcome);
  w.log.fault = Log::Fault::not_sent;
  EXPECT_EQ(w.of("s", true).error().code(), Errc::unavailable);
  EXPECT_EQ(w.pauses(), (Names{"move", "cluster"}));
}

}  // namespace
}  // namespace narad::metastore
