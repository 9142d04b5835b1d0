// Membership as it runs: real metastores over real Raft, on simulated disks and connections. First
// directed situations, each named after what went wrong elsewhere; then random faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/cluster/addresses.h"
#include "internal/cluster/membership.h"
#include "internal/cluster/raft_consensus.h"
#include "internal/peer/raft_lane.h"
#include "internal/peer/server.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"

namespace narad::cluster {
namespace {

using namespace std::chrono_literals;
using metastore::MemberStatus;
using ::testing::HasSubstr;

constexpr std::uint16_t kPort = 7943;

struct Setup {
  std::string node;
  std::vector<std::string> peers;
  std::string http_addr;
  std::map<std::string, std::uint16_t> ports;  // in cluster.peers, where not kPort
  std::uint16_t port = kPort;                  // of its own
  int life = 0;                                // of the disk: another directory after each wipe
  std::uint64_t cluster_id = 0;
  std::vector<raft::Member> founding;
  bool joined = false;
  bool started = false;
  std::optional<Formed> formed;
  int boots = 0;
};

class Node final : public FormationHost,
                   public peer::Self,
                   public peer::AddressBook,
                   public metastore::Forwarder,
                   public raftnode::Transport {
 public:
  Node(Env& env, Setup& setup)
      : env(env),
        setup(setup),
        peers(env, secret<peer::PeersOptions>(), *this, *this),
        lane(env, peers),
        server(env, secret<peer::ServerOptions>(), *this),
        group(env) {
    setup.started = false;
    ++setup.boots;
    group.spawn("run", run(this));
  }

  metastore::ViewPtr view() const { return store->view(); }
  bool leads() const { return store != nullptr && consensus->raft().leads; }

  // ---- FormationHost
  OwnDisk disk() const override {
    OwnDisk own;
    own.node = setup.node;
    own.replica = store->replica();
    own.raft_empty = store->empty();
    own.cluster_id = setup.cluster_id;
    own.founding = setup.founding;
    own.joined = setup.joined;
    return own;
  }
  wire::MemberInfo member_info() const override {
    return {setup.node,
            store->replica(),
            cat("boot", setup.boots),
            setup.http_addr,
            cat(setup.node, ":", setup.port),
            {"d1"}};
  }
  std::string leader() const override { return store->leader().node; }
  std::string data_dir() const override { return "/data"; }
  Task<Result<>> adopt(std::uint64_t cluster_id, std::vector<raft::Member> founding) override {
    co_await sleep_for(env, 1ms);
    setup.cluster_id = cluster_id;
    setup.joined = founding.empty();
    setup.founding = std::move(founding);
    co_return ok();
  }
  Task<Result<>> found(std::vector<raft::Member> configuration) override {
    NARAD_CO_TRY(auto made, raft::Configuration::make(std::move(configuration)));
    co_return co_await store->found(std::move(made));
  }

  // ---- Self, AddressBook
  peer::Sender identity() const override {
    return {setup.node, store ? store->replica() : ReplicaId(), setup.cluster_id};
  }
  std::optional<ReplicaId> configured_replica(const std::string& node) const override {
    if (!store) return std::nullopt;
    const raftnode::Status status = store->raft_status();
    const raft::Member* m = status.configuration.find_node(node);
    if (m == nullptr) return std::nullopt;
    return m->replica;
  }
  std::optional<Endpoint> address_of(const std::string& node) const override {
    return membership ? membership->address_of(node) : std::nullopt;
  }

  // ---- Forwarder, Transport
  Task<Result<std::string>> forward(std::string leader, std::string body, Nanos deadline) override {
    peer::Call call(http::Method::post, "/peer/v1/propose", std::move(body));
    NARAD_CO_TRY(auto response, co_await peers.call(std::move(leader), peer::Lane::control,
                                                    std::move(call), deadline));
    if (response.status != 200) co_return Error(Errc::unavailable, response.body);
    co_return std::move(response.body);
  }
  void send(const std::string& node, raft::Message message) override {
    lane.send(node, std::move(message));
  }

  Env& env;
  Setup& setup;
  peer::Peers peers;
  peer::RaftLane lane;
  peer::Server server;
  std::unique_ptr<metastore::Metastore> store;
  std::unique_ptr<RaftConsensus> consensus;
  std::unique_ptr<Membership> membership;
  TaskGroup group;

 private:
  template <class Options>
  static Options secret() {
    Options o;
    o.secret = "secret";
    return o;
  }
  std::map<std::string, Endpoint> configured() const {
    std::map<std::string, Endpoint> out;
    for (const std::string& p : setup.peers) {
      const auto port = setup.ports.find(p);
      out[p] = Endpoint{p, port == setup.ports.end() ? kPort : port->second};
    }
    return out;
  }
  static Task<http::Response> propose(Node* n, http::Request r) {
    http::Response response;
    response.body = co_await n->store->serve_forwarded(std::move(r.body), 5s);
    co_return response;
  }
  static Task<void> run(Node* n) {
    metastore::MetastoreOptions options;
    options.node_id = n->setup.node;
    options.found_alone = false;
    options.raft.transport = n;
    options.raft.promote_learners = false;
    options.forwarder = n;
    auto opened = co_await metastore::Metastore::open(
        n->env, cat("/data", n->setup.life, "/metastore"), std::move(options));
    NARAD_ASSERT(opened.has_value(), opened.error().text());
    n->store = std::move(opened.value());
    n->consensus = std::make_unique<RaftConsensus>(*n->store);
    n->membership = std::make_unique<Membership>(
        n->env, *n, *n->consensus, n->peers, rules_of(n->setup.node, n->setup.peers, {}, false),
        n->configured(), [] { return wire::DrainStatus{}; });
    n->membership->add_routes(n->server);
    peer::RaftLane::add_route(n->server, [n](raft::Message m, const std::string& from) {
      n->store->deliver(std::move(m), from);
    });
    n->server.route("POST /peer/v1/propose", peer::Lane::control,
                    [n](peer::Sender, http::Request r) { return propose(n, std::move(r)); });
    auto listening = n->server.listen(Endpoint{"", n->setup.port});
    NARAD_ASSERT(listening.has_value());
    auto formed = co_await n->membership->form();
    NARAD_ASSERT(formed.has_value(), formed.error().text());
    n->setup.formed = formed.value();
    if (formed.value() == Formed::removed) co_return;
    n->membership->start();
    n->setup.started = true;
  }
};

class Cluster {
 public:
  explicit Cluster(int nodes, std::uint64_t seed = 1) : sim(seed), net(sim) {
    std::vector<std::string> ids;
    for (int i = 1; i <= nodes; ++i) ids.push_back(cat("n", i));
    for (const std::string& id : ids) add(id, ids);
  }
  void add(const std::string& id, std::vector<std::string> peers) {
    auto s = std::make_unique<Setup>();
    s->node = id;
    s->peers = std::move(peers);
    s->http_addr = cat(id, ":7942");
    setups[id] = std::move(s);
    machines[id] = std::make_unique<sim::Machine>(sim, net, static_cast<int>(machines.size()), id);
  }
  Setup& setup(const std::string& id) { return *setups.at(id); }
  sim::Machine& machine(const std::string& id) { return *machines.at(id); }
  Node& node(const std::string& id) { return machine(id).component<Node>(); }
  bool ready(const std::string& id) {
    return machine(id).up() && node(id).membership && setup(id).started;
  }
  void boot(const std::string& id) {
    Setup& s = setup(id);
    machine(id).boot([&s](Env& env) { return std::make_shared<Node>(env, s); });
  }
  void boot_all() {
    for (auto& [id, m] : machines) {
      if (!m->up()) boot(id);
    }
  }
  void kill(const std::string& id) { machine(id).kill(sim::Machine::Kill::power_cut); }
  void wipe(const std::string& id) {
    Setup& s = setup(id);
    ++s.life;
    s.cluster_id = 0;
    s.founding.clear();
    s.joined = false;
  }
  bool until(const std::function<bool()>& done, Nanos limit = 60s) {
    return sim.run_until(done, limit);
  }
  std::string leader() {
    for (auto& [id, m] : machines) {
      if (m->up() && !m->paused() && node(id).leads()) return id;
    }
    return {};
  }
  // What the node that leads holds; null while nobody does.
  metastore::ViewPtr truth() {
    const std::string id = leader();
    return id.empty() ? nullptr : node(id).view();
  }
  bool alive(const std::string& id) {
    const metastore::ViewPtr view = truth();
    const metastore::Member* m = view ? view->members.find(id) : nullptr;
    return m != nullptr && m->status == MemberStatus::alive;
  }
  bool dead(const std::string& id) {
    const metastore::ViewPtr view = truth();
    const metastore::Member* m = view ? view->members.find(id) : nullptr;
    return m != nullptr && m->status == MemberStatus::dead;
  }
  std::string roles() {
    const std::string id = leader();
    if (id.empty()) return "no leader";
    const raft::Configuration c = node(id).consensus->raft().configuration;
    std::map<std::string, std::string> by_node;
    for (const raft::Member& m : c.members()) {
      by_node[m.node] = m.role == raft::MemberRole::voter ? "" : "L";
    }
    std::string out;
    for (const auto& [n, role] : by_node) out += cat(out.empty() ? "" : " ", n, role);
    return out;
  }
  bool all_well() {
    for (auto& [id, m] : machines) {
      if (!m->up()) continue;
      if (!ready(id) || !alive(id) || !node(id).membership->why_not_ready().empty()) return false;
    }
    return !leader().empty();
  }
  bool form() {
    boot_all();
    return until([&] { return all_well(); }, 2min);
  }
  // Proposes through a node, and waits for its outcome.
  Result<metastore::CommandResult> propose(const std::string& id, metastore::Command command) {
    auto out = std::make_shared<std::optional<Result<metastore::CommandResult>>>();
    node(id).group.spawn("propose", propose_on(&node(id), std::move(command), out));
    if (!until([&] { return out->has_value(); }, 30s)) {
      return Error(Errc::internal, "no outcome");
    }
    return **out;
  }
  // Drains, empties (there is nothing) and lets go of a member.
  void decommission(const std::string& via, const std::string& id) {
    auto drained = propose(via, metastore::SetDraining{id, true});
    NARAD_ASSERT(drained.has_value() && drained.value().done());
    const RaftIndex drain = std::get<metastore::Member>(drained.value().row).drain_id;
    auto leaving = propose(via, metastore::Leaving{id, drain});
    NARAD_ASSERT(leaving.has_value() && leaving.value().done(), leaving.value().text);
  }
  // Whether the voters that are up and well, without that node, are a majority.
  bool healthy_without(const std::string& victim) {
    const std::string lead = leader();
    if (lead.empty() || lead == victim || !all_well()) return false;
    const RaftView raft = node(lead).consensus->raft();
    std::size_t there = 0;
    for (const raft::Member& m : raft.configuration.members()) {
      const bool votes = m.role == raft::MemberRole::voter && m.node != victim;
      if (votes && machine(m.node).up() && !machine(m.node).paused() &&
          raft.reachable.contains(m.replica)) {
        ++there;
      }
    }
    return there >= raft.configuration.voter_count() / 2 + 1;
  }
  // For a failed test: what each node says.
  std::string state() {
    std::string out = cat(roles(), "\n");
    for (auto& [id, m] : machines) {
      out += cat(id, ": ");
      if (!m->up() || !node(id).membership) {
        out += "not up\n";
        continue;
      }
      const raftnode::Status s = node(id).store->raft_status();
      out += cat(to_string(s.role), " term ", s.term, " commit ", s.commit, " last ", s.last, " [",
                 raft::describe(s.configuration), "] self ", s.replica, " cluster ",
                 to_hex16(setup(id).cluster_id), s.fault ? s.fault->text() : "", "\n");
      for (const std::string& why : node(id).membership->why_not_ready()) {
        out += cat("    ", why, "\n");
      }
    }
    return out;
  }
  std::set<std::uint64_t> cluster_ids() {
    std::set<std::uint64_t> ids;
    for (auto& [id, s] : setups) {
      if (s->cluster_id != 0) ids.insert(s->cluster_id);
    }
    return ids;
  }

