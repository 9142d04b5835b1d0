// Drafts 2019-09 and 2020-12: what draft 7 does not have. Each line is a schema and what it says to
// some documents.
#include <gtest/gtest.h>

#include <vector>

#include "pkg/base/text.h"
#include "pkg/jsonschema/schema.h"

namespace narad::jsonschema {
namespace {

struct Case {
  const char* schema;
  std::vector<const char*> valid;
  std::vector<const char*> invalid;
};

std::string in_draft(std::string_view draft, std::string_view schema) {
  return cat("{\"$schema\":\"https://json-schema.org/draft/", draft, "/schema\"",
             schema == "{}" ? "" : ",", schema.substr(1));
}

std::size_t run(std::string_view draft, const std::vector<Case>& cases) {
  std::size_t checks = 0;
  for (const Case& c : cases) {
    auto schema = Schema::compile(in_draft(draft, c.schema));
    if (!schema) {
      ADD_FAILURE() << c.schema << "\n  refused: " << schema.error().text();
      continue;
    }
    for (const char* document : c.valid) {
      auto r = schema.value().validate(document);
      EXPECT_TRUE(r) << c.schema << "\n  " << document << "\n  " << r.error().text();
      ++checks;
    }
    for (const char* document : c.invalid) {
      EXPECT_FALSE(schema.value().validate(document)) << c.schema << "\n  " << document;
      ++checks;
    }
  }
  return checks;
}

const std::vector<Case> kBothNewer = {
    // dependentRequired, dependentSchemas, and dependencies for those who still write it
    {R"({"dependentRequired":{"a":["b","c"]}})",
     {R"({})", R"({"b":1})", R"({"a":1,"b":1,"c":1})", R"([])"},
     {R"({"a":1})", R"({"a":1,"c":1})"}},
    {R"({"dependentRequired":{"a":[]}})", {R"({"a":1})"}, {}},
    {R"({"dependentSchemas":{"a":{"properties":{"b":{"type":"integer"}},"minProperties":2}}})",
     {R"({"b":"x"})", R"({"a":1,"b":2})", R"("a")"},
     {R"({"a":1})", R"({"a":1,"b":"x"})"}},
    {R"({"dependentSchemas":{"a":false}})", {R"({"b":1})"}, {R"({"a":1})"}},
    {R"({"dependencies":{"a":["b"],"c":{"minProperties":3}}})",
     {R"({"a":1,"b":1})", R"({"c":1,"d":1,"e":1})"},
     {R"({"a":1})", R"({"c":1})"}},
    // minContains, maxContains
    {R"({"contains":{"const":1},"minContains":2})", {"[1,1]", "[1,2,1]"}, {"[1]", "[]", "[2,2]"}},
    {R"({"contains":{"const":1},"maxContains":1})", {"[1]", "[1,2]"}, {"[1,1]", "[]"}},
    {R"({"contains":{"const":1},"minContains":1,"maxContains":2})",
     {"[1]", "[1,1,3]"},
     {"[]", "[1,1,1]"}},
    {R"({"contains":{"const":1},"minContains":0})", {"[]", "[2]", "[1]"}, {}},
    {R"({"contains":{"const":1},"minContains":0,"maxContains":1})", {"[]", "[1]"}, {"[1,1]"}},
    {R"({"contains":{"const":1},"minContains":2.0})", {"[1,1]"}, {"[1]"}},
    {R"({"minContains":2,"maxContains":1})", {"[]", "[1,1,1]"}, {}},
    {R"({"contains":{"const":1},"minContains":3,"maxContains":2})", {}, {"[1,1]", "[1,1,1]"}},
    // unevaluatedProperties
    {R"({"properties":{"a":true},"unevaluatedProperties":false})",
     {R"({"a":1})", "[1]"},
     {R"({"a":1,"b":1})"}},
    {R"({"unevaluatedProperties":{"type":"string"}})", {R"({"x":"s"})"}, {R"({"x":1})"}},
    {R"({"patternProperties":{"^x":true},"unevaluatedProperties":false})",
     {R"({"xa":1})"},
     {R"({"a":1})"}},
    {R"({"additionalProperties":true,"unevaluatedProperties":false})", {R"({"a":1})"}, {}},
    {R"({"allOf":[{"properties":{"a":true}}],"properties":{"b":true},
         "unevaluatedProperties":false})",
     {R"({"a":1,"b":1})"},
     {R"({"a":1,"c":1})"}},
    {R"({"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},
                  {"properties":{"b":{"const":2}},"required":["b"]}],
         "unevaluatedProperties":false})",
     {R"({"a":1})", R"({"a":1,"b":2})"},
     {R"({"a":1,"b":3})", R"({"a":1,"c":2})"}},
    {R"({"oneOf":[{"properties":{"a":true},"required":["a"]},
                  {"properties":{"b":true},"required":["b"]}],
         "unevaluatedProperties":false})",
     {R"({"a":1})", R"({"b":1})"},
     {R"({"a":1,"b":1})", R"({"a":1,"c":1})"}},
    {R"({"not":{"not":{"properties":{"a":true}}},"unevaluatedProperties":false})",
     {"{}"},
     {R"({"a":1})"}},
    {R"({"if":{"properties":{"k":{"const":1}},"required":["k"]},
         "then":{"properties":{"x":true}},"else":{"properties":{"y":true}},
         "unevaluatedProperties":false})",
     {R"({"k":1,"x":1})", R"({"y":1})"},
     {R"({"k":1,"y":1})", R"({"x":1})", R"({"k":2,"y":1})"}},
    {R"({"if":{"properties":{"k":{"const":1}},"required":["k"]},"unevaluatedProperties":false})",
     {R"({"k":1})", "{}"},
     {R"({"k":2})"}},
    {R"({"dependentSchemas":{"a":{"properties":{"b":true}}},"properties":{"a":true},
         "unevaluatedProperties":false})",
     {R"({"a":1,"b":1})"},
     {R"({"b":1})"}},
    {R"({"$ref":"#/$defs/base","properties":{"b":true},"unevaluatedProperties":false,
         "$defs":{"base":{"properties":{"a":true}}}})",
     {R"({"a":1,"b":1})"},
     {R"({"c":1})"}},
    // A schema sees what lies beside and below it, never what its neighbours did.
    {R"({"allOf":[{"properties":{"a":true}},{"unevaluatedProperties":false}]})",
     {"{}"},
     {R"({"a":1})"}},
    {R"({"properties":{"a":true},"allOf":[{"unevaluatedProperties":false}]})",
     {"{}"},
     {R"({"a":1})"}},
    {R"({"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false})",
     {R"({"a":1})"},
     {}},
    {R"({"properties":{"o":{"properties":{"a":true}}},"unevaluatedProperties":false})",
     {R"({"o":{"a":1,"b":1}})"},
     {R"({"a":1})"}},
    {R"({"properties":{"o":{"unevaluatedProperties":false,"$ref":"#/$defs/x"}},
         "$defs":{"x":{"properties":{"a":true}}}})",
     {R"({"o":{"a":1}})"},
     {R"({"o":{"b":1}})"}},
    // unevaluatedItems
    {R"({"unevaluatedItems":false})", {"[]", "{}"}, {"[1]"}},
    {R"({"unevaluatedItems":{"type":"string"}})", {R"(["a"])"}, {"[1]"}},
    {R"({"items":{"type":"integer"},"unevaluatedItems":false})", {"[1,2]"}, {R"(["a"])"}},
    {R"({"properties":{"l":{"items":true}},"unevaluatedItems":false})", {R"({"l":[1]})"}, {"[1]"}},
    // $ref beside other keywords, $defs, $anchor, embedded resources
    {R"({"$ref":"#/$defs/a","maximum":5,"$defs":{"a":{"type":"integer"}}})",
     {"3"},
     {"7", R"("x")"}},
    {R"({"$ref":"#here","$defs":{"a":{"$anchor":"here","type":"integer"}}})", {"3"}, {R"("x")"}},
    {R"({"$id":"http://x.example/root.json","$ref":"item.json",
         "$defs":{"a":{"$id":"item.json","type":"integer"}}})",
     {"3"},
     {R"("x")"}},
    {R"({"$id":"http://x.example/root.json","$ref":"item.json#n",
         "$defs":{"a":{"$id":"item.json","$defs":{"b":{"$anchor":"n","type":"null"}}},
                  "c":{"$anchor":"n","type":"integer"}}})",
     {"null"},
     {"3"}},
    {R"({"$id":"http://x.example/root.json","$ref":"http://x.example/item.json#/$defs/b",
         "$defs":{"a":{"$id":"item.json","$defs":{"b":{"type":"null"}}}}})",
     {"null"},
     {"3"}},
    {R"({"$id":"urn:example:one","$ref":"urn:example:two",
         "$defs":{"a":{"$id":"urn:example:two","type":"null"}}})",
     {"null"},
     {"3"}},
    {R"({"properties":{"child":{"$ref":"#"},"v":{"type":"integer"}},"required":["v"]})",
     {R"({"v":1,"child":{"v":2,"child":{"v":3}}})"},
     {R"({"v":1,"child":{"v":2,"child":{}}})"}},
    // Annotations never refuse.
    {R"({"deprecated":true,"readOnly":true,"title":"t","examples":[1],"contentSchema":false,
         "format":"date","contentMediaType":"application/json","x-own":{"type":"null"}})",
     {R"("x")", "3"},
     {}},
};

