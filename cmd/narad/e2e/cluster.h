#pragma once
// Several `narad serve` of a test that form one cluster, on loopback or in a network of the test's
// own, and what tests ask of it.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cmd/narad/e2e/broker.h"
#include "cmd/narad/e2e/network.h"

namespace narad::e2e {

// Ports of 127.0.0.1 that nobody listens on just now, below those that outgoing connections use: a
// node that is down for a while finds its own again.
std::vector<std::uint16_t> free_ports(std::size_t count);

struct ClusterOptions {
  std::size_t nodes = 3;
  std::map<std::string, std::string> env{};  // of every node, over what the cluster sets
  bool testing = true;                       // as of BrokerOptions
  std::string binary{};                      // as of BrokerOptions
  // Where they run instead of on loopback; outlives the cluster.
  Network* network = nullptr;
  bool through_relay = false;  // they reach each other at Network::relay_address() only
};

// Nodes "n0", "n1", … with ports of their own that they keep.
class Cluster {
 public:
  explicit Cluster(ClusterOptions options);
  explicit Cluster(std::size_t nodes) : Cluster(ClusterOptions{.nodes = nodes}) {}

  // True once all of them are ready.
  bool start();
  // One more node, which joins the cluster that runs. True once it is ready.
  bool add();
  std::string why() const;  // what nodes printed instead of becoming ready
  std::size_t size() const { return nodes_.size(); }
  Broker& node(std::size_t i) { return *nodes_[i]; }
  static std::string id(std::size_t i);
  // In a Network: ports of every node for clients and for the others.
  static constexpr std::uint16_t kHttp = 7942, kPlane = 7943;
  std::uint16_t cluster_port(std::size_t i) const { return cluster_ports_[i]; }
  const std::string& peers() const { return peers_; }  // as NARAD_CLUSTER_PEERS
  const std::string& directory() const { return dir_.path(); }
  static constexpr const char* kSecret = "a secret of this test";

  // Who leads, as node `asked` says; nothing if it knows of nobody, or does not answer.
  std::optional<std::size_t> leader_by(std::size_t asked);
  // Who leads, as that node itself says too. Waits for it.
  std::optional<std::size_t> leader(Duration limit = std::chrono::seconds(20));
  // Topic `name` there and known to every node; fails the test otherwise.
  void create_topic(const std::string& name, int partitions);

 private:
  std::vector<std::uint16_t> ports(std::size_t count) const;
  std::string peer(std::size_t i) const;
  void make_node(std::size_t i, std::uint16_t http_port, const std::string& peers);

  ClusterOptions options_;
  TempDir dir_;
  std::vector<std::uint16_t> cluster_ports_;
  std::string peers_;
  std::vector<std::unique_ptr<Broker>> nodes_;
};

// Asks until `holds` says yes: what one node did becomes visible at another a moment later.
bool soon(const std::function<bool()>& holds, Duration limit = std::chrono::seconds(20));

bool knows_topic(Broker& node, const std::string& topic);

// The reasons in a /readyz answer; empty if the node is ready or does not answer.
std::string waiting_for(std::uint16_t port);

// Consumes and acks through the living nodes in turn until `payloads` is empty. Answers what was
// not seen when none of them came for `limit` any more; messages are acked through another node
// than the one that gave them.
std::set<std::string> consume_all(Cluster& cluster, const std::string& topic,
                                  std::set<std::string> payloads, Duration limit);

// A thread that writes metadata through one node again and again, and knows when that worked.
class Prober {
 public:
  explicit Prober(std::uint16_t port);
  ~Prober();
  // The longest time without a finished write from `since` on; waits until one began and finished
  // after `since`, and looks on for `watch` after that.
  Duration longest_gap(Clock::time_point since, Duration watch = Duration(0));

 private:
  void run(std::uint16_t port);
  std::mutex mutex_;
  struct Write {
    Clock::time_point begun, done;
  };
  std::vector<Write> writes_;  // those that worked
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Threads that produce through every node, without a pause unless they are held to a rate, and
// remember what was answered 202. A connection that breaks leaves an outcome unknown; an answer
// other than 202 counts as refused.
class Producers {
 public:
  Producers(Cluster& cluster, std::string topic, std::size_t threads_per_node = 1);
  ~Producers();
  void stop();
  std::size_t accepted() const { return accepted_count_; }
  // From now on all of them together send no more than that.
  void hold_to(std::size_t per_second);
  int refused() const { return refused_; }
  std::string first_refusal();
  // What that node has refused with, the different ones.
  std::set<std::string> refusals_of(std::size_t node);
  int broken_by(std::size_t node) const { return by_node_[node].broken; }  // connections
  std::set<std::string> accepted_payloads();                               // REQUIRES: stopped

 private:
  void run(std::size_t node, std::size_t thread, std::uint16_t port, std::string host);
  Cluster& cluster_;
  const std::string topic_;
  struct OfNode {
    std::atomic<int> broken{0};
    std::set<std::string> refusals;
  };
  std::vector<OfNode> by_node_;
  std::atomic<std::int64_t> gap_us_{0};  // between two requests of a thread
  std::mutex mutex_;
  std::set<std::string> accepted_;
  std::string first_refusal_;
  std::atomic<std::size_t> accepted_count_{0};
  std::atomic<int> refused_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace narad::e2e