  sim::Sim sim;
  sim::SimNet net;
  std::map<std::string, std::unique_ptr<Setup>> setups;
  std::map<std::string, std::unique_ptr<sim::Machine>> machines;

 private:
  static Task<void> propose_on(
      Node* n, metastore::Command command,
      std::shared_ptr<std::optional<Result<metastore::CommandResult>>> out) {
    auto result = co_await n->store->propose(std::move(command));
    out->emplace(std::move(result));
  }
};

std::string another(const std::string& leader, std::initializer_list<const char*> ids) {
  for (const char* id : ids) {
    if (leader != id) return id;
  }
  return {};
}

TEST(ClusterSim, ThreeEmptyNodes_AreReadySoon) {
  Cluster c(3);
  c.boot_all();
  ASSERT_TRUE(c.until([&] { return c.all_well(); }, 20s));
  EXPECT_EQ(c.roles(), "n1 n2 n3");
  EXPECT_EQ(c.cluster_ids().size(), 1u);
  EXPECT_EQ(c.truth()->cluster_id, to_hex16(*c.cluster_ids().begin()));
}

TEST(ClusterSim, LoneNode_FoundsAndIsReady) {
  Cluster c(0);
  c.add("n1", {});
  c.boot_all();
  ASSERT_TRUE(c.until([&] { return c.all_well(); }, 5s));
  EXPECT_EQ(c.roles(), "n1");
}

TEST(ClusterSim, Trap28_Newcomers_BeginAsNonVotersAndMakeTheNumberOdd) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  c.add("n4", {"n1", "n2", "n3", "n4"});
  c.boot("n4");
  ASSERT_TRUE(c.until([&] { return c.all_well(); }));
  c.sim.run_for(15s);
  EXPECT_EQ(c.roles(), "n1 n2 n3 n4L");
  c.add("n5", {"n1", "n2", "n3", "n5"});
  c.boot("n5");
  ASSERT_TRUE(c.until([&] { return c.roles() == "n1 n2 n3 n4 n5"; })) << c.roles();
}

TEST(ClusterSim, EmptiedDisk_RejoinsAsANewReplicaAndVotesAgain) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  const std::string victim = another(c.leader(), {"n3", "n2"});
  const ReplicaId old = c.node(victim).store->replica();
  c.kill(victim);
  c.wipe(victim);
  c.boot(victim);
  ASSERT_TRUE(c.until([&] { return c.all_well() && c.roles() == "n1 n2 n3"; })) << c.roles();
  EXPECT_NE(c.node(victim).store->replica(), old);
  EXPECT_EQ(c.setup(victim).formed, Formed::joined);
}

