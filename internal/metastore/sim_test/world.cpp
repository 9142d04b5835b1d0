#include "internal/metastore/sim_test/world.h"

#include <boost/asio/post.hpp>

#include "internal/metastore/metastore.h"
#include "internal/wire/raft_message.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/sqlite/database.h"

namespace narad::metastore::simtest {
namespace {

using namespace std::chrono_literals;

constexpr int kKeys = 4;
constexpr Nanos kTick = 50ms;
constexpr Nanos kStormLength = 40s;
constexpr Nanos kClientPatience = 8s;
constexpr Nanos kLiveness = 10s;

class World;

// What runs on a machine.
struct Node final : raftnode::Transport, Forwarder {
  Node(World& w, Env& e, int n) : world(w), env(e), number(n), tasks(e) {}
  void send(const std::string& node, raft::Message message) override;
  Task<Result<std::string>> forward(std::string leader, std::string body, Nanos deadline) override;

  struct Call {
    explicit Call(Env& env) : answered(env) {}
    std::optional<std::string> answer;
    Event answered;
  };
  World& world;
  Env& env;
  const int number;
  std::uint64_t next_call = 1;
  std::map<std::uint64_t, std::shared_ptr<Call>> calls;
  std::unique_ptr<Metastore> store;
  TaskGroup tasks;
};

class World {
 public:
  World(std::uint64_t seed, Counters& counters, Wish wish);
  RunResult run();

  // ---- the network ------------------------------------------------------------------------------
  using Arrival = std::function<void(Node&)>;
  // A call over a connection (`once`) may be lost or late, but is never doubled.
  void carry(int from, const std::string& to, bool once, Arrival arrival);
  int number_of(const std::string& name) const;
  int boots_of(int machine) { return machines_[static_cast<std::size_t>(machine)]->boots(); }

  MetastoreOptions options_of(int number);
  // Never for damage: nothing here damages what is durable.
  void could_not_open(int number, const Error& why);
  Defect defect() const { return wish_.defect; }
  Counters& counters() { return counters_; }
  const raft::Configuration& founding() const { return founding_; }

 private:
  struct Client {
    int number = 0;
    std::uint64_t op = 0;  // counts its operations
  };
  using Finding = std::optional<std::string>;

  Node* node(std::size_t machine);
  void boot(std::size_t machine);
  void went_down(std::size_t machine);
  Finding found_group();
  Finding settle(Nanos limit);
  std::string statuses();
  bool all_answer();
  Finding compare_states();
  Finding final_reads();
  Finding isolate_a_node();
  Finding replace_a_disk();
  Finding remove_a_node();
  Node* leader();

  void schedule_fault();
  void fault();
  void kill(std::size_t machine);
  void change_members();
  void partition();
  void draw_weather();
  std::size_t leader_or_any();

  void schedule_client(int client, Nanos delay);
  void client_step(int client);
  Operation draw_operation(int client);

