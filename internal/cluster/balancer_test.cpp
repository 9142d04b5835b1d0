// The leader's part in moves and departures, over real connections between simulated machines and a
// consensus that never fails unless a test says so. Destinations are played by the test.
#include "internal/cluster/balancer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/cluster/world_for_test.h"

namespace narad::cluster {
namespace {

using namespace testing;
using metastore::MemberStatus;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Balance : public ::testing::Test {
 protected:
  // n1 leads. `nodes` of them are up; more may join.
  void begin(int nodes, std::uint64_t seed = 1) {
    world = std::make_unique<World>(nodes, seed);
    ASSERT_TRUE(world->form());
    ASSERT_EQ(world->sky.leader, "n1");
    world->sim.run_for(2s);
  }
  World& w() { return *world; }
  metastore::State& state() { return world->sky.state; }
  void create(const std::string& name, std::uint32_t partitions, bool used = true) {
    metastore::CreateTopic c;
    c.name = name;
    c.incarnation = Incarnation(100 + state().applied.value());
    c.partitions = partitions;
    c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1;
    ASSERT_TRUE(w().sky.apply(c).done());
    for (std::uint32_t p = 0; used && p < partitions; ++p) {
      const Assignment& a = *state().assignment(name, PartitionId(p));
      w().sky.apply(
          metastore::MarkUsed{name, a.incarnation, PartitionId(p), a.owner_node, a.owner_disk});
    }
  }
  void join(const std::string& id) {
    w().add(id, {"n1", "n2", "n3", id});
    w().boot(id);
    ASSERT_TRUE(w().until([&] { return w().setup(id).started && w().member(id) != nullptr; }));
  }
  void drain(const std::string& id) {
    ASSERT_TRUE(w().sky.apply(metastore::SetDraining{id, true}).done());
  }
  // What that node says of its drain from now on: nothing left.
  void empty(const std::string& id) {
    w().node(id).drain = {w().member(id)->drain_id, true, 0, true, 0};
  }
  std::vector<MoveUnderWay> moves() { return moves_under_way(state()); }
  std::size_t owned(const std::string& id) {
    std::size_t n = 0;
    state().topics.for_each([&](const metastore::TopicRowPtr& row) {
      for (const Assignment& a : row->assignments) n += a.owner_node == id ? 1 : 0;
    });
    return n;
  }
  // The destination of one move takes the partition over. False if nothing moves.
  bool finish_one() {
    const auto now = moves();
    if (now.empty()) return false;
    const TopicPartition tp = now.front().partition;
    const Assignment a = *state().assignment(tp.topic, tp.partition);
    w().sky.apply(
        metastore::ArmFreeze{tp.topic, a.incarnation, tp.partition, a.owner_node, a.move_id});
    return w()
        .sky
        .apply(metastore::CompleteMove{tp.topic, a.incarnation, tp.partition, a.owner_node,
                                       a.move_id, a.freeze_epoch + 1})
        .done();
  }
  const BalancerReport& report() { return w().node(w().sky.leader).membership.balancer().report(); }
  bool until(const std::function<bool()>& done, Nanos limit = 60s) {
    return w().until(done, limit);
  }

  std::unique_ptr<World> world;
};

TEST_F(Balance, PLN_10_OWN_4_NodeThatJoins_GetsTargetsAndNothingElseIsWritten) {
  begin(3);
  create("orders", 12);
  w().sim.run_for(15s);
  EXPECT_THAT(moves(), IsEmpty());
  w().sky.proposals.clear();
  join("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 3s)) << "the tick is ten seconds away";
  for (const MoveUnderWay& m : moves()) EXPECT_EQ(m.to, "n4");
  w().sim.run_for(30s);
  EXPECT_EQ(moves().size(), 3u) << "nobody copies, so nothing changes";
  EXPECT_THAT(w().sky.proposals,
              Each(::testing::AnyOf("set_target", "register_member", "heartbeats")));
  EXPECT_EQ(owned("n4"), 0u);
}

TEST_F(Balance, OWN_3_AJoinAndADrain_AreBegunByTheSameEntry) {
  begin(3);
  create("orders", 12);
  join("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 3s));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(finish_one());
  w().sky.proposals.clear();
  drain("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 3s));
  EXPECT_THAT(w().sky.proposals,
              Each(::testing::AnyOf("set_target", "set_draining", "heartbeats")));
  EXPECT_THAT(w().sky.proposals, ::testing::Contains("set_target").Times(3));
}

TEST_F(Balance, PLN_6_SlotsOfFinishedMoves_AreRefilledWithoutWaitingForATick) {
  begin(3);
  create("orders", 60);
  join("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 8; }, 5s));
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(finish_one());
    EXPECT_EQ(moves().size(), 7u);
    ASSERT_TRUE(until([&] { return moves().size() == 8; }, 500ms)) << i;
  }
  ASSERT_TRUE(until([&] {
    if (moves().size() > 8) ADD_FAILURE() << "more than eight at once";
    return !finish_one() && owned("n4") == 15;
  }));
}

TEST_F(Balance, PLN_7_WithoutABarrier_NothingIsPlanned) {
  begin(3);
  create("orders", 12);
  w().sky.proposals.clear();
  w().sky.quorum = false;
  w().sky.state.members.put(std::make_shared<const metastore::Member>([&] {
    metastore::Member m = *w().member("n3");
    m.id = "n4";
    return m;
  }()));
  w().sky.tell_all();
  w().sim.run_for(30s);
  EXPECT_THAT(w().sky.proposals, Not(Contains("set_target")));
  w().sky.quorum = true;
  w().sky.tell_all();
  ASSERT_TRUE(until([&] { return !moves().empty(); }, 15s));
}

TEST_F(Balance, PLN_7_PassesDoNotInterleave) {
  begin(3);
  create("orders", 60);
  w().sky.entry_takes = 40ms;
  w().add("n4", {"n1", "n2", "n3", "n4"});
  w().boot("n4");
  // An operator asks for passes all the time while the leader makes its own.
  struct Ask {
    static Task<void> run(Balancer* balancer, Env* env) {
      for (int i = 0; i < 40; ++i) {
        (void)co_await balancer->rebalance();
        co_await sleep_for(*env, 5ms);
      }
    }
  };
  TestNode& leader = w().node("n1");
  for (int i = 0; i < 3; ++i) {
    leader.group.spawn("ask", Ask::run(&leader.membership.balancer(), &leader.env));
  }
  std::size_t most = 0;
  ASSERT_TRUE(until([&] {
    most = std::max(most, moves().size());
    return moves().size() == 8;
  }));
  for (int i = 0; i < 20; ++i) {
    finish_one();
    w().sim.run_for(50ms);
    most = std::max(most, moves().size());
  }
  EXPECT_EQ(most, 8u);
}

TEST_F(Balance, G57_ThreeThousandNeverUsed_LeaveADrainingNodeInAFewPasses) {
  begin(4);
  w().sky.entry_takes = 50us;
  w().sky.checks = false;
  for (const char* id : {"n1", "n2", "n3"}) drain(id);  // so that all are made on n4
  for (int t = 0; t < 30; ++t) create(cat("empty", t), 100, false);
  for (const char* id : {"n1", "n2", "n3"}) w().sky.apply(metastore::SetDraining{id, false});
  ASSERT_EQ(owned("n4"), 3000u);
  drain("n4");
  ASSERT_TRUE(until([&] { return owned("n4") == 0; }, 20s)) << owned("n4");
  EXPECT_EQ(owned("n1") + owned("n2") + owned("n3"), 3000u);
  metastore::check_invariants(state());
}

TEST_F(Balance, TGT_3_TGT_4_DeadTarget_IsClearedAfterTwoMinutesOfThisLeadersClock) {
  begin(4);
  create("orders", 12);
  ASSERT_EQ(w().roles(), "n1 n2 n3 n4L");
  drain("n3");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 5s));
  std::string target = moves().front().to == "n1" ? "n2" : moves().front().to;
  if (target == "n1") target = "n4";
  const auto aimed = [&] {
    std::size_t n = 0;
    for (const MoveUnderWay& m : moves()) n += m.to == target ? 1 : 0;
    return n;
  };
  if (aimed() == 0) target = "n4";
  ASSERT_GT(aimed(), 0u);
  w().kill(target);
  ASSERT_TRUE(until([&] { return w().member(target)->status == MemberStatus::dead; }));
  w().sim.run_for(80s);
  EXPECT_GT(aimed(), 0u) << "110 seconds: it may still come back";
  // Another leader has not waited yet, whatever the stamps say.
  const std::string next = target == "n2" ? "n3" : "n2";
  w().sky.elect(next);
  w().sim.run_for(115s);
  EXPECT_GT(aimed(), 0u) << "it leads for less than two minutes";
  ASSERT_TRUE(until([&] { return aimed() == 0; }, 20s));
  EXPECT_TRUE(until([&] { return moves().size() == 3; }, 1s)) << "and they have new ones";
}

TEST_F(Balance, TGT_6_TargetThatIsBackInTime_KeepsItsMoves) {
  begin(3);
  create("orders", 12);
  join("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 5s));
  const RaftIndex id = moves().front().move_id;
  w().kill("n4");
  w().sim.run_for(100s);
  EXPECT_EQ(w().member("n4")->status, MemberStatus::dead);
  w().boot("n4");
  w().sim.run_for(5min);
  EXPECT_EQ(w().member("n4")->status, MemberStatus::alive);
  EXPECT_EQ(moves().front().move_id, id);
}

TEST_F(Balance, TGT_1_TGT_8_SlotsOfClearedMoves_AreRefilledInTheSamePass) {
  begin(5);
  create("orders", 40);
  join("n6");  // six go to it
  w().sim.run_for(2s);
  drain("n3");  // and two of this one's eight
  ASSERT_TRUE(until([&] { return moves().size() == 8; }, 5s));
  w().kill("n6");
  w().sky.proposals.clear();
  const auto to_dead = [&] {
    std::size_t n = 0;
    for (const MoveUnderWay& m : moves()) n += m.to == "n6" ? 1 : 0;
    return n;
  };
  ASSERT_GT(to_dead(), 0u);
  ASSERT_TRUE(until([&] { return to_dead() == 0; }, 200s));
  ASSERT_TRUE(until([&] { return moves().size() == 8; }, 50ms)) << "not a pass later";
  std::size_t clears = 0, after = 0;
  for (const std::string& op : w().sky.proposals) {
    if (op == "clear_target") ++clears;
    if (op == "set_target" && clears > 0) ++after;
  }
  EXPECT_GT(clears, 0u);
  EXPECT_EQ(after, clears);
}

TEST_F(Balance, DEC_10_TargetsAimedAtADrainingNode_AreCleared) {
  begin(3);
  create("orders", 12);
  join("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 5s));
  drain("n4");
  ASSERT_TRUE(until([&] { return moves().empty(); }, 3s));
}

// Its drain is taken back, a topic is created, and it is drained anew, all between the judgement
// under the placement lock and the entry that would let it go.
TEST_F(Balance, DEC_11_WhatLandsOnItWhileItIsLetGo_KeepsIt) {
  begin(4);
  drain("n4");
  bool raced = false;
  w().sky.before_apply = [&](const metastore::Command& c) {
    if (raced || std::get_if<metastore::Leaving>(&c) == nullptr) return;
    raced = true;
    EXPECT_TRUE(w().sky.apply(metastore::SetDraining{"n4", false}).done());
    create("orders", 8);
    drain("n4");
  };
  empty("n4");
  ASSERT_TRUE(until([&] { return raced; }));
  EXPECT_EQ(owned("n4"), 2u);
  w().sim.run_for(20s);
  w().sky.before_apply = nullptr;
  ASSERT_NE(w().member("n4"), nullptr);
  EXPECT_FALSE(w().member("n4")->leaving);
  EXPECT_EQ(owned("n4"), 2u) << "nobody copies";
  ASSERT_EQ(report().drains.size(), 1u);
  EXPECT_TRUE(report().drains[0].has(DrainRule::owns_partitions));
}

TEST_F(Balance, DEC_12_LastHolder_KeepsItsMoveAndSaysWhy) {
  begin(4);
  create("orders", 12);
  join("n5");
  ASSERT_TRUE(until([&] { return moves().size() == 2; }, 5s));
  const std::string source =
      moves().front().from == "n1" ? moves().back().from : moves().front().from;
  ASSERT_NE(source, "n1");
  w().kill(source);
  ASSERT_TRUE(until([&] { return w().member(source)->status == MemberStatus::dead; }));
  drain("n5");
  empty("n5");
  w().sim.run_for(30s);
  std::size_t kept = 0;
  for (const MoveUnderWay& m : moves()) kept += m.from == source && m.to == "n5" ? 1 : 0;
  EXPECT_EQ(kept, 1u);
  ASSERT_EQ(report().drains.size(), 1u);
  EXPECT_TRUE(report().drains[0].has(DrainRule::move_target));
  ASSERT_EQ(report().blocked.size(), 1u);
  EXPECT_EQ(report().blocked[0].blocks, std::vector<std::string_view>{"source_dead"});
  EXPECT_NE(w().member("n5"), nullptr);
}

TEST_F(Balance, DEC_4_DrainingNode_LeavesWhenItOwnsNothingAndSaysThatItsWalIsEmpty) {
  begin(4);
  create("orders", 12);
  drain("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 5s));
  empty("n4");
  w().sim.run_for(20s);
  EXPECT_NE(w().member("n4"), nullptr) << "it owns three";
  ASSERT_EQ(report().drains.size(), 1u);
  EXPECT_TRUE(report().drains[0].has(DrainRule::owns_partitions));
  while (finish_one()) {
  }
  ASSERT_TRUE(until([&] { return w().member("n4") == nullptr; }, 15s));
  EXPECT_EQ(w().roles(), "n1 n2 n3");
  EXPECT_THAT(report().drains, IsEmpty());
  ASSERT_TRUE(until([&] { return !w().machine("n4").up(); }, 30s));
  EXPECT_EQ(w().machine("n4").last_exit()->code, kExitRemoved);
}

TEST_F(Balance, DEC_13_DEC_15_WhatItsWalHolds_KeepsItUntilItSaysOtherwise) {
  begin(4);
  drain("n4");
  w().sim.run_for(20s);
  ASSERT_EQ(report().drains.size(), 1u);
  EXPECT_TRUE(report().drains[0].has(DrainRule::ingress_backlog)) << "it says nothing of refusing";
  w().node("n4").drain = {w().member("n4")->drain_id, true, 0, true, 5};
  w().sim.run_for(20s);
  EXPECT_NE(w().member("n4"), nullptr);
  EXPECT_THAT(report().drains[0].reasons[0].detail, HasSubstr("holds 5 messages"));
  empty("n4");
  ASSERT_TRUE(until([&] { return w().member("n4") == nullptr; }, 15s));
}

TEST_F(Balance, DEC_8_LeaderThatDrains_HandsOverAndIsRemovedByTheNext) {
  begin(4);
  drain("n1");
  empty("n1");
  ASSERT_TRUE(until([&] { return w().member("n1") == nullptr; }, 40s));
  EXPECT_NE(w().sky.leader, "n1");
  EXPECT_EQ(w().roles(), "n2 n3 n4") << "n4 took the vote over before";
}

TEST_F(Balance, DEC_5_DEC_19_ThreeNodes_KeepThree) {
  begin(3);
  w().sim.run_for(60s);
  drain("n3");
  empty("n3");
  w().sim.run_for(60s);
  EXPECT_EQ(w().roles(), "n1 n2 n3");
  EXPECT_FALSE(w().member("n3")->leaving);
  EXPECT_TRUE(report().drains.at(0).has(DrainRule::min_voters));
  join("n4");
  ASSERT_TRUE(until([&] { return w().member("n3") == nullptr; }, 40s));
  EXPECT_EQ(w().roles(), "n1 n2 n4");
}

TEST_F(Balance, DEC_7_OfTwoThatMayGo_TheDeadOneGoesFirst) {
  begin(5);
  w().kill("n5");
  ASSERT_TRUE(until([&] { return w().member("n5")->status == MemberStatus::dead; }));
  std::vector<std::string> gone;
  w().sky.before_apply = [&](const metastore::Command& c) {
    if (const auto* leaving = std::get_if<metastore::Leaving>(&c)) gone.push_back(leaving->id);
  };
  drain("n4");
  w().sky.apply(metastore::SetDraining{"n5", true, true});
  w().sim.run_for(1s);
  empty("n4");
  ASSERT_TRUE(until([&] { return w().member("n5") == nullptr; }, 30s));
  w().sim.run_for(30s);
  EXPECT_EQ(gone.front(), "n5");
}

TEST_F(Balance, DEC_3_RestartInTheMiddle_KeepsDraining) {
  begin(4);
  create("orders", 12);
  drain("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 5s));
  const RaftIndex id = w().member("n4")->drain_id;
  w().kill("n4");
  w().boot("n4");
  ASSERT_TRUE(until([&] { return w().setup("n4").started; }));
  w().sim.run_for(15s);
  EXPECT_TRUE(w().member("n4")->draining);
  EXPECT_EQ(w().member("n4")->drain_id, id);
  EXPECT_EQ(moves().size(), 3u);
}

TEST_F(Balance, ABT_5_AbortedMove_IsPlannedAgainOnlyLater) {
  begin(3);
  create("orders", 12);
  join("n4");
  ASSERT_TRUE(until([&] { return moves().size() == 3; }, 5s));
  const MoveUnderWay aborted = moves().front();
  const Incarnation life = state().topics.find("orders")->topic.incarnation;
  w().sky.apply(metastore::ClearTarget{"orders", life, aborted.partition.partition, aborted.to,
                                       aborted.move_id, "aborted by admin",
                                       w().machine("n1").clock().wall_millis()});
  w().sim.run_for(60s);
  for (const MoveUnderWay& m : moves()) EXPECT_NE(m.partition, aborted.partition);
  EXPECT_EQ(moves().size(), 3u) << "another one goes in its place";
  // Once nothing else is left to choose, its time comes.
  for (const MoveUnderWay& m : moves()) {
    w().sky.apply(metastore::ClearTarget{"orders", life, m.partition.partition, m.to, m.move_id,
                                         "aborted by admin"});
    w().sim.run_for(1s);
  }
  w().sim.run_for(6min);
  EXPECT_EQ(moves().size(), 3u);
}

TEST_F(Balance, G48_NewLeader_StartsItsReportAfresh) {
  begin(3);
  drain("n3");
  w().sim.run_for(5s);
  ASSERT_EQ(report().drains.size(), 1u);
  w().sky.elect("n2");
  w().sim.run_for(5s);
  EXPECT_THAT(w().node("n1").membership.balancer().report().drains, IsEmpty());
  EXPECT_EQ(w().node("n2").membership.balancer().report().drains.size(), 1u);
}

}  // namespace
}  // namespace narad::cluster
