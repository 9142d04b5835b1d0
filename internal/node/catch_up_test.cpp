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

Task<void> leader_read(Running* r, std::shared_ptr<std::optional<bool>> reached) {
  auto index = co_await r->node.metastore().barrier(5s);
  *reached = index.has_value();
}

// Whether node i could read as the leader does; its view is then at least that.
bool leader_read(Cluster& c, int i) {
  auto reached = std::make_shared<std::optional<bool>>();
  c.running(i).tasks.spawn("leader read", leader_read(&c.running(i), reached));
  EXPECT_TRUE(c.sim.run_until([&] { return reached->has_value(); }, 10s));
  return reached->value_or(false);
}

// The row of a partition is read behind an index that only who leads a majority names.
TEST(LeaderRead, FLP_7_LeaderThatIsCutOff_GivesNoneAndTheOthersReadWhatIsTrue) {
  Cluster c(3);
  ASSERT_NO_FATAL_FAILURE(form(c));
  const int old_leader = c.broker(1).cluster_info().leader.back() - '0';
  const int maker = old_leader % 3 + 1, reader = maker % 3 + 1;
  ASSERT_TRUE(leader_read(c, old_leader));
  c.net.partition({old_leader - 1});
  ASSERT_TRUE(c.running(old_leader).node.metastore().caught_up()) << "it knows nothing of it yet";
  EXPECT_FALSE(leader_read(c, old_leader));

  ASSERT_TRUE(c.sim.run_until([&] { return leader_read(c, maker); }, 1min));
  auto made = std::make_shared<bool>(false);
  c.running(maker).tasks.spawn("create", create(&c.running(maker), "orders", made));
  ASSERT_TRUE(c.sim.run_until([&] { return *made; }, 30s));
  const auto row_at = [&](int i) {
    return c.broker(i).view()->assignment("orders", PartitionId(0));
  };
  ASSERT_TRUE(leader_read(c, reader));
  EXPECT_NE(row_at(reader), nullptr);
  EXPECT_FALSE(leader_read(c, old_leader));
  EXPECT_EQ(row_at(old_leader), nullptr) << "what it has is not what is true";

  c.net.heal();
  ASSERT_TRUE(c.sim.run_until([&] { return leader_read(c, old_leader); }, 1min));
  EXPECT_NE(row_at(old_leader), nullptr);
}

}  // namespace
}  // namespace narad::node
