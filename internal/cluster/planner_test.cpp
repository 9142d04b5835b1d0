#include "internal/cluster/planner.h"

#include <gtest/gtest.h>

#include <map>

#include "internal/metastore/apply.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using metastore::State;

// A cluster that is changed by entries only, as the real one.
struct Cluster {
  State state;
  bool checks = true;  // after every entry
  bool run(const metastore::Command& command) {
    const bool done = metastore::apply(state, state.applied.next(), command).done();
    if (checks) metastore::check_invariants(state);
    return done;
  }
  void join(const std::string& id, std::vector<std::string> disks = {"d1"}) {
    run(metastore::RegisterMember{id, id + ":1", id + ":2", "b", std::move(disks), UnixMillis(1)});
  }
  void create(const std::string& name, std::uint32_t partitions) {
    create_unused(name, partitions);
    for (std::uint32_t p = 0; p < partitions; ++p) {
      const Assignment& a = *state.assignment(name, PartitionId(p));
      run(metastore::MarkUsed{name, a.incarnation, PartitionId(p), a.owner_node, a.owner_disk});
    }
  }
  void create_unused(const std::string& name, std::uint32_t partitions) {
    metastore::CreateTopic c;
    c.name = name;
    c.incarnation = Incarnation(state.applied.value() + 1);
    c.partitions = partitions;
    c.visibility_timeout_ms = 1000;
    c.max_in_flight_per_partition = 1;
    c.max_acked_ahead_per_partition = 1;
    ASSERT_TRUE(run(c));
  }
  // As a fan-out child; there is no entry for it yet.
  void attach(const std::string& child, const std::string& parent) {
    metastore::TopicRow row = *state.topics.find(child);
    row.topic.role = TopicRole::child;
    row.topic.parent = parent;
    state.topics.put(std::make_shared<const metastore::TopicRow>(std::move(row)));
  }
  void drain(const std::string& id) { run(metastore::SetDraining{id, true}); }
  void undrain(const std::string& id) { run(metastore::SetDraining{id, false}); }
  void die(const std::string& id) { run(metastore::MarkDead{id, state.members.find(id)->stamp}); }
  // Sets the targets of a plan; every one of them is granted.
  void begin(const MovePlan& plan) {
    for (const auto& move : plan.moves) ASSERT_TRUE(run(move)) << move.name;
  }
  // Finishes one move that is under way; false if there is none.
  bool finish_one() {
    std::optional<metastore::CompleteMove> flip;
    state.topics.for_each([&](const metastore::TopicRowPtr& row) {
      for (std::uint32_t p = 0; p < row->assignments.size() && !flip; ++p) {
        const Assignment& a = row->assignments[p];
        if (a.target_node.empty()) continue;
        flip = metastore::CompleteMove{row->topic.name, row->topic.incarnation,
                                       PartitionId(p),  a.owner_node,
                                       a.move_id,       a.freeze_epoch + 1};
      }
    });
    if (!flip) return false;
    EXPECT_TRUE(run(metastore::ArmFreeze{flip->name, flip->incarnation, flip->partition,
                                         flip->source_node, flip->move_id}));
    EXPECT_TRUE(run(*flip));
    return true;
  }
  // Plans and moves until nothing is left to do; answers how many moves there were.
  std::size_t settle(const PlannerLimits& limits = {}) {
    std::size_t moves = 0;
    for (int round = 0; round < 10'000; ++round) {
      const MovePlan plan = plan_moves(state, limits);
      begin(plan);
      moves += plan.moves.size();
      if (!finish_one() && plan.moves.empty()) return moves;
    }
    ADD_FAILURE() << "the planner finds no end";
    return moves;
  }
  std::map<std::string, std::size_t> owned() const {
    std::map<std::string, std::size_t> count;
    state.members.for_each([&](const auto& m) { count[m->id] = 0; });
    state.topics.for_each([&](const metastore::TopicRowPtr& row) {
      for (const Assignment& a : row->assignments) ++count[a.owner_node];
    });
    return count;
  }
};