TEST(JsonSchemaNewer, KeywordsOfBothDrafts_MeanTheSame) {
  EXPECT_GE(run("2019-09", kBothNewer), 100u);
  EXPECT_GE(run("2020-12", kBothNewer), 100u);
}

TEST(JsonSchemaNewer, NoDraftNamed_MeansTheNewest) {
  const Schema schema =
      Schema::compile(R"({"prefixItems":[{"type":"integer"}],"items":false})").value();
  EXPECT_TRUE(schema.validate("[1]"));
  EXPECT_FALSE(schema.validate("[1,2]"));
}

TEST(JsonSchemaNewer, Draft2020Arrays_ArePrefixAndRest) {
  run("2020-12",
      {{R"({"prefixItems":[{"type":"integer"},{"type":"string"}]})",
        {"[]", "[1]", R"([1,"a",null])", "{}"},
        {R"(["a"])", "[1,2]"}},
       {R"({"prefixItems":[true],"items":{"type":"string"}})", {R"([1,"a"])"}, {"[1,2]"}},
       {R"({"prefixItems":[{"type":"null"}],"items":false})", {"[null]"}, {"[null,1]", "[1]"}},
       {R"({"items":{"type":"string"}})", {R"(["a"])"}, {"[1]"}},
       {R"({"prefixItems":[true],"unevaluatedItems":false})", {"[1]"}, {"[1,2]"}},
       {R"({"prefixItems":[true],"allOf":[{"prefixItems":[true,true]}],
            "unevaluatedItems":false})",
        {"[1,2]"},
        {"[1,2,3]"}},
       // Matches of contains count as evaluated.
       {R"({"contains":{"type":"string"},"unevaluatedItems":false})",
        {R"(["a"])", R"(["a","b"])"},
        {R"(["a",1])"}},
       {R"({"prefixItems":[true],"contains":{"const":7},"unevaluatedItems":{"type":"null"}})",
        {"[1,7,null,7]"},
        {"[1,7,8]"}},
       {R"({"allOf":[{"contains":{"multipleOf":2}},{"contains":{"multipleOf":3}}],
            "unevaluatedItems":{"multipleOf":5}})",
        {"[2,3,4,5,6]"},
        {"[2,3,4,7,8]"}},
       {R"({"anyOf":[{"prefixItems":[{"const":1}]},{"prefixItems":[true,{"const":2}]}],
            "unevaluatedItems":false})",
        {"[1]", "[1,2]", "[3,2]"},
        {"[1,3]", "[3,2,1]"}},
       {R"({"if":{"prefixItems":[{"const":1}],"minItems":1},"then":{"prefixItems":[true,true]},
            "else":{"prefixItems":[true,true,true]},"unevaluatedItems":false})",
        {"[1,2]", "[2,2,2]"},
        {"[1,2,3]", "[2,2,2,2]"}},
       {R"({"contains":{"const":1},"minContains":0,"unevaluatedItems":false})",
        {"[]", "[1,1]"},
        {"[1,2]"}}});
}

