#include "internal/cluster/decommission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/cluster/planner.h"
#include "internal/cluster/town_for_test.h"

namespace narad::cluster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// With what a drain is judged by.
struct Draining : Town {
  using Town::Town;
  void empty_wal(const std::string& id) {
    picture.status = wire::DrainStatus{member(id).drain_id, true, 0, true, 0};
  }
  DrainVerdict judge(const std::string& id, DrainAsked asked, bool wal_lost = false) const {
    return judge_drain(state, id, picture, asked, wal_lost);
  }
  std::vector<std::string> rules(const std::string& id, DrainAsked asked,
                                 bool wal_lost = false) const {
    std::vector<std::string> out;
    for (const DrainReason& r : judge(id, asked, wal_lost).reasons) {
      out.push_back(cat(to_string(r.rule), r.hopeless ? "!" : ""));
    }
    return out;
  }
};

constexpr auto before = DrainAsked::before;
constexpr auto during = DrainAsked::during;

TEST(Decommission, EmptyNodeOfFour_MayGo) {
  Draining t(4);
  EXPECT_THAT(t.rules("n4", before), IsEmpty());
  t.drain("n4");
  t.empty_wal("n4");
  EXPECT_THAT(t.rules("n4", during), IsEmpty());
  EXPECT_TRUE(may_leave(t.judge("n4", during)));
  EXPECT_FALSE(may_leave(t.judge("n3", during))) << "it does not drain";
  t.run(metastore::Leaving{"n4", t.member("n4").drain_id});
  EXPECT_FALSE(may_leave(t.judge("n4", during))) << "it is on its way already";
}

TEST(Decommission, DEC_16_EverythingThatKeepsIt_IsSaidAtOnce) {
  Draining t(3);
  t.topic("orders", "n1");
  t.topic("bills", "n2");
  t.move("bills", "n1");
  t.die("n3");
  t.drain("n1");
  EXPECT_THAT(t.rules("n1", during), ElementsAre("owns_partitions", "move_target", "unreachable",
                                                 "is_leader", "min_voters!", "no_live_majority!"));
  const DrainVerdict v = t.judge("n1", during);
  EXPECT_EQ(v.partitions, 1u);
  EXPECT_EQ(v.inbound, 1u);
  EXPECT_TRUE(v.hopeless());
  for (const DrainReason& r : v.reasons) EXPECT_FALSE(r.detail.empty()) << to_string(r.rule);
}

TEST(Decommission, DEC_17_NoReceiver_IsHopelessOnlyIfItOwnsSomething) {
  Draining t(4);
  for (const char* id : {"n1", "n2", "n3"}) t.drain(id);
  t.die("n3");
  EXPECT_EQ(t.judge("n4", before).has(DrainRule::no_receiver), false);
  t.topic("orders", "n4");
  EXPECT_TRUE(t.judge("n4", before).has(DrainRule::no_receiver));
  EXPECT_TRUE(t.judge("n4", before).hopeless());
}

TEST(Decommission, DEC_17_DeadOwner_IsHopelessForWhatHoldsMessages) {
  Draining t(4);
  t.topic("empty", "n4", false);
  t.die("n4");
  EXPECT_THAT(t.rules("n4", before), ElementsAre("owns_partitions", "unreachable"))
      << "what was never used changes hands without it";
  t.run(metastore::RegisterMember{"n4", "h", "c", "b", {"d"}, UnixMillis(1)});
  t.topic("orders", "n4");
  t.die("n4");
  EXPECT_THAT(t.rules("n4", before), ElementsAre("dead_owner!", "owns_partitions", "unreachable"));
  EXPECT_THAT(t.judge("n4", before).reasons[0].detail, HasSubstr("orders/0"));
}

TEST(Decommission, DEC_17_DisksThatItDoesNotHave_AreHopelessForWhatHoldsMessages) {
  Draining t(4);
  t.topic("empty", "n4", false);
  t.topic("orders", "n4");
  t.run(metastore::RegisterMember{"n4", "h", "c", "b", {"another"}, UnixMillis(1)});
  EXPECT_THAT(t.rules("n4", before), Contains("dead_owner!"));
  EXPECT_THAT(t.judge("n4", before).reasons[0].detail, HasSubstr("orders/0"));
}

TEST(Decommission, DEC_5_FewerThanThreeVoters_AreNeverLeft) {
  Draining t(3);
  EXPECT_THAT(t.rules("n3", before), ElementsAre("min_voters!"));
  t.drain("n3");
  t.empty_wal("n3");
  EXPECT_THAT(t.rules("n3", during), ElementsAre("min_voters!"));
  EXPECT_FALSE(may_leave(t.judge("n3", during)));
}