TEST(ClusterSim, Trap34_WipedMajority_FoundsNoSecondCluster) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  const std::uint64_t id = c.setup("n3").cluster_id;
  for (const char* n : {"n1", "n2", "n3"}) c.kill(n);
  c.wipe("n1");
  c.wipe("n2");
  c.boot("n1");
  c.boot("n2");
  c.sim.run_for(1min);
  EXPECT_EQ(c.cluster_ids(), (std::set<std::uint64_t>{id})) << "only n3 has one";
  c.boot("n3");
  c.sim.run_for(1min);
  EXPECT_EQ(c.cluster_ids(), (std::set<std::uint64_t>{id}));
  EXPECT_EQ(c.leader(), "") << "its majority is gone, and nobody pretends otherwise";
  EXPECT_THAT(c.node("n1").membership->why_not_ready().at(0), HasSubstr("joining cluster"));
  EXPECT_THAT(c.node("n3").membership->why_not_ready().at(0), HasSubstr("has had no leader"));
}

TEST(ClusterSim, NewAddresses_AreKnownEverywhere) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  c.kill("n2");
  c.setup("n2").http_addr = "elsewhere:80";
  c.boot("n2");
  ASSERT_TRUE(c.until([&] {
    for (const char* n : {"n1", "n2", "n3"}) {
      if (!c.ready(n)) return false;
      const metastore::Member* m = c.node(n).view()->members.find("n2");
      if (m == nullptr || m->http_addr != "elsewhere:80") return false;
    }
    return true;
  }));
}