  std::uint64_t seed_;
  Counters& counters_;
  const Wish wish_;
  sim::Sim sim_;
  sim::SimNet net_;
  sim::Rng rng_;
  sim::Rng link_rng_;
  std::vector<std::unique_ptr<sim::Machine>> machines_;
  std::vector<std::uint64_t> snapshot_entries_;
  std::set<std::pair<int, int>> blocked_;
  sim::Ppm lose_ = 0, repeat_ = 0, linger_ = 0;
  Nanos latency_ = 5ms;
  bool storm_ = false, clients_on_ = false;
  raft::Configuration founding_;
  std::vector<Client> clients_;
  std::vector<std::uint32_t> raises_;  // by key: the next number to try
  std::int64_t next_value_ = 1;
  History history_;
  std::map<std::uint64_t, std::uint64_t> digests_;  // by applied index
  Finding damaged_;
};

// ---- a node -------------------------------------------------------------------------------------

void Node::send(const std::string& node, raft::Message message) {
  for (std::string& body : wire::encode_raft_bodies({message})) {
    world.carry(number, node, false, [body = std::move(body), from = cat("n", number)](Node& to) {
      auto messages = wire::decode_raft_body(as_bytes(body));
      NARAD_ASSERT(messages.has_value(), messages.error().text());
      if (to.store == nullptr) return;
      for (raft::Message& m : messages.value()) to.store->deliver(std::move(m), from);
    });
  }
}

Task<void> serve(Node& node, int from, int boots, std::uint64_t id, std::string body) {
  const std::string answer = co_await node.store->serve_forwarded(std::move(body), 5s);
  node.world.carry(node.number, cat("n", from), true, [boots, id, answer](Node& to) {
    if (to.world.boots_of(to.number) != boots) return;
    const auto call = to.calls.find(id);
    if (call == to.calls.end()) return;
    call->second->answer = answer;
    call->second->answered.notify_all();
  });
}

Task<Result<std::string>> Node::forward(std::string leader, std::string body, Nanos deadline) {
  const Deadline until = Deadline::after(env, deadline);
  const std::uint64_t id = next_call++;
  auto call = std::make_shared<Call>(env);
  calls[id] = call;
  world.counters().hit("proposal forwarded");
  world.carry(
      number, leader, true,
      [id, body = std::move(body), from = number, boots = world.boots_of(number)](Node& to) {
        if (to.store == nullptr) return;
        to.tasks.spawn("serve", serve(to, from, boots, id, body));
      });
  while (!call->answer && !until.passed(env)) {
    (void)co_await call->answered.wait_for(until.left(env));
  }
  calls.erase(id);
  if (call->answer) co_return std::move(*call->answer);
  co_return Error(Errc::unknown_outcome, "the leader has not answered");
}

Task<void> open_node(Node& node) {
  auto opened =
      co_await Metastore::open(node.env, "/data/metastore", node.world.options_of(node.number));
  if (!opened) {
    node.world.could_not_open(node.number, opened.error());
    node.env.process.exit(kExitFailure, opened.error().text());
    co_return;
  }
  node.store = std::move(opened.value());
  if (node.store->empty() && !node.world.founding().empty()) {
    raft::Configuration c = node.world.founding();
    auto founded = co_await node.store->found(std::move(c));
    if (!founded) node.env.process.exit(kExitFailure, founded.error().text());
  }
}

// ---- operations ---------------------------------------------------------------------------------

std::string key_name(int key) { return cat("key", key); }

// Retention is the register, the number of schemas the counter.
constexpr std::int64_t kValueBase = 3'600'000;

CreateTopic creation(int key) {
  CreateTopic c;
  c.name = key_name(key);
  c.incarnation = Incarnation(static_cast<std::uint64_t>(key) + 1);
  c.partitions = 1;
  c.retention_ms = kValueBase;
  c.visibility_timeout_ms = 30'000;
  c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1;
  return c;
}

Command command_of(const Operation& op) {
  const Incarnation life(static_cast<std::uint64_t>(op.key) + 1);
  if (op.kind == Operation::Kind::raise) {
    return PutSchema{key_name(op.key), life, op.count, "true"};
  }
  UpdateTopic u;
  u.name = key_name(op.key);
  u.incarnation = life;
  u.retention_ms = kValueBase + op.value;
  return u;
}

KeyState state_of(const State& state, int key) {
  const TopicRow* row = state.topics.find(key_name(key));
  NARAD_ASSERT(row != nullptr, "keys exist before clients do");
  return {row->topic.retention_ms - kValueBase, static_cast<std::uint32_t>(row->schemas.size())};
}

// An operation on its way; whoever ends it first counts.
struct Pending {
  std::size_t id = 0;
  bool ended = false;
};

Task<void> perform(Node& node, Operation op, History& history, std::shared_ptr<Pending> pending) {
  if (op.kind == Operation::Kind::read) {
    if (node.world.defect() != Defect::stale_read) {
      auto reached = co_await node.store->barrier(5s);
      if (!reached) {
        if (!pending->ended) history.forget(pending->id);
        pending->ended = true;
        co_return;
      }
    }
    if (!pending->ended) history.read(pending->id, state_of(*node.store->view(), op.key));
    pending->ended = true;
    co_return;
  }
  auto result = co_await node.store->propose(command_of(op));
  if (pending->ended) co_return;
  pending->ended = true;
  if (!result) {
    const bool unknown = result.error().code() == Errc::unknown_outcome;
    node.world.counters().hit(unknown ? "outcome unknown" : "outcome unavailable");
    const bool told = unknown && node.world.defect() != Defect::early_refusal;
    told ? history.unknown(pending->id) : history.forget(pending->id);
  } else if (result.value().done()) {
    history.done(pending->id);
  } else {
    history.refused(pending->id);
  }
}

// ---- the world ----------------------------------------------------------------------------------

World::World(std::uint64_t seed, Counters& counters, Wish wish)
    : seed_(seed),
      counters_(counters),
      wish_(wish),
      sim_(seed),
      net_(sim_),
      rng_(sim_.stream("plan")),
      link_rng_(sim_.stream("links")),
      raises_(kKeys, 1) {
  sim::Rng sqlite = sim_.stream("sqlite");
  sqlite::reseed_randomness(sqlite);
  const std::size_t size = rng_.below(3) == 0 ? 5 : 3;
  for (std::size_t i = 0; i < size; ++i) {
    machines_.push_back(
        std::make_unique<sim::Machine>(sim_, net_, static_cast<int>(i), cat("n", i)));
    const sim::Ppm faster = static_cast<sim::Ppm>(rng_.below(900'000));
    machines_.back()->clock().set_rate(sim::kAlways + faster);
    machines_.back()->set_on_down([this, i](sim::Machine::Kill) { went_down(i); });
    snapshot_entries_.push_back(rng_.range(5, 60));
  }
  const int clients = static_cast<int>(rng_.range(5, 8));
  for (int c = 0; c < clients; ++c) clients_.push_back({c, 0});
}

MetastoreOptions World::options_of(int number) {
  MetastoreOptions o;
  o.node_id = cat("n", number);
  o.found_alone = false;
  Node& self = machines_[static_cast<std::size_t>(number)]->component<Node>();
  o.forwarder = &self;
  o.raft.transport = &self;
  o.raft.tick = kTick;
  o.raft.snapshot_entries = snapshot_entries_[static_cast<std::size_t>(number)];
  o.raft.keep_entries = snapshot_entries_[static_cast<std::size_t>(number)] / 3;
  o.raft.chunk_bytes = 700;
  o.raft.append_bytes = 2'000;
  return o;
}

int World::number_of(const std::string& name) const {
  const auto n = parse_number<int>(std::string_view(name).substr(1));
  NARAD_ASSERT(n && *n >= 0 && *n < static_cast<int>(machines_.size()), name);
  return *n;
}

Node* World::node(std::size_t machine) {
  sim::Machine& m = *machines_[machine];
  if (!m.up() || m.component_pointer() == nullptr) return nullptr;
  Node& n = m.component<Node>();
  return n.store == nullptr ? nullptr : &n;
}

void World::carry(int from, const std::string& to, bool once, Arrival arrival) {
  const int target = number_of(to);
  if (blocked_.contains({from, target}) || link_rng_.chance(lose_)) {
    counters_.hit("message lost");
    return;
  }
  const bool repeated = link_rng_.chance(repeat_);
  const int copies = repeated && !once ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const std::uint64_t spread = link_rng_.below(static_cast<std::uint64_t>(latency_.count()));
    Nanos delay = 100us + Nanos(static_cast<std::int64_t>(spread));
    if (link_rng_.chance(linger_)) {
      delay += std::chrono::milliseconds(link_rng_.below(2'000));
      counters_.hit("message delayed");
    }
    sim_.after(delay, sim::kWorld, "message", [this, from, target, arrival](bool) {
      sim::Machine& m = *machines_[static_cast<std::size_t>(target)];
      if (!m.up() || blocked_.contains({from, target})) return;
      std::shared_ptr<void> alive = m.component_pointer();
      if (alive == nullptr) return;
      asio::post(m.env().executor,
                 [node = static_cast<Node*>(alive.get()), arrival] { arrival(*node); });
    });
  }
}

void World::could_not_open(int number, const Error& why) {
  const bool cut = machines_[static_cast<std::size_t>(number)]->disk().frozen();
  if (why.code() == Errc::data_loss && !cut) damaged_ = cat("n", number, ": ", why.text());
  counters_.hit("start refused");
}

void World::boot(std::size_t machine) {
  machines_[machine]->boot([this, machine](Env& env) {
    auto node = std::make_shared<Node>(*this, env, static_cast<int>(machine));
    asio::post(env.executor, [raw = node.get()] { raw->tasks.spawn("open", open_node(*raw)); });
    return node;
  });
}

void World::went_down(std::size_t machine) {
  const auto& exit = machines_[machine]->last_exit();
  if (exit && exit->code == kExitSyncFailed) counters_.hit("sync failed");
  machines_[machine]->disk().clear_failures();
  const Nanos delay = storm_ ? std::chrono::milliseconds(rng_.range(100, 8'000)) : 100ms;
  machines_[machine]->boot_after(delay);
}

World::Finding World::found_group() {
  for (std::size_t i = 0; i < machines_.size(); ++i) boot(i);
  const bool up = sim_.run_until(
      [this] {
        for (std::size_t i = 0; i < machines_.size(); ++i) {
          if (node(i) == nullptr) return false;
        }
        return true;
      },
      10s);
  if (!up) return "a node did not open";
  std::vector<raft::Member> members;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    members.push_back({node(i)->store->replica(), cat("n", i), raft::MemberRole::voter});
  }
  founding_ = raft::Configuration::make(members).value();
  struct Found {
    static Task<void> run(Node& node, raft::Configuration c, std::size_t& left) {
      auto done = co_await node.store->found(std::move(c));
      if (done) --left;
    }
    static Task<void> keys(Node& node, std::size_t& left) {
      for (int key = 0; key < kKeys; ++key) {
        auto made = co_await node.store->propose(creation(key));
        if (made && made.value().done()) --left;
      }
    }
  };
  std::size_t left = machines_.size() + kKeys;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    node(i)->tasks.spawn("found", Found::run(*node(i), founding_, left));
  }
  sim_.run_for(2s);
  node(0)->tasks.spawn("keys", Found::keys(*node(0), left));
  if (!sim_.run_until([&left] { return left == 0; }, 20s)) return "the group was not founded";
  return std::nullopt;
}

// ---- faults -------------------------------------------------------------------------------------

void World::draw_weather() {
  const bool bad = rng_.below(2) == 0;
  lose_ = bad ? static_cast<sim::Ppm>(rng_.range(5'000, 150'000)) : 0;
  repeat_ = rng_.below(2) == 0 ? static_cast<sim::Ppm>(rng_.range(5'000, 100'000)) : 0;
  linger_ = rng_.below(2) == 0 ? static_cast<sim::Ppm>(rng_.range(2'000, 80'000)) : 0;
  latency_ = std::chrono::milliseconds(rng_.below(4) == 0 ? rng_.range(20, 120) : rng_.range(1, 8));
}

std::size_t World::leader_or_any() {
  if (rng_.below(2) == 0) {
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      if (node(i) != nullptr && node(i)->store->leader().is_self) return i;
    }
  }
  return rng_.below(machines_.size());
}

void World::partition() {
  blocked_.clear();
  std::set<int> left;
  const int shape = static_cast<int>(rng_.below(4));
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    if (rng_.below(2) == 0) left.insert(static_cast<int>(i));
  }
  if (rng_.below(2) == 0) left = {static_cast<int>(leader_or_any())};
  const int bridge = static_cast<int>(rng_.below(machines_.size()));
  for (int a = 0; a < static_cast<int>(machines_.size()); ++a) {
    for (int b = 0; b < static_cast<int>(machines_.size()); ++b) {
      if (!left.contains(a) || left.contains(b)) continue;
      if (shape == 3 && (a == bridge || b == bridge)) continue;
      if (shape != 1) blocked_.insert({a, b});
      if (shape != 2) blocked_.insert({b, a});
    }
  }
  const char* names[] = {"partition", "one-way partition", "one-way partition", "bridge"};
  counters_.hit(names[shape]);
}

void World::kill(std::size_t machine) {
  sim::Machine& m = *machines_[machine];
  if (!m.up()) return;
  const std::uint64_t dice = rng_.below(6);
  if (dice == 0) {
    counters_.hit("process killed");
    m.kill_soon(sim::Machine::Kill::process_exit);
  } else if (dice == 1) {
    counters_.hit("power cut");
    m.kill_soon(sim::Machine::Kill::power_cut);
  } else if (dice < 5) {
    counters_.hit("power cut in a disk call");
    const bool torn = rng_.below(2) == 0;
    const std::uint64_t call = rng_.range(1, 40);
    m.kill_at_disk_call(call, sim::Machine::Kill::power_cut,
                        torn ? sim::SimFs::Cut::during_call : sim::SimFs::Cut::before_call);
  } else {
    counters_.hit("sync made to fail");
    m.disk().fail_call(sim::FsCall::sync, rng_.range(1, 6));
  }
}

Task<void> try_change(Node& node, raft::ConfigurationChange change) {
  auto done = co_await node.store->propose_change(std::move(change));
  node.world.counters().hit(done ? "members changed" : "change of members failed");
}

Task<void> hand_over(Node& node) {
  auto done = co_await node.store->transfer_leadership("", 2s);
  node.world.counters().hit(done ? "leadership handed over" : "hand-over failed");
}

// A voter becomes a learner; the leader makes it a voter again once it has caught up.
void World::change_members() {
  Node* n = node(leader_or_any());
  if (n == nullptr || !n->store->leader().is_self) return;
  const raft::Configuration& c = n->store->raft_status().configuration;
  const raft::Member& member = c.members()[rng_.below(c.members().size())];
  const raft::ConfigurationChange demote{raft::ConfigurationChange::Kind::demote, member.replica,
                                         ""};
  asio::post(n->env.executor, [n, demote] { n->tasks.spawn("demote", try_change(*n, demote)); });
}

void World::fault() {
  if (wish_.members_change && rng_.below(3) == 0) return change_members();
  const std::uint64_t dice = rng_.below(20);
  if (dice < 6) {
    kill(leader_or_any());
  } else if (dice < 11) {
    partition();
  } else if (dice < 15) {
    blocked_.clear();
  } else if (dice < 17) {
    draw_weather();
  } else if (dice < 18) {
    sim::Machine& m = *machines_[leader_or_any()];
    if (!m.up()) return;
    counters_.hit("disk full");
    m.disk().fail_call(sim::FsCall::pwrite, rng_.range(1, 5), false, 28 /* ENOSPC */);
  } else if (Node* n = node(leader_or_any()); n != nullptr && n->store->leader().is_self) {
    asio::post(n->env.executor, [n] { n->tasks.spawn("hand over", hand_over(*n)); });
  }
}

void World::schedule_fault() {
  const Nanos delay = std::chrono::milliseconds(rng_.range(200, 4'000));
  sim_.after(delay, sim::kWorld, "fault", [this](bool) {
    if (!storm_) return;
    fault();
    schedule_fault();
  });
}

// ---- clients ------------------------------------------------------------------------------------

Operation World::draw_operation(int client) {
  Operation op;
  op.client = client;
  op.key = static_cast<int>(rng_.below(kKeys));
  const std::uint64_t dice = rng_.below(10);
  if (dice < 4) return op;
  if (dice < 7) {
    op.kind = Operation::Kind::write;
    op.value = next_value_++;
    return op;
  }
  op.kind = Operation::Kind::raise;
  // Mostly the next one, as far as this client knows; sometimes one that must be refused.
  std::uint32_t& next = raises_[static_cast<std::size_t>(op.key)];
  op.count = std::max<std::uint32_t>(1, next - static_cast<std::uint32_t>(rng_.below(2)));
  return op;
}

void World::schedule_client(int client, Nanos delay) {
  sim_.after(delay, sim::kWorld, "client", [this, client](bool) {
    if (clients_on_) client_step(client);
  });
}

// One operation through a random node; the next one once it has ended, or patience has.
void World::client_step(int client) {
  Node* n = node(rng_.below(machines_.size()));
  if (n == nullptr) return schedule_client(client, 50ms);
  const Operation op = draw_operation(client);
  auto pending = std::make_shared<Pending>();
  pending->id = history_.call(op);
  asio::post(n->env.executor, [this, n, op, pending] {
    n->tasks.spawn("operation", perform(*n, op, history_, pending));
  });
  struct Poll {
    static void again(World& w, int client, std::shared_ptr<Pending> pending, Operation op,
                      Nanos left) {
      const Nanos pause = 25ms;
      w.sim_.after(pause, sim::kWorld, "poll", [&w, client, pending, op, left, pause](bool) {
        if (!pending->ended && left > pause) return again(w, client, pending, op, left - pause);
        if (!pending->ended) {
          w.counters_.hit("client gave up");
          w.history_.unknown(pending->id);
          pending->ended = true;
        }
        if (op.kind == Operation::Kind::raise) {
          std::uint32_t& next = w.raises_[static_cast<std::size_t>(op.key)];
          next = std::max(next, op.count + 1);
        }
        const Nanos rest = std::chrono::milliseconds(w.rng_.range(1, 600));
        w.schedule_client(client, rest);
      });
    }
  };
  Poll::again(*this, client, pending, op, kClientPatience);
}

// ---- peace --------------------------------------------------------------------------------------

// Nodes that have applied the same entries hold the same state.
World::Finding World::compare_states() {
  if (damaged_) return damaged_;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    Node* n = node(i);
    if (n == nullptr) continue;
    if (const auto& fault = n->store->raft_status().fault) return fault->text();
    const ViewPtr view = n->store->view();
    const auto [at, first] = digests_.emplace(view->applied.value(), digest(*view));
    if (at->second != digest(*view)) {
      return cat("n", i, " holds another state at entry ", view->applied, " than others did");
    }
    check_invariants(*view);
  }
  return std::nullopt;
}

struct Probe {
  std::set<std::size_t> answered;
  std::map<std::size_t, int> asked;  // node -> the life in which it was asked
  // A node may still be on its way down, or leadership on its way: asked until it answers.
  static Task<void> run(Node& node, std::size_t index, std::shared_ptr<Probe> probe) {
    for (;;) {
      auto done = co_await node.store->propose(Heartbeats{{cat("n", node.number)}, UnixMillis(1)});
      if (done && co_await node.store->barrier(5s)) break;
      co_await sleep_for(node.env, 100ms);
    }
    probe->answered.insert(index);
  }
};

// Once faults have stopped: every node takes a proposal within bounded time, and says it is caught
// up.
World::Finding World::settle(Nanos limit) {
  storm_ = false;
  blocked_.clear();
  lose_ = repeat_ = linger_ = 0;
  latency_ = 2ms;
  for (auto& m : machines_) {
    m->disk().clear_failures();
    m->disk().cancel_cut();
  }
  const auto all_up = [this] {
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      if (node(i) == nullptr) return false;
    }
    return true;
  };
  if (!sim_.run_until(all_up, 15s)) {
    return "a node did not come back";
  }
  auto probe = std::make_shared<Probe>();
  const auto ask = [this, probe](std::size_t i) {
    if (node(i) == nullptr || probe->asked[i] == machines_[i]->boots()) return;
    probe->asked[i] = machines_[i]->boots();
    asio::post(node(i)->env.executor,
               [n = node(i), i, probe] { n->tasks.spawn("probe", Probe::run(*n, i, probe)); });
  };
  const auto calm = [this, probe, &all_up, &ask] {
    for (std::size_t i = 0; i < machines_.size(); ++i) ask(i);
    if (probe->answered.size() < machines_.size() || !all_up()) return false;
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      if (!node(i)->store->caught_up()) return false;
    }
    return true;
  };
  if (!sim_.run_until(calm, limit)) {
    std::string text =
        cat("no progress after faults stopped, ", probe->answered.size(), " answered");
    return text + statuses();
  }
  return compare_states();
}

// For people.
std::string World::statuses() {
  std::string text;
  {
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      if (node(i) == nullptr) continue;
      const raftnode::Status s = node(i)->store->raft_status();
      text += cat("\n  n", i, " ", to_string(s.role), " term ", s.term, " leader ", s.leader_node,
                  " commit ", s.commit, " applied ", s.applied, " last ", s.last, " ",
                  to_string(s.standing), " ", raft::describe(s.configuration), " ",
                  node(i)->store->caught_up() ? "caught up " : "", s.trouble);
    }
  }
  return text;
}

Node* World::leader() {
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    if (node(i) != nullptr && node(i)->store->leader().is_self) return node(i);
  }
  return nullptr;
}

