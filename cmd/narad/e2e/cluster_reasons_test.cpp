// Why a node is not ready, or not joined: what /readyz, its log and `narad cluster members` tell a
// person, for each of the reasons. Another secret and another cluster: cluster_hostile_test.cpp.
// Removed from the cluster: internal/cluster, since nothing removes a node by command yet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cmd/narad/e2e/cluster.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

bool says(std::uint16_t port, const std::string& text, Duration limit = 15s) {
  return soon([&] { return waiting_for(port).find(text) != std::string::npos; }, limit);
}

Ran members(std::uint16_t port) {
  return run(
      {narad_binary(), "-s", cat("http://127.0.0.1:", port), "cluster", "members", "-o", "text"});
}

TEST(ClusterReasons, PeersAreSilent_TheNodeNamesThem) {
  Cluster cluster(3);
  cluster.node(0).launch();
  const std::uint16_t port = cluster.node(0).port();
  ASSERT_TRUE(says(port, "waiting to hear from")) << waiting_for(port);
  EXPECT_THAT(waiting_for(port), HasSubstr("n1 (cannot reach"));
  EXPECT_THAT(waiting_for(port), HasSubstr("n2 (cannot reach"));
  EXPECT_THAT(waiting_for(port), HasSubstr("Connection refused"));
  EXPECT_THAT(waiting_for(port), HasSubstr("narad serve --bootstrap"));
  // The command line gets the same words, and an exit that says so.
  const Ran ran = members(port);
  EXPECT_NE(ran.exit.code, 0) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr("waiting to hear from"));
  EXPECT_THAT(cluster.node(0).child().out(), HasSubstr("waiting to hear from"));
  // The second peer is named alone once the first one is there.
  cluster.node(1).launch();
  EXPECT_TRUE(soon([&] {
    const std::string why = waiting_for(port);
    return why.find("n2 (") != std::string::npos && why.find("n1 (") == std::string::npos;
  })) << waiting_for(port);
  cluster.node(2).launch();
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(cluster.node(i).await_ready(20s)) << cluster.why();
}

TEST(ClusterReasons, NoMajority_ARestartedNodeSaysThatItHasNoLeader) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  for (std::size_t i = 0; i < 3; ++i) cluster.node(i).kill9();
  cluster.node(0).launch();
  const std::uint16_t port = cluster.node(0).port();
  ASSERT_TRUE(says(port, "has had no leader for")) << waiting_for(port);
  EXPECT_THAT(waiting_for(port),
              HasSubstr("a majority of its voters must be up and reach each other"));
  cluster.node(1).launch();
  ASSERT_TRUE(cluster.node(0).await_ready(20s)) << waiting_for(port);
}

TEST(ClusterReasons, MemberIsDown_TheOthersListItAndGoOn) {
  ClusterOptions options;
  options.env["NARAD_TIMING_HEARTBEAT"] = "500ms";  // a tenth, as the next one
  options.env["NARAD_TIMING_DEAD_AFTER"] = "3s";
  Cluster cluster(std::move(options));
  ASSERT_TRUE(cluster.start()) << cluster.why();
  const auto leader = cluster.leader();
  ASSERT_TRUE(leader);
  const std::size_t down = (*leader + 1) % 3;
  Ran ran = members(cluster.node(*leader).port());
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_THAT(ran.out, ContainsRegex(cat(Cluster::id(*leader), " .*alive +leader")));
  EXPECT_THAT(ran.out, ContainsRegex(cat(Cluster::id(down), " .*alive +voter")));
  cluster.node(down).kill9();
  // A while of silence, and it is dead.
  EXPECT_TRUE(soon(
      [&] {
        ran = members(cluster.node(*leader).port());
        return ran.out.find(" dead ") != std::string::npos;
      },
      20s))
      << ran.out;
  EXPECT_THAT(ran.out, ContainsRegex(cat(Cluster::id(down), " .*dead +voter")));
  // A consumer of its partitions is told, and produce goes on.
  cluster.node(*leader).create_topic("orders", 3);
  EXPECT_EQ(Http(cluster.node(*leader).port()).post("/v1/topics/orders/produce?key=k", "x")->status,
            202);
  ASSERT_TRUE(cluster.node(down).start()) << cluster.node(down).why();
  EXPECT_TRUE(soon([&] {
    ran = members(cluster.node(*leader).port());
    return ran.out.find(" dead ") == std::string::npos;
  })) << ran.out;
}

TEST(ClusterReasons, NoSecret_TheNodeDoesNotStartAndSaysWhatToSet) {
  TempDir dir;
  BrokerOptions options;
  options.env["NARAD_NODE_ID"] = "n0";
  options.env["NARAD_CLUSTER_ADDR"] = "127.0.0.1:20001";
  options.env["NARAD_CLUSTER_PEERS"] = "n0@127.0.0.1:20001,n1@127.0.0.1:20002,n2@127.0.0.1:20003";
  options.env["NARAD_SECURITY_ENABLED"] = "true";
  Broker node(dir / "data", std::move(options));
  EXPECT_FALSE(node.start());
  EXPECT_EQ(node.child().wait(5s)->code, 1);
  EXPECT_THAT(node.why(), HasSubstr("NARAD_CLUSTER_SECRET"));
}

TEST(ClusterReasons, EmptiedDisk_TheNodeComesBackUnderItsOldName) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 3));
  cluster.node(2).kill9();
  ASSERT_EQ(run({"rm", "-rf", cluster.directory() + "/n2"}).exit.code, 0);
  ASSERT_TRUE(cluster.node(2).start()) << cluster.node(2).why();
  EXPECT_TRUE(knows_topic(cluster.node(2), "orders"));
  // It votes again once it has caught up.
  EXPECT_TRUE(soon([&] {
    const Ran ran = members(cluster.node(0).port());
    return ran.out.find("non-voter") == std::string::npos;
  }));
}

}  // namespace
}  // namespace narad::e2e
