#pragma once
// For tests: nodes with both sides of the cluster plane, on simulated machines.
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include "internal/peer/peers.h"
#include "internal/peer/server.h"
#include "pkg/async/event.h"
#include "pkg/async/stream_io.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"

namespace narad::peer::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr std::uint64_t kCluster = 0x1111'2222'3333'4444;
inline constexpr std::uint16_t kPort = 7943;

// What a test sets, and what it reads afterwards; survives the node.
struct NodeSetup final : Self, AddressBook {
  Sender id;
  std::map<std::string, ReplicaId> replicas;
  std::map<std::string, Endpoint> addresses;
  PeersOptions peers;
  ServerOptions server;
  // What the handlers saw.
  std::map<std::string, int> handled;              // by request id
  std::map<std::string, int>* executed = nullptr;  // counted by body, if set
  Nanos echo_time{0};                              // how long every third echo takes
  std::vector<std::string> bodies;
  std::optional<Sender> last_sender;
  std::string last_deadline;
  int waiting = 0, cancelled = 0;

  Sender identity() const override { return id; }
  std::optional<ReplicaId> configured_replica(const std::string& node) const override {
    const auto it = replicas.find(node);
    if (it == replicas.end()) return std::nullopt;
    return it->second;
  }
  std::optional<Endpoint> address_of(const std::string& node) const override {
    const auto it = addresses.find(node);
    if (it == addresses.end()) return std::nullopt;
    return it->second;
  }
};

// Routes: /peer/v1/echo on every lane ("/peer/v1/{lane}/echo"), /peer/v1/wait (until released),
// /peer/v1/steady (waits, runs to its end), /peer/v1/watched, /peer/v1/join (open to strangers).
class TestNode {
 public:
  TestNode(Env& env, NodeSetup& s)
      : env(env),
        setup(s),
        release(env),
        peers(env, s.peers, s, s),
        server(env, s.server, s),
        group(env) {
    const auto bind = [this](Task<http::Response> (*f)(TestNode*, Sender, http::Request)) {
      return
          [this, f](Sender who, http::Request r) { return f(this, std::move(who), std::move(r)); };
    };
    RouteOptions large;
    large.body_bytes_max = 64u << 20;
    for (Lane lane : {Lane::raft, Lane::control, Lane::data, Lane::bulk})
      server.route(cat("POST /peer/v1/", to_string(lane), "/echo"), lane, bind(echo), large);
    server.route("POST /peer/v1/wait", Lane::control, bind(wait));
    RouteOptions steady;
    steady.runs_to_its_end = true;
    server.route("POST /peer/v1/steady", Lane::control, bind(wait), steady);
    RouteOptions watched;
    watched.cancel_when_gone = true;
    server.route("POST /peer/v1/watched", Lane::control, bind(wait), watched);
    RouteOptions open;
    open.open_to_strangers = true;
    server.route("POST /peer/v1/join", Lane::control, bind(echo), open);
    auto listening = server.listen(Endpoint{"", kPort});
    EXPECT_EQ(bool(listening), !s.server.secret.empty() || s.server.insecure);
  }

  Env& env;
  NodeSetup& setup;
  Event release;
  Peers peers;
  Server server;
  TaskGroup group;

 private:
  static void see(NodeSetup& s, const Sender& who, const http::Request& r) {
    ++s.handled[std::string(r.headers.get("Narad-Request-Id").value_or(""))];
    s.last_sender = who;
    s.last_deadline = r.headers.get("Narad-Deadline-Ms").value_or("");
    if (s.executed != nullptr) ++(*s.executed)[r.body];
    if (s.bodies.size() < 1000 && r.body.size() < 1000) s.bodies.push_back(r.body);
  }
  static Task<http::Response> echo(TestNode* n, Sender who, http::Request r) {
    see(n->setup, who, r);
    if (n->setup.echo_time > Nanos(0) && r.body.size() % 3 == 1)
      co_await sleep_for(n->env, n->setup.echo_time);
    http::Response response = http::json_response(200, std::move(r.body));
    response.headers.add("X-Node", n->setup.id.node_id);
    co_return response;
  }
  static Task<http::Response> wait(TestNode* n, Sender who, http::Request r) {
    see(n->setup, who, r);
    struct Count {
      explicit Count(NodeSetup& s) : setup(s) { ++setup.waiting; }
      ~Count() {
        --setup.waiting;
        if (!done) ++setup.cancelled;
      }
      NodeSetup& setup;
      bool done = false;
    } count(n->setup);
    co_await n->release.wait();
    count.done = true;
    co_return http::json_response(200, "released\n");
  }
};

inline ::testing::AssertionResult contains(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not contain \"" << part << "\"";
}

template <class T>
struct Pending {
  std::optional<Result<T>> result;
  Nanos ended_at{0};
  bool done() const { return result.has_value(); }
};

// A connection without manners: what arrives is kept, what is said is up to the test.
struct Raw {
  std::unique_ptr<Stream> stream;
  std::string received;
  bool closed = false;
  Nanos closed_at{0};
};

// n0, n1, n2, … that know each other and share a secret.
class TestCluster {
 public:
  explicit TestCluster(int nodes, std::uint64_t seed = 1) : sim(seed), net(sim) {
    for (int i = 0; i < nodes; ++i) {
      auto setup = std::make_unique<NodeSetup>();
      setup->id = Sender{cat('n', i), ReplicaId(100 + static_cast<std::uint64_t>(i)), kCluster};
      setup->peers.secret = setup->server.secret = "open sesame";
      for (int j = 0; j < nodes; ++j) {
        setup->addresses[cat('n', j)] = Endpoint{cat("host", j), kPort};
        setup->replicas[cat('n', j)] = ReplicaId(100 + static_cast<std::uint64_t>(j));
      }
      setups.push_back(std::move(setup));
      machines.push_back(std::make_unique<sim::Machine>(sim, net, i, cat("host", i)));
    }
  }
  void boot(int i) {
    NodeSetup& setup = *setups[static_cast<std::size_t>(i)];
    machine(i).boot([&setup](Env& env) { return std::make_shared<TestNode>(env, setup); });
  }
  void boot_all() {
    for (std::size_t i = 0; i < machines.size(); ++i) boot(static_cast<int>(i));
  }

