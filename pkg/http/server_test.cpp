#include "pkg/http/server.h"

#include <gtest/gtest.h>
#include "pkg/async/event.h"
#include "pkg/base/text.h"
#include "pkg/http/test_world.h"

namespace narad::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum Ids { kEcho = 1, kInfo, kWait, kWatched, kThrow, kLarge, kClose, kEmpty, kUnicode, kTiny };

// A server with one of each kind of route; counts and remembers what its handlers saw.
class ServerTest : public testing::Test {
 protected:
  ServerTest() : release(world.env) {}

  void start(ServerOptions options = {}) {
    router.add("POST /echo", kEcho);
    router.add("PUT /echo", kEcho);
    router.add("GET /info", kInfo);
    router.add("GET /info/{name}", kInfo);
    router.add("GET /wait", kWait);
    router.add("GET /throw", kThrow);
    router.add("GET /close", kClose);
    router.add("POST /empty", kEmpty);
    RouteOptions watched;
    watched.cancel_when_gone = true;
    router.add("GET /watched", kWatched, watched);
    RouteOptions large;
    large.body_bytes_max = 10;
    large.handler_refuses_large = true;
    router.add("POST /large", kLarge, large);
    RouteOptions tiny;
    tiny.body_bytes_max = 10;
    router.add("POST /tiny", kTiny, tiny);
    auto handler = [this](Request r) { return handle(*this, std::move(r)); };
    server = std::make_unique<Server>(world.env, options, admit_with(router), std::move(handler));
    ASSERT_TRUE(server->listen(Endpoint{"", 80}));
    world.poll();
  }

  ~ServerTest() override {
    if (server) EXPECT_TRUE(world.run(server->stop(Nanos(0))));
    EXPECT_EQ(world.exit_reason, "");
  }

  static Task<Response> handle(ServerTest& t, Request r) {
    ++t.handled;
    t.last = r;
    if (!r.match) co_return t.router.refuse(r.method, r.target);
    switch (r.match.route->id) {
      case kEcho:
      case kTiny:
        co_return json_response(200, cat(r.body.size(), ':', std::string(r.body)));
      case kInfo:
        co_return json_response(200, "info\n");
      case kThrow:
        throw std::runtime_error("a bug");
      case kClose: {
        Response response = json_response(200, "bye\n");
        response.close = true;
        co_return response;
      }
      case kEmpty:
        co_return empty_response(202);
      case kLarge:
        if (r.body_too_large) co_return error_response(413, "handler says too large");
        co_return json_response(200, "fits\n");
      case kWait:
      case kWatched: {
        ++t.waiting;
        struct Leave {
          int& waiting;
          ~Leave() { --waiting; }
        } leave{t.waiting};
        co_await t.release.wait();
        co_return json_response(200, "released\n");
      }
    }
    co_return error_response(500, "no such route");
  }

  // Sends, lets the server act, takes what it answered.
  std::string exchange(TestWorld::Peer& peer, std::string_view bytes) {
    peer.send(bytes);
    world.poll();
    return peer.take();
  }
  std::string ask(std::string_view bytes) {
    auto peer = world.dial(80);
    return exchange(peer, bytes);
  }

  TestWorld world;
  Router router;
  Event release;
  std::unique_ptr<Server> server;
  int handled = 0;
  int waiting = 0;
  Request last;
};

constexpr std::string_view kInfoRequest = "GET /info HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::string_view kInfoAnswer =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\ninfo\n";
constexpr std::string_view kEchoAnswer =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n5:hello";

int status_of(std::string_view answer) {
  if (!answer.starts_with("HTTP/1.1 ")) return 0;
  return std::atoi(std::string(answer.substr(9, 3)).c_str());
}

TEST_F(ServerTest, ServedConnection_ItsContext_ReachesEveryHandler) {
  start();
  auto c = world.connection();
  auto context = std::make_shared<const std::string>("n2");
  server->serve(std::move(c.near), context);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(exchange(c.far, kInfoRequest), kInfoAnswer);
    EXPECT_EQ(last.context, context);
  }
  ask(kInfoRequest);
  EXPECT_EQ(last.context, nullptr);
}

TEST_F(ServerTest, Get_IsAnsweredAndTheConnectionKept) {
  start();
  auto peer = world.dial(80);
  EXPECT_EQ(exchange(peer, "GET /info/a%20b?x=1 HTTP/1.1\r\nHost: x\r\nX-One: 1\r\n\r\n"),
            kInfoAnswer);
  EXPECT_EQ(last.match.param("name"), "a b");
  EXPECT_EQ(last.query(), "x=1");
  EXPECT_EQ(last.path(), "/info/a%20b");
  EXPECT_EQ(last.headers.get("x-one"), "1");
  EXPECT_EQ(last.peer->host, "10.0.0.1");
  EXPECT_EQ(exchange(peer, kInfoRequest), kInfoAnswer);
  EXPECT_FALSE(peer.closed());
  EXPECT_EQ(server->stats().served, 2u);
}

