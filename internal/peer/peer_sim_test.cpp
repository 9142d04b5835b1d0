// Three nodes call each other on all lanes while links are cut both ways and one way, connections
// are reset in the middle of whatever they carry, machines die loudly and silently and come back,
// links are slow, and addresses change. What must hold: a call that was answered `unavailable` was
// never executed, not even later; no call was executed twice; an answer belongs to its call; every
// call ends by its deadline; and when the faults are over, every call succeeds.
#include <set>

#include "internal/peer/test_cluster.h"

namespace narad::peer {
namespace {

using namespace testing;

struct Counts {
  std::map<std::string, std::size_t> outcomes;
  std::uint64_t resets = 0, refused = 0;
};

struct World {
  std::map<std::string, int> executed;  // by body
  std::set<std::string> unavailable;    // bodies of calls that were answered so, or 403
  std::map<std::string, std::size_t> outcomes;
  std::vector<std::string> wrong;
  std::uint64_t next = 0;
  bool pause = false, calm = false, over = false;
};

class Workers {
 public:
  Workers(TestNode& node, int self, World& world) : node_(node), self_(self), world_(world) {
    for (int i = 0; i < 3; ++i) node_.group.spawn("worker", work());
  }

 private:
  void note(const std::string& body, Lane lane, const Result<http::Response>& r, bool calm,
            Nanos overtime) {
    if (overtime > milliseconds(5))
      world_.wrong.push_back(cat("a call took ", overtime.count(), " ns too long"));
    if (r) {
      if (r.value().status == 403) {  // its replica id was not known there yet
        ++world_.outcomes[calm ? "calm forbidden" : "forbidden"];
        world_.unavailable.insert(body);
        return;
      }
      ++world_.outcomes[calm ? "calm ok" : "ok"];
      if (r.value().status != 200 || r.value().body != body)
        world_.wrong.push_back(
            cat(r.value().status, " for ", body.substr(0, 40), ": ", r.value().body.substr(0, 60)));
      return;
    }
    const Errc code = r.error().code();
    if (code == Errc::unavailable) world_.unavailable.insert(body);
    if (code != Errc::unavailable && code != Errc::unknown_outcome)
      world_.wrong.push_back(cat("outcome ", to_string(code), ": ", r.error().text()));
    if (calm)
      world_.wrong.push_back(cat("in the calm, on lane ", to_string(lane), ": ", r.error().text()));
    ++world_.outcomes[std::string(to_string(code))];
  }

