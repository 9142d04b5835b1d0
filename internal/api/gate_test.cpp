// Who is let in, how often, and to what (http-api 1.0.1, 1.0.2, 7).
#include <gtest/gtest.h>

#include <set>

#include "internal/api/routes.h"
#include "internal/api/test_api.h"
#include "internal/security/credentials.h"
#include "pkg/json/document.h"

namespace narad::api {
namespace {

struct Secured : SecuredFixture {
  using SecuredFixture::SecuredFixture;
  // Topic "orders" owned by `owner`.
  void owned(const std::string& owner) {
    as("admin");
    topic("orders");
    edit_owner("orders", owner);
  }
  void edit_owner(const std::string& name, const std::string& owner) {
    broker.edit(name).owner = owner;
    broker.store_edit();
  }
  int status(http::Method method, std::string target, std::string body = {}) {
    return call(method, std::move(target), std::move(body)).status;
  }
  static Task<void> pass(Env& env, Nanos delay) { co_await sleep_for(env, delay); }
  void wait(Nanos delay) {
    solo.run([delay](Env& env) { return pass(env, delay); });
  }
};

using http::Method;

TEST(Login, NoOrWrongCredentials_AnswerOneAndTheSame401) {
  Secured f;
  for (const char* header : {"", "Basic", "Basic ???", "Bearer x",
                             "Basic YWRtaW46bm8=", "Basic bm9ib2R5OnB3", "Basic YWRtaW4="}) {
    f.headers["Authorization"] = header;
    const auto response = f.get("/v1/topics");
    EXPECT_EQ(response.status, 401) << header;
    EXPECT_EQ(response.body, "{\"error\":\"authentication required\"}\n") << header;
    EXPECT_EQ(response.headers.get("WWW-Authenticate"), "Basic realm=\"narad\"") << header;
  }
  f.headers.clear();
  EXPECT_EQ(f.get("/v1/topics").status, 401);
  f.as("admin");
  EXPECT_EQ(f.get("/v1/topics").status, 200);
}

TEST(Login, UnknownPathsAndMethods_Need401First) {
  Secured f;
  EXPECT_EQ(f.get("/nothing").status, 401);
  EXPECT_EQ(f.get("/v1//topics").status, 401);
  EXPECT_EQ(f.status(Method::put, "/v1/topics"), 401);
  f.as("admin");
  EXPECT_EQ(f.get("/nothing").status, 404);
  EXPECT_EQ(f.get("/v1//topics").status, 301);
  EXPECT_EQ(f.status(Method::put, "/v1/topics"), 405);
}

TEST(Login, ExactlyThreePaths_NeedNoneAndIgnoreWhatIsSent) {
  Secured f;
  for (const char* header : {"", "garbled", "Basic YWRtaW46bm8="}) {
    f.headers["Authorization"] = header;
    for (const char* path : {"/healthz", "/readyz", "/metrics", "/healthz?x=1"}) {
      EXPECT_EQ(f.get(path).status, 200) << path << header;
    }
    for (const char* path : {"/healthz/", "//healthz", "/healthzz", "/Healthz", "/%68ealthz",
                             "/metrics/x", "/", "/v1/openapi.json"}) {
      EXPECT_EQ(f.get(path).status, 401) << path << header;
    }
  }
  EXPECT_EQ(f.security.authenticator().failures().attempts_left("admin", f.solo.env().clock.mono()),
            4)
      << "one wrong password, looked at once";
}

TEST(Login, TwoAuthorizationHeaders_AreNone) {
  Secured f;
  http::Request request;
  request.method = Method::get;
  request.target = "/v1/topics";
  request.peer = std::make_shared<const Endpoint>(Endpoint{"h", 1});
  request.headers.add("Authorization", security::basic_header("admin", "pw"));
  request.headers.add("authorization", security::basic_header("admin", "pw"));
  request.match = f.api->router().match(request.method, request.path());
  EXPECT_EQ(f.solo.run([&](Env&) { return f.api->handle(std::move(request)); }).status, 401);
}

TEST(Login, SixthWrongPassword_Is429WithoutRetryAfter) {
  Secured f;
  for (int n = 0; n < 5; ++n) {
    f.as("admin", cat("w", n));
    EXPECT_EQ(f.get("/v1/topics").status, 401);
  }
  f.as("admin", "w5");
  const auto response = f.get("/v1/topics");
  EXPECT_EQ(response.status, 429);
  EXPECT_FALSE(response.headers.get("Retry-After"));
  EXPECT_EQ(f.error(response),
            "too many failed logins for this user: one more try every 12 seconds");
  f.as("nobody", "w5");
  EXPECT_EQ(f.get("/v1/topics").status, 401);
}

TEST(Login, Refusals_CountAsUnmatched) {
  Secured f;
  f.get("/v1/topics");
  const std::string metrics = f.get("/metrics").body;
  EXPECT_NE(
      metrics.find(R"(narad_http_requests_total{route="unmatched",method="GET",status="401"} 1)"),
      std::string::npos)
      << metrics.substr(0, 2000);
}

TEST(Login, SecurityOff_AllowsEverythingAndNamesNobody) {
  Fixture f;
  f.headers["Authorization"] = "garbled";
  EXPECT_EQ(f.get("/v1/topics").status, 200);
  EXPECT_EQ(f.post("/v1/topics", R"({"name":"orders","owner":"me"})").status, 201);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->topic.owner, "");
  EXPECT_EQ(f.post("/v1/users", R"({"username":"a","password":"pw","grants":[{"action":"admin"}]})")
                .status,
            201);
}

// ---- rights -----------------------------------------------------------------------------------

TEST(Rights, EveryRoute_HasOne) {
  for (const RouteSpec& spec : route_table(Options{})) {
    EXPECT_NE(spec.right, Right::unset) << spec.pattern;
    const bool changes = !spec.pattern.starts_with("GET ");
    const bool messages = spec.pattern.find("/produce") != std::string_view::npos ||
                          spec.pattern.find("/ack") != std::string_view::npos;
    EXPECT_EQ(!spec.audit.empty(), changes && !messages) << spec.pattern;
    if (spec.right == Right::anybody) {
      EXPECT_TRUE(needs_no_login(spec.pattern.substr(spec.pattern.find(' ') + 1))) << spec.pattern;
    }
  }
}

TEST(Rights, RouteThatNobodyThoughtAbout_IsRefusedEvenForRoot) {
  http::Request request;
  EXPECT_EQ(check_right(Right::unset, request, security::Caller(), metastore::State())->status,
            403);
}

// Every route of the table, with a body that is fine, for users with each kind of right. Whoever is
// not listed for a route gets 403; nobody else does.
TEST(Rights, EveryRouteAndUser_AreAllowedExactlyAsTheContractSays) {
  struct Case {
    std::string_view route;
    std::string target, body;
    std::set<std::string> allowed;  // besides root and admin
  };
  const std::set<std::string> everybody{"none",    "producer", "consumer",
                                        "creator", "owner",    "elsewhere"};
  const std::vector<Case> cases{
      {"POST /v1/topics", "/v1/topics", R"({"name":"orders-new"})", {"creator"}},
      {"GET /v1/topics", "/v1/topics", "", everybody},
      {"GET /v1/topics/{topic}", "/v1/topics/orders", "", everybody},
      {"PATCH /v1/topics/{topic}", "/v1/topics/orders", R"({"retention_ms":-1})", {"owner"}},
      {"DELETE /v1/topics/{topic}", "/v1/topics/orders", "", {"owner"}},
      {"POST /v1/topics/{topic}/produce", "/v1/topics/orders/produce", "x", {"producer"}},
      {"POST /v1/topics/{topic}/produce:batch",
       "/v1/topics/orders/produce:batch",
       "{\"value\":1}",
       {"producer"}},
      {"GET /v1/topics/{topic}/consume", "/v1/topics/orders/consume", "", {"consumer"}},
      {"POST /v1/topics/{topic}/ack",
       "/v1/topics/orders/ack?receipt_handle=0:0:1",
       "",
       {"consumer"}},
      {"POST /v1/topics/{topic}/ack:batch",
       "/v1/topics/orders/ack:batch",
       R"({"mode":"ack","handles":["0:0:1"]})",
       {"consumer"}},
      {"POST /v1/users", "/v1/users", R"({"username":"new","password":"pw"})", {}},
      {"GET /v1/users", "/v1/users", "", {}},
      {"GET /v1/users/{username}", "/v1/users/none", "", {}},
      {"DELETE /v1/users/{username}", "/v1/users/victim", "", {}},
      {"PUT /v1/users/{username}/grants", "/v1/users/victim/grants", "{}", {}},
      {"PUT /v1/users/{username}/password",
       "/v1/users/none/password",
       R"({"new_password":"pw","current_password":"pw"})",
       {"none"}},
      {"GET /v1/cluster/members", "/v1/cluster/members", "", everybody},
      {"POST /v1/cluster/members/{id}/decommission", "/v1/cluster/members/n1/decommission", "", {}},
      {"DELETE /v1/cluster/members/{id}/decommission",
       "/v1/cluster/members/n1/decommission",
       "",
       {}},
      {"GET /v1/cluster/members/{id}/safe-to-stop", "/v1/cluster/members/n1/safe-to-stop", "",
       everybody},
      {"POST /v1/cluster/rebalance", "/v1/cluster/rebalance", "", {}},
      {"GET /v1/cluster/explain/{topic}/{partition}", "/v1/cluster/explain/orders/0", "",
       everybody},
      {"POST /v1/cluster/moves/{topic}/{partition}/pause",
       "/v1/cluster/moves/orders/0/pause",
       "",
       {}},
      {"POST /v1/cluster/moves/{topic}/{partition}/resume",
       "/v1/cluster/moves/orders/0/resume",
       "",
       {}},
      {"POST /v1/cluster/moves/pause", "/v1/cluster/moves/pause", "", {}},
      {"POST /v1/cluster/moves/resume", "/v1/cluster/moves/resume", "", {}},
      {"GET /v1/cluster/throttle", "/v1/cluster/throttle", "", everybody},
      {"PUT /v1/cluster/throttle", "/v1/cluster/throttle", R"({"max_bytes_per_second":0})", {}},
      {"DELETE /v1/cluster/throttle", "/v1/cluster/throttle", "", {}},
      {"GET /v1/cluster/quarantine", "/v1/cluster/quarantine", "", everybody},
      {"GET /v1/cluster/moves", "/v1/cluster/moves", "", everybody},
      {"GET /v1/cluster/moves/{id}", "/v1/cluster/moves/7", "", everybody},
      {"POST /v1/cluster/moves",
       "/v1/cluster/moves",
       R"({"topic":"orders","partition":0,"to":"n1"})",
       {}},
      {"POST /v1/cluster/moves/{topic}/{partition}/abort",
       "/v1/cluster/moves/orders/0/abort",
       "",
       {}},
      {"GET /healthz", "/healthz", "", everybody},
      {"GET /readyz", "/readyz", "", everybody},
      {"GET /metrics", "/metrics", "", everybody},
      {"GET /v1/openapi.json", "/v1/openapi.json", "", everybody},
  };
  std::set<std::string_view> covered;
  for (const Case& c : cases) {
    covered.insert(c.route);

    std::set<std::string> users = everybody;
    users.insert({"admin", "deputy"});
    for (const std::string& user : users) {
      Secured f;
      f.owned("owner");
      f.add("deputy", {{GrantAction::admin, {}}});
      f.add("none", {});
      f.add("producer", {{GrantAction::produce, {"or*"}}});
      f.add("consumer", {{GrantAction::consume, {"orders"}}});
      f.add("creator", {{GrantAction::create, {"orders-*"}}});
      f.add("owner", {});
      f.add("victim", {});
      f.add("elsewhere", {{GrantAction::produce, {"order"}},
                          {GrantAction::consume, {"other*"}},
                          {GrantAction::create, {"x*"}}});
      f.as(user);
      f.headers["Content-Type"] = "application/x-ndjson";
      const std::size_t space = c.route.find(' ');
      const auto response = f.call(http::parse_method(c.route.substr(0, space)), c.target, c.body);
      const bool expected = user == "admin" || user == "deputy" || c.allowed.contains(user);
      EXPECT_EQ(response.status != 403, expected) << user << " " << c.route << response.body;
      EXPECT_NE(response.status, 401) << user << " " << c.route;
      EXPECT_LT(response.status, 500) << user << " " << c.route << response.body;
      if (!expected) {
        EXPECT_TRUE(f.error(response).starts_with("forbidden: user " + user)) << response.body;
      }
    }
  }
  for (const RouteSpec& spec : route_table(Options{})) {
    EXPECT_TRUE(covered.contains(spec.pattern)) << spec.pattern << " has no case here";
  }
}

TEST(Rights, Creator_BecomesTheOwnerWhateverTheBodySays) {
  Secured f;
  f.add("creator", {{GrantAction::create, {"orders-*"}}});
  f.as("creator");
  const auto response = f.post("/v1/topics", R"({"name":"orders-1","owner":"somebody"})");
  ASSERT_EQ(response.status, 201) << response.body;
  EXPECT_NE(response.body.find("\"owner\":\"creator\""), std::string::npos);
  EXPECT_EQ(f.patch("/v1/topics/orders-1", R"({"partitions":9})").status, 200);
  EXPECT_EQ(f.remove("/v1/topics/orders-1").status, 204);
}

TEST(Rights, TopicThatIsNotThere_Shows404ToWhoeverMayNotManage) {
  Secured f;
  f.add("none", {});
  f.as("none");
  EXPECT_EQ(f.remove("/v1/topics/nope").status, 404);
  EXPECT_EQ(f.patch("/v1/topics/nope", R"({"partitions":9})").status, 404);
}

// ---- topics made through another node
// ------------------------------------------------------------

// Topic "orders" of `owner` is there, but this node has not heard of it yet.
struct Behind : Secured {
  explicit Behind(const std::string& owner) {
    broker.on_catch_up = [this, owner] {
      metastore::CreateTopic c;
      c.name = "orders";
      c.incarnation = Incarnation(7);
      c.partitions = 1;
      c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1024;
      c.owner = owner;
      NARAD_ASSERT(broker.apply(c).done());
    };
  }
};

TEST(TopicMadeElsewhere, WhatChangesOrUsesIt_FindsIt) {
  const std::vector<std::tuple<Method, std::string, std::string, int>> uses{
      {Method::post, "/v1/topics/orders/produce", "x", 202},
      {Method::post, "/v1/topics/orders/produce:batch", "{\"value\":1}", 202},
      {Method::get, "/v1/topics/orders/consume", "", 204},
      {Method::post, "/v1/topics/orders/ack?receipt_handle=0:0:1", "", 204},
      {Method::post, "/v1/topics/orders/ack:batch", R"({"mode":"ack","handles":["0:0:1"]})", 200},
      {Method::patch, "/v1/topics/orders", R"({"schema":{"type":"object"}})", 200},
      {Method::delete_, "/v1/topics/orders", "", 204}};
  for (const auto& [method, target, body, expected] : uses) {
    Behind f("owner");
    f.as("admin");
    if (target.ends_with("produce:batch")) f.headers["Content-Type"] = "application/x-ndjson";
    EXPECT_EQ(f.status(method, target, body), expected) << target;
    EXPECT_EQ(f.broker.catch_ups, 1u) << target;
  }
}

TEST(TopicMadeElsewhere, RightsOnIt_AreJudgedOnceItIsKnown) {
  for (const bool owns : {true, false}) {
    Behind f(owns ? "svc" : "somebody");
    f.add("svc", {});
    f.as("svc");
    EXPECT_EQ(f.remove("/v1/topics/orders").status, owns ? 204 : 403);
  }
  Behind f("somebody");
  f.add("svc", {});
  f.as("svc");
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"partitions":9})").status, 403);
}

