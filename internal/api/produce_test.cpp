#include <gtest/gtest.h>

#include "internal/api/test_api.h"

namespace narad::api {
namespace {

TEST(Produce, Keyed_GoesWhereTheKeyHashes) {
  Fixture f;
  f.topic("orders");
  const auto response = f.post("/v1/topics/orders/produce?key=customer-42", R"({"id":1})");
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(response.headers.get("X-Narad-Partition"), "1");
  ASSERT_EQ(f.broker.produced.size(), 1u);
  const Message& m = *f.broker.produced[0];
  EXPECT_EQ(m.topic, "orders");
  EXPECT_EQ(m.incarnation, f.broker.view()->topics.find("orders")->topic.incarnation);
  EXPECT_EQ(m.key, "customer-42");
  EXPECT_EQ(m.partition, PartitionId(1));
  EXPECT_EQ(m.payload, R"({"id":1})");
  EXPECT_EQ(m.accepted_at, f.solo.env().clock.wall_millis());
}

TEST(Produce, Keyless_GetsCountedKeysInBase36) {
  Fixture f;
  f.topic("orders");
  for (int i = 0; i < 37; ++i) ASSERT_EQ(f.post("/v1/topics/orders/produce?key=", "x").status, 202);
  EXPECT_EQ(f.broker.produced[0]->key, "key-1");
  EXPECT_EQ(f.broker.produced[0]->partition, partition_of_key("key-1", 3));
  EXPECT_EQ(f.broker.produced[9]->key, "key-a");
  EXPECT_EQ(f.broker.produced[35]->key, "key-10");
}

TEST(Produce, Partition_OverridesTheKey) {
  Fixture f;
  f.topic("orders");
  const auto response = f.post("/v1/topics/orders/produce?key=k&partition=2", "x");
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(response.headers.get("X-Narad-Partition"), "2");
  EXPECT_EQ(f.broker.produced[0]->partition, PartitionId(2));
  EXPECT_EQ(f.broker.produced[0]->key, "k");
}

TEST(Produce, QueryValues_AreDecoded) {
  Fixture f;
  f.topic("orders");
  EXPECT_EQ(f.post("/v1/topics/orders/produce?key=a+b%2Bc%C3%A9&unknown=1&bad=%zz", "x").status,
            202);
  EXPECT_EQ(f.broker.produced[0]->key, "a b+c\xC3\xA9");
}

TEST(Produce, BadQuery_IsRefusedBeforeTheTopicIsLookedUp) {
  Fixture f;
  for (const char* query : {"key=a&key=b", "partition=1&partition=1", "key=%zz", "partition=%zz",
                            "%zz=1", "partition=", "partition=x", "partition=-1", "partition=1.0",
                            "partition=99999999999999999999", "key=%FF"}) {
    EXPECT_EQ(f.post(cat("/v1/topics/nope/produce?", query), "x").status, 400) << query;
  }
  EXPECT_EQ(f.error(f.post("/v1/topics/nope/produce", "")), "message required");
  EXPECT_EQ(f.post("/v1/topics/nope/produce", "x").status, 404);
  EXPECT_TRUE(f.broker.produced.empty());
}

TEST(Produce, ChecksOfTheTopic_RunInOrder) {
  Fixture f;
  f.topic("delayed", R"(,"schema":{"type":"object"})");
  EXPECT_EQ(f.post("/v1/topics/delayed/produce?partition=9", "[]").status, 400);
  const auto schema_first = f.post("/v1/topics/delayed/produce?partition=9", "[]");
  EXPECT_NE(f.error(schema_first), "invalid partition");
  EXPECT_EQ(f.error(f.post("/v1/topics/delayed/produce?partition=9", "{}")), "invalid partition");
  Topic& t = f.broker.edit("delayed");
  t.role = TopicRole::child;
  t.fanout_delay_ms = 1000;
  f.broker.store_edit();
  EXPECT_EQ(f.post("/v1/topics/delayed/produce?partition=9", "[]").status, 409);
  EXPECT_EQ(f.registry.counter("narad_produce_rejections_total", {"delayed", "schema"}).value(), 2);
  EXPECT_EQ(
      f.registry.counter("narad_produce_rejections_total", {"delayed", "delayed_child"}).value(),
      1);
}

TEST(Produce, Schema_JudgesSmallAndLargeMessages) {
  Fixture f;
  f.topic("orders", R"(,"schema":{"type":"object","required":["id"]})");
  EXPECT_EQ(f.post("/v1/topics/orders/produce", R"({"id":1})").status, 202);
  EXPECT_EQ(f.post("/v1/topics/orders/produce", R"({"ix":1})").status, 400);
  EXPECT_EQ(f.post("/v1/topics/orders/produce", "not json").status, 400);
  const std::string filler(100'000, 'x');
  EXPECT_EQ(f.post("/v1/topics/orders/produce", cat(R"({"id":")", filler, "\"}")).status, 202);
  EXPECT_EQ(f.post("/v1/topics/orders/produce", cat(R"({"ix":")", filler, "\"}")).status, 400);
  ASSERT_EQ(f.broker.produced.size(), 2u);
  EXPECT_EQ(f.broker.produced[1]->payload, cat(R"({"id":")", filler, "\"}"));
}

