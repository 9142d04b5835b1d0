// Partitions that move between real nodes under load: a node joins, a node is drained, and whoever
// takes part is killed or stopped meanwhile. In the end every message that was accepted is there.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "cmd/narad/e2e/moves_for_test.h"
#include "cmd/narad/e2e/tmpfs.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Each member owns `low` to `low + 1` partitions, and nothing moves any more.
bool even(Cluster& cluster, std::size_t asked, std::size_t members, int low) {
  const auto owned = owned_by(cluster, asked);
  if (owned.size() != members) return false;
  for (const auto& [id, count] : owned) {
    if (count < low || count > low + 1) return false;
  }
  return moves_under_way(cluster, asked) == 0;
}

TEST(Moves, CLI_1_CLI_2_CLI_7_ANodeJoinsUnderLoad_PartitionsFlowOntoItAndNothingIsLost) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 12);
  Producers load(cluster, "orders");
  ASSERT_TRUE(accepted_more(load, 500));
  ASSERT_TRUE(cluster.add()) << cluster.why();
  ASSERT_TRUE(soon([&] { return even(cluster, 0, 4, 3); }, 90s)) << describe(cluster, 0);
  ASSERT_TRUE(accepted_more(load, 500));
  load.stop();
  EXPECT_EQ(load.refused(), 0) << load.first_refusal();
  const auto left = consume_all(cluster, "orders", load.accepted_payloads(), 120s);
  EXPECT_TRUE(left.empty()) << left.size() << " of " << load.accepted() << ", " << *left.begin();
}

TEST(Moves, DEC_2_DEC_4_ADrainedNodeShedsItsPartitionsAndLeaves) {
  Cluster cluster(4);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 12);
  Producers load(cluster, "orders");
  ASSERT_TRUE(accepted_more(load, 500));
  const auto leader = cluster.leader();
  ASSERT_TRUE(leader);
  const std::size_t leaving = (*leader + 1) % 4;
  const std::size_t witness = (leaving + 1) % 4;
  Http http(cluster.node(witness).port());
  auto asked = http.post(cat("/v1/cluster/members/", Cluster::id(leaving), "/decommission"));
  ASSERT_TRUE(asked);
  ASSERT_EQ(asked->status / 100, 2) << asked->body;
  ASSERT_TRUE(soon([&] { return even(cluster, witness, 3, 4); }, 120s))
      << describe(cluster, witness);
  load.stop();
  const auto left = consume_all(cluster, "orders", load.accepted_payloads(), 120s);
  EXPECT_TRUE(left.empty()) << left.size() << " of " << load.accepted() << ", " << *left.begin();
}

TEST(Moves, G57_ThreeThousandPartitionsThatWereNeverUsed_LeaveANodeWithinAMinute) {
  Cluster cluster(4);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  Http http(cluster.node(0).port());
  for (int t = 0; t < 120; ++t) {
    auto answer = http.post("/v1/topics", cat(R"({"name":"t)", t, R"(","partitions":100})"));
    ASSERT_TRUE(answer && answer->status == 201) << (answer ? answer->body : "no answer");
  }
  const auto leader = cluster.leader();
  ASSERT_TRUE(leader);
  const std::size_t leaving = (*leader + 1) % 4, witness = (leaving + 1) % 4;
  const std::string id = Cluster::id(leaving);
  // New topics are shared out evenly.
  ASSERT_TRUE(soon([&] { return owned_by(cluster, witness)[id] == 3000; })) << describe(cluster, 0);
  auto asked =
      Http(cluster.node(witness).port()).post(cat("/v1/cluster/members/", id, "/decommission"));
  ASSERT_TRUE(asked && asked->status / 100 == 2) << (asked ? asked->body : "no answer");
  const auto empty = [&] {
    const auto owned = owned_by(cluster, witness);
    const auto at = owned.find(id);
    return !owned.empty() && (at == owned.end() || at->second == 0);
  };
  EXPECT_TRUE(soon(empty, 60s)) << describe(cluster, witness);
}

// The command as an operator gives it to the first node.
Ran narad(Cluster& cluster, std::vector<std::string> words) {
  words.insert(words.begin(), {narad_binary(), "cluster", "moves"});
  words.insert(words.end(), {"--server", cat("http://127.0.0.1:", cluster.node(0).port())});
  return run(std::move(words));
}

