// Three real nodes that die: how soon another leads, what is refused meanwhile (nothing, while one
// node lives), and that nothing which was answered 202 is lost. NARAD_KILLS=100 kills more often.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include "cmd/narad/e2e/cluster.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

using namespace std::chrono_literals;

std::size_t kills_or(std::size_t usual) {
  const char* text = std::getenv("NARAD_KILLS");
  return text == nullptr ? usual : std::max<std::size_t>(1, std::strtoul(text, nullptr, 10));
}

Duration since(Clock::time_point begin) {
  return std::chrono::duration_cast<Duration>(Clock::now() - begin);
}

// The value below which `share` of them lie, and the largest for share 1.
Duration percentile(std::vector<Duration> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size()) + 0.999);
  return values.at(std::clamp<std::size_t>(rank, 1, values.size()) - 1);
}

TEST(ClusterFaults, LeaderKilled_MetadataIsWrittenAgainWithinTwoSeconds) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  std::vector<Duration> gaps, starts;
  for (std::size_t kill = 0; kill < kills_or(20); ++kill) {
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    Duration gap{0};
    {
      Prober prober(cluster.node((*leader + 1 + kill % 2) % 3).port());
      const auto begin = Clock::now();
      cluster.node(*leader).kill9();
      gap = prober.longest_gap(begin);
    }
    gaps.push_back(gap);
    const auto begin = Clock::now();
    cluster.node(*leader).launch();
    ASSERT_TRUE(cluster.node(*leader).await_ready(20s)) << cluster.node(*leader).why();
    starts.push_back(since(begin));
  }
  std::printf(
      "no metadata writes after a kill: p50 %lld ms, p95 %lld ms, longest %lld ms; ready again "
      "after at most %lld ms\n",
      static_cast<long long>(percentile(gaps, 0.5).count()),
      static_cast<long long>(percentile(gaps, 0.95).count()),
      static_cast<long long>(percentile(gaps, 1).count()),
      static_cast<long long>(percentile(starts, 1).count()));
  EXPECT_LE(percentile(gaps, 0.95), 2s);
  EXPECT_LE(percentile(starts, 1), 20s);
}

TEST(ClusterFaults, LeaderTerminated_MetadataIsWrittenAgainWithinHalfASecond) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  std::vector<Duration> gaps;
  for (std::size_t stop = 0; stop < 6; ++stop) {
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    Prober prober(cluster.node((*leader + 1 + stop % 2) % 3).port());
    const auto begin = Clock::now();
    const auto ended = cluster.node(*leader).terminate();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->code, 0);
    gaps.push_back(prober.longest_gap(begin, since(begin) + 1s));
    ASSERT_TRUE(cluster.node(*leader).start()) << cluster.node(*leader).why();
  }
  std::printf("no metadata writes after a SIGTERM: p50 %lld ms, longest %lld ms\n",
              static_cast<long long>(percentile(gaps, 0.5).count()),
              static_cast<long long>(percentile(gaps, 1).count()));
  EXPECT_LE(percentile(gaps, 1), 500ms);
}

TEST(ClusterFaults, NodesKilledInTurnUnderLoad_LosesNothing) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 6));
  Producers producers(cluster, "orders");
  for (std::size_t round = 0; round < 3; ++round) {
    const std::size_t goal = producers.accepted() + 200;
    ASSERT_TRUE(soon([&] { return producers.accepted() >= goal; }, 30s)) << "round " << round;
    Broker& victim = cluster.node(round % 3);
    victim.kill9();
    // The two others go on without it.
    const std::size_t further = producers.accepted() + 100;
    EXPECT_TRUE(soon([&] { return producers.accepted() >= further; }, 30s)) << "round " << round;
    ASSERT_TRUE(victim.start()) << victim.why();
  }
  producers.stop();
  const auto lost = consume_all(cluster, "orders", producers.accepted_payloads(), 120s);
  EXPECT_TRUE(lost.empty()) << lost.size() << " of " << producers.accepted() << " lost, first "
                            << *lost.begin();
}

TEST(ClusterFaults, TwoOfThreeKilled_TheLastOneTakesEverythingAndAllIsDelivered) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 6));
  const auto leader = cluster.leader();
  ASSERT_TRUE(leader);
  const std::size_t last = (*leader + 1) % 3, other = (*leader + 2) % 3;
  Http http(cluster.node(last).port());
  std::set<std::string> sent;
  const auto send = [&](const std::string& payload) {
    auto answer = http.post(cat("/v1/topics/orders/produce?key=k", sent.size() % 50), payload);
    ASSERT_TRUE(answer) << payload;
    ASSERT_EQ(answer->status, 202) << payload << ": " << answer->body;
    sent.insert(payload);
  };
  for (int n = 0; n < 50; ++n) ASSERT_NO_FATAL_FAILURE(send(cat("before ", n)));
  cluster.node(*leader).kill9();
  for (int n = 0; n < 50; ++n) ASSERT_NO_FATAL_FAILURE(send(cat("with two ", n)));
  cluster.node(other).kill9();
  const auto alone = Clock::now();
  for (int n = 0; n < 500 || since(alone) < 5s; ++n) {
    ASSERT_NO_FATAL_FAILURE(send(cat("alone ", n)));
    std::this_thread::sleep_for(1ms);
  }
  // It cannot write metadata, and says why.
  auto refused = http.post("/v1/topics", R"({"name":"not-now"})");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503) << refused->body;
  const auto begin = Clock::now();
  cluster.node(*leader).launch();
  cluster.node(other).launch();
  ASSERT_TRUE(cluster.node(*leader).await_ready(20s)) << cluster.node(*leader).why();
  ASSERT_TRUE(cluster.node(other).await_ready(20s)) << cluster.node(other).why();
  EXPECT_LE(since(begin), 20s);
  const auto lost = consume_all(cluster, "orders", sent, 60s);
  EXPECT_TRUE(lost.empty()) << lost.size() << " of " << sent.size() << " lost, first "
                            << *lost.begin();
}

TEST(ClusterFaults, RestartStormUnderLoad_LosesNothing) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 6));
  const auto seed = static_cast<unsigned>(std::random_device()());
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  Producers producers(cluster, "orders");
  // Nobody is waited for: nodes die while they start, and while others do.
  for (std::size_t kill = 0; kill < kills_or(24); ++kill) {
    Broker& victim = cluster.node(random() % 3);
    if (random() % 4 == 0) {
      ASSERT_TRUE(victim.terminate(20s)) << "does not end on SIGTERM: " << victim.child().out();
    } else {
      victim.kill9();
    }
    victim.launch();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 700));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(soon(
        [&] {
          return waiting_for(cluster.node(i).port()).empty() &&
                 knows_topic(cluster.node(i), "orders");
        },
        20s))
        << waiting_for(cluster.node(i).port()) << cluster.node(i).child().out();
  }
  const std::size_t goal = producers.accepted() + 100;
  EXPECT_TRUE(soon([&] { return producers.accepted() >= goal; }, 30s));
  producers.stop();
  const auto lost = consume_all(cluster, "orders", producers.accepted_payloads(), 120s);
  EXPECT_TRUE(lost.empty()) << lost.size() << " of " << producers.accepted() << " lost, first "
                            << *lost.begin();
}

}  // namespace
}  // namespace narad::e2e