TEST(Produce, NewSchemaVersionAndNewLife_TakeEffectAtOnce) {
  Fixture f;
  f.topic("orders", R"(,"schema":{"properties":{"a":{"type":"string"}}})");
  EXPECT_EQ(f.post("/v1/topics/orders/produce", R"({"a":null})").status, 400);
  f.patch("/v1/topics/orders", R"({"schema":{"properties":{"a":{"type":["string","null"]}}}})");
  EXPECT_EQ(f.post("/v1/topics/orders/produce", R"({"a":null})").status, 202);
  f.remove("/v1/topics/orders");
  f.topic("orders", R"(,"schema":false)");
  EXPECT_EQ(f.post("/v1/topics/orders/produce", R"({"a":null})").status, 400);
}

TEST(Produce, RefusedByTheLog_CarriesItsReason) {
  Fixture f;
  f.topic("orders");
  f.broker.refuse_produce.emplace(Errc::unavailable, "the disk of the ingress log is full");
  auto response = f.post("/v1/topics/orders/produce", "x");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(f.error(response), "the disk of the ingress log is full");
  f.broker.refuse_produce.emplace(Errc::internal, "a bug");
  response = f.post("/v1/topics/orders/produce", "x");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(f.error(response), "produce failed");
}

// ---- batches

std::string u32(std::uint32_t n) {
  std::string out(4, '\0');
  std::memcpy(out.data(), &n, 4);
  return out;
}
std::string binary_batch(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string out = "NRB1" + u32(static_cast<std::uint32_t>(records.size()));
  for (const auto& [key, value] : records) {
    out += u32(static_cast<std::uint32_t>(key.size())) +
           u32(static_cast<std::uint32_t>(value.size())) + key + value;
  }
  return out;
}

TEST(ProduceBatch, Binary_AcceptsAllInOrder) {
  Fixture f;
  f.topic("orders");
  f.headers["Content-Type"] = "application/vnd.narad.batch";
  const std::string bytes("\x00\xff", 2);
  const auto response = f.post("/v1/topics/orders/produce:batch",
                               binary_batch({{"k", "1"}, {"", "2"}, {"customer-42", bytes}}));
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(response.body, "{\"accepted\":3}\n");
  EXPECT_EQ(response.content_type, "application/json");
  ASSERT_EQ(f.broker.produced.size(), 3u);
  EXPECT_EQ(f.broker.produced[0]->key, "k");
  EXPECT_EQ(f.broker.produced[1]->key, "key-1");
  EXPECT_EQ(f.broker.produced[2]->payload, bytes);
  EXPECT_EQ(f.broker.produced[2]->partition, PartitionId(1));
}

