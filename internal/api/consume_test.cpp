#include <gtest/gtest.h>

#include "internal/api/message_json.h"
#include "internal/api/test_api.h"

namespace narad::api {
namespace {

TEST(Consume, OneMessage_IsTheObjectOfTheContract) {
  Fixture f;
  f.topic("orders");
  f.broker.queue.push_back(leased(2, 0, 17, "customer-42", R"({"order_id":"ord_123"})"));
  const auto response = f.get("/v1/topics/orders/consume");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body,
            R"({"topic":"orders","partition":2,"offset":0,"key":"customer-42",)"
            R"("payload":{"order_id":"ord_123"},"timestamp":1783615560,"receipt_handle":"2:0:17"})"
            "\n");
  ASSERT_EQ(f.broker.consumes.size(), 1u);
  EXPECT_EQ(f.broker.consumes[0].max, 1u);
  EXPECT_EQ(f.broker.consumes[0].wait, Nanos(0));
  EXPECT_FALSE(f.broker.consumes[0].partition);
  EXPECT_EQ(f.broker.consumes[0].incarnation,
            f.broker.view()->topics.find("orders")->topic.incarnation);
}

TEST(Consume, NothingThere_Is204WithoutBody) {
  Fixture f;
  f.topic("orders");
  for (const char* query : {"", "?wait=1s", "?max=10", "?partition=1&offset=5"}) {
    const auto response = f.get(cat("/v1/topics/orders/consume", query));
    EXPECT_EQ(response.status, 204) << query;
    EXPECT_EQ(response.body, "");
  }
}

TEST(Consume, Query_ReachesTheBroker) {
  Fixture f;
  f.topic("orders");
  f.get("/v1/topics/orders/consume?partition=2&wait=1.5s&max=1000&partition=9&wait=bad");
  ASSERT_EQ(f.broker.consumes.size(), 1u);
  EXPECT_EQ(f.broker.consumes[0].partition, PartitionId(2));
  EXPECT_EQ(f.broker.consumes[0].wait, std::chrono::milliseconds(1500));
  EXPECT_EQ(f.broker.consumes[0].max, 1000u);
  f.get("/v1/topics/orders/consume?wait=99h");
  EXPECT_EQ(f.broker.consumes[1].wait, std::chrono::seconds(10));
  f.get("/v1/topics/orders/consume?wait=-5s&partition=&encoding=&max=&local_only=0");
  EXPECT_EQ(f.broker.consumes[2].wait, Nanos(0));
  EXPECT_FALSE(f.broker.consumes[2].local_only);
  f.get("/v1/topics/orders/consume?wait=5s&local_only=1");
  EXPECT_EQ(f.broker.consumes[3].wait, Nanos(0));
  EXPECT_TRUE(f.broker.consumes[3].local_only);
}

TEST(Consume, WaitCeiling_FollowsTheConfiguration) {
  Options options;
  options.max_consume_wait = Nanos(0);
  Fixture f(options);
  f.topic("orders");
  f.get("/v1/topics/orders/consume?wait=1h");
  EXPECT_EQ(f.broker.consumes[0].wait, std::chrono::seconds(30));
}

TEST(Consume, BadQuery_IsRefusedWithoutALease) {
  Fixture f;
  f.topic("orders");
  for (const char* query :
       {"partition=x", "partition=3", "partition=-1", "offset=1", "partition=0&offset=-1",
        "partition=0&offset=x", "wait=10", "wait=s", "max=0", "max=1001", "max=x", "encoding=hex",
        "partition=0&offset=1&max=2"}) {
    EXPECT_EQ(f.get(cat("/v1/topics/orders/consume?", query)).status, 400) << query;
  }
  EXPECT_EQ(f.get("/v1/topics/nope/consume?partition=7").status, 404);
  EXPECT_EQ(f.get("/v1/topics/nope/consume?wait=10").status, 400);
  EXPECT_TRUE(f.broker.consumes.empty());
}

TEST(Consume, Max_AnswersAListEvenOfOne) {
  Fixture f;
  f.topic("orders");
  f.broker.queue.push_back(leased(0, 4, 1, "", "1"));
  f.broker.queue.push_back(leased(1, 9, 2, "k", "text"));
  auto response = f.get("/v1/topics/orders/consume?max=2");
  EXPECT_EQ(response.body,
            R"([{"topic":"orders","partition":0,"offset":4,"payload":1,"timestamp":1783615560,)"
            R"("receipt_handle":"0:4:1"},{"topic":"orders","partition":1,"offset":9,"key":"k",)"
            R"("payload":"text","timestamp":1783615560,"receipt_handle":"1:9:2"}])"
            "\n");
  f.broker.queue.push_back(leased(0, 5, 3, "", "1"));
  response = f.get("/v1/topics/orders/consume?max=1");
  EXPECT_TRUE(response.body.starts_with("[{") && response.body.ends_with("}]\n"));
}

TEST(Consume, AcceptWithoutLikingForLines_AnswersJson) {
  for (const char* accept : {"application/x-ndjson;q=0", "application/x-ndjson;q=0.0, */*", "*/*",
                             "text/plain", "application/json, application/x-ndjson;q=0.5"}) {
    Fixture f;
    f.topic("orders");
    f.headers["Accept"] = accept;
    f.broker.queue.push_back(leased(0, 1, 2, "k", "payload"));
    EXPECT_EQ(f.get("/v1/topics/orders/consume?max=10").content_type, "application/json") << accept;
  }
}

TEST(Consume, AcceptLines_AnswersOneMessageALine) {
  Fixture f;
  f.topic("orders");
  f.headers["Accept"] = "text/plain, application/x-ndjson;q=0.9";
  f.broker.queue.push_back(leased(0, 4, 1, "", "{\n}"));
  f.broker.queue.push_back(leased(0, 5, 2, "", "a\rb"));
  f.broker.queue.push_back(leased(0, 6, 3, "", "ab"));
  const auto response = f.get("/v1/topics/orders/consume?max=5");
  EXPECT_EQ(response.content_type, "application/x-ndjson");
  EXPECT_EQ(
      response.body,
      R"({"topic":"orders","partition":0,"offset":4,"payload":"ewp9","payload_encoding":"base64",)"
      R"("timestamp":1783615560,"receipt_handle":"0:4:1"})"
      "\n"
      R"({"topic":"orders","partition":0,"offset":5,"payload":"YQ1i","payload_encoding":"base64",)"
      R"("timestamp":1783615560,"receipt_handle":"0:5:2"})"
      "\n"
      R"({"topic":"orders","partition":0,"offset":6,"payload":"ab","timestamp":1783615560,)"
      R"("receipt_handle":"0:6:3"})"
      "\n");
}

TEST(Consume, Replay_HasNoHandle) {
  Fixture f;
  f.topic("orders");
  f.broker.stored[Offset(7)] = leased(1, 7, 1, "k", "{}").record;
  const auto response = f.get("/v1/topics/orders/consume?partition=1&offset=7&wait=5s");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"topic":"orders","partition":1,"offset":7,"key":"k","payload":{},)"
                           R"("timestamp":1783615560})"
                           "\n");
  ASSERT_EQ(f.broker.replays.size(), 1u);
  EXPECT_EQ(f.broker.replays[0].partition, PartitionId(1));
  EXPECT_TRUE(f.broker.consumes.empty());
  f.broker.refuse_replay.emplace(Errc::gone, "offset 0 is below the oldest kept, 5");
  EXPECT_EQ(f.get("/v1/topics/orders/consume?partition=1&offset=0").status, 410);
}

