// Membership over real connections between simulated machines, with a consensus that never fails
// unless a test says so.
#include "internal/cluster/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/cluster/world_for_test.h"

namespace narad::cluster {
namespace {

using namespace testing;
using metastore::MemberStatus;
using ::testing::HasSubstr;

TEST(Membership, ThreeEmptyNodes_FormOneCluster) {
  World w(3);
  ASSERT_TRUE(w.form());
  EXPECT_EQ(w.roles(), "n1 n2 n3");
  EXPECT_EQ(w.setup("n1").formed, Formed::founded);
  const std::uint64_t id = w.setup("n1").disk.cluster_id;
  EXPECT_NE(id, 0u);
  for (const char* n : {"n1", "n2", "n3"}) {
    EXPECT_EQ(w.setup(n).disk.cluster_id, id);
    EXPECT_EQ(w.setup(n).disk.founding.size(), 3u);
  }
  EXPECT_EQ(w.sky.state.cluster_id, to_hex16(id));
  EXPECT_EQ(w.member("n2")->cluster_addr, "host-n2:7943");
  ASSERT_TRUE(w.until([&] { return w.node("n3").membership.why_not_ready().empty(); }));
}

TEST(Membership, SilentPeer_IsWaitedForAndNamed) {
  World w(3);
  w.boot("n1");
  w.boot("n2");
  w.sim.run_for(30s);
  EXPECT_FALSE(w.setup("n1").started);
  const auto why = w.node("n1").membership.why_not_ready();
  ASSERT_EQ(why.size(), 1u);
  EXPECT_THAT(why[0], HasSubstr("waiting to hear from n3"));
  EXPECT_EQ(w.setup("n1").disk.cluster_id, 0u);
  w.boot("n3");
  EXPECT_TRUE(w.until([&] { return w.all_started() && w.all_registered(); }));
}

TEST(Membership, Trap34_WipedMajorityThatComesUpFirst_FoundsNothing) {
  World w(3);
  ASSERT_TRUE(w.form());
  const std::uint64_t id = w.setup("n3").disk.cluster_id;
  for (const char* n : {"n1", "n2", "n3"}) w.kill(n);
  w.wipe("n1");
  w.wipe("n2");
  w.boot("n1");
  w.boot("n2");
  w.sim.run_for(2min);
  EXPECT_EQ(w.setup("n1").disk.cluster_id, 0u) << "n3 may remember";
  EXPECT_EQ(w.setup("n2").disk.cluster_id, 0u);
  w.sky.quorum = false;
  w.boot("n3");
  w.sim.run_for(1min);
  EXPECT_EQ(w.setup("n1").disk.cluster_id, id) << "they belong to it, and to no other";
  EXPECT_EQ(w.setup("n2").disk.cluster_id, id);
  EXPECT_FALSE(w.setup("n1").started);
}

TEST(Membership, Trap28_Newcomer_BeginsAsANonVoterAndIsPromotedWhenItMakesTheNumberOdd) {
  World w(3);
  w.add("n4", {"n1", "n2", "n3", "n4"});
  w.add("n5", {"n1", "n2", "n3", "n5"});
  for (const char* n : {"n1", "n2", "n3"}) w.boot(n);
  ASSERT_TRUE(w.until([&] { return w.all_started(); }));
  w.boot("n4");
  ASSERT_TRUE(w.until([&] { return w.setup("n4").started; }));
  EXPECT_EQ(w.setup("n4").formed, Formed::joined);
  EXPECT_TRUE(w.setup("n4").disk.joined);
  w.sim.run_for(20s);
  EXPECT_EQ(w.roles(), "n1 n2 n3 n4L") << "four voters survive no more than three";
  w.boot("n5");
  ASSERT_TRUE(w.until([&] { return w.roles() == "n1 n2 n3 n4 n5"; }));
  EXPECT_EQ(w.member("n5")->status, MemberStatus::alive);
}

TEST(Membership, JoiningThroughAFollower_IsPassedOnToTheLeader) {
  World w(3);
  w.add("n4", {"n3", "n4"});  // knows one member, which does not lead
  for (const char* n : {"n1", "n2", "n3"}) w.boot(n);
  ASSERT_TRUE(w.until([&] { return w.all_started(); }));
  ASSERT_NE(w.sky.leader, "n3");
  w.boot("n4");
  ASSERT_TRUE(w.until([&] { return w.setup("n4").started; }));
  EXPECT_EQ(w.roles(), "n1 n2 n3 n4L");
}

TEST(Membership, EmptiedDisk_RejoinsAsANewReplicaInPlaceOfTheOld) {
  World w(3);
  ASSERT_TRUE(w.form());
  ASSERT_NE(w.sky.leader, "n3");
  const ReplicaId old = w.setup("n3").disk.replica;
  w.kill("n3");
  w.wipe("n3");
  w.boot("n3");
  ASSERT_TRUE(w.until([&] { return w.setup("n3").started; }));
  EXPECT_EQ(w.sky.configuration.find(old), nullptr);
  EXPECT_NE(w.sky.configuration.find(w.setup("n3").disk.replica), nullptr);
  ASSERT_TRUE(w.until([&] { return w.roles() == "n1 n2 n3"; })) << "promoted again";
}

// Its WAL may hold messages that it answered for; an empty disk must not count as all handed over.
TEST(Membership, DEC_13_DrainingMemberWithAnEmptiedDisk_IsNotLetInBeforeItsWalIsGivenUp) {
  World w(4);
  ASSERT_TRUE(w.form());
  w.kill("n4");
  w.sky.apply(metastore::SetDraining{"n4", true});
  w.wipe("n4");
  w.boot("n4");
  w.sim.run_for(20s);
  EXPECT_FALSE(w.setup("n4").started);
  EXPECT_THAT(w.machine("n4").component<TestNode>().membership.why_not_ready().at(0),
              HasSubstr("--wal-lost"));
  ASSERT_TRUE(
      w.until([&] { return w.member("n4")->status == metastore::MemberStatus::dead; }, 60s));
  w.sky.apply(metastore::SetDraining{"n4", true, true});
  EXPECT_TRUE(w.until([&] { return w.setup("n4").started; }, 60s));
}

TEST(Membership, SecondProcessUnderALivingId_IsRefused) {
  Sky elsewhere;
  World w(3);
  w.add("m3", {"n1", "n2", "n3"});
  for (const char* n : {"n1", "n2", "n3"}) w.boot(n);
  ASSERT_TRUE(w.until([&] { return w.all_started(); }));
  const ReplicaId rightful = w.setup("n3").disk.replica;
  // Another machine, configured with the same id by mistake.
  NodeSetup& twin = w.setup("m3");
  twin.node = twin.disk.node = "n3";
  w.machine("m3").boot([&](Env& env) { return std::make_shared<TestNode>(env, elsewhere, twin); });
  w.sim.run_for(30s);
  EXPECT_FALSE(twin.started);
  EXPECT_NE(w.sky.configuration.find(rightful), nullptr);
  EXPECT_THAT(w.machine("m3").component<TestNode>().membership.why_not_ready().at(0),
              HasSubstr("is in use"));
}

TEST(Membership, NewAddress_IsTakenOverWithTheNextHeartbeat) {
  World w(3);
  ASSERT_TRUE(w.form());
  const RaftIndex version = w.sky.state.versions.members;
  w.setup("n2").http_addr = "elsewhere:80";
  ASSERT_TRUE(w.until([&] { return w.member("n2")->http_addr == "elsewhere:80"; }, 11s));
  EXPECT_GT(w.sky.state.versions.members, version);
}

TEST(Membership, Heartbeats_TellWhenAndWithWhichIndex) {
  World w(3);
  ASSERT_TRUE(w.form());
  w.sim.run_for(20s);
  for (const char* n : {"n1", "n2", "n3"}) {
    const auto& last = w.node(n).membership.heartbeats().last();
    ASSERT_TRUE(last) << n;
    const Nanos age = w.machine(n).clock().boot() - last->sent_boot;
    EXPECT_LE(age, 6s) << n;
    EXPECT_GT(last->index, RaftIndex(0));
    EXPECT_LE(last->index, w.sky.state.applied);
  }
}

TEST(Membership, SilentMember_IsMarkedDeadAfterThirtySecondsAndRevivedBeforeItIsAnswered) {
  World w(3);
  ASSERT_TRUE(w.form());
  ASSERT_NE(w.sky.leader, "n3");
  w.sim.run_for(12s);
  w.machine("n3").pause();
  w.sim.run_for(24s);
  EXPECT_EQ(w.member("n3")->status, MemberStatus::alive);
  ASSERT_TRUE(w.until([&] { return w.member("n3")->status == MemberStatus::dead; }, 14s));
  EXPECT_EQ(w.member("n2")->status, MemberStatus::alive);
  const RaftIndex mark = w.member("n3")->dead_mark;
  w.machine("n3").resume();
  ASSERT_TRUE(w.until([&] {
    const auto& last = w.node("n3").membership.heartbeats().last();
    return last && last->index > mark;
  }));
  EXPECT_EQ(w.member("n3")->status, MemberStatus::alive);
}

TEST(Membership, Trap27_NewLeader_MarksNobodyOnInheritedStamps) {
  World w(3);
  ASSERT_TRUE(w.form());
  ASSERT_EQ(w.sky.leader, "n1");
  // Nobody is heard for long: the cluster has no leader.
  w.kill("n1");
  w.sim.run_for(5min);
  w.sky.elect("n2");
  w.sim.run_for(25s);
  EXPECT_EQ(w.member("n1")->status, MemberStatus::alive) << "not heard of, but not for long enough";
  EXPECT_EQ(w.member("n3")->status, MemberStatus::alive);
  ASSERT_TRUE(w.until([&] { return w.member("n1")->status == MemberStatus::dead; }, 10s));
  w.sim.run_for(1min);
  EXPECT_EQ(w.member("n3")->status, MemberStatus::alive);
}

// The heartbeat arrives while its member's dead mark is on its way: the answer waits for the mark
// and revives, or the mark is refused. Either way an answered member is alive at the index named.
TEST(Membership, Trap27_DeadMarkAgainstAFreshHeartbeat_EndsAlive) {
  for (int late = 0; late < 40; ++late) {
    World w(2, static_cast<std::uint64_t>(late) + 1, 2);
    ASSERT_TRUE(w.form());
    ASSERT_EQ(w.sky.leader, "n1");
    w.sky.entry_takes = 300ms;
    w.machine("n2").pause();
    ASSERT_TRUE(w.until(
        [&] {
          return w.sky.state.members.find("n2")->status == MemberStatus::dead ||
                 w.node("n1").membership.silence("n2") >= 30s - 5ms * (late + 1);
        },
        60s));
    w.machine("n2").resume();
    w.sim.run_for(Nanos(10ms) * late);
    ASSERT_TRUE(w.until(
        [&] {
          const auto& last = w.node("n2").membership.heartbeats().last();
          return last && w.machine("n2").clock().boot() - last->sent_boot < 3s;
        },
        20s));
    w.sim.run_for(2s);
    ASSERT_EQ(w.member("n2")->status, MemberStatus::alive) << late;
  }
}

TEST(Membership, OneRound_ServesAllThatWait) {
  World w(3);
  ASSERT_TRUE(w.form());
  w.sim.run_for(3s);
  const std::uint64_t before = w.node("n1").membership.desk().rounds();
  const std::uint64_t heartbeats = 2 * 3 * 10;
  w.sim.run_for(std::chrono::seconds(5 * 2 * 10));
  const std::uint64_t rounds = w.node("n1").membership.desk().rounds() - before;
  EXPECT_GT(rounds, 0u);
  EXPECT_LE(rounds, heartbeats);
}

TEST(Membership, Stamps_AreOneEntryPerTenSecondsForAll) {
  World w(3);
  ASSERT_TRUE(w.form());
  w.sim.run_for(30s);
  w.sky.proposals.clear();
  w.sim.run_for(100s);
  EXPECT_GE(w.sky.proposals.size(), 8u);
  EXPECT_LE(w.sky.proposals.size(), 11u);
  EXPECT_THAT(w.sky.proposals, ::testing::Each(std::string("heartbeats")));
}

TEST(Membership, UnassignedPartitions_AreGivenOutOnceSomebodyIsThere) {
  World w(3);
  metastore::CreateTopic topic;
  topic.name = "orders";
  topic.incarnation = Incarnation(7);
  topic.partitions = 300;
  topic.max_in_flight_per_partition = topic.max_acked_ahead_per_partition = 1;
  w.sky.entry_takes = 50us;
  w.sky.apply(topic);
  ASSERT_TRUE(w.form());
  const auto unassigned = [&] {
    std::size_t n = 0;
    for (const auto& a : w.sky.state.topics.find("orders")->assignments) {
      n += a.owner_node.empty() ? 1 : 0;
    }
    return n;
  };
  EXPECT_TRUE(w.until([&] { return unassigned() == 0; }, 30s)) << unassigned();
}

TEST(Membership, RemovedMember_IsToldAndEndsWithSeventySeven) {
  World w(4);
  ASSERT_TRUE(w.form());
  ASSERT_NE(w.sky.leader, "n4");
  w.sky.apply(metastore::SetDraining{"n4", true});
  w.sky.apply(metastore::Leaving{"n4", w.member("n4")->drain_id});
  ASSERT_TRUE(w.until([&] { return w.member("n4") == nullptr; }));
  EXPECT_EQ(w.roles(), "n1 n2 n3") << "Raft first";
  ASSERT_TRUE(w.until([&] { return !w.machine("n4").up(); }, 30s));
  ASSERT_TRUE(w.machine("n4").last_exit());
  EXPECT_EQ(w.machine("n4").last_exit()->code, kExitRemoved);
  EXPECT_THAT(w.machine("n4").last_exit()->why, HasSubstr("was removed from its cluster at 20"));
}

TEST(Membership, Trap33_RemovedMemberThatReturns_SaysWhenAndHow) {
  World w(4);
  ASSERT_TRUE(w.form());
  w.kill("n4");
  w.sky.apply(metastore::SetDraining{"n4", true});
  w.sky.apply(metastore::Leaving{"n4", w.member("n4")->drain_id});
  ASSERT_TRUE(w.until([&] { return w.member("n4") == nullptr; }));
  // As it was, and with an emptied disk: the id does not come back.
  for (bool wiped : {false, true}) {
    w.sim.run_for(1s);
    if (wiped) w.wipe("n4");
    w.boot("n4");
    ASSERT_TRUE(w.until([&] { return !w.machine("n4").up(); }, 30s)) << wiped;
    EXPECT_EQ(w.machine("n4").last_exit()->code, kExitRemoved);
    EXPECT_THAT(w.machine("n4").last_exit()->why, HasSubstr("under a new node id"));
  }
  EXPECT_EQ(w.roles(), "n1 n2 n3");
}

TEST(Membership, Trap36_LeaderThatLeaves_HandsOverAndIsRemovedByTheNext) {
  World w(3);
  ASSERT_TRUE(w.form());
  ASSERT_EQ(w.sky.leader, "n1");
  w.sky.apply(metastore::SetDraining{"n1", true});
  w.sky.apply(metastore::Leaving{"n1", w.member("n1")->drain_id});
  ASSERT_TRUE(w.until([&] { return w.member("n1") == nullptr; }));
  EXPECT_EQ(w.sky.leader, "n2");
  EXPECT_EQ(w.roles(), "n2 n3");
}

TEST(Membership, Stop_HandsLeadershipToAnother) {
  World w(3);
  ASSERT_TRUE(w.form());
  ASSERT_EQ(w.sky.leader, "n1");
  bool handed = false;
  TestNode& n = w.node("n1");
  struct Stop {
    static Task<void> run(TestNode* n, bool* handed) {
      *handed = co_await n->membership.hand_over();
      co_await n->membership.stop();
      co_await n->server.stop(1s);
      co_await n->peers.stop();
    }
  };
  n.group.spawn("stop", Stop::run(&n, &handed));
  ASSERT_TRUE(w.until([&] { return handed; }, 500ms));
  EXPECT_EQ(w.sky.leader, "n2");
}

TEST(Membership, NoQuorum_LeavesHeartbeatsUnansweredAndSaysWhy) {
  World w(3);
  ASSERT_TRUE(w.form());
  w.sim.run_for(5s);
  w.sky.quorum = false;
  w.sim.run_for(20s);
  const auto why = w.node("n2").membership.why_not_ready();
  ASSERT_FALSE(why.empty());
  EXPECT_THAT(why[0], HasSubstr("heartbeat: "));
  const auto& last = w.node("n2").membership.heartbeats().last();
  EXPECT_GT(w.machine("n2").clock().boot() - last->sent_boot, 10s);
}

TEST(Membership, OtherCluster_IsNotJoined) {
  World w(3);
  ASSERT_TRUE(w.form());
  w.add("n4", {"n1", "n2", "n3", "n4"});
  w.setup("n4").disk.cluster_id = 0xbad;
  w.setup("n4").disk.joined = true;
  w.boot("n4");
  w.sim.run_for(30s);
  EXPECT_FALSE(w.setup("n4").started);
  EXPECT_EQ(w.roles(), "n1 n2 n3");
  EXPECT_THAT(w.node("n4").membership.why_not_ready().at(0), HasSubstr("cluster"));
}

// The entry that admitted it was in its log, and was lost with the leader that wrote it.
TEST(Membership, AdmissionThatWasNeverCommitted_IsAskedForAgain) {
  World w(4);
  ASSERT_TRUE(w.form());
  ASSERT_EQ(w.roles(), "n1 n2 n3 n4L");
  const ReplicaId replica = w.setup("n4").disk.replica;
  w.kill("n4");
  w.sky.configuration =
      raft::apply(w.sky.configuration, {raft::ConfigurationChange::Kind::remove, replica, ""})
          .value();
  w.sky.state.members.erase("n4");
  w.boot("n4");
  ASSERT_TRUE(w.until([&] { return w.roles() == "n1 n2 n3 n4L" && w.all_registered(); }));
  EXPECT_EQ(w.setup("n4").formed, Formed::resumed);
  EXPECT_NE(w.sky.configuration.find(replica), nullptr) << "as the replica it is";
  ASSERT_TRUE(w.until([&] { return w.node("n4").membership.why_not_ready().empty(); }));
}

TEST(Membership, ForcedBootstrap_FoundsAloneAndTheOthersJoin) {
  World w(3);
  w.setup("n2").forced = true;
  w.boot("n2");
  ASSERT_TRUE(w.until([&] { return w.setup("n2").started; }));
  EXPECT_EQ(w.roles(), "n2");
  w.boot("n1");
  w.boot("n3");
  ASSERT_TRUE(w.until([&] { return w.roles() == "n1 n2 n3"; }));
}

TEST(Membership, CrashAtAnyMomentOfForming_EndsInOneCluster) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    World w(3, seed);
    w.boot_all();
    sim::Rng rng = w.sim.stream("kills");
    for (int i = 0; i < 4; ++i) {
      w.sim.run_for(Nanos(static_cast<std::int64_t>(rng.next() % 3'000) * 1'000'000));
      const std::string victim = cat("n", 1 + rng.next() % 3);
      w.kill(victim);
      w.boot(victim);
    }
    const bool formed = w.until([&] {
      if (w.sky.leader.empty() && !w.sky.configuration.empty()) {
        for (const raft::Member& m : w.sky.configuration.members()) {
          if (w.sky.begun.contains(m.replica)) w.sky.elect(m.node);
        }
      }
      return w.all_started() && w.all_registered();
    });
    ASSERT_TRUE(formed) << "seed " << seed;
    std::set<std::uint64_t> ids;
    for (auto& [id, s] : w.setups) ids.insert(s->disk.cluster_id);
    ASSERT_EQ(ids.size(), 1u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace narad::cluster
