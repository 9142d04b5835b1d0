// How whole nodes come to a cluster, with real identity files: founding cut short at any disk call,
// and directories of a cluster that are started as lone nodes.
#include <gtest/gtest.h>

#include "internal/node/cluster_for_test.h"
#include "internal/node/data_dir.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

// Power cut at disk call `call` of node `victim`; everybody must come together afterwards.
// False if the node made fewer calls.
bool cut_while_founding(int victim, std::uint64_t call) {
  Cluster w(call);
  bool cut = false;
  for (int i = 1; i <= 3; ++i) w.boot(i);
  w.machine(victim).set_on_down([&](sim::Machine::Kill) {
    cut = true;
    w.machine(victim).boot_after(1s);
  });
  w.machine(victim).kill_at_disk_call(call);
  const bool formed = w.sim.run_until([&] { return w.all_ready(); }, 2min);
  EXPECT_TRUE(formed) << "n" << victim << " cut at call " << call;
  if (!formed) return false;
  EXPECT_EQ(w.cluster(1), w.cluster(2)) << call;
  EXPECT_EQ(w.cluster(1), w.cluster(3)) << call;
  w.machine(victim).set_on_down({});
  return cut;
}

#ifdef NDEBUG
constexpr std::uint64_t kStep = 1;
#else
constexpr std::uint64_t kStep = 11;
#endif

TEST(Founding, CutAtAnyDiskCallOfTheFounder_EndsInOneCluster) {
  std::uint64_t call = 1;
  while (call < 200 && cut_while_founding(1, call)) call += kStep;
  EXPECT_GT(call, 30u);
}

TEST(Founding, CutAtAnyDiskCallOfAFollower_EndsInOneCluster) {
  std::uint64_t call = 2;
  while (call < 200 && cut_while_founding(2, call)) call += kStep;
  EXPECT_GT(call, 30u);
}

// A directory that belongs to a cluster of others, started without cluster.peers: it must not begin
// a second cluster under the same id, with or without what the metastore held.
TEST(Founding, DirectoryOfAClusterStartedAlone_IsRefused) {
  for (bool joined : {false, true}) {
    sim::Solo solo;
    DataDirOptions where;
    where.data_dir = "/data";
    where.node_id = "n1";
    Adoption adoption;
    adoption.cluster_id = 0xc1;
    adoption.joined = joined;
    if (!joined) {
      adoption.founding = {{raft::ReplicaId(7), "n1", raft::MemberRole::voter},
                           {raft::ReplicaId(8), "n2", raft::MemberRole::learner}};
    }
    Env& env = solo.env();
    {
      auto dir = DataDir::open(env.fs, env.random, UnixMillis(1), where);
      ASSERT_TRUE(dir);
      ASSERT_TRUE(DataDir::adopt_cluster(env.fs, "/data", dir.value()->identity(), adoption));
    }
    auto node = std::make_unique<Node>(env, cluster_config("n1", 0), Running::options());
    const auto started = solo.run([&node](Env&) { return node->start(); });
    ASSERT_FALSE(started) << joined;
    EXPECT_EQ(started.error().code(), Errc::conflict);
    EXPECT_NE(started.error().text().find("cluster.peers names none"), std::string::npos);
  }
}

}  // namespace
}  // namespace narad::node