// Cut off, a node soon says that it is not caught up, whether it led or not, and answers no
// barrier; then it comes back.
World::Finding World::isolate_a_node() {
  const std::size_t victim = leader_or_any();
  for (int other = 0; other < static_cast<int>(machines_.size()); ++other) {
    blocked_.insert({static_cast<int>(victim), other});
    blocked_.insert({other, static_cast<int>(victim)});
  }
  Node* n = node(victim);
  if (n == nullptr) return "a node is down in peace";
  // By the node's own clock, which runs at most 1.9 times as fast: 100 ticks, and what was on the
  // way.
  sim_.run_for(5s + 200ms);
  if (n->store->caught_up()) return "a node without contact says that it is caught up";
  auto probe = std::make_shared<Probe>();
  asio::post(n->env.executor, [n, probe] { n->tasks.spawn("probe", Probe::run(*n, 0, probe)); });
  sim_.run_for(11s);
  if (!probe->answered.empty()) return "a node that was cut off answered a barrier";
  blocked_.clear();
  if (!sim_.run_until([n] { return n->store->caught_up(); }, 10s)) {
    return "a node that was cut off does not catch up";
  }
  counters_.hit("node isolated");
  return std::nullopt;
}

struct Change {
  std::optional<Result<void>> outcome;
  static Task<void> run(Node& node, raft::ConfigurationChange change, std::shared_ptr<Change> out) {
    auto done = co_await node.store->propose_change(std::move(change));
    out->outcome.emplace(std::move(done));
  }
};