TEST(TopicMadeElsewhere, NothingElse_WaitsForNews) {
  Behind f("owner");
  f.add("svc", {});
  f.as("svc");
  EXPECT_EQ(f.post("/v1/topics/orders/produce", "x").status, 403) << "whatever there is";
  EXPECT_EQ(f.get("/v1/topics/orders").status, 404) << "reads may be behind";
  f.as("admin");
  f.topic("known");
  EXPECT_EQ(f.post("/v1/topics/known/produce", "x").status, 202);
  EXPECT_EQ(f.remove("/v1/topics/known").status, 204);
  EXPECT_EQ(f.broker.catch_ups, 0u);
}

TEST(Rights, OrderOfRefusals_IsThatOfTheContract) {
  Secured f;
  f.owned("owner");
  f.add("none", {});
  f.as("none");
  // Create: JSON, grant, name. Change: the whole body, then the right. Messages: the right first.
  EXPECT_EQ(f.post("/v1/topics", "{").status, 400);
  EXPECT_EQ(f.post("/v1/topics", R"({"name":"a/b"})").status, 403);
  EXPECT_EQ(f.patch("/v1/topics/orders", "{}").status, 400);
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"partitions":9})").status, 403);
  EXPECT_EQ(f.post("/v1/topics/orders/produce?key=a&key=b", "").status, 403);
  EXPECT_EQ(f.post("/v1/topics/nope/produce", "x").status, 403);
  EXPECT_EQ(f.get("/v1/topics/orders/consume?wait=x").status, 403);
  EXPECT_EQ(f.post("/v1/topics/orders/ack").status, 403);
  EXPECT_EQ(f.post("/v1/users", "{").status, 403);
  EXPECT_EQ(f.put("/v1/users/admin/password", "{").status, 403);
  f.as("admin");
  EXPECT_EQ(f.post("/v1/topics", R"({"name":"a/b"})").status, 400);
}

