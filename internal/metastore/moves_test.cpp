// The entries of a move, one by one: what each asks of the assignment, and that everything else
// changes nothing (moves.md; the ids are those of the requirement list).
#include <gtest/gtest.h>

#include "internal/metastore/apply.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

constexpr PartitionId kP{0};
constexpr Incarnation kLife{7};

// Partition orders/0 on "s", members "s", "d", "e".
class Moves : public testing::Test {
 protected:
  Moves() {
    for (const char* id : {"s"}) run(member(id));
    CreateTopic c;
    c.name = "orders";
    c.incarnation = kLife;
    c.partitions = 1;
    c.visibility_timeout_ms = 30'000;
    c.max_in_flight_per_partition = 100;
    c.max_acked_ahead_per_partition = 100;
    run(c);
    for (const char* id : {"d", "e"}) run(member(id));
    run(MarkUsed{"orders", kLife, kP, "s", "d1"});
  }
  static RegisterMember member(std::string id) {
    return {id, id + ":7942", id + ":7943", "boot", {"d1", "d2"}, UnixMillis(1000)};
  }
  CommandResult run(const Command& command) {
    CommandResult result = apply(state, state.applied.next(), command);
    check_invariants(state);
    return result;
  }
  const Assignment& row() const { return *state.assignment("orders", kP); }
  CommandResult set_target(std::string target, RaftIndex seen = RaftIndex(0)) {
    return run(SetTarget{"orders", kLife, kP, row().owner_node, seen, std::move(target), "d1",
                         "operator"});
  }
  CommandResult arm() {
    return run(ArmFreeze{"orders", kLife, kP, row().owner_node, row().move_id});
  }
  CommandResult complete(RaftIndex move, std::uint64_t epoch, std::string source = "s") {
    return run(CompleteMove{"orders", kLife, kP, std::move(source), move, epoch});
  }
  CommandResult void_freeze(std::uint64_t epoch) {
    return run(VoidFreeze{"orders", kLife, kP, row().owner_node, epoch});
  }
  void mark_dead(const std::string& id) { run(MarkDead{id, state.members.find(id)->stamp}); }
  State state;
};

TEST_F(Moves, OWN_1_OWN_4_SetTargetNamesThePlaceAndLeavesTheOwner) {
  ASSERT_TRUE(set_target("d").done());
  EXPECT_EQ(row().owner_node, "s");
  EXPECT_EQ(row().target_node, "d");
  EXPECT_EQ(row().target_disk, "d1");
  EXPECT_EQ(row().move_id, state.applied);
  EXPECT_FALSE(row().freeze_armed);
}

TEST_F(Moves, Trap29_SetTargetOfAnythingButALiveReceiver_IsRefused) {
  EXPECT_EQ(set_target("nobody").code, ResultCode::not_found);
  EXPECT_EQ(set_target("s").code, ResultCode::conflict);  // it is there already
  run(SetDraining{"d", true});
  EXPECT_EQ(set_target("d").code, ResultCode::conflict);
  mark_dead("e");
  EXPECT_EQ(set_target("e").code, ResultCode::conflict);
  EXPECT_EQ(run(SetTarget{"orders", kLife, kP, "s", RaftIndex(0), "s", "d9", "disk"}).code,
            ResultCode::conflict);
  EXPECT_TRUE(row().target_node.empty());
  // Another disk of the same node is another place.
  EXPECT_TRUE(run(SetTarget{"orders", kLife, kP, "s", RaftIndex(0), "s", "d2", "disk"}).done());
}

TEST_F(Moves, SetTarget_OnWhatWasNotRead_IsRefused) {
  ASSERT_TRUE(set_target("d").done());
  const RaftIndex first = row().move_id;
  // Somebody who had read "no move" does not replace one.
  EXPECT_EQ(set_target("e").code, ResultCode::conflict);
  EXPECT_EQ(row().move_id, first);
  ASSERT_TRUE(set_target("e", first).done());
  EXPECT_NE(row().move_id, first);
  EXPECT_EQ(row().target_node, "e");
  EXPECT_EQ(run(SetTarget{"orders", Incarnation(8), kP, "s", row().move_id, "d", "d1", ""}).code,
            ResultCode::conflict);
  EXPECT_EQ(run(SetTarget{"orders", kLife, kP, "d", row().move_id, "d", "d1", ""}).code,
            ResultCode::conflict);
}

