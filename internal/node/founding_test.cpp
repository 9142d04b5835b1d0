// How whole nodes come to a cluster, with real identity files: founding cut short at any disk call,
// and directories of a cluster that are started as lone nodes.
#include <gtest/gtest.h>

#include <map>

#include "internal/node/data_dir.h"
#include "internal/node/node.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

Config config(const std::string& id, int nodes) {
  Config c;
  c.storage.data_dir = "/data";
  c.cluster.node_id = id;
  c.cluster.secret = "secret";
  c.cluster.addr = ":7943";
  for (int i = 1; i <= nodes; ++i) c.cluster.peers.push_back({cat("n", i), cat("n", i, ":7943")});
  return c;
}

// A node and what came of its start.
struct Running {
  Running(Env& env, Config config) : node(env, std::move(config), options()), tasks(env) {
    tasks.spawn("start", start(this));
  }
  static NodeOptions options() {
    NodeOptions o;
    o.serve_http = false;
    return o;
  }
  static Task<void> start(Running* r) {
    auto started = co_await r->node.start();
    r->outcome.emplace(std::move(started));
  }
  Node node;
  TaskGroup tasks;
  std::optional<Result<void>> outcome;
};

class World {
 public:
  explicit World(std::uint64_t seed) : sim(seed), net(sim) {
    for (int i = 1; i <= 3; ++i) {
      machines.push_back(std::make_unique<sim::Machine>(sim, net, i - 1, cat("n", i)));
    }
  }
  void boot(int i) {
    machine(i).boot(
        [i](Env& env) { return std::make_shared<Running>(env, config(cat("n", i), 3)); });
  }
  sim::Machine& machine(int i) { return *machines[static_cast<std::size_t>(i - 1)]; }
  bool ready(int i) {
    if (!machine(i).up()) return false;
    Running& r = machine(i).component<Running>();
    return r.outcome && *r.outcome && r.node.broker().readiness().ready &&
           r.node.broker().readiness().waiting_for.empty();
  }
  std::string cluster(int i) {
    return machine(i).component<Running>().node.broker().view()->cluster_id;
  }

  sim::Sim sim;
  sim::SimNet net;
  std::vector<std::unique_ptr<sim::Machine>> machines;
};

// Power cut at disk call `call` of node `victim`; everybody must come together afterwards.
// False if the node made fewer calls.
bool cut_while_founding(int victim, std::uint64_t call) {
  World w(call);
  bool cut = false;
  for (int i = 1; i <= 3; ++i) w.boot(i);
  w.machine(victim).set_on_down([&](sim::Machine::Kill) {
    cut = true;
    w.machine(victim).boot_after(1s);
  });
  w.machine(victim).kill_at_disk_call(call);
  const auto all_ready = [&] { return w.ready(1) && w.ready(2) && w.ready(3); };
  const bool formed = w.sim.run_until([&] { return all_ready(); }, 2min);
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
    auto node = std::make_unique<Node>(env, config("n1", 0), Running::options());
    const auto started = solo.run([&node](Env&) { return node->start(); });
    ASSERT_FALSE(started) << joined;
    EXPECT_EQ(started.error().code(), Errc::conflict);
    EXPECT_NE(started.error().text().find("cluster.peers names none"), std::string::npos);
  }
}

}  // namespace
}  // namespace narad::node