TEST_F(ServerTest, BodyWithLength_ReachesTheHandlerWhole) {
  start();
  auto peer = world.dial(80);
  EXPECT_EQ(exchange(peer, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"),
            kEchoAnswer);
  EXPECT_EQ(exchange(peer, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n0:");
}

TEST_F(ServerTest, LargeBody_ArrivesInPieces) {
  start();
  auto peer = world.dial(80);
  std::string body(1 << 20, 'x');
  for (std::size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i % 26);
  peer.send(cat("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n\r\n"));
  for (std::size_t at = 0; at < body.size(); at += 70'000) {
    peer.send(std::string_view(body).substr(at, 70'000));
    world.poll();
  }
  const std::string answer = peer.take() + (world.poll(), peer.take());
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_EQ(last.body, body);
  EXPECT_TRUE(answer.ends_with(body));
  EXPECT_EQ(server->stats().buffered_bytes, 0u);
}

TEST_F(ServerTest, ChunkedBody_IsJoinedAndTrailersIgnored) {
  start();
  auto peer = world.dial(80);
  constexpr std::string_view kRequest =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhe\r\n3;ext=\"a b\"\r\nllo\r\n0\r\nAuthorization: Basic eDp5\r\n\r\n";
  EXPECT_EQ(exchange(peer, kRequest), kEchoAnswer);
  EXPECT_EQ(last.headers.get("Authorization"), std::nullopt);
  EXPECT_EQ(exchange(peer, kInfoRequest), kInfoAnswer);
}

TEST_F(ServerTest, EveryMessage_MayBeSplitAtEveryByte) {
  start();
  const std::string requests[] = {
      std::string(kInfoRequest), "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n"};
  const std::string_view answers[] = {kInfoAnswer, kEchoAnswer, kEchoAnswer};
  for (int i = 0; i < 3; ++i) {
    for (std::size_t cut = 1; cut < requests[i].size(); ++cut) {
      auto peer = world.dial(80);
      const std::string_view r = requests[i];
      EXPECT_EQ(exchange(peer, r.substr(0, cut)), "") << cut;
      EXPECT_EQ(exchange(peer, r.substr(cut)), answers[i]) << i << " cut at " << cut;
    }
    auto peer = world.dial(80);
    std::string answer;
    for (const char c : requests[i]) answer += exchange(peer, std::string_view(&c, 1));
    EXPECT_EQ(answer, answers[i]) << i << " byte by byte";
  }
}

TEST_F(ServerTest, PipelinedRequests_AreAnsweredInOrder) {
  start();
  auto peer = world.dial(80);
  std::string requests, expected;
  for (int i = 0; i < 300; ++i) {
    if (i % 3 == 0) {
      requests += kInfoRequest;
      expected += kInfoAnswer;
    } else if (i % 3 == 1) {
      requests += "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
      expected += kEchoAnswer;
    } else {
      requests +=
          "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
          "0\r\n\r\n";
      expected += kEchoAnswer;
    }
  }
  EXPECT_EQ(exchange(peer, requests), expected);
  EXPECT_EQ(handled, 300);
}

TEST_F(ServerTest, EmptyLinesBeforeARequest_AreSkipped) {
  start();
  auto peer = world.dial(80);
  EXPECT_EQ(exchange(peer, cat("\r\n\r\n", kInfoRequest)), kInfoAnswer);
  EXPECT_EQ(exchange(peer, "\r"), "");
  EXPECT_EQ(exchange(peer, cat("\n", kInfoRequest)), kInfoAnswer);
}

// What must be refused, and how. Each would let two parsers disagree about where a message ends, or
// what it asks for.
struct Refused {
  const char* name;
  const char* request;
  int status;
};
void PrintTo(const Refused& r, std::ostream* out) { *out << r.name; }
class ServerRefusal : public ServerTest, public testing::WithParamInterface<Refused> {};

TEST_P(ServerRefusal, MalformedRequest_IsRefusedAndTheConnectionClosed) {
  start();
  auto peer = world.dial(80);
  peer.send(GetParam().request);
  peer.send(kInfoRequest);  // must not be taken for a request
  peer.shutdown();
  world.poll();
  const std::string answer = peer.take();
  EXPECT_EQ(status_of(answer), GetParam().status) << answer;
  EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("\nHTTP/1.1 "), std::string::npos) << "more than one answer: " << answer;
  world.poll();
  EXPECT_TRUE(peer.closed());
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(server->stats().connections, 0u);
}

// Nothing that comes later could make them right, so the client need not wait for a time-out.
TEST_P(ServerRefusal, MalformedRequest_IsRefusedAtOnce) {
  start();
  auto peer = world.dial(80);
  EXPECT_EQ(status_of(exchange(peer, GetParam().request)), GetParam().status);
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, ServerRefusal,
    testing::Values(
        Refused{"NoVersion", "GET /info\r\nHost: x\r\n\r\n", 400},
        Refused{"Http2Preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
        Refused{"Http20", "GET /info HTTP/2.0\r\nHost: x\r\n\r\n", 400},
        Refused{"Http09Version", "GET /info HTTP/0.9\r\nHost: x\r\n\r\n", 400},
        Refused{"TwoSpaces", "GET  /info HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Refused{"NoTarget", "GET HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Refused{"RelativeTarget", "GET info HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Refused{"Asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Refused{"Connect", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 400},
        Refused{"BadEscapeInPath", "GET /info/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Refused{"CutEscapeInPath", "GET /info/%2 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Refused{"ControlInTarget",
                "GET /in\x01"
                "fo HTTP/1.1\r\nHost: x\r\n\r\n",
                400},
        Refused{"NoHost", "GET /info HTTP/1.1\r\n\r\n", 400},
        Refused{"TwoHosts", "GET /info HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
        Refused{"SpaceBeforeColon", "GET /info HTTP/1.1\r\nHost : x\r\n\r\n", 400},
        Refused{"NoColon", "GET /info HTTP/1.1\r\nHost x\r\n\r\n", 400},
        Refused{"EmptyName", "GET /info HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", 400},
        Refused{"BareLineFeed", "GET /info HTTP/1.1\nHost: x\n\n", 400},
        Refused{"BareLineFeedInField", "GET /info HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400},
        Refused{"BareCarriageReturn", "GET /info HTTP/1.1\r\nHost: x\rX: y\r\n\r\n", 400},
        Refused{"ControlInField", "GET /info HTTP/1.1\r\nHost: x\r\nX: a\x01\r\n\r\n", 400},
        Refused{"NegativeLength", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                400},
        Refused{"PlusLength", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n", 400},
        Refused{"HexLength", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0x5\r\n\r\n", 400},
        Refused{"EmptyLength", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n", 400},
        Refused{"HugeLength",
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                400},
        Refused{"LengthList", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\n",
                400},
        Refused{"TwoEqualLengths",
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: "
                "5\r\n\r\nhello",
                400},
        Refused{"TwoLengths",
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: "
                "6\r\n\r\nhello",
                400},
        Refused{"LengthAndChunked",
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\n\r\n",
                400},
        Refused{"ChunkedAndLength",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
                400},
        Refused{"TwoChunked",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                400},
        Refused{"GzipCoding", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
                501},
        Refused{"GzipThenChunked",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
        Refused{"ChunkedThenChunked",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
                501},
        Refused{"Chunked10", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                400},
        Refused{"BadChunkSize",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
        Refused{"HugeChunkSize",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n1ffffffffffffffff\r\n",
                400},
        Refused{"ChunkWithoutEnd",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n2\r\nheXX0\r\n\r\n",
                400},
        Refused{"BareLineFeedInChunks",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n2\nhe\n0\n\n",
                400},
        Refused{"BareLineFeedAfterChunkData",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n2\r\nhe\n0\r\n\r\n",
                400},
        Refused{"BareLineFeedInChunkSize",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n2\nhe\r\n0\r\n\r\n",
                400},
        Refused{"BareLineFeedInChunkExtension",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n2;a=\"\n\"\r\nhe\r\n0\r\n\r\n",
                400},
        Refused{"BareLineFeedAtTheEnd",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n2\r\nhe\r\n0\r\n\n",
                400},
        Refused{"BareLineFeedInTrailer",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\nX: y\n\r\n",
                400},
        Refused{"BareCarriageReturnInTrailer",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\nX: y\rZ: z\r\n\r\n",
                400},
        Refused{"LengthInTrailer",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
                400},
        Refused{"OtherExpectation",
                "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\nContent-Length: "
                "5\r\n\r\nhello",
                417}),
    [](const auto& info) { return info.param.name; });

TEST_F(ServerTest, AbsoluteTarget_IsServedLikeItsPath) {
  start();
  EXPECT_EQ(status_of(ask("GET http://x:80/info?a=1 HTTP/1.1\r\nHost: x\r\n\r\n")), 200);
  EXPECT_EQ(last.target, "/info?a=1");
  EXPECT_EQ(status_of(ask("GET HTTPS://x HTTP/1.1\r\nHost: x\r\n\r\n")), 404);
  EXPECT_EQ(last.target, "/");
  ask("GET http://x?q HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(last.target, "/?q");
}

TEST_F(ServerTest, ObsoleteFolding_BecomesASpace) {
  start();
  EXPECT_EQ(status_of(ask("GET /info HTTP/1.1\r\nHost: x\r\nX-A: one\r\n two\r\n\r\n")), 200);
  EXPECT_EQ(last.headers.get("X-A"), "one two");
}

TEST_F(ServerTest, HeadOfGet_HasLengthAndNoBody) {
  start();
  EXPECT_EQ(ask("HEAD /info HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(last.method, Method::head);
}

TEST_F(ServerTest, EmptyAnswer_HasLengthZeroAndNoType) {
  start();
  EXPECT_EQ(ask("POST /empty HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
}

TEST_F(ServerTest, WrongMethodAndPath_AreTheHandlersAnswer) {
  start();
  EXPECT_EQ(ask("BREW /info HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 19\r\nX-Content-Type-Options: nosniff\r\nAllow: GET, HEAD\r\n\r\n"
            "Method Not Allowed\n");
  EXPECT_EQ(status_of(ask("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")), 404);
}

TEST_F(ServerTest, ConnectionHeader_DecidesWhetherItIsKept) {
  start();
  const std::pair<const char*, bool> cases[] = {
      {"GET /info HTTP/1.1\r\nHost: x\r\n\r\n", true},
      {"GET /info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false},
      {"GET /info HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive, CLOSE\r\n\r\n", false},
      {"GET /info HTTP/1.0\r\n\r\n", false},
      {"GET /info HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
      {"GET /close HTTP/1.1\r\nHost: x\r\n\r\n", false},
  };
  for (const auto& [request, kept] : cases) {
    auto peer = world.dial(80);
    const std::string answer = exchange(peer, request);
    EXPECT_EQ(status_of(answer), 200) << request;
    EXPECT_EQ(peer.closed(), !kept) << request;
    EXPECT_EQ(answer.find("Connection: close") != std::string::npos, !kept) << answer;
  }
}

TEST_F(ServerTest, ExpectContinue_IsAnsweredBeforeTheBody) {
  start();
  auto peer = world.dial(80);
  constexpr std::string_view kHead =
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(exchange(peer, kHead), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(exchange(peer, "hello"), kEchoAnswer);
  // A client that did not wait is not told to go on.
  EXPECT_EQ(exchange(peer, cat(kHead, "hello")), kEchoAnswer);
  EXPECT_EQ(exchange(peer, "POST /empty HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n"),
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
}

TEST_F(ServerTest, ExpectContinueForTooMuch_IsRefusedAtOnce) {
  start();
  const std::string answer =
      ask("POST /tiny HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  EXPECT_EQ(status_of(answer), 413);
}

TEST_F(ServerTest, BodyOverTheLimit_Is413JsonAndClosed) {
  start();
  const std::string head = "POST /tiny HTTP/1.1\r\nHost: x\r\n";
  const std::string ok[] = {head + "Content-Length: 10\r\n\r\n0123456789",
                            head +
                                "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n"
                                "0\r\n\r\n"};
  for (const auto& request : ok) EXPECT_EQ(status_of(ask(request)), 200) << request;
  const std::string over[] = {
      head + "Content-Length: 11\r\n\r\n01234567890",
      head + "Content-Length: 18446744073709551615\r\n\r\n",
      head + "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n6\r\n567890\r\n0\r\n\r\n",
      head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
  };
  for (const auto& request : over) {
    auto peer = world.dial(80);
    const int before = handled;
    const std::string answer = exchange(peer, request);
    EXPECT_EQ(answer,
              "HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: application/json\r\n"
              "Content-Length: 35\r\nConnection: close\r\n\r\n"
              "{\"error\":\"request body too large\"}\n")
        << request;
    EXPECT_EQ(handled, before);
    EXPECT_TRUE(peer.closed());
  }
}

// The client may still be sending: a close would be a reset, and the reset would overtake the
// answer.
TEST_F(ServerTest, RefusedBody_IsReadAwayForAWhileSoThatTheAnswerArrives) {
  start();
  auto peer = world.dial(80);
  EXPECT_EQ(status_of(exchange(peer,
                               "POST /tiny HTTP/1.1\r\nHost: x\r\nContent-Length: "
                               "1000000\r\n\r\n")),
            413);
  EXPECT_TRUE(peer.from->ended);
  for (int i = 0; i < 10; ++i) {
    peer.send(std::string(10'000, 'x'));
    world.poll();
    EXPECT_EQ(peer.to->bytes, "");
    EXPECT_FALSE(peer.from->reset);
  }
  EXPECT_EQ(server->stats().connections, 1u);
  world.run_for(seconds(5));
  EXPECT_EQ(server->stats().connections, 0u);
}

// A client that sends all of its body before it looks for an answer must get to read that answer.
TEST_F(ServerTest, LargeRefusedBody_IsReadAwayWholeBeforeTheClose) {
  start();
  const std::string piece(1 << 20, 'x');
  for (const std::string_view route : {"/tiny", "/large"}) {
    auto peer = world.dial(80);
    peer.send(
        cat("POST ", route, " HTTP/1.1\r\nHost: x\r\nContent-Length: ", 40u << 20, "\r\n\r\n"));
    for (int i = 0; i < 40; ++i) {
      peer.send(piece);
      world.run_for(milliseconds(100));
      ASSERT_EQ(peer.to->bytes, "") << route << ' ' << i;
    }
    EXPECT_FALSE(peer.from->reset);
    EXPECT_EQ(status_of(peer.take()), 413) << route;
    peer.shutdown();
    world.poll();
    EXPECT_EQ(server->stats().connections, 0u);
  }
}

TEST_F(ServerTest, RefusedBodyWithoutEnd_IsCutOff) {
  start();
  const std::string piece(1 << 20, 'x');
  for (const bool fast : {true, false}) {
    auto peer = world.dial(80);
    peer.send("POST /tiny HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
    for (int i = 0; i < 80 && server->stats().connections > 0; ++i) {
      peer.send(fast ? std::string_view(piece) : std::string_view("x"));
      world.run_for(fast ? milliseconds(1) : milliseconds(1000));
    }
    EXPECT_EQ(server->stats().connections, 0u) << fast;
  }
}

TEST_F(ServerTest, HandlerThatRefusesLargeItself_IsCalledWithTheFlag) {
  start();
  auto peer = world.dial(80);
  for (const char* body : {"Content-Length: 11\r\n\r\n01234567890",
                           "Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n"}) {
    auto fresh = world.dial(80);
    const std::string answer = exchange(fresh, cat("POST /large HTTP/1.1\r\nHost: x\r\n", body));
    EXPECT_NE(answer.find("handler says too large"), std::string::npos) << answer;
    EXPECT_TRUE(last.body_too_large);
    EXPECT_EQ(last.body, "");
    fresh.shutdown();
    world.poll();
    EXPECT_TRUE(fresh.closed());
  }
  EXPECT_EQ(
      status_of(exchange(peer, "POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")),
      200);
  EXPECT_FALSE(last.body_too_large);
}

TEST_F(ServerTest, HeadersOverTheLimit_Are431) {
  ServerOptions options;
  options.header_bytes_max = 8192;
  start(options);
  const auto request = [](std::size_t bytes) {
    std::string r = "GET /info HTTP/1.1\r\nHost: x\r\nX: ";
    r += std::string(bytes - r.size() - 4, 'a');
    return r + "\r\n\r\n";
  };
  EXPECT_EQ(status_of(ask(request(8191))), 200);
  EXPECT_EQ(status_of(ask(request(8193))), 431);
  EXPECT_EQ(status_of(ask(request(100'000))), 431);
  EXPECT_EQ(status_of(ask("GET /" + std::string(100'000, 'a'))), 431);
  std::string many = "GET /info HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 2000; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(ask(many + "\r\n")), 431);
  // In small pieces, so that the parser eats line by line.
  auto peer = world.dial(80);
  std::string answer;
  for (std::size_t at = 0; at < many.size() && answer.empty(); at += 100)
    answer = exchange(peer, std::string_view(many).substr(at, 100));
  EXPECT_EQ(status_of(answer), 431);
}

TEST_F(ServerTest, LargeHead_FitsAndTheNextConnectionStartsSmall) {
  start();
  auto peer = world.dial(80);
  const std::string value(60'000, 'v');
  EXPECT_EQ(exchange(peer, cat("GET /info HTTP/1.1\r\nHost: x\r\nX: ", value, "\r\n\r\n")),
            kInfoAnswer);
  EXPECT_EQ(last.headers.get("X"), value);
  EXPECT_EQ(exchange(peer, kInfoRequest), kInfoAnswer);
}

TEST_F(ServerTest, EndlessChunkHeader_IsRefused) {
  start();
  auto peer = world.dial(80);
  exchange(peer, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;");
  std::string answer;
  for (int i = 0; i < 100 && answer.empty(); ++i) answer = exchange(peer, std::string(1000, 'x'));
  EXPECT_EQ(status_of(answer), 400);
}

TEST_F(ServerTest, BodiesTogetherOverTheLimit_Are503) {
  ServerOptions options;
  options.buffered_bytes_max = 250'000;
  start(options);
  auto first = world.dial(80);
  exchange(first, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 9; ++i) exchange(first, std::string(10'000, 'x'));
  EXPECT_GT(server->stats().buffered_bytes, 90'000u);
  auto second = world.dial(80);
  exchange(second, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  EXPECT_EQ(status_of(exchange(second, std::string(90'000, 'x'))), 503);
  EXPECT_EQ(server->stats().buffered_bytes, 100'000u);
  auto chunked = world.dial(80);
  exchange(chunked, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(status_of(exchange(chunked, "15f90\r\n" + std::string(90'000, 'x'))), 503);
  // Announcing costs nothing: memory follows what has arrived.
  auto small = world.dial(80);
  EXPECT_EQ(exchange(small, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"),
            kEchoAnswer);
  EXPECT_EQ(status_of(exchange(first, std::string(10'000, 'x'))), 200);
  EXPECT_EQ(server->stats().buffered_bytes, 0u);
}

// Twenty bulk loads that never end hold less than all, so that ordinary messages go on.
TEST_F(ServerTest, ManyLargeBodies_LeaveRoomForSmallOnes) {
  ServerOptions options;
  options.buffered_bytes_max = 10 << 20;
  start(options);
  std::vector<TestWorld::Peer> bulk;
  for (int i = 0; i < 20; ++i) {
    auto& peer = bulk.emplace_back(world.dial(80));
    exchange(peer, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
    exchange(peer, std::string(1'000'000, 'x'));
  }
  EXPECT_LE(server->stats().buffered_bytes, options.buffered_bytes_max);
  const std::string body(100'000, 'm');
  const std::string answer =
      ask(cat("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  EXPECT_EQ(status_of(answer), 200) << answer;
}

TEST_F(ServerTest, HandlerThatThrows_Is500AndLogged) {
  start();
  auto peer = world.dial(80);
  EXPECT_EQ(exchange(peer, "GET /throw HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"
            "Content-Length: 33\r\n\r\n{\"error\":\"internal server panic\"}");
  EXPECT_EQ(world.log.back(), "request handler failed error=a bug");
  EXPECT_EQ(exchange(peer, kInfoRequest), kInfoAnswer);
}

// ---- time-outs --------------------------------------------------------------------------------

TEST_F(ServerTest, SilentConnection_IsClosedAfterTheReadTimeout) {
  start();
  auto peer = world.dial(80);
  world.run_for(seconds(9));
  EXPECT_FALSE(peer.closed());
  world.run_for(seconds(4));
  EXPECT_TRUE(peer.closed());
  EXPECT_EQ(server->stats().timed_out, 1u);
}

TEST_F(ServerTest, IdleConnection_IsClosedAfterTheIdleTimeout) {
  start();
  auto peer = world.dial(80);
  exchange(peer, kInfoRequest);
  world.run_for(seconds(59));
  EXPECT_FALSE(peer.closed());
  EXPECT_EQ(exchange(peer, kInfoRequest), kInfoAnswer);
  world.run_for(seconds(59));
  EXPECT_FALSE(peer.closed());
  world.run_for(seconds(4));
  EXPECT_TRUE(peer.closed());
}

// One byte a second keeps the connection busy but ends no request.
TEST_F(ServerTest, SlowHead_IsCutOffByTheReadTimeout) {
  start();
  auto peer = world.dial(80);
  exchange(peer, kInfoRequest);
  const std::string_view request = "GET /info HTTP/1.1\r\nHost: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
  const std::size_t at_once = request.size() - 15;
  peer.send(request.substr(0, at_once));
  world.poll();
  for (std::size_t i = at_once; i < request.size() && !peer.closed(); ++i) {
    world.run_for(seconds(1));
    peer.send(request.substr(i, 1));
  }
  EXPECT_TRUE(peer.closed());
  EXPECT_EQ(server->stats().timed_out, 1u);
}

// The beginnings of requests whose body does not come whole.
constexpr std::string_view kUnfinished[] = {
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nxxxxxxxxxxxxxxxxxx",
    "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 500\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nxxxxxxxxx",
    "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\n0\r\n",
};

std::string without_continue(std::string answer) {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  if (answer.starts_with(kContinue)) answer.erase(0, kContinue.size());
  return answer;
}

TEST_F(ServerTest, BodyThatIsLate_Is400AndClosed) {
  start();
  for (const std::string_view request : kUnfinished) {
    auto peer = world.dial(80);
    peer.send(request);
    world.run_for(seconds(9));
    EXPECT_EQ(without_continue(peer.take()), "") << request;
    world.run_for(seconds(4));
    const std::string answer = peer.take();
    EXPECT_EQ(status_of(answer), 400) << request;
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find("{\"error\":\"the request body did not arrive"), std::string::npos)
        << answer;
    world.run_for(seconds(5));
    EXPECT_TRUE(peer.closed()) << request;
    EXPECT_EQ(server->stats().connections, 0u);
    EXPECT_EQ(server->stats().buffered_bytes, 0u);
  }
  EXPECT_EQ(handled, 0);
}

// As when a proxy gives up on its own client.
TEST_F(ServerTest, BodyThatIsCutShort_Is400AndClosed) {
  start();
  for (const std::string_view request : kUnfinished) {
    auto peer = world.dial(80);
    peer.send(request);
    peer.shutdown();
    world.poll();
    const std::string answer = without_continue(peer.take());
    EXPECT_EQ(status_of(answer), 400) << request;
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find("{\"error\":\"the request body ends before"), std::string::npos)
        << answer;
    world.poll();
    EXPECT_TRUE(peer.closed()) << request;
    EXPECT_EQ(server->stats().connections, 0u);
    EXPECT_EQ(server->stats().buffered_bytes, 0u);
  }
  EXPECT_EQ(handled, 0);
}

TEST_F(ServerTest, PeerThatResetsWithinABody_LeavesNothingBehind) {
  start();
  for (const std::string_view request : kUnfinished) {
    auto peer = world.dial(80);
    exchange(peer, request);
    peer.reset();
    world.poll();
    EXPECT_EQ(server->stats().connections, 0u) << request;
    EXPECT_EQ(server->stats().buffered_bytes, 0u);
  }
}

TEST_F(ServerTest, StopWithinABody_Ends) {
  start();
  auto peer = world.dial(80);
  exchange(peer, kUnfinished[1]);
  EXPECT_TRUE(world.run(server->stop(seconds(1))));
  EXPECT_EQ(server->stats().connections, 0u);
  EXPECT_EQ(server->stats().buffered_bytes, 0u);
}

TEST_F(ServerTest, PeerThatReadsNothing_IsCutOffByTheWriteTimeout) {
  start();
  auto peer = world.dial(80);
  peer.from->window = 10;
  peer.send(kInfoRequest);
  world.run_for(seconds(29));
  EXPECT_EQ(server->stats().connections, 1u);
  world.run_for(seconds(4));
  EXPECT_EQ(server->stats().connections, 0u);
  EXPECT_EQ(server->stats().timed_out, 1u);
}

TEST_F(ServerTest, SlowReader_GetsTheWholeAnswer) {
  start();
  auto peer = world.dial(80);
  peer.from->window = 7;
  peer.send(kInfoRequest);
  std::string answer;
  for (int i = 0; i < 100; ++i) {
    world.poll();
    answer += peer.take();
  }
  EXPECT_EQ(answer, kInfoAnswer);
}

TEST_F(ServerTest, SlowHandler_IsNotTimedOut) {
  start();
  auto peer = world.dial(80);
  exchange(peer, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  world.run_for(std::chrono::minutes(10));
  EXPECT_EQ(server->stats().requests, 1u);
  release.notify_all();
  world.poll();
  EXPECT_EQ(status_of(peer.take()), 200);
  EXPECT_EQ(server->stats().requests, 0u);
}

TEST_F(ServerTest, NoConnections_NoTimer) {
  start();
  {
    auto peer = world.dial(80);
    exchange(peer, kInfoRequest);
    peer.shutdown();
  }
  world.run_for(seconds(5));
  EXPECT_FALSE(world.has_timers());
}

// ---- client gone ------------------------------------------------------------------------------

TEST_F(ServerTest, ClientGoneDuringAWatchedHandler_CancelsIt) {
  start();
  for (const bool reset : {false, true}) {
    auto peer = world.dial(80);
    exchange(peer, "GET /watched HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(waiting, 1);
    world.run_for(seconds(100));
    EXPECT_EQ(waiting, 1);
    reset ? peer.reset() : peer.shutdown();
    world.poll();
    EXPECT_EQ(waiting, 0);
    EXPECT_EQ(server->stats().connections, 0u);
    EXPECT_EQ(server->stats().requests, 0u);
  }
  EXPECT_EQ(server->stats().served, 0u);
}

TEST_F(ServerTest, ClientGoneDuringAnUnwatchedHandler_LetsItFinish) {
  start();
  auto peer = world.dial(80);
  exchange(peer, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  peer.reset();
  world.run_for(seconds(1));
  EXPECT_EQ(waiting, 1);
  release.notify_all();
  world.poll();
  EXPECT_EQ(waiting, 0);
  EXPECT_EQ(server->stats().connections, 0u);
}

TEST_F(ServerTest, WatchedHandlerThatAnswers_LeavesTheConnectionInOrder) {
  start();
  auto peer = world.dial(80);
  for (int i = 0; i < 3; ++i) {
    exchange(peer, "GET /watched HTTP/1.1\r\nHost: x\r\n\r\n");
    release.notify_all();
    world.poll();
    EXPECT_TRUE(peer.take().ends_with("released\n"));
    // The read that watched takes the next request, whole or in pieces.
    EXPECT_EQ(exchange(peer, kInfoRequest), kInfoAnswer);
    std::string answer;
    for (const char c : kInfoRequest) answer += exchange(peer, std::string_view(&c, 1));
    EXPECT_EQ(answer, kInfoAnswer);
  }
}

TEST_F(ServerTest, RequestPipelinedBehindAWatchedOne_IsAnsweredAfterIt) {
  start();
  auto peer = world.dial(80);
  exchange(peer, "GET /watched HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(exchange(peer, kInfoRequest), "");
  EXPECT_EQ(exchange(peer, kInfoRequest), "");
  EXPECT_EQ(waiting, 1);
  release.notify_all();
  world.poll();
  const std::string answers = peer.take();
  EXPECT_NE(answers.find("released\n"), std::string::npos);
  EXPECT_TRUE(answers.ends_with(cat(kInfoAnswer, kInfoAnswer)));
}

// ---- many connections, and the end ------------------------------------------------------------

TEST_F(ServerTest, ConnectionsOverTheCap_Are503AndClosed) {
  ServerOptions options;
  options.connections_max = 2;
  start(options);
  auto a = world.dial(80), b = world.dial(80);
  exchange(a, kInfoRequest);
  exchange(b, kInfoRequest);
  auto c = world.dial(80);
  const std::string answer = exchange(c, kInfoRequest);
  EXPECT_EQ(status_of(answer), 503);
  EXPECT_NE(answer.find("too many connections"), std::string::npos);
  c.shutdown();
  world.poll();
  EXPECT_TRUE(c.closed());
  EXPECT_EQ(server->stats().refused, 1u);
  // Whoever leaves makes room.
  a.shutdown();
  world.poll();
  EXPECT_EQ(ask(kInfoRequest), kInfoAnswer);
  EXPECT_EQ(exchange(b, kInfoRequest), kInfoAnswer);
}

TEST_F(ServerTest, FloodOverTheCap_IsClosedWithoutAWord) {
  ServerOptions options;
  options.connections_max = 2;
  start(options);
  std::vector<TestWorld::Peer> peers;
  for (int i = 0; i < 500; ++i) peers.push_back(world.dial(80));
  world.poll();
  EXPECT_LE(server->stats().connections, 66u);
  EXPECT_EQ(server->stats().refused, 498u);
  world.run_for(seconds(20));
  EXPECT_EQ(server->stats().connections, 0u);
}

TEST_F(ServerTest, AcceptThatFails_IsTriedAgain) {
  start();
  world.next_accept_error = asio::error::no_descriptors;
  EXPECT_EQ(ask(kInfoRequest), kInfoAnswer);  // the accept that was out
  auto peer = world.dial(80);
  peer.send(kInfoRequest);
  world.run_for(milliseconds(100));
  EXPECT_EQ(peer.take(), kInfoAnswer);
  EXPECT_EQ(server->stats().accept_errors, 1u);
}

TEST_F(ServerTest, Stop_ClosesIdleAndFinishesBusyConnections) {
  start();
  auto idle = world.dial(80), busy = world.dial(80), silent = world.dial(80);
  exchange(idle, kInfoRequest);
  exchange(busy, cat("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n", kInfoRequest));
  TaskGroup group(world.env);
  bool stopped = false;
  const auto stop = [](Server& s, bool& done) -> Task<void> {
    co_await s.stop(seconds(10));
    done = true;
  };
  group.spawn("stop", stop(*server, stopped));
  world.run_for(seconds(1));
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(silent.closed());
  EXPECT_FALSE(stopped);
  EXPECT_FALSE(world.listens(80));
  release.notify_all();
  world.run_for(milliseconds(1));
  const std::string answer = busy.take();
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("released\n")) << "the pipelined request is not served: " << answer;
  busy.shutdown();
  world.run_for(milliseconds(1));
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(world.run(group.stop()));
}

TEST_F(ServerTest, StopWithAHandlerThatDoesNotEnd_CancelsItAfterTheGrace) {
  start();
  auto peer = world.dial(80), watched = world.dial(80);
  exchange(peer, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  exchange(watched, "GET /watched HTTP/1.1\r\nHost: x\r\n\r\n");
  const Nanos before = world.now();
  EXPECT_TRUE(world.run(server->stop(seconds(10))));
  EXPECT_GE(world.now() - before, seconds(10));
  EXPECT_LE(world.now() - before, seconds(11));
  EXPECT_EQ(waiting, 0);
  EXPECT_EQ(server->stats().connections, 0u);
  EXPECT_TRUE(world.run(server->stop(seconds(10))));  // idempotent
}

TEST_F(ServerTest, ServerThatDiesInTheMiddle_LeavesNothingBehind) {
  start();
  auto a = world.dial(80), b = world.dial(80), c = world.dial(80), d = world.dial(80);
  exchange(a, "GET /watched HTTP/1.1\r\nHost: x\r\n\r\n");
  exchange(b, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  exchange(c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nabc");
  exchange(d, kInfoRequest);
  world.die();
  EXPECT_EQ(waiting, 0);
  EXPECT_EQ(server->stats().connections, 0u);
  server.reset();
}

}  // namespace
}  // namespace narad::http
