// The plane over real sockets: one small test, that the doors of Linux do what the simulated ones
// promise.
#include <gtest/gtest.h>

#include <map>

#include "internal/peer/peers.h"
#include "internal/peer/server.h"
#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"
#include "pkg/env/real/test_certificates.h"
#include "pkg/env/real/tls.h"

namespace narad::peer {
namespace {

struct Party final : Self, AddressBook {
  explicit Party(Sender s) : id(std::move(s)) {}
  Sender id;
  std::map<std::string, Endpoint> addresses;
  Sender identity() const override { return id; }
  std::optional<ReplicaId> configured_replica(const std::string&) const override { return {}; }
  std::optional<Endpoint> address_of(const std::string& node) const override {
    const auto it = addresses.find(node);
    if (it == addresses.end()) return std::nullopt;
    return it->second;
  }
};

Task<http::Response> echo(Sender who, http::Request request) {
  http::Response response = http::json_response(200, std::move(request.body));
  response.headers.add("X-Sender", who.node_id);
  co_return response;
}

PeersOptions calling(std::string secret) {
  PeersOptions options;
  options.secret = std::move(secret);
  return options;
}
ServerOptions listening(std::string secret) {
  ServerOptions options;
  options.secret = std::move(secret);
  return options;
}

struct World {
  explicit World(Env& env)
      : n0(Sender{"n0", ReplicaId(1), 7}),
        n1(Sender{"n1", ReplicaId(2), 7}),
        peers(env, calling("s"), n0, n0),
        stranger(env, calling("another"), n0, n0),
        server(env, listening("s"), n1),
        group(env) {}
  Party n0, n1;
  Peers peers, stranger;
  Server server;
  TaskGroup group;
  int answered = 0;
};

Task<void> call_often(World* w, Lane lane, std::size_t bytes) {
  for (int i = 0; i < 50; ++i) {
    const std::string body(bytes + static_cast<std::size_t>(i), 'x');
    Call call(http::Method::post, cat("/peer/v1/", to_string(lane), "/echo"), body);
    auto r = co_await w->peers.call("n1", lane, std::move(call), std::chrono::seconds(10));
    EXPECT_TRUE(r) << r.error().text();
    if (!r) co_return;
    EXPECT_EQ(r.value().headers.get("X-Sender"), "n0");
    EXPECT_TRUE(r.value().body == body);
    ++w->answered;
  }
}

Task<int> check(Env& env) {
  auto w = std::make_shared<World>(env);
  RouteOptions options;
  options.body_bytes_max = 4u << 20;
  for (Lane lane : {Lane::raft, Lane::control, Lane::data, Lane::bulk})
    w->server.route(cat("POST /peer/v1/", to_string(lane), "/echo"), lane, echo, options);
  auto listen = w->server.listen(Endpoint{"127.0.0.1", 0});
  EXPECT_TRUE(listen);
  w->n0.addresses["n1"] = w->server.local().front();
  for (Lane lane : {Lane::raft, Lane::control, Lane::data, Lane::bulk}) {
    for (std::size_t bytes : {0, 500, 600'000})
      w->group.spawn("calls", call_often(w.get(), lane, bytes));
  }
  while (w->group.size() > 0) co_await sleep_for(env, std::chrono::milliseconds(2));
  EXPECT_EQ(w->answered, 4 * 3 * 50);

  Call call(http::Method::post, "/peer/v1/control/echo", "x");
  auto refused = co_await w->stranger.call("n1", Lane::control, call, std::chrono::seconds(10));
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::unavailable);
  EXPECT_NE(refused.error().text().find("do not have the same cluster secret"), std::string::npos);
  co_await w->server.stop(std::chrono::seconds(1));
  auto gone = co_await w->peers.call("n1", Lane::control, call, std::chrono::seconds(10));
  EXPECT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Errc::unavailable);
  co_await w->peers.stop();
  co_await w->stranger.stop();
  co_await w->group.stop();
  co_return 0;
}

TEST(PeerReal, CallsOverLoopback_AreAnsweredAndStrangersRefused) {
  RuntimeOptions options;
  options.log.level = LogLevel::error;
  Runtime runtime(options);
  EXPECT_EQ(runtime.run(check(runtime.env())), 0);
}

// ---- with TLS
// ------------------------------------------------------------------------------------

std::shared_ptr<const TlsContext> load(const TlsFiles& files) {
  auto context = TlsContext::load(files);
  EXPECT_TRUE(context) << context.error().text();
  return context.value();
}

// n1 listens with TLS; n0 calls it with a certificate of the same authority, with one of another,
// and without TLS.
struct TlsWorld {
  explicit TlsWorld(Env& e)
      : server_net(e.net, e.executor, load(ca.issue("n1"))),
        client_net(e.net, e.executor, load(ca.issue("n0"))),
        strange_net(e.net, e.executor, load(other.issue("n0"))),
        server_env(with_net(e, server_net)),
        client_env(with_net(e, client_net)),
        strange_env(with_net(e, strange_net)),
        n0(Sender{"n0", ReplicaId(1), 7}),
        n1(Sender{"n1", ReplicaId(2), 7}),
        peers(client_env, calling("s"), n0, n0),
        strange(strange_env, calling("s"), n0, n0),
        plain(e, calling("s"), n0, n0),
        server(server_env, listening("s"), n1) {}
  ::narad::testing::CertificateAuthority ca{"peers"}, other{"others"};
  TlsNet server_net, client_net, strange_net;
  Env server_env, client_env, strange_env;
  Party n0, n1;
  Peers peers, strange, plain;
  Server server;
};

Task<int> check_tls(std::shared_ptr<TlsWorld> w) {
  RouteOptions options;
  options.body_bytes_max = 4u << 20;
  w->server.route("POST /peer/v1/echo", Lane::data, echo, options);
  EXPECT_TRUE(w->server.listen(Endpoint{"127.0.0.1", 0}));
  w->n0.addresses["n1"] = w->server.local().front();
  for (std::size_t bytes : {std::size_t{0}, std::size_t{500}, std::size_t{3'000'000}}) {
    const std::string body(bytes, 'x');
    Call call(http::Method::post, "/peer/v1/echo", body);
    auto r = co_await w->peers.call("n1", Lane::data, std::move(call), std::chrono::seconds(20));
    EXPECT_TRUE(r) << r.error().text();
    if (r) EXPECT_TRUE(r.value().body == body);
  }
  EXPECT_EQ(w->peers.stats(Lane::data).connects, 1u);
  Call call(http::Method::post, "/peer/v1/echo", "x");
  auto strange = co_await w->strange.call("n1", Lane::data, call, std::chrono::seconds(20));
  EXPECT_FALSE(strange);
  EXPECT_EQ(strange.error().code(), Errc::unavailable);
  EXPECT_NE(strange.error().text().find("certificate verify failed"), std::string::npos)
      << strange.error().text();
  auto plain = co_await w->plain.call("n1", Lane::data, call, std::chrono::seconds(20));
  EXPECT_FALSE(plain);
  EXPECT_EQ(plain.error().code(), Errc::unavailable);
  co_await w->peers.stop();
  co_await w->strange.stop();
  co_await w->plain.stop();
  co_await w->server.stop(std::chrono::seconds(1));
  co_return 0;
}

TEST(PeerReal, CallsWithMutualTls_AreAnsweredAndOtherAuthoritiesRefused) {
  RuntimeOptions options;
  options.log.level = LogLevel::error;
  Runtime runtime(options);
  auto world = std::make_shared<TlsWorld>(runtime.env());
  EXPECT_EQ(runtime.run(check_tls(world)), 0);
  runtime.shutdown();
}

}  // namespace
}  // namespace narad::peer
