#pragma once
// Network namespaces of a test's own, that go when it ends: one for the test and one for each node,
// joined by a bridge. Faults are rules of nftables in a node's namespace, or a relay in between
// that delays. Needs root, iproute2, nftables and util-linux.
//
// The thread that makes it lives in the test's namespace from then on, and so do the threads and
// processes it starts: give it a thread of its own.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cmd/narad/e2e/child.h"

namespace narad::e2e {

// Why this machine cannot do it; empty if it can.
std::string no_networks();

class Network {
 public:
  // Node i has the address 10.77.0.(i + 1). Throws std::runtime_error if the kernel refuses.
  explicit Network(std::size_t nodes);

  static std::string address(std::size_t node);
  // Where others reach node i through the relay: 10.77.0.(i + 101).
  static std::string relay_address(std::size_t node);
  // In front of a command that is to run in the node's namespace.
  std::vector<std::string> inside(std::size_t node) const;

  // Nothing that `from` sends arrives at `to`; the other way is open.
  void cut(std::size_t from, std::size_t to);
  // Every packet that arrives there from another node is lost with this probability.
  void lose(std::size_t node, int percent);
  // Connections with other nodes are reset as soon as something arrives on them.
  void reset(std::size_t node);
  // All faults of that node are gone.
  void heal(std::size_t node);

 private:
  void rule(std::size_t node, const std::string& text);
  std::vector<std::unique_ptr<Child>> holders_;  // each keeps a namespace
};

// Passes TCP on from relay_address(i) to address(i) at one port, each chunk after a delay. Runs in
// threads of its own, in the namespace of the thread that makes it.
class DelayingRelay {
 public:
  DelayingRelay(std::size_t nodes, std::uint16_t port, Duration delay, Duration jitter);
  ~DelayingRelay();
  void set(Duration delay, Duration jitter);

 private:
  void serve(int listener, std::string to);
  void pump(int from, int to);

  const std::uint16_t port_;
  std::atomic<std::int64_t> delay_ms_;
  std::atomic<std::int64_t> jitter_ms_;
  std::atomic<bool> stop_{false};
  std::vector<int> listeners_;
  std::vector<std::thread> threads_;
};

}  // namespace narad::e2e
