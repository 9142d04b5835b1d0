#include <gtest/gtest.h>

#include "pkg/base/text.h"
#include "pkg/json/decode.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"
#include "pkg/json/writer.h"

namespace narad::json {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

Document parsed(std::string text) {
  auto d = Document::parse(std::move(text), 64);
  EXPECT_TRUE(d) << d.error().text();
  return std::move(d).value();
}

TEST(JsonCheck, ValidText_IsAccepted) {
  for (const char* text : {"0", "-0", "1.5e10", "true", "null", "\"\"", "\"\\ud83d\\ude00\"", "{}",
                           " [1, {\"a\":[]}]\r\n\t", "\"\xE2\x82\xAC\"", "1e400", "1e-400"}) {
    EXPECT_TRUE(is_payload(text)) << text;
  }
}

TEST(JsonCheck, InvalidText_IsRefused) {
  for (const char* text : {"",
                           " ",
                           "hello",
                           "{",
                           "[1,]",
                           "{\"a\":1,}",
                           "01",
                           "+1",
                           ".5",
                           "1.",
                           "'a'",
                           "\"a",
                           "\"\t\"",
                           "\"\\x\"",
                           "1 2",
                           "{} x",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\xff\"",
                           "\"\xC0\x80\"",
                           "\"\xED\xA0\x80\"",
                           "1e99999999999",
                           "nul",
                           "NaN",
                           "/**/1",
                           "\xEF\xBB\xBF{}",
                           "{1:2}",
                           "{\"a\"}",
                           "]"}) {
    EXPECT_FALSE(is_payload(text)) << text;
  }
}

TEST(JsonCheck, NestingOfAThousand_IsAPayload_OneMoreIsText) {
  EXPECT_TRUE(is_payload(nested(1000)));
  EXPECT_FALSE(is_payload(nested(1001)));
  EXPECT_FALSE(is_payload(std::string(1 << 20, '[')));
}

TEST(JsonCheck, EmbeddedNul_IsRefused) {
  EXPECT_FALSE(is_payload(std::string_view("1\0", 2)));
  EXPECT_FALSE(is_payload(std::string_view("\"\0\"", 3)));
}

TEST(JsonCheck, ErrorNamesPlaceAndReason) {
  EXPECT_EQ(check("[1,x]", 64).error().text(), "syntax error (byte 3)");
  EXPECT_EQ(check("{} {}", 64).error().text(), "more text after the value (byte 3)");
  EXPECT_EQ(check("[[", 64).error().text(), "the text ends inside a value (byte 2)");
  EXPECT_EQ(check(nested(65), 64).error().text(), "nested deeper than 64 levels (byte 64)");
}

TEST(JsonQuote, EscapesWhatJsonDemands) {
  EXPECT_EQ(quote("a\"b\\c/\b\f\n\r\t\x01\x1f\x7f"),
            "\"a\\\"b\\\\c/\\u0008\\u000c\\n\\r\\t\\u0001\\u001f\x7f\"");
  EXPECT_EQ(quote("<\xE2\x82\xAC\xF0\x9F\x98\x80>"), "\"<\xE2\x82\xAC\xF0\x9F\x98\x80>\"");
  EXPECT_EQ(quote(std::string_view("\0", 1)), "\"\\u0000\"");
}

TEST(JsonQuote, BytesThatAreNotUtf8_BecomeReplacementCharacters) {
  EXPECT_EQ(quote("a\xff"), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(quote("\xE2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(quote("\xED\xA0\x80z"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

TEST(JsonQuote, EveryByteValue_ReadsBack) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  EXPECT_EQ(parsed(quote(all)).root().as_string(), all);
}

TEST(JsonPretty, IndentsAndKeepsOrderDuplicatesAndSpelling) {
  EXPECT_EQ(pretty(" {\"b\":[1.00,{ },[\n]], \"a\":\"x\\u0041\",\"b\":{\"c\":null}}").value(),
            "{\n  \"b\": [\n    1.00,\n    {},\n    []\n  ],\n  \"a\": \"x\\u0041\",\n  \"b\": {\n"
            "    \"c\": null\n  }\n}");
  EXPECT_EQ(pretty("3").value(), "3");
  EXPECT_EQ(pretty("[\"a,b:{}\"]").value(), "[\n  \"a,b:{}\"\n]");
  EXPECT_FALSE(pretty("{"));
}

TEST(JsonCompact, DropsSpaceOutsideStringsOnly) {
  EXPECT_EQ(compact(" { \"a b\\\"\" : [ 1 , \"\\\\\" ] } ").value(), "{\"a b\\\"\":[1,\"\\\\\"]}");
  EXPECT_FALSE(compact("[ 1 2 ]"));
}

TEST(JsonDocument, Tree_KeepsRawTextOrderAndDuplicates) {
  const Document d = parsed(R"( {"b" : [1, 2.0 ], "a":{"x":null}, "b": true} )");
  const Value r = d.root();
  ASSERT_EQ(r.kind(), Kind::object);
  EXPECT_EQ(r.size(), 3u);
  EXPECT_EQ(r.member(0).name, "b");
  EXPECT_EQ(r.member(0).value.raw(), "[1, 2.0 ]");
  EXPECT_EQ(r.member(0).value.element(1).raw(), "2.0");
  EXPECT_EQ(r.member(1).value.raw(), "{\"x\":null}");
  EXPECT_EQ(r.unique_size(), 2u);
  EXPECT_EQ(r.unique_member(0).name, "a");
  EXPECT_EQ(r.unique_member(1).value.raw(), "true");
  EXPECT_TRUE(r.find("b")->as_bool());
  EXPECT_FALSE(r.find("c"));
  EXPECT_EQ(r.raw(), R"({"b" : [1, 2.0 ], "a":{"x":null}, "b": true})");
}

TEST(JsonDocument, EscapedNames_CountAsTheirText) {
  const Document d = parsed(R"({"\u0061":1,"a":2,"\ud83d\ude00\/\n":3})");
  EXPECT_EQ(d.root().unique_size(), 2u);
  EXPECT_EQ(d.root().find("a")->as_int64(), 2);
  EXPECT_EQ(d.root().find("\xF0\x9F\x98\x80/\n")->as_int64(), 3);
}

TEST(JsonDocument, Moved_ValuesStayValid) {
  Document d = parsed("[\"ab\"]");
  const Value v = d.root().element(0);
  const Document moved = std::move(d);
  EXPECT_EQ(v.as_string(), "ab");
}

TEST(JsonDocument, Numbers_AreExactOrRefused) {
  const Document d = parsed(
      "[9223372036854775807, 9223372036854775808, -9223372036854775808, 18446744073709551615, 1.0,"
      " 1e2, -0, 1e400, -1e400, 1e-400, -0.0000001e-320, 0e999, 0.1, -1]");
  const Value r = d.root();
  EXPECT_EQ(r.element(0).as_int64(), INT64_MAX);
  EXPECT_FALSE(r.element(1).as_int64());
  EXPECT_EQ(r.element(1).as_uint64(), std::uint64_t{1} << 63);
  EXPECT_EQ(r.element(2).as_int64(), INT64_MIN);
  EXPECT_EQ(r.element(3).as_uint64(), UINT64_MAX);
  EXPECT_FALSE(r.element(4).as_int64());
  EXPECT_FALSE(r.element(5).as_int64());
  EXPECT_EQ(r.element(6).as_int64(), 0);
  EXPECT_EQ(r.element(6).as_uint64(), 0u);
  EXPECT_FALSE(r.element(7).as_double());
  EXPECT_FALSE(r.element(8).as_double());
  EXPECT_EQ(r.element(9).as_double(), 0.0);
  EXPECT_EQ(r.element(10).as_double(), 0.0);
  EXPECT_EQ(r.element(11).as_double(), 0.0);
  EXPECT_EQ(r.element(12).as_double(), 0.1);
  EXPECT_FALSE(r.element(13).as_uint64());
}

// Walks everything and compares each pointer with the path taken.
void expect_pointers(const Value& root, const Value& at, const std::string& path) {
  EXPECT_EQ(pointer_to(root, at.id()), path);
  if (at.is(Kind::array)) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      expect_pointers(root, at.element(i), cat(path, "/", i));
    }
  } else if (at.is(Kind::object)) {
    for (std::size_t i = 0; i < at.unique_size(); ++i) {
      EXPECT_EQ(pointer_to(root, at.unique_name(i).id()), path);
      EXPECT_EQ(at.unique_name(i).as_string(), at.unique_member(i).name);
      expect_pointers(root, at.unique_member(i).value, cat(path, "/", at.unique_member(i).name));
    }
  }
}

TEST(JsonDocument, Pointers_LeadToEachValue) {
  const Document d = parsed(
      R"({"b":[1,[],[{"x":{},"y":2}],"s"],"a":{"q":null,"r":{"deep":[[[3]]]}},"c":7,"":{"":0}})");
  expect_pointers(d.root(), d.root(), "");
  const Document odd = parsed(R"({"a/b~c":1})");
  EXPECT_EQ(pointer_to(odd.root(), odd.root().member(0).value.id()), "/a~1b~0c");
}

TEST(JsonDocument, DepthIsBounded) {
  EXPECT_TRUE(Document::parse(nested(128), 128));
  EXPECT_FALSE(Document::parse(nested(129), 128));
}

struct Grant {
  std::string action;
  std::vector<std::string> patterns;
};
struct Request {
  std::string name = "unset";
  std::int32_t partitions = 0;
  std::optional<std::int64_t> retention_ms;
  bool flag = false;
  std::optional<std::string> schema;
  std::vector<Grant> grants;
  std::uint64_t big = 0;
};

Result<Request> decode(std::string text) {
  NARAD_TRY(auto body, parse_body(std::move(text)));
  Request out;
  Decoder d(body.root());
  d.field("name", out.name)
      .field("partitions", out.partitions)
      .field("retention_ms", out.retention_ms)
      .field("flag", out.flag)
      .field("big", out.big)
      .raw("schema", out.schema);
  std::size_t i = 0;
  d.each("grants", [&](Value v) {
    Grant& g = out.grants.emplace_back();
    Decoder inner(v, cat("grants[", i++, "]"));
    inner.field("action", g.action).field("patterns", g.patterns);
    return inner.finish();
  });
  NARAD_TRY(d.finish());
  return out;
}

std::string problem(std::string text) {
  auto r = decode(std::move(text));
  if (r) return "accepted";
  EXPECT_EQ(r.error().code(), Errc::invalid_argument);
  return r.error().text();
}

TEST(JsonDecode, AllFields_AreRead) {
  const Request r =
      decode(R"({"name":"a","partitions":-5,"retention_ms":7,"flag":true,"big":9223372036854775807,
      "schema": {"type" : "object"},"grants":[{"action":"x","patterns":["p",null]},null]})")
          .value();
  EXPECT_EQ(r.name, "a");
  EXPECT_EQ(r.partitions, -5);
  EXPECT_EQ(r.retention_ms, 7);
  EXPECT_TRUE(r.flag);
  EXPECT_EQ(r.schema, "{\"type\" : \"object\"}");
  ASSERT_EQ(r.grants.size(), 2u);
  EXPECT_EQ(r.grants[0].patterns, (std::vector<std::string>{"p", ""}));
}

TEST(JsonDecode, NullBodyAndNullFields_LeaveDefaults) {
  EXPECT_EQ(decode("null").value().name, "unset");
  const Request r =
      decode(R"({"name":null,"retention_ms":null,"schema":null,"grants":null})").value();
  EXPECT_EQ(r.name, "unset");
  EXPECT_FALSE(r.retention_ms);
  EXPECT_EQ(r.schema, "null");
}

TEST(JsonDecode, NamesIgnoreCase_LastDuplicateWins) {
  const Request r =
      decode(R"({"NAME":"a","Name":"b","retention_ms":1,"Retention_MS":null})").value();
  EXPECT_EQ(r.name, "b");
  EXPECT_FALSE(r.retention_ms);
  EXPECT_EQ(decode(R"({"partitions":4,"partitions":6})").value().partitions, 6);
}

TEST(JsonDecode, UnknownFields_AreNamedWithTheirPlace) {
  EXPECT_EQ(problem(R"({"name":"a","nam":1})"), "invalid json: unknown field \"nam\"");
  EXPECT_EQ(problem(R"({"grants":[{},{"acton":"x"}]})"),
            "invalid json: unknown field \"grants[1].acton\"");
}

TEST(JsonDecode, WrongTypes_AreRefused) {
  EXPECT_EQ(problem(R"({"partitions":3.5})"),
            "invalid json: field \"partitions\": expected an integer, got 3.5");
  EXPECT_EQ(problem(R"({"partitions":3.0})"),
            "invalid json: field \"partitions\": expected an integer, got 3.0");
  EXPECT_EQ(problem(R"({"partitions":"3"})"),
            "invalid json: field \"partitions\": expected a number, got a string");
  EXPECT_EQ(problem(R"({"partitions":2147483648})"),
            "invalid json: field \"partitions\": 2147483648 is out of range");
  EXPECT_EQ(problem(R"({"big":-1})"), "invalid json: field \"big\": -1 is out of range");
  EXPECT_EQ(problem(R"({"name":1})"),
            "invalid json: field \"name\": expected a string, got a number");
  EXPECT_EQ(problem(R"({"flag":"true"})"),
            "invalid json: field \"flag\": expected a boolean, got a string");
  EXPECT_EQ(problem(R"({"grants":{}})"),
            "invalid json: field \"grants\": expected an array, got an object");
  EXPECT_EQ(problem(R"({"grants":[{"patterns":[1]}]})"),
            "invalid json: field \"grants[0].patterns[0]\": expected a string, got a number");
  EXPECT_EQ(problem(R"({"partitions":"3","partitions":3})"),
            "invalid json: field \"partitions\": expected a number, got a string");
  EXPECT_EQ(problem("[]"), "invalid json: expected an object, got an array");
  EXPECT_EQ(problem(R"({"grants":[3]})"),
            "invalid json: grants[0]: expected an object, got a number");
}

TEST(JsonDecode, TextThatIsNotOneValue_IsRefused) {
  EXPECT_EQ(problem(""), "invalid json: the body is empty");
  EXPECT_EQ(problem(" \n"), "invalid json: the body is empty");
  EXPECT_EQ(problem("{} {}"), "invalid json: more text after the value (byte 3)");
  EXPECT_EQ(problem("{"), "invalid json: the text ends inside a value (byte 1)");
  EXPECT_EQ(decode("{} \n").value().name, "unset");
  EXPECT_EQ(problem("{\"schema\":" + nested(64) + "}"),
            "invalid json: nested deeper than 64 levels (byte 73)");
}

TEST(JsonWriter, WritesMembersInOrder) {
  Writer w;
  w.begin_object().member("name", "a\"b").member("n", -3).member("ok", true).member("f", 0.1);
  w.key("list").begin_array().value(Offset(7)).null().raw("{\"x\":1}").begin_object();
  w.end_object().end_array().key("o").begin_object().end_object().end_object();
  EXPECT_EQ(w.take(),
            R"({"name":"a\"b","n":-3,"ok":true,"f":0.1,"list":[7,null,{"x":1},{}],"o":{}})");
  w.value(std::string("again"));
  EXPECT_EQ(w.take(), "\"again\"");
}

TEST(JsonWriterDeathTest, Misuse_Asserts) {
  EXPECT_DEATH(Writer().begin_object().value(1), "without a key");
  EXPECT_DEATH(Writer().begin_array().key("a"), "outside an object");
  EXPECT_DEATH(Writer().begin_array().take(), "open bracket");
}

}  // namespace
}  // namespace narad::json
