// Orders about members and plans through whole nodes: whichever is asked, and one without peers.
#include <gtest/gtest.h>

#include "internal/node/cluster_for_test.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

template <class T>
using Kept = std::shared_ptr<std::optional<T>>;

template <class T>
Task<void> keep(Task<T> task, Kept<T> out) {
  out->emplace(co_await std::move(task));
}

// What `task` answers, which runs on that node.
template <class T>
T ask(sim::Sim& sim, Running& node, Task<T> task) {
  auto out = std::make_shared<std::optional<T>>();
  node.tasks.spawn("ask", keep(std::move(task), out));
  NARAD_ASSERT(sim.run_until([&] { return out->has_value(); }, 30s));
  return std::move(**out);
}

class Asked : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 1; i <= 3; ++i) c.boot(i);
    ASSERT_TRUE(c.sim.run_until([&] { return c.all_ready(); }, 60s));
  }
  template <class T>
  T on(int i, Task<T> task) {
    return ask(c.sim, c.running(i), std::move(task));
  }
  int leader() {
    const std::string& id = c.broker(1).cluster_info().leader;
    return id.back() - '0';
  }
  // One that does not lead.
  int other() { return leader() % 3 + 1; }
  void set_draining(int i, bool draining) {
    metastore::Command entry = metastore::SetDraining{cat("n", i), draining};
    const auto done = on(1, c.running(1).node.metastore().propose(std::move(entry)));
    ASSERT_TRUE(done && done.value().done());
  }
  double blocked(int at, int drains, const char* reason) {
    return c.running(at)
        .node.metrics()
        .gauge("narad_decommission_blocked", {cat("n", drains), reason})
        .value();
  }

  Cluster c{1};
};

TEST_F(Asked, DEC_17_DEC_18_EveryNode_JudgesAsTheLeaderDoes) {
  for (int i = 1; i <= 3; ++i) {
    const auto verdict = on(i, c.broker(i).drain_verdict("n3", false));
    ASSERT_TRUE(verdict) << verdict.error().text();
    EXPECT_TRUE(verdict.value().has(DrainRule::min_voters));
    const auto outcome = on(i, c.broker(i).decommission("n3", false));
    ASSERT_TRUE(outcome) << outcome.error().text();
    EXPECT_FALSE(outcome.value().accepted);
    EXPECT_FALSE(c.broker(i).view()->members.find("n3")->draining);
  }
}

TEST_F(Asked, Plans_AreMadeByTheLeaderForWhoeverAsks) {
  const int asked = other();
  metastore::TopicSpec spec;
  spec.name = "orders";
  spec.partitions = 6;
  spec.max_in_flight_per_partition = spec.max_acked_ahead_per_partition = 1;
  ASSERT_TRUE(on(asked, c.broker(asked).create_topic(std::move(spec))));
  for (const bool dry_run : {true, false}) {
    const auto outcome = on(asked, c.broker(asked).rebalance(dry_run));
    ASSERT_TRUE(outcome) << outcome.error().text();
    EXPECT_EQ(outcome.value().wanted, 0u) << "it was dealt out evenly";
  }
  const auto why = on(asked, c.broker(asked).explain({"orders", PartitionId(0)}));
  ASSERT_TRUE(why) << why.error().text();
  EXPECT_EQ(why.value().verdict, "at_home");
  EXPECT_EQ(why.value().members.size(), 3u);
}

TEST_F(Asked, OBS_7_G48_ADrainThatWaits_IsInTheMetricsOfTheLeaderUntilItIsCancelled) {
  const int draining = other();
  set_draining(draining, true);
  const int at = leader();
  const auto shown = [&] { return blocked(at, draining, "min_voters") == 1; };
  EXPECT_TRUE(c.sim.run_until(shown, 20s));
  EXPECT_EQ(blocked(draining, draining, "min_voters"), 0) << "only the leader counts";
  for (int i = 1; i <= 3; ++i) {
    const auto drains = on(i, c.broker(i).drains());
    ASSERT_EQ(drains.size(), 1u) << i;
    EXPECT_TRUE(drains[0].has(DrainRule::min_voters)) << i;
  }
  const auto cancelled = on(draining, c.broker(draining).cancel_decommission(cat("n", draining)));
  ASSERT_TRUE(cancelled) << cancelled.error().text();
  EXPECT_TRUE(c.sim.run_until([&] { return !shown(); }, 20s));
}

TEST_F(Asked, Quarantine_OfEveryNode_IsToldByWhicheverIsAsked) {
  const auto found = on(2, c.broker(2).quarantine({"n1", "n2", "n3", "n9"}, 1500ms));
  ASSERT_EQ(found.size(), 4u);
  for (const char* id : {"n1", "n2", "n3"}) {
    ASSERT_TRUE(found.at(id)) << found.at(id).error().text();
    EXPECT_TRUE(found.at(id).value().copies.empty());
  }
  EXPECT_FALSE(found.at("n9"));
}

TEST_F(Asked, SafeToStop_OneOfThreeWithNothingOnIt_IsWhicheverNodeIsAsked) {
  c.sim.run_for(7s);  // every node has said what its ingress WAL holds
  for (int i = 1; i <= 3; ++i) {
    const auto verdict = on(i, c.broker(i).safe_to_stop("n3"));
    ASSERT_TRUE(verdict) << verdict.error().text();
    EXPECT_TRUE(verdict.value().safe()) << verdict.value().reasons[0].detail;
  }
}

TEST(Alone, ANodeWithoutPeers_AnswersForItself) {
  sim::Sim sim(1);
  sim::SimNet net(sim);
  sim::Machine machine(sim, net, 0, "n1");
  machine.boot([](Env& env) {
    Config config = cluster_config("n1", 0);
    config.cluster.peers.clear();
    return std::make_shared<Running>(env, std::move(config));
  });
  Running& node = machine.component<Running>();
  ASSERT_TRUE(sim.run_until([&] { return node.outcome.has_value(); }, 30s));
  ASSERT_TRUE(*node.outcome) << node.outcome->error().text();
  api::Broker& broker = node.node.broker();
  EXPECT_TRUE(ask(sim, node, broker.drains()).empty());
  const auto outcome = ask(sim, node, broker.decommission("n1", false));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_FALSE(outcome.value().accepted);
  EXPECT_TRUE(ask(sim, node, broker.cancel_decommission("n1")));
  const auto stop = ask(sim, node, broker.safe_to_stop("n1"));
  ASSERT_TRUE(stop) << stop.error().text();
  ASSERT_EQ(stop.value().reasons.size(), 1u);
  EXPECT_EQ(stop.value().reasons[0].rule, StopRule::no_live_majority);
  const auto aside = ask(sim, node, broker.quarantine({"n1"}, 1500ms));
  EXPECT_TRUE(aside.at("n1"));
  EXPECT_EQ(ask(sim, node, broker.drain_verdict("n2", false)).error().code(), Errc::not_found);
  for (const bool dry_run : {true, false}) {
    const auto plan = ask(sim, node, broker.rebalance(dry_run));
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_EQ(plan.value(), RebalanceOutcome{});
  }
  EXPECT_EQ(ask(sim, node, broker.explain({"orders", PartitionId(0)})).error().code(),
            Errc::not_found);
}

}  // namespace
}  // namespace narad::node