TEST(Rights, ChangedGrants_CountWithTheNextRequest) {
  Secured f;
  f.owned("owner");
  f.add("svc", {});
  f.as("svc");
  EXPECT_EQ(f.post("/v1/topics/orders/produce", "x").status, 403);
  const RaftIndex version = f.broker.view()->users.find("svc")->changed_at;
  f.broker.apply(metastore::SetUserGrants{"svc", version, {{GrantAction::produce, {"*"}}}, {}});
  EXPECT_EQ(f.post("/v1/topics/orders/produce", "x").status, 202);
}

// ---- rate limits ------------------------------------------------------------------------------

TEST(RateLimit, RequestsOverIt_Are429WithRetryAfter) {
  security::Options options;
  options.requests_per_second = 2;
  Secured f(options);
  f.add("other", {});
  f.as("admin");
  EXPECT_EQ(f.get("/v1/topics").status, 200);
  EXPECT_EQ(f.get("/v1/topics").status, 200);
  const auto refused = f.get("/v1/topics");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.get("Retry-After"), "1");
  EXPECT_EQ(f.get("/healthz").status, 200) << "open paths are nobody's";
  f.as("other");
  EXPECT_EQ(f.get("/v1/topics").status, 200);
  f.wait(std::chrono::seconds(1));
  f.as("admin");
  EXPECT_EQ(f.get("/v1/topics").status, 200);
}

