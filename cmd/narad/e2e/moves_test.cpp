// Partitions that move between real nodes under load: a node joins, a node is drained, and whoever
// takes part is killed or stopped meanwhile. In the end every message that was accepted is there.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <map>
#include <set>

#include "cmd/narad/e2e/cluster.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Member -> partitions it owns, as node `asked` knows it; empty if it does not answer.
std::map<std::string, int> owned_by(Cluster& cluster, std::size_t asked) {
  std::map<std::string, int> owned;
  if (!cluster.node(asked).child().running()) return owned;
  auto answer = Http(cluster.node(asked).port()).get("/v1/cluster/members");
  if (!answer || answer->status != 200) return owned;
  const json::value body = json::parse(answer->body);
  for (const auto& member : body.at("members").as_array()) {
    owned[std::string(member.at("id").as_string())] =
        member.at("owned_partitions").to_number<int>();
  }
  return owned;
}

std::size_t moves_under_way(Cluster& cluster, std::size_t asked) {
  auto answer = Http(cluster.node(asked).port()).get("/v1/cluster/moves");
  if (!answer || answer->status != 200) return 999;
  return json::parse(answer->body).at("moves").as_array().size();
}

// Each member owns `low` to `low + 1` partitions, and nothing moves any more.
bool even(Cluster& cluster, std::size_t asked, std::size_t members, int low) {
  const auto owned = owned_by(cluster, asked);
  if (owned.size() != members) return false;
  for (const auto& [id, count] : owned) {
    if (count < low || count > low + 1) return false;
  }
  return moves_under_way(cluster, asked) == 0;
}

std::string describe(Cluster& cluster, std::size_t asked) {
  auto members = Http(cluster.node(asked).port()).get("/v1/cluster/members");
  auto moves = Http(cluster.node(asked).port()).get("/v1/cluster/moves");
  return cat(members ? members->body : "?", moves ? moves->body : "?");
}

bool accepted_more(const Producers& load, std::size_t more) {
  const std::size_t goal = load.accepted() + more;
  return soon([&] { return load.accepted() >= goal; }, 60s);
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

// Whoever takes part dies while partitions move, and comes back.
void die_during_moves(const std::function<std::size_t(Cluster&)>& choose) {
  ClusterOptions options;
  options.env["NARAD_MOVES_MAX_BYTES_PER_SECOND"] = "65536";  // so that they take a while
  Cluster cluster(std::move(options));
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 8);
  Producers load(cluster, "orders", 2);
  ASSERT_TRUE(accepted_more(load, 3000));
  ASSERT_TRUE(cluster.add()) << cluster.why();
  ASSERT_TRUE(soon([&] { return moves_under_way(cluster, 0) > 0; }, 30s)) << describe(cluster, 0);
  const std::size_t victim = choose(cluster);
  cluster.node(victim).kill9();
  ASSERT_TRUE(cluster.node(victim).start()) << cluster.node(victim).why();
  ASSERT_TRUE(soon([&] { return even(cluster, victim, 4, 2); }, 180s)) << describe(cluster, victim);
  load.stop();
  const auto left = consume_all(cluster, "orders", load.accepted_payloads(), 180s);
  EXPECT_TRUE(left.empty()) << left.size() << " of " << load.accepted() << ", " << *left.begin();
}

TEST(Moves, CPY_10_TheDestinationIsKilledInMidCopy_AndGoesOn) {
  die_during_moves([](Cluster&) { return std::size_t{3}; });
}

TEST(Moves, SRC_1_ASourceIsKilledInMidCopy_AndTheMoveWaitsForIt) {
  die_during_moves([](Cluster& cluster) {
    auto answer = Http(cluster.node(3).port()).get("/v1/cluster/moves");
    const json::value body = json::parse(answer->body);
    for (const auto& move : body.at("moves").as_array()) {
      const std::string from(move.at("from").as_string());
      for (std::size_t i = 0; i < 3; ++i) {
        if (from == Cluster::id(i)) return i;
      }
    }
    return std::size_t{0};
  });
}

TEST(Moves, OWN_5_TheLeaderIsKilledInMidCopy_AndNobodyMissesIt) {
  die_during_moves([](Cluster& cluster) { return cluster.leader().value_or(0); });
}

}  // namespace
}  // namespace narad::e2e
