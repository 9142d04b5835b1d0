#include "internal/api/batch.h"

#include <gtest/gtest.h>

#include <cstring>

#include "internal/api/options.h"
#include "pkg/base/text.h"

namespace narad::api {
namespace {

std::string u32(std::uint32_t n) {
  std::string out(4, '\0');
  std::memcpy(out.data(), &n, 4);
  return out;
}
std::string record(std::string_view key, std::string_view value) {
  return cat(u32(static_cast<std::uint32_t>(key.size())),
             u32(static_cast<std::uint32_t>(value.size())), key, value);
}
std::string problem(const Result<std::vector<BatchRecord>>& parsed) {
  return parsed ? "none" : cat(to_string(parsed.error().code()), ": ", parsed.error().text());
}

TEST(BinaryBatch, EveryTruncation_IsRefusedWithTheRecordNamed) {
  const std::string body = "NRB1" + u32(2) + record("k", "value") + record("", "v");
  ASSERT_TRUE(parse_binary_batch(body)) << problem(parse_binary_batch(body));
  for (std::size_t n = 0; n < body.size(); ++n) {
    const auto parsed = parse_binary_batch(body.substr(0, n));
    ASSERT_FALSE(parsed) << n;
    EXPECT_EQ(parsed.error().code(), Errc::invalid_argument);
  }
  EXPECT_EQ(problem(parse_binary_batch(body.substr(0, body.size() - 1))),
            "invalid_argument: record 2: the body ends within it");
  EXPECT_EQ(problem(parse_binary_batch(body + "x")),
            "invalid_argument: 1 bytes follow the last record");
}

TEST(BinaryBatch, Limits_AreEnforcedBeforeAnythingIsAllocated) {
  EXPECT_EQ(problem(parse_binary_batch("NRB2" + u32(1))),
            "invalid_argument: not a batch: it must begin with NRB1");
  EXPECT_EQ(problem(parse_binary_batch("NRB1" + u32(0))),
            "invalid_argument: a batch has at least one record");
  EXPECT_EQ(problem(parse_binary_batch("NRB1" + u32(10'001))),
            "invalid_argument: a batch has at most 10000 records");
  EXPECT_EQ(problem(parse_binary_batch("NRB1" + u32(1) + u32(0xffffffff) + u32(0xffffffff))),
            "invalid_argument: record 1: the body ends within it");
  EXPECT_EQ(problem(parse_binary_batch("NRB1" + u32(1) + record("k", ""))),
            "invalid_argument: record 1: message required");
  EXPECT_EQ(problem(parse_binary_batch("NRB1" + u32(1) + record("\xff", "v"))),
            "invalid_argument: record 1: key is not valid UTF-8");
  EXPECT_EQ(problem(parse_binary_batch("NRB1" + u32(1) + record(std::string(65'537, 'k'), "v"))),
            "invalid_argument: record 1: key over 65536 bytes");
  const std::string mebibyte(kMessageBytesMax, 'v');
  EXPECT_TRUE(parse_binary_batch("NRB1" + u32(1) + record("", mebibyte)));
  EXPECT_EQ(problem(parse_binary_batch("NRB1" + u32(1) + record("", mebibyte + "v"))),
            "too_large: record 1: message over 1048576 bytes");
}

TEST(LineBatch, MalformedLines_AreNamed) {
  const auto second = [](std::string_view line) {
    return problem(parse_ndjson_batch(cat("{\"value\":1}\n", line)));
  };
  EXPECT_TRUE(second("{").starts_with("invalid_argument: record 2: invalid json: "));
  EXPECT_EQ(second("[]"), "invalid_argument: record 2: invalid json: expected an object");
  EXPECT_EQ(second("{\"value\":1,\"more\":2}"),
            "invalid_argument: record 2: invalid json: unknown field \"more\"");
  EXPECT_EQ(second("{}"), "invalid_argument: record 2: give either value or value_base64");
  EXPECT_EQ(second("{\"value\":1,\"value_base64\":\"AA==\"}"),
            "invalid_argument: record 2: give either value or value_base64");
  EXPECT_EQ(second("{\"value_base64\":\"AA\"}"),
            "invalid_argument: record 2: value_base64 is not a string of padded base64");
  EXPECT_EQ(second("{\"value_base64\":null}"),
            "invalid_argument: record 2: value_base64 is not a string of padded base64");
  EXPECT_EQ(second("{\"key\":1,\"value\":1}"), "invalid_argument: record 2: key is not a string");
  EXPECT_EQ(second("{\"value\":\"\"}"), "invalid_argument: record 2: message required");
  EXPECT_EQ(problem(parse_ndjson_batch(" \n\r\n")),
            "invalid_argument: a batch has at least one record");
  std::string many;
  for (int i = 0; i < 10'001; ++i) many += "{\"value\":1}\n";
  EXPECT_EQ(problem(parse_ndjson_batch(many)),
            "invalid_argument: a batch has at most 10000 records");
}

}  // namespace
}  // namespace narad::api