// A node comes back with an empty disk: it is another replica, which counts for nothing until the
// leader has put it in the place of the old one, and then gets a snapshot.
World::Finding World::replace_a_disk() {
  const std::size_t victim = rng_.below(machines_.size());
  const raft::ReplicaId old = node(victim)->store->replica();
  machines_[victim]->set_on_down({});
  machines_[victim]->kill(sim::Machine::Kill::power_cut);
  // Proof that it may go: losing it is what is tried here.
  if (!remove_tree(machines_[victim]->disk(), "/data")) return "the disk could not be emptied";
  founding_ = {};
  machines_[victim]->boot();
  const auto back = [this, victim] { return node(victim) != nullptr && leader() != nullptr; };
  if (!sim_.run_until(back, 15s)) return "the emptied node did not start";
  const raft::ReplicaId fresh = node(victim)->store->replica();
  if (fresh == old) return "an emptied disk has its old replica id";
  sim_.run_for(3s);
  if (!node(victim)->store->empty()) return "an emptied node took part before it was let in";
  if (!sim_.run_until([this] { return leader() != nullptr; }, 10s)) return "no leader";
  auto change = std::make_shared<Change>();
  asio::post(leader()->env.executor, [n = leader(), change, fresh, victim] {
    const raft::ConfigurationChange add{raft::ConfigurationChange::Kind::add_learner, fresh,
                                        cat("n", victim)};
    n->tasks.spawn("add", Change::run(*n, add, change));
  });
  const auto voter = [this, victim] {
    Node* n = node(victim);
    return n != nullptr && n->store->caught_up() &&
           n->store->raft_status().standing == raft::Standing::voter;
  };
  if (!sim_.run_until(voter, 20s)) {
    return cat("the emptied node did not become a voter again: ",
               change->outcome
                   ? (*change->outcome ? std::string("added") : change->outcome->error().text())
                   : std::string("not added"));
  }
  counters_.hit("disk replaced");
  return compare_states();
}