TEST(JsonSchemaNewer, Draft2019Arrays_AreTupleAndAdditional) {
  run("2019-09",
      {{R"({"items":[{"type":"integer"}],"additionalItems":{"type":"string"}})",
        {"[1]", R"([1,"a"])"},
        {R"(["a"])", "[1,2]"}},
       {R"({"items":[true],"additionalItems":false})", {"[1]"}, {"[1,2]"}},
       {R"({"items":true,"additionalItems":false})", {"[1,2]"}, {}},
       {R"({"additionalItems":false})", {"[1,2]"}, {}},
       {R"({"items":[true],"unevaluatedItems":false})", {"[1]"}, {"[1,2]"}},
       {R"({"items":[true],"additionalItems":true,"unevaluatedItems":false})", {"[1,2]"}, {}},
       // contains evaluates nothing in this draft.
       {R"({"contains":{"type":"string"},"unevaluatedItems":false})", {}, {R"(["a"])"}}});
}

TEST(JsonSchemaNewer, DynamicReferences_GoToTheOutermostAnchor) {
  run("2020-12",
      {// Without an outer anchor it is an ordinary reference.
       {R"({"type":"array","items":{"$dynamicRef":"#item"},
            "$defs":{"a":{"$dynamicAnchor":"item","type":"string"}}})",
        {R"(["a"])"},
        {"[1]"}},
       {R"({"$id":"http://x.example/strings","$ref":"list","$defs":{
            "a":{"$dynamicAnchor":"item","type":"string"},
            "list":{"$id":"list","items":{"$dynamicRef":"#item"},
                    "$defs":{"b":{"$dynamicAnchor":"item"}}}}})",
        {R"(["a"])"},
        {"[1]"}},
       // A plain $anchor of that name does not take part.
       {R"({"$id":"http://x.example/strings","$ref":"list","$defs":{
            "a":{"$anchor":"item","type":"string"},
            "list":{"$id":"list","items":{"$dynamicRef":"#item"},
                    "$defs":{"b":{"$dynamicAnchor":"item"}}}}})",
        {R"(["a"])", "[1]"},
        {}},
       {R"({"$id":"http://x.example/strings","$ref":"list","$defs":{
            "a":{"$dynamicAnchor":"item","type":"string"},
            "list":{"$id":"list","items":{"$dynamicRef":"#item"},
                    "$defs":{"b":{"$anchor":"item"}}}}})",
        {"[1]"},
        {}},
       // The extensible tree.
       {R"({"$id":"http://x.example/strict","$dynamicAnchor":"node","$ref":"tree",
            "unevaluatedProperties":false,"$defs":{"t":{"$id":"tree","$dynamicAnchor":"node",
            "type":"object","properties":{"data":true,
            "children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}})",
        {R"({"data":1,"children":[{"data":2}]})"},
        {R"({"children":[{"daat":1}]})", R"({"x":1})"}},
       {R"({"$id":"http://x.example/loose","$ref":"tree",
            "$defs":{"t":{"$id":"tree","$dynamicAnchor":"node",
            "type":"object","properties":{"data":true,
            "children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}})",
        {R"({"children":[{"daat":1}]})"},
        {R"({"children":[1]})"}},
       // A pointer in place of an anchor is never dynamic.
       {R"({"$id":"http://x.example/strings","$ref":"list","$defs":{
            "a":{"$dynamicAnchor":"item","type":"string"},
            "list":{"$id":"list","items":{"$dynamicRef":"#/$defs/b"},
                    "$defs":{"b":{"$dynamicAnchor":"item"}}}}})",
        {"[1]"},
        {}}});
}