TEST_F(Moves, Retarget_EndsTheFreezeOfTheMoveItReplaces) {
  set_target("d");
  const RaftIndex first = row().move_id;
  arm();
  const std::uint64_t epoch = row().freeze_epoch;
  ASSERT_TRUE(set_target("e", first).done());
  EXPECT_GT(row().freeze_epoch, epoch);  // so the source opens again
  EXPECT_FALSE(row().freeze_armed);
  EXPECT_EQ(complete(first, epoch).code, ResultCode::conflict);
  EXPECT_EQ(row().owner_node, "s");
}

TEST_F(Moves, ArmFreeze_IncrementsTheEpochOfThatMoveOnly) {
  EXPECT_EQ(run(ArmFreeze{"orders", kLife, kP, "s", RaftIndex(0)}).code, ResultCode::conflict);
  set_target("d");
  EXPECT_EQ(run(ArmFreeze{"orders", kLife, kP, "s", RaftIndex(1)}).code, ResultCode::conflict);
  EXPECT_EQ(run(ArmFreeze{"orders", kLife, kP, "d", row().move_id}).code, ResultCode::conflict);
  ASSERT_TRUE(arm().done());
  EXPECT_EQ(row().freeze_epoch, 1u);
  EXPECT_TRUE(row().freeze_armed);
  ASSERT_TRUE(arm().done());  // a new freeze replaces the old one
  EXPECT_EQ(row().freeze_epoch, 2u);
}

TEST_F(Moves, VoidFreeze_OfAnotherEpoch_ChangesNothingAndShowsTheRow) {
  set_target("d");
  arm();
  arm();
  const auto stale = void_freeze(1);
  EXPECT_TRUE(stale.done());
  EXPECT_EQ(std::get<AssignmentRow>(stale.row).assignment.freeze_epoch, 2u);
  EXPECT_TRUE(row().freeze_armed);
  ASSERT_TRUE(void_freeze(2).done());
  EXPECT_EQ(row().freeze_epoch, 3u);
  EXPECT_FALSE(row().freeze_armed);
  const Assignment before = row();
  EXPECT_TRUE(void_freeze(2).done());
  EXPECT_EQ(row(), before);
  EXPECT_EQ(run(VoidFreeze{"orders", kLife, kP, "d", 3}).code, ResultCode::conflict);
}

TEST_F(Moves, FLP_1_OWN_6_CompleteMoveFlipsOnlyWhatItSaw) {
  set_target("d");
  const RaftIndex move = row().move_id;
  EXPECT_EQ(complete(move, 0).code, ResultCode::conflict);  // nothing is frozen
  arm();
  EXPECT_EQ(complete(move, 2).code, ResultCode::conflict);          // another epoch
  EXPECT_EQ(complete(RaftIndex(1), 1).code, ResultCode::conflict);  // another move
  EXPECT_EQ(complete(move, 1, "e").code, ResultCode::conflict);     // another source
  EXPECT_EQ(row().owner_node, "s");
  ASSERT_TRUE(complete(move, 1).done());
  EXPECT_EQ(row().owner_node, "d");
  EXPECT_EQ(row().owner_disk, "d1");
  EXPECT_EQ(row().owned_by_move, move);
  EXPECT_TRUE(row().target_node.empty());
  EXPECT_EQ(row().move_id, RaftIndex(0));
  EXPECT_FALSE(row().freeze_armed);
}

TEST_F(Moves, FLP_2_FlipLosesToARePlan) {
  set_target("d");
  const RaftIndex move = row().move_id;
  arm();
  set_target("e", move);
  const auto late = complete(move, 1);
  EXPECT_EQ(late.code, ResultCode::conflict);
  EXPECT_EQ(std::get<AssignmentRow>(late.row).assignment.target_node, "e");
  EXPECT_EQ(row().owner_node, "s");
}

TEST_F(Moves, FLP_3_FlipProposedAgain_IsDone) {
  set_target("d");
  const RaftIndex move = row().move_id;
  arm();
  ASSERT_TRUE(complete(move, 1).done());
  const Assignment flipped = row();
  EXPECT_TRUE(complete(move, 1).done());
  EXPECT_EQ(row(), flipped);
  // Also when the partition is on its way elsewhere by now.
  set_target("s");
  EXPECT_TRUE(complete(move, 1).done());
  EXPECT_EQ(row().owner_node, "d");
  // But not once it has gone on: then the flip of the first move says nothing about the owner.
  const RaftIndex back = row().move_id;
  arm();
  ASSERT_TRUE(complete(back, row().freeze_epoch, "d").done());
  EXPECT_EQ(complete(move, 1).code, ResultCode::conflict);
}

