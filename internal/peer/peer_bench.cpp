// What a call between nodes costs, as a ratio to the same exchange with the bare HTTP client and
// server: one loop, loopback, bodies of 200 bytes, one caller at a time (latency) and 64 (calls a
// second). Best of five rounds each, the two kinds in turn, since machines are noisy.
//
//   internal_peer_peer_bench [--check]     # --check: exit 1 if a call costs more than 1.5 times as
//   much
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "internal/peer/peers.h"
#include "internal/peer/server.h"
#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/env/real/runtime.h"
#include "pkg/http/client.h"
#include "pkg/http/server.h"

namespace narad::peer {
namespace {

constexpr auto kRound = std::chrono::milliseconds(700);

struct Party final : Self, AddressBook {
  explicit Party(Sender s) : id(std::move(s)) {}
  Sender id;
  Endpoint other;
  Sender identity() const override { return id; }
  std::optional<ReplicaId> configured_replica(const std::string&) const override {
    return ReplicaId(id.replica.value() ^ 3);
  }
  std::optional<Endpoint> address_of(const std::string&) const override { return other; }
};

PeersOptions calling() {
  PeersOptions options;
  options.secret = "secret";
  return options;
}
ServerOptions listening() {
  ServerOptions options;
  options.secret = "secret";
  return options;
}
http::ClientOptions keeping() {
  http::ClientOptions options;
  options.idle_max = 64;
  return options;
}

struct World {
  explicit World(Env& e)
      : env(e),
        n0(Sender{"n0", ReplicaId(1), 7}),
        n1(Sender{"n1", ReplicaId(2), 7}),
        peers(e, calling(), n0, n0),
        server(e, listening(), n1),
        client(e, keeping()),
        http(e, {}, http::admit_with(router), [](http::Request r) { return bare(std::move(r)); }),
        group(e) {}
  static Task<http::Response> bare(http::Request r) {
    co_return http::json_response(200, std::move(r.body));
  }
  Env& env;
  Party n0, n1;
  Peers peers;
  Server server;
  http::Router router;
  http::Client client;
  http::Server http;
  Endpoint http_at;
  TaskGroup group;
  std::uint64_t done = 0;
  bool failed = false;
};

Task<http::Response> echo(Sender, http::Request r) {
  co_return http::json_response(200, std::move(r.body));
}

Task<void> call_bare(World* w, Deadline until) {
  while (!until.passed(w->env)) {
    http::ClientRequest request(http::Method::post, "/peer/v1/echo");
    request.body.assign(200, 'x');
    auto r = co_await w->client.request(w->http_at, std::move(request),
                                        Deadline::after(w->env, std::chrono::seconds(5)));
    w->failed = w->failed || !r || r.value().body.size() != 200;
    ++w->done;
  }
}

Task<void> call_peer(World* w, Deadline until) {
  while (!until.passed(w->env)) {
    Call call(http::Method::post, "/peer/v1/echo", std::string(200, 'x'));
    auto r = co_await w->peers.call("n1", Lane::data, std::move(call), std::chrono::seconds(5));
    w->failed = w->failed || !r || r.value().body.size() != 200;
    ++w->done;
  }
}

// Exchanges a second.
Task<double> round(World* w, bool peer, int callers) {
  const Nanos begin = w->env.clock.mono();
  const auto until = Deadline::after(w->env, kRound);
  w->done = 0;
  for (int i = 0; i < callers; ++i)
    w->group.spawn("caller", peer ? call_peer(w, until) : call_bare(w, until));
  while (w->group.size() > 0) co_await sleep_for(w->env, std::chrono::milliseconds(5));
  const auto took = std::chrono::duration<double>(w->env.clock.mono() - begin);
  co_return static_cast<double>(w->done) / took.count();
}

Task<int> run(Env& env, bool check) {
  auto w = std::make_shared<World>(env);
  w->router.add("POST /peer/v1/echo", 1);
  w->server.route("POST /peer/v1/echo", Lane::data, echo);
  if (!w->server.listen(Endpoint{"127.0.0.1", 0}) || !w->http.listen(Endpoint{"127.0.0.1", 0}))
    co_return 1;
  w->n0.other = w->server.local().front();
  w->http_at = w->http.local().front();
  bool slow = false;
  for (int callers : {1, 64}) {
    double best_bare = 0, best_peer = 0;
    for (int i = 0; i < 5; ++i) {
      best_bare = std::max(best_bare, co_await round(w.get(), false, callers));
      best_peer = std::max(best_peer, co_await round(w.get(), true, callers));
    }
    const double ratio = best_bare / best_peer;
    std::printf(
        "%d caller(s): bare http %.0f/s (%.1f us), peer call %.0f/s (%.1f us), ratio %.2f\n",
        callers, best_bare, 1e6 * callers / best_bare, best_peer, 1e6 * callers / best_peer, ratio);
    slow = slow || ratio > 1.5;
  }
  w->client.close_idle();
  co_await w->peers.stop();
  co_await w->server.stop(std::chrono::seconds(1));
  co_await w->http.stop(std::chrono::seconds(1));
  co_await w->group.stop();
  if (w->failed) std::printf("a call failed\n");
  co_return w->failed || (check && slow) ? 1 : 0;
}

}  // namespace
}  // namespace narad::peer

int main(int argc, char** argv) {
  narad::Runtime runtime;
  const bool check = argc > 1 && std::string_view(argv[1]) == "--check";
  return runtime.run(narad::peer::run(runtime.env(), check));
}
