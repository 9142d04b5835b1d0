#pragma once
// What the keywords of the three drafts are. Internal to this directory; pure data.
#include <cstdint>
#include <string_view>

namespace narad::jsonschema {

enum class Draft : std::uint8_t { draft7 = 1, draft2019 = 2, draft2020 = 4 };
std::string_view to_string(Draft draft);

// The shape that the value of a keyword must have.
enum class Shape : std::uint8_t {
  anything,
  string,
  boolean,
  number,
  positive_number,
  count,    // a non-negative integer
  strings,  // array of distinct strings
  array,
  types,  // a type name, or a non-empty array of distinct ones
  schema,
  schemas,       // non-empty array of schemas
  schema_map,    // object of schemas
  items,         // a schema; before 2020-12 also an array of schemas
  dependencies,  // object of schemas or arrays of distinct strings
  string_lists,  // object of arrays of distinct strings
};

struct Keyword {
  std::string_view name;
  std::uint8_t drafts;  // a set of Draft
  Shape shape;
  std::string_view instead;  // what to write in drafts that lack it

  bool in(Draft draft) const { return (drafts & static_cast<std::uint8_t>(draft)) != 0; }
};

// Null for a keyword that none of the drafts defines.
const Keyword* find_keyword(std::string_view name);

}  // namespace narad::jsonschema
