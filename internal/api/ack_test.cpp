#include <gtest/gtest.h>

#include "internal/api/test_api.h"

namespace narad::api {
namespace {

TEST(Ack, Modes_FollowExtend) {
  Fixture f;
  f.topic("orders");
  const std::string base = "/v1/topics/orders/ack?receipt_handle=2%3A0%3A17";
  for (const char* more : {"", "&extend=", "&extend=false", "&extend=true", "&extend=1",
                           "&extend=0", "&extend=0&extend=junk", "&other=%zz"}) {
    const auto response = f.post(base + more, "a body that nobody reads");
    EXPECT_EQ(response.status, 204) << more;
    EXPECT_EQ(response.body, "");
  }
  std::vector<SettleMode> modes;
  for (const auto& [handle, mode] : f.broker.settled) {
    EXPECT_EQ(handle, (ReceiptHandle{PartitionId(2), Offset(0), 17}));
    modes.push_back(mode);
  }
  EXPECT_EQ(modes, (std::vector<SettleMode>{SettleMode::ack, SettleMode::ack, SettleMode::ack,
                                            SettleMode::extend, SettleMode::extend,
                                            SettleMode::nack, SettleMode::nack, SettleMode::ack}));
}

TEST(Ack, Checks_RunInOrder) {
  Fixture f;
  const auto answer = [&](const char* query) {
    const auto r = f.post(cat("/v1/topics/nope/ack", query));
    return cat(r.status, " ", f.error(r));
  };
  EXPECT_EQ(answer("?extend=junk"), "400 receipt_handle required");
  EXPECT_EQ(answer("?receipt_handle=&extend=junk"), "400 receipt_handle required");
  EXPECT_TRUE(answer("?receipt_handle=bad&extend=junk").starts_with("400 extend must be"));
  EXPECT_EQ(answer("?receipt_handle=bad"), "400 invalid receipt handle");
  EXPECT_EQ(f.post("/v1/topics/nope/ack?receipt_handle=%zz").status, 400);
  EXPECT_EQ(answer("?receipt_handle=0:0:1"), "404 topic not found");
  EXPECT_TRUE(f.broker.settled.empty());
}

TEST(Ack, Refusals_KeepTheirStatus) {
  Fixture f;
  f.topic("orders");
  f.broker.refuse_settle.emplace("0:0:1", Error(Errc::gone, "no live lease"));
  f.broker.refuse_settle.emplace("0:0:2", Error(Errc::unavailable, "acked-ahead window full"));
  f.broker.refuse_settle.emplace("0:0:3", Error(Errc::internal, "a bug"));
  EXPECT_EQ(f.post("/v1/topics/orders/ack?receipt_handle=0:0:1").status, 410);
  EXPECT_EQ(f.post("/v1/topics/orders/ack?receipt_handle=0:0:2").status, 503);
  EXPECT_EQ(f.error(f.post("/v1/topics/orders/ack?receipt_handle=0:0:3")), "ack failed");
  EXPECT_EQ(f.error(f.post("/v1/topics/orders/ack?receipt_handle=0:0:3&extend=1")),
            "extend ack failed");
  EXPECT_EQ(f.error(f.post("/v1/topics/orders/ack?receipt_handle=0:0:3&extend=0")), "nack failed");
}

TEST(AckBatch, EachHandle_HasItsOwnResult) {
  Fixture f;
  f.topic("orders");
  f.broker.refuse_settle.emplace("0:1:1", Error(Errc::gone, "no live lease"));
  f.broker.refuse_settle.emplace("0:2:1", Error(Errc::unavailable, "full"));
  const auto response = f.post("/v1/topics/orders/ack:batch",
                               R"({"mode":"nack","handles":["0:1:1","x\"","0:2:1","0:3:1"]})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"results":[{"handle":"0:1:1","status":410},{"handle":"x\"","status":400},)"
            R"({"handle":"0:2:1","status":503},{"handle":"0:3:1","status":204}]})"
            "\n");
  ASSERT_EQ(f.broker.settled.size(), 3u);
  for (const auto& [handle, mode] : f.broker.settled) EXPECT_EQ(mode, SettleMode::nack);
  // Nothing but malformed handles is an answer too.
  EXPECT_EQ(f.post("/v1/topics/orders/ack:batch", R"({"mode":"ack","handles":[""]})").body,
            "{\"results\":[{\"handle\":\"\",\"status\":400}]}\n");
}

TEST(AckBatch, BadBodies_SettleNothing) {
  Fixture f;
  f.topic("orders");
  std::string many = R"({"mode":"ack","handles":["0:0:1")";
  for (int i = 0; i < 1000; ++i) many += ",\"0:0:1\"";
  many += "]}";
  for (const std::string& body : std::initializer_list<std::string>{
           "", "{}", "null", R"({"mode":"ack"})", R"({"mode":"ack","handles":[]})",
           R"({"handles":["0:0:1"]})", R"({"mode":"eat","handles":["0:0:1"]})",
           R"({"mode":"ack","handles":[1]})", R"({"mode":"ack","handles":["0:0:1"],"x":1})",
           many}) {
    EXPECT_EQ(f.post("/v1/topics/orders/ack:batch", body).status, 400) << body.substr(0, 60);
  }
  EXPECT_TRUE(f.broker.settled.empty());
  const std::string good = R"({"mode":"ack","handles":["0:0:1"]})";
  EXPECT_EQ(f.post("/v1/topics/nope/ack:batch", good).status, 404);
  f.headers["Content-Type"] = "text/plain";
  EXPECT_EQ(f.post("/v1/topics/orders/ack:batch", good).status, 415);
  f.headers["Content-Type"] = "application/json; charset=utf-8";
  EXPECT_EQ(f.post("/v1/topics/orders/ack:batch", good).status, 200);
}

}  // namespace
}  // namespace narad::api
