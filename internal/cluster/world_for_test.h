#pragma once
// For tests: nodes with real peer connections and real membership on simulated machines, over a
// consensus that is one object in the sky (the same tests over the real one: cluster_sim_test.cpp).
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "internal/cluster/addresses.h"
#include "internal/cluster/membership.h"
#include "internal/cluster/operations.h"
#include "internal/metastore/apply.h"
#include "internal/peer/server.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"

namespace narad::cluster::testing {

using namespace std::chrono_literals;

inline constexpr std::uint16_t kPort = 7943;

// What survives a node: its disk, and what its operator configured.
struct NodeSetup {
  std::string node;
  OwnDisk disk;
  std::string boot_id = "b0";
  std::string http_addr;
  std::string host;
  std::vector<std::string> peers;
  std::vector<std::string> initial_members;
  bool forced = false;
  bool started = false;  // form() has answered, and membership was started
  std::optional<Formed> formed;
};

class SkyConsensus;

// The group itself: applies at once, everywhere.
class Sky {
 public:
  metastore::State state;
  std::uint64_t term = 0;
  std::string leader;
  raft::Configuration configuration;
  std::set<ReplicaId> begun;  // replicas whose store holds the founding
  std::set<std::string> cut;  // nodes that neither hear nor are heard by Raft
  bool quorum = true;
  Nanos entry_takes = 2ms;
  std::uint64_t barriers = 0;
  bool checks = true;                  // of the state, after each entry; large ones take long
  std::vector<std::string> proposals;  // op names, in order
  // Called before an entry is applied; for races.
  std::function<void(const metastore::Command&)> before_apply;

  void elect(const std::string& node) {
    leader = node;
    ++term;
    tell_all();
  }
  void begin(const raft::Configuration& c, ReplicaId self) {
    if (configuration.empty()) configuration = c;
    begun.insert(self);
    std::size_t there = 0;
    for (ReplicaId v : configuration.voters()) there += begun.contains(v) ? 1 : 0;
    if (leader.empty() && there >= configuration.voter_count() / 2 + 1) {
      elect(configuration.find(*begun.begin())->node);
    }
  }
  metastore::CommandResult apply(const metastore::Command& c) {
    if (before_apply) before_apply(c);
    proposals.emplace_back(metastore::op_name(c));
    auto result = metastore::apply(state, state.applied.next(), c);
    if (checks) metastore::check_invariants(state);
    tell_all();
    return result;
  }
  void tell_all();
  std::map<std::string, SkyConsensus*> nodes;
};

class SkyConsensus final : public Consensus {
 public:
  SkyConsensus(Env& env, Sky& sky, NodeSetup& setup)
      : env_(env), sky_(sky), setup_(setup), changed_(env) {
    sky_.nodes[setup_.node] = this;
  }
  ~SkyConsensus() override {
    if (auto at = sky_.nodes.find(setup_.node); at != sky_.nodes.end() && at->second == this) {
      sky_.nodes.erase(at);
    }
  }
  bool member() const {
    const raft::Member* m = sky_.configuration.find_node(setup_.node);
    // A node without a cluster refuses what Raft sends it.
    return m != nullptr && m->replica == setup_.disk.replica && setup_.disk.cluster_id != 0 &&
           !sky_.cut.contains(setup_.node);
  }
  void tell() {
    if (member()) {
      view_ = std::make_shared<const metastore::State>(sky_.state);
      setup_.disk.raft_empty = false;
    }
    changed_.notify_all();
  }

  RaftView raft() const override {
    RaftView v;
    v.self = setup_.disk.replica;
    v.term = sky_.term;
    if (!member()) return v;
    v.configuration = sky_.configuration;
    v.leader = sky_.leader;
    v.leads = sky_.leader == setup_.node && sky_.quorum;
    for (const raft::Member& m : sky_.configuration.members()) {
      const auto at = sky_.nodes.find(m.node);
      if (at == sky_.nodes.end() || at->second->setup_.disk.replica != m.replica) continue;
      if (sky_.cut.contains(m.node)) continue;
      v.reachable.insert(m.replica);
      if (m.role == raft::MemberRole::learner) v.caught_up.push_back(m.replica);
    }
    return v;
  }
  bool caught_up() const override { return member() && !sky_.leader.empty(); }
  metastore::ViewPtr view() const override { return view_; }
  Event& changed() override { return changed_; }

