// What a node knows of topics that were made through another one.
#include <gtest/gtest.h>

#include "internal/node/cluster_for_test.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

Task<void> create(Running* r, std::string name, std::shared_ptr<bool> done) {
  metastore::TopicSpec spec;
  spec.name = std::move(name);
  spec.partitions = 1;
  spec.visibility_timeout_ms = 30'000;
  spec.max_in_flight_per_partition = spec.max_acked_ahead_per_partition = 100;
  auto made = co_await r->node.broker().create_topic(std::move(spec));
  EXPECT_TRUE(made) << made.error().text();
  *done = true;
}

Task<void> catch_up(Running* r, std::shared_ptr<int> done) {
  co_await r->node.broker().catch_up();
  ++*done;
}

void form(Cluster& c) {
  for (int i = 1; i <= 3; ++i) c.boot(i);
  ASSERT_TRUE(c.sim.run_until([&] { return c.all_ready(); }, 2min));
}

TEST(CatchUp, TopicThatAnotherNodeHasAnswered_IsKnownAfterIt) {
  Cluster c(1);
  ASSERT_NO_FATAL_FAILURE(form(c));
  int behind = 0;  // nodes that had not heard of a topic when it was answered
  for (int n = 0; n < 12; ++n) {
    const std::string name = cat("t", n);
    const int maker = 1 + n % 3;
    auto made = std::make_shared<bool>(false);
    c.running(maker).tasks.spawn("create", create(&c.running(maker), name, made));
    ASSERT_TRUE(c.sim.run_until([&] { return *made; }, 10s));
    for (int i = 1; i <= 3; ++i) {
      if (c.broker(i).view()->topics.contains(name)) continue;
      ++behind;
      auto done = std::make_shared<int>(0);
      for (int k = 0; k < 5; ++k) {
        c.running(i).tasks.spawn("catch up", catch_up(&c.running(i), done));
      }
      ASSERT_TRUE(c.sim.run_until([&] { return *done == 5; }, 10s));
      EXPECT_TRUE(c.broker(i).view()->topics.contains(name)) << name << " on n" << i;
    }
  }
  EXPECT_GT(behind, 0) << "a test of nothing";
}

TEST(CatchUp, WithoutAMajority_EndsWithinASecond) {
  Cluster c(2);
  ASSERT_NO_FATAL_FAILURE(form(c));
  c.machine(2).kill(sim::Machine::Kill::power_cut);
  c.machine(3).kill(sim::Machine::Kill::power_cut);
  for (const Nanos later : {Nanos(0), Nanos(20s)}) {
    c.sim.run_for(later);
    auto done = std::make_shared<int>(0);
    c.running(1).tasks.spawn("catch up", catch_up(&c.running(1), done));
    EXPECT_TRUE(c.sim.run_until([&] { return *done == 1; }, 1s)) << format_duration(later);
  }
}

}  // namespace
}  // namespace narad::node
