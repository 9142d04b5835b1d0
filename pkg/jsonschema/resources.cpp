#include "pkg/jsonschema/resources.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "pkg/base/text.h"
#include "pkg/json/text.h"
#include "pkg/jsonschema/schema.h"

namespace narad::jsonschema {
namespace {

using json::Kind;
using json::Value;

constexpr std::string_view kTypeNames[] = {"null",   "boolean", "number", "integer",
                                           "string", "array",   "object"};
// Where a schema without $id lives: a base that no real one shares.
constexpr std::string_view kDefaultBase = "narad:///schema";

bool is_schema(Value v) { return v.is(Kind::object) || v.is(Kind::boolean); }

bool are_distinct_strings(Value v) {
  if (!v.is(Kind::array)) return false;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!v.element(i).is(Kind::string) || !seen.insert(v.element(i).as_string()).second) {
      return false;
    }
  }
  return true;
}

bool is_type_name(Value v) {
  return v.is(Kind::string) && std::find(std::begin(kTypeNames), std::end(kTypeNames),
                                         v.as_string()) != std::end(kTypeNames);
}

bool are_types(Value v) {
  if (is_type_name(v)) return true;
  if (!are_distinct_strings(v) || v.size() == 0) return false;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!is_type_name(v.element(i))) return false;
  }
  return true;
}

bool is_count(Value v) {
  if (!v.is(Kind::number)) return false;
  const auto d = v.as_double();
  return d && *d >= 0 && std::floor(*d) == *d;
}

template <class Test>
bool each_element(Value v, Test test) {
  if (!v.is(Kind::array)) return false;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!test(v.element(i))) return false;
  }
  return true;
}

template <class Test>
bool each_member(Value v, Test test) {
  if (!v.is(Kind::object)) return false;
  for (std::size_t i = 0; i < v.unique_size(); ++i) {
    if (!test(v.unique_member(i).value)) return false;
  }
  return true;
}

// Empty if `v` has the shape, else what was expected.
std::string_view shape_problem(Shape shape, Value v, Draft draft) {
  const auto either = [](bool fine, std::string_view expected) {
    return fine ? std::string_view() : expected;
  };
  switch (shape) {
    case Shape::anything:
      return {};
    case Shape::string:
      return either(v.is(Kind::string), "a string");
    case Shape::boolean:
      return either(v.is(Kind::boolean), "a boolean");
    case Shape::number:
      return either(v.is(Kind::number), "a number");
    case Shape::positive_number:
      return either(v.is(Kind::number) && v.as_double().value_or(0) > 0, "a number above 0");
    case Shape::count:
      return either(is_count(v), "a non-negative integer");
    case Shape::strings:
      return either(are_distinct_strings(v), "an array of distinct strings");
    case Shape::array:
      return either(v.is(Kind::array), "an array");
    case Shape::types:
      return either(are_types(v), "a type name or a non-empty array of distinct type names");
    case Shape::schema:
      return either(is_schema(v), "a schema (an object or a boolean)");
    case Shape::schemas:
      return either(v.size() > 0 && each_element(v, is_schema), "a non-empty array of schemas");
    case Shape::schema_map:
      return either(each_member(v, is_schema), "an object of schemas");
    case Shape::items:
      if (draft == Draft::draft2020) {
        return either(is_schema(v), "a schema (for a list of schemas use prefixItems)");
      }
      return either(is_schema(v) || each_element(v, is_schema), "a schema or an array of schemas");
    case Shape::dependencies:
      return either(each_member(v, [](Value m) { return is_schema(m) || are_distinct_strings(m); }),
                    "an object of schemas or arrays of distinct strings");
    case Shape::string_lists:
      return either(each_member(v, are_distinct_strings),
                    "an object of arrays of distinct strings");
  }
  return {};
}

bool is_anchor_name(std::string_view s, Draft draft) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (s.empty() || !(letter(s[0]) || (s[0] == '_' && draft == Draft::draft2020))) return false;
  return std::all_of(s.begin(), s.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
           (c == ':' && draft != Draft::draft2020);
  });
}

Error refused(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }

std::optional<Draft> draft_named(std::string_view uri) {
  if (uri.ends_with('#')) uri.remove_suffix(1);
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!uri.starts_with(scheme)) continue;
    const std::string_view rest = uri.substr(scheme.size());
    if (rest == "json-schema.org/draft/2020-12/schema") return Draft::draft2020;
    if (rest == "json-schema.org/draft/2019-09/schema") return Draft::draft2019;
    if (rest == "json-schema.org/draft-07/schema") return Draft::draft7;
  }
  return std::nullopt;
}

}  // namespace

bool hides_siblings(Draft draft, Value schema) {
  return draft == Draft::draft7 && schema.find("$ref").has_value();
}

