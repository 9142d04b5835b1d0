// What strangers do to a cluster: thousands of connections, slow ones, garbage, wrong secrets,
// nodes of other clusters. They are refused in clear words, and the rest goes on.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "cmd/narad/e2e/cluster.h"
#include "cmd/narad/e2e/figures.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Open connections of a test that has no manners.
class Crowd {
 public:
  ~Crowd() { leave(); }
  // False if a connection is not accepted by the kernel.
  bool join(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) {
      if (fd >= 0) ::close(fd);
      return false;
    }
    fds_.push_back(fd);
    return true;
  }
  void all_say(const std::string& text) {
    for (int fd : fds_) (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // How many got an answer that contains `text`, waiting for each up to `limit` in all.
  std::size_t heard(const std::string& text, Duration limit) {
    const auto until = Clock::now() + limit;
    std::size_t count = 0;
    for (int fd : fds_) {
      std::string got;
      while (got.find(text) == std::string::npos) {
        const auto left = std::chrono::duration_cast<Duration>(until - Clock::now()).count();
        pollfd p{fd, POLLIN, 0};
        if (::poll(&p, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) break;
        char buffer[4096];
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) break;
        got.append(buffer, static_cast<std::size_t>(n));
      }
      if (got.find(text) != std::string::npos) ++count;
    }
    return count;
  }
  // How many the other side has closed.
  std::size_t closed() {
    std::size_t count = 0;
    for (int fd : fds_) {
      char buffer[4096];
      ssize_t n;
      while ((n = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0) {
      }
      if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) ++count;
    }
    return count;
  }
  void leave() {
    for (int fd : fds_) ::close(fd);
    fds_.clear();
  }
  std::size_t size() const { return fds_.size(); }

 private:
  std::vector<int> fds_;
};

// For 10,000 connections and the test's own; the nodes inherit it. False if the machine says no.
// Raises the limit of open files as far as it goes; answers it.
std::size_t open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  rlimit more = limit;
  more.rlim_max = std::max<rlim_t>(limit.rlim_max, 32'768);
  more.rlim_cur = more.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &more) == 0) return more.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

void expect_everything_works(Cluster& cluster, const std::string& topic) {
  std::set<std::string> sent;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    Http http(cluster.node(i).port());
    for (int n = 0; n < 5; ++n) {
      const std::string payload =
          cat("through ", i, ": ", n, " at ", Clock::now().time_since_epoch().count());
      auto answer = http.post(cat("/v1/topics/", topic, "/produce?key=k", n), payload);
      ASSERT_TRUE(answer) << "n" << i;
      ASSERT_EQ(answer->status, 202) << answer->body;
      sent.insert(payload);
    }
  }
  const auto lost = consume_all(cluster, topic, sent, 20s);
  EXPECT_TRUE(lost.empty()) << *lost.begin();
}

TEST(ClusterHostile, TenThousandIdleConnectionsOnBothPlanes_CostLittleMemoryAndDisturbNobody) {
  // 10,000 where this machine has the files for them; what one costs can be told from fewer.
  const std::size_t many =
      std::min<std::size_t>(10'000, std::max<std::size_t>(open_files(), 1'000) - 1'000);
  ASSERT_GE(many, 2'000u) << "raise the limit of open files (ulimit -Hn)";
  ClusterOptions options;
  options.env["NARAD_HTTP_MAX_CONNECTIONS"] = "10100";
  Cluster cluster(std::move(options));
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 6));
  ASSERT_NO_FATAL_FAILURE(expect_everything_works(cluster, "orders"));
  const pid_t pid = cluster.node(0).child().pid();
  {
    const double before = usage(pid).rss_mib;
    Crowd clients;
    for (std::size_t i = 0; i < many; ++i) ASSERT_TRUE(clients.join(cluster.node(0).port())) << i;
    // Each has been served, and is kept.
    clients.all_say("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(clients.heard("\"ok\"", 20s), many);
    const double each = (usage(pid).rss_mib - before) * 1024 / many;
    std::printf("an idle client connection: %.1f KiB\n", each);
    EXPECT_LE(each, 16);
    ASSERT_NO_FATAL_FAILURE(expect_everything_works(cluster, "orders"));
    EXPECT_EQ(clients.closed(), 0u);
  }
  {
    const double before = usage(pid).rss_mib;
    Crowd strangers;
    for (std::size_t i = 0; i < many; ++i) strangers.join(cluster.cluster_port(0));
    const double grown = usage(pid).rss_mib - before;
    std::printf("%zu strangers on the cluster port: %.1f MiB\n", strangers.size(), grown);
    EXPECT_LE(grown * 1024, 16.0 * many);
    ASSERT_NO_FATAL_FAILURE(expect_everything_works(cluster, "orders"));
    // None of them is kept: who does not prove itself has five seconds.
    EXPECT_TRUE(soon([&] { return strangers.closed() == strangers.size(); }, 15s))
        << strangers.closed();
  }
}

