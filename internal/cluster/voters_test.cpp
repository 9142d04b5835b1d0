#include "internal/cluster/voters.h"

#include <gtest/gtest.h>

#include "internal/cluster/placement.h"
#include "internal/cluster/reasons.h"
#include "internal/metastore/apply.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using raft::MemberRole;
using raft::ReplicaId;

// "1 2 3 4L 5L": replicas by number, L a learner; the leader is the first.
struct World {
  metastore::State state;
  VoterPicture picture;

  explicit World(int voters, int learners) {
    std::vector<raft::Member> members;
    for (int i = 1; i <= voters + learners; ++i) {
      const ReplicaId id(static_cast<std::uint64_t>(i));
      members.push_back({id, node(i), i <= voters ? MemberRole::voter : MemberRole::learner});
      picture.reachable.insert(id);
      if (i > voters) picture.caught_up.push_back(id);
      apply(metastore::RegisterMember{node(i), "h", "c", "b", {"d"}, UnixMillis(1)});
    }
    picture.self = ReplicaId(1);
    picture.configuration = raft::Configuration::make(std::move(members)).value();
  }
  static std::string node(int i) { return cat("n", i); }
  metastore::CommandResult apply(const metastore::Command& c) {
    return metastore::apply(state, state.applied.next(), c);
  }
  void away(int i) { picture.reachable.erase(ReplicaId(static_cast<std::uint64_t>(i))); }
  std::uint64_t promoted() const {
    const auto change = next_promotion(picture, state);
    return change ? change->replica.value() : 0;
  }
  const metastore::Member& member(int i) const { return *state.members.find(node(i)); }
  void leave(int i) {
    apply(metastore::SetDraining{node(i), true});
    apply(metastore::Leaving{node(i), member(i).drain_id});
  }
  std::string departure() const {
    const Departure d = next_departure(picture, state, UnixMillis(5));
    if (const auto* r = std::get_if<RemoveReplica>(&d)) return cat("replica ", r->replica);
    if (const auto* m = std::get_if<metastore::RemoveMember>(&d)) return cat("member ", m->id);
    return std::holds_alternative<HandOver>(d) ? "hand over" : "";
  }
};

TEST(Promotion, NumberOfVoters_BecomesOddOrStays) {
  EXPECT_EQ(World(1, 1).promoted(), 0u);
  EXPECT_EQ(World(1, 2).promoted(), 2u);
  EXPECT_EQ(World(2, 1).promoted(), 3u);
  EXPECT_EQ(World(3, 1).promoted(), 0u);
  EXPECT_EQ(World(3, 2).promoted(), 4u);
  EXPECT_EQ(World(4, 1).promoted(), 5u);
  EXPECT_EQ(World(5, 2).promoted(), 0u) << "five are enough";
}

TEST(Promotion, Trap28_LearnerThatIsAwayOrBehind_DoesNotRaiseTheQuorum) {
  World w(2, 1);
  w.picture.caught_up.clear();
  EXPECT_EQ(w.promoted(), 0u);
  w = World(2, 1);
  w.away(3);
  EXPECT_EQ(w.promoted(), 0u);
}

TEST(Promotion, Trap28_QuorumThatWouldNeedASilentVoter_IsNotMade) {
  World w(4, 2);
  w.away(4);
  EXPECT_EQ(w.promoted(), 5u) << "three of five answer without it";
  w.away(3);
  EXPECT_EQ(w.promoted(), 5u) << "three of five answer, the new one among them";
  w.away(2);
  EXPECT_EQ(w.promoted(), 0u);
}

TEST(Promotion, MemberThatDrainsOrIsDeadOrUnknown_StaysALearner) {
  World w(2, 1);
  w.apply(metastore::SetDraining{"n3", true});
  EXPECT_EQ(w.promoted(), 0u);
  w = World(2, 1);
  w.apply(metastore::MarkDead{"n3", w.member(3).stamp});
  EXPECT_EQ(w.promoted(), 0u);
  w = World(2, 1);
  w.state.members.erase("n3");
  EXPECT_EQ(w.promoted(), 0u) << "admitted by Raft, not registered yet";
}

