#include "pkg/http/client.h"

#include <gtest/gtest.h>
#include "pkg/async/stream_io.h"
#include "pkg/base/text.h"
#include "pkg/http/server.h"
#include "pkg/http/test_world.h"

namespace narad::http {
namespace {

using std::chrono::seconds;

const Endpoint kServer{"node", 80};

// What a scripted server does with one connection: for each step it waits for that many bytes of
// request heads (one head per step), then sends the bytes; at the end it keeps or closes.
struct Script {
  std::vector<std::string> answers;
  bool close = true;
};

class ClientTest : public testing::Test {
 public:
  ClientTest() : group(world.env) {}
  ~ClientTest() override { EXPECT_TRUE(world.run(group.stop())); }

  // Serves connections one after the other with `scripts`; heads go to `heads`.
  void serve(std::vector<Script> scripts) {
    auto listener = world.env.net.listen(Endpoint{"", 80});
    ASSERT_TRUE(listener);
    group.spawn("server", run_scripts(*this, std::move(listener.value()), std::move(scripts)));
    world.poll();
  }
  static Task<void> run_scripts(ClientTest& t, std::unique_ptr<Listener> listener,
                                std::vector<Script> scripts) {
    for (auto& script : scripts) {
      auto stream = co_await accept(*listener);
      auto shared = std::make_shared<std::unique_ptr<Stream>>(std::move(stream));
      t.group.spawn("script", run_script(t, std::move(shared), std::move(script)));
    }
    co_await sleep_for(t.world.env, std::chrono::hours(1000));
  }
  static Task<void> run_script(ClientTest& t, std::shared_ptr<std::unique_ptr<Stream>> held,
                               Script script) {
    Stream& stream = **held;
    for (const auto& answer : script.answers) {
      std::string head;
      while (head.find("\r\n\r\n") == std::string::npos) {
        char c = 0;
        auto [ec, n] = co_await read_some(stream, asio::buffer(&c, 1));
        if (ec) co_return;
        head += c;
      }
      t.heads.push_back(head);
      if (co_await write_all(stream, buffers_of(answer))) co_return;
    }
    if (!script.close) co_await sleep_for(t.world.env, std::chrono::hours(1000));
  }

  Result<ClientResponse> get(ClientRequest request = {}, Nanos limit = seconds(5)) {
    auto task = client.request(kServer, std::move(request), Deadline::after(world.env, limit));
    const auto hold = [](Task<Result<ClientResponse>> t,
                         std::optional<Result<ClientResponse>>& out) -> Task<void> {
      out.emplace(co_await std::move(t));
    };
    std::optional<Result<ClientResponse>> result;
    EXPECT_TRUE(world.run(hold(std::move(task), result)));
    if (!result) return Error(Errc::internal, "the request did not end");
    return std::move(*result);
  }
  ClientRequest repeatable() {
    ClientRequest r;
    r.repeatable = true;
    return r;
  }

