#include "cmd/narad/e2e/cluster.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <deque>
#include <random>

#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

bool free_now(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = ::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  ::close(fd);
  return free;
}

}  // namespace

std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::random_device random;
  std::set<std::uint16_t> ports;
  while (ports.size() < count) {
    const auto port = static_cast<std::uint16_t>(20'000 + random() % 12'000);
    if (free_now(port)) ports.insert(port);
  }
  return {ports.begin(), ports.end()};
}

std::vector<std::uint16_t> Cluster::ports(std::size_t count) const {
  // In a name space of its own each node has all ports for itself.
  if (options_.network == nullptr) return free_ports(2 * count);
  std::vector<std::uint16_t> all(count, kPlane);
  all.resize(2 * count, kHttp);
  return all;
}

std::string Cluster::peer(std::size_t i) const {
  std::string host = "127.0.0.1";
  if (options_.network != nullptr) {
    host = options_.through_relay ? Network::relay_address(i) : Network::address(i);
  }
  return cat(id(i), "@", host, ":", cluster_ports_[i]);
}

Cluster::Cluster(ClusterOptions options) : options_(std::move(options)) {
  const std::size_t count = options_.nodes;
  const std::vector<std::uint16_t> all = ports(count);
  cluster_ports_.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 0; i < count; ++i) peers_ += cat(i == 0 ? "" : ",", peer(i));
  for (std::size_t i = 0; i < count; ++i) make_node(i, all[count + i], peers_);
}

void Cluster::make_node(std::size_t i, std::uint16_t http_port, const std::string& peers) {
  BrokerOptions broker;
  broker.env = options_.env;
  broker.env["NARAD_NODE_ID"] = id(i);
  broker.env["NARAD_CLUSTER_ADDR"] = cat("127.0.0.1:", cluster_ports_[i]);
  broker.env["NARAD_CLUSTER_PEERS"] = peers;
  broker.env.try_emplace("NARAD_CLUSTER_SECRET", kSecret);
  // Forming takes some rounds of it; nothing else is faster than it is for everybody.
  if (options_.testing) broker.env.try_emplace("NARAD_TIMING_JOIN_RETRY", "500ms");
  broker.addr = cat("127.0.0.1:", http_port);
  if (options_.network != nullptr) {
    broker.wrapper = options_.network->inside(i);
    broker.host = Network::address(i);
    broker.addr = cat("0.0.0.0:", http_port);
    broker.env["NARAD_CLUSTER_ADDR"] =
        cat(options_.through_relay ? std::string() : broker.host, ":", kPlane);
  }
  broker.testing = options_.testing;
  broker.binary = options_.binary;
  nodes_.push_back(std::make_unique<Broker>(dir_ / id(i), std::move(broker)));
}

bool Cluster::add() {
  const std::size_t i = size();
  const std::vector<std::uint16_t> one = ports(1);
  cluster_ports_.push_back(one[0]);
  // The others learn from the metadata where it is.
  make_node(i, one[1], cat(peers_, ",", peer(i)));
  node(i).launch();
  return node(i).await_ready();
}

bool Cluster::start() {
  for (auto& node : nodes_) node->launch();
  for (auto& node : nodes_) {
    if (!node->await_ready()) return false;
  }
  return true;
}

std::string Cluster::why() const {
  std::string text;
  for (const auto& node : nodes_) text += node->why();
  return text;
}

std::string Cluster::id(std::size_t i) { return cat("n", i); }

