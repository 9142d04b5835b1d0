// The API behind its server, over simulated streams: what only shows on the wire.
#include "pkg/http/server.h"

#include <gtest/gtest.h>

#include "internal/api/test_api.h"
#include "pkg/async/event.h"
#include "pkg/async/stream_io.h"
#include "pkg/http/client.h"

namespace narad::api {
namespace {

const Endpoint kAddress{"n0", 7942};

struct Served : Fixture {
  http::Server server;
  http::Client client;

  explicit Served(Options options = {})
      : Fixture(options),
        server(solo.env(), http::ServerOptions{}, api->admit(), api->handler()),
        client(solo.env()) {
    NARAD_ASSERT(server.listen(Endpoint{"", kAddress.port}).has_value());
    topic("orders");
  }
  ~Served() {
    client.close_idle();
    auto stopping = server.stop(Nanos(0));
    solo.run([&](Env&) { return std::move(stopping); });
  }
  http::ClientResponse request(http::Method method, std::string target, std::string body = {}) {
    http::ClientRequest request(method, std::move(target));
    request.body = std::move(body);
    auto answer = solo.run([&](Env& env) {
      return client.request(kAddress, std::move(request),
                            Deadline::after(env, std::chrono::seconds(30)));
    });
    NARAD_ASSERT(answer.has_value(), answer.error().text());
    return std::move(answer.value());
  }
};

TEST(Served, BodiesAtAndOverTheLimit_AreToldApart) {
  Served s;
  const std::string full(kMessageBytesMax, 'x');
  auto answer = s.request(http::Method::post, "/v1/topics/orders/produce", full);
  EXPECT_EQ(answer.status, 202);
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.headers.get("Content-Length"), "0");
  ASSERT_EQ(s.broker.produced.size(), 1u);
  EXPECT_EQ(s.broker.produced[0]->payload, full);
  const char* too_large = "{\"error\":\"request body too large\"}\n";
  for (const char* target : {"/v1/topics/orders/produce", "/v1/topics",
                             "/v1/topics/orders/ack:batch", "/v1/topics/none/produce"}) {
    answer = s.request(http::Method::post, target, full + "x");
    EXPECT_EQ(answer.status, 413) << target;
    EXPECT_EQ(answer.body, too_large) << target;
  }
  EXPECT_EQ(s.request(http::Method::patch, "/v1/topics/orders", full + "x").status, 413);
  // The query is looked at first.
  EXPECT_EQ(
      s.request(http::Method::post, "/v1/topics/orders/produce?partition=x", full + "x").status,
      400);
  EXPECT_EQ(s.broker.produced.size(), 1u);
  EXPECT_EQ(
      s.registry
          .counter("narad_http_requests_total", {"POST /v1/topics/{topic}/produce", "POST", "413"})
          .value(),
      2);
}

TEST(Served, BatchBodies_HaveALimitOfTheirOwn) {
  Options options;
  options.max_batch_bytes = kMessageBytesMax + 4096;
  Served s(options);
  const std::string line = "{\"value\":\"" + std::string(kMessageBytesMax / 2, 'x') + "\"}\n";
  http::ClientRequest request(http::Method::post, "/v1/topics/orders/produce:batch");
  request.headers.add("Content-Type", "application/x-ndjson");
  request.body = line + line;
  const auto status = [&] {
    auto answer = s.solo.run([&](Env& env) {
      return s.client.request(kAddress, request, Deadline::after(env, std::chrono::seconds(30)));
    });
    return answer ? answer.value().status : 0;
  };
  EXPECT_EQ(status(), 202);
  EXPECT_EQ(s.broker.produced.size(), 2u);
  request.body.append(5000, '\n');
  EXPECT_EQ(status(), 413);
  EXPECT_EQ(s.broker.produced.size(), 2u);
}

TEST(Served, Head_AnswersTheHeadersOfGet) {
  Served s;
  const auto answer = s.request(http::Method::head, "/v1/topics/orders");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.headers.get("Content-Type"), "application/json");
  EXPECT_EQ(s.request(http::Method::head, "/v1/topics/orders/consume").status, 405);
  EXPECT_TRUE(s.broker.consumes.empty());
}

TEST(Served, ClientThatHangsUp_EndsItsLongPoll) {
  Served s;
  Event forever(s.solo.env());
  bool waiting = false;
  struct Poll {
    static Task<void> run(Event& forever, bool& waiting) {
      struct Waiting {
        bool& flag;
        explicit Waiting(bool& f) : flag(f) { flag = true; }
        ~Waiting() { flag = false; }
      } here(waiting);
      co_await forever.wait();
    }
    static Task<std::unique_ptr<Stream>> ask(Env& env) {
      Endpoint to = kAddress;
      auto stream = co_await connect(env, to);
      const std::string text =
          "GET /v1/topics/orders/consume?wait=10s HTTP/1.1\r\nHost: n0\r\n\r\n";
      const error_code failed = co_await write_all(*stream, buffers_of(text));
      NARAD_ASSERT(!failed, failed.message());
      co_return std::move(stream);
    }
  };
  s.broker.before_consume = [&] { return Poll::run(forever, waiting); };
  std::unique_ptr<Stream> stream = s.solo.run([](Env& env) { return Poll::ask(env); });
  s.solo.sim.run_for(std::chrono::seconds(1));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(s.registry.gauge("narad_http_requests_in_flight").value(), 1);
  stream.reset();
  s.solo.sim.run_for(std::chrono::seconds(1));
  EXPECT_FALSE(waiting);
  EXPECT_EQ(s.registry.gauge("narad_http_requests_in_flight").value(), 0);
}

}  // namespace
}  // namespace narad::api