TEST(Promotion, DEC_5_VoterThatIsAboutToGo_IsReplacedBefore) {
  World w(3, 1);
  EXPECT_EQ(w.promoted(), 0u) << "four voters survive no more than three";
  w.apply(metastore::SetDraining{"n3", true});
  EXPECT_EQ(w.promoted(), 4u) << "without n3 it is the third";
  metastore::CreateTopic topic;
  topic.name = "orders";
  topic.incarnation = Incarnation(7);
  topic.partitions = 3;
  topic.max_in_flight_per_partition = topic.max_acked_ahead_per_partition = 1;
  w = World(3, 1);
  w.apply(topic);
  w.apply(metastore::SetDraining{"n3", true});
  EXPECT_EQ(w.promoted(), 0u) << "it still has a partition, and the drain may be cancelled";
  w = World(4, 1);
  w.leave(2);
  EXPECT_EQ(w.promoted(), 0u) << "three stay: a fourth would be one too many";
}

// Whatever is away, a promotion never leaves a majority of the voters out of reach.
TEST(Promotion, EverySmallPicture_KeepsAMajorityWithinReach) {
  int promotions = 0;
  for (int voters = 1; voters <= 5; ++voters) {
    for (int learners = 0; learners <= 3; ++learners) {
      for (unsigned away = 0; away < (1u << (voters + learners)); ++away) {
        if ((away & 1) != 0) continue;  // the leader is here
        World w(voters, learners);
        for (int i = 1; i <= voters + learners; ++i) {
          if ((away >> (i - 1)) & 1) w.away(i);
        }
        const auto change = next_promotion(w.picture, w.state);
        if (!change) continue;
        ++promotions;
        const auto after = raft::apply(w.picture.configuration, *change);
        ASSERT_TRUE(after);
        std::size_t there = 0;
        for (ReplicaId v : after.value().voters()) there += w.picture.reachable.contains(v) ? 1 : 0;
        ASSERT_GE(there, after.value().voter_count() / 2 + 1);
        ASSERT_LE(after.value().voter_count(), 5u);
      }
    }
  }
  EXPECT_GT(promotions, 50);
}

TEST(Departure, LeavingMember_GoesFromRaftFirst) {
  World w(3, 0);
  EXPECT_EQ(w.departure(), "");
  w.leave(3);
  EXPECT_EQ(w.departure(), "replica 3");
  w.picture.configuration = raft::apply(w.picture.configuration,
                                        {raft::ConfigurationChange::Kind::remove, ReplicaId(3), ""})
                                .value();
  EXPECT_EQ(w.departure(), "member n3");
  w.apply(metastore::RemoveMember{"n3", w.member(3).drain_id, UnixMillis(5)});
  EXPECT_EQ(w.departure(), "");
}

TEST(Departure, Trap36_LeaderThatLeaves_HandsOverInsteadOfRemovingItself) {
  World w(3, 0);
  w.leave(1);
  EXPECT_EQ(w.departure(), "hand over");
  EXPECT_EQ(heir(w.picture, w.state), ReplicaId(2));
}

TEST(Departure, RemovalThatWouldNeedASilentVoter_Waits) {
  World w(3, 0);
  w.leave(3);
  w.away(2);
  EXPECT_EQ(w.departure(), "");
}

TEST(Departure, ReplicaOfARemovedMember_IsCleanedUp) {
  World w(3, 1);
  w.state.members.erase("n4");
  w.state.tombstones.put(std::make_shared<const metastore::Tombstone>(
      metastore::Tombstone{"n4", RaftIndex(4), UnixMillis(1)}));
  EXPECT_EQ(w.departure(), "replica 4");
}

