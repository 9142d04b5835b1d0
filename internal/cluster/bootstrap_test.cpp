#include "internal/cluster/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using Kind = PeerReport::Kind;
using raft::MemberRole;
using testing::HasSubstr;

constexpr std::uint64_t kCluster = 0xc1;
constexpr std::uint64_t kOther = 0xc2;

ReplicaId replica_of(const std::string& node) {
  return ReplicaId(100 + static_cast<std::uint64_t>(node.back() - '0'));
}
raft::Member voter(const std::string& node) { return {replica_of(node), node, MemberRole::voter}; }
raft::Member learner(const std::string& node) {
  return {replica_of(node), node, MemberRole::learner};
}
BootstrapRules three(const std::string& self, std::vector<std::string> initial = {},
                     bool forced = false) {
  return rules_of(self, {"n1", "n2", "n3"}, std::move(initial), forced);
}
OwnDisk empty_disk(const std::string& node) {
  OwnDisk own;
  own.node = node;
  own.replica = replica_of(node);
  return own;
}
PeerReport silent(const std::string& id) { return {id, Kind::unreachable, "no route", {}}; }
PeerReport empty(const std::string& id) {
  return {id, Kind::answered, "", {id, replica_of(id), 0, {}, "", {}}};
}
PeerReport member(const std::string& id, std::uint64_t cluster = kCluster,
                  std::vector<raft::Member> founding = {}) {
  return {id, Kind::answered, "", {id, replica_of(id), cluster, std::move(founding), "n2", {}}};
}

std::string name_of(const Decision& d) {
  if (std::holds_alternative<Resume>(d)) return "resume";
  if (const auto* f = std::get_if<Found>(&d)) {
    std::string out = cat("found ", f->cluster_id);
    for (const raft::Member& m : f->configuration) {
      out += cat(" ", m.node, m.role == MemberRole::voter ? "" : "L");
    }
    return out;
  }
  if (const auto* j = std::get_if<Join>(&d)) return cat("join ", j->cluster_id);
  return "wait";
}
std::string reason(const Decision& d) {
  const auto* w = std::get_if<Wait>(&d);
  return w == nullptr ? "" : w->reason;
}

TEST(Bootstrap, LoneNode_FoundsAlone) {
  const auto rules = rules_of("n1", {}, {}, false);
  EXPECT_EQ(name_of(decide_bootstrap(rules, empty_disk("n1"), {})), "found 0 n1");
}

TEST(Bootstrap, RaftStoreWithAPast_GoesOnWhateverPeersSay) {
  OwnDisk own = empty_disk("n1");
  own.raft_empty = false;
  own.cluster_id = kCluster;
  const auto d = decide_bootstrap(three("n1"), own, {member("n2", kOther), silent("n3")});
  EXPECT_EQ(name_of(d), "resume");
}

TEST(Bootstrap, AllEmpty_TheFirstFoundsAndTheOthersWaitForIt) {
  EXPECT_EQ(name_of(decide_bootstrap(three("n1"), empty_disk("n1"), {empty("n2"), empty("n3")})),
            "found 0 n1 n2 n3");
  const auto d = decide_bootstrap(three("n2"), empty_disk("n2"), {empty("n1"), empty("n3")});
  EXPECT_EQ(reason(d), "waiting for n1 to found the cluster");
}

TEST(Bootstrap, PeerThatFoundedWithThisReplica_IsFollowed) {
  const std::vector<raft::Member> founding{voter("n1"), voter("n2"), voter("n3")};
  const auto d = decide_bootstrap(three("n2"), empty_disk("n2"),
                                  {member("n1", kCluster, founding), silent("n3")});
  EXPECT_EQ(name_of(d), cat("found ", kCluster, " n1 n2 n3"));
}

TEST(Bootstrap, PeerThatFoundedWithAnEarlierLifeOfThisNode_IsJoined) {
  std::vector<raft::Member> founding{voter("n1"), voter("n2"), voter("n3")};
  founding[1].replica = ReplicaId(7);
  const auto d = decide_bootstrap(three("n2"), empty_disk("n2"),
                                  {member("n1", kCluster, founding), silent("n3")});
  EXPECT_EQ(name_of(d), cat("join ", kCluster));
}