TEST(Decommission, DEC_5_NonVoterThatCanTakeTheVote_MakesItPossible) {
  Draining t(3, 1);
  EXPECT_THAT(t.rules("n3", before), IsEmpty());
  t.drain("n3");
  EXPECT_THAT(t.rules("n3", during), ElementsAre("unreachable")) << "nothing was heard yet";
  t.empty_wal("n3");
  EXPECT_THAT(t.rules("n3", during), ElementsAre("min_voters")) << "the last thing: until n4 votes";
  EXPECT_THAT(t.judge("n3", during).reasons[0].detail, HasSubstr("n4 becomes one first"));
  t.die("n4");
  EXPECT_THAT(t.rules("n3", during), ElementsAre("min_voters!"));
}

TEST(Decommission, DEC_5_TwoDrainsOfFourVoters_TheSecondIsRefusedUpFront) {
  Draining t(4);
  t.drain("n3");
  EXPECT_THAT(t.rules("n4", before), ElementsAre("min_voters!"));
  // Both begun at the same moment: whoever is let go first, the other stays.
  t.drain("n4");
  t.empty_wal("n3");
  EXPECT_TRUE(may_leave(t.judge("n3", during)));
  t.run(metastore::Leaving{"n3", t.member("n3").drain_id});
  t.empty_wal("n4");
  EXPECT_THAT(t.rules("n4", during), ElementsAre("min_voters!"));
}

TEST(Decommission, DEC_6_LiveMajorityOfTheRest_IsNeeded) {
  // 2k + 1 voters with k dead: a living one stays.
  Draining t(5);
  t.die("n4");
  t.die("n5");
  EXPECT_THAT(t.rules("n3", before), ElementsAre("no_live_majority!"));
  EXPECT_THAT(t.judge("n3", before).reasons[0].detail, HasSubstr("n4, n5 not"));
  EXPECT_THAT(t.rules("n5", before), ElementsAre("unreachable")) << "a dead one may go";
  t.run(metastore::RegisterMember{"n4", "h", "c", "b", {"d"}, UnixMillis(1)});
  EXPECT_THAT(t.rules("n3", before), IsEmpty());
}

TEST(Decommission, DEC_7_DeadOnesGoFirst) {
  Draining t(5);
  for (const char* id : {"n2", "n3", "n5"}) t.drain(id);
  t.die("n5");
  EXPECT_THAT(draining_members(t.state), ElementsAre("n5", "n2", "n3"));
}

TEST(Decommission, DEC_9_NonVoter_IsUnderNoVoterGuard) {
  Draining t(3, 1);
  t.die("n2");
  t.die("n3");
  t.drain("n4");
  t.empty_wal("n4");
  EXPECT_THAT(t.rules("n4", during), IsEmpty());
  EXPECT_TRUE(may_leave(t.judge("n4", during)));
}

TEST(Decommission, DEC_10_DEC_12_Destination_StaysAndSaysWhetherItIsTheLastHolder) {
  Draining t(4);
  t.topic("orders", "n2");
  t.move("orders", "n4");
  t.drain("n4");
  t.empty_wal("n4");
  EXPECT_THAT(t.rules("n4", during), ElementsAre("move_target"));
  EXPECT_THAT(t.judge("n4", during).reasons[0].detail, HasSubstr("which the leader calls off"));
  t.die("n2");
  EXPECT_THAT(t.rules("n4", during), ElementsAre("move_target"));
  EXPECT_THAT(t.judge("n4", during).reasons[0].detail,
              HasSubstr("orders/0 from n2 may have its last copy here"));
}

TEST(Decommission, DEC_13_DEC_15_MessagesItTook_KeepIt) {
  Draining t(4);
  t.drain("n4");
  const RaftIndex drain = t.member("n4").drain_id;
  EXPECT_THAT(t.rules("n4", during), ElementsAre("unreachable"));
  const auto detail = [&](wire::DrainStatus s) {
    t.picture.status = s;
    EXPECT_THAT(t.rules("n4", during), ElementsAre("ingress_backlog"));
    return t.judge("n4", during).reasons[0].detail;
  };
  EXPECT_THAT(detail({drain, false, 0, true, 0}), HasSubstr("not said yet that it refuses"));
  EXPECT_THAT(detail({RaftIndex(1), true, 0, true, 0}), HasSubstr("not said yet that it refuses"));
  EXPECT_THAT(detail({drain, true, 0, false, 0}), HasSubstr("cannot open its ingress WAL"));
  EXPECT_THAT(detail({drain, true, 0, true, 1}), HasSubstr("holds 1 message that is not handed"));
  EXPECT_THAT(detail({drain, true, 2, true, 0}), HasSubstr("2 being accepted"));
  t.picture.leader_told = false;
  EXPECT_THAT(t.rules("n4", during), IsEmpty()) << "the leader knows, and was not asked";
}