std::vector<Value> subschemas_of(Shape shape, Value value) {
  std::vector<Value> out;
  switch (shape) {
    case Shape::schema:
      out.push_back(value);
      break;
    case Shape::items:
    case Shape::schemas:
      if (!value.is(Kind::array)) {
        out.push_back(value);
        break;
      }
      for (std::size_t i = 0; i < value.size(); ++i) out.push_back(value.element(i));
      break;
    case Shape::schema_map:
    case Shape::dependencies:
      for (std::size_t i = 0; i < value.unique_size(); ++i) {
        const Value v = value.unique_member(i).value;
        if (is_schema(v)) out.push_back(v);
      }
      break;
    default:
      break;
  }
  return out;
}

Result<Resources> Resources::discover(Value root) {
  Resources out(root);
  if (!is_schema(root)) {
    return refused(cat("a schema is an object or a boolean, not ", describe(root.kind())));
  }
  NARAD_TRY(out.find_draft());
  Resource first{*Uri::parse(kDefaultBase), root, {}, {}, false};
  out.by_uri_[first.base.resource()] = 0;
  out.resources_.push_back(std::move(first));
  NARAD_TRY(out.add(root, 0));
  return out;
}

std::string Resources::place(Value at) const {
  const std::string pointer = json::pointer_to(root_, at.id());
  return pointer.empty() ? "the schema" : cat("the schema at ", pointer);
}

Result<void> Resources::find_draft() {
  if (!root_.is(Kind::object)) return ok();
  const auto named = root_.find("$schema");
  if (!named) return ok();
  const auto draft =
      named->is(Kind::string) ? draft_named(named->as_string()) : std::optional<Draft>();
  if (!draft) {
    return refused(cat("$schema names ", named->raw().substr(0, 100),
                       ", which is not supported; use draft 2020-12, 2019-09 or 7"));
  }
  draft_ = *draft;
  return ok();
}

Result<void> Resources::add(Value schema, std::uint32_t resource) {
  queue_.emplace_back(schema, resource);
  while (!queue_.empty()) {
    const auto [next, owner] = queue_.back();
    queue_.pop_back();
    if (owner_.contains(next.id())) continue;
    NARAD_TRY(enter(next, owner));
  }
  return ok();
}

Result<void> Resources::enter(Value schema, std::uint32_t resource) {
  schemas_.push_back(schema);
  if (!schema.is(Kind::object)) {
    owner_[schema.id()] = resource;
    return ok();
  }
  NARAD_TRY(const std::uint32_t own, identify(schema, resource));
  owner_[schema.id()] = own;
  if (!hides_siblings(draft_, schema)) {
    NARAD_TRY(add_anchors(schema, own));
  }
  std::vector<Value> children;
  for (std::size_t i = 0; i < schema.unique_size(); ++i) {
    const json::Member m = schema.unique_member(i);
    const Keyword* keyword = find_keyword(m.name);
    if (keyword == nullptr) continue;
    NARAD_TRY(check_keyword(*keyword, schema, m.value));
    for (Value child : subschemas_of(keyword->shape, m.value)) children.push_back(child);
  }
  // Depth first in the order of the text, as far as a stack gives it.
  for (auto at = children.rbegin(); at != children.rend(); ++at) queue_.emplace_back(*at, own);
  return ok();
}

Result<void> Resources::check_keyword(const Keyword& keyword, Value schema, Value value) const {
  const bool hidden = hides_siblings(draft_, schema) && keyword.name != "$ref";
  if (!keyword.in(draft_) && !hidden) {
    return refused(cat(place(schema), " uses ", keyword.name, ", which ", to_string(draft_),
                       " does not have; ", keyword.instead));
  }
  const std::string_view expected = shape_problem(keyword.shape, value, draft_);
  if (!expected.empty()) {
    return refused(cat(place(schema), ": ", keyword.name, " must be ", expected));
  }
  if (keyword.name == "$schema" && schema.id() != root_.id() &&
      draft_named(value.as_string()) != draft_) {
    return refused(cat(place(schema), ": $schema differs from that of the whole, which is ",
                       to_string(draft_)));
  }
  if (keyword.name == "$recursiveRef" && value.as_string() != "#") {
    return refused(cat(place(schema), ": $recursiveRef must be \"#\""));
  }
  return ok();
}

