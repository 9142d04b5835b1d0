#include "internal/node/node.h"

#include <algorithm>
#include <utility>

#include "internal/api/api.h"
#include "internal/cluster/raft_consensus.h"
#include "internal/dispatch/source.h"
#include "internal/node/balance_metrics.h"
#include "internal/node/broker.h"
#include "internal/node/cluster_plane.h"
#include "internal/node/drain.h"
#include "internal/node/move_metrics.h"
#include "internal/node/move_parts.h"
#include "internal/node/node_metrics.h"
#include "internal/node/quarantine.h"
#include "internal/node/trusted_clock.h"
#include "internal/security/security.h"
#include "pkg/async/task_group.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/http/server.h"
#include "pkg/metrics/narad_metrics.h"

namespace narad::node {

using Source = dispatch::SourceOf<ingress::Ingress>;

// Members are in the order of start(); stop() goes through them backwards.
struct Node::Impl {
  Impl(Env& e, Config c, NodeOptions o)
      : env(e),
        config(std::move(c)),
        options(std::move(o)),
        clock(e.clock.mono(), e.clock.wall()),
        stop_ended(e),
        first_sweep_ended(e),
        tasks(e) {
    metrics::declare_narad_metrics(registry);
  }

  Task<Result<void>> start();
  Task<Result<void>> look_for_wal(std::string directory);
  Task<Result<void>> open_data();
  Task<Result<void>> open_metastore();
  Task<Result<void>> found_alone();
  Task<Result<void>> open_parts();
  Task<Result<void>> start_answering(Endpoint at);
  void start_dispatching();
  void start_loops();
  Task<void> become_member();
  Task<void> serve_anyway();
  void become_ready();
  Task<http::Response> not_ready() const;
  struct FoundDirectory {
    Disk disk;
    std::string topic;
  };
  Task<Result<void>> find_directories();
  Task<Result<void>> sweep_directories();
  Task<Result<void>> sweep_directory(const FoundDirectory& found);
  Task<void> sweep_when_caught_up();
  Task<void> purge_loop();
  Task<void> purge(std::string deleted_id);
  Task<void> stop();
  Task<void> close_parts();

  Task<void> retention_loop();
  Task<void> idle_loop();
  Task<void> metrics_loop();
  Task<void> quarantine_loop();
  Task<void> count_quarantined();
  Task<void> count_orphans();

  api::Readiness readiness() const;

  // Orders about members and plans on a node without peers: it is the leader, and all there is.
  struct Alone {
    Alone(Env& env, metastore::Metastore& metastore, const std::string& node, Drain& drain)
        : consensus(metastore),
          leadership(env),
          operations(env, {consensus, leadership, node, nullptr, nullptr,
                           [&drain] { return drain.status(); }}) {}
    cluster::RaftConsensus consensus;
    cluster::Leadership leadership;
    cluster::Operations operations;
  };

  Env& env;
  Config config;
  NodeOptions options;
  metrics::Registry registry;
  TrustedClock clock;
  const std::string& node_id() const { return data->identity().node_id; }

  bool ready = false;
  bool belongs = false;  // to a cluster with others
  bool shutting_down = false;
  bool stopped = false;
  Event stop_ended;
  std::vector<FoundDirectory> directories;  // of topics, not yet swept
  bool first_sweep = true;                  // not every one of them was looked at yet
  Event first_sweep_ended;

