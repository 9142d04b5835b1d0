// Three real nodes on loopback: everything through any of them, and nothing lost when they die.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/json.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "cmd/narad/e2e/broker.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Ports that nobody listens on just now.
std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::vector<int> sockets;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0) {
      ports.push_back(ntohs(at.sin_port));
    }
    sockets.push_back(fd);
  }
  for (int fd : sockets) ::close(fd);
  return ports;
}

class Cluster {
 public:
  explicit Cluster(std::size_t nodes) {
    const auto ports = free_ports(nodes);
    std::string peers;
    for (std::size_t i = 0; i < nodes; ++i) {
      peers += cat(i == 0 ? "" : ",", "n", i, "@127.0.0.1:", ports[i]);
    }
    for (std::size_t i = 0; i < nodes; ++i) {
      BrokerOptions options;
      options.env["NARAD_NODE_ID"] = cat("n", i);
      options.env["NARAD_CLUSTER_ADDR"] = cat("127.0.0.1:", ports[i]);
      options.env["NARAD_CLUSTER_PEERS"] = peers;
      options.env["NARAD_CLUSTER_SECRET"] = "a secret of this test";
      options.env["NARAD_SECURITY_ENABLED"] = "false";
      nodes_.push_back(std::make_unique<Broker>(dir_ / cat("n", i), std::move(options)));
    }
  }
  // True once all of them are ready.
  bool start() {
    for (auto& node : nodes_) node->launch();
    for (auto& node : nodes_) {
      if (!node->await_ready()) return false;
    }
    return true;
  }
  std::string why() const {
    std::string text;
    for (const auto& node : nodes_) text += node->why();
    return text;
  }
  Broker& node(std::size_t i) { return *nodes_[i]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  TempDir dir_;
  std::vector<std::unique_ptr<Broker>> nodes_;
};

// Asks until `holds` says yes: what one node did becomes visible at another a moment later.
template <class F>
bool soon(F holds, Duration limit = 20s) {
  const auto until = Clock::now() + limit;
  while (Clock::now() < until) {
    if (holds()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

bool knows_topic(Broker& node, const std::string& topic) {
  auto answer = Http(node.port()).get("/v1/topics/" + topic);
  return answer && answer->status == 200;
}

// Consumes and acks through the nodes in turn until `payloads` is empty; false after `limit`.
bool consume_all(Cluster& cluster, const std::string& topic, std::set<std::string> payloads,
                 Duration limit) {
  const auto until = Clock::now() + limit;
  std::size_t turn = 0;
  std::vector<std::unique_ptr<Http>> clients;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    clients.push_back(std::make_unique<Http>(cluster.node(i).port()));
  }
  while (!payloads.empty() && Clock::now() < until) {
    const std::size_t i = turn++ % cluster.size();
    if (!cluster.node(i).child().running()) continue;
    Http& http = *clients[i];
    auto got = http.get(cat("/v1/topics/", topic, "/consume?wait=200ms"));
    if (!got || got->status != 200) continue;
    const json::value body = json::parse(got->body);
    payloads.erase(std::string(body.at("payload").as_string()));
    const std::string handle(body.at("receipt_handle").as_string());
    // Through another node than the one that gave it.
    const std::size_t other = turn % cluster.size();
    if (!cluster.node(other).child().running()) continue;
    auto acked =
        clients[other]->post(cat("/v1/topics/", topic, "/ack?receipt_handle=", url_encode(handle)));
    EXPECT_TRUE(!acked || acked->status == 204 || acked->status >= 500 || acked->status == 410)
        << acked->status << " " << acked->body;
  }
  return payloads.empty();
}

TEST(Cluster, AnyNode_TakesAnyRequest) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.node(1).create_topic("orders", 6);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(soon([&] { return knows_topic(cluster.node(i), "orders"); }));
  }
  std::set<std::string> sent;
  for (int n = 0; n < 60; ++n) {
    Http http(cluster.node(static_cast<std::size_t>(n) % 3).port());
    const std::string payload = cat("message ", n);
    auto answer = http.post(cat("/v1/topics/orders/produce?key=k", n), payload);
    ASSERT_TRUE(answer && answer->status == 202);
    sent.insert(payload);
  }
  EXPECT_TRUE(consume_all(cluster, "orders", sent, 30s));
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

TEST(Cluster, LongPoll_IsWokenByAMessageThatLandsOnAnotherNode) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.node(0).create_topic("orders", 1);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(soon([&] { return knows_topic(cluster.node(i), "orders"); }));
  }
  // The partition must have been used, or nobody is asked about it.
  ASSERT_EQ(Http(cluster.node(0).port()).post("/v1/topics/orders/produce?key=a", "first")->status,
            202);
  ASSERT_TRUE(consume_all(cluster, "orders", {"first"}, 20s));
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
    EXPECT_LT(Clock::now() - begin, 4s) << "through n" << i;
    const json::value body = json::parse(got->body);
    EXPECT_EQ(std::string(body.at("payload").as_string()), cat("for ", i));
    auto acked = Http(cluster.node(i).port())
                     .post("/v1/topics/orders/ack?receipt_handle=" +
                           url_encode(std::string(body.at("receipt_handle").as_string())));
    ASSERT_TRUE(acked);
    EXPECT_EQ(acked->status, 204);
  }
}