// traps.md 34: a wiped majority that comes up first must not begin a second cluster.
TEST(Bootstrap, Trap34_WipedMajorityWithASilentPeer_Waits) {
  const auto d = decide_bootstrap(three("n1"), empty_disk("n1"), {empty("n2"), silent("n3")});
  EXPECT_THAT(reason(d), HasSubstr("n3 (no route)"));
  EXPECT_THAT(reason(d), HasSubstr("narad serve --bootstrap"));
}

TEST(Bootstrap, Trap34_WipedMajorityWithAPeerThatRemembers_Joins) {
  const auto d = decide_bootstrap(three("n1"), empty_disk("n1"), {empty("n2"), member("n3")});
  EXPECT_EQ(name_of(d), cat("join ", kCluster));
}

TEST(Bootstrap, Trap34_ForcedNodeStillJoinsAClusterThatAnswers) {
  const auto rules = three("n1", {}, true);
  EXPECT_EQ(name_of(decide_bootstrap(rules, empty_disk("n1"), {silent("n2"), member("n3")})),
            cat("join ", kCluster));
  EXPECT_EQ(name_of(decide_bootstrap(rules, empty_disk("n1"), {silent("n2"), silent("n3")})),
            "found 0 n1");
}

TEST(Bootstrap, PeerBeyondTheFounders_IsHeardTooButBeginsOutside) {
  const auto rules = rules_of("n1", {"n1", "n2", "n3", "n4", "n5"}, {"n1", "n2", "n3"}, false);
  const auto own = empty_disk("n1");
  EXPECT_EQ(
      name_of(decide_bootstrap(rules, own, {empty("n2"), empty("n3"), empty("n4"), silent("n5")})),
      "wait");
  EXPECT_EQ(
      name_of(decide_bootstrap(rules, own, {empty("n2"), empty("n3"), empty("n4"), empty("n5")})),
      "found 0 n1 n2 n3");
}

TEST(Bootstrap, NodeOutsideInitialMembers_OnlyJoins) {
  const auto rules = three("n3", {"n1", "n2"});
  const auto d = decide_bootstrap(rules, empty_disk("n3"), {empty("n1"), empty("n2")});
  EXPECT_THAT(reason(d), HasSubstr("not in cluster.initial_members"));
  EXPECT_EQ(name_of(decide_bootstrap(rules, empty_disk("n3"), {empty("n1"), member("n2")})),
            cat("join ", kCluster));
}

TEST(Bootstrap, InitialMemberWithoutAnAddress_IsNamed) {
  const auto d = decide_bootstrap(three("n1", {"n1", "n2", "n9"}), empty_disk("n1"),
                                  {empty("n2"), empty("n3")});
  EXPECT_THAT(reason(d), HasSubstr("n9"));
}

TEST(Bootstrap, EvenNumberOfFounders_BeginsWithAnOddNumberOfVoters) {
  const auto rules = rules_of("n1", {"n1", "n2", "n3", "n4"}, {}, false);
  EXPECT_EQ(
      name_of(decide_bootstrap(rules, empty_disk("n1"), {empty("n2"), empty("n3"), empty("n4")})),
      "found 0 n1 n2 n3 n4L");
  std::vector<raft::Member> seven;
  for (const char* n : {"n7", "n6", "n5", "n4", "n3", "n2", "n1"}) seven.push_back(learner(n));
  const auto made = founding_configuration(seven, 5);
  EXPECT_EQ(std::count_if(made.begin(), made.end(),
                          [](const auto& m) { return m.role == MemberRole::voter; }),
            5);
  EXPECT_EQ(made[0].node, "n1");
  EXPECT_EQ(made[6], learner("n7"));
}

