#include "internal/node/cluster_plane.h"

#include <algorithm>
#include <utility>

#include "internal/cluster/addresses.h"
#include "internal/node/peer_routes.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::node {
namespace {

std::map<std::string, Endpoint> peer_addresses(const Config& config, const std::string& self) {
  std::map<std::string, Endpoint> addresses;
  for (const ClusterPeer& peer : config.cluster.peers) {
    if (peer.id == self) continue;
    // The configuration was checked when it was read.
    if (auto at = parse_endpoint(peer.addr)) addresses.emplace(peer.id, at.value());
  }
  return addresses;
}

std::string own_peer_address(const Config& config, const std::string& self) {
  for (const ClusterPeer& peer : config.cluster.peers) {
    if (peer.id == self) return peer.addr;
  }
  return {};
}

cluster::BootstrapRules rules(const Config& config, const std::string& self) {
  std::vector<std::string> ids;
  for (const ClusterPeer& peer : config.cluster.peers) ids.push_back(peer.id);
  return cluster::rules_of(self, std::move(ids), config.cluster.initial_members,
                           config.cluster.bootstrap);
}

peer::PeersOptions peers_options(const Config& config) {
  peer::PeersOptions options;
  options.secret = config.cluster.secret;
  options.insecure = !config.security.enabled;
  return options;
}
peer::ServerOptions server_options(const Config& config) {
  peer::ServerOptions options;
  options.secret = config.cluster.secret;
  options.insecure = !config.security.enabled;
  return options;
}

constexpr Nanos kSilenceRound = std::chrono::seconds(3);

Task<http::Response> serve_proposal(metastore::Metastore* metastore, http::Request request) {
  // The caller waits no longer than its own deadline, which the server watches.
  constexpr Nanos kDeadline = std::chrono::seconds(30);
  http::Response response;
  response.body = co_await metastore->serve_forwarded(std::move(request.body), kDeadline);
  response.content_type = "application/octet-stream";
  co_return response;
}

}  // namespace

Result<void> ClusterPlane::check(const Config& config) {
  if (config.cluster.secret.empty() && config.security.enabled) {
    return Error(Errc::invalid_argument,
                 "cluster.peers names other nodes, but there is no secret by which they know each "
                 "other. Set NARAD_CLUSTER_SECRET to the same long random text on every node (make "
                 "one with: openssl rand -hex 32), or give security.enabled=false "
                 "(NARAD_SECURITY_ENABLED=false) if the network itself keeps strangers out.");
  }
  return ok();
}

namespace {

// All of it follows from three lengths of time, in the proportions of the defaults.
cluster::MembershipOptions membership_options(const Config& config) {
  const Config::Timing& timing = config.timing;
  cluster::MembershipOptions options;
  options.heartbeat.every = timing.heartbeat;
  options.heartbeat.deadline = timing.heartbeat * 4 / 5;
  options.heartbeat.retry = timing.heartbeat / 5;
  options.desk.round_deadline = timing.heartbeat * 3 / 5;
  options.liveness.dead_after = timing.dead_after;
  options.liveness.stamp_every = timing.dead_after / 3;
  options.liveness.absent_after = timing.dead_after / 2;
  options.controller.look = timing.dead_after / 30;
  options.controller.balancer.every = timing.dead_after / 3;
  options.controller.balancer.retry = timing.dead_after / 30;
  options.controller.balancer.hold_aborted = timing.dead_after * 10;
  options.controller.balancer.targets.dead_target_abort_after = timing.dead_after * 4;
  options.formation.every = timing.join_retry;
  options.formation.probe_deadline = timing.join_retry * 3 / 4;
  return options;
}

}  // namespace

ClusterPlane::ClusterPlane(Env& env, const Config& config, DataDir& data)
    : env_(env),
      config_(config),
      data_(data),
      boot_id_(to_hex16(env.random.next())),
      configured_(peer_addresses(config, data.identity().node_id)),
      peers_(env, peers_options(config), *this, *this),
      server_(env, server_options(config), *this),
      raft_lane_(env, peers_),
      owners_(peers_),
      options_(membership_options(config)) {}