  std::unique_ptr<DataDir> data;
  std::unique_ptr<ClusterPlane> plane;  // null on a node without peers
  std::unique_ptr<metastore::Metastore> metastore;
  std::unique_ptr<Alone> alone;      // null on a node with peers: the plane has its operations
  std::unique_ptr<MoveParts> moves;  // gates of partitions: outlives them
  std::unique_ptr<Partitions> partitions;
  std::unique_ptr<ingress::Ingress> ingress;
  std::unique_ptr<LocalBroker> local;
  std::unique_ptr<Wakes> wakes;
  std::unique_ptr<Drain> drain;
  std::unique_ptr<Broker> broker;
  std::unique_ptr<dispatch::CommitTarget> wrapped_target;
  std::unique_ptr<Source> source;
  std::unique_ptr<dispatch::Dispatcher> dispatcher;
  std::shared_ptr<security::Security> security;
  std::unique_ptr<api::Api> api;
  std::unique_ptr<http::Server> server;
  TaskGroup tasks;
};

Node::Node(Env& env, Config config, NodeOptions options)
    : impl_(std::make_unique<Impl>(env, std::move(config), std::move(options))) {}
Node::~Node() = default;

Task<Result<void>> Node::start() { return impl_->start(); }
Task<void> Node::stop() { return impl_->stop(); }
api::Broker& Node::broker() { return *impl_->broker; }
bool Node::has_disk(const std::string& id) const {
  const Disk* disk = impl_->data->disk(id);
  return disk != nullptr && disk->missing.empty();
}
const std::string& Node::node_id() const { return impl_->data->identity().node_id; }
metrics::Registry& Node::metrics() { return impl_->registry; }
Partitions& Node::partitions() { return *impl_->partitions; }
MoveStats Node::move_stats() const { return impl_->moves->stats(); }
std::vector<wire::MoveReport> Node::move_reports() const { return impl_->moves->reports(); }
metastore::Proposer& Node::metastore() { return *impl_->metastore; }
const ingress::Ingress& Node::ingress() const { return *impl_->ingress; }
dispatch::PlanStats Node::dispatch_stats() const { return impl_->dispatcher->stats(); }
std::vector<Endpoint> Node::http_endpoints() const {
  return impl_->server ? impl_->server->local() : std::vector<Endpoint>{};
}

namespace {

constexpr Nanos kBarrierDeadline = std::chrono::seconds(5);
constexpr Nanos kSweepRetry = std::chrono::seconds(1);
constexpr Nanos kPeerGrace = std::chrono::seconds(2);  // for requests of other nodes
constexpr Nanos kReadyAnyway = std::chrono::seconds(60);
constexpr Nanos kLookAtMembership = std::chrono::seconds(1);
constexpr Nanos kQuarantineLook = std::chrono::minutes(1);

// Whoever makes a node with certificates in its settings has to give it doors with TLS: without,
// passwords would cross the network readable while the operator believes otherwise.
Result<void> check_tls(const Config& config, const NodeOptions& options) {
  if (!config.http.tls_cert_file.empty() && options.http_env == nullptr)
    return Error(Errc::internal, "http.tls_cert_file is set, but there is no TLS for clients here");
  if (!config.security.cluster_tls_cert_file.empty() && options.cluster_env == nullptr)
    return Error(Errc::internal,
                 "security.cluster_tls_cert_file is set, but there is no TLS between nodes here");
  return ok();
}

// Served to whoever reaches it, unless security is off: then it is said once, aloud.
Result<Endpoint> http_endpoint(Env& env, const Config& config) {
  NARAD_TRY(Endpoint at, parse_endpoint(config.http.addr));
  if (!config.security.enabled && !is_loopback(at)) {
    NARAD_LOG_WARN(env.log,
                   "security.enabled=false: whoever reaches this address may do everything",
                   {"http_addr", config.http.addr});
  }
  return at;
}

// Routes that say how the node is (http-api 1.14).
bool answers_always(std::string_view path) {
  return path == "/healthz" || path == "/readyz" || path == "/metrics";
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

api::Options api_options(const Config& config) {
  api::Options options;
  options.default_partitions = config.topic.default_partitions;
  options.max_partitions = config.topic.max_partitions;
  options.default_retention_ms = config.topic.default_retention_age_ms;
  options.default_visibility_timeout_ms = config.topic.default_visibility_timeout_ms;
  options.default_max_in_flight = config.topic.default_max_in_flight_per_partition;
  options.default_max_acked_ahead = config.topic.default_max_acked_ahead_per_partition;
  options.max_consume_wait = config.http.max_consume_wait;
  options.max_batch_bytes = config.http.max_batch_bytes;
  return options;
}

security::Options security_options(const Config& config) {
  security::Options options;
  options.enabled = config.security.enabled;
  options.admin_password = config.security.admin_password;
  options.requests_per_second = config.limits.requests_per_second;
  options.bytes_per_second = config.limits.bytes_per_second;
  options.audit_file = config.audit.file;
  return options;
}

}  // namespace

Task<Result<void>> Node::reload() {
  // A start that fails meanwhile lets go of its own.
  const std::shared_ptr<security::Security> security = impl_->security;
  if (security == nullptr) co_return ok();
  co_return co_await security->reload();
}

// Every record of a partition came through the WAL, and a WAL is never without a file once it was
// opened: one that is gone beside used partitions took with it what was accepted and not yet handed
// over. Nothing is made worse by going on, so the node says it and starts.
Task<Result<void>> Node::Impl::look_for_wal(std::string directory) {
  bool used = false;
  metastore->view()->topics.for_each([&](const auto& row) {
    for (const Assignment& a : row->assignments) {
      used = used || (a.used && a.owner_node == data->identity().node_id);
    }
  });
  if (!used) co_return ok();
  auto look = [&fs = env.fs, directory]() { return ingress::has_wal(fs, directory); };
  auto there = co_await blocking(env, "look for the ingress WAL", std::move(look));
  // What keeps it from being read is said by opening it.
  if (there && !there.value()) {
    NARAD_LOG_ERROR(
        env.log,
        "the ingress WAL is missing beside partitions that hold data: messages that were "
        "accepted and not yet handed over are lost; is the right disk mounted?",
        {"directory", directory});
  }
  co_return ok();
}

Task<Result<void>> Node::Impl::start() {
  Endpoint at;
  if (options.serve_http) {
    NARAD_CO_TRY(at, http_endpoint(env, config));
  }
  if (ClusterPlane::wanted(config)) {
    NARAD_CO_TRY(ClusterPlane::check(config));
  }
  NARAD_CO_TRY(co_await open_data());
  auto opened = co_await open_metastore();
  if (opened) opened = co_await open_parts();
  if (opened && options.serve_http) opened = co_await start_answering(at);
  if (!opened) {
    const Error error = opened.error();
    co_await tasks.stop();
    if (server) co_await server->stop(Nanos(0));
    co_await close_parts();
    co_return error;
  }
  start_loops();
  if (plane) {
    tasks.spawn("membership", become_member());
    tasks.spawn("serve anyway", serve_anyway());
  } else {
    become_ready();
  }
  co_return ok();
}

void Node::Impl::become_ready() {
  if (ready) return;
  ready = true;
  moves->start([this] { return ingress->durable_end().value(); });
  const Nanos took = env.clock.mono() - options.started_at;
  registry.gauge("narad_boot_duration_seconds").set(std::chrono::duration<double>(took).count());
  NARAD_LOG_INFO(env.log, "node ready", {"node", data->identity().node_id},
                 {"cluster", to_hex16(data->identity().cluster_id)}, {"data_dir", data->root()},
                 {"listen", server ? to_string(server->local().front()) : std::string("none")},
                 {"security", config.security.enabled ? "on" : "off"},
                 {"version", options.version});
}

Task<Result<void>> Node::Impl::open_data() {
  DataDirOptions where;
  where.data_dir = config.storage.data_dir;
  where.more_dirs = config.storage.data_dirs;
  where.node_id = config.cluster.node_id;
  where.default_node_id = options.default_node_id;
  where.holder = env.process.describe();
  auto open = [&fs = env.fs, &random = env.random, now = env.clock.wall_millis(), where] {
    return DataDir::open(fs, random, now, where);
  };
  NARAD_CO_TRY(data, co_await blocking(env, "data directory", std::move(open)));
  for (const Disk& disk : data->disks()) {
    if (!disk.missing.empty()) {
      NARAD_LOG_ERROR(env.log, "disk missing; partitions placed on it answer 503",
                      {"path", disk.path}, {"why", disk.missing});
    }
  }
  co_return ok();
}

Task<Result<void>> Node::Impl::open_metastore() {
  NARAD_CO_TRY(check_tls(config, options));
  if (ClusterPlane::wanted(config)) {
    Env& doors = options.cluster_env != nullptr ? *options.cluster_env : env;
    plane = std::make_unique<ClusterPlane>(doors, config, *data);
  }
  metastore::MetastoreOptions how;
  how.node_id = data->identity().node_id;
  // A node that belongs to others begins nothing anew, whatever is left on its disk.
  const bool has_others = data->identity().joined || data->identity().founding.size() > 1;
  how.found_alone = plane == nullptr && !has_others;
  how.raft.tick = config.timing.raft_tick;
  how.raft.transport = plane.get();
  how.raft.promote_learners = false;  // the controller does, by its policy
  how.forwarder = plane.get();
  NARAD_CO_TRY(metastore,
               co_await metastore::Metastore::open(env, data->metastore_path(), std::move(how)));
  if (plane) {
    plane->attach(*metastore, [this] { return drain ? drain->status() : wire::DrainStatus{}; });
    co_return ok();
  }
  const raftnode::Status group = metastore->raft_status();
  if (group.configuration.members().size() != 1) {
    co_return Error(
        Errc::conflict,
        cat("this node belongs to cluster ", to_hex16(data->identity().cluster_id),
            " with other nodes, but cluster.peers names none: set cluster.peers, or start with an "
            "empty data directory"));
  }
  co_return co_await found_alone();
}

// A lone node founds its cluster, and is its one member. An id that the metastore holds is the
// right one.
Task<Result<void>> Node::Impl::found_alone() {
  const std::string stored = metastore->view()->cluster_id;
  if (data->identity().cluster_id == 0) {
    std::uint64_t id = parse_hex16(stored).value_or(0);
    while (id == 0) id = env.random.next();
    auto adopt = [&fs = env.fs, root = data->root(), identity = data->identity(), id] {
      return DataDir::adopt_cluster(fs, root, identity, Adoption{id, false, {}});
    };
    NARAD_CO_TRY(auto identity, co_await blocking(env, "adopt cluster", std::move(adopt)));
    data->set_identity(std::move(identity));
  }
  const std::string cluster_id = to_hex16(data->identity().cluster_id);
  if (!stored.empty() && stored != cluster_id) {
    co_return Error(
        Errc::conflict,
        cat("metastore of ", data->root(), " belongs to cluster ", stored, ", node.json to ",
            cluster_id, ": files of two nodes are mixed. Restore both from one backup."));
  }
  if (stored.empty()) {
    metastore::FoundCluster found;
    found.cluster_id = cluster_id;
    metastore::Command command = found;
    NARAD_CO_TRY(auto result, co_await metastore->propose(std::move(command)));
    if (!result.done()) co_return metastore::to_error(result);
  }
  metastore::RegisterMember member;
  member.id = data->identity().node_id;
  member.http_addr = config.http.addr;
  member.cluster_addr = config.cluster.addr;
  member.boot_id = to_hex16(env.random.next());
  for (const Disk& disk : data->disks()) {
    if (disk.missing.empty()) member.disks.push_back(disk.id);
  }
  member.now = env.clock.wall_millis();
  metastore::Command command = std::move(member);
  NARAD_CO_TRY(auto result, co_await metastore->propose(std::move(command)));
  if (!result.done()) co_return metastore::to_error(result);
  co_return ok();
}

// Everything between the metastore and HTTP.
Task<Result<void>> Node::Impl::open_parts() {
  const std::string node_id = data->identity().node_id;
  NARAD_CO_TRY(co_await find_directories());
  PartitionsOptions partition_options;
  partition_options.node_id = node_id;
  partition_options.log = options.log;
  partition_options.idle_close = std::chrono::milliseconds(config.storage.idle_log_eviction_ms);
  partition_options.read_ahead_bytes = options.read_ahead_bytes;
  partition_options.cache_bytes = options.cache_bytes;
  partition_options.handed_over = [this](OriginId origin, Sequence sequence) {
    return ingress && ingress->handed_over().covers(origin, sequence);
  };
  moves = std::make_unique<MoveParts>(env, config, *data, *metastore, plane.get(), options.moves);
  partition_options.gate = [this](const TopicPartition& id, const Assignment& row) {
    return moves->gate(id, row);
  };
  partitions = std::make_unique<Partitions>(env, std::move(partition_options), *data, *metastore);
  moves->attach(*partitions, [this] { return clock.trusted(); });
  // A lone node is its own majority. Others wait for theirs, and go on meanwhile.
  if (plane) {
    tasks.spawn("directory sweep", sweep_when_caught_up());
  } else {
    NARAD_CO_TRY(co_await sweep_directories());
  }

  ingress::Options ingress_options = options.ingress;
  ingress_options.directory = data->ingress_path();
  ingress_options.max_backlog_bytes = config.ingress.max_backlog_bytes;
  ingress_options.refusal_retry = config.timing.ingress_retry;
  NARAD_CO_TRY(co_await look_for_wal(ingress_options.directory));
  ingress = std::make_unique<ingress::Ingress>(env, std::move(ingress_options));
  NARAD_CO_TRY(co_await ingress->start());

  local = std::make_unique<LocalBroker>(env, node_id, *metastore, *partitions, &moves->source());
  if (plane) {
    wakes = std::make_unique<Wakes>(env, plane->owners(), *partitions);
    NARAD_CO_TRY(plane->listen(*local, *wakes, moves->desk()));
  }
  auto backlog = [this]() -> std::optional<std::uint64_t> {
    if (!ingress->is_open()) return std::nullopt;
    return ingress->durable_end().minus(ingress->checkpoint());
  };
  drain = std::make_unique<Drain>(env, node_id, *metastore, data->root(), std::move(backlog));
  co_await drain->start();
  if (!plane) alone = std::make_unique<Alone>(env, *metastore, node_id, *drain);
  cluster::Operations& operations = plane ? plane->operations() : alone->operations;
  Broker::Parts parts{operations, *metastore, *ingress,    *partitions,
                      *local,     nullptr,    wakes.get(), drain.get()};
  if (plane) {
    parts.remote = &plane->owners();
    parts.cluster_info = [this] { return plane->cluster_info(); };
    parts.peers = &plane->caller();
    parts.own_moves = [this] { return wire::MoveReports{moves->reports()}; };
  }
  parts.own_quarantine = [this] { return list_quarantined(env, data->disks()); };
  broker = std::make_unique<Broker>(env, node_id, std::move(parts), [this] { return readiness(); });
  start_dispatching();
  co_return ok();
}

void Node::Impl::start_dispatching() {
  source = std::make_unique<Source>(*ingress);
  dispatch::Options dispatch_options = options.dispatch;
  dispatch_options.plan.retry = config.timing.dispatch_retry;
  dispatch_options.plan.grace = config.timing.dispatch_grace;
  if (options.wrap_target) wrapped_target = options.wrap_target(*broker);
  dispatch::CommitTarget& target = wrapped_target ? *wrapped_target : *broker;
  dispatcher = std::make_unique<dispatch::Dispatcher>(env, dispatch_options, *source, target);
  dispatcher->start();
}

Task<Result<void>> Node::Impl::start_answering(Endpoint at) {
  security = std::make_shared<security::Security>(env, *metastore, security_options(config));
  NARAD_CO_TRY(co_await security->start());
  api = std::make_unique<api::Api>(env, *broker, *security, registry, api_options(config));
  http::ServerOptions server_options;
  server_options.read_timeout = config.http.read_timeout;
  server_options.write_timeout = config.http.write_timeout;
  server_options.idle_timeout = config.http.idle_timeout;
  server_options.connections_max = config.http.max_connections;
  // Three batches of the largest size at once always find room (http/server.h).
  server_options.buffered_bytes_max =
      std::max<std::size_t>(server_options.buffered_bytes_max,
                            std::size_t{4} * static_cast<std::size_t>(config.http.max_batch_bytes));
  server_options.header_bytes_max = static_cast<std::size_t>(config.http.max_header_bytes);
  // Until this node knows what the cluster knows, "no such topic" would be a lie.
  auto handler = [this, inner = api->handler()](http::Request request) {
    if (ready || answers_always(request.path())) return inner(std::move(request));
    return not_ready();
  };
  Env& doors = options.http_env != nullptr ? *options.http_env : env;
  server = std::make_unique<http::Server>(doors, server_options, api->admit(), std::move(handler));
  co_return server->listen(at);
}

Task<http::Response> Node::Impl::not_ready() const {
  co_return http::error_response(503,
                                 cat("this node is not ready: ", joined(readiness().waiting_for)));
}

void Node::Impl::start_loops() {
  tasks.spawn("deleted topics", purge_loop());
  tasks.spawn("retention", retention_loop());
  tasks.spawn("idle partitions", idle_loop());
  tasks.spawn("metrics", metrics_loop());
  tasks.spawn("quarantine", quarantine_loop());
}

// Ready once this node belongs to the cluster and has seen what the others know.
Task<void> Node::Impl::become_member() {
  auto formed = co_await plane->form();
  if (!formed) {
    NARAD_LOG_ERROR(env.log, "this node cannot become a member of its cluster",
                    {"error", formed.error()});
    env.process.exit(kExitFailure, formed.error().text());
    co_return;
  }
  if (formed.value() == cluster::Formed::removed) co_return;
  plane->start();
  belongs = true;
  while (!metastore->caught_up() || metastore->view()->members.find(node_id()) == nullptr) {
    (void)co_await metastore->changed().wait_for(kLookAtMembership);
  }
  // SWP-20: no topic is made here before what lies about was looked at.
  while (first_sweep) co_await first_sweep_ended.wait();
  become_ready();
}

// A member that hears of no leader serves after a while from what it knows (http-api 1.14): it
// takes messages, and hands over what it can. One that was never admitted knows nothing.
Task<void> Node::Impl::serve_anyway() {
  co_await sleep_for(env, kReadyAnyway);
  while (!belongs || metastore->view()->members.find(node_id()) == nullptr) {
    (void)co_await metastore->changed().wait_for(kLookAtMembership);
  }
  if (ready) co_return;
  NARAD_LOG_WARN(env.log, "no leader was heard of within a minute: serving from what is known here",
                 {"why", joined(plane->why_not_ready())});
  become_ready();
}

// Finishes removals that a crash interrupted, and notes which topic directories there are.
Task<Result<void>> Node::Impl::find_directories() {
  struct Found {
    std::vector<FoundDirectory> topics;
    std::vector<SetAsideCopy> quarantined;
  };
  auto job = [&fs = env.fs, disks = data->disks()]() -> Result<Found> {
    Found found;
    for (const Disk& disk : disks) {
      if (!disk.missing.empty()) continue;
      NARAD_TRY(finish_deletes(fs, disk));
      NARAD_TRY(auto topics, list_topic_directories(fs, disk));
      for (std::string& topic : topics) found.topics.push_back({disk, std::move(topic)});
    }
    NARAD_TRY(found.quarantined, find_quarantined(fs, disks));
    return found;
  };
  NARAD_CO_TRY(auto found, co_await blocking(env, "directory search", std::move(job)));
  directories = std::move(found.topics);
  for (const SetAsideCopy& copy : found.quarantined) {
    NARAD_LOG_ERROR(env.log,
                    "a copy is in quarantine: Narad never removes it. See whether its records are "
                    "wanted, bring them back, then remove it",
                    {"path", copy.path}, {"bytes", copy.bytes}, {"why", copy.why});
  }
  co_return ok();
}

// Carries deletions out that the metastore holds and that were not, and sets aside directories of
// which it knows neither the topic nor its deletion: those are never removed, since an emptied or
// an older metastore must not take the data along. Judges by the state behind a barrier that was
// made after the directories were found; before that, none of them is touched. One that a bad disk
// holds up is left to the next time.
Task<Result<void>> Node::Impl::sweep_directories() {
  Result<void> outcome = ok();
  if (!directories.empty()) {
    NARAD_CO_TRY(co_await metastore->barrier(kBarrierDeadline));
  }
  const std::vector<FoundDirectory> found = std::exchange(directories, {});
  for (const FoundDirectory& next : found) {
    auto swept = co_await sweep_directory(next);
    if (swept) continue;
    outcome = swept.error();
    directories.push_back(next);
  }
  first_sweep = false;
  first_sweep_ended.notify_all();
  co_return outcome;
}

Task<Result<void>> Node::Impl::sweep_directory(const FoundDirectory& found) {
  NARAD_CO_TRY(std::string aside, co_await partitions->sweep_directory(found.disk, found.topic));
  if (!aside.empty()) {
    NARAD_LOG_WARN(env.log, "topic directory unknown to the metastore set aside", {"path", aside});
  }
  co_return ok();
}

Task<void> Node::Impl::sweep_when_caught_up() {
  for (;;) {
    auto swept = co_await sweep_directories();
    if (swept) co_return;
    NARAD_LOG_INFO(env.log, "start-up sweep waits", {"why", swept.error()});
    co_await sleep_for(env, kSweepRetry);
  }
}

// Removes the data of topics as their deletions are applied here, whoever asked for them.
Task<void> Node::Impl::purge_loop() {
  metastore::ViewPtr seen = metastore->view();
  for (;;) {
    const metastore::ViewPtr now = metastore->view();
    std::vector<std::string> deleted;
    seen->deleted.diff(now->deleted, [&](const auto* before, const auto* after) {
      if (before == nullptr && after != nullptr) deleted.push_back(after->id);
    });
    seen = now;
    for (const std::string& id : deleted) co_await purge(id);
    if (metastore->view() == seen) co_await metastore->changed().wait();
  }
}

Task<void> Node::Impl::purge(std::string deleted_id) {
  const auto life = metastore::parse_deleted_id(deleted_id);
  NARAD_ASSERT(life.has_value(), deleted_id);  // checked where it was read
  const auto& [topic, incarnation] = *life;
  // Proof: this node has applied the deletion of this very incarnation.
  auto removed = co_await partitions->remove_topic(topic, incarnation);
  if (!removed) {
    NARAD_LOG_ERROR(env.log, "data of a deleted topic not removed; the next start removes it",
                    {"topic", topic}, {"error", removed.error()});
  }
}

api::Readiness Node::Impl::readiness() const {
  api::Readiness r;
  r.ready = ready && !shutting_down;
  r.shutting_down = shutting_down;
  if (plane) r.waiting_for = plane->why_not_ready();
  if (!ready && belongs && first_sweep) {
    r.waiting_for.emplace_back("directories of topics on the disks have not been looked at yet");
  }
  if (!ready && r.waiting_for.empty()) r.waiting_for.emplace_back("start-up has not finished");
  if (ingress) {
    const auto stats = ingress->stats();
    if (stats.state != ingress::State::open && !stats.reason.empty()) {
      r.waiting_for.push_back("ingress: " + stats.reason);
    }
  }
  if (partitions) {
    for (const auto& partition : partitions->open_now()) {
      if (partition->log->latched()) {
        r.waiting_for.push_back(
            cat("partition ", to_string(partition->id), ": ", partition->log->latched_text()));
      }
    }
  }
  if (dispatcher) {
    if (auto trouble = dispatcher->trouble(); !trouble.empty()) {
      r.waiting_for.push_back("dispatch: " + trouble);
    }
  }
  if (data) {
    for (const Disk& disk : data->disks()) {
      if (!disk.missing.empty()) r.waiting_for.push_back("disk: " + disk.missing);
    }
  }
  return r;
}

Task<void> Node::Impl::retention_loop() {
  for (;;) {
    co_await sleep_for(env, config.timing.retention_check);
    const bool was = clock.trusted();
    const bool trusted = clock.observe(env.clock.mono(), env.clock.wall());
    if (was && !trusted) {
      NARAD_LOG_WARN(env.log,
                     "the wall clock stepped by more than five minutes: nothing expires until the "
                     "node is restarted with a right clock");
    }
    auto removed = co_await partitions->apply_retention(env.clock.wall_millis(), trusted);
    if (!removed) {
      NARAD_LOG_WARN(env.log, "retention could not run everywhere", {"error", removed.error()});
      continue;
    }
    for (const auto& item : removed.value()) {
      const metrics::LabelValues labels{item.id.topic, to_string(item.id.partition), "age"};
      registry.counter("narad_storage_retention_bytes_deleted_total", labels)
          .add(static_cast<double>(item.outcome.bytes));
      NARAD_LOG_INFO(env.log, "retention deleted segments", {"partition", to_string(item.id)},
                     {"segments", item.outcome.segments}, {"bytes", item.outcome.bytes},
                     {"oldest", item.outcome.oldest});
    }
  }
}

Task<void> Node::Impl::idle_loop() {
  for (;;) {
    co_await sleep_for(env, config.timing.idle_check);
    const std::size_t closed = co_await partitions->close_idle();
    registry.counter("narad_idle_logs_evicted_total").add(static_cast<double>(closed));
    registry.gauge("narad_open_partition_logs")
        .set(static_cast<double>(partitions->open_now().size()));
  }
}

Task<void> Node::Impl::metrics_loop() {
  NodeMetrics publisher(registry);
  MoveMetrics move_publisher(registry);
  BalanceMetrics balance_publisher(registry);
  for (;;) {
    move_publisher.publish(moves->stats().runner, moves->reports().size(), metastore->view(),
                           node_id());
    balance_publisher.publish(plane ? plane->balance() : cluster::BalancerReport{});
    publisher.publish(*metastore->view(), *partitions, *ingress, *dispatcher, clock.trusted(),
                      env.clock.wall_millis());
    auto space = [&fs = env.fs, root = data->root()] { return fs.space(root); };
    if (auto available = co_await blocking(env, "disk space", std::move(space)); available) {
      registry.gauge("narad_data_dir_available_bytes")
          .set(static_cast<double>(available.value().available));
    }
    co_await sleep_for(env, std::chrono::seconds(5));
  }
}

// Counts what is set aside: by this process, an earlier one, or an operator who takes it away. And
// the topic directories that carry no incarnation, which are left to the sweep of the next start.
Task<void> Node::Impl::quarantine_loop() {
  for (;;) {
    co_await count_quarantined();
    co_await count_orphans();
    co_await sleep_for(env, kQuarantineLook);
  }
}

Task<void> Node::Impl::count_quarantined() {
  auto find = [&fs = env.fs, disks = data->disks()] { return find_quarantined(fs, disks); };
  auto found = co_await blocking(env, "quarantine", std::move(find));
  if (!found) co_return;
  std::uint64_t bytes = 0;
  for (const SetAsideCopy& copy : found.value()) bytes += copy.bytes;
  registry.gauge("narad_quarantined_copies").set(static_cast<double>(found.value().size()));
  registry.gauge("narad_quarantined_bytes").set(static_cast<double>(bytes));
}

Task<void> Node::Impl::count_orphans() {
  auto count = [&fs = env.fs, disks = data->disks()] { return count_unmarked_topics(fs, disks); };
  auto unmarked = co_await blocking(env, "unmarked topic directories", std::move(count));
  if (!unmarked) co_return;
  registry.gauge("narad_orphan_topic_dirs").set(static_cast<double>(unmarked.value()));
}

Task<void> Node::Impl::stop() {
  if (shutting_down) {  // somebody else stops it: wait for that
    while (!stopped) co_await stop_ended.wait();
    co_return;
  }
  shutting_down = true;
  NARAD_LOG_INFO(env.log, "node stopping");
  if (broker) broker->end_waits();  // long polls would hold the stop up for their whole wait
  if (plane) co_await plane->hand_over();
  if (server) co_await server->stop(config.http.shutdown_grace);
  co_await tasks.stop();
  co_await close_parts();
  stopped = true;
  stop_ended.notify_all();
  NARAD_LOG_INFO(env.log, "node stopped");
}

// In the reverse of the start order; whatever was opened, and only that.
Task<void> Node::Impl::close_parts() {
  if (security) co_await security->stop();
  if (moves) co_await moves->stop_working();
  if (dispatcher) co_await dispatcher->stop();
  if (broker) co_await broker->stop();
  if (wakes) co_await wakes->stop();
  if (drain) co_await drain->stop();
  if (plane) co_await plane->stop(kPeerGrace);
  if (moves) co_await moves->stop();
  if (ingress) {
    if (auto closed = co_await ingress->close(); !closed) {
      NARAD_LOG_WARN(env.log, "ingress WAL not closed cleanly; the next start checks it",
                     {"error", closed.error()});
    }
  }
  if (partitions) co_await partitions->close_all();
  if (metastore) co_await metastore->close();
  server.reset();
  api.reset();
  security.reset();
  dispatcher.reset();
  source.reset();
  wrapped_target.reset();
  broker.reset();
  drain.reset();
  wakes.reset();
  local.reset();
  ingress.reset();
  partitions.reset();
  moves.reset();
  alone.reset();
  metastore.reset();
  plane.reset();
  data.reset();
}

}  // namespace narad::node
