#include <gtest/gtest.h>

#include "internal/api/test_api.h"

namespace narad::api {
namespace {

constexpr const char* kOrders =
    R"({"name":"orders","partitions":3,"retention_ms":604800000,"visibility_timeout_ms":30000,)"
    R"("max_in_flight_per_partition":1024,"max_acked_ahead_per_partition":1024,)"
    R"("created_at":1783615000,"role":"standalone"})";

TEST(CreateTopic, WithDefaults_AnswersTheTopicObject) {
  Fixture f;
  const auto response = f.post("/v1/topics", R"({"name":"orders"})");
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, std::string(kOrders) + "\n");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_TRUE(response.headers.empty());
}

TEST(CreateTopic, EveryField_IsTakenOver) {
  Fixture f;
  const auto response =
      f.post("/v1/topics",
             R"({"NAME":"t","partitions":108,"retention_ms":3600000,"visibility_timeout_ms":1,)"
             R"("max_in_flight_per_partition":2,"max_acked_ahead_per_partition":3,"owner":"me",)"
             R"("schema":{"type":"object"},"parent":"","fanout_delay_ms":0})");
  ASSERT_EQ(response.status, 201) << response.body;
  const auto* row = f.broker.view()->topics.find("t");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->topic.partitions, 108u);
  EXPECT_EQ(row->topic.retention_ms, 3'600'000);
  EXPECT_EQ(row->topic.visibility_timeout_ms, 1);
  EXPECT_EQ(row->topic.max_in_flight_per_partition, 2);
  EXPECT_EQ(row->topic.max_acked_ahead_per_partition, 3);
  EXPECT_EQ(row->topic.owner, "");
  EXPECT_EQ(row->schema()->text, R"({"type":"object"})");
}

TEST(CreateTopic, PartitionsAndRetention_FollowTheirSpecialValues) {
  Fixture f;
  f.topic("one", R"(,"partitions":1,"retention_ms":-1)");
  EXPECT_EQ(f.broker.view()->topics.find("one")->topic.partitions, 1u);
  EXPECT_EQ(f.broker.view()->topics.find("one")->topic.retention_ms, 0);
  f.topic("zero", R"(,"partitions":0,"retention_ms":0,"visibility_timeout_ms":null)");
  EXPECT_EQ(f.broker.view()->topics.find("zero")->topic.partitions, 3u);
  EXPECT_EQ(f.broker.view()->topics.find("zero")->topic.retention_ms, 604'800'000);
}

TEST(CreateTopic, ChecksRunInTheContractsOrder) {
  Fixture f;
  f.topic("taken");
  // Each body breaks its own rule and all later ones.
  const auto problem = [&](std::string body) {
    const auto r = f.post("/v1/topics", std::move(body));
    return cat(r.status, " ", f.error(r));
  };
  EXPECT_EQ(problem(R"({"x":1,"name":"/","partitions":-1,"schema":1})"),
            "400 invalid json: unknown field \\\"x\\\"");
  EXPECT_TRUE(problem(R"({"name":"/","fanout_delay_ms":5,"partitions":-1,"schema":1})")
                  .starts_with("400 invalid topic name"));
  EXPECT_EQ(problem(R"({"name":"taken","fanout_delay_ms":5,"partitions":-1,"schema":1})"),
            "400 fanout_delay_ms needs a parent");
  EXPECT_EQ(problem(R"({"name":"taken","partitions":-1,"schema":1})"),
            "400 partitions must be between 1 and 108");
  EXPECT_TRUE(problem(R"({"name":"taken","schema":1})").starts_with("400 invalid schema: "));
  EXPECT_EQ(problem(R"({"name":"taken","schema":true})"), "409 topic already exists");
}

TEST(CreateTopic, NullSchema_IsNoSchema) {
  Fixture f;
  EXPECT_EQ(f.post("/v1/topics", R"({"name":"a","schema":null})").status, 400);
  EXPECT_FALSE(f.broker.view()->topics.contains("a"));
}

TEST(CreateTopic, ControlPlaneTrouble_IsRetryable) {
  Fixture f;
  f.broker.refuse_write.emplace(Errc::unavailable, "no leader is known");
  auto response = f.post("/v1/topics", R"({"name":"orders"})");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(f.error(response), "control plane temporarily unavailable: no leader is known");
  f.broker.refuse_write.emplace(Errc::unknown_outcome, "leadership was lost");
  EXPECT_EQ(f.post("/v1/topics", R"({"name":"orders"})").status, 503);
  f.broker.refuse_write.emplace(Errc::internal, "secret detail");
  response = f.post("/v1/topics", R"({"name":"orders"})");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(f.error(response), "create topic failed");
}

