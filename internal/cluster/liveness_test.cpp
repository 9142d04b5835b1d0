#include "internal/cluster/liveness.h"

#include <gtest/gtest.h>

#include "internal/metastore/apply.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using namespace std::chrono_literals;
using metastore::MemberStatus;

struct World {
  metastore::State state;
  Liveness liveness;
  Nanos now = 1h;

  World() {
    for (const char* id : {"n1", "n2", "n3"}) enter(id);
    liveness.elected(now);
  }
  metastore::CommandResult apply(const metastore::Command& c) {
    return metastore::apply(state, state.applied.next(), c);
  }
  void enter(const std::string& id) {
    apply(metastore::RegisterMember{id, "h", "c", "b", {"d"}, UnixMillis(1)});
  }
  // Lets the time pass as the controller would, `heard` beating every 5 s.
  void pass(Nanos time, const std::vector<std::string>& heard) {
    for (Nanos end = now + time; now < end; now += 1s) {
      liveness.awake(now);
      if ((now / 1s) % 5 == 0) {
        for (const auto& id : heard) liveness.heard(id, now);
      }
      liveness.check_invariants(now);
    }
  }
  std::string overdue() {
    std::string out;
    for (const auto& mark : liveness.overdue(state, now)) out += cat(mark.id, "@", mark.stamp, " ");
    return out;
  }
};

TEST(Liveness, SilentMember_IsOverdueAfterThirtySeconds) {
  World w;
  w.pass(29s, {"n1", "n2"});
  EXPECT_EQ(w.overdue(), "");
  w.pass(1s, {"n1", "n2"});
  EXPECT_EQ(w.overdue(), "n3@3 ");
  EXPECT_TRUE(w.liveness.marking("n3"));
  EXPECT_EQ(w.overdue(), "") << "it is being marked already";
  w.liveness.mark_ended("n3");
  EXPECT_EQ(w.overdue(), "n3@3 ");
}

TEST(Liveness, Trap27_NewLeader_MarksNobodyOnWhatItInherited) {
  World w;
  w.pass(10min, {});  // nobody was heard by the one before
  w.liveness.elected(w.now);
  EXPECT_EQ(w.overdue(), "");
  w.pass(29s, {});
  EXPECT_EQ(w.overdue(), "");
  w.pass(1s, {});
  EXPECT_EQ(w.overdue(), "n1@1 n2@2 n3@3 ");
}

TEST(Liveness, Trap27_LeaderThatDidNotRun_GivesEverybodyTheWholeTimeAgain) {
  World w;
  w.pass(10s, {"n1", "n2", "n3"});
  w.now += 5min;  // stopped and continued: nothing was listened to
  EXPECT_EQ(w.overdue(), "");
  w.pass(29s, {"n1"});
  EXPECT_EQ(w.overdue(), "");
  w.pass(1s, {"n1"});
  EXPECT_EQ(w.overdue(), "n2@2 n3@3 ");
}

TEST(Liveness, Trap27_MarkOfAnOlderStamp_IsRefusedByApply) {
  World w;
  w.pass(30s, {"n1", "n2"});
  const auto marks = w.liveness.overdue(w.state, w.now);
  ASSERT_EQ(marks.size(), 1u);
  // Another leader heard it meanwhile.
  w.apply(metastore::Heartbeats{{"n3"}, UnixMillis(2)});
  EXPECT_EQ(w.apply(marks[0]).code, metastore::ResultCode::conflict);
  EXPECT_EQ(w.state.members.find("n3")->status, MemberStatus::alive);
}

TEST(Liveness, DeadMember_IsNeitherMarkedNorStampedAgain) {
  World w;
  w.pass(30s, {"n1", "n2"});
  for (const auto& mark : w.liveness.overdue(w.state, w.now)) w.apply(mark);
  w.liveness.mark_ended("n3");
  EXPECT_EQ(w.overdue(), "");
  w.liveness.heard("n3", w.now);
  const auto stamps = w.liveness.stamps_due(w.state, w.now, UnixMillis(9));
  ASSERT_TRUE(stamps);
  EXPECT_EQ(stamps->ids, (std::vector<std::string>{"n1", "n2"}));
}

TEST(Liveness, Stamps_AreOneEntryEveryTenSeconds) {
  World w;
  w.liveness.heard("n2", w.now);
  w.liveness.heard("n1", w.now);
  w.liveness.heard("stranger", w.now);
  EXPECT_FALSE(w.liveness.stamps_due(w.state, w.now + 9s, UnixMillis(1)));
  const auto stamps = w.liveness.stamps_due(w.state, w.now + 10s, UnixMillis(77));
  ASSERT_TRUE(stamps);
  EXPECT_EQ(stamps->ids, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(stamps->now, UnixMillis(77));
  EXPECT_FALSE(w.liveness.stamps_due(w.state, w.now + 25s, UnixMillis(1))) << "nobody was heard";
}

TEST(Liveness, NewMember_HasTheWholeTimeFromTheElectionOrItsFirstWord) {
  World w;
  w.pass(25s, {"n1", "n2", "n3"});
  w.enter("n4");
  w.liveness.heard("n4", w.now);
  w.pass(29s, {"n1", "n2", "n3"});
  EXPECT_EQ(w.overdue(), "");
  EXPECT_EQ(w.liveness.silence("n4", w.now), 29s);
  w.pass(1s, {"n1", "n2", "n3"});
  EXPECT_EQ(w.overdue(), "n4@4 ");
}

}  // namespace
}  // namespace narad::cluster