  Task<Result<metastore::CommandResult>> propose(metastore::Command command) override {
    co_await sleep_for(env_, sky_.entry_takes);
    if (!member() || sky_.leader.empty() || !sky_.quorum) {
      co_return Error(Errc::unavailable, "no leader");
    }
    co_return sky_.apply(command);
  }
  Task<Result<RaftIndex>> barrier(Nanos) override {
    ++sky_.barriers;
    co_await sleep_for(env_, 1ms);
    if (!member() || sky_.leader.empty() || !sky_.quorum) {
      co_return Error(Errc::unavailable, "no majority confirmed the round");
    }
    co_return sky_.state.applied;
  }
  Task<Result<>> propose_change(raft::ConfigurationChange change) override {
    co_await sleep_for(env_, sky_.entry_takes);
    if (!raft().leads) co_return Error(Errc::not_leader, "not the leader");
    NARAD_CO_TRY(sky_.configuration, raft::apply(sky_.configuration, change));
    sky_.tell_all();
    co_return ok();
  }
  Task<Result<>> transfer_leadership(std::string node, Nanos) override {
    co_await sleep_for(env_, sky_.entry_takes);
    sky_.elect(node);
    co_return ok();
  }

 private:
  Env& env_;
  Sky& sky_;
  NodeSetup& setup_;
  metastore::ViewPtr view_ = std::make_shared<const metastore::State>();
  Event changed_;
};

inline void Sky::tell_all() {
  for (auto& [id, node] : nodes) node->tell();
}

class TestNode final : public FormationHost, public peer::Self, public peer::AddressBook {
 public:
  TestNode(Env& env, Sky& sky, NodeSetup& setup)
      : env(env),
        sky(sky),
        setup(setup),
        consensus(env, sky, setup),
        peers(env, peers_options(), *this, *this),
        server(env, server_options(), *this),
        membership(env, *this, consensus, peers,
                   rules_of(setup.node, setup.peers, setup.initial_members, setup.forced),
                   configured(), [this] { return drain; }),
        operations(
            env, {consensus, membership.leadership(), setup.node, &membership.balancer(), &peers}),
        group(env) {
    membership.add_routes(server);
    operations.add_routes(server);
    auto listening = server.listen(Endpoint{"", kPort});
    NARAD_ASSERT(listening.has_value());
    setup.started = false;
    setup.formed.reset();
    consensus.tell();
    group.spawn("form", form(this));
  }

  // ---- FormationHost
  OwnDisk disk() const override { return setup.disk; }
  wire::MemberInfo member_info() const override {
    return {setup.node,      setup.disk.replica,          setup.boot_id,
            setup.http_addr, cat(setup.host, ":", kPort), {"d1"}};
  }
  std::string leader() const override { return consensus.leader_node(); }
  std::string data_dir() const override { return "/data"; }
  Task<Result<>> adopt(std::uint64_t cluster_id, std::vector<raft::Member> founding) override {
    co_await sleep_for(env, 1ms);
    setup.disk.cluster_id = cluster_id;
    setup.disk.joined = founding.empty();
    setup.disk.founding = std::move(founding);
    co_return ok();
  }
  Task<Result<>> found(std::vector<raft::Member> configuration) override {
    co_await sleep_for(env, 1ms);
    setup.disk.raft_empty = false;
    sky.begin(raft::Configuration::make(std::move(configuration)).value(), setup.disk.replica);
    consensus.tell();
    co_return ok();
  }

  // ---- Self, AddressBook
  peer::Sender identity() const override {
    return {setup.node, setup.disk.replica, setup.disk.cluster_id};
  }
  std::optional<ReplicaId> configured_replica(const std::string& node) const override {
    const RaftView raft = consensus.raft();
    const raft::Member* m = raft.configuration.find_node(node);
    if (m == nullptr) return std::nullopt;
    return m->replica;
  }
  std::optional<Endpoint> address_of(const std::string& node) const override {
    return membership.address_of(node);
  }

  Env& env;
  Sky& sky;
  NodeSetup& setup;
  wire::DrainStatus drain;
  SkyConsensus consensus;
  peer::Peers peers;
  peer::Server server;
  Membership membership;
  Operations operations;
  TaskGroup group;