  NodeSetup& setup(int i) { return *setups[static_cast<std::size_t>(i)]; }
  sim::Machine& machine(int i) { return *machines[static_cast<std::size_t>(i)]; }
  TestNode& node(int i) { return machine(i).component<TestNode>(); }
  std::string log(int i) {
    std::string all;
    for (const auto& line : machine(i).log().lines()) all += line.text + '\n';
    return all;
  }

  // Starts a call; its outcome appears in what is answered.
  std::shared_ptr<Pending<http::Response>> start(int from, int to, std::string target,
                                                 Lane lane = Lane::control, std::string body = "x",
                                                 Nanos deadline = seconds(5)) {
    auto pending = std::make_shared<Pending<http::Response>>();
    Call call(http::Method::post, std::move(target), std::move(body));
    node(from).group.spawn(
        "call", run_call(&node(from), cat('n', to), lane, std::move(call), deadline, pending));
    return pending;
  }
  Result<http::Response> call(int from, int to, std::string target, Lane lane = Lane::control,
                              std::string body = "x", Nanos deadline = seconds(5)) {
    auto pending = start(from, to, std::move(target), lane, std::move(body), deadline);
    return finish(pending);
  }
  Result<http::Response> echo(int from, int to, Lane lane = Lane::control) {
    return call(from, to, cat("/peer/v1/", to_string(lane), "/echo"), lane);
  }
  Result<Answer> call_address(int from, Endpoint at, std::string target,
                              Lane lane = Lane::control) {
    auto pending = std::make_shared<Pending<Answer>>();
    Call call(http::Method::post, std::move(target), "x");
    node(from).group.spawn("call",
                           run_call_address(&node(from), at, lane, std::move(call), pending));
    return finish(pending);
  }
  template <class T>
  Result<T> finish(const std::shared_ptr<Pending<T>>& pending) {
    if (!sim.run_until([&] { return pending->done(); }, std::chrono::minutes(2)))
      return Error(Errc::internal, "the call did not end");
    return *pending->result;
  }
  std::string error_of(const Result<http::Response>& r) {
    return r ? cat("status ", r.value().status)
             : cat(to_string(r.error().code()), ": ", r.error().text());
  }
  // Connects `from` to the cluster port of `to`, says `bytes`, and lets things happen.
  std::shared_ptr<Raw> dial(int from, int to, std::string bytes = {}) {
    auto raw = std::make_shared<Raw>();
    node(from).group.spawn("raw", read_raw(&node(from), Endpoint{cat("host", to), kPort}, raw));
    EXPECT_TRUE(sim.run_until([&] { return raw->stream != nullptr; }, seconds(1)));
    say(from, raw, std::move(bytes));
    return raw;
  }
  static Task<void> read_raw(TestNode* n, Endpoint to, std::shared_ptr<Raw> raw) {
    raw->stream = co_await connect(n->env, std::move(to));
    std::array<char, 4096> buffer;
    for (;;) {
      auto [ec, bytes] = co_await read_some(*raw->stream, asio::buffer(buffer));
      raw->received.append(buffer.data(), bytes);
      if (ec) break;
    }
    raw->closed = true;
    raw->closed_at = n->env.clock.mono();
    raw->stream->close();
  }
  void say(int from, const std::shared_ptr<Raw>& raw, std::string bytes) {
    if (!bytes.empty()) node(from).group.spawn("say", write_raw(raw, std::move(bytes)));
    sim.run_for(milliseconds(100));
  }

  // Ends every node in order.
  void stop_all() {
    for (auto& m : machines) {
      if (!m->up()) continue;
      TestNode& n = m->component<TestNode>();
      auto done = std::make_shared<bool>(false);
      asio::co_spawn(n.env.executor, stop(&n, done), [](std::exception_ptr e) {
        if (e) std::rethrow_exception(e);
      });
      EXPECT_TRUE(sim.run_until([&] { return *done; }, seconds(30)));
    }
  }

  sim::Sim sim;
  sim::SimNet net;
  std::vector<std::unique_ptr<NodeSetup>> setups;
  std::vector<std::unique_ptr<sim::Machine>> machines;

 private:
  static Task<void> run_call(TestNode* n, std::string to, Lane lane, Call call, Nanos deadline,
                             std::shared_ptr<Pending<http::Response>> out) {
    out->result.emplace(co_await n->peers.call(std::move(to), lane, std::move(call), deadline));
    out->ended_at = n->env.clock.mono();
  }
  static Task<void> run_call_address(TestNode* n, Endpoint at, Lane lane, Call call,
                                     std::shared_ptr<Pending<Answer>> out) {
    out->result.emplace(
        co_await n->peers.call_address(std::move(at), lane, std::move(call), seconds(5)));
  }
  static Task<void> write_raw(std::shared_ptr<Raw> raw, std::string bytes) {
    (void)co_await write_all(*raw->stream, buffers_of(bytes));
  }
  static Task<void> stop(TestNode* n, std::shared_ptr<bool> done) {
    co_await n->peers.stop();
    co_await n->server.stop(seconds(1));
    co_await n->group.stop();
    *done = true;
  }
};

}  // namespace narad::peer::testing
