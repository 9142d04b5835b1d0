#pragma once
// Where the schemas of a document are, under which URIs and anchors: everything that references can
// mean. Internal to this directory.
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pkg/json/document.h"
#include "pkg/jsonschema/keywords.h"
#include "pkg/jsonschema/uri.h"

namespace narad::jsonschema {

struct Resource {
  Uri base;
  json::Value root;
  std::map<std::string, json::Value, std::less<>> anchors;  // dynamic ones too
  std::map<std::string, json::Value, std::less<>> dynamic_anchors;
  bool recursive_anchor = false;
};

class Resources {
 public:
  // Finds the draft, then all subschemas reachable through keywords. Checks the shape of every
  // keyword on the way.
  static Result<Resources> discover(json::Value root);

  Draft draft() const { return draft_; }
  const std::vector<Resource>& all() const { return resources_; }
  // Every subschema found, in the order of discovery.
  const std::vector<json::Value>& schemas() const { return schemas_; }
  // REQUIRES: a subschema that was found.
  std::uint32_t resource_of(json::Value schema) const { return owner_.at(schema.id()); }

  struct Target {
    json::Value schema;
    bool dynamic = false;  // named by a $dynamicAnchor
    std::string anchor;
  };
  // What `reference`, written in `resource`, leads to. A place that no keyword makes a schema
  // becomes one (with all below it).
  Result<Target> resolve(std::uint32_t resource, std::string_view reference);

  // "the schema", "the schema at /properties/a".
  std::string place(json::Value at) const;

 private:
  explicit Resources(json::Value root) : root_(root) {}
  Result<void> find_draft();
  Result<void> add(json::Value schema, std::uint32_t resource);
  Result<void> enter(json::Value schema, std::uint32_t resource);
  Result<std::uint32_t> identify(json::Value schema, std::uint32_t resource);
  Result<void> add_anchor(std::uint32_t resource, std::string name, json::Value schema,
                          bool dynamic);
  Result<void> add_anchors(json::Value schema, std::uint32_t resource);
  Result<void> check_keyword(const Keyword& keyword, json::Value schema, json::Value value) const;
  Result<Target> follow_pointer(std::uint32_t resource, std::string_view pointer);

  json::Value root_;
  Draft draft_ = Draft::draft2020;
  std::vector<Resource> resources_;
  std::map<std::string, std::uint32_t, std::less<>> by_uri_;
  std::vector<json::Value> schemas_;
  std::unordered_map<std::uint32_t, std::uint32_t> owner_;  // value id → resource
  std::vector<std::pair<json::Value, std::uint32_t>> queue_;
};

// `$ref` of draft 7 hides everything beside it.
bool hides_siblings(Draft draft, json::Value schema);

// The subschemas that a keyword holds, by its shape; the order is that of the text.
std::vector<json::Value> subschemas_of(Shape shape, json::Value value);

}  // namespace narad::jsonschema