std::optional<std::size_t> Cluster::leader_by(std::size_t asked) {
  if (!node(asked).child().running()) return std::nullopt;
  auto answer = node(asked).client().get("/v1/cluster/members");
  if (!answer || answer->status != 200) return std::nullopt;
  const json::value body = json::parse(answer->body);
  const std::string leader(body.at("leader").as_string());
  for (std::size_t i = 0; i < size(); ++i) {
    if (leader == id(i)) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> Cluster::leader(Duration limit) {
  std::optional<std::size_t> found;
  soon(
      [&] {
        for (std::size_t i = 0; i < size(); ++i) {
          if (leader_by(i) == i) found = i;
        }
        return found.has_value();
      },
      limit);
  return found;
}

void Cluster::create_topic(const std::string& name, int partitions) {
  node(0).create_topic(name, partitions);
  for (auto& node : nodes_) {
    ASSERT_TRUE(soon([&] { return knows_topic(*node, name); }));
  }
}

bool soon(const std::function<bool()>& holds, Duration limit) {
  const auto until = Clock::now() + limit;
  do {
    if (holds()) return true;
    std::this_thread::sleep_for(5ms);
  } while (Clock::now() < until);
  return false;
}

bool knows_topic(Broker& node, const std::string& topic) {
  auto answer = node.client().get("/v1/topics/" + topic);
  return answer && answer->status == 200;
}

std::string waiting_for(std::uint16_t port) {
  auto answer = Http(port).get("/readyz");
  if (!answer || answer->status == 200) return {};
  std::string text;
  const json::value body = json::parse(answer->body);
  const json::value* reasons = body.as_object().if_contains("waiting_for");
  if (reasons == nullptr) return answer->body;
  for (const auto& reason : reasons->as_array()) {
    text += cat(text.empty() ? "" : "; ", std::string(reason.as_string()));
  }
  return text;
}

namespace {

// The payloads and the handles of an answer of many messages.
struct Leased {
  std::vector<std::string> payloads;
  json::array handles;
};
Leased leased_in(const std::string& body) {
  Leased leased;
  const json::value answer = json::parse(body);
  for (const auto& message : answer.as_array()) {
    leased.payloads.emplace_back(message.at("payload").as_string());
    leased.handles.push_back(message.at("receipt_handle"));
  }
  return leased;
}

}  // namespace

std::set<std::string> consume_all(Cluster& cluster, const std::string& topic,
                                  std::set<std::string> payloads, Duration limit) {
  auto until = Clock::now() + limit;
  std::deque<Http> clients;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    clients.emplace_back(cluster.node(i).port(), cluster.node(i).host());
  }
  for (std::size_t turn = 0; !payloads.empty() && Clock::now() < until; ++turn) {
    const std::size_t i = turn % cluster.size();
    if (!cluster.node(i).child().running()) continue;
    auto got = clients[i].get(cat("/v1/topics/", topic, "/consume?wait=200ms&max=50"));
    if (!got || got->status != 200) continue;
    Leased leased = leased_in(got->body);
    const std::size_t before = payloads.size();
    for (const std::string& payload : leased.payloads) payloads.erase(payload);
    if (payloads.size() < before) until = Clock::now() + limit;
    // What nobody acks comes again only when its lease has ended: a node that is gone acks nothing.
    std::size_t other = (i + 1) % cluster.size();
    while (other != i && !cluster.node(other).child().running())
      other = (other + 1) % cluster.size();
    const json::object ack{{"mode", "ack"}, {"handles", std::move(leased.handles)}};
    auto acked = clients[other].post(cat("/v1/topics/", topic, "/ack:batch"), json::serialize(ack));
    if (!acked || acked->status >= 500) continue;
    EXPECT_EQ(acked->status, 200) << acked->body;
    const json::value outcome = json::parse(acked->body);
    for (const auto& result : outcome.at("results").as_array()) {
      const auto status = result.at("status").to_number<int>();
      EXPECT_TRUE(status == 204 || status == 410 || status >= 500) << status;
    }
  }
  return payloads;
}

Prober::Prober(std::uint16_t port) : thread_([this, port] { run(port); }) {}

Prober::~Prober() {
  stop_ = true;
  thread_.join();
}

void Prober::run(std::uint16_t port) {
  Http http(port);
  http.set_limit(3);
  for (int n = 0; !stop_; ++n) {
    const auto begun = Clock::now();
    // Some change that costs nothing: a topic of one partition, and it goes again.
    auto answer = n % 2 == 0 ? http.post("/v1/topics", R"({"name":"probe","partitions":1})")
                             : http.request("DELETE", "/v1/topics/probe");
    const bool worked = answer && (answer->status == 201 || answer->status == 204);
    // Either may have been done by an attempt whose answer was lost.
    const bool said_nothing_new = answer && (answer->status == 404 || answer->status == 409);
    if (worked) {
      const std::lock_guard lock(mutex_);
      writes_.push_back({begun, Clock::now()});
    } else if (!said_nothing_new) {
      --n;
    }
    std::this_thread::sleep_for(2ms);
  }
}

Duration Prober::longest_gap(Clock::time_point since, Duration watch) {
  soon(
      [&] {
        const std::lock_guard lock(mutex_);
        return !writes_.empty() && writes_.back().begun > since;
      },
      60s);
  if (watch.count() > 0) std::this_thread::sleep_until(since + watch);
  const std::lock_guard lock(mutex_);
  Clock::time_point last = since;
  Clock::duration longest{0};
  for (const Write& w : writes_) {
    if (w.done <= since) continue;
    longest = std::max(longest, w.done - last);
    last = w.done;
  }
  return std::chrono::duration_cast<Duration>(longest);
}

Producers::Producers(Cluster& cluster, std::string topic, std::size_t threads_per_node)
    : cluster_(cluster), topic_(std::move(topic)), by_node_(cluster.size()) {
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    // Before it begins: tests put other nodes in that place.
    const std::uint16_t port = cluster.node(i).port();
    const std::string host = cluster.node(i).host();
    for (std::size_t t = 0; t < threads_per_node; ++t) {
      threads_.emplace_back([this, i, t, port, host] { run(i, t, port, host); });
    }
  }
}

void Producers::hold_to(std::size_t per_second) {
  gap_us_ = static_cast<std::int64_t>(1'000'000 * threads_.size() / per_second);
}

Producers::~Producers() { stop(); }

void Producers::stop() {
  stop_ = true;
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Producers::run(std::size_t node, std::size_t thread, std::uint16_t port, std::string host) {
  Http http(port, std::move(host));
  Clock::time_point due = Clock::now();
  for (int n = 0; !stop_; ++n) {
    due = std::max(due + std::chrono::microseconds(gap_us_), Clock::now());
    if (gap_us_ > 0) std::this_thread::sleep_until(due);
    const std::string payload = cat("n", node, " thread ", thread, " message ", n);
    auto answer = http.post(cat("/v1/topics/", topic_, "/produce?key=k", n % 50), payload);
    if (answer && answer->status == 202) {
      const std::lock_guard lock(mutex_);
      accepted_.insert(payload);
      ++accepted_count_;
      continue;
    }
    if (answer) {
      const std::lock_guard lock(mutex_);
      ++refused_;
      by_node_[node].refusals.insert(cat(answer->status, " ", answer->body));
      if (first_refusal_.empty()) first_refusal_ = cat(answer->status, " ", answer->body);
    } else {
      ++by_node_[node].broken;
    }
    std::this_thread::sleep_for(20ms);  // it is down
  }
}

std::string Producers::first_refusal() {
  const std::lock_guard lock(mutex_);
  return first_refusal_;
}

std::set<std::string> Producers::refusals_of(std::size_t node) {
  const std::lock_guard lock(mutex_);
  return by_node_[node].refusals;
}

std::set<std::string> Producers::accepted_payloads() { return accepted_; }

}  // namespace narad::e2e