TEST(RateLimit, Bytes_CountInBothDirections) {
  security::Options options;
  options.bytes_per_second = 1000;
  Secured f(options);
  f.as("admin");
  f.topic("orders");
  f.wait(std::chrono::seconds(5));
  EXPECT_EQ(f.post("/v1/topics/orders/produce", std::string(3000, 'x')).status, 202);
  const auto refused = f.get("/v1/topics");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.get("Retry-After"), "2");
  f.wait(std::chrono::seconds(2));
  f.broker.queue.push_back(leased(0, 1, 2, "k", std::string(3000, 'y')));
  EXPECT_EQ(f.get("/v1/topics/orders/consume").status, 200);
  EXPECT_EQ(f.get("/v1/topics").status, 429);
}

// ---- the record -------------------------------------------------------------------------------

struct Recorded : Secured {
  static security::Options to_file() {
    security::Options options;
    options.audit_file = "/audit.jsonl";
    return options;
  }
  Recorded() : Secured(to_file()) {
    NARAD_ASSERT(solo.run([this](Env&) { return security.audit().open(); }).has_value());
  }
  // The lines without their time, which begins each.
  std::vector<std::string> lines() {
    const std::string text = to_text(read_file(solo.env().fs, "/audit.jsonl", 1 << 20).value());
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const std::size_t from = text.find("\"user\"", at);
      out.push_back("{" + text.substr(from, end - from));
      at = end + 1;
    }
    return out;
  }
};

