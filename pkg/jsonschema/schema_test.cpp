#include "pkg/jsonschema/schema.h"

#include <gtest/gtest.h>

#include <cmath>

#include "pkg/base/text.h"
#include "pkg/jsonschema/equality.h"
#include "pkg/jsonschema/pattern.h"
#include "pkg/jsonschema/uri.h"

namespace narad::jsonschema {
namespace {

Schema compiled(std::string text) {
  auto r = Schema::compile(std::move(text));
  EXPECT_TRUE(r) << r.error().text();
  return std::move(r).value();
}

std::string refusal(std::string text) {
  auto r = Schema::compile(std::move(text));
  if (r) return "accepted";
  EXPECT_EQ(r.error().code(), Errc::invalid_argument);
  return r.error().text();
}

std::string problem(const Schema& schema, std::string document) {
  auto r = schema.validate(std::move(document));
  if (r) return "accepted";
  EXPECT_EQ(r.error().code(), Errc::invalid_argument);
  return r.error().text();
}

std::string problem(std::string schema, std::string document) {
  return problem(compiled(std::move(schema)), std::move(document));
}

std::string nested(std::size_t depth, std::string_view open, std::string_view inner,
                   std::string_view close) {
  std::string out;
  for (std::size_t i = 0; i < depth; ++i) out += open;
  out += inner;
  for (std::size_t i = 0; i < depth; ++i) out += close;
  return out;
}

// ---- what must never happen again ------------------------------------------------------------

TEST(JsonSchemaHostile, MalformedSchemas_AreRefusedWithTheirPlace) {
  EXPECT_EQ(refusal("{"), "invalid schema: not valid JSON: the text ends inside a value (byte 1)");
  EXPECT_EQ(refusal("3"), "invalid schema: a schema is an object or a boolean, not a number");
  EXPECT_EQ(refusal("null"), "invalid schema: a schema is an object or a boolean, not null");
  EXPECT_EQ(refusal("[]"), "invalid schema: a schema is an object or a boolean, not an array");
  EXPECT_EQ(refusal(R"({"type":"strnig"})"),
            "invalid schema: the schema: type must be a type name or a non-empty array of distinct "
            "type names");
  EXPECT_EQ(
      refusal(R"({"properties":{"a":{"minLength":-1}}})"),
      "invalid schema: the schema at /properties/a: minLength must be a non-negative integer");
  EXPECT_EQ(refusal(R"({"$defs":{"unused":{"type":7}}})").substr(0, 45),
            "invalid schema: the schema at /$defs/unused: ");
  for (const char* bad : {R"({"required":"a"})",
                          R"({"required":["a","a"]})",
                          R"({"required":[1]})",
                          R"({"properties":[]})",
                          R"({"properties":{"a":1}})",
                          R"({"items":[]})",
                          R"({"items":3})",
                          R"({"allOf":[]})",
                          R"({"allOf":{}})",
                          R"({"anyOf":[3]})",
                          R"({"enum":{}})",
                          R"({"multipleOf":0})",
                          R"({"multipleOf":-1})",
                          R"({"minimum":"1"})",
                          R"({"exclusiveMinimum":true})",
                          R"({"maxItems":1.5})",
                          R"({"uniqueItems":1})",
                          R"({"type":[]})",
                          R"({"type":["string","string"]})",
                          R"({"pattern":3})",
                          R"({"additionalProperties":1})",
                          R"({"not":[]})",
                          R"({"$ref":3})",
                          R"({"$id":3})",
                          R"({"dependentRequired":{"a":"b"}})",
                          R"({"const":1e400})",
                          R"({"if":1})",
                          R"({"title":1})",
                          R"({"$anchor":"1x"})",
                          R"({"$id":"http://x/#frag"})",
                          R"({"prefixItems":[]})",
                          R"({"patternProperties":{"(":true}})"}) {
    EXPECT_NE(refusal(bad), "accepted") << bad;
  }
}

TEST(JsonSchemaHostile, ReferenceToItself_IsRefusedNotFollowed) {
  EXPECT_EQ(refusal(R"({"$ref":"#"})"),
            "invalid schema: the schema refers to itself without going into the instance");
  for (const char* bad :
       {R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})",
        R"({"allOf":[{"$ref":"#"}]})", R"({"anyOf":[true,{"$ref":"#"}]})",
        R"({"not":{"$ref":"#"}})", R"({"if":{"$ref":"#"}})",
        R"({"then":true,"if":{"not":{"$ref":"#"}}})", R"({"dependentSchemas":{"a":{"$ref":"#"}}})",
        R"({"$dynamicRef":"#"})", R"({"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]})",
        R"({"$defs":{"unused":{"$ref":"#/$defs/unused"}}})"}) {
    EXPECT_NE(refusal(bad), "accepted") << bad;
  }
  EXPECT_EQ(refusal(R"({"properties":{"a":{"$ref":"#"}},"items":{"$ref":"#"},
                        "additionalProperties":{"$ref":"#"},"contains":{"$ref":"#"},
                        "propertyNames":{"$ref":"#"}})"),
            "accepted");
}

TEST(JsonSchemaHostile, LongStringAgainstARepetition_NeedsNoStack) {
  const Schema schema = compiled(R"({"type":"string","pattern":"^[a-z]+$"})");
  EXPECT_EQ(problem(schema, cat("\"", std::string(50'000, 'a'), "\"")), "accepted");
  EXPECT_NE(problem(schema, cat("\"", std::string(50'000, 'a'), "1\"")), "accepted");
  EXPECT_EQ(problem(schema, cat("\"", std::string(1 << 20, 'a'), "\"")), "accepted");
}

TEST(JsonSchemaHostile, NewerKeywordsInAnOlderDraft_AreNeverIgnored) {
  for (const char* keyword :
       {R"("unevaluatedProperties":false)", R"("unevaluatedItems":false)",
        R"("dependentRequired":{})", R"("dependentSchemas":{})", R"("minContains":1)",
        R"("maxContains":1)", R"("prefixItems":[true])", R"("$anchor":"a")",
        R"("$dynamicRef":"#a")", R"("$recursiveRef":"#")"}) {
    const std::string text =
        refusal(cat(R"({"$schema":"http://json-schema.org/draft-07/schema#",)", keyword, "}"));
    EXPECT_NE(text.find("draft 7 does not have"), std::string::npos) << keyword << ": " << text;
  }
  EXPECT_EQ(refusal(R"({"additionalItems":false})"),
            "invalid schema: the schema uses additionalItems, which draft 2020-12 does not have; "
            "use prefixItems and items");
  EXPECT_EQ(refusal(R"({"items":[{"type":"string"}]})"),
            "invalid schema: the schema: items must be a schema (for a list of schemas use "
            "prefixItems)");
  EXPECT_NE(refusal(R"({"$schema":"https://json-schema.org/draft/2019-09/schema",
                        "prefixItems":[true]})"),
            "accepted");
}

TEST(JsonSchemaHostile, OtherDrafts_AreRefused) {
  EXPECT_EQ(refusal(R"({"$schema":"http://json-schema.org/draft-04/schema#"})"),
            "invalid schema: $schema names \"http://json-schema.org/draft-04/schema#\", which is "
            "not supported; use draft 2020-12, 2019-09 or 7");
  EXPECT_NE(refusal(R"({"$schema":"https://example.com/mine"})"), "accepted");
  EXPECT_NE(refusal(R"({"$schema":7})"), "accepted");
  EXPECT_NE(refusal(R"({"$defs":{"a":{"$id":"http://x.example/a",
                        "$schema":"http://json-schema.org/draft-07/schema#"}}})"),
            "accepted");
  for (const char* fine :
       {"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2020-12/schema#"}) {
    EXPECT_EQ(refusal(cat(R"({"$schema":")", fine, "\"}")), "accepted");
  }
}

TEST(JsonSchemaHostile, RemoteReferences_AreRefused) {
  EXPECT_EQ(refusal(R"({"$ref":"http://json-schema.org/draft-07/schema#"})"),
            "invalid schema: the schema: \"http://json-schema.org/draft-07/schema#\" is not within "
            "the schema, and nothing is fetched from elsewhere");
  EXPECT_NE(refusal(R"({"$ref":"#/$defs/nowhere"})"), "accepted");
  EXPECT_NE(refusal(R"({"$ref":"#nowhere"})"), "accepted");
  EXPECT_NE(refusal(R"({"$ref":"#/title","title":"t"})"), "accepted");
  EXPECT_NE(refusal(R"({"$ref":"other.json"})"), "accepted");
  EXPECT_NE(refusal(R"({"$ref":"# #"})"), "accepted");
}

TEST(JsonSchemaHostile, DepthIsBoundedOnBothSides) {
  EXPECT_EQ(refusal(nested(127, R"({"not":)", "{}", "}")), "accepted");
  EXPECT_NE(refusal(nested(129, R"({"not":)", "{}", "}")), "accepted");
  const Schema schema = compiled(R"({"items":{"$ref":"#"},"type":"array"})");
  EXPECT_EQ(problem(schema, nested(128, "[", "", "]")), "accepted");
  EXPECT_NE(problem(schema, nested(129, "[", "", "]")), "accepted");
}

TEST(JsonSchemaHostile, ChainsOfReferences_AreBounded) {
  const auto chain = [](int length) {
    std::string defs;
    for (int i = 0; i < length; ++i) {
      defs += cat(R"("d)", i, R"(":{"$ref":"#/$defs/d)", i + 1, R"("},)");
    }
    return cat(R"({"items":{"$ref":"#/$defs/d0"},"$defs":{)", defs, R"("d)", length,
               R"(":{"type":"integer"}}})");
  };
  EXPECT_EQ(problem(chain(200), "[1]"), "accepted");
  EXPECT_NE(problem(chain(200), R"(["a"])"), "accepted");
  EXPECT_EQ(refusal(chain(300)), "invalid schema: references in the schema are nested too deep");
  EXPECT_EQ(refusal(chain(3'000)), "invalid schema: references in the schema are nested too deep");
}

TEST(JsonSchemaHostile, ExponentialSchemas_EndAtTheStepLimit) {
  std::string defs;
  for (int i = 0; i < 60; ++i) {
    const std::string next = cat(R"({"$ref":"#/$defs/d)", i + 1, R"("})");
    defs += cat(R"("d)", i, R"(":{"allOf":[)", next, ",", next, "]},");
  }
  const std::string schema =
      cat(R"({"$ref":"#/$defs/d0","$defs":{)", defs, R"("d60":{"type":"integer"}}})");
  EXPECT_EQ(problem(schema, "1"),
            "schema violation at the top: the document needs more than 5000000 steps against this "
            "schema");
}

// ---- patterns ----------------------------------------------------------------------------------

TEST(JsonSchemaPattern, LookAroundAndBackReferences_AreRefused) {
  for (const char* bad : {"(?=a)", "(?!a)", "(?<=a)b", "(a)\\\\1", "(", "[a", "a{2000}", "*a",
                          "\\\\ud800", "\\\\u12", "\\\\Z"}) {
    const std::string text = refusal(cat(R"({"pattern":")", bad, "\"}"));
    EXPECT_NE(text, "accepted") << bad;
  }
}

bool found(std::string_view pattern, std::string_view text) {
  auto p = Pattern::compile(pattern);
  EXPECT_TRUE(p) << p.error().text();
  return p.value().found_in(text).value();
}

TEST(JsonSchemaPattern, Syntax_IsUnanchoredUtf8WithEcmaEscapes) {
  EXPECT_TRUE(found("b+", "abbc"));
  EXPECT_FALSE(found("^b+$", "abbc"));
  EXPECT_FALSE(found("^a$", "a\n"));
  EXPECT_TRUE(found("^.$", "\u20ac"));
  EXPECT_TRUE(found("^\\u20AC$", "\u20ac"));
  EXPECT_TRUE(found("^[\\u0041-\\u0043]+$", "ABC"));
  EXPECT_TRUE(found("^\\ud83d\\ude00$", "\U0001F600"));
  EXPECT_TRUE(found("^\\u{1F600}$", "\U0001F600"));
  EXPECT_TRUE(found("^\\cJ$", "\n"));
  EXPECT_TRUE(found("^(?<year>\\d{4})$", "2024"));
  EXPECT_TRUE(found("^\\/\\-\\.$", "/-."));
  EXPECT_TRUE(found("^\\p{L}+$", "\u00e9t\u00e9"));
  EXPECT_TRUE(found("(?i)^ABC$", "abc"));
  EXPECT_TRUE(found("", ""));
}

TEST(JsonSchemaPattern, AutomatonThatExplodes_IsRefused) {
  for (const char* bad : {"(a|b)*a(a|b){20}c", "(a|b)*a(a|b){60}c", "[a-z]*a[a-z]{200}[A-Z]"}) {
    auto p = Pattern::compile(bad);
    ASSERT_FALSE(p) << bad;
    EXPECT_NE(p.error().text().find("too many states"), std::string::npos) << p.error().text();
  }
  EXPECT_FALSE(Pattern::compile("\\p{L}*a\\p{L}{100}Z"));
}

TEST(JsonSchemaPattern, UsefulPatterns_AreAccepted) {
  for (const char* good :
       {"^[a-z]+$", "(a+)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y", "^.{1,1000}$",
        "^[\\s\\S]{1,500}$", "^[\\p{L}\\p{N} ]{1,64}$", "^[^@]{1,64}@[^@]{1,255}$",
        "^(\\w+\\.)*\\w+@(\\w+\\.)+[a-z]{2,}$",
        "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
        "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?(Z|[+-]\\d{2}:\\d{2})$",
        "^(\\d{1,3},){0,300}\\d{1,3}$", "^[A-Za-z0-9+/]*={0,2}$"}) {
    auto p = Pattern::compile(good);
    ASSERT_TRUE(p) << p.error().text();
    // Every text of a MiB gets its answer, so none took the slow path.
    for (const char* piece : {"a", "ab", "0a", "x", "a.b@", "\u00e9 1", "A+/", "12,", "-"}) {
      std::string text;
      while (text.size() < 1 << 20) text += piece;
      EXPECT_TRUE(p.value().found_in(text)) << good << " on " << piece;
    }
  }
}

TEST(JsonSchemaPattern, SlowPathFoundOutLate_RefusesLongTextsOnly) {
  // Its states explode on texts that begin with a certain word; no sample does.
  auto p = Pattern::compile("^(zebra1234567(a|b)*a(a|b){20}c|[0-9])");
  ASSERT_TRUE(p) << p.error().text();
  std::string text = "zebra1234567";
  for (std::uint64_t n = 1; text.size() < 1 << 20;
       n = n * 6364136223846793005 + 1442695040888963407) {
    text += (n >> 40) % 2 == 0 ? 'a' : 'b';
  }
  EXPECT_EQ(p.value().found_in(text), std::nullopt);
  EXPECT_EQ(p.value().found_in(text), std::nullopt);
  EXPECT_EQ(p.value().found_in("7"), true);
  EXPECT_EQ(p.value().found_in(text.substr(0, 1000)), false);
}

// ---- values ------------------------------------------------------------------------------------

bool same(std::string a, std::string b) {
  std::string x, y;
  const auto da = parse_document(std::move(a)).value(), db = parse_document(std::move(b)).value();
  append_canonical(x, da.root(), std::string::npos);
  append_canonical(y, db.root(), std::string::npos);
  return x == y;
}

TEST(JsonSchemaEquality, Values_CompareAsTheStandardSays) {
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("0", "-0.0"));
  EXPECT_TRUE(same("100", "1e2"));
  EXPECT_TRUE(same(R"({"a":1,"b":[2]})", R"({"b":[2.0],"a":1})"));
  EXPECT_TRUE(same(R"({"a":1,"a":2})", R"({"a":2})"));
  EXPECT_TRUE(same(R"("\u0041")", R"("A")"));
  EXPECT_FALSE(same("1", "true"));
  EXPECT_FALSE(same("0", "false"));
  EXPECT_FALSE(same("null", "0"));
  EXPECT_FALSE(same("[1,2]", "[2,1]"));
  EXPECT_FALSE(same("[[1],2]", "[[1,2]]"));
  EXPECT_FALSE(same(R"(["a","b"])", R"(["ab",""])"));
  EXPECT_FALSE(same("{}", "[]"));
  EXPECT_FALSE(same(R"("1")", "1"));
}

std::optional<std::size_t> duplicate(std::string array) {
  return find_duplicate(parse_document(std::move(array)).value().root());
}

TEST(JsonSchemaEquality, Duplicates_AreFoundAmongAllKinds) {
  EXPECT_EQ(duplicate("[1,true,0,false,null,\"\",[],{},\"1\",[0],[false]]"), std::nullopt);
  EXPECT_EQ(duplicate("[1,2,1.0]"), 2u);
  EXPECT_EQ(duplicate("[null,1,null]"), 2u);
  EXPECT_EQ(duplicate("[true,false,true]"), 2u);
  EXPECT_EQ(duplicate(R"(["a","b","\u0061"])"), 2u);
  EXPECT_EQ(duplicate(R"([{"a":1,"b":2},{"b":2,"a":1}])"), 1u);
  EXPECT_EQ(duplicate("[[1,[2]],3,[1,[2]]]"), 2u);
}

TEST(JsonSchemaEquality, Multiples_AreThoseOfTheDecimalNumbers) {
  EXPECT_TRUE(is_multiple(0.0075, 0.0001));
  EXPECT_FALSE(is_multiple(0.00751, 0.0001));
  EXPECT_TRUE(is_multiple(4.35, 0.01));
  EXPECT_TRUE(is_multiple(0, 3));
  EXPECT_TRUE(is_multiple(-9, 1.5));
  EXPECT_TRUE(is_multiple(1e300, 1));
  EXPECT_FALSE(is_multiple(1e308, 0.123456789));
  EXPECT_TRUE(is_multiple(1e308, 0.5));
  EXPECT_FALSE(is_multiple(5e-324, 1));
  EXPECT_TRUE(is_multiple(1, 5e-324) == is_multiple(1, 5e-324));
  EXPECT_TRUE(is_multiple(9007199254740992, 2));
  EXPECT_FALSE(is_multiple(7, 2.5));
  EXPECT_FALSE(is_multiple(1e-20, 3));
}

TEST(JsonSchemaUri, References_ResolveAsInRfc3986) {
  const Uri base = *Uri::parse("http://a/b/c/d;p?q");
  const auto resolved = [&](const char* reference) {
    const Uri uri = base.resolve(*Uri::parse(reference));
    return cat(uri.resource(), uri.fragment ? "#" + *uri.fragment : "");
  };
  EXPECT_EQ(resolved("g:h"), "g:h");
  EXPECT_EQ(resolved("g"), "http://a/b/c/g");
  EXPECT_EQ(resolved("./g"), "http://a/b/c/g");
  EXPECT_EQ(resolved("g/"), "http://a/b/c/g/");
  EXPECT_EQ(resolved("/g"), "http://a/g");
  EXPECT_EQ(resolved("//g"), "http://g");
  EXPECT_EQ(resolved("?y"), "http://a/b/c/d;p?y");
  EXPECT_EQ(resolved("#s"), "http://a/b/c/d;p?q#s");
  EXPECT_EQ(resolved("g?y#s"), "http://a/b/c/g?y#s");
  EXPECT_EQ(resolved(""), "http://a/b/c/d;p?q");
  EXPECT_EQ(resolved("."), "http://a/b/c/");
  EXPECT_EQ(resolved(".."), "http://a/b/");
  EXPECT_EQ(resolved("../g"), "http://a/b/g");
  EXPECT_EQ(resolved("../../../g"), "http://a/g");
  EXPECT_EQ(resolved("/./g"), "http://a/g");
  EXPECT_EQ(resolved("g;x=1/../y"), "http://a/b/c/y");
  EXPECT_FALSE(Uri::parse("a b"));
  EXPECT_FALSE(Uri::parse("#a#b"));
}

// ---- messages ----------------------------------------------------------------------------------

TEST(JsonSchemaMessage, Violations_NamePlaceAndRule) {
  const Schema s = compiled(R"({"type":"object","required":["id"],"properties":{
      "id":{"type":"integer","minimum":1,"maximum":9},"name":{"type":["string","null"],"maxLength":3},
      "tags":{"items":{"enum":["a","b"]},"uniqueItems":true,"maxItems":3},
      "a/b":{"pattern":"^x"},"n":{"multipleOf":0.5},"any":{"anyOf":[{"type":"null"},{"const":1}]},
      "one":{"oneOf":[{"type":"integer"},{"minimum":3}]},"no":{"not":{"type":"null"}}},
      "additionalProperties":false,"dependentRequired":{"n":["name"]}})");
  EXPECT_EQ(problem(s, "3"), "schema violation at the top: expected an object, got 3");
  EXPECT_EQ(problem(s, "{}"), "schema violation at the top: lacks the required property \"id\"");
  EXPECT_EQ(problem(s, R"({"id":"7"})"),
            "schema violation at /id: expected an integer, got a string");
  EXPECT_EQ(problem(s, R"({"id":0})"), "schema violation at /id: must be at least 1, is 0");
  EXPECT_EQ(problem(s, R"({"id":1.5})"), "schema violation at /id: expected an integer, got 1.5");
  EXPECT_EQ(problem(s, R"({"id":1,"name":5})"),
            "schema violation at /name: expected a string or null, got 5");
  EXPECT_EQ(problem(s, R"({"id":1,"name":"long"})"),
            "schema violation at /name: must have at most 3 characters");
  EXPECT_EQ(problem(s, R"({"id":1,"tags":["a","x"]})"),
            "schema violation at /tags/1: is \"x\", not one of [\"a\",\"b\"]");
  EXPECT_EQ(problem(s, R"({"id":1,"tags":["a","a"]})"),
            "schema violation at /tags/1: equals an earlier element; they must be unique");
  EXPECT_EQ(problem(s, R"({"id":1,"a/b":"y"})"),
            "schema violation at /a~1b: does not match the pattern \"^x\"");
  EXPECT_EQ(problem(s, R"({"id":1,"zz":1})"),
            "schema violation at /zz: is a property that is not allowed");
  EXPECT_EQ(problem(s, R"({"id":1,"n":0.3,"name":null})"),
            "schema violation at /n: must be a multiple of 0.5, is 0.3");
  EXPECT_EQ(problem(s, R"({"id":1,"n":1})"),
            "schema violation at the top: has \"n\", so it must have \"name\"");
  EXPECT_EQ(problem(s, R"({"id":1,"any":2})"),
            "schema violation at /any: matches none of the schemas in anyOf");
  EXPECT_EQ(problem(s, R"({"id":1,"one":4})"),
            "schema violation at /one: matches more than one of the schemas in oneOf");
  EXPECT_EQ(problem(s, R"({"id":1,"no":null})"),
            "schema violation at /no: matches the schema in not");
  EXPECT_EQ(problem("false", "1"), "schema violation at the top: the schema allows nothing");
  EXPECT_EQ(problem(R"({"propertyNames":{"maxLength":2}})", R"({"abc":1})"),
            "schema violation at the top: has a property name that is not allowed: \"abc\"");
  EXPECT_EQ(problem("true", "nope"), "not valid JSON: syntax error (byte 0)");
  EXPECT_EQ(problem("true", R"({"a":[1e999]})"), "the number at /a/0 does not fit a 64-bit float");
}

// ---- evolution
// -----------------------------------------------------------------------------------

std::string evolution(const char* before, const char* after) {
  auto r = check_evolution(before, after);
  if (r) return "compatible";
  EXPECT_EQ(r.error().code(), Errc::invalid_argument);
  const std::string_view start = "schema is not compatible with the previous version: ";
  EXPECT_TRUE(r.error().text().starts_with(start));
  return r.error().text().substr(start.size());
}

TEST(JsonSchemaEvolution, PropertiesStayAndTypesWiden) {
  const char* old = R"({"properties":{"a":{"type":"integer"},"b":{}},"required":["a"]})";
  EXPECT_EQ(evolution(old, old), "compatible");
  EXPECT_EQ(evolution(old, R"({"properties":{"a":{"type":"integer"}},"required":["a"]})"),
            "property \"b\" is gone");
  EXPECT_EQ(evolution(old, R"({"properties":{"a":{"type":"number"},"b":true}})"),
            "property \"a\" no longer allows type integer");
  EXPECT_EQ(evolution(old, R"({"properties":{"a":{"type":["null","integer"]},"b":true,"c":1}})"),
            "compatible");
  EXPECT_EQ(evolution(old, R"({"properties":{"a":{},"b":{"type":"null"}}})"), "compatible");
  EXPECT_EQ(evolution(R"({"properties":{"a":{"type":["integer","null"]}}})",
                      R"({"properties":{"a":{"type":"integer"}}})"),
            "property \"a\" no longer allows type null");
  EXPECT_EQ(evolution(old, "true"), "property \"a\" is gone");
  EXPECT_EQ(evolution("true", old), "property \"a\" becomes required");
}

TEST(JsonSchemaEvolution, RequiredNamesOnlyGoWhileThePropertyStays) {
  EXPECT_EQ(evolution(R"({"properties":{"a":{}},"required":["a"]})", R"({"properties":{"a":{}}})"),
            "compatible");
  EXPECT_EQ(evolution(R"({"properties":{"a":{}}})", R"({"properties":{"a":{}},"required":["a"]})"),
            "property \"a\" becomes required");
  EXPECT_EQ(evolution(R"({"required":["x"]})", R"({"properties":{"y":{}}})"),
            "required property \"x\" is gone");
  EXPECT_EQ(evolution(R"({"required":["x"]})", R"({"required":["x"]})"), "compatible");
  // Below the top level nothing is compared.
  EXPECT_EQ(evolution(R"({"properties":{"o":{"type":"object","properties":{"a":{}}}}})",
                      R"({"properties":{"o":{"type":"object","required":["b"]}}})"),
            "compatible");
}

TEST(JsonSchema, Copies_ShareTheCompiledForm) {
  const Schema a = compiled(R"({"type":"integer"})");
  const Schema b = a;
  EXPECT_TRUE(b.validate("1"));
  EXPECT_FALSE(a.validate("\"1\""));
  const auto violation = b.check(parse_document("[]").value());
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->path, "");
}

}  // namespace
}  // namespace narad::jsonschema