ClusterPlane::~ClusterPlane() = default;

void ClusterPlane::attach(metastore::Metastore& metastore,
                          std::function<wire::DrainStatus()> drain) {
  metastore_ = &metastore;
  consensus_ = std::make_unique<cluster::RaftConsensus>(metastore);
  // It asks this object who this node is, so it cannot be made before the metastore is there.
  membership_.reset(new cluster::Membership(env_, *this, *consensus_, peers_,
                                            rules(config_, data_.identity().node_id), configured_,
                                            std::move(drain), options_));
  const cluster::BalancerOptions& balancer = options_.controller.balancer;
  cluster::OperationsOptions operations;
  operations.hold_aborted = balancer.hold_aborted;
  operations.targets = balancer.targets;
  operations.planner = balancer.planner;
  cluster::Operations::Parts parts{*consensus_, membership_->leadership(), data_.identity().node_id,
                                   &membership_->balancer(), &peers_};
  operations_ = std::make_unique<cluster::Operations>(env_, std::move(parts), operations);
}

Result<void> ClusterPlane::listen(LocalBroker& local, Wakes& wakes, MoveDesk moves) {
  NARAD_ASSERT(metastore_ != nullptr);
  membership_->add_routes(server_);
  operations_->add_routes(server_);
  add_broker_routes(server_, local, wakes);
  add_move_routes(server_, std::move(moves));
  peer::RaftLane::add_route(server_, [this](raft::Message m, const std::string& from) {
    metastore_->deliver(std::move(m), from);
  });
  peer::RouteOptions proposals;
  proposals.body_bytes_max = 8u << 20;
  // What was proposed may still be applied: an answer is worth waiting for.
  proposals.runs_to_its_end = true;
  server_.route(
      "POST /peer/v1/propose", peer::Lane::control,
      [this](peer::Sender, http::Request r) { return serve_proposal(metastore_, std::move(r)); },
      proposals);
  NARAD_TRY(Endpoint at, parse_endpoint(config_.cluster.addr));
  if (config_.security.cluster_tls_cert_file.empty())
    NARAD_LOG_WARN(env_.log,
                   "nodes talk to each other without TLS: whoever can read or change what passes "
                   "between them reads and changes messages; give security.cluster_tls_cert_file, "
                   "_key_file and _ca_file, or keep strangers out of that network",
                   {"cluster_addr", config_.cluster.addr});
  return server_.listen(at);
}

Task<void> ClusterPlane::hand_over() {
  if (membership_) (void)co_await membership_->hand_over();
}

Task<void> ClusterPlane::stop(Nanos grace) {
  if (membership_) co_await membership_->stop();
  co_await server_.stop(grace);
  co_await raft_lane_.stop();
  co_await peers_.stop();
}

// ---- the consensus to others -----------------------------------------------------------------

void ClusterPlane::send(const std::string& node, raft::Message message) {
  raft_lane_.send(node, std::move(message));
}

Task<Result<std::string>> ClusterPlane::forward(std::string leader, std::string body,
                                                Nanos deadline) {
  peer::Call call(http::Method::post, "/peer/v1/propose", std::move(body));
  NARAD_CO_TRY(auto response, co_await peers_.call(std::move(leader), peer::Lane::control,
                                                   std::move(call), deadline));
  if (response.status == 200) co_return std::move(response.body);
  // The plane itself refused it, or its deadline passed in the handler.
  const Errc code = response.status >= 500 ? Errc::unknown_outcome : Errc::unavailable;
  co_return Error(code, cat("the leader's node answered ", response.status, ": ", response.body));
}