TEST(Cluster, NodesKilledInTurnUnderLoad_LosesNothing) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.node(0).create_topic("orders", 6);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(soon([&] { return knows_topic(cluster.node(i), "orders"); }));
  }
  std::mutex mutex;
  std::set<std::string> accepted;
  std::atomic<bool> stop{false};
  std::atomic<int> refused{0};
  std::vector<std::thread> producers;
  for (std::size_t i = 0; i < 3; ++i) {
    producers.emplace_back([&, i] {
      for (int n = 0; !stop; ++n) {
        Http http(cluster.node(i).port());
        for (; !stop; ++n) {
          const std::string payload = cat("n", i, " message ", n);
          auto answer = http.post(cat("/v1/topics/orders/produce?key=k", n % 50), payload);
          if (!answer) break;  // killed: the outcome is unknown
          if (answer->status != 202) {
            ++refused;
            break;
          }
          const std::lock_guard lock(mutex);
          accepted.insert(payload);
        }
        std::this_thread::sleep_for(20ms);
      }
    });
  }
  const auto accepted_count = [&] {
    const std::lock_guard lock(mutex);
    return accepted.size();
  };
  for (std::size_t round = 0; round < 6; ++round) {
    const std::size_t goal = accepted_count() + 200;
    ASSERT_TRUE(soon([&] { return accepted_count() >= goal; }, 30s)) << "round " << round;
    Broker& victim = cluster.node(round % 3);
    victim.kill9();
    // The two others go on without it.
    const std::size_t further = accepted_count() + 100;
    EXPECT_TRUE(soon([&] { return accepted_count() >= further; }, 30s)) << "round " << round;
    ASSERT_TRUE(victim.start()) << victim.why();
  }
  stop = true;
  for (auto& thread : producers) thread.join();
  EXPECT_TRUE(consume_all(cluster, "orders", accepted, 120s)) << "something accepted is lost";
  std::printf("accepted %zu, refused %d\n", accepted.size(), refused.load());
}

TEST(Cluster, LeaderTerminated_AnotherLeadsAtOnce) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  for (std::size_t i = 0; i < 2; ++i) {
    auto ended = cluster.node(i).terminate();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->code, 0);
    const auto begin = Clock::now();
    Http http(cluster.node(2).port());
    const std::string topic = cat("t", i);
    // A write of metadata needs a leader.
    ASSERT_TRUE(soon([&] {
      auto answer = http.post("/v1/topics", cat("{\"name\":\"", topic, "\"}"));
      return answer && (answer->status == 201 || answer->status == 409);
    }));
    std::printf(
        "metadata written %lld ms after the end of n%zu\n",
        static_cast<long long>(
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count()),
        i);
    ASSERT_TRUE(cluster.node(i).start()) << cluster.node(i).why();
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
  EXPECT_TRUE(consume_all(cluster, "orders", sent, 60s));
}

}  // namespace
}  // namespace narad::e2e
