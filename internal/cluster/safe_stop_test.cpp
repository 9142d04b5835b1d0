#include "internal/cluster/safe_stop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/cluster/town_for_test.h"

namespace narad::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A leader that has heard of everybody a second ago, and of nothing left in their WALs.
struct Quiet : Town {
  wire::LeaderFacts facts;

  explicit Quiet(int voters, int learners = 0) : Town(voters, learners) {
    facts.leader = "n1";
    state.members.for_each([&](const std::shared_ptr<const metastore::Member>& m) {
      facts.members.push_back({m->id, 1000, wire::DrainStatus{RaftIndex(0), false, 0, true, 0}});
    });
  }
  wire::MemberFacts& of(const std::string& id) {
    for (wire::MemberFacts& f : facts.members) {
      if (f.id == id) return f;
    }
    NARAD_ASSERT(false, id);
  }
  StopVerdict judge(const std::string& id) const {
    return judge_stop(state, id, picture.configuration, facts);
  }
  std::vector<std::string> rules(const std::string& id) const {
    std::vector<std::string> out;
    for (const StopReason& r : judge(id).reasons) out.emplace_back(to_string(r.rule));
    return out;
  }
};

TEST(SafeStop, OneOfThreeWithNothingOnIt_MayBeStopped) {
  Quiet t(3);
  t.topic("orders", "n1");
  t.topic("empty", "n3", false);
  EXPECT_TRUE(t.judge("n3").safe()) << "what was never used is given to another";
  EXPECT_TRUE(t.judge("n2").safe());
  EXPECT_EQ(t.judge("n2").node, "n2");
}

TEST(SafeStop, MessagesThatNobodyElseHas_AreNamed) {
  Quiet t(3);
  t.topic("a", "n2");
  t.topic("b", "n2");
  const StopVerdict v = t.judge("n2");
  ASSERT_THAT(t.rules("n2"), ElementsAre("owns_partitions"));
  EXPECT_FALSE(v.safe());
  EXPECT_THAT(v.reasons[0].detail, HasSubstr("only copy of 2 partitions with messages"));
  EXPECT_THAT(v.reasons[0].detail, HasSubstr("(a/0 and more)"));
}

TEST(SafeStop, MovesFromAndToIt_AreNamed) {
  Quiet t(4);
  t.topic("a", "n2");
  t.topic("b", "n1");
  t.move("a", "n3");
  t.move("b", "n3");
  EXPECT_THAT(t.rules("n2"), ElementsAre("owns_partitions", "move_source"));
  EXPECT_THAT(t.judge("n2").reasons[1].detail, HasSubstr("1 move (a/0 to n3)"));
  EXPECT_THAT(t.rules("n3"), ElementsAre("move_target"));
  EXPECT_THAT(t.judge("n3").reasons[0].detail, HasSubstr("2 moves (a/0 from n2 and more)"));
  EXPECT_THAT(t.rules("n4"), IsEmpty());
}

TEST(SafeStop, ACopyOfADeadOwnersPartition_IsSaidToBeTheLast) {
  Quiet t(4);
  t.topic("a", "n2");
  t.move("a", "n3");
  EXPECT_THAT(t.judge("n3").reasons[0].detail, testing::Not(HasSubstr("last copy")));
  t.die("n2");
  EXPECT_THAT(t.judge("n3").reasons[0].detail, HasSubstr("last copy"));
}

TEST(SafeStop, MessagesThatItHasNotHandedOver_AreCounted) {
  Quiet t(3);
  t.of("n3").drain->wal_records = 7;
  ASSERT_THAT(t.rules("n3"), ElementsAre("ingress_backlog"));
  EXPECT_THAT(t.judge("n3").reasons[0].detail, HasSubstr("7 messages"));
  t.of("n3").drain->wal_records = 0;
  t.of("n3").drain->unanswered = 1;
  EXPECT_THAT(t.rules("n3"), ElementsAre("ingress_backlog")) << "it may be accepted yet";
  EXPECT_THAT(t.rules("n2"), IsEmpty()) << "those of others are theirs";
}

TEST(SafeStop, WhatItDoesNotSay_IsNotTakenForNothing) {
  Quiet t(3);
  t.of("n3").drain->wal_open = false;
  EXPECT_THAT(t.rules("n3"), ElementsAre("unreachable"));
  t.of("n3").drain.reset();
  EXPECT_THAT(t.rules("n3"), ElementsAre("unreachable")) << "not heard of in this term";
  t.of("n3") = {"n3", kAnswersWithinMs + 1, wire::DrainStatus{RaftIndex(0), false, 0, true, 0}};
  EXPECT_THAT(t.rules("n3"), ElementsAre("unreachable")) << "that was long ago";
  t.facts.members.clear();
  EXPECT_THAT(t.rules("n3"), testing::Contains("unreachable"));
}

// Voters, who of them is not heard of, and whether n1 can be spared.
struct Vote {
  int voters;
  std::vector<std::string> silent;
  bool spared;
};

TEST(SafeStop, Majority_IsCountedWithoutItAmongAllVoters) {
  const std::vector<Vote> votes{
      {1, {}, false},    {2, {}, false},          {3, {}, true},     {3, {"n2"}, false},
      {4, {}, true},     {4, {"n4"}, false},      {5, {"n2"}, true}, {5, {"n2", "n3"}, false},
      {3, {"n1"}, true}, {5, {"n1", "n2"}, true},
  };
  for (const Vote& vote : votes) {
    Quiet t(vote.voters);
    for (const std::string& id : vote.silent) t.of(id).silent_ms = kAnswersWithinMs + 1;
    bool kept = false;
    for (const StopReason& r : t.judge("n1").reasons) {
      kept = kept || r.rule == StopRule::no_live_majority;
    }
    EXPECT_EQ(kept, !vote.spared) << vote.voters << " voters, " << vote.silent.size() << " silent";
  }
}

TEST(SafeStop, ADeadVoter_DoesNotAnswer_AndANonVoterIsNotCounted) {
  Quiet t(3, 1);
  t.die("n3");
  ASSERT_THAT(t.rules("n2"), ElementsAre("no_live_majority")) << "whatever was heard of n3 before";
  EXPECT_THAT(t.judge("n2").reasons[0].detail, HasSubstr("1 of 3 voters"));
  EXPECT_THAT(t.judge("n2").reasons[0].detail, HasSubstr("n3"));
  EXPECT_THAT(t.rules("n4"), IsEmpty()) << "it has no vote to miss";
}

// Just elected, a leader counts no silence yet: whoever it has not heard may be gone.
TEST(SafeStop, AVoterThatThisLeaderNeverHeard_DoesNotAnswer) {
  Quiet t(3);
  t.of("n3") = {"n3", 200, std::nullopt};
  EXPECT_THAT(t.rules("n2"), ElementsAre("no_live_majority"));
}

TEST(SafeStop, EveryReason_IsSaidAtOnce) {
  Quiet t(3);
  t.topic("a", "n2");
  t.topic("b", "n1");
  t.move("a", "n3");
  t.move("b", "n2");
  t.of("n2").drain->wal_records = 1;
  t.of("n3").silent_ms = kAnswersWithinMs + 1;
  EXPECT_THAT(t.rules("n2"), ElementsAre("owns_partitions", "move_source", "move_target",
                                         "ingress_backlog", "no_live_majority"));
  for (const StopReason& r : t.judge("n2").reasons) EXPECT_FALSE(r.detail.empty());
}

}  // namespace
}  // namespace narad::cluster
