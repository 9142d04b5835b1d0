#pragma once
// Node: the composition root. Takes the doors and a configuration, and runs a broker: opens the
// data directory, the metastore, the ingress WAL and the dispatcher, and answers HTTP. Start and
// stop order live here alone. One object per process (or per simulated machine), on one loop.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "internal/api/broker.h"
#include "internal/dispatch/dispatcher.h"
#include "internal/ingress/ingress.h"
#include "internal/node/move_parts.h"
#include "internal/node/partitions.h"
#include "pkg/config/config.h"
#include "pkg/metrics/registry.h"

namespace narad::node {

// What is not configuration: sizes that simulation and tests draw small, and facts about the host.
struct NodeOptions {
  std::string version = "dev";
  std::string default_node_id = "narad";  // host name
  bool serve_http = true;                 // false: only broker() answers (simulation)
  seglog::Knobs log;
  ingress::Options ingress;    // directory and backlog limit come from the configuration
  dispatch::Options dispatch;  // retry and grace come from the configuration
  std::size_t cache_bytes = 128u << 20;
  std::uint64_t read_ahead_bytes = 64u << 20;
  // For simulation: where the dispatcher hands over, in place of the broker itself (null: the
  // broker).
  std::function<std::unique_ptr<dispatch::CommitTarget>(dispatch::CommitTarget&)> wrap_target;
  MoveHooks moves;
  // The same doors as the node's, but for the network: with TLS. They outlive the node; null: those
  // of the node.
  Env* http_env = nullptr;
  Env* cluster_env = nullptr;
  Nanos started_at{0};  // mono clock at process start, for narad_boot_duration_seconds
};

class Node {
 public:
  Node(Env& env, Config config, NodeOptions options);
  Node(const Node&) = delete;
  ~Node();  // REQUIRES: stop() has returned, start() was never called, or the node was killed

  // Ready to serve when it answers ok. On an error everything that was opened is closed again, and
  // the text says what to do.
  Task<Result<void>> start();

  // Stops accepting, lets requests finish within http.shutdown_grace, hands over what it can,
  // closes everything cleanly. May be called again, also while it runs. REQUIRES: start() has
  // answered.
  Task<void> stop();

  // SIGHUP: opens the audit file anew. Errors: it cannot be opened; the one so far goes on.
  Task<Result<void>> reload();

  // REQUIRES: start() answered ok.
  api::Broker& broker();
  // Where HTTP listens (empty if serve_http is off).
  std::vector<Endpoint> http_endpoints() const;
  const std::string& node_id() const;
  // Whether a disk of that id is here and can be used.
  bool has_disk(const std::string& id) const;
  metrics::Registry& metrics();
  Partitions& partitions();
  const ingress::Ingress& ingress() const;
  metastore::Proposer& metastore();
  MoveStats move_stats() const;
  std::vector<wire::MoveReport> move_reports() const;  // of the moves whose target this node is
  dispatch::PlanStats dispatch_stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::node