// All at once, so that what every node remembers of the others is wrong: cluster.peers is right.
TEST(ClusterSim, AllNodesMovedAtOnce_FindEachOtherByTheirConfiguration) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  for (const char* n : {"n1", "n2", "n3"}) c.kill(n);
  for (const char* n : {"n1", "n2", "n3"}) {
    c.setup(n).port = 9000;
    c.setup(n).ports = {{"n1", 9000}, {"n2", 9000}, {"n3", 9000}};
  }
  c.boot_all();
  ASSERT_TRUE(c.until([&] { return c.all_well(); })) << c.state();
  EXPECT_EQ(c.truth()->members.find("n2")->cluster_addr, "n2:9000");
}

TEST(ClusterSim, EmptiedDiskWhoseLeaderIsNoConfiguredPeer_LearnsItsAddress) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  for (const char* n : {"n4", "n5"}) {
    c.add(n, {"n1", "n2", "n3", n});
    c.boot(n);
  }
  ASSERT_TRUE(c.until([&] { return c.roles() == "n1 n2 n3 n4 n5"; })) << c.state();
  auto handed = std::make_shared<bool>(false);
  const std::string first = c.leader();
  struct HandOver {
    static Task<void> run(Node* n, std::shared_ptr<bool> done) {
      *done = (co_await n->store->transfer_leadership("n5", 1s)).has_value();
    }
  };
  c.node(first).group.spawn("hand over", HandOver::run(&c.node(first), handed));
  ASSERT_TRUE(c.until([&] { return c.leader() == "n5"; }, 5s)) << c.state();
  c.kill("n1");
  c.wipe("n1");
  c.boot("n1");
  ASSERT_TRUE(c.until([&] { return c.all_well(); })) << c.state();
}