  TestWorld world;
  TaskGroup group;
  Client client{world.env};
  std::vector<std::string> heads;
};

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok";

TEST_F(ClientTest, Get_SendsHostAndReadsTheAnswer) {
  serve({{{kOk}, false}});
  ClientRequest request(Method::get, "/v1/topics?limit=1");
  request.headers.add("Authorization", basic_authorization("user", "pass"));
  auto r = get(std::move(request));
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r.value().status, 200);
  EXPECT_EQ(r.value().body, "ok");
  EXPECT_EQ(r.value().headers.get("x-a"), "b");
  EXPECT_EQ(heads[0],
            "GET /v1/topics?limit=1 HTTP/1.1\r\nHost: node:80\r\n"
            "Authorization: Basic dXNlcjpwYXNz\r\n\r\n");
}

TEST_F(ClientTest, PostWithoutBody_SaysLengthZero) {
  serve({{{kOk}, false}});
  ASSERT_TRUE(get(ClientRequest(Method::post, "/x")));
  EXPECT_EQ(heads[0], "POST /x HTTP/1.1\r\nHost: node:80\r\nContent-Length: 0\r\n\r\n");
}

TEST_F(ClientTest, AnswersOfEveryKind_AreRead) {
  const std::pair<const char*, const char*> cases[] = {
      {"HTTP/1.1 204 No Content\r\n\r\n", ""},
      {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", ""},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
       "abcde"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", "ok"},
  };
  std::vector<std::string> answers;
  for (const auto& [answer, body] : cases) answers.push_back(answer);
  serve({{answers, false}});
  for (const auto& [answer, body] : cases) {
    auto r = get();
    ASSERT_TRUE(r) << answer << r.error().text();
    EXPECT_EQ(r.value().body, body) << answer;
  }
  EXPECT_EQ(world.connects, 1u) << "one connection serves them all";
}

TEST_F(ClientTest, AnswerToTheEndOfTheStream_IsReadAndTheConnectionDropped) {
  serve({{{"HTTP/1.1 200 OK\r\n\r\nall of it"}}, {{kOk}}});
  EXPECT_EQ(get().value().body, "all of it");
  EXPECT_EQ(client.idle(), 0u);
  EXPECT_EQ(get().value().body, "ok");
}

TEST_F(ClientTest, AnswerToHead_HasNoBody) {
  serve({{{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", kOk}, false}});
  EXPECT_EQ(get(ClientRequest(Method::head, "/")).value().body, "");
  EXPECT_EQ(get().value().body, "ok");
  EXPECT_EQ(world.connects, 1u);
}

TEST_F(ClientTest, ConnectionClose_IsObeyed) {
  serve({{{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"}, false}});
  ASSERT_TRUE(get());
  EXPECT_EQ(client.idle(), 0u);
}

TEST_F(ClientTest, KeptConnectionThatThePeerCloses_LeavesThePoolByItself) {
  serve({{{kOk}}, {{kOk}}});
  ASSERT_TRUE(get());
  world.poll();
  EXPECT_EQ(client.idle(), 0u);
  // Not repeatable, and yet it works: the dead connection is not used at all.
  ASSERT_TRUE(get(ClientRequest(Method::post, "/x")));
  EXPECT_EQ(world.connects, 2u);
}

TEST_F(ClientTest, KeptConnection_IsClosedAfterTheIdleTimeout) {
  serve({{{kOk}, false}, {{kOk}, false}});
  ASSERT_TRUE(get());
  EXPECT_EQ(client.idle(), 1u);
  world.run_for(seconds(31));
  EXPECT_EQ(client.idle(), 0u);
  ASSERT_TRUE(get());
  EXPECT_EQ(world.connects, 2u);
}

TEST_F(ClientTest, BytesNobodyAskedFor_SpoilTheConnection) {
  serve({{{cat(kOk, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")}, false}, {{kOk}, false}});
  EXPECT_EQ(get().value().body, "ok");
  EXPECT_EQ(get().value().body, "ok");
  EXPECT_EQ(world.connects, 2u);
}

TEST_F(ClientTest, RefusedConnect_IsUnavailable) {
  auto r = get();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_EQ(r.error().text(), "cannot connect to node:80: Connection refused");
}

TEST_F(ClientTest, CloseWithoutAnAnswer_IsUnknownOutcome) {
  serve({{{""}}, {{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"}}});
  auto r = get(repeatable());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unknown_outcome);
  EXPECT_EQ(r.error().text(), "node:80 closed the connection without an answer");
  r = get(repeatable());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unknown_outcome);
  EXPECT_EQ(r.error().text(), "node:80 closed the connection in the middle of its answer");
  EXPECT_EQ(world.connects, 2u) << "a fresh connection that fails is not tried again";
}

// The server reads the second request and dies: only the client knows whether asking again is safe.
TEST_F(ClientTest, KeptConnectionThatDiesUnderARequest_IsReplacedOnlyForRepeatableOnes) {
  for (const bool may_repeat : {true, false}) {
    SCOPED_TRACE(may_repeat);
    ClientTest::heads.clear();
    world.connects = 0;
    TaskGroup scripts(world.env);
    auto listener = world.env.net.listen(Endpoint{"", 80});
    ASSERT_TRUE(listener);
    scripts.spawn("server",
                  run_scripts(*this, std::move(listener.value()), {{{kOk, ""}}, {{kOk}, false}}));
    ASSERT_TRUE(get());
    ClientRequest request;
    request.repeatable = may_repeat;
    auto r = get(std::move(request));
    EXPECT_EQ(r.has_value(), may_repeat);
    if (!r) EXPECT_EQ(r.error().code(), Errc::unknown_outcome);
    EXPECT_EQ(world.connects, may_repeat ? 2u : 1u);
    EXPECT_EQ(heads.size(), may_repeat ? 3u : 2u);
    client.close_idle();
    EXPECT_TRUE(world.run(scripts.stop()));
  }
}

TEST_F(ClientTest, Deadline_EndsTheWait) {
  Script silent;
  silent.answers = {"", kOk};
  silent.close = false;
  serve({silent});
  const Nanos before = world.now();
  auto r = get();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unknown_outcome);
  EXPECT_EQ(r.error().text(), "no answer from node:80 before the deadline");
  EXPECT_EQ(world.now() - before, seconds(5));
  r = get({}, seconds(0));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable) << "nothing was sent";
  EXPECT_EQ(client.idle(), 0u);
}

TEST_F(ClientTest, MalformedAnswers_AreDataLoss) {
  const char* answers[] = {
      "nonsense\r\n\r\n",
      "HTTP/1.1 abc OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nhe\n0\n\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"\n\"\r\nhe\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
  };
  std::vector<Script> scripts;
  for (const char* a : answers) scripts.push_back({{a}, false});
  serve(scripts);
  for (const char* a : answers) {
    auto r = get();
    ASSERT_FALSE(r) << a;
    EXPECT_EQ(r.error().code(), Errc::data_loss) << a;
    EXPECT_EQ(client.idle(), 0u);
  }
}

TEST_F(ClientTest, AnswersOverTheLimits_AreTooLarge) {
  ClientOptions options;
  options.body_bytes_max = 10;
  options.header_bytes_max = 8192;
  Client small(world.env, options);
  const std::string answers[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\n01234567890",
      "HTTP/1.1 200 OK\r\nX: " + std::string(10'000, 'x') + "\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'),
  };
  std::vector<Script> scripts;
  for (const auto& a : answers) scripts.push_back({{a}, false});
  serve(scripts);
  for (const auto& a : answers) {
    std::optional<Result<ClientResponse>> result;
    const auto hold = [](Task<Result<ClientResponse>> t,
                         std::optional<Result<ClientResponse>>& out) -> Task<void> {
      out.emplace(co_await std::move(t));
    };
    EXPECT_TRUE(world.run(
        hold(small.request(kServer, {}, Deadline::after(world.env, seconds(5))), result)));
    ASSERT_FALSE(*result) << a.substr(0, 60);
    EXPECT_EQ(result->error().code(), Errc::too_large) << result->error().text();
  }
}

TEST_F(ClientTest, TargetThatIsNotEncoded_IsRefused) {
  for (const char* target : {"", "x", "/a b", "/a\r\nX: y", "/\x01", "/\x7f"}) {
    auto r = get(ClientRequest(Method::get, target));
    ASSERT_FALSE(r) << target;
    EXPECT_EQ(r.error().code(), Errc::invalid_argument);
  }
  EXPECT_EQ(world.connects, 0u);
}

TEST_F(ClientTest, ManyRequestsAtOnce_KeepAtMostIdleMax) {
  std::vector<Script> scripts(20, Script{{kOk}, false});
  serve(scripts);
  int done = 0;
  const auto one = [](ClientTest& t, int& done) -> Task<void> {
    auto r = co_await t.client.request(kServer, {}, Deadline::after(t.world.env, seconds(5)));
    if (r) ++done;
  };
  for (int i = 0; i < 20; ++i) group.spawn("request", one(*this, done));
  world.run_for(seconds(1));
  EXPECT_EQ(done, 20);
  EXPECT_EQ(client.idle(), 8u);
}

TEST_F(ClientTest, CancelledRequest_EndsAsACancellation) {
  serve({{{""}, false}});
  TaskGroup requests(world.env);
  bool returned = false;
  const auto one = [](ClientTest& t, bool& returned) -> Task<void> {
    auto r = co_await t.client.request(kServer, {}, Deadline::after(t.world.env, seconds(50)));
    returned = true;
  };
  requests.spawn("request", one(*this, returned));
  world.run_for(seconds(1));
  EXPECT_TRUE(world.run(requests.stop()));
  EXPECT_FALSE(returned);
  EXPECT_EQ(world.exit_reason, "");
}

// ---- against our own server
// ----------------------------------------------------------------------

Task<Response> echo(Request request) { co_return json_response(200, std::move(request.body)); }

TEST_F(ClientTest, OwnServer_EchoesBodiesOfManySizes) {
  auto admit = [](Request&) { return Admission{.body_bytes_max = 4 << 20}; };
  Server server(world.env, {}, admit, [](Request r) { return echo(std::move(r)); });
  ASSERT_TRUE(server.listen(kServer));
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 65'536u, 2'000'000u}) {
    ClientRequest request(Method::post, "/echo");
    for (std::size_t i = 0; i < size; ++i) request.body += static_cast<char>('a' + i % 26);
    const std::string body = request.body;
    auto r = get(std::move(request));
    ASSERT_TRUE(r) << r.error().text();
    EXPECT_EQ(r.value().status, 200);
    EXPECT_TRUE(r.value().body == body) << size;
  }
  EXPECT_EQ(world.connects, 1u);
  client.close_idle();
  EXPECT_TRUE(world.run(server.stop(seconds(1))));
}

// 413 comes while the client still writes: it must see the answer, not a broken pipe.
TEST_F(ClientTest, OwnServerThatRefusesALargeBody_IsHeard) {
  auto admit = [](Request&) { return Admission{.body_bytes_max = 100}; };
  Server server(world.env, {}, admit, [](Request r) { return echo(std::move(r)); });
  ASSERT_TRUE(server.listen(kServer));
  for (const std::size_t size : {101u, 100'000u, 8'000'000u}) {
    ClientRequest request(Method::post, "/echo");
    request.body.assign(size, 'x');
    auto r = get(std::move(request));
    ASSERT_TRUE(r) << size << ' ' << r.error().text();
    EXPECT_EQ(r.value().status, 413);
  }
  client.close_idle();
  EXPECT_TRUE(world.run(server.stop(seconds(10))));
}

TEST(BasicAuthorization, RfcExample_Matches) {
  EXPECT_EQ(basic_authorization("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

}  // namespace
}  // namespace narad::http