 private:
  static peer::PeersOptions peers_options() {
    peer::PeersOptions o;
    o.secret = "secret";
    return o;
  }
  static peer::ServerOptions server_options() {
    peer::ServerOptions o;
    o.secret = "secret";
    return o;
  }
  std::map<std::string, Endpoint> configured() const {
    std::map<std::string, Endpoint> out;
    for (const std::string& p : setup.peers) out[p] = Endpoint{cat("host-", p), kPort};
    return out;
  }
  static Task<void> form(TestNode* n) {
    auto formed = co_await n->membership.form();
    NARAD_ASSERT(formed.has_value(), formed.error().text());
    n->setup.formed = formed.value();
    if (formed.value() == Formed::removed) co_return;
    n->membership.start();
    n->setup.started = true;
  }
};

// n1, n2, … each on its machine host-n1, host-n2, …
class World {
 public:
  explicit World(int nodes, std::uint64_t seed = 1, int configured = 0) : sim(seed), net(sim) {
    std::vector<std::string> ids;
    for (int i = 1; i <= (configured != 0 ? configured : nodes); ++i) ids.push_back(cat("n", i));
    for (int i = 1; i <= nodes; ++i) add(cat("n", i), ids);
  }
  void add(const std::string& id, std::vector<std::string> peers) {
    auto setup = std::make_unique<NodeSetup>();
    setup->node = id;
    setup->host = cat("host-", id);
    setup->http_addr = cat(setup->host, ":7942");
    setup->peers = std::move(peers);
    setups[id] = std::move(setup);
    wipe(id);
    machines[id] = std::make_unique<sim::Machine>(sim, net, static_cast<int>(machines.size()),
                                                  cat("host-", id));
  }
  // A disk without anything on it.
  void wipe(const std::string& id) {
    NodeSetup& s = setup(id);
    s.disk = OwnDisk{};
    s.disk.node = id;
    s.disk.replica = ReplicaId(++last_replica_);
  }
  void boot(const std::string& id) {
    NodeSetup& s = setup(id);
    s.boot_id = cat("b", ++boots_);
    machine(id).boot([this, &s](Env& env) { return std::make_shared<TestNode>(env, sky, s); });
  }
  void boot_all() {
    for (auto& [id, m] : machines) boot(id);
  }
  // The process dies; if it led, nobody leads until elect().
  void kill(const std::string& id) {
    machine(id).kill(sim::Machine::Kill::power_cut);
    if (sky.leader == id) {
      sky.leader.clear();
      sky.tell_all();
    }
  }
  bool until(const std::function<bool()>& done, Nanos limit = 60s) {
    return sim.run_until(done, limit);
  }
  bool all_started() {
    for (auto& [id, s] : setups) {
      if (machine(id).up() && !s->started) return false;
    }
    return true;
  }
  bool all_registered() {
    for (auto& [id, s] : setups) {
      if (machine(id).up() && !sky.state.members.contains(id)) return false;
    }
    return true;
  }
  // Boots all and waits until they are members.
  bool form() {
    boot_all();
    return until([&] { return all_started() && all_registered(); });
  }
  NodeSetup& setup(const std::string& id) { return *setups.at(id); }
  sim::Machine& machine(const std::string& id) { return *machines.at(id); }
  TestNode& node(const std::string& id) { return machine(id).component<TestNode>(); }
  const metastore::Member* member(const std::string& id) { return sky.state.members.find(id); }
  std::string configuration() { return raft::describe(sky.configuration); }
  std::string roles() {
    std::map<std::string, std::string> by_node;
    for (const raft::Member& m : sky.configuration.members()) {
      by_node[m.node] = m.role == raft::MemberRole::voter ? "" : "L";
    }
    std::string out;
    for (const auto& [id, role] : by_node) out += cat(out.empty() ? "" : " ", id, role);
    return out;
  }

  sim::Sim sim;
  sim::SimNet net;
  Sky sky;
  std::map<std::string, std::unique_ptr<NodeSetup>> setups;
  std::map<std::string, std::unique_ptr<sim::Machine>> machines;

 private:
  std::uint64_t last_replica_ = 0x100;
  int boots_ = 0;
};

}  // namespace narad::cluster::testing