TEST(ClusterSim, Trap27_NewLeader_MarksNobodyOnInheritedStamps) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  // No majority for long: no stamp is written for minutes.
  const std::string first = c.leader();
  const std::string second = another(first, {"n1", "n2"});
  c.kill(first);
  c.kill(second);
  c.sim.run_for(5min);
  c.boot(second);
  ASSERT_TRUE(c.until([&] { return !c.leader().empty(); }));
  c.sim.run_for(20s);
  EXPECT_TRUE(c.alive(first)) << "silent, but not for thirty seconds of this leader";
  ASSERT_TRUE(c.until([&] { return c.dead(first); }, 20s));
  c.boot(first);
  ASSERT_TRUE(c.until([&] { return c.alive(first); }, 20s));
}

TEST(ClusterSim, Trap27_PausedMember_IsMarkedDeadAndRevivedBeforeItIsAnswered) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  const std::string victim = another(c.leader(), {"n3", "n2"});
  c.machine(victim).pause();
  ASSERT_TRUE(c.until([&] { return c.dead(victim); }, 50s));
  const RaftIndex mark = c.truth()->members.find(victim)->dead_mark;
  c.machine(victim).resume();
  ASSERT_TRUE(c.until([&] {
    const auto& last = c.node(victim).membership->heartbeats().last();
    return last && last->index > mark;
  }));
  EXPECT_TRUE(c.alive(victim));
}

TEST(ClusterSim, LeaderKilled_AnotherLeadsAndHeartbeatsGoOn) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  const std::string first = c.leader();
  const std::string other = another(first, {"n1", "n2"});
  const Nanos before = c.machine(other).clock().boot();
  c.kill(first);
  const Nanos killed = c.sim.now();
  ASSERT_TRUE(c.until([&] { return !c.leader().empty(); }, 10s));
  EXPECT_LE(c.sim.now() - killed, 3s);
  ASSERT_TRUE(c.until(
      [&] {
        const auto& last = c.node(other).membership->heartbeats().last();
        return last && last->sent_boot > before;
      },
      10s));
  EXPECT_TRUE(c.alive(first)) << "it was killed a moment ago";
}