// Which of its partitions are on their way, as the first node knows it.
std::set<std::int64_t> moving(Cluster& cluster) {
  std::set<std::int64_t> out;
  auto answer = Http(cluster.node(0).port()).get("/v1/cluster/moves");
  if (!answer || answer->status != 200) return out;
  const json::value body = json::parse(answer->body);
  for (const auto& m : body.at("moves").as_array()) out.insert(m.at("partition").as_int64());
  return out;
}

// Two partitions of it that are not on that node.
std::vector<std::int64_t> two_elsewhere(Cluster& cluster, const std::string& node) {
  std::vector<std::int64_t> out;
  for (const auto& [partition, owner] : owners(cluster, 0)) {
    if (out.size() < 2 && owner != node) out.push_back(partition);
  }
  return out;
}

TEST(Moves, ABT_1_ABT_2_AllOfThem_AreAbortedOnceSomebodyAgrees) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 6);
  {
    Producers load(cluster, "orders");
    ASSERT_TRUE(accepted_more(load, 500));
  }
  const auto moved = two_elsewhere(cluster, Cluster::id(2));
  ASSERT_EQ(moved.size(), 2u);
  cluster.node(2).child().signal(SIGSTOP);  // a destination that never gets on
  for (const std::int64_t p : moved) {
    const std::vector<std::string> words{"start", "orders", cat(p), "--to", Cluster::id(2)};
    // It may have led: then another one has to be elected first.
    ASSERT_TRUE(soon([&] { return narad(cluster, words).exit.code == 0; })) << p;
  }
  const auto both = [&] {
    const auto now = moving(cluster);
    return now.contains(moved[0]) && now.contains(moved[1]);
  };
  ASSERT_TRUE(soon(both)) << describe(cluster, 0);
  const Ran asked = narad(cluster, {"abort", "--all"});
  EXPECT_EQ(asked.exit.code, 1);
  EXPECT_NE(asked.err.find("nothing was aborted"), std::string::npos) << asked.err;
  EXPECT_TRUE(both()) << describe(cluster, 0);
  const Ran done = narad(cluster, {"abort", "--all", "--yes", "-o", "text"});
  EXPECT_EQ(done.exit.code, 0) << done.out << done.err;
  for (const std::int64_t p : moved) {
    EXPECT_NE(done.out.find(cat("orders/", p, ": move ")), std::string::npos) << done.out;
    EXPECT_FALSE(moving(cluster).contains(p)) << done.out;
  }
  cluster.node(2).child().signal(SIGCONT);
}

// True if each of so many partitions lies on one node's disk only.
bool lie_once(Cluster& cluster, std::size_t partitions) {
  std::set<std::string> nodes;
  for (std::size_t i = 0; i < cluster.size(); ++i) nodes.insert(Cluster::id(i));
  const auto found = holders(cluster, nodes);
  return found.size() == partitions && std::all_of(found.begin(), found.end(), [](const auto& p) {
           return p.second.size() == 1;
         });
}

using Choose = std::function<std::size_t(Cluster&)>;

// Something happens to one who takes part while partitions move, and it comes back.
void disturb_moves(ClusterOptions options, const Choose& choose,
                   const std::function<void(Broker&)>& strike) {
  options.env["NARAD_MOVES_MAX_BYTES_PER_SECOND"] = "65536";  // so that they take a while
  options.env["NARAD_TIMING_MOVE_TICK"] = "100ms";            // and stale copies go soon
  Cluster cluster(std::move(options));
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 8);
  Producers load(cluster, "orders", 2);
  ASSERT_TRUE(accepted_more(load, 3000));
  ASSERT_TRUE(cluster.add()) << cluster.why();
  ASSERT_TRUE(soon([&] { return moves_under_way(cluster, 0) > 0; }, 30s)) << describe(cluster, 0);
  const std::size_t victim = choose(cluster);
  strike(cluster.node(victim));
  ASSERT_TRUE(soon([&] { return even(cluster, victim, 4, 2); }, 180s)) << describe(cluster, victim);
  ASSERT_TRUE(soon([&] { return lie_once(cluster, 8); }, 60s))
      << "a partition lies on its owner's disk only";
  load.stop();
  const auto left = consume_all(cluster, "orders", load.accepted_payloads(), 180s);
  EXPECT_TRUE(left.empty()) << left.size() << " of " << load.accepted() << ", " << *left.begin();
}

