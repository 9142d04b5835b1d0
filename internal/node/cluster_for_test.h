#pragma once
// For the tests of this directory: three whole nodes on simulated machines, without HTTP.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internal/node/node.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node {

inline Config cluster_config(const std::string& id, int nodes) {
  Config c;
  c.storage.data_dir = "/data";
  c.cluster.node_id = id;
  c.cluster.secret = "secret";
  c.cluster.addr = ":7943";
  for (int i = 1; i <= nodes; ++i) c.cluster.peers.push_back({cat("n", i), cat("n", i, ":7943")});
  return c;
}

// A node and what came of its start.
struct Running {
  Running(Env& env, Config config, NodeOptions how = options())
      : node(env, std::move(config), std::move(how)), tasks(env) {
    tasks.spawn("start", start(this));
  }
  static NodeOptions options() {
    NodeOptions o;
    o.serve_http = false;
    return o;
  }
  static Task<void> start(Running* r) {
    auto started = co_await r->node.start();
    r->outcome.emplace(std::move(started));
  }
  Node node;
  TaskGroup tasks;
  std::optional<Result<void>> outcome;
};

class Cluster {
 public:
  explicit Cluster(std::uint64_t seed) : sim(seed), net(sim) {
    for (int i = 1; i <= 3; ++i) {
      machines.push_back(std::make_unique<sim::Machine>(sim, net, i - 1, cat("n", i)));
    }
  }
  void boot(int i) {
    machine(i).boot(
        [i](Env& env) { return std::make_shared<Running>(env, cluster_config(cat("n", i), 3)); });
  }
  sim::Machine& machine(int i) { return *machines[static_cast<std::size_t>(i - 1)]; }
  Running& running(int i) { return machine(i).component<Running>(); }
  api::Broker& broker(int i) { return running(i).node.broker(); }
  bool ready(int i) {
    if (!machine(i).up()) return false;
    Running& r = running(i);
    return r.outcome && *r.outcome && r.node.broker().readiness().ready &&
           r.node.broker().readiness().waiting_for.empty();
  }
  bool all_ready() { return ready(1) && ready(2) && ready(3); }
  std::string cluster(int i) { return broker(i).view()->cluster_id; }

  sim::Sim sim;
  sim::SimNet net;
  std::vector<std::unique_ptr<sim::Machine>> machines;
};

}  // namespace narad::node