// It learns that it is out, and disturbs nobody.
World::Finding World::remove_a_node() {
  if (!sim_.run_until([this] { return leader() != nullptr; }, 10s)) return "no leader";
  const std::size_t victim = rng_.below(machines_.size());
  const raft::ReplicaId id = node(victim)->store->replica();
  auto change = std::make_shared<Change>();
  asio::post(leader()->env.executor, [n = leader(), change, id] {
    const raft::ConfigurationChange out{raft::ConfigurationChange::Kind::remove, id, ""};
    n->tasks.spawn("remove", Change::run(*n, out, change));
  });
  if (!sim_.run_until([change] { return change->outcome.has_value(); }, 10s)) {
    return "the removal did not end";
  }
  if (!*change->outcome) return cat("the removal: ", change->outcome->error().text());
  const auto out = [this, victim] {
    return node(victim)->store->raft_status().standing == raft::Standing::outside;
  };
  if (!sim_.run_until(out, 10s))
    return cat("removed node n", victim, " does not know it", statuses());
  if (!sim_.run_until([this] { return leader() != nullptr; }, 10s)) return "no leader";
  const auto term = leader()->store->leader().term;
  sim_.run_for(5s);
  if (leader() == nullptr || leader()->store->leader().term != term) {
    return "a removed node disturbed the others";
  }
  counters_.hit("node removed");
  machines_[victim]->set_on_down({});
  machines_[victim]->kill(sim::Machine::Kill::power_cut);
  return std::nullopt;
}