TEST(ClusterSim, Stop_HandsLeadershipOverWithinHalfASecond) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  const std::string first = c.leader();
  struct Stop {
    static Task<void> run(Node* n, std::shared_ptr<bool> handed) {
      *handed = co_await n->membership->hand_over();
    }
  };
  auto handed = std::make_shared<bool>(false);
  c.node(first).group.spawn("hand over", Stop::run(&c.node(first), handed));
  ASSERT_TRUE(c.until([&] { return *handed; }, 500ms));
  c.kill(first);
  ASSERT_TRUE(c.until([&] { return !c.leader().empty(); }, 500ms));
}

TEST(ClusterSim, Trap33_RemovedMember_IsToldAndNeverComesBack) {
  Cluster c(4);
  ASSERT_TRUE(c.form());
  const std::string victim = another(c.leader(), {"n4", "n3"});
  c.decommission(c.leader(), victim);
  ASSERT_TRUE(c.until([&] { return c.truth() && c.truth()->tombstones.contains(victim); }));
  ASSERT_TRUE(c.until([&] { return !c.machine(victim).up(); }, 30s));
  c.sim.run_for(1s);
  for (bool wiped : {false, true}) {
    if (wiped) c.wipe(victim);
    c.boot(victim);
    ASSERT_TRUE(c.until([&] { return !c.machine(victim).up(); }, 60s)) << wiped;
    EXPECT_EQ(c.machine(victim).last_exit()->code, kExitRemoved);
    EXPECT_THAT(c.machine(victim).last_exit()->why, HasSubstr("was removed from its cluster at"));
    c.sim.run_for(1s);
  }
  EXPECT_EQ(c.truth()->members.size(), 3u);
}

TEST(ClusterSim, Trap36_LeaderThatIsRemoved_GivesWayAndNothingAnsweredIsLost) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  const std::string first = c.leader();
  metastore::CreateTopic topic;
  topic.name = "orders";
  topic.incarnation = Incarnation(7);
  topic.partitions = 1;
  topic.max_in_flight_per_partition = topic.max_acked_ahead_per_partition = 1;
  auto drained = c.propose(first, metastore::SetDraining{first, true});
  ASSERT_TRUE(drained && drained.value().done());
  auto created = c.propose(first, topic);
  ASSERT_TRUE(created && created.value().done());
  const RaftIndex drain = std::get<metastore::Member>(drained.value().row).drain_id;
  auto leaving = c.propose(first, metastore::Leaving{first, drain});
  ASSERT_TRUE(leaving && leaving.value().done()) << leaving.value().text;
  ASSERT_TRUE(c.until([&] {
    const metastore::ViewPtr view = c.truth();
    return c.leader() != first && view && view->tombstones.contains(first);
  }));
  EXPECT_TRUE(c.truth()->topics.contains("orders"));
  EXPECT_EQ(c.roles().find(first), std::string::npos);
}

TEST(ClusterSim, UnassignedPartitions_AreGivenOutByTheLeader) {
  Cluster c(3);
  ASSERT_TRUE(c.form());
  const std::string leader = c.leader();
  for (const char* id : {"n1", "n2", "n3"}) {
    ASSERT_TRUE(c.propose(leader, metastore::SetDraining{id, true}));
  }
  metastore::CreateTopic topic;
  topic.name = "orders";
  topic.incarnation = Incarnation(7);
  topic.partitions = 6;
  topic.max_in_flight_per_partition = topic.max_acked_ahead_per_partition = 1;
  ASSERT_TRUE(c.propose(leader, topic));
  c.sim.run_for(5s);
  EXPECT_EQ(c.truth()->topics.find("orders")->assignments[0].owner_node, "") << "all are draining";
  ASSERT_TRUE(c.propose(leader, metastore::SetDraining{"n2", false}));
  ASSERT_TRUE(c.until(
      [&] {
        const metastore::ViewPtr view = c.truth();
        if (!view) return false;
        for (const auto& a : view->topics.find("orders")->assignments) {
          if (a.owner_node != "n2") return false;
        }
        return true;
      },
      15s));
}