TEST(Bootstrap, MoreFoundersThanOthersCanBeToldOf_TheRestJoins) {
  std::vector<std::string> ids;
  for (int i = 0; i < 70; ++i) ids.push_back(cat("n", 100 + i));
  const auto rules = rules_of(ids.front(), ids, {}, false);
  std::vector<PeerReport> reports;
  for (std::uint64_t i = 1; i < 70; ++i) {
    reports.push_back(empty(ids[i]));
    reports.back().who.replica = ReplicaId(1000 + i);
  }
  const auto d = decide_bootstrap(rules, empty_disk(ids.front()), reports);
  ASSERT_TRUE(std::holds_alternative<Found>(d)) << reason(d);
  // What the founder says of itself from then on.
  wire::WhoAnswer who{
      ids.front(), replica_of(ids.front()), kCluster, std::get<Found>(d).configuration, "", {}};
  const auto told = wire::decode_who_answer(wire::encode(who));
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_EQ(told.value().founding.size(), wire::kFoundersMax);
  // The last one is not among them.
  const auto last = rules_of(ids.back(), ids, {}, false);
  std::vector<PeerReport> seen(69);
  for (std::size_t i = 0; i < 69; ++i) seen[i] = silent(ids[i]);
  seen[0] = {ids.front(), Kind::answered, "", told.value()};
  EXPECT_EQ(name_of(decide_bootstrap(last, empty_disk(ids.back()), seen)), cat("join ", kCluster));
}

TEST(Bootstrap, PeersOfDifferentClusters_AreNamed) {
  const auto d =
      decide_bootstrap(three("n1"), empty_disk("n1"), {member("n2"), member("n3", kOther)});
  EXPECT_THAT(reason(d), HasSubstr("00000000000000c1 (n2), 00000000000000c2 (n3)"));
}

TEST(Bootstrap, PeerUnderAnotherName_IsAMistakeOfTheConfiguration) {
  PeerReport wrong = member("n2");
  wrong.who.node = "n9";
  const auto d = decide_bootstrap(three("n1"), empty_disk("n1"), {wrong, empty("n3")});
  EXPECT_THAT(reason(d), HasSubstr("the address of n2 belongs to n9"));
}

TEST(Bootstrap, CopiedDirectory_IsNamed) {
  PeerReport copy = empty("n2");
  copy.who.replica = replica_of("n1");
  EXPECT_THAT(reason(decide_bootstrap(three("n1"), empty_disk("n1"), {copy, empty("n3")})),
              HasSubstr("copy"));
  copy.who.replica = replica_of("n3");
  EXPECT_THAT(reason(decide_bootstrap(three("n1"), empty_disk("n1"), {copy, empty("n3")})),
              HasSubstr("n2 and n3"));
}

TEST(Bootstrap, FoundingInterruptedBeforeTheRaftStore_IsFinished) {
  OwnDisk own = empty_disk("n1");
  own.cluster_id = kCluster;
  own.founding = {voter("n1"), voter("n2"), voter("n3")};
  const auto d = decide_bootstrap(three("n1"), own, {silent("n2"), silent("n3")});
  EXPECT_EQ(name_of(d), cat("found ", kCluster, " n1 n2 n3"));
}

TEST(Bootstrap, FounderWhoseRaftStoreWasEmptied_OnlyJoins) {
  OwnDisk own = empty_disk("n1");
  own.cluster_id = kCluster;
  own.founding = {voter("n1"), voter("n2"), voter("n3")};
  own.founding[0].replica = ReplicaId(7);
  EXPECT_EQ(name_of(decide_bootstrap(three("n1"), own, {silent("n2"), silent("n3")})),
            cat("join ", kCluster));
  // Nobody to ask: it must not begin anew what others may hold.
  const auto alone = decide_bootstrap(rules_of("n1", {}, {}, false), own, {});
  EXPECT_THAT(reason(alone), HasSubstr("names nobody to join"));
  own.founding.clear();
  own.joined = true;
  EXPECT_EQ(name_of(decide_bootstrap(rules_of("n1", {}, {}, false), own, {})), "wait");
}