TEST_F(Moves, ThawAndFlip_AreTwoEntriesOfWhichOneWins) {
  set_target("d");
  const RaftIndex move = row().move_id;
  arm();
  const State frozen = state;
  // The void first: the flip can never apply, however late it comes.
  void_freeze(1);
  EXPECT_EQ(complete(move, 1).code, ResultCode::conflict);
  EXPECT_EQ(row().owner_node, "s");
  // The flip first: the old owner's void is refused, and it learns who owns the partition.
  state = frozen;
  ASSERT_TRUE(complete(move, 1).done());
  const auto late = run(VoidFreeze{"orders", kLife, kP, "s", 1});
  EXPECT_EQ(late.code, ResultCode::conflict);
  EXPECT_EQ(std::get<AssignmentRow>(late.row).assignment.owner_node, "d");
}

TEST_F(Moves, ForcePromote_NeedsTheVeryDeadMark) {
  set_target("d");
  const RaftIndex move = row().move_id;
  const auto promote = [&](RaftIndex mark) {
    return run(ForcePromote{"orders", kLife, kP, "s", move, mark, "source dead"});
  };
  EXPECT_EQ(promote(RaftIndex(0)).code, ResultCode::conflict);  // it lives
  mark_dead("s");
  const RaftIndex mark = state.members.find("s")->dead_mark;
  EXPECT_EQ(promote(RaftIndex(3)).code, ResultCode::conflict);
  run(member("s"));  // it came back: promotion and return are two entries, and this one won
  EXPECT_EQ(promote(mark).code, ResultCode::conflict);
  mark_dead("s");
  EXPECT_EQ(promote(mark).code, ResultCode::conflict);  // dead again, under another mark
  const std::uint64_t epoch = row().freeze_epoch;
  ASSERT_TRUE(promote(state.members.find("s")->dead_mark).done());
  EXPECT_EQ(row().owner_node, "d");
  EXPECT_GT(row().freeze_epoch, epoch);
  EXPECT_EQ(row().owned_by_move, move);
}

TEST_F(Moves, ABT_2_TGT_7_ClearTargetEndsOnlyTheMoveThatWasRead) {
  set_target("d");
  const RaftIndex first = row().move_id;
  set_target("e", first);
  EXPECT_EQ(run(ClearTarget{"orders", kLife, kP, "d", first, "aborted"}).code,
            ResultCode::conflict);
  EXPECT_EQ(row().target_node, "e");
  arm();
  ASSERT_TRUE(run(ClearTarget{"orders", kLife, kP, "e", row().move_id, "aborted"}).done());
  EXPECT_EQ(row().owner_node, "s");
  EXPECT_TRUE(row().target_node.empty());
  EXPECT_FALSE(row().freeze_armed);
  EXPECT_EQ(row().freeze_epoch, 2u);  // so that the source opens again
  EXPECT_EQ(run(ClearTarget{"orders", kLife, kP, "e", RaftIndex(0), ""}).code,
            ResultCode::conflict);
}

// As it was before its first frame.
class Unused : public Moves {
 protected:
  Unused() {
    run(DeleteTopic{"orders", kLife});
    CreateTopic c;
    c.name = "orders";
    c.incarnation = kLater;
    c.partitions = 3;  // one on each member
    c.visibility_timeout_ms = 30'000;
    c.max_in_flight_per_partition = 100;
    c.max_acked_ahead_per_partition = 100;
    run(c);
  }
  CommandResult give(std::string to) {
    return run(SetTarget{"orders", kLater, kP, row().owner_node, row().move_id, std::move(to), "d2",
                         "draining"});
  }
  static constexpr Incarnation kLater{9};
};

TEST_F(Unused, G57_SetTarget_GivesItToTheTargetAtOnce) {
  const std::string owner = row().owner_node;
  const std::string disk = row().owner_disk;
  const std::string to = owner == "d" ? "e" : "d";
  const auto given = give(to);
  ASSERT_TRUE(given.done());
  EXPECT_EQ(std::get<AssignmentRow>(given.row).assignment, row());
  EXPECT_EQ(row().owner_node, to);
  EXPECT_EQ(row().owner_disk, "d2");
  EXPECT_TRUE(row().target_node.empty());
  EXPECT_EQ(row().move_id, RaftIndex(0));
  EXPECT_EQ(row().owned_by_move, state.applied) << "an ownership that never comes again";
  EXPECT_EQ(state.moves.find(move_key(state.applied))->outcome, MoveOutcome::given);
  EXPECT_EQ(row().changed_at, state.applied);
  EXPECT_EQ(state.versions.assignments, state.applied);
  // The first use that the old owner was about to make is refused, and it learns who has it.
  const auto late = run(MarkUsed{"orders", kLater, kP, owner, disk});
  EXPECT_EQ(late.code, ResultCode::conflict);
  EXPECT_EQ(std::get<AssignmentRow>(late.row).assignment.owner_node, to);
  EXPECT_FALSE(row().used);
  ASSERT_TRUE(run(MarkUsed{"orders", kLater, kP, to, "d2"}).done());
}

