#include <gtest/gtest.h>

#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "internal/api/test_api.h"

namespace narad::api {
namespace {

TEST(Health, FollowsTheProcess) {
  Fixture f;
  auto response = f.get("/healthz");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "{\"status\":\"ok\"}\n");
  f.broker.ready = Readiness{false, true, {}};
  response = f.get("/healthz");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "{\"status\":\"shutting down\"}\n");
}

TEST(Ready, SaysWhatItWaitsFor) {
  Fixture f;
  auto response = f.get("/readyz");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "{\"status\":\"ready\"}\n");
  f.broker.ready = Readiness{false, false, {"partition orders/1", "ingress"}};
  response = f.get("/readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body,
            "{\"error\":\"not ready\",\"waiting_for\":[\"partition orders/1\",\"ingress\"]}\n");
  f.broker.ready = Readiness{true, true, {}};
  EXPECT_EQ(f.get("/readyz").body, "{\"error\":\"not ready\",\"waiting_for\":[]}\n");
}

TEST(Members, OneNode_CountsWhatItOwns) {
  Fixture f;
  f.topic("a", R"(,"partitions":2)");
  f.topic("b");
  const auto response = f.get("/v1/cluster/members");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"members":[{"id":"n1","addr":"127.0.0.1:7942","status":"alive","draining":false,)"
            R"("owned_partitions":5,"outbound_moves":0,"role":"none",)"
            R"("cluster_addr":"127.0.0.1:7943","last_seen_ms":1}],"leader":""})"
            "\n");
}

TEST(Members, SeveralNodes_AreSortedWithTheirState) {
  Fixture f;
  f.topic("a");
  f.broker.apply(metastore::RegisterMember{"n0", "h0:1", "c", "b", {"d"}, UnixMillis(1)});
  f.broker.apply(metastore::SetDraining{"n0", true});
  f.broker.apply(metastore::MarkDead{"n0", f.broker.view()->members.find("n0")->stamp});
  EXPECT_TRUE(f.get("/v1/cluster/members")
                  .body.starts_with(R"({"members":[{"id":"n0","addr":"h0:1","status":"dead",)"
                                    R"("draining":true,"owned_partitions":0,"outbound_moves":0,)"
                                    R"("role":"none","cluster_addr":"c","last_seen_ms":1},)"));
}

TEST(Members, Roles_AreThoseOfTheConfiguration) {
  Fixture f;
  f.broker.info.leader = "n1";
  f.broker.info.roles = {{"n1", "leader"}, {"n0", "non-voter"}};
  f.broker.apply(metastore::RegisterMember{"n0", "h0:1", "c", "b", {"d"}, UnixMillis(1)});
  const std::string body = f.get("/v1/cluster/members").body;
  EXPECT_LT(body.find(R"("role":"non-voter")"), body.find(R"("role":"leader")"));
  EXPECT_TRUE(body.ends_with("],\"leader\":\"n1\"}\n")) << body;
}

TEST(Metrics, EveryRequest_IsCountedUnderItsRoute) {
  Fixture f;
  f.topic("orders");
  f.post("/v1/topics/orders/produce", "12345");
  f.get("/v1/topics/nope");
  f.get("/nothing");
  const auto count = [&](const char* route, const char* method, const char* status) {
    return f.registry.counter("narad_http_requests_total", {route, method, status}).value();
  };
  EXPECT_EQ(count("POST /v1/topics", "POST", "201"), 1);
  EXPECT_EQ(count("POST /v1/topics/{topic}/produce", "POST", "202"), 1);
  EXPECT_EQ(count("GET /v1/topics/{topic}", "GET", "404"), 1);
  EXPECT_EQ(count("unmatched", "GET", "404"), 1);
  EXPECT_EQ(
      f.registry.counter("narad_http_request_bytes_in_total", {"POST /v1/topics/{topic}/produce"})
          .value(),
      5);
  EXPECT_EQ(f.registry.gauge("narad_http_requests_in_flight").value(), 0);
  const auto response = f.get("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, metrics::kContentType);
  EXPECT_NE(response.body.find("narad_http_requests_in_flight 1\n"), std::string::npos);
  EXPECT_NE(response.body.find("narad_http_request_duration_seconds_bucket{"), std::string::npos);
}

TEST(Metrics, ServerErrors_AreCounted) {
  Fixture f;
  f.topic("orders");
  f.broker.refuse_consume.emplace(Errc::internal, "a bug");
  f.get("/v1/topics/orders/consume");
  EXPECT_EQ(f.registry.counter("narad_errors_total", {"http", "5xx"}).value(), 1);
}

TEST(Status, EveryCode_HasOne) {
  const std::vector<std::pair<Errc, int>> table{{Errc::invalid_argument, 400},
                                                {Errc::unauthenticated, 401},
                                                {Errc::forbidden, 403},
                                                {Errc::not_found, 404},
                                                {Errc::exists, 409},
                                                {Errc::conflict, 409},
                                                {Errc::gone, 410},
                                                {Errc::too_large, 413},
                                                {Errc::not_owner, 421},
                                                {Errc::not_leader, 421},
                                                {Errc::busy, 429},
                                                {Errc::unavailable, 503},
                                                {Errc::unknown_outcome, 503},
                                                {Errc::data_loss, 500},
                                                {Errc::internal, 500},
                                                {Errc::cancelled, 503},
                                                {Errc::owner_down, 503},
                                                {Errc::unreachable, 502}};
  for (const auto& [code, status] : table) EXPECT_EQ(status_of(code), status) << to_string(code);
}

TEST(Status, Causes_AreLoggedAndNotTold) {
  Fixture f;
  const auto response = fail(f.solo.env().log, "ack", Error(Errc::data_loss, "/var/lib/x is bad"));
  EXPECT_EQ(response.body, "{\"error\":\"ack failed\"}\n");
}

TEST(MediaType, Parameters_AreDropped) {
  EXPECT_EQ(media_type(" Application/JSON ; charset=utf-8"), "application/json");
  EXPECT_EQ(media_type(""), "");
}

}  // namespace
}  // namespace narad::api