TEST(ProduceBatch, Lines_TakeTextJsonAndBytes) {
  Fixture f;
  f.topic("orders");
  f.headers["Content-Type"] = "Application/X-NDJSON; charset=utf-8";
  const auto response = f.post("/v1/topics/orders/produce:batch?partition=2",
                               "{\"key\":\"a\",\"value\":\"plain \\\"text\\\"\"}\n\r\n"
                               "{\"value\": {\"x\": [1, 2.50]} }\r\n"
                               "{\"Value\":null,\"key\":null}\n"
                               "{\"value_base64\":\"AP8=\"}");
  ASSERT_EQ(response.status, 202) << response.body;
  EXPECT_EQ(response.body, "{\"accepted\":4}\n");
  EXPECT_EQ(f.broker.produced[0]->payload, "plain \"text\"");
  EXPECT_EQ(f.broker.produced[1]->payload, "{\"x\": [1, 2.50]}");
  EXPECT_EQ(f.broker.produced[2]->payload, "null");
  EXPECT_EQ(f.broker.produced[3]->payload, std::string("\x00\xff", 2));
  for (const auto& m : f.broker.produced) EXPECT_EQ(m->partition, PartitionId(2));
}

TEST(ProduceBatch, OneBadRecord_AcceptsNothingAndNamesIt) {
  Fixture f;
  f.topic("orders", R"(,"schema":{"type":"integer"})");
  f.headers["Content-Type"] = "application/x-ndjson";
  auto response =
      f.post("/v1/topics/orders/produce:batch", "{\"value\":1}\n{\"value\":2}\n{\"value\":\"x\"}");
  EXPECT_EQ(response.status, 400);
  EXPECT_TRUE(f.error(response).starts_with("record 3: ")) << response.body;
  response = f.post("/v1/topics/orders/produce:batch", "{\"value\":1}\n{\"valve\":2}\n");
  EXPECT_EQ(response.status, 400);
  EXPECT_TRUE(f.error(response).starts_with("record 2: ")) << response.body;
  EXPECT_TRUE(f.broker.produced.empty());
  // Large ones are validated elsewhere, with the same answer.
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "{\"value\":1}\n";
  EXPECT_EQ(f.post("/v1/topics/orders/produce:batch", many).status, 202);
  EXPECT_EQ(
      f.error(f.post("/v1/topics/orders/produce:batch", many + "{\"value\":{}}")).substr(0, 13),
      "record 5001: ");
  EXPECT_EQ(f.broker.produced.size(), 5000u);
}

TEST(ProduceBatch, OtherContentTypes_Are415) {
  Fixture f;
  f.topic("orders");
  EXPECT_EQ(f.post("/v1/topics/orders/produce:batch", "x").status, 415);
  f.headers["Content-Type"] = "application/json";
  EXPECT_EQ(f.post("/v1/topics/orders/produce:batch", "x").status, 415);
}

TEST(ProduceBatch, QueryAndTopic_AreCheckedAsForSingleMessages) {
  Fixture f;
  f.topic("orders");
  f.headers["Content-Type"] = "application/vnd.narad.batch";
  const std::string body = binary_batch({{"", "x"}});
  EXPECT_EQ(f.post("/v1/topics/orders/produce:batch?key=a", body).status, 400);
  EXPECT_EQ(f.post("/v1/topics/orders/produce:batch?partition=x", body).status, 400);
  EXPECT_EQ(f.error(f.post("/v1/topics/orders/produce:batch?partition=3", body)),
            "invalid partition");
  EXPECT_EQ(f.post("/v1/topics/nope/produce:batch", body).status, 404);
  f.broker.refuse_produce.emplace(Errc::unavailable, "backlog over its limit");
  EXPECT_EQ(f.post("/v1/topics/orders/produce:batch", body).status, 503);
}

}  // namespace
}  // namespace narad::api