TEST(Consume, BrokerRefusals_KeepTheirStatus) {
  Fixture f;
  f.topic("orders");
  f.broker.refuse_consume.emplace(Errc::not_owner, "no owner");
  EXPECT_EQ(f.get("/v1/topics/orders/consume?partition=0").status, 421);
  f.broker.refuse_consume.emplace(Errc::unavailable, "owner is dead");
  EXPECT_EQ(f.get("/v1/topics/orders/consume?partition=0").status, 503);
  f.broker.refuse_consume.emplace(Errc::data_loss, "damaged");
  const auto response = f.get("/v1/topics/orders/consume");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(f.error(response), "consume failed");
}

// ---- the payload rule

std::string payload_of(std::string payload, MessageFormat format = {}) {
  StoredRecord record;
  record.payload = std::move(payload);
  std::string out;
  append_message(out, "t", PartitionId(0), record, nullptr, format);
  const std::size_t begin = out.find("\"payload\":") + 10, end = out.find(",\"timestamp\"");
  return out.substr(begin, end - begin);
}

TEST(Payload, OneJsonValue_IsSplicedByteForByte) {
  for (const char* json : {"{\"a\" : 1.50}", " [1]\n", "\"hi\"", "12", "null", "true", "-0.0e+1",
                           "\"\\u00e9<>&\\u2028\""}) {
    EXPECT_EQ(payload_of(json), json);
  }
}

TEST(Payload, OtherText_IsAString) {
  EXPECT_EQ(payload_of("hi"), "\"hi\"");
  EXPECT_EQ(payload_of("{\"a\":1} x"), "\"{\\\"a\\\":1} x\"");
  EXPECT_EQ(payload_of("a\n\t\x01\"\\"), "\"a\\n\\t\\u0001\\\"\\\\\"");
  EXPECT_EQ(payload_of("\xC3\xA9<\xE2\x80\xA8"), "\"\xC3\xA9<\xE2\x80\xA8\"");
  // What JSON numbers and escapes cannot say is text.
  EXPECT_EQ(payload_of("\"\\ud800\""), "\"\\\"\\\\ud800\\\"\"");
  EXPECT_EQ(payload_of("NaN"), "\"NaN\"");
}

TEST(Payload, Bytes_AreBase64) {
  EXPECT_EQ(payload_of("\xff\xfe"), R"("//4=","payload_encoding":"base64")");
  EXPECT_EQ(payload_of("{}", {true, false}), R"("e30=","payload_encoding":"base64")");
  EXPECT_EQ(payload_of(""), "null");
}

TEST(Timestamp, Milliseconds_AreFloored) {
  const auto stamp = [](std::int64_t ms) {
    StoredRecord record;
    record.commit_time = UnixMillis(ms);
    std::string out;
    append_message(out, "t", PartitionId(0), record, nullptr, {});
    return out.substr(out.find("timestamp"));
  };
  EXPECT_EQ(stamp(1999), "timestamp\":1}");
  EXPECT_EQ(stamp(0), "timestamp\":0}");
  EXPECT_EQ(stamp(-1), "timestamp\":-1}");
}

}  // namespace
}  // namespace narad::api