World::Finding World::final_reads() {
  auto left = std::make_shared<std::size_t>(machines_.size() * kKeys);
  struct Final {
    static Task<void> run(Node& node, Operation op, History& history,
                          std::shared_ptr<std::size_t> left) {
      auto pending = std::make_shared<Pending>();
      pending->id = history.call(op);
      co_await perform(node, op, history, pending);
      --*left;
    }
  };
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    for (int key = 0; key < kKeys; ++key) {
      Operation op;
      op.client = 100 + static_cast<int>(i);
      op.key = key;
      asio::post(node(i)->env.executor, [this, n = node(i), op, left] {
        n->tasks.spawn("final read", Final::run(*n, op, history_, left));
      });
    }
  }
  if (!sim_.run_until([left] { return *left == 0; }, 10s)) return "the final reads did not end";
  return std::nullopt;
}

RunResult World::run() {
  RunResult r;
  Finding f = found_group();
  if (!f) {
    storm_ = clients_on_ = true;
    draw_weather();
    schedule_fault();
    for (const Client& c : clients_) schedule_client(c.number, std::chrono::milliseconds(c.number));
    for (Nanos done{0}; done < kStormLength && !f; done += 100ms) {
      sim_.run_for(100ms);
      f = compare_states();
    }
  }
  if (!f) {
    clients_on_ = false;
    f = settle(kLiveness);
  }
  // Whatever was still open ends by its own patience.
  if (!f) sim_.run_for(kClientPatience + 1s);
  if (!f) f = final_reads();
  if (!f && rng_.below(2) == 0) f = isolate_a_node();
  if (!f && rng_.below(2) == 0) f = replace_a_disk();
  if (!f) f = final_reads();
  if (!f) f = history_.violation();
  if (!f && rng_.below(2) == 0) f = remove_a_node();
  for (const auto& m : machines_) {
    counters_.hit("snapshot installed", m->log().count("snapshot installed"));
  }
  if (f) r.finding = cat("seed ", seed_, ", ", machines_.size(), " nodes: ", *f);
  r.operations = history_.size();
  r.unknowns = history_.unknowns();
  r.clients = clients_.size();
  r.trace = sim_.trace();
  return r;
}

}  // namespace

RunResult run(std::uint64_t seed, Counters& counters, Wish wish) {
  World world(seed, counters, wish);
  return world.run();
}

}  // namespace narad::metastore::simtest
