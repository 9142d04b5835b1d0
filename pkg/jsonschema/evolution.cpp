#include <algorithm>
#include <vector>

#include "pkg/base/text.h"
#include "pkg/json/text.h"
#include "pkg/jsonschema/schema.h"

namespace narad::jsonschema {
namespace {

using json::Kind;
using json::Value;
using Names = std::vector<std::string_view>;

std::optional<Value> object_at(Value schema, std::string_view name) {
  if (!schema.is(Kind::object)) return std::nullopt;
  const auto v = schema.find(name);
  return v && v->is(Kind::object) ? v : std::nullopt;
}

std::optional<Value> property(Value schema, std::string_view name) {
  const auto properties = object_at(schema, "properties");
  return properties ? properties->find(name) : std::nullopt;
}

// A string, or the strings of an array.
Names names_of(std::optional<Value> v) {
  Names out;
  if (v && v->is(Kind::string)) out.push_back(v->as_string());
  for (std::size_t i = 0; v && v->is(Kind::array) && i < v->size(); ++i) {
    if (v->element(i).is(Kind::string)) out.push_back(v->element(i).as_string());
  }
  return out;
}

Names member_names(Value schema, std::string_view name) {
  return schema.is(Kind::object) ? names_of(schema.find(name)) : Names{};
}

bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Error incompatible(std::string text) {
  return Error(Errc::invalid_argument,
               cat("schema is not compatible with the previous version: ", text));
}

Result<void> check_types(std::string_view name, Value old, Value now) {
  const Names before = member_names(old, "type");
  const Names after = member_names(now, "type");
  if (before.empty() || after.empty()) return ok();
  for (std::string_view type : before) {
    if (!has(after, type)) {
      return incompatible(cat("property ", json::quote(name), " no longer allows type ", type));
    }
  }
  return ok();
}

}  // namespace

Result<void> check_evolution(std::string_view previous, std::string_view next) {
  if (previous == next) return ok();
  NARAD_TRY(const json::Document before, parse_document(std::string(previous)));
  NARAD_TRY(const json::Document after, parse_document(std::string(next)));
  const Value old = before.root();
  const Value now = after.root();
  if (const auto properties = object_at(old, "properties")) {
    for (std::size_t i = 0; i < properties->unique_size(); ++i) {
      const json::Member m = properties->unique_member(i);
      const auto kept = property(now, m.name);
      if (!kept) return incompatible(cat("property ", json::quote(m.name), " is gone"));
      NARAD_TRY(check_types(m.name, m.value, *kept));
    }
  }
  const Names required = member_names(old, "required");
  for (std::string_view name : required) {
    if (!property(now, name)) {
      return incompatible(cat("required property ", json::quote(name), " is gone"));
    }
  }
  for (std::string_view name : member_names(now, "required")) {
    if (!has(required, name)) {
      return incompatible(cat("property ", json::quote(name), " becomes required"));
    }
  }
  return ok();
}

}  // namespace narad::jsonschema