using Counts = std::map<std::string, std::size_t>;

TEST(Planner, PLN_4_SixSixSixNothing_MovesFourToTheEmptyNode) {
  Cluster c;
  for (const char* id : {"a", "b", "c"}) c.join(id);
  c.create("orders", 18);
  c.join("d");
  ASSERT_EQ(c.owned(), (Counts{{"a", 6}, {"b", 6}, {"c", 6}, {"d", 0}}));
  const MovePlan plan = plan_moves(c.state);
  ASSERT_EQ(plan.moves.size(), 4u);
  for (const auto& move : plan.moves) EXPECT_EQ(move.target_node, "d");
  EXPECT_EQ(c.settle(), 4u);
  EXPECT_EQ(c.owned(), (Counts{{"a", 5}, {"b", 5}, {"c", 4}, {"d", 4}}));
}

TEST(Planner, PLN_2_PLN_3_RemaindersStayWithThoseWhoHoldMost) {
  Cluster c;
  for (const char* id : {"a", "b", "c"}) c.join(id);
  c.create("orders", 10);  // 4, 3, 3
  EXPECT_TRUE(plan_moves(c.state).moves.empty());
  c.join("d");
  EXPECT_EQ(c.settle(), 2u);
  EXPECT_EQ(c.owned(), (Counts{{"a", 3}, {"b", 3}, {"c", 2}, {"d", 2}}));
}

TEST(Planner, Trap30_PLN_5_WhileMovesRun_PlansNothingThatIsUnderWayAndNothingBack) {
  Cluster c;
  for (const char* id : {"a", "b"}) c.join(id);
  c.create("orders", 12);
  c.join("c");
  const MovePlan first = plan_moves(c.state);
  ASSERT_EQ(first.moves.size(), 4u);
  c.begin(first);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(plan_moves(c.state).moves.empty()) << i << " moves have ended";
    ASSERT_TRUE(c.finish_one());
  }
  EXPECT_TRUE(plan_moves(c.state).moves.empty());
}

TEST(Planner, PLN_6_NeverMoreInFlightThanTheLimit) {
  Cluster c;
  c.join("a");
  c.create("orders", 100);
  c.join("b");
  MovePlan plan = plan_moves(c.state);
  EXPECT_EQ(plan.moves.size(), 8u);
  EXPECT_EQ(plan.wanted, 50u);
  c.begin(plan);
  plan = plan_moves(c.state);
  EXPECT_TRUE(plan.moves.empty());
  EXPECT_EQ(plan.wanted, 42u);
  ASSERT_TRUE(c.finish_one());
  EXPECT_EQ(plan_moves(c.state).moves.size(), 1u);
  EXPECT_EQ(c.settle(), 42u);
}

TEST(Planner, PLN_8_PartitionsOfADeadOwner_AreLeftAlone) {
  Cluster c;
  for (const char* id : {"a", "b", "c"}) c.join(id);
  c.create("orders", 9);
  c.die("c");
  const MovePlan plan = plan_moves(c.state);
  EXPECT_TRUE(plan.moves.empty());
  std::size_t dead = 0;
  for (const Explained& e : plan.explained) dead += e.verdict == Verdict::dead_owner ? 1 : 0;
  EXPECT_EQ(dead, 3u);
}

TEST(Planner, PLN_8_WhatLiesOnADiskThatItsOwnerDoesNotHave_IsLeftAlone) {
  Cluster c;
  for (const char* id : {"a", "b", "c"}) c.join(id);
  c.create("orders", 9);
  c.join("d");
  c.join("c", {"another"});  // its disk was emptied, or is not mounted
  const MovePlan plan = plan_moves(c.state);
  EXPECT_EQ(plan.moves.size(), 2u);
  for (const auto& move : plan.moves) EXPECT_NE(move.owner_node, "c");
  const auto lost = std::count_if(plan.explained.begin(), plan.explained.end(),
                                  [](const auto& e) { return e.verdict == Verdict::disk_missing; });
  EXPECT_EQ(lost, 3);
  EXPECT_EQ(c.settle(), 2u);
  EXPECT_EQ(c.owned(), (Counts{{"a", 2}, {"b", 2}, {"c", 4}, {"d", 1}}));
  c.drain("c");
  EXPECT_EQ(c.settle(), 1u);
  EXPECT_EQ(c.owned().at("c"), 3u);
}