TEST(JsonSchemaNewer, RecursiveReferences_GoToTheOutermostAnchor) {
  run("2019-09", {{R"({"properties":{"c":{"$recursiveRef":"#"}},"additionalProperties":false})",
                   {R"({"c":{"c":{}}})"},
                   {R"({"c":{"d":1}})"}},
                  {R"({"$id":"http://x.example/strict","$recursiveAnchor":true,"$ref":"tree",
            "unevaluatedProperties":false,"$defs":{"t":{"$id":"tree","$recursiveAnchor":true,
            "type":"object","properties":{"data":true,
            "children":{"type":"array","items":{"$recursiveRef":"#"}}}}}})",
                   {R"({"data":1,"children":[{"data":2}]})"},
                   {R"({"children":[{"daat":1}]})"}},
                  // Neither side alone is enough.
                  {R"({"$id":"http://x.example/strict","$ref":"tree","unevaluatedProperties":false,
            "$defs":{"t":{"$id":"tree","$recursiveAnchor":true,"type":"object",
            "properties":{"children":{"items":{"$recursiveRef":"#"}}}}}})",
                   {R"({"children":[{"daat":1}]})"},
                   {R"({"children":[1]})"}},
                  {R"({"$id":"http://x.example/strict","$recursiveAnchor":true,"$ref":"tree",
            "unevaluatedProperties":false,
            "$defs":{"t":{"$id":"tree","type":"object",
            "properties":{"children":{"items":{"$recursiveRef":"#"}}}}}})",
                   {R"({"children":[{"daat":1}]})"},
                   {R"({"children":[1]})"}}});
}

}  // namespace
}  // namespace narad::jsonschema