TEST(Heir, LivingVoterThatStays_IsPreferred) {
  World w(3, 1);
  EXPECT_EQ(heir(w.picture, w.state), ReplicaId(2));
  w.apply(metastore::SetDraining{"n2", true});
  EXPECT_EQ(heir(w.picture, w.state), ReplicaId(3));
  w.away(3);
  EXPECT_EQ(heir(w.picture, w.state), ReplicaId(2)) << "better one that drains than none";
  w.away(2);
  EXPECT_EQ(heir(w.picture, w.state), ReplicaId()) << "a learner leads nobody";
}

TEST(Placement, UnassignedPartitions_GoRoundTheReceivers) {
  World w(3, 0);
  for (int i = 1; i <= 3; ++i) w.apply(metastore::MarkDead{World::node(i), w.member(i).stamp});
  metastore::CreateTopic topic;
  topic.name = "orders";
  topic.incarnation = Incarnation(7);
  topic.partitions = 5;
  topic.max_in_flight_per_partition = topic.max_acked_ahead_per_partition = 1;
  w.apply(topic);
  EXPECT_TRUE(assign_unassigned(w.state, 100).empty()) << "nobody is alive";
  for (int i = 1; i <= 3; ++i) {
    w.apply(metastore::RegisterMember{World::node(i), "h", "c", "b", {"d"}, UnixMillis(1)});
  }
  w.apply(metastore::SetDraining{"n2", true});  // traps.md 26
  EXPECT_EQ(assign_unassigned(w.state, 2).size(), 2u);
  std::string owners;
  for (const auto& a : assign_unassigned(w.state, 100)) {
    owners += cat(a.node, " ");
    EXPECT_TRUE(w.apply(a).done());
  }
  EXPECT_EQ(owners, "n1 n3 n1 n3 n1 ");
  EXPECT_TRUE(assign_unassigned(w.state, 100).empty());
}

TEST(Reasons, EachPhase_SaysWhatIsMissing) {
  Standing s;
  EXPECT_EQ(why_not_ready(s).at(0), "membership: asking the configured peers");
  s.phase = Standing::Phase::waiting;
  s.detail = "waiting to hear from n2 (connection refused)";
  EXPECT_EQ(why_not_ready(s).at(0), "membership: waiting to hear from n2 (connection refused)");
  s.phase = Standing::Phase::joining;
  s.cluster_id = 0xc1;
  s.detail = "n1 knows no leader";
  EXPECT_EQ(why_not_ready(s).at(0),
            "membership: joining cluster 00000000000000c1; last answer: n1 knows no leader");
  s.phase = Standing::Phase::member;
  s.without_leader = std::chrono::milliseconds(12'345);
  EXPECT_EQ(why_not_ready(s).at(0),
            "cluster 00000000000000c1 has had no leader for 12s: a majority of its voters must be "
            "up and reach each other");
  s.leader = "n2";
  EXPECT_EQ(why_not_ready(s).at(0), "catching up with the metadata of leader n2");
  s.caught_up = true;
  EXPECT_EQ(why_not_ready(s).at(0), "the first entry of the cluster is not applied yet");
  s.founded_entry = true;
  s.dead = true;
  EXPECT_EQ(why_not_ready(s).size(), 1u);
  s.dead = false;
  EXPECT_TRUE(why_not_ready(s).empty());
  s.heartbeat = "n2 did not answer";
  EXPECT_EQ(why_not_ready(s).at(0), "heartbeat: n2 did not answer");
  s.phase = Standing::Phase::removed;
  s.detail = removed_text("n3", RaftIndex(12), UnixMillis(1'783'615'000'000), "/var/lib/narad");
  EXPECT_EQ(why_not_ready(s).at(0),
            "membership: node n3 was removed from its cluster at 2026-07-09T16:36:40.000Z (entry "
            "12). Its id does not come back. To use this machine again, move /var/lib/narad away "
            "and start with an empty one under a new node id");
}

}  // namespace
}  // namespace narad::cluster