TEST(Planner, PLN_9_AmongEquals_AChildKeepsAwayFromItsParent) {
  Cluster c;
  for (const char* id : {"a", "b"}) c.join(id);
  c.create("orders", 2);
  ASSERT_EQ(c.state.assignment("orders", PartitionId(0))->owner_node, "a");
  ASSERT_EQ(c.state.assignment("orders", PartitionId(1))->owner_node, "b");
  c.join("c");
  for (const char* id : {"a", "b"}) c.drain(id);
  c.create("orders-copy", 2);
  c.attach("orders-copy", "orders");
  for (const char* id : {"a", "b"}) c.undrain(id);
  c.drain("c");
  const MovePlan plan = plan_moves(c.state);
  ASSERT_EQ(plan.moves.size(), 2u);
  EXPECT_EQ(plan.moves[0].partition, PartitionId(0));
  EXPECT_EQ(plan.moves[0].target_node, "b");
  EXPECT_EQ(plan.moves[1].partition, PartitionId(1));
  EXPECT_EQ(plan.moves[1].target_node, "a");
}

TEST(Planner, PLN_9_BalanceWins_AChildMayLieWithItsParent) {
  Cluster c;
  c.join("a");
  c.create("orders", 1);
  c.join("b");
  c.drain("a");
  c.create("others", 2);
  c.join("c");
  c.drain("b");
  c.create("orders-copy", 1);
  c.attach("orders-copy", "orders");
  for (const char* id : {"a", "b"}) c.undrain(id);
  c.drain("c");
  ASSERT_EQ(c.owned(), (Counts{{"a", 1}, {"b", 2}, {"c", 1}}));
  const MovePlan plan = plan_moves(c.state);
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].name, "orders-copy");
  EXPECT_EQ(plan.moves[0].target_node, "a");
}

TEST(Planner, PLN_5_WhatAnOperatorHasPutSomewhere_StaysUntilThatNodeDrains) {
  Cluster c;
  for (const char* id : {"a", "b", "c", "d"}) c.join(id);
  c.create("orders", 12);
  PlannerLimits limits;
  for (std::uint32_t p = 0; p < 12; ++p) {
    const Assignment& a = *c.state.assignment("orders", PartitionId(p));
    if (a.owner_node == "b") limits.pinned.insert({"orders", PartitionId(p)});
  }
  c.join("e");
  for (const auto& move : plan_moves(c.state, limits).moves) EXPECT_NE(move.owner_node, "b");
  c.drain("b");
  const MovePlan plan = plan_moves(c.state, limits);
  const auto from_b = std::count_if(plan.moves.begin(), plan.moves.end(),
                                    [](const auto& m) { return m.owner_node == "b"; });
  EXPECT_EQ(from_b, 3);
}

TEST(Planner, DEC_2_DrainingNode_ShedsEverythingEvenly) {
  Cluster c;
  for (const char* id : {"a", "b", "c", "d"}) c.join(id);
  c.create("orders", 12);
  c.drain("d");
  EXPECT_EQ(c.settle(), 3u);
  EXPECT_EQ(c.owned(), (Counts{{"a", 4}, {"b", 4}, {"c", 4}, {"d", 0}}));
}