void die_during_moves(const Choose& choose) {
  disturb_moves({}, choose, [](Broker& broker) {
    broker.kill9();
    ASSERT_TRUE(broker.start()) << broker.why();
  });
}

// It hangs for longer than a freeze lasts and than a member may be silent.
void hang_during_moves(const Choose& choose) {
  ClusterOptions options;
  options.env["NARAD_TIMING_FREEZE_TTL"] = "3s";
  options.env["NARAD_TIMING_DEAD_AFTER"] = "3s";
  options.env["NARAD_TIMING_HEARTBEAT"] = "500ms";
  disturb_moves(std::move(options), choose, [](Broker& broker) {
    ASSERT_EQ(::kill(broker.child().pid(), SIGSTOP), 0);
    EXPECT_FALSE(broker.child().wait(4s)) << "it cannot end";
    ASSERT_EQ(::kill(broker.child().pid(), SIGCONT), 0);
  });
}

std::size_t a_destination(Cluster&) { return 3; }

std::size_t a_source(Cluster& cluster) {
  auto answer = Http(cluster.node(3).port()).get("/v1/cluster/moves");
  const json::value body = json::parse(answer ? answer->body : R"({"moves":[]})");
  for (const auto& move : body.at("moves").as_array()) {
    const std::string from(move.at("from").as_string());
    for (std::size_t i = 0; i < 3; ++i) {
      if (from == Cluster::id(i)) return i;
    }
  }
  return 0;
}

std::size_t the_leader(Cluster& cluster) { return cluster.leader().value_or(0); }

TEST(Moves, CPY_10_TheDestinationIsKilledInMidCopy_AndGoesOn) { die_during_moves(a_destination); }

TEST(Moves, SRC_1_ASourceIsKilledInMidCopy_AndTheMoveWaitsForIt) { die_during_moves(a_source); }

TEST(Moves, OWN_2_OWN_5_TheLeaderIsKilledInMidCopy_AndNobodyMissesIt) {
  die_during_moves(the_leader);
}

TEST(Moves, Trap66_TheDestinationsDiskIsFull_ItGivesItsMovesBackAndServesOn) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 8);
  std::set<std::string> sent;
  Http http(cluster.node(0).port());
  for (int n = 0; n < 80; ++n) {
    const std::string payload = cat("m", n, ":", std::string(256 * 1024, 'x'));
    auto answer = http.post("/v1/topics/orders/produce", payload);
    ASSERT_TRUE(answer && answer->status == 202) << (answer ? answer->body : "no answer");
    sent.insert(payload);
  }
  const std::string place = cat(cluster.directory(), "/", Cluster::id(3));
  Tmpfs disk(place, "24m");
  ASSERT_EQ(disk.error(), 0) << "this test mounts a tmpfs: run it as root";
  const std::string ballast = place + "/ballast";
  std::ofstream(ballast) << std::string(21u << 20, 'b');
  ASSERT_TRUE(cluster.add()) << cluster.why();
  ASSERT_TRUE(
      soon([&] { return history(cluster, 0).find("target_full") != std::string::npos; }, 60s))
      << describe(cluster, 0);
  auto answer = http.post("/v1/topics/orders/produce", "after");
  ASSERT_TRUE(answer && answer->status == 202) << "nobody else minds";
  sent.insert("after");
  ASSERT_TRUE(soon([&] { return moves_under_way(cluster, 0) == 0; }, 60s)) << describe(cluster, 0);
  EXPECT_EQ(owned_by(cluster, 0)[Cluster::id(3)], 0) << describe(cluster, 0);
  // An operator does not have to wait.
  std::filesystem::remove(ballast);
  auto order = http.post("/v1/cluster/moves", R"({"topic":"orders","partition":0,"to":"n3"})");
  ASSERT_TRUE(order && order->status / 100 == 2) << (order ? order->body : "no answer");
  ASSERT_TRUE(soon([&] { return owned_by(cluster, 0)[Cluster::id(3)] > 0; }, 60s))
      << describe(cluster, 0) << history(cluster, 0);
  EXPECT_TRUE(consume_all(cluster, "orders", sent, 60s).empty());
}

TEST(Moves, TheDestinationHangs_AndNothingIsLost) { hang_during_moves(a_destination); }

TEST(Moves, ASourceHangs_AndNothingIsLost) { hang_during_moves(a_source); }

TEST(Moves, TheLeaderHangs_AndNothingIsLost) { hang_during_moves(the_leader); }

}  // namespace
}  // namespace narad::e2e
