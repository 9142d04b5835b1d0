// Three real nodes on loopback: everything through any of them, and nothing lost when they die.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>
#include <set>
#include <thread>

#include "cmd/narad/e2e/cluster.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

TEST(Cluster, AnyNode_TakesAnyRequest) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 6);
  std::set<std::string> sent;
  for (int n = 0; n < 60; ++n) {
    Http http(cluster.node(static_cast<std::size_t>(n) % 3).port());
    const std::string payload = cat("message ", n);
    auto answer = http.post(cat("/v1/topics/orders/produce?key=k", n), payload);
    ASSERT_TRUE(answer && answer->status == 202);
    sent.insert(payload);
  }
  EXPECT_TRUE(consume_all(cluster, "orders", sent, 30s).empty());
  // Statistics are merged from all owners, who are all three.
  auto info = Http(cluster.node(2).port()).get("/v1/topics/orders");
  ASSERT_TRUE(info && info->status == 200);
  std::set<std::string> owners;
  std::int64_t records = 0;
  const json::value described = json::parse(info->body);
  for (const auto& stat : described.at("partition_stats").as_array()) {
    owners.insert(std::string(stat.at("owner_node").as_string()));
    records += stat.at("high_watermark").to_number<std::int64_t>();
  }
  EXPECT_EQ(owners, (std::set<std::string>{"n0", "n1", "n2"}));
  EXPECT_EQ(records, 60);
}

TEST(Cluster, Trap54_LongPollIsWokenByAMessageThatLandsOnAnotherNode) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 1);
  // The first one comes to a partition that was never used.
  for (std::size_t i = 0; i < 3; ++i) {
    std::atomic<bool> asked{false};
    std::optional<Answer> got;
    const auto begin = Clock::now();
    std::thread poll([&] {
      Http http(cluster.node(i).port());
      asked = true;
      got = http.get("/v1/topics/orders/consume?wait=10s");
    });
    while (!asked) std::this_thread::yield();
    std::this_thread::sleep_for(300ms);  // the poll is waiting by then; if not, it finds it at once
    ASSERT_EQ(Http(cluster.node((i + 1) % 3).port())
                  .post("/v1/topics/orders/produce?key=a", cat("for ", i))
                  ->status,
              202);
    poll.join();
    ASSERT_TRUE(got);
    ASSERT_EQ(got->status, 200) << "through n" << i;
    EXPECT_LT(Clock::now() - begin, 2s) << "through n" << i;
    const json::value body = json::parse(got->body);
    EXPECT_EQ(std::string(body.at("payload").as_string()), cat("for ", i));
    auto acked = Http(cluster.node(i).port())
                     .post("/v1/topics/orders/ack?receipt_handle=" +
                           url_encode(std::string(body.at("receipt_handle").as_string())));
    ASSERT_TRUE(acked);
    EXPECT_EQ(acked->status, 204);
  }
}

TEST(Cluster, Trap53_ChangedCap_HoldsAtEveryOwner) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 3);
  for (int p = 0; p < 3; ++p) {
    for (int n = 0; n < 2; ++n) {
      ASSERT_EQ(Http(cluster.node(0).port())
                    .post(cat("/v1/topics/orders/produce?partition=", p), cat("p", p, " n", n))
                    ->status,
                202);
    }
  }
  ASSERT_TRUE(await_records(cluster.node(0).port(), "orders", 6, 20s));
  auto changed = Http(cluster.node(1).port())
                     .request("PATCH", "/v1/topics/orders", "{\"max_in_flight_per_partition\":1}");
  ASSERT_TRUE(changed);
  ASSERT_EQ(changed->status, 200) << changed->body;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(soon([&] {
      auto answer = Http(cluster.node(i).port()).get("/v1/topics/orders");
      return answer && answer->body.find("\"max_in_flight_per_partition\":1,") != std::string::npos;
    }));
  }
  // Each partition has another owner, and all are read through one node.
  for (int p = 0; p < 3; ++p) {
    Http http(cluster.node(2).port());
    const std::string read = cat("/v1/topics/orders/consume?partition=", p);
    EXPECT_EQ(http.get(read)->status, 200) << "partition " << p;
    EXPECT_EQ(http.get(read)->status, 204) << "partition " << p << ": a second lease";
  }
}

TEST(Cluster, AllNodesRestarted_RememberEverything) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.node(0).create_topic("orders", 3);
  std::set<std::string> sent;
  Http http(cluster.node(0).port());
  for (int n = 0; n < 30; ++n) {
    const std::string payload = cat("message ", n);
    ASSERT_EQ(http.post(cat("/v1/topics/orders/produce?key=k", n), payload)->status, 202);
    sent.insert(payload);
  }
  for (std::size_t i = 0; i < 3; ++i) cluster.node(i).kill9();
  ASSERT_TRUE(cluster.start()) << cluster.why();
  EXPECT_TRUE(consume_all(cluster, "orders", sent, 60s).empty());
}

}  // namespace
}  // namespace narad::e2e