TEST(Record, AdministrativeWrites_LeaveOneLineEach) {
  Recorded f;
  f.as("admin");
  f.topic("orders");
  f.patch("/v1/topics/orders", R"({"partitions":9})");
  f.post("/v1/users", R"({"username":"svc","password":"very-secret"})");
  f.put("/v1/users/svc/grants", R"({"grants":[{"action":"produce","patterns":["*"]}]})");
  f.put("/v1/users/svc/password", R"({"new_password":"more-secret"})");
  f.as("svc", "more-secret");
  f.post("/v1/topics/orders/produce", "x");
  f.get("/v1/topics");
  f.remove("/v1/topics/orders");
  f.post("/v1/topics", R"({"name":"mine"})");
  f.as("svc", "wrong");
  f.remove("/v1/topics/orders");
  f.as("admin");
  f.remove("/v1/topics/nope");
  f.remove("/v1/users/svc");
  f.post("/v1/topics", "{");
  const std::string admin = R"({"user":"admin","remote":"127.0.0.1:4242","action":)";
  const std::string svc = R"({"user":"svc","remote":"127.0.0.1:4242","action":)";
  const std::vector<std::string> expected{
      admin + R"("create_topic","target":"orders","outcome":"done","status":201})",
      admin + R"("change_topic","target":"orders","outcome":"done","status":200})",
      admin + R"("create_user","target":"svc","outcome":"done","status":201})",
      admin + R"("set_grants","target":"svc","outcome":"done","status":200})",
      admin + R"("set_password","target":"svc","outcome":"done","status":204})",
      svc + R"("delete_topic","target":"orders","outcome":"refused","status":403,)" +
          R"("error":"forbidden: user svc neither owns orders nor has an admin grant"})",
      svc + R"("create_topic","target":"mine","outcome":"refused","status":403,)" +
          R"("error":"forbidden: user svc has no create grant that matches mine"})",
      admin + R"("delete_topic","target":"nope","outcome":"refused","status":404,)" +
          R"("error":"topic not found"})",
      admin + R"("delete_user","target":"svc","outcome":"done","status":204})",
      admin + R"("create_topic","target":"","outcome":"refused","status":400,)" +
          R"("error":"invalid json: )",
  };
  const auto lines = f.lines();
  ASSERT_EQ(lines.size(), expected.size());
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) EXPECT_EQ(lines[i], expected[i]);
  EXPECT_TRUE(lines.back().starts_with(expected.back())) << lines.back();
  const std::string all = to_text(read_file(f.solo.env().fs, "/audit.jsonl", 1 << 20).value());
  EXPECT_EQ(all.find("secret"), std::string::npos) << "no password is ever recorded";
}

TEST(Record, FailedWrite_IsRecordedWithWhatTheClientWasTold) {
  Recorded f;
  f.as("admin");
  f.broker.refuse_write = Error(Errc::unknown_outcome, "no answer in time");
  EXPECT_EQ(f.post("/v1/topics", R"({"name":"orders"})").status, 503);
  ASSERT_EQ(f.lines().size(), 1u);
  EXPECT_TRUE(f.lines()[0].ends_with(
      R"("target":"orders","outcome":"failed","status":503,"error":"control plane temporarily )"
      R"(unavailable: no answer in time"})"))
      << f.lines()[0];
}

}  // namespace
}  // namespace narad::api
