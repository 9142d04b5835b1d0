#include "pkg/jsonschema/keywords.h"

#include <algorithm>
#include <array>

namespace narad::jsonschema {
namespace {

constexpr std::uint8_t k7 = 1, k19 = 2, k20 = 4, kAll = 7;

// Sorted by name. `definitions`, `$defs` and `dependencies` mean the same in every draft that has
// them and are understood in the others too.
constexpr Keyword kKeywords[] = {
    {"$anchor", k19 | k20, Shape::string, "use $id with a fragment"},
    {"$comment", kAll, Shape::string, ""},
    {"$defs", kAll, Shape::schema_map, ""},
    {"$dynamicAnchor", k20, Shape::string, "name draft 2020-12 in $schema"},
    {"$dynamicRef", k20, Shape::string, "name draft 2020-12 in $schema"},
    {"$id", kAll, Shape::string, ""},
    {"$recursiveAnchor", k19, Shape::boolean, "use $dynamicAnchor of draft 2020-12"},
    {"$recursiveRef", k19, Shape::string, "use $dynamicRef of draft 2020-12"},
    {"$ref", kAll, Shape::string, ""},
    {"$schema", kAll, Shape::string, ""},
    {"$vocabulary", kAll, Shape::anything, ""},
    {"additionalItems", k7 | k19, Shape::schema, "use prefixItems and items"},
    {"additionalProperties", kAll, Shape::schema, ""},
    {"allOf", kAll, Shape::schemas, ""},
    {"anyOf", kAll, Shape::schemas, ""},
    {"const", kAll, Shape::anything, ""},
    {"contains", kAll, Shape::schema, ""},
    {"contentEncoding", kAll, Shape::string, ""},
    {"contentMediaType", kAll, Shape::string, ""},
    {"contentSchema", kAll, Shape::schema, ""},
    {"default", kAll, Shape::anything, ""},
    {"definitions", kAll, Shape::schema_map, ""},
    {"dependencies", kAll, Shape::dependencies, ""},
    {"dependentRequired", k19 | k20, Shape::string_lists, "use dependencies"},
    {"dependentSchemas", k19 | k20, Shape::schema_map, "use dependencies"},
    {"deprecated", kAll, Shape::boolean, ""},
    {"description", kAll, Shape::string, ""},
    {"else", kAll, Shape::schema, ""},
    {"enum", kAll, Shape::array, ""},
    {"examples", kAll, Shape::array, ""},
    {"exclusiveMaximum", kAll, Shape::number, ""},
    {"exclusiveMinimum", kAll, Shape::number, ""},
    {"format", kAll, Shape::string, ""},
    {"if", kAll, Shape::schema, ""},
    {"items", kAll, Shape::items, ""},
    {"maxContains", k19 | k20, Shape::count, "name draft 2020-12 in $schema"},
    {"maxItems", kAll, Shape::count, ""},
    {"maxLength", kAll, Shape::count, ""},
    {"maxProperties", kAll, Shape::count, ""},
    {"maximum", kAll, Shape::number, ""},
    {"minContains", k19 | k20, Shape::count, "name draft 2020-12 in $schema"},
    {"minItems", kAll, Shape::count, ""},
    {"minLength", kAll, Shape::count, ""},
    {"minProperties", kAll, Shape::count, ""},
    {"minimum", kAll, Shape::number, ""},
    {"multipleOf", kAll, Shape::positive_number, ""},
    {"not", kAll, Shape::schema, ""},
    {"oneOf", kAll, Shape::schemas, ""},
    {"pattern", kAll, Shape::string, ""},
    {"patternProperties", kAll, Shape::schema_map, ""},
    {"prefixItems", k20, Shape::schemas, "use an array in items"},
    {"properties", kAll, Shape::schema_map, ""},
    {"propertyNames", kAll, Shape::schema, ""},
    {"readOnly", kAll, Shape::boolean, ""},
    {"required", kAll, Shape::strings, ""},
    {"then", kAll, Shape::schema, ""},
    {"title", kAll, Shape::string, ""},
    {"type", kAll, Shape::types, ""},
    {"unevaluatedItems", k19 | k20, Shape::schema, "name draft 2020-12 in $schema"},
    {"unevaluatedProperties", k19 | k20, Shape::schema, "name draft 2020-12 in $schema"},
    {"uniqueItems", kAll, Shape::boolean, ""},
    {"writeOnly", kAll, Shape::boolean, ""},
};

constexpr bool by_name(const Keyword& a, const Keyword& b) { return a.name < b.name; }
static_assert(std::is_sorted(std::begin(kKeywords), std::end(kKeywords), by_name));

}  // namespace

std::string_view to_string(Draft draft) {
  switch (draft) {
    case Draft::draft7:
      return "draft 7";
    case Draft::draft2019:
      return "draft 2019-09";
    case Draft::draft2020:
      return "draft 2020-12";
  }
  return "?";
}

const Keyword* find_keyword(std::string_view name) {
  const auto* at =
      std::lower_bound(std::begin(kKeywords), std::end(kKeywords), name,
                       [](const Keyword& k, std::string_view n) { return k.name < n; });
  return at != std::end(kKeywords) && at->name == name ? at : nullptr;
}

}  // namespace narad::jsonschema
