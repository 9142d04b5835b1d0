#include "pkg/client/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/client/server_url.h"

namespace narad::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ServerUrl, CommonForms_Parse) {
  auto plain = parse_server_url("http://127.0.0.1:7942/");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain.value().endpoint, (Endpoint{"127.0.0.1", 7942}));
  EXPECT_EQ(plain.value().base, "");
  auto bare = parse_server_url("broker");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare.value().endpoint, (Endpoint{"broker", 80}));
  auto prefix = parse_server_url("http://[::1]:80/narad//");
  ASSERT_TRUE(prefix);
  EXPECT_EQ(prefix.value().endpoint, (Endpoint{"::1", 80}));
  EXPECT_EQ(prefix.value().base, "/narad");
}

TEST(ServerUrl, WhatCannotBeReached_IsRefusedWithAReason) {
  for (const char* text : {"", "http://", "ftp://a", "http://a:b", "http://:7942", "http://a?b"}) {
    auto url = parse_server_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code(), Errc::invalid_argument) << text;
  }
  EXPECT_THAT(parse_server_url("https://a").error().text(), HasSubstr("TLS"));
}

TEST(Batch, Records_AreLengthPrefixed) {
  std::string bytes = encode_batch({{"k", "vv"}, {"", "x"}});
  EXPECT_EQ(bytes, std::string("NRB1\2\0\0\0\1\0\0\0\2\0\0\0kvv\0\0\0\0\1\0\0\0x", 28));
}

TEST(NewTopic, OnlyWhatIsSet_IsSent) {
  EXPECT_EQ(encode_new_topic({.name = "a\"b"}), R"({"name":"a\"b"})");
  EXPECT_EQ(encode_new_topic({.name = "a", .partitions = 3, .retention_ms = -1, .schema = "true"}),
            R"({"name":"a","partitions":3,"retention_ms":-1,"schema":true})");
  EXPECT_EQ(encode_topic_change({}), "{}");
}

TEST(Message, Base64Payload_IsDecodedToTheBytes) {
  auto m = decode_received(
      R"({"topic":"t","partition":2,"offset":7,"key":"k","payload":"AP8=",)"
      R"("payload_encoding":"base64","timestamp":5,"receipt_handle":"2:7:9","later":[1]})");
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_EQ(m.value().payload, std::string("\0\xff", 2));
  EXPECT_EQ(m.value().partition, PartitionId(2));
  EXPECT_EQ(m.value().offset, Offset(7));
  EXPECT_EQ(m.value().receipt_handle, "2:7:9");
}

TEST(Message, PlainPayload_IsTakenAsItStands) {
  EXPECT_EQ(decode_received(R"({"payload":{"a": 1}})").value().payload, R"({"a": 1})");
  EXPECT_EQ(decode_received(R"({"payload":"a\n"})").value().payload, "a\n");
}

TEST(Message, MalformedAnswers_AreDataLossAndSayWhy) {
  for (const char* text : {"", "[]", "{}", R"({"payload":"*","payload_encoding":"base64"})",
                           R"({"payload":1,"offset":"3"})", R"({"payload":1,"offset":1.5})"}) {
    auto m = decode_received(text);
    ASSERT_FALSE(m) << text;
    EXPECT_EQ(m.error().code(), Errc::data_loss) << text;
  }
  EXPECT_EQ(decode_received_list("{}").error().code(), Errc::data_loss);
}

TEST(Topic, PartitionStats_AreRead) {
  auto t = decode_topic(
      R"({"name":"orders","partitions":3,"retention_ms":1,"created_at":9,"role":"parent",)"
      R"("children":["a","b"],"partition_stats":[{"index":1,"segments":2,"oldest_offset":3,)"
      R"("next_offset":5,"high_watermark":4,"size_bytes":180,"owner_node":"n1"}]})");
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_THAT(t.value().children, ElementsAre("a", "b"));
  ASSERT_EQ(t.value().stats.size(), 1u);
  EXPECT_EQ(t.value().stats[0].high_watermark, Offset(4));
  EXPECT_EQ(t.value().stats[0].owner_node, "n1");
}

TEST(ErrorText, ErrorMemberThenBodyThenPlaceholder_IsChosen) {
  EXPECT_EQ(error_text("{\"error\":\"topic not found\"}\n"), "topic not found");
  EXPECT_EQ(error_text("  404 page not found\n"), "404 page not found");
  EXPECT_EQ(error_text("{\"other\":1}"), "{\"other\":1}");
  EXPECT_EQ(error_text(" \n"), "<empty body>");
}

}  // namespace
}  // namespace narad::client