TEST(Planner, G57_NeverUsed_TakeNoPlaceOfAMoveAndLeaveInAFewPasses) {
  Cluster c;
  c.checks = false;  // large
  c.join("a");
  c.create("used", 20);
  for (std::uint32_t t = 0; t < 30; ++t) c.create_unused(cat("empty", t), 100);
  c.join("b");
  c.join("c");
  c.drain("a");
  int passes = 0;
  for (; passes < 100; ++passes) {
    const MovePlan plan = plan_moves(c.state);
    std::size_t moves = 0, given = 0;
    for (const auto& m : plan.moves) ++(m.name == "used" ? moves : given);
    ASSERT_LE(given, 256u);
    if (passes == 0) EXPECT_EQ(moves, 8u) << "the places are for those that have bytes";
    if (passes > 0) EXPECT_EQ(moves, 0u);
    if (given == 0) break;
    c.begin(plan);
  }
  EXPECT_EQ(passes, 12);  // 3,000 by 256
  EXPECT_EQ(c.owned(), (Counts{{"a", 20}, {"b", 1500}, {"c", 1500}}));
  EXPECT_EQ(c.settle(), 12u) << "twenty less the eight that are on their way";
  EXPECT_EQ(c.owned(), (Counts{{"a", 0}, {"b", 1510}, {"c", 1510}}));
  metastore::check_invariants(c.state);
}

// What PLN-8 keeps from moving is what cannot be copied.
TEST(Planner, G57_NeverUsedOfADeadNodeThatIsToGo_AreGivenAway) {
  Cluster c;
  for (const char* id : {"a", "b", "c"}) c.join(id);
  c.create("orders", 9);
  c.create_unused("empty", 9);
  c.die("c");
  EXPECT_TRUE(plan_moves(c.state).moves.empty()) << "it may come back";
  c.drain("c");
  EXPECT_EQ(c.settle(), 3u);
  EXPECT_EQ(c.owned(), (Counts{{"a", 8}, {"b", 7}, {"c", 3}}));
}

TEST(Planner, HeldPartitions_StayAndOthersGoInstead) {
  Cluster c;
  c.join("a");
  c.create("orders", 4);
  c.join("b");
  PlannerLimits limits;
  for (const auto& m : plan_moves(c.state).moves) limits.held.insert({m.name, m.partition});
  ASSERT_EQ(limits.held.size(), 2u);
  MovePlan plan = plan_moves(c.state, limits);
  ASSERT_EQ(plan.moves.size(), 2u);
  for (const auto& m : plan.moves) EXPECT_FALSE(limits.held.contains({m.name, m.partition}));
  for (const Explained& e : plan.explained) {
    EXPECT_EQ(e.verdict == Verdict::held, limits.held.contains(e.partition));
  }
  c.drain("a");
  plan = plan_moves(c.state, limits);
  EXPECT_EQ(plan.moves.size(), 2u) << "also those of a node that drains";
}

TEST(Planner, Shares_SayWhatEachHasAndShouldHave) {
  Cluster c;
  c.join("a");
  c.create("orders", 5);
  c.join("b");
  c.join("c");
  c.drain("c");
  const MovePlan plan = plan_moves(c.state);
  ASSERT_EQ(plan.shares.size(), 2u);
  EXPECT_EQ(plan.shares[0].node, "a");
  EXPECT_EQ(plan.shares[0].owned, 5u);
  EXPECT_EQ(plan.shares[0].share, 3u);
  EXPECT_EQ(plan.shares[1].share, 2u);
  for (const Explained& e : plan.explained) {
    EXPECT_EQ(e.to, e.verdict == Verdict::moves ? "b" : "");
  }
}

TEST(Planner, TwoDrainsAtOnce_EmptyBoth) {
  Cluster c;
  for (const char* id : {"a", "b", "c", "d"}) c.join(id);
  c.create("orders", 12);
  c.drain("c");
  c.drain("d");
  EXPECT_EQ(c.settle(), 6u);
  EXPECT_EQ(c.owned(), (Counts{{"a", 6}, {"b", 6}, {"c", 0}, {"d", 0}}));
}

TEST(Planner, Trap66_FullDisk_GetsNothingAndTheOthersShareTheRest) {
  Cluster c;
  for (const char* id : {"a", "b"}) c.join(id);
  c.create("orders", 8);
  c.join("c");
  c.join("d", {"d1", "d2"});
  PlannerLimits limits;
  limits.full = {{"c", "d1"}, {"d", "d1"}};
  const MovePlan plan = plan_moves(c.state, limits);
  EXPECT_EQ(plan.wanted, 2u) << "eight of which a, b and d take";
  for (const auto& move : plan.moves) {
    EXPECT_EQ(move.target_node, "d");
    EXPECT_EQ(move.target_disk, "d2");
  }
  c.settle(limits);
  EXPECT_EQ(plan_moves(c.state, limits).wanted, 0u);
  EXPECT_EQ(plan_moves(c.state).wanted, 2u) << "once there is room again";
}

