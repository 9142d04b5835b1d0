#pragma once
// The compiled form of a schema: a graph of nodes, each a list of operations in the order in which
// they run. Internal to this directory.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pkg/json/document.h"
#include "pkg/jsonschema/keywords.h"
#include "pkg/jsonschema/pattern.h"

namespace narad::jsonschema {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = ~NodeId{0};

enum class OpKind : std::uint8_t {
  // Assertions: decided at once.
  type,
  enumeration,  // enum and const
  minimum,
  maximum,
  exclusive_minimum,
  exclusive_maximum,
  multiple_of,
  min_length,
  max_length,
  pattern,
  min_items,
  max_items,
  unique_items,
  min_properties,
  max_properties,
  required,
  dependent_required,
  // Applied to the same instance value.
  reference,          // $ref
  dynamic_reference,  // $dynamicRef, $recursiveRef
  all_of,
  any_of,
  one_of,
  not_,
  conditional,  // if, then, else
  dependent_schemas,
  // Applied to what lies within it.
  property_names,
  members,   // properties, patternProperties, additionalProperties
  elements,  // prefixItems, items, additionalItems
  contains,
  unevaluated_items,
  unevaluated_properties,
};
inline bool is_assertion(OpKind kind) { return kind <= OpKind::dependent_required; }
inline bool is_in_place(OpKind kind) {
  return kind >= OpKind::reference && kind <= OpKind::dependent_schemas;
}

// Bits of `type`; a number with an integral value is both.
enum TypeBit : std::uint8_t {
  kNull = 1,
  kBoolean = 2,
  kNumber = 4,
  kInteger = 8,
  kString = 16,
  kArray = 32,
  kObject = 64
};

struct Op {
  OpKind kind;
  json::Value keyword;  // the keyword's value in the schema, for messages

  std::uint8_t types = 0;            // type; enumeration: kinds of its values
  double number = 0;                 // minimum …, multiple_of
  std::uint64_t count = 0;           // min_length …; contains: at least
  std::uint64_t most = 0;            // contains: at most
  std::size_t bytes_max = 0;         // enumeration: the longest of `names`
  std::vector<std::string> names{};  // required; enumeration: canonical forms, sorted;
                                     // members, dependent_*: sorted, beside `nodes` or `lists`
  std::vector<NodeId> nodes{};       // children; of conditional: if, then, else
  std::vector<std::vector<std::string>> lists{};            // dependent_required
  std::vector<std::pair<std::size_t, NodeId>> patterns{};   // members: index in Compiled::patterns
  std::size_t pattern = 0;                                  // pattern
  NodeId rest = kNoNode;                                    // members, elements: what remains
  std::vector<std::pair<std::uint32_t, NodeId>> dynamic{};  // dynamic_reference: resource → node
};

struct Node {
  json::Value schema;
  std::uint32_t resource = 0;       // which schema resource it lies in
  bool never = false;               // the schema `false`
  bool leaf = true;                 // assertions only
  bool wants_evaluated = false;     // has unevaluatedItems or unevaluatedProperties
  bool contains_evaluates = false;  // matches of `contains` count as evaluated (2020-12)
  std::vector<Op> ops{};
};

struct Compiled {
  explicit Compiled(json::Document d) : document(std::move(d)) {}
  json::Document document;
  std::vector<Node> nodes;  // 0 is the root
  std::vector<Pattern> patterns;
};

// Text of a failure of `op` at `value`. `at` says which of the op's parts failed, where that
// matters.
std::string describe_failure(const Op& op, json::Value value, std::size_t at);

}  // namespace narad::jsonschema