// The resource that `schema` lies in: a new one if it has an $id.
Result<std::uint32_t> Resources::identify(Value schema, std::uint32_t resource) {
  const auto id = schema.find("$id");
  if (!id || hides_siblings(draft_, schema)) return resource;
  const auto text = id->is(Kind::string) ? Uri::parse(id->as_string()) : std::optional<Uri>();
  if (!text) return refused(cat(place(schema), ": $id is not a URI reference"));
  const std::string fragment = text->fragment.value_or("");
  if (!fragment.empty() && draft_ != Draft::draft7) {
    return refused(cat(place(schema), ": $id has a fragment; use $anchor"));
  }
  std::uint32_t own = resource;
  if (!text->only_fragment()) {
    Uri base = resources_[resource].base.resolve(*text);
    base.fragment.reset();
    const std::string uri = base.resource();
    own = static_cast<std::uint32_t>(resources_.size());
    if (schema.id() == root_.id()) {
      // The root is known under its $id only.
      own = 0;
      by_uri_.clear();
      resources_[0].base = std::move(base);
    } else {
      resources_.push_back({std::move(base), schema, {}, {}, false});
    }
    if (!by_uri_.emplace(uri, own).second) {
      return refused(cat(place(schema), ": $id ", uri, " is taken by another part of the schema"));
    }
  }
  if (!fragment.empty()) {
    NARAD_TRY(add_anchor(own, fragment, schema, false));
  }
  return own;
}

Result<void> Resources::add_anchor(std::uint32_t resource, std::string name, Value schema,
                                   bool dynamic) {
  if (!is_anchor_name(name, draft_)) {
    return refused(cat(place(schema), ": ", json::quote(name), " is not a valid anchor"));
  }
  Resource& in = resources_[resource];
  if (dynamic) in.dynamic_anchors.emplace(name, schema);
  const auto [at, fresh] = in.anchors.emplace(std::move(name), schema);
  if (!fresh && at->second.id() != schema.id()) {
    return refused(cat(place(schema), ": anchor ", json::quote(at->first), " is taken"));
  }
  return ok();
}

Result<void> Resources::add_anchors(Value schema, std::uint32_t resource) {
  if (draft_ == Draft::draft7) return ok();
  const auto anchor = schema.find("$anchor");
  if (anchor && anchor->is(Kind::string)) {
    NARAD_TRY(add_anchor(resource, std::string(anchor->as_string()), schema, false));
  }
  const auto dynamic = schema.find("$dynamicAnchor");
  if (draft_ == Draft::draft2020 && dynamic && dynamic->is(Kind::string)) {
    NARAD_TRY(add_anchor(resource, std::string(dynamic->as_string()), schema, true));
  }
  const auto recursive = schema.find("$recursiveAnchor");
  if (draft_ == Draft::draft2019 && recursive && recursive->is(Kind::boolean) &&
      recursive->as_bool() && resources_[resource].root.id() == schema.id()) {
    resources_[resource].recursive_anchor = true;
  }
  return ok();
}

Result<Resources::Target> Resources::resolve(std::uint32_t resource, std::string_view reference) {
  const auto parsed = Uri::parse(reference);
  if (!parsed) return refused(cat(json::quote(reference), " is not a URI reference"));
  const Uri uri = resources_[resource].base.resolve(*parsed);
  const auto found = parsed->only_fragment() ? by_uri_.find(resources_[resource].base.resource())
                                             : by_uri_.find(uri.resource());
  if (found == by_uri_.end()) {
    return refused(cat(json::quote(reference),
                       " is not within the schema, and nothing is fetched from elsewhere"));
  }
  const auto fragment = percent_decode(uri.fragment.value_or(""));
  if (!fragment) return refused(cat(json::quote(reference), " has a malformed escape"));
  if (fragment->empty() || fragment->starts_with('/')) {
    auto target = follow_pointer(found->second, *fragment);
    if (!target) return target.error().with_context(json::quote(reference));
    return target;
  }
  const Resource& in = resources_[found->second];
  const auto anchor = in.anchors.find(*fragment);
  if (anchor == in.anchors.end()) {
    return refused(cat(json::quote(reference), ": there is no such anchor"));
  }
  return Target{anchor->second, in.dynamic_anchors.contains(*fragment), *fragment};
}

Result<Resources::Target> Resources::follow_pointer(std::uint32_t resource,
                                                    std::string_view pointer) {
  Value at = resources_[resource].root;
  while (!pointer.empty()) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    std::string token;
    for (std::size_t i = 1; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
        token += pointer[++i] == '0' ? '~' : '/';
      } else {
        token += pointer[i];
      }
    }
    pointer.remove_prefix(end);
    std::optional<Value> next;
    if (at.is(Kind::object)) next = at.find(token);
    if (at.is(Kind::array)) {
      const auto index = parse_number<std::uint32_t>(token);
      if (index && *index < at.size()) next = at.element(*index);
    }
    if (!next) return refused("there is nothing at that place");
    at = *next;
    // Schemas on the way may begin a resource of their own.
    if (const auto owner = owner_.find(at.id()); owner != owner_.end()) resource = owner->second;
  }
  if (!is_schema(at)) return refused("what lies there is not a schema");
  NARAD_TRY(add(at, resource));
  return Target{at, false, {}};
}

}  // namespace narad::jsonschema
