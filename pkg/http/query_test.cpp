#include "pkg/http/query.h"

#include <gtest/gtest.h>

namespace narad::http {
namespace {

using std::string_literals::operator""s;

TEST(Query, FirstOccurrence_IsDecoded) {
  const Query q("key=a%20b+c&partition=3&key=other&empty=&flag&%6bey2=x");
  EXPECT_EQ(q.get("key").value(), "a b c");
  EXPECT_EQ(q.get("partition").value(), "3");
  EXPECT_EQ(q.get("empty").value(), "");
  EXPECT_EQ(q.get("flag").value(), "");
  EXPECT_EQ(q.get("key2").value(), "x");
  EXPECT_EQ(q.get("none").value(), std::nullopt);
  EXPECT_EQ(q.count("key"), 2u);
  EXPECT_EQ(q.count("none"), 0u);
}

TEST(Query, ValueKeepsEqualsSignsAndDecodesAnyByte) {
  const Query q("a=b=c&%00=%00%ff&+=%2B");
  EXPECT_EQ(q.get("a").value(), "b=c");
  EXPECT_EQ(q.get("\0"s).value(), "\0\xff"s);
  EXPECT_EQ(q.get(" ").value(), "+");
}

TEST(Query, BadEscapeInValue_IsAnErrorForThatNameOnly) {
  for (const char* raw : {"a=%", "a=%4", "a=%zz", "a=x%f", "a=%%20"}) {
    const Query q(raw);
    auto r = q.get("a");
    ASSERT_FALSE(r) << raw;
    EXPECT_EQ(r.error().code(), Errc::invalid_argument);
    EXPECT_EQ(q.get("b").value(), std::nullopt);
    EXPECT_EQ(q.first("a"), std::nullopt);
    EXPECT_FALSE(q.has_bad_name());
  }
  // The lenient form passes over what it cannot read.
  EXPECT_EQ(Query("a=%&a=2").first("a"), "2");
}

TEST(Query, BadEscapeInName_IsNoticedAndMatchesNothing) {
  const Query q("a%=1&b=2");
  EXPECT_TRUE(q.has_bad_name());
  EXPECT_EQ(q.get("a%").value(), std::nullopt);
  EXPECT_EQ(q.get("b").value(), "2");
  EXPECT_FALSE(Query("b=%").has_bad_name());
}

TEST(Query, EmptyAndDegenerate_HaveNoPairs) {
  for (const char* raw : {"", "&", "&&&"}) {
    const Query q(raw);
    EXPECT_EQ(q.count(""), 0u);
    EXPECT_FALSE(q.has_bad_name());
  }
  EXPECT_EQ(Query("=x").get("").value(), "x");
}

TEST(DecodePath, PlusStaysAndSlashMayBeEscaped) {
  EXPECT_EQ(decode_path("a+b%2Fc%2fd"), "a+b/c/d");
  EXPECT_EQ(decode_path("%"), std::nullopt);
}

TEST(EncodeComponent, EveryByte_ComesBack) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string encoded = encode_component(all);
  for (const char c : encoded) EXPECT_TRUE(c > ' ' && c < 0x7f && c != '&' && c != '=' && c != '/');
  EXPECT_EQ(decode_query(encoded), all);
  EXPECT_EQ(decode_path(encoded), all);
  EXPECT_EQ(encode_component("2:0:17"), "2%3A0%3A17");
  EXPECT_EQ(encode_component("aZ09-._~"), "aZ09-._~");
}

}  // namespace
}  // namespace narad::http