Task<Result<wire::SilenceAnswer>> ClusterPlane::silence(std::string node) {
  const auto elsewhere = [this] {
    return Error(Errc::not_leader,
                 cat("this node does not lead the cluster; ", metastore_->leader().node, " may"));
  };
  const cluster::RaftView before = consensus_->raft();
  if (!before.leads) co_return elsewhere();
  NARAD_CO_TRY(co_await metastore_->barrier(kSilenceRound));
  const cluster::RaftView after = consensus_->raft();
  if (!after.leads || after.term != before.term) co_return elsewhere();
  const auto silent =
      std::chrono::duration_cast<std::chrono::milliseconds>(membership_->silence(node));
  wire::SilenceAnswer answer;
  answer.silent_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, silent.count()));
  answer.term = after.term;
  co_return answer;
}

cluster::BalancerReport ClusterPlane::balance() const {
  if (!consensus_->raft().leads) return {};
  return membership_->balancer().report();
}

api::ClusterInfo ClusterPlane::cluster_info() const {
  const raftnode::Status status = metastore_->raft_status();
  api::ClusterInfo info;
  info.leader = status.leader_node;
  for (const raft::Member& member : status.configuration.members()) {
    const bool leads = member.node == status.leader_node;
    info.roles[member.node] = leads                                    ? "leader"
                              : member.role == raft::MemberRole::voter ? "voter"
                                                                       : "non-voter";
  }
  return info;
}

// ---- who is who --------------------------------------------------------------------------------

peer::Sender ClusterPlane::identity() const {
  peer::Sender self;
  self.node_id = data_.identity().node_id;
  self.replica = metastore_ != nullptr ? metastore_->replica() : raft::ReplicaId(0);
  self.cluster_id = data_.identity().cluster_id;
  return self;
}

std::optional<raft::ReplicaId> ClusterPlane::configured_replica(const std::string& node) const {
  if (metastore_ == nullptr) return std::nullopt;
  const raftnode::Status status = metastore_->raft_status();
  const raft::Member* member = status.configuration.find_node(node);
  if (member == nullptr) return std::nullopt;
  return member->replica;
}

std::optional<Endpoint> ClusterPlane::address_of(const std::string& node) const {
  return membership_ ? membership_->address_of(node) : std::nullopt;
}

// ---- formation ---------------------------------------------------------------------------------

cluster::OwnDisk ClusterPlane::disk() const {
  const Identity& identity = data_.identity();
  cluster::OwnDisk own;
  own.node = identity.node_id;
  own.replica = metastore_->replica();
  own.raft_empty = metastore_->empty();
  own.cluster_id = identity.cluster_id;
  own.founding = identity.founding;
  own.joined = identity.joined;
  return own;
}

wire::MemberInfo ClusterPlane::member_info() const {
  const std::string& self = data_.identity().node_id;
  const std::string own = own_peer_address(config_, self);
  wire::MemberInfo info;
  info.id = self;
  info.replica = metastore_->replica();
  info.boot_id = boot_id_;
  info.http_addr = cluster::advertised(config_.http.addr, own, self);
  info.cluster_addr = cluster::advertised(config_.cluster.addr, own, self);
  for (const Disk& disk : data_.disks()) {
    if (disk.missing.empty()) info.disks.push_back(disk.id);
  }
  return info;
}

std::string ClusterPlane::leader() const { return metastore_->leader().node; }

Task<Result<>> ClusterPlane::adopt(std::uint64_t cluster_id, std::vector<raft::Member> founding) {
  Adoption adoption;
  adoption.cluster_id = cluster_id;
  adoption.joined = founding.empty();
  adoption.founding = std::move(founding);
  auto job = [&fs = env_.fs, root = data_.root(), identity = data_.identity(), adoption] {
    return DataDir::adopt_cluster(fs, root, identity, adoption);
  };
  NARAD_CO_TRY(auto identity, co_await blocking(env_, "adopt cluster", std::move(job)));
  data_.set_identity(std::move(identity));
  co_return ok();
}

Task<Result<>> ClusterPlane::found(std::vector<raft::Member> configuration) {
  NARAD_CO_TRY(auto made, raft::Configuration::make(std::move(configuration)));
  co_return co_await metastore_->found(std::move(made));
}

}  // namespace narad::node