TEST_F(Unused, G57_UsedFirst_TheMoveIsARealOne) {
  const std::string owner = row().owner_node;
  ASSERT_TRUE(run(MarkUsed{"orders", kLater, kP, owner, row().owner_disk}).done());
  ASSERT_TRUE(give(owner == "d" ? "e" : "d").done());
  EXPECT_EQ(row().owner_node, owner);
  EXPECT_EQ(row().move_id, state.applied);
}

TEST_F(Unused, G57_RulesOfTargets_HoldForItToo) {
  const std::string owner = row().owner_node;
  const std::string to = owner == "d" ? "e" : "d";
  run(SetDraining{to, true});
  EXPECT_EQ(give(to).code, ResultCode::conflict);
  EXPECT_EQ(give("nobody").code, ResultCode::not_found);
  EXPECT_EQ(run(SetTarget{"orders", kLater, kP, to, RaftIndex(0), owner, "d1", ""}).code,
            ResultCode::conflict);
  EXPECT_EQ(row().owner_node, owner);
}

TEST_F(Moves, RecreatedTopic_KnowsNothingOfAMove) {
  set_target("d");
  const RaftIndex move = row().move_id;
  arm();
  run(DeleteTopic{"orders", kLife});
  CreateTopic c;
  c.name = "orders";
  c.incarnation = Incarnation(8);
  c.partitions = 1;
  c.visibility_timeout_ms = 30'000;
  c.max_in_flight_per_partition = 100;
  c.max_acked_ahead_per_partition = 100;
  ASSERT_TRUE(run(c).done());
  const Assignment fresh = row();
  EXPECT_EQ(complete(move, 1).code, ResultCode::conflict);
  EXPECT_EQ(run(VoidFreeze{"orders", kLife, kP, "s", 1}).code, ResultCode::conflict);
  EXPECT_EQ(run(ClearTarget{"orders", kLife, kP, "d", move, ""}).code, ResultCode::conflict);
  EXPECT_EQ(row(), fresh);
  EXPECT_TRUE(fresh.target_node.empty());
  EXPECT_EQ(fresh.freeze_epoch, 0u);
}

// ---- what holds moves back

TEST_F(Moves, MoveRate_IsPutWhateverStoodBefore) {
  const RaftIndex assignments = state.versions.assignments;
  EXPECT_EQ(state.move_rate, std::nullopt);
  ASSERT_TRUE(run(SetMoveRate{5'000'000}).done());
  EXPECT_EQ(state.move_rate, 5'000'000u);
  ASSERT_TRUE(run(SetMoveRate{5'000'000}).done()) << "again";
  EXPECT_EQ(state.move_rate, 5'000'000u);
  ASSERT_TRUE(run(SetMoveRate{0}).done());
  EXPECT_EQ(state.move_rate, 0u) << "no limit, which is not the same as nothing set";
  ASSERT_TRUE(run(SetMoveRate{}).done());
  EXPECT_EQ(state.move_rate, std::nullopt);
  EXPECT_EQ(state.versions.assignments, assignments) << "no assignment was touched";
}

TEST_F(Moves, MoveRate_UnderWhichNoMoveWouldEnd_IsRefused) {
  for (const std::uint64_t rate : {std::uint64_t{1}, kMoveRateMin - 1, kMoveRateMax + 1}) {
    EXPECT_EQ(run(SetMoveRate{rate}).code, ResultCode::invalid) << rate;
    EXPECT_EQ(state.move_rate, std::nullopt);
  }
  EXPECT_TRUE(run(SetMoveRate{kMoveRateMin}).done());
  EXPECT_TRUE(run(SetMoveRate{kMoveRateMax}).done());
}