TEST(ClusterHostile, SlowLorisOnBothPlanes_IsCutOffAndDisturbsNobody) {
  ClusterOptions options;
  options.env["NARAD_HTTP_READ_TIMEOUT"] = "3s";
  Cluster cluster(std::move(options));
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 6));
  Crowd slow_heads, slow_bodies, slow_nodes;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(slow_heads.join(cluster.node(0).port()));
    ASSERT_TRUE(slow_bodies.join(cluster.node(0).port()));
    ASSERT_TRUE(slow_nodes.join(cluster.cluster_port(0)));
  }
  slow_heads.all_say("GET /v1/topics HTTP/1.1\r\nX-Slow: ");
  slow_bodies.all_say(
      "POST /v1/topics/orders/produce HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  slow_nodes.all_say("NR");
  // A byte now and then keeps nothing alive.
  const auto begin = Clock::now();
  bool all_cut = false;
  while (!all_cut && Clock::now() - begin < 20s) {
    slow_heads.all_say("x");
    slow_bodies.all_say("x");
    slow_nodes.all_say("D");
    ASSERT_NO_FATAL_FAILURE(expect_everything_works(cluster, "orders"));
    all_cut =
        slow_heads.closed() == 300 && slow_bodies.closed() == 300 && slow_nodes.closed() == 300;
  }
  EXPECT_TRUE(all_cut) << slow_heads.closed() << " " << slow_bodies.closed() << " "
                       << slow_nodes.closed() << " of 300 each were cut off";
}

TEST(ClusterHostile, GarbageOnTheClusterPort_IsRefusedAndDisturbsNobody) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 6));
  const pid_t pid = cluster.node(0).child().pid();
  const double before = usage(pid).rss_mib;
  const std::uint16_t port = cluster.cluster_port(0);
  // A person who mistook the port is told so.
  EXPECT_THAT(Http(port).raw("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", 5000),
              HasSubstr("http.addr"));
  // Another release, a body that is too large, no hello at all: the text is in the refusal.
  const std::string head = "NRDP";
  EXPECT_THAT(Http(port).raw(
                  head + std::string("\x63\x00\x01\x00\x10\x00", 6) + std::string(16, 'x'), 5000),
              HasSubstr("version"));
  EXPECT_THAT(Http(port).raw(head + std::string("\x01\x00\x01\x00\xff\xff", 6), 5000),
              HasSubstr("NRDP"));
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(1 + random() % 5000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 2 == 0) bytes = head + bytes;
    Http(port).raw(bytes, 0);
  }
  ASSERT_NO_FATAL_FAILURE(expect_everything_works(cluster, "orders"));
  EXPECT_LE(usage(pid).rss_mib - before, 20);
}

// One more process that would like to belong to the cluster.
std::unique_ptr<Broker> newcomer(Cluster& cluster, const std::string& id, std::uint16_t port,
                                 std::uint16_t http, const std::string& secret,
                                 const std::string& data_dir) {
  BrokerOptions options;
  options.addr = cat("127.0.0.1:", http);
  options.env["NARAD_NODE_ID"] = id;
  options.env["NARAD_CLUSTER_ADDR"] = cat("127.0.0.1:", port);
  options.env["NARAD_CLUSTER_PEERS"] = cat(cluster.peers(), ",", id, "@127.0.0.1:", port);
  options.env["NARAD_CLUSTER_SECRET"] = secret;
  return std::make_unique<Broker>(data_dir, std::move(options));
}

TEST(ClusterHostile, NodeWithAnotherSecret_IsToldWhyAndDisturbsNobody) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 6));
  const auto ports = free_ports(2);
  TempDir dir;
  auto stranger = newcomer(cluster, "n3", ports[0], ports[1], "another secret", dir / "n3");
  stranger->launch();
  EXPECT_TRUE(soon([&] { return waiting_for(ports[1]).find("secret") != std::string::npos; }, 15s))
      << waiting_for(ports[1]);
  // It says so in its log, and the cluster in its own.
  EXPECT_TRUE(soon([&] {
    return cluster.node(0).child().out().find("refused a cluster connection") != std::string::npos;
  }));
  EXPECT_THAT(stranger->child().out(), HasSubstr("secret"));
  ASSERT_NO_FATAL_FAILURE(expect_everything_works(cluster, "orders"));
  auto members = Http(cluster.node(0).port()).get("/v1/cluster/members");
  ASSERT_TRUE(members);
  EXPECT_EQ(members->body.find("\"n3\""), std::string::npos) << members->body;
  // With the right one it joins.
  stranger->kill9();
  stranger = newcomer(cluster, "n3", ports[0], ports[1], Cluster::kSecret, dir / "n3");
  stranger->launch();
  ASSERT_TRUE(stranger->await_ready(20s)) << stranger->why();
  EXPECT_TRUE(knows_topic(*stranger, "orders"));
}

TEST(ClusterHostile, NodeOfAnotherCluster_IsToldWhyAndDisturbsNobody) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  ASSERT_NO_FATAL_FAILURE(cluster.create_topic("orders", 6));
  const auto ports = free_ports(2);
  TempDir dir;
  {
    BrokerOptions alone;
    alone.env["NARAD_NODE_ID"] = "n3";
    Broker lone(dir / "n3", std::move(alone));
    ASSERT_TRUE(lone.start()) << lone.why();
    lone.create_topic("of-another-cluster", 1);
    ASSERT_TRUE(lone.terminate());
  }
  auto stranger = newcomer(cluster, "n3", ports[0], ports[1], Cluster::kSecret, dir / "n3");
  stranger->launch();
  ASSERT_NO_FATAL_FAILURE(expect_everything_works(cluster, "orders"));
  // Both say why: it serves what it has, and is no member of this cluster.
  const auto says = [](Broker& node, const char* text) {
    return soon([&] { return node.child().out().find(text) != std::string::npos; }, 15s);
  };
  EXPECT_TRUE(says(cluster.node(0), "n3 belongs to cluster")) << cluster.node(0).child().out();
  EXPECT_TRUE(says(*stranger, "does not answer as a member of this cluster"))
      << stranger->child().out();
  auto members = Http(cluster.node(0).port()).get("/v1/cluster/members");
  ASSERT_TRUE(members);
  EXPECT_EQ(members->body.find("\"n3\""), std::string::npos) << members->body;
}

}  // namespace
}  // namespace narad::e2e
