#include "internal/cluster/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "internal/metastore/apply.h"

namespace narad::cluster {
namespace {

using namespace std::chrono_literals;
using raft::MemberRole;
using raft::ReplicaId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Partition orders/0 on "s"; members "s", "d", "e", all of them voters.
struct Case {
  metastore::State state;
  raft::Configuration configuration;
  std::map<std::string, Nanos> silent;

  Case() {
    join("s");
    metastore::CreateTopic c;
    c.name = "orders";
    c.incarnation = Incarnation(7);
    c.partitions = 1;
    c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1;
    run(c);
    run(metastore::MarkUsed{"orders", Incarnation(7), PartitionId(0), "s", "d1"});
    join("d");
    join("e");
    configuration = voters({"s", "d", "e"});
  }
  static raft::Configuration voters(const std::vector<std::string>& nodes) {
    std::vector<raft::Member> members;
    for (const std::string& n : nodes) {
      members.push_back({ReplicaId(members.size() + 1), n, MemberRole::voter});
    }
    return raft::Configuration::make(std::move(members)).value();
  }
  metastore::CommandResult run(const metastore::Command& c) {
    return metastore::apply(state, state.applied.next(), c);
  }
  void join(const std::string& id) {
    run(metastore::RegisterMember{id, "h", "c", "b", {"d1"}, UnixMillis(1)});
  }
  void die(const std::string& id, Nanos silence) {
    run(metastore::MarkDead{id, state.members.find(id)->stamp});
    silent[id] = silence;
  }
  const Assignment& row() const { return *state.assignment("orders", PartitionId(0)); }
  void move(const std::string& to) {
    ASSERT_TRUE(run(metastore::SetTarget{"orders", Incarnation(7), PartitionId(0), "s",
                                         row().move_id, to, "d1", "test"})
                    .done());
  }
  // Why the move is called off; empty if it goes on.
  std::string why() {
    const Silence silence = [this](const std::string& node) { return silent[node]; };
    const auto clears = targets_to_clear(state, configuration, silence, TargetRules{});
    if (clears.empty()) return {};
    EXPECT_EQ(clears.size(), 1u);
    EXPECT_EQ(clears[0].move_id, row().move_id);
    EXPECT_EQ(clears[0].target_node, row().target_node);
    return clears[0].reason;
  }
};

TEST(Targets, LivingTarget_KeepsItsMove) {
  Case c;
  EXPECT_EQ(c.why(), "");
  c.move("d");
  EXPECT_EQ(c.why(), "");
  c.die("e", 10min);
  EXPECT_EQ(c.why(), "") << "another member";
}

TEST(Targets, TGT_3_TGT_6_DeadTarget_HasTwoMinutesToComeBack) {
  Case c;
  c.move("d");
  c.die("d", 30s);
  EXPECT_EQ(c.why(), "");
  c.silent["d"] = 2min;
  EXPECT_EQ(c.why(), "");
  c.silent["d"] = 2min + 1ms;
  EXPECT_EQ(c.why(), "target_dead");
  // Long silence of one that is not marked dead says nothing: it was heard, or will be marked.
  c.join("d");
  EXPECT_EQ(c.why(), "");
}

TEST(Targets, TGT_2_TargetThatIsNoMember_IsCleared) {
  Case c;
  c.move("d");
  c.state.members.erase("d");
  EXPECT_EQ(c.why(), "target_not_member");
}

TEST(Targets, TGT_5_OutsideRaft_IsClearedOnlyWhileDeadOrDraining) {
  Case c;
  c.move("d");
  c.configuration = Case::voters({"s", "e"});
  EXPECT_EQ(c.why(), "") << "a member that is being let in";
  c.die("d", 1s);
  EXPECT_EQ(c.why(), "target_outside_raft");
  c.join("d");
  c.run(metastore::SetDraining{"d", true});
  EXPECT_EQ(c.why(), "target_outside_raft");
  c.die("s", 1s);
  EXPECT_EQ(c.why(), "target_outside_raft") << "it cannot hear of the death of its source either";
}

TEST(Targets, DEC_10_DrainingTarget_IsCleared) {
  Case c;
  c.move("d");
  c.run(metastore::SetDraining{"d", true});
  EXPECT_EQ(c.why(), "target_draining");
}

TEST(Targets, DEC_12_DrainingTargetOfADeadSource_MayBeTheLastHolder) {
  Case c;
  c.move("d");
  c.run(metastore::SetDraining{"d", true});
  c.die("s", 10min);
  EXPECT_EQ(c.why(), "");
  c.join("s");
  EXPECT_EQ(c.why(), "target_draining");
  c.state.members.erase("s");
  EXPECT_EQ(c.why(), "") << "gone is as good as dead";
}

TEST(Targets, ABT_5_PartitionsOfAbortedMoves_AreHeldForAWhile) {
  Case c;
  const auto clear = [&](std::string reason, std::int64_t at) {
    ASSERT_TRUE(c.run(metastore::ClearTarget{"orders", Incarnation(7), PartitionId(0), "d",
                                             c.row().move_id, std::move(reason), UnixMillis(at)})
                    .done());
  };
  c.move("d");
  clear("target_dead", 1'000'000);
  EXPECT_TRUE(held_partitions(c.state, UnixMillis(1'000'001)).empty()) << "the leader did that";
  c.move("d");
  clear("aborted by admin", 2'000'000);
  const std::set<TopicPartition> one{{"orders", PartitionId(0)}};
  EXPECT_EQ(held_partitions(c.state, UnixMillis(2'000'001)), one);
  EXPECT_EQ(held_partitions(c.state, UnixMillis(2'299'999)), one);
  EXPECT_TRUE(held_partitions(c.state, UnixMillis(2'300'000)).empty());
}

TEST(Targets, Trap66_DiskThatGaveAMoveBack_GetsNoneForAWhile) {
  Case c;
  c.move("d");
  ASSERT_TRUE(
      c.run(metastore::ClearTarget{"orders", Incarnation(7), PartitionId(0), "d", c.row().move_id,
                                   "target_full: /data has 7 bytes left", UnixMillis(2'000'000)})
          .done());
  const PlannerLimits soon = with_orders({}, c.state, UnixMillis(2'000'001), 5min);
  EXPECT_EQ(soon.full, (std::set<std::pair<std::string, std::string>>{{"d", "d1"}}));
  EXPECT_THAT(soon.held, IsEmpty()) << "it may go elsewhere at once";
  EXPECT_THAT(with_orders({}, c.state, UnixMillis(2'300'000), 5min).full, IsEmpty());
}

TEST(Targets, TargetWithoutTheDisk_LosesItsMoveWhileTheSourceLives) {
  Case c;
  c.move("d");
  c.run(metastore::RegisterMember{"d", "h", "c", "b", {"another"}, UnixMillis(2)});
  EXPECT_EQ(c.why(), "target_disk_missing");
  c.die("s", 1s);
  EXPECT_EQ(c.why(), "") << "that disk may come back with the last copy";
}

TEST(Targets, ABT_5_ClocksThatAreFarApart_HoldNothingForHours) {
  Case c;
  c.move("d");
  ASSERT_TRUE(
      c.run(metastore::ClearTarget{"orders", Incarnation(7), PartitionId(0), "d", c.row().move_id,
                                   "aborted by admin", UnixMillis(10'000'000)})
          .done());
  EXPECT_EQ(held_partitions(c.state, UnixMillis(9'900'000)).size(), 1u);
  EXPECT_TRUE(held_partitions(c.state, UnixMillis(9'000'000)).empty());
}

TEST(Targets, PLN_5_OperatorsMove_PinsThePartitionUntilAnotherMoveTakesIt) {
  Case c;
  const auto go = [&](std::string to, std::string reason) {
    const Assignment before = c.row();
    c.run(metastore::SetTarget{"orders", Incarnation(7), PartitionId(0), before.owner_node,
                               before.move_id, std::move(to), "d1", std::move(reason)});
    const RaftIndex id = c.row().move_id;
    c.run(metastore::ArmFreeze{"orders", Incarnation(7), PartitionId(0), before.owner_node, id});
    ASSERT_TRUE(c.run(metastore::CompleteMove{"orders", Incarnation(7), PartitionId(0),
                                              before.owner_node, id, c.row().freeze_epoch})
                    .done());
  };
  EXPECT_THAT(pinned_partitions(c.state), IsEmpty());
  go("d", "operator");
  EXPECT_THAT(pinned_partitions(c.state), ElementsAre(TopicPartition{"orders", PartitionId(0)}));
  go("e", "draining");
  EXPECT_THAT(pinned_partitions(c.state), IsEmpty());
}

TEST(Targets, OBS_2_Blocks_NameTheSideThatIsAway) {
  Case c;
  c.move("d");
  const auto blocks = [&] { return moves_under_way(c.state).at(0).blocks; };
  EXPECT_THAT(blocks(), IsEmpty());
  c.die("s", 1s);
  EXPECT_THAT(blocks(), ElementsAre("source_dead"));
  c.die("d", 1s);
  EXPECT_THAT(blocks(), ElementsAre("source_dead", "target_dead"));
  c.state.members.erase("d");
  EXPECT_THAT(blocks(), ElementsAre("source_dead", "target_not_member"));
}

}  // namespace
}  // namespace narad::cluster