TEST_F(Moves, Pause_OfAMove_IsItsOwnAndEndsWithIt) {
  set_target("d");
  const RaftIndex move = row().move_id;
  EXPECT_FALSE(state.paused(row()));
  EXPECT_EQ(run(PauseMove{"orders", kLife, kP, RaftIndex(3), true}).code, ResultCode::conflict);
  EXPECT_EQ(run(PauseMove{"orders", kLife, kP, RaftIndex(0), true}).code, ResultCode::invalid);
  ASSERT_TRUE(run(PauseMove{"orders", kLife, kP, move, true}).done());
  EXPECT_TRUE(row().paused);
  EXPECT_TRUE(state.paused(row()));
  EXPECT_EQ(state.versions.assignments, state.applied);
  const RaftIndex then = state.applied;
  ASSERT_TRUE(run(PauseMove{"orders", kLife, kP, move, true}).done());
  EXPECT_EQ(row().changed_at, then) << "nothing was changed";
  ASSERT_TRUE(set_target("e", move).done());
  EXPECT_FALSE(row().paused) << "that is another move";
  ASSERT_TRUE(run(PauseMove{"orders", kLife, kP, row().move_id, true}).done());
  ASSERT_TRUE(run(ClearTarget{"orders", kLife, kP, "e", row().move_id, "aborted"}).done());
  EXPECT_FALSE(row().paused);
  set_target("d");
  ASSERT_TRUE(run(PauseMove{"orders", kLife, kP, row().move_id, true}).done());
  arm();
  ASSERT_TRUE(complete(row().move_id, row().freeze_epoch).done()) << "a flip is not held up";
  EXPECT_EQ(row().owner_node, "d");
  EXPECT_FALSE(row().paused);
  ASSERT_TRUE(set_target("e").done());
  ASSERT_TRUE(run(PauseMove{"orders", kLife, kP, row().move_id, true}).done());
  ASSERT_TRUE(run(PauseMove{"orders", kLife, kP, row().move_id, false}).done());
  EXPECT_FALSE(state.paused(row()));
}

TEST_F(Moves, Pause_OfANodeOrOfAll_HoldsEachMoveItIsAbout) {
  set_target("d");
  EXPECT_EQ(run(PauseMoves{"nobody", true}).code, ResultCode::not_found);
  ASSERT_TRUE(run(PauseMoves{"e", true}).done());
  EXPECT_FALSE(state.paused(row()));
  for (const char* node : {"s", "d"}) {
    ASSERT_TRUE(run(PauseMoves{node, true}).done());
    EXPECT_TRUE(state.paused(row())) << node;
    ASSERT_TRUE(run(member(node)).done());
    EXPECT_TRUE(state.paused(row())) << "a restart does not end it";
    ASSERT_TRUE(run(PauseMoves{node, false}).done());
    EXPECT_FALSE(state.paused(row())) << node;
  }
  ASSERT_TRUE(run(PauseMoves{"", true}).done());
  EXPECT_TRUE(state.paused(row()));
  const Versions then = state.versions;
  ASSERT_TRUE(run(PauseMoves{"", true}).done());
  EXPECT_TRUE(state.versions == then && state.paused(row())) << "nothing was changed";
  ASSERT_TRUE(run(PauseMoves{"", false}).done());
  EXPECT_FALSE(state.paused(row()));
  EXPECT_FALSE(row().paused);
}

TEST_F(Moves, RateOfAMove_IsItsOwnAndEndsWithIt) {
  const auto set = [&](std::string to, std::uint64_t rate) {
    SetTarget c{"orders", kLife, kP, "s", row().move_id, std::move(to), "d1", "operator"};
    c.max_bytes_per_second = rate;
    return run(c);
  };
  EXPECT_EQ(set("d", kMoveRateMin - 1).code, ResultCode::invalid);
  ASSERT_TRUE(set("d", 4096).done());
  EXPECT_EQ(row().move_rate, 4096u);
  ASSERT_TRUE(set("e", 0).done());
  EXPECT_EQ(row().move_rate, 0u) << "another move";
  ASSERT_TRUE(set("d", 8192).done());
  ASSERT_TRUE(run(ClearTarget{"orders", kLife, kP, "d", row().move_id, "aborted"}).done());
  EXPECT_EQ(row().move_rate, 0u);
  ASSERT_TRUE(set("d", 8192).done());
  arm();
  ASSERT_TRUE(complete(row().move_id, row().freeze_epoch).done());
  EXPECT_EQ(row().move_rate, 0u);
}

}  // namespace
}  // namespace narad::metastore