TEST(Planner, Trap66_EverybodyIsFull_ADrainSaysSo) {
  Cluster c;
  for (const char* id : {"a", "b"}) c.join(id);
  c.create("orders", 2);
  c.drain("a");
  PlannerLimits limits;
  limits.full = {{"b", "d1"}};
  const MovePlan plan = plan_moves(c.state, limits);
  EXPECT_TRUE(plan.moves.empty());
  std::size_t told = 0;
  for (const Explained& e : plan.explained) told += e.verdict == Verdict::no_room ? 1 : 0;
  EXPECT_EQ(told, 1u);
}

TEST(Planner, WithoutReceivers_SaysSoAndPlansNothing) {
  Cluster c;
  c.join("a");
  c.create("orders", 3);
  c.drain("a");
  const MovePlan plan = plan_moves(c.state);
  EXPECT_TRUE(plan.moves.empty());
  for (const Explained& e : plan.explained) EXPECT_EQ(e.verdict, Verdict::no_receiver);
}

TEST(Planner, SeveralDisks_FillEvenly) {
  Cluster c;
  c.join("a");
  c.create("orders", 12);
  c.join("b", {"x", "y", "z"});
  EXPECT_EQ(c.settle(), 6u);
  std::map<std::string, int> disks;
  for (const Assignment& a : c.state.topics.find("orders")->assignments) {
    if (a.owner_node == "b") ++disks[a.owner_disk];
  }
  EXPECT_EQ(disks, (std::map<std::string, int>{{"x", 2}, {"y", 2}, {"z", 2}}));
}

// ---- properties over random clusters ---------------------------------------------------------

struct Dice {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  }
};

void shake(Cluster& c, Dice& dice) {
  const auto members = 1 + dice.below(7);
  for (std::uint64_t i = 0; i < members; ++i) c.join(cat("n", i), {"d1", "d2"});
  for (std::uint64_t t = 0; t < dice.below(5); ++t) {
    const std::string name = cat("t", t);
    const auto partitions = static_cast<std::uint32_t>(1 + dice.below(30));
    if (dice.below(4) == 0) {
      c.create_unused(name, partitions);
    } else {
      c.create(name, partitions);
    }
    if (dice.below(3) == 0) c.join(cat("late", t));
  }
  std::vector<std::string> ids;
  c.state.members.for_each([&](const auto& m) { ids.push_back(m->id); });
  for (const std::string& id : ids) {
    if (dice.below(5) == 0) c.drain(id);
    if (dice.below(6) == 0) c.die(id);
  }
}

TEST(Planner, PLN_1_RandomClusters_EndEvenAndMoveNothingTwice) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice{seed};
    Cluster c;
    shake(c, dice);
    const MovePlan whole = plan_moves(c.state, PlannerLimits{100'000});
    ASSERT_EQ(whole.moves.size(), whole.wanted) << "seed " << seed;
    // Step by step under the usual limit there are as many moves as in one go: the smallest number.
    ASSERT_EQ(c.settle(), whole.wanted) << "seed " << seed;
    std::size_t least = SIZE_MAX, most = 0, receivers = 0;
    const auto owned = c.owned();
    c.state.members.for_each([&](const auto& m) {
      const std::size_t n = owned.at(m->id);
      if (m->status == metastore::MemberStatus::dead) return;
      if (m->draining) {
        if (receivers > 0) EXPECT_TRUE(n == 0 || whole.wanted == 0) << "seed " << seed;
        return;
      }
      ++receivers;
      least = std::min(least, n);
      most = std::max(most, n);
    });
    if (receivers > 0) EXPECT_LE(most - least, 1u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace narad::cluster