TEST(ListTopics, Pages_AreByteWiseAscending) {
  Fixture f;
  EXPECT_EQ(f.get("/v1/topics").body, "{\"next_page_token\":\"\",\"topics\":[]}\n");
  for (const char* name : {"b", "a", "B", "c"}) f.topic(name);
  auto page = f.get("/v1/topics?limit=2");
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.body.starts_with(R"({"next_page_token":"a","topics":[{"name":"B",)"))
      << page.body;
  page = f.get("/v1/topics?limit=2&page_token=a");
  EXPECT_TRUE(page.body.starts_with(R"({"next_page_token":"","topics":[{"name":"b",)"))
      << page.body;
  EXPECT_NE(page.body.find(R"("name":"c")"), std::string::npos);
  // A token whose topic is gone still works; limits above 1000 are clamped.
  f.remove("/v1/topics/b");
  page = f.get("/v1/topics?limit=999999999999&page_token=b");
  EXPECT_TRUE(page.body.starts_with(R"({"next_page_token":"","topics":[{"name":"c",)"))
      << page.body;
  for (const char* bad : {"limit=0", "limit=-1", "limit=x", "limit=1.5"}) {
    EXPECT_EQ(f.get(cat("/v1/topics?", bad)).status, 400) << bad;
  }
  EXPECT_EQ(f.get("/v1/topics?limit=&page_token=").status, 200);
}

TEST(GetTopic, Statistics_FollowTheTopicObject) {
  Fixture f;
  f.topic("orders", R"(,"partitions":2)");
  const auto response = f.get("/v1/topics/orders");
  EXPECT_EQ(response.status, 200);
  const std::string expected =
      R"("role":"standalone","partition_stats":[{"index":0,"segments":1,"oldest_offset":0,)"
      R"("next_offset":0,"high_watermark":0,"size_bytes":180,"oldest_segment_at":1783615000,)"
      R"("owner_node":"n1"},{"index":1,"segments":1,"oldest_offset":0,"next_offset":2,)"
      R"("high_watermark":2,"size_bytes":180}]})"
      "\n";
  EXPECT_TRUE(response.body.ends_with(expected)) << response.body;
}

TEST(GetTopic, Partition_RestrictsTheStatistics) {
  Fixture f;
  f.topic("orders");
  EXPECT_NE(f.get("/v1/topics/orders?partition=1").body.find("\"partition_stats\":[{\"index\":1,"),
            std::string::npos);
  for (const char* bad : {"3", "-1", "x", "99999999999999999999"}) {
    const auto response = f.get(cat("/v1/topics/orders?partition=", bad));
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(f.error(response), "invalid partition");
  }
  EXPECT_EQ(f.get("/v1/topics/nope?partition=3").status, 404);
  EXPECT_EQ(f.error(f.get("/v1/topics/nope")), "topic not found");
}

TEST(GetTopic, UnreachableOwner_IsNoPartialAnswer) {
  Fixture f;
  f.topic("orders");
  f.broker.refuse_stats.emplace(Errc::not_owner, "partition 1 is owned by n2, which is dead");
  EXPECT_EQ(f.get("/v1/topics/orders").status, 421);
  f.broker.refuse_stats.emplace(Errc::data_loss, "bad block");
  const auto response = f.get("/v1/topics/orders");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(f.error(response), "get topic failed");
}

TEST(ChangeTopic, Settings_AnswerTheTopicAfterwards) {
  Fixture f;
  f.topic("orders");
  auto response = f.patch("/v1/topics/orders", R"({"retention_ms":3600000})");
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.body.find("\"retention_ms\":3600000,"), std::string::npos);
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"retention_ms":-1})").status, 200);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->topic.retention_ms, 0);
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"retention_ms":0})").status, 200);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->topic.retention_ms, 604'800'000);
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"visibility_timeout_ms":5})").status, 200);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->topic.visibility_timeout_ms, 5);
  // The other cap keeps its value; 0 is the default.
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"max_in_flight_per_partition":7})").status, 200);
  EXPECT_EQ(f.patch("/v1/topics/orders",
                    R"({"max_acked_ahead_per_partition":9,"max_in_flight_per_partition":null})")
                .status,
            200);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->topic.max_in_flight_per_partition, 7);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->topic.max_acked_ahead_per_partition, 9);
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"max_in_flight_per_partition":0})").status, 200);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->topic.max_in_flight_per_partition, 1024);
}

TEST(ChangeTopic, Partitions_OnlyGrow) {
  Fixture f;
  f.topic("orders");
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"partitions":6})").status, 200);
  const auto again = f.patch("/v1/topics/orders", R"({"partitions":6})");
  EXPECT_EQ(again.status, 400);
  EXPECT_EQ(f.error(again), "partitions can only grow: the topic has 6");
  EXPECT_EQ(f.patch("/v1/topics/orders", R"({"partitions":109})").status, 400);
}

