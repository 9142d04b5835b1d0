// The client against a server of scripted answers, on the simulated network.
#include "pkg/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/text.h"
#include "pkg/http/server.h"
#include "pkg/sim/solo.h"

namespace narad {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What the server saw, and what it answers next.
struct Script {
  std::vector<http::Request> seen;
  http::Response answer = http::empty_response(204);
  bool silent = false;  // never answers
};

Task<http::Response> handle(Env& env, std::shared_ptr<Script> script, http::Request request) {
  script->seen.push_back(std::move(request));
  if (script->silent) co_await sleep_for(env, std::chrono::hours(10));
  co_return script->answer;
}

http::Response json_answer(int status, std::string body) {
  return http::json_response(status, std::move(body) + "\n");
}

// Runs `use(client, script)` against a server on the same machine.
template <class Use>
Task<void> with_server(Env& env, Use use, std::string user, std::string base) {
  auto script = std::make_shared<Script>();
  http::Admit admit = [](http::Request&) { return http::Admission{16u << 20, true}; };
  http::Handler handler = [&env, script](http::Request request) {
    return handle(env, script, std::move(request));
  };
  http::Server server(env, {}, std::move(admit), std::move(handler));
  EXPECT_TRUE(server.listen(Endpoint{"", 0}));
  std::string url = cat("http://127.0.0.1:", server.local()[0].port, base);
  {
    Client client(env, url, std::move(user), "secret");
    co_await use(client, *script);
  }
  co_await server.stop(seconds(1));
}
template <class Use>
void run(Use use, std::string user = "", std::string base = "") {
  sim::Solo solo;
  solo.run([&](Env& env) { return with_server(env, use, user, base); });
}

TEST(Client, Produce_SendsKeyPartitionAndBytes) {
  run([](Client& client, Script& script) -> Task<void> {
    script.answer = http::empty_response(202);
    std::string payload("a\0\xff", 3);
    client::ProduceOptions options;
    options.key = "k/1 é";
    options.partition = PartitionId(2);
    auto sent = co_await client.produce("orders", payload, options);
    EXPECT_TRUE(sent);
    EXPECT_EQ(script.seen.size(), 1u);
    EXPECT_EQ(script.seen[0].target, "/v1/topics/orders/produce?key=k%2F1%20%C3%A9&partition=2");
    EXPECT_EQ(script.seen[0].body, payload);
    EXPECT_EQ(script.seen[0].headers.get("content-type"), "application/octet-stream");
    EXPECT_FALSE(script.seen[0].headers.get("authorization"));
  });
}

TEST(Client, RouteThatTheServerLacks_IsNamed) {
  run([](Client& client, Script& script) -> Task<void> {
    script.answer = http::text_response(404, "404 page not found");
    auto r = co_await client.call(http::Method::post, "/v1/cluster/members/n1/decommission?x=1");
    EXPECT_FALSE(r);
    EXPECT_EQ(r.error().text(),
              "http 404: 404 page not found; this server does not offer POST "
              "/v1/cluster/members/n1/decommission");
    script.answer = http::text_response(405, "Method Not Allowed");
    r = co_await client.call(http::Method::put, "/v1/topics/t");
    EXPECT_EQ(r.error().text(),
              "http 405: Method Not Allowed; this server does not offer PUT /v1/topics/t");
    script.answer = http::error_response(404, "topic not found");
    r = co_await client.call(http::Method::get, "/v1/topics/t");
    EXPECT_EQ(r.error().text(), "http 404: topic not found");
  });
}

TEST(Client, UserAndPrefix_GoIntoEveryCall) {
  run(
      [](Client& client, Script& script) -> Task<void> {
        auto deleted = co_await client.delete_topic("a b");
        EXPECT_TRUE(deleted);
        EXPECT_EQ(script.seen[0].target, "/base/v1/topics/a%20b");
        EXPECT_EQ(script.seen[0].headers.get("authorization"), "Basic YWRtaW46c2VjcmV0");
      },
      "admin", "/base/");
}

TEST(Client, ErrorAnswer_CarriesStatusTextAndCode) {
  run([](Client& client, Script& script) -> Task<void> {
    script.answer = json_answer(404, R"({"error":"topic not found"})");
    auto missing = co_await client.topic("t");
    EXPECT_FALSE(missing);
    if (missing) co_return;
    EXPECT_EQ(missing.error().text(), "http 404: topic not found");
    EXPECT_EQ(missing.error().code(), Errc::not_found);
    script.answer = http::text_response(503, "owner down");
    auto later = co_await client.ack("t", "0:1:2");
    EXPECT_FALSE(later);
    if (later) co_return;
    EXPECT_EQ(later.error().text(), "http 503: owner down");
    EXPECT_EQ(later.error().code(), Errc::unavailable);
  });
}

TEST(Client, NoBroker_IsSafeToRepeatAndSilenceIsNot) {
  sim::Solo solo;
  solo.run([](Env& env) -> Task<void> {
    Client client(env, "http://127.0.0.1:9", "", "");
    auto refused = co_await client.produce("t", "x");
    EXPECT_FALSE(refused);
    if (refused) co_return;
    EXPECT_EQ(refused.error().code(), Errc::unavailable);
    EXPECT_THAT(refused.error().text(), StartsWith("transport: "));
  });
  run([](Client& client, Script& script) -> Task<void> {
    script.silent = true;
    auto lost = co_await client.produce("t", "x");
    EXPECT_FALSE(lost);
    if (lost) co_return;
    EXPECT_EQ(lost.error().code(), Errc::unknown_outcome);
    EXPECT_THAT(lost.error().text(), StartsWith("transport: "));
  });
}

TEST(Client, MalformedServer_IsWhatEveryCallAnswers) {
  sim::Solo solo;
  solo.run([](Env& env) -> Task<void> {
    Client client(env, "https://x", "", "");
    auto members = co_await client.members();
    EXPECT_FALSE(members);
    if (members) co_return;
    EXPECT_EQ(members.error().code(), Errc::invalid_argument);
    EXPECT_THAT(members.error().text(), HasSubstr("TLS"));
  });
}

TEST(Client, Consume_AsksForBase64AndWaitsLongerThanTheServer) {
  run([](Client& client, Script& script) -> Task<void> {
    script.answer = json_answer(
        200,
        R"({"topic":"t","partition":1,"offset":3,"payload":"/w==","payload_encoding":"base64",)"
        R"("timestamp":1,"receipt_handle":"1:3:4"})");
    client::ConsumeOptions options;
    options.wait = seconds(10);
    auto one = co_await client.consume("t", options);
    EXPECT_EQ(script.seen[0].target, "/v1/topics/t/consume?encoding=base64&wait=10000000000ns");
    EXPECT_TRUE(one);
    if (!one) co_return;
    EXPECT_EQ(one.value().size(), 1u);
    EXPECT_EQ(one.value()[0].payload, "\xff");

    script.answer = json_answer(200, "[" + script.answer.body + "," + script.answer.body + "]");
    options.max = 5;
    auto two = co_await client.consume("t", options);
    EXPECT_THAT(script.seen[1].target, HasSubstr("&max=5&"));
    EXPECT_TRUE(two);
    if (!two) co_return;
    EXPECT_EQ(two.value().size(), 2u);

    script.answer = http::empty_response(204);
    auto none = co_await client.consume("t", options);
    EXPECT_TRUE(none && none.value().empty());
  });
}

TEST(Client, ReplayPastTheEnd_IsNothing) {
  run([](Client& client, Script& script) -> Task<void> {
    auto none = co_await client.replay("t", PartitionId(1), Offset(9));
    EXPECT_EQ(script.seen[0].target, "/v1/topics/t/consume?encoding=base64&partition=1&offset=9");
    EXPECT_TRUE(none && !none.value());
  });
}

TEST(Client, Batches_AreSentAndSettledTogether) {
  run([](Client& client, Script& script) -> Task<void> {
    script.answer = json_answer(202, R"({"accepted":2})");
    std::vector<client::BatchRecord> records = {{"k", "1"}, {"", "2"}};
    auto accepted = co_await client.produce_batch("t", records, PartitionId(1));
    EXPECT_TRUE(accepted && accepted.value() == 2);
    EXPECT_EQ(script.seen[0].target, "/v1/topics/t/produce:batch?partition=1");
    EXPECT_EQ(script.seen[0].headers.get("content-type"), "application/vnd.narad.batch");
    EXPECT_EQ(script.seen[0].body, client::encode_batch(records));

    script.answer = json_answer(200, R"({"results":[{"handle":"0:1:2","status":204}]})");
    std::vector<std::string> handles = {"0:1:2"};
    auto settled = co_await client.settle("t", client::AckMode::nack, handles);
    EXPECT_EQ(script.seen[1].body, R"({"mode":"nack","handles":["0:1:2"]})");
    EXPECT_TRUE(settled && settled.value().size() == 1 && settled.value()[0].status == 204);

    auto empty = co_await client.produce_batch("t", {});
    EXPECT_FALSE(empty);
  });
}

TEST(Client, Settling_UsesTheModesOfTheContract) {
  run([](Client& client, Script& script) -> Task<void> {
    auto acked = co_await client.ack("t", "1:2:3");
    EXPECT_TRUE(acked);
    auto extended = co_await client.extend("t", "1:2:3");
    EXPECT_TRUE(extended);
    auto nacked = co_await client.nack("t", "1:2:3");
    EXPECT_TRUE(nacked);
    EXPECT_EQ(script.seen[0].target, "/v1/topics/t/ack?receipt_handle=1%3A2%3A3");
    EXPECT_EQ(script.seen[1].target, "/v1/topics/t/ack?receipt_handle=1%3A2%3A3&extend=true");
    EXPECT_EQ(script.seen[2].target, "/v1/topics/t/ack?receipt_handle=1%3A2%3A3&extend=0");
  });
}

TEST(Client, PagesOfTopics_AreFollowedButNotInCircles) {
  run([](Client& client, Script& script) -> Task<void> {
    script.answer =
        json_answer(200, R"({"next_page_token":"b","topics":[{"name":"a"},{"name":"b"}]})");
    auto circle = co_await client.all_topics();
    EXPECT_FALSE(circle);
    EXPECT_EQ(script.seen.size(), 2u);
    EXPECT_THAT(script.seen[1].target, HasSubstr("page_token=b"));
    script.answer = json_answer(200, R"({"next_page_token":"","topics":[{"name":"a"}]})");
    auto all = co_await client.all_topics();
    EXPECT_TRUE(all && all.value().size() == 1);
  });
}

}  // namespace
}  // namespace narad