// Kills, cuts, pauses, wiped minorities and newcomers; then everything heals, and all are members
// of the one cluster, agree, and an odd number votes.
void random_faults(std::uint64_t seed) {
  Cluster c(3, seed);
  sim::Rng rng = c.sim.stream("plan");
  c.boot_all();
  c.until([&] { return c.all_well(); }, Nanos(1ms) * static_cast<int>(rng.below(12'000)));
  std::string wiped;  // whose disk was lost, until it votes again or is replaced
  for (int i = 0; i < 12; ++i) {
    const std::string victim = cat("n", 1 + rng.below(c.machines.size()));
    const std::uint64_t kind = rng.below(10);
    const std::uint64_t wipe_odds = rng.below(3);
    sim::Machine& m = c.machine(victim);
    if (kind < 4 && m.up()) {
      m.kill(kind < 2 ? sim::Machine::Kill::power_cut : sim::Machine::Kill::process_exit);
      // One disk is lost at a time, and only while the cluster can heal that.
      if (wipe_odds == 0 && wiped.empty() && c.healthy_without(victim)) {
        c.wipe(victim);
        wiped = victim;
      }
    } else if (kind < 6) {
      c.net.partition({m.id()});
    } else if (kind == 6 && m.up() && !m.paused()) {
      m.pause();
    } else if (kind == 7 && c.machines.size() < 5) {
      const std::string id = cat("n", c.machines.size() + 1);
      c.add(id, {"n1", "n2", "n3", id});
    } else {
      c.net.heal();
    }
    c.sim.run_for(Nanos(1ms) * static_cast<int>(rng.below(9'000)));
    for (auto& [id, machine] : c.machines) {
      const bool again = rng.below(2) == 0;
      if (!again) continue;
      if (machine->up() && machine->paused()) machine->resume();
      if (!machine->up()) c.boot(id);
    }
    if (!wiped.empty() && c.ready(wiped) && c.all_well()) wiped.clear();
  }
  c.net.heal();
  for (auto& [id, machine] : c.machines) {
    if (machine->up() && machine->paused()) machine->resume();
  }
  c.boot_all();
  ASSERT_TRUE(c.until([&] { return c.all_well(); }, 3min)) << "seed " << seed << " " << c.state();
  const std::size_t voters = c.machines.size() >= 5 ? 5 : 3;
  ASSERT_TRUE(c.until(
      [&] {
        const std::string roles = c.roles();
        const auto learners = static_cast<std::size_t>(std::count(roles.begin(), roles.end(), 'L'));
        return c.machines.size() - learners == voters && roles != "no leader";
      },
      1min))
      << "seed " << seed << " " << c.roles();
  ASSERT_EQ(c.cluster_ids().size(), 1u) << "seed " << seed;
  c.sim.run_for(5s);
  for (auto& [id, m] : c.machines) {
    metastore::check_invariants(*c.node(id).view());
    ASSERT_EQ(c.node(id).view()->members.size(), c.machines.size()) << "seed " << seed;
  }
}

TEST(ClusterSim, RandomFaults_EndInOneHealthyCluster) {
#ifdef NDEBUG
  constexpr std::uint64_t kSeeds = 40;
#else
  constexpr std::uint64_t kSeeds = 4;
#endif
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ASSERT_NO_FATAL_FAILURE(random_faults(seed)) << "seed " << seed;
  }
}

// A disk was lost and a newcomer led, whose address the emptied node's configuration does not have:
// it was admitted, heard its leader, and could never answer.
TEST(ClusterSim, FoundSeed_NewcomerThatCouldNotAnswerItsLeader) { random_faults(31); }

}  // namespace
}  // namespace narad::cluster