TEST(Decommission, WalOfADeadNode_IsGivenUpInSoManyWords) {
  Draining t(4);
  t.die("n4");
  EXPECT_THAT(t.rules("n4", before), ElementsAre("unreachable"));
  EXPECT_THAT(t.rules("n4", before, true), IsEmpty());
  t.drain("n4");
  EXPECT_FALSE(may_leave(t.judge("n4", during)));
  ASSERT_TRUE(t.run(metastore::SetDraining{"n4", true, true}).done());
  EXPECT_TRUE(may_leave(t.judge("n4", during)));
  // Back again: its WAL is what it says it is.
  t.join("n4");
  EXPECT_THAT(t.rules("n4", during), ElementsAre("unreachable"));
}

TEST(Decommission, DEC_8_Leader_IsKeptByThatAlone) {
  Draining t(4);
  t.drain("n1");
  t.empty_wal("n1");
  EXPECT_THAT(t.rules("n1", during), ElementsAre("is_leader"));
  EXPECT_FALSE(may_leave(t.judge("n1", during)));
  t.picture.leader = "n2";
  EXPECT_TRUE(may_leave(t.judge("n1", during)));
}

TEST(Decommission, OwnPartitions_AreCountedWithWhatIsOnItsWay) {
  Draining t(4);
  t.topic("a", "n4");
  t.topic("b", "n4");
  t.topic("c", "n4", false);
  t.drain("n4");
  t.empty_wal("n4");
  t.move("a", "n2");
  EXPECT_THAT(t.rules("n4", during), ElementsAre("owns_partitions"));
  const DrainVerdict v = t.judge("n4", during);
  EXPECT_THAT(v.reasons[0].detail, HasSubstr("owns 3 partitions, 1 on the way (a/0 and more)"));
  EXPECT_EQ(v.partitions, 3u);
  EXPECT_EQ(v.unused, 1u);
}

TEST(Decommission, PausedMoves_AreSaidWithWhatLetsThemGoOn) {
  Draining t(4);
  for (const char* name : {"a", "b"}) t.topic(name, "n4");
  t.topic("c", "n3");
  std::vector<std::string> others;
  for (std::size_t i = 1; i < PlannerLimits{}.in_flight_max; ++i) {
    t.topic(others.emplace_back(cat("d", i)), "n3");
  }
  t.drain("n4");
  t.empty_wal("n4");
  const auto detail = [&] { return t.judge("n4", during).reasons.at(0).detail; };
  const auto pause = [&](const std::string& name, bool paused) {
    const Assignment& a = t.row(name);
    ASSERT_TRUE(
        t.run(metastore::PauseMove{name, a.incarnation, PartitionId(0), a.move_id, paused}).done());
  };
  t.move("c", "n2");
  EXPECT_EQ(detail(), "owns 2 partitions, none on the way (a/0 and more)");
  pause("c", true);
  EXPECT_THAT(detail(), ::testing::Not(HasSubstr("paused"))) << "there are places left";
  for (const std::string& name : others) t.move(name, "n2");
  EXPECT_THAT(detail(), HasSubstr("none on the way (a/0 and more); its own wait for a place, and 1 "
                                  "paused move of another node takes one"));
  t.move("a", "n2");
  EXPECT_THAT(detail(), ::testing::Not(HasSubstr("paused"))) << "others' pauses do not hold it";
  pause("a", true);
  EXPECT_THAT(detail(), HasSubstr("1 on the way (a/0 and more); 1 of these moves is paused: "));
  t.run(metastore::PauseMoves{"n4", true});
  EXPECT_THAT(detail(), HasSubstr("its moves are paused: narad cluster moves resume --node n4"));
  t.run(metastore::PauseMoves{"", true});
  EXPECT_THAT(detail(), HasSubstr("all moves are paused: narad cluster moves resume --all"));
}

}  // namespace
}  // namespace narad::cluster