  Task<void> work() {
    while (!world_.over) {
      while (world_.pause) co_await sleep_for(node_.env, milliseconds(100));
      const std::uint64_t dice = node_.env.random.next();
      const int to = (self_ + 1 + static_cast<int>(dice % 2)) % 3;
      const Lane lane{static_cast<std::uint8_t>((dice >> 4) % 4)};
      std::string body = cat('c', ++world_.next, ':');
      body.append((dice >> 8) % 16 == 0 ? (dice >> 16) % 20'000 : (dice >> 16) % 300, 'b');
      const Nanos deadline = milliseconds(200 + (dice >> 32) % 2000);
      const bool calm = world_.calm;
      const Nanos begin = node_.env.clock.mono();
      Call call(http::Method::post, cat("/peer/v1/", to_string(lane), "/echo"), body);
      auto r = co_await node_.peers.call(cat('n', to), lane, std::move(call), deadline);
      note(body, lane, r, calm, node_.env.clock.mono() - begin - deadline);
      co_await sleep_for(node_.env, milliseconds((dice >> 44) % 60));
    }
  }

  TestNode& node_;
  const int self_;
  World& world_;
};

// A node, and the workers on it.
struct WorkingNode {
  WorkingNode(Env& env, NodeSetup& setup, int self, World& world)
      : node(env, setup), workers(node, self, world) {}
  TestNode node;
  Workers workers;
};

void strike(TestCluster& c, sim::Rng& rng) {
  const int a = static_cast<int>(rng.below(3));
  const int b = (a + 1 + static_cast<int>(rng.below(2))) % 3;
  switch (rng.below(7)) {
    case 0: {
      const bool loud = rng.chance(500'000);
      c.machine(a).kill(loud ? sim::Machine::Kill::process_exit : sim::Machine::Kill::power_cut);
      c.sim.run_for(milliseconds(rng.below(3000)));
      c.machine(a).boot();
      break;
    }
    case 1:
      c.net.block(a, b);
      c.sim.run_for(milliseconds(rng.below(6000)));
      c.net.heal();
      break;
    case 2:
      c.net.partition({a});
      c.sim.run_for(milliseconds(rng.below(6000)));
      c.net.heal();
      break;
    case 3: {
      sim::Link slow;
      slow.latency_min = milliseconds(rng.below(600));
      slow.bytes_per_second = 20'000;
      c.net.set_link(a, b, slow);
      c.sim.run_for(milliseconds(rng.below(3000)));
      c.net.clear_links();
      break;
    }
    case 4:
      // n<b> seems to be where nobody listens, or where another node does.
      c.setup(a).addresses[cat('n', b)] =
          Endpoint{cat("host", 3 - a - b), rng.chance(500'000) ? kPort : std::uint16_t{9}};
      c.sim.run_for(milliseconds(rng.below(1000)));
      c.setup(a).addresses[cat('n', b)] = Endpoint{cat("host", b), kPort};
      break;
    case 5:
      // Joined anew under another replica id; the others hear of it a little later.
      c.setup(a).id.replica = ReplicaId(1'000 + rng.below(1'000'000));
      c.sim.run_for(milliseconds(rng.below(1000)));
      for (int i = 0; i < 3; ++i) c.setup(i).replicas[cat('n', a)] = c.setup(a).id.replica;
      break;
    default:
      c.net.reset_connections(a, b);
      break;
  }
}

std::uint64_t run_seed(std::uint64_t seed, Counts& counts) {
  World world;
  TestCluster c(3, seed);
  auto rng = c.sim.stream("plan");
  c.net.link.reset = 2000;
  c.net.faults.connect_refused = 5000;
  c.net.faults.connect_hang = 5000;
  c.net.faults.window_bytes = 1000 + rng.below(60'000);
  for (int i = 0; i < 3; ++i) {
    NodeSetup& setup = c.setup(i);
    setup.executed = &world.executed;
    setup.echo_time = milliseconds(1 + rng.below(100));
    setup.peers.idle_timeout = seconds(2);
    for (auto& lane : setup.peers.lanes) lane.connections_max = 1 + rng.below(4);
    c.machine(i).boot([&setup, i, &world](Env& env) {
      return std::make_shared<WorkingNode>(env, setup, i, world);
    });
  }
  for (int i = 0; i < 8; ++i) {
    c.sim.run_for(milliseconds(100 + rng.below(800)));
    strike(c, rng);
  }
  // Calm: what is in flight may still fail, what starts now may not.
  c.net.heal();
  c.net.link.reset = 0;
  c.net.faults.connect_refused = c.net.faults.connect_hang = 0;
  world.pause = true;
  c.sim.run_for(seconds(17));  // a sender that was blocked gives up after 15
  world.pause = false;
  world.calm = true;
  c.sim.run_for(seconds(2));
  for (const auto& body : world.unavailable) {
    if (world.executed.contains(body))
      world.wrong.push_back(cat(body.substr(0, 20), " was not to be executed, and was"));
  }
  for (const auto& [body, times] : world.executed) {
    if (times > 1)
      world.wrong.push_back(cat(body.substr(0, 20), " was executed ", times, " times"));
  }
  EXPECT_EQ(world.wrong, std::vector<std::string>()) << "seed " << seed;
  EXPECT_GT(world.outcomes["calm ok"], 50u) << "seed " << seed;
  EXPECT_EQ(world.outcomes["calm forbidden"], 0u) << "seed " << seed;
  for (const auto& [name, count] : world.outcomes) counts.outcomes[name] += count;
  counts.resets += c.net.stats.resets;
  // Two of the nodes die; what they left at the third ends by itself.
  counts.refused += c.machine(0).component<WorkingNode>().node.server.stats().refused;
  world.over = true;
  c.machine(1).kill(sim::Machine::Kill::power_cut);
  c.machine(2).kill(sim::Machine::Kill::power_cut);
  c.sim.run_for(std::chrono::minutes(3));
  const auto stats = c.machine(0).component<WorkingNode>().node.server.stats();
  EXPECT_EQ(stats.connections + stats.handshakes + stats.requests, 0u) << "seed " << seed;
  return c.sim.trace();
}

TEST(PeerSim, FaultsOfEveryKind_UnavailableMeansNeverExecuted) {
  Counts counts;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) run_seed(seed, counts);
  for (const auto& [name, count] : counts.outcomes) std::printf("%s %zu\n", name.c_str(), count);
  std::printf("resets %llu, refused %llu\n", static_cast<unsigned long long>(counts.resets),
              static_cast<unsigned long long>(counts.refused));
  // The run was not idle: every outcome was reached.
  EXPECT_GT(counts.outcomes["ok"], 1000u);
  EXPECT_GT(counts.outcomes["unknown_outcome"], 50u);
  EXPECT_GT(counts.outcomes["unavailable"], 100u);
  EXPECT_GT(counts.resets, 100u);
  EXPECT_GT(counts.refused, 0u);
}

TEST(PeerSim, SameSeed_SameRun) {
  Counts counts;
  EXPECT_EQ(run_seed(7, counts), run_seed(7, counts));
}

}  // namespace
}  // namespace narad::peer