TEST(ChangeTopic, LaterStepRefused_KeepsTheEarlierOnes) {
  Fixture f;
  f.topic("orders");
  const auto response =
      f.patch("/v1/topics/orders", R"({"retention_ms":3600000,"partitions":2,"schema":true})");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->topic.retention_ms, 3'600'000);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->schema(), nullptr);
  EXPECT_EQ(f.broker.calls,
            (std::vector<std::string>{"create orders", "alter orders", "alter orders"}));
}

TEST(ChangeTopic, NothingGivenOrInvalid_IsRefusedBeforeTheTopicIsLookedUp) {
  Fixture f;
  for (const char* body : {"{}", R"({"partitions":0})", R"({"retention_ms":null})", "null",
                           R"({"retention_ms":3599999})", R"({"partitions":-1})",
                           R"({"visibility_timeout_ms":-1})", R"({"name":"x"})", "", "{}{}",
                           R"({"partitions":3.5})", R"({"schema":null})", R"({"schema":"x"})"}) {
    EXPECT_EQ(f.patch("/v1/topics/nope", body).status, 400) << body;
  }
  EXPECT_EQ(f.patch("/v1/topics/nope", R"({"retention_ms":3600000})").status, 404);
}

TEST(ChangeTopic, Schema_MustStayCompatible) {
  Fixture f;
  f.topic("orders");
  EXPECT_EQ(f.patch("/v1/topics/orders",
                    R"({"schema":{"properties":{"id":{"type":"integer"}},"required":["id"]}})")
                .status,
            200);
  EXPECT_EQ(f.patch("/v1/topics/orders",
                    R"({"schema":{"properties":{"id":{"type":["integer","null"]}}}})")
                .status,
            200);
  const auto response =
      f.patch("/v1/topics/orders", R"({"schema":{"properties":{"id":{"type":"string"}}}})");
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(f.error(response).find("compatible"), std::string::npos);
  EXPECT_EQ(f.broker.view()->topics.find("orders")->schemas.size(), 2u);
}

TEST(ChangeTopic, SchemaRaced_IsJudgedAgainstTheWinner) {
  Fixture f;
  f.topic("orders");
  const Incarnation life = f.broker.view()->topics.find("orders")->topic.incarnation;
  f.broker.before_put_schema = [&] {
    f.broker.apply(
        metastore::PutSchema{"orders", life, 1, R"({"properties":{"a":{"type":"string"}}})"});
  };
  // Fits an empty history, but not the rival's version.
  auto response = f.patch("/v1/topics/orders", R"({"schema":{"properties":{}}})");
  EXPECT_EQ(response.status, 400) << response.body;
  f.broker.before_put_schema = [&] {
    f.broker.apply(
        metastore::PutSchema{"orders", life, 2, R"({"properties":{"a":{"type":"string"}}})"});
  };
  response =
      f.patch("/v1/topics/orders", R"({"schema":{"properties":{"a":{"type":"string"},"b":{}}}})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(f.broker.view()->topics.find("orders")->schemas.size(), 3u);
}

TEST(ChangeTopic, SchemaOfAChild_BelongsToItsParent) {
  Fixture f;
  f.topic("child");
  f.broker.edit("child").role = TopicRole::child;
  f.broker.store_edit();
  EXPECT_EQ(f.patch("/v1/topics/child", R"({"schema":true})").status, 409);
}

TEST(DeleteTopic, Repeated_IsNotFound) {
  Fixture f;
  f.topic("orders");
  const auto response = f.remove("/v1/topics/orders");
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(response.body, "");
  const auto again = f.remove("/v1/topics/orders");
  EXPECT_EQ(again.status, 404);
  EXPECT_EQ(f.error(again), "topic not found");
}

TEST(TopicObject, FanOutFields_KeepTheContractsOrder) {
  Fixture f;
  f.topic("p");
  Topic& t = f.broker.edit("p");
  t.owner = "admin";
  t.role = TopicRole::parent;
  t.children = {"b", "a"};
  t.parent = "q";
  t.attach_epoch = "00000000000000ab";
  t.fanout_delay_ms = 5;
  f.broker.store_edit();
  EXPECT_NE(
      f.get("/v1/topics")
          .body.find(
              R"("created_at":1783615000,"owner":"admin","role":"parent","children":["b","a"],)"
              R"("parent":"q","attach_epoch":"00000000000000ab","fanout_delay_ms":5})"),
      std::string::npos);
}

TEST(Routing, UnknownPathsAndMethods_AreAnsweredAsText) {
  Fixture f;
  auto response = f.get("/v1/nothing");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "404 page not found\n");
  response = f.remove("/v1/topics");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.headers.get("Allow"), "GET, HEAD, POST");
  response = f.call(http::Method::head, "/v1/topics/orders/consume");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(f.broker.consumes.size(), 0u);
  EXPECT_EQ(f.get("/v1/topics/").status, 404);
  // An encoded slash stays inside the segment: a name that no topic has.
  EXPECT_EQ(f.error(f.get("/v1/topics/a%2Fb")), "topic not found");
}

}  // namespace
}  // namespace narad::api
