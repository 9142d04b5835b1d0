// Three real nodes, each in a network namespace of its own, while the network between them fails:
// delays, losses, one-way cuts, resets. Nothing that was answered 202 is lost, and once the faults
// are gone everything goes on by itself. Skipped where namespaces cannot be made.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "cmd/narad/e2e/cluster.h"
#include "cmd/narad/e2e/network.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

using namespace std::chrono_literals;

// Nodes of a Network; their clients are in the test's namespace, and no fault touches those.
class Spread {
 public:
  explicit Spread(bool through_relay)
      : network_(3),
        cluster_(ClusterOptions{.network = &network_, .through_relay = through_relay}) {}
  bool start() { return cluster_.start(); }
  std::string why() const { return cluster_.why(); }
  Network& network() { return network_; }
  std::unique_ptr<Http> client(std::size_t i) {
    const Broker& node = cluster_.node(i);
    auto http = std::make_unique<Http>(node.port(), node.host());
    http->set_limit(12);
    return http;
  }
  // Sends through each node in turn; what was answered 202 is expected back.
  void send(int count, const std::string& label) {
    for (int n = 0; n < count; ++n) {
      const std::string payload = cat(label, " ", n);
      auto answer = client(static_cast<std::size_t>(n) % 3)
                        ->post(cat("/v1/topics/orders/produce?key=k", n), payload);
      ASSERT_TRUE(answer) << payload;
      ASSERT_EQ(answer->status, 202) << payload << ": " << answer->body;
      expected_.insert(payload);
    }
  }
  // A write of metadata through any node.
  bool metadata_is_written(Duration limit) {
    std::size_t turn = 0;
    return soon(
        [&] {
          auto http = client(turn % 3);
          http->set_limit(3);
          auto answer = http->request("PATCH", "/v1/topics/orders",
                                      cat("{\"retention_ms\":", 86'400'000 + turn, "}"));
          ++turn;
          return answer && answer->status == 200;
        },
        limit);
  }
  // Everything that is expected, consumed and acked through the nodes in turn.
  void expect_all(Duration limit) {
    const auto until = Clock::now() + limit;
    for (std::size_t turn = 0; !expected_.empty() && Clock::now() < until; ++turn) {
      auto got = client(turn % 3)->get("/v1/topics/orders/consume?wait=300ms&encoding=base64");
      if (!got || got->status != 200) continue;
      const auto field = [&](std::string name) {
        name = cat("\"", name, "\":\"");
        const std::size_t at = got->body.find(name) + name.size();
        return got->body.substr(at, got->body.find('"', at) - at);
      };
      auto bytes = parse_base64(field("payload"));
      ASSERT_TRUE(bytes);
      expected_.erase(to_text(*bytes));
      (void)client((turn + 1) % 3)
          ->post("/v1/topics/orders/ack?receipt_handle=" + url_encode(field("receipt_handle")));
    }
    EXPECT_TRUE(expected_.empty())
        << expected_.size() << " are missing, first " << *expected_.begin();
  }
  // As nodes other than `but` say.
  std::optional<std::size_t> leader(std::optional<std::size_t> but = {}) {
    std::optional<std::size_t> found;
    soon([&] {
      for (std::size_t i = 0; i < 3 && !found; ++i) {
        if (i == but) continue;
        auto answer = client(i)->get("/v1/cluster/members");
        for (std::size_t k = 0; answer && k < 3; ++k) {
          if (answer->body.find(cat("\"leader\":\"", Cluster::id(k), "\"")) != std::string::npos) {
            found = k;
          }
        }
      }
      return found.has_value();
    });
    return found;
  }
  void create_topic() {
    auto created = client(0)->post(
        "/v1/topics", R"({"name":"orders","partitions":6,"visibility_timeout_ms":5000})");
    ASSERT_TRUE(created);
    ASSERT_EQ(created->status, 201) << created->body;
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(soon([&] {
        auto answer = client(i)->get("/v1/topics/orders");
        return answer && answer->status == 200;
      }));
    }
  }

 private:
  Network network_;
  Cluster cluster_;
  std::set<std::string> expected_;
};

// On a thread of its own, which is where the test's namespace is.
void in_a_network(bool through_relay, const std::function<void(Spread&)>& body) {
  if (const std::string why = no_networks(); !why.empty()) GTEST_SKIP() << why;
  std::thread([&] {
    try {
      Spread spread(through_relay);
      body(spread);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }).join();
}

TEST(ClusterNetwork, LeaderCutOffOneWay_LeadershipMovesAndNothingIsLost) {
  in_a_network(false, [](Spread& s) {
    ASSERT_TRUE(s.start()) << s.why();
    ASSERT_NO_FATAL_FAILURE(s.create_topic());
    const auto leader = s.leader();
    ASSERT_TRUE(leader);
    // It speaks, and hears nobody.
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != *leader) s.network().cut(i, *leader);
    }
    const auto begin = Clock::now();
    ASSERT_NO_FATAL_FAILURE(s.send(60, "one way"));
    EXPECT_TRUE(s.metadata_is_written(20s));
    std::printf(
        "metadata written again %lld ms after the cut\n",
        static_cast<long long>(
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count()));
    EXPECT_NE(s.leader(leader), leader);
    s.network().heal(*leader);
    ASSERT_NO_FATAL_FAILURE(s.send(30, "healed"));
    s.expect_all(60s);
    EXPECT_TRUE(s.metadata_is_written(20s));
  });
}

TEST(ClusterNetwork, LossAndResets_SlowThingsDownAndLoseNothing) {
  in_a_network(false, [](Spread& s) {
    ASSERT_TRUE(s.start()) << s.why();
    ASSERT_NO_FATAL_FAILURE(s.create_topic());
    for (std::size_t i = 0; i < 3; ++i) s.network().lose(i, 10);
    ASSERT_NO_FATAL_FAILURE(s.send(90, "a tenth lost"));
    EXPECT_TRUE(s.metadata_is_written(30s));
    for (std::size_t i = 0; i < 3; ++i) s.network().heal(i);
    for (int round = 0; round < 4; ++round) {
      const auto node = static_cast<std::size_t>(round) % 3;
      s.network().reset(node);
      ASSERT_NO_FATAL_FAILURE(s.send(30, cat("reset ", round)));
      s.network().heal(node);
      ASSERT_NO_FATAL_FAILURE(s.send(15, cat("after reset ", round)));
    }
    s.expect_all(60s);
    EXPECT_TRUE(s.metadata_is_written(20s));
  });
}

TEST(ClusterNetwork, DelayAndJitter_SlowThingsDownAndLoseNothing) {
  in_a_network(true, [](Spread& s) {
    DelayingRelay relay(3, Cluster::kPlane, 20ms, 20ms);
    ASSERT_TRUE(s.start()) << s.why();
    ASSERT_NO_FATAL_FAILURE(s.create_topic());
    ASSERT_NO_FATAL_FAILURE(s.send(60, "20 ms"));
    EXPECT_TRUE(s.metadata_is_written(20s));
    relay.set(150ms, 100ms);  // there and back as long as a third of an election
    ASSERT_NO_FATAL_FAILURE(s.send(60, "150 ms"));
    const auto begin = Clock::now();
    EXPECT_TRUE(s.metadata_is_written(30s));
    EXPECT_GE(Clock::now() - begin, 300ms) << "the relay does not delay";
    relay.set(0ms, 0ms);
    s.expect_all(60s);
  });
}

}  // namespace
}  // namespace narad::e2e
