// Calls between nodes over the simulated network, nothing going wrong but what the test says.

#include "internal/peer/test_cluster.h"

namespace narad::peer {
namespace {

using namespace testing;

TEST(Peers, Call_OnEveryLane_IsAnsweredAndNamesTheSender) {
  TestCluster c(2);
  c.boot_all();
  for (Lane lane : {Lane::raft, Lane::control, Lane::data, Lane::bulk}) {
    auto r = c.call(0, 1, cat("/peer/v1/", to_string(lane), "/echo"), lane, "hello");
    ASSERT_TRUE(r) << r.error().text();
    EXPECT_EQ(r.value().status, 200);
    EXPECT_EQ(r.value().body, "hello");
    EXPECT_EQ(r.value().headers.get("x-node"), "n1");
    EXPECT_EQ(r.value().headers.count("content-length"), 0u);
    EXPECT_EQ(c.setup(1).last_sender->node_id, "n0");
    EXPECT_EQ(c.setup(1).last_sender->replica, ReplicaId(100));
    EXPECT_EQ(c.setup(1).last_sender->cluster_id, kCluster);
  }
  c.stop_all();
}

}  // namespace
}  // namespace narad::peer