TEST(Bootstrap, LoneNodeInterruptedWhileFounding_KeepsItsId) {
  OwnDisk own = empty_disk("n1");
  own.cluster_id = kCluster;
  EXPECT_EQ(name_of(decide_bootstrap(rules_of("n1", {}, {}, false), own, {})),
            cat("found ", kCluster, " n1"));
}

// Every combination of what three nodes may hold and of who may hear whom. Whatever they do by
// their decisions, in whatever order, at most one new cluster id comes of it, and none if anybody
// remembers a cluster.
class World {
 public:
  struct Node {
    bool up = true;
    bool raft = false;
    std::uint64_t cluster = 0;
    std::vector<raft::Member> founding;
  };
  World(int disks, int hears) {
    for (int i = 0; i < 3; ++i) {
      const int kind = disks % 3;
      disks /= 3;
      nodes_[i].up = kind != 2;
      if (kind == 0) continue;
      nodes_[i].raft = true;
      nodes_[i].cluster = kCluster;
      remembered_ = true;
    }
    hears_ = hears;
  }
  bool remembered() const { return remembered_; }
  int founded() const { return founded_; }

  // Lets node `i` look around and act. The cut of links heals after the first round.
  void act(int i, bool healed) {
    Node& me = nodes_[i];
    if (!me.up) return;
    OwnDisk own = empty_disk(id(i));
    own.raft_empty = !me.raft;
    own.cluster_id = me.cluster;
    own.founding = me.founding;
    std::vector<PeerReport> reports;
    for (int j = 0; j < 3; ++j) {
      if (j == i) continue;
      const bool heard = nodes_[j].up && (healed || ((hears_ >> (i * 3 + j)) & 1) != 0);
      reports.push_back(!heard ? silent(id(j))
                        : nodes_[j].cluster == 0
                            ? empty(id(j))
                            : member(id(j), nodes_[j].cluster, nodes_[j].founding));
    }
    const Decision d = decide_bootstrap(three(id(i)), own, reports);
    if (const auto* f = std::get_if<Found>(&d)) {
      me.raft = true;
      me.cluster = f->cluster_id != 0 ? f->cluster_id : 1000u + static_cast<unsigned>(++founded_);
      me.founding = f->configuration;
    } else if (const auto* j = std::get_if<Join>(&d)) {
      me.cluster = j->cluster_id;
      me.raft = true;
    }
  }
  std::set<std::uint64_t> clusters() const {
    std::set<std::uint64_t> out;
    for (const Node& n : nodes_) {
      if (n.cluster != 0) out.insert(n.cluster);
    }
    return out;
  }
  void wake_all() {
    for (Node& n : nodes_) n.up = true;
  }

 private:
  static std::string id(int i) { return cat("n", i + 1); }
  std::array<Node, 3> nodes_;
  int hears_ = 0;
  bool remembered_ = false;
  int founded_ = 0;
};

TEST(Bootstrap, Trap34_EveryStateOfThreeNodes_EndsInOneCluster) {
  const std::vector<std::array<int, 3>> orders{{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                               {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  int founded = 0, cases = 0;
  for (int disks = 0; disks < 27; ++disks) {
    for (int hears = 0; hears < 512; ++hears) {
      if ((hears & 0b100'010'001) != 0) continue;  // a node need not hear itself
      for (const auto& order : orders) {
        World world(disks, hears);
        for (int i : order) world.act(i, false);
        world.wake_all();
        for (int round = 0; round < 3; ++round) {
          for (int i : order) world.act(i, true);
        }
        ++cases;
        founded += world.founded();
        ASSERT_EQ(world.clusters().size(), 1u) << disks << " " << hears;
        if (world.remembered()) {
          ASSERT_EQ(world.founded(), 0) << disks << " " << hears;
        } else {
          ASSERT_EQ(world.founded(), 1) << disks << " " << hears;
        }
      }
    }
  }
  EXPECT_EQ(founded, 64 * 6) << "only where all disks are empty";
  EXPECT_EQ(cases, 27 * 64 * 6);
}

}  // namespace
}  // namespace narad::cluster
