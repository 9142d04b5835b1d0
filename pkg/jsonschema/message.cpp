#include "pkg/base/text.h"
#include "pkg/json/text.h"
#include "pkg/jsonschema/compiled.h"

namespace narad::jsonschema {
namespace {

using json::Kind;
using json::Value;

constexpr std::size_t kQuotedMax = 100;

std::string shortened(std::string_view text) {
  if (text.size() <= kQuotedMax) return std::string(text);
  std::size_t end = kQuotedMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return cat(text.substr(0, end), "…");
}

std::string expected_types(Value keyword) {
  const auto with_article = [](std::string_view type) {
    if (type == "null") return std::string(type);
    const bool vowel = type == "integer" || type == "array" || type == "object";
    return cat(vowel ? "an " : "a ", type);
  };
  if (keyword.is(Kind::string)) return with_article(keyword.as_string());
  std::string out;
  for (std::size_t i = 0; i < keyword.size(); ++i) {
    out += cat(i == 0 ? "" : " or ", with_article(keyword.element(i).as_string()));
  }
  return out;
}

std::string first_missing(const Op& op, Value value, std::size_t at) {
  for (const std::string& name : op.lists[at]) {
    if (!value.find(name)) return json::quote(name);
  }
  return "?";
}

}  // namespace

std::string describe_failure(const Op& op, Value v, std::size_t at) {
  const std::string limit = shortened(op.keyword.raw());
  switch (op.kind) {
    case OpKind::type: {
      const bool number = v.is(Kind::number);
      return cat("expected ", expected_types(op.keyword), ", got ",
                 number ? shortened(v.raw()) : std::string(describe(v.kind())));
    }
    case OpKind::enumeration:
      return cat("is ", shortened(v.raw()), ", not one of ", limit);
    case OpKind::minimum:
      return cat("must be at least ", limit, ", is ", shortened(v.raw()));
    case OpKind::maximum:
      return cat("must be at most ", limit, ", is ", shortened(v.raw()));
    case OpKind::exclusive_minimum:
      return cat("must be above ", limit, ", is ", shortened(v.raw()));
    case OpKind::exclusive_maximum:
      return cat("must be below ", limit, ", is ", shortened(v.raw()));
    case OpKind::multiple_of:
      return cat("must be a multiple of ", limit, ", is ", shortened(v.raw()));
    case OpKind::min_length:
      return cat("must have at least ", limit, " characters");
    case OpKind::max_length:
      return cat("must have at most ", limit, " characters");
    case OpKind::pattern:
      return cat("does not match the pattern ", limit);
    case OpKind::min_items:
      return cat("must have at least ", limit, " elements, has ", v.size());
    case OpKind::max_items:
      return cat("must have at most ", limit, " elements, has ", v.size());
    case OpKind::unique_items:
      return "equals an earlier element; they must be unique";
    case OpKind::min_properties:
      return cat("must have at least ", limit, " properties, has ", v.unique_size());
    case OpKind::max_properties:
      return cat("must have at most ", limit, " properties, has ", v.unique_size());
    case OpKind::required:
      return cat("lacks the required property ", json::quote(op.names[at]));
    case OpKind::dependent_required:
      return cat("has ", json::quote(op.names[at]), ", so it must have ", first_missing(op, v, at));
    case OpKind::any_of:
      return "matches none of the schemas in anyOf";
    case OpKind::one_of:
      return at == 0 ? "matches none of the schemas in oneOf, or more than one"
                     : "matches more than one of the schemas in oneOf";
    case OpKind::not_:
      return "matches the schema in not";
    case OpKind::property_names:
      return cat(
          "has a property name that is not allowed: ",
          json::quote(shortened(v.is(Kind::object) ? v.unique_member(at).name : v.as_string())));
    case OpKind::contains:
      return at == 0 ? "has too few elements that match contains"
                     : "has too many elements that match contains";
    case OpKind::members:
    case OpKind::unevaluated_properties:
      return "is a property that is not allowed";
    case OpKind::elements:
    case OpKind::unevaluated_items:
      return "is an element that is not allowed";
    case OpKind::reference:
    case OpKind::dynamic_reference:
    case OpKind::all_of:
    case OpKind::conditional:
    case OpKind::dependent_schemas:
      return "is not allowed here";
  }
  return "is not allowed here";
}

}  // namespace narad::jsonschema
