#pragma once
// JSON Schema: drafts 2020-12 (the default), 2019-09 and 7. Pure.
//
// Everything a schema says either takes effect or is refused when it is compiled: a `$schema` that
// names another draft, a keyword that another of the three drafts defines but this one does not, a
// reference that does not resolve within the schema (nothing is ever fetched), a chain of
// references that comes back to where it was without going into the instance, and a pattern that
// RE2 refuses or that could not be matched in linear time. Keywords that no draft defines are
// annotations, as the standard has it. Formats and content keywords are not asserted. Numbers are
// compared as 64-bit floats; `multipleOf` is exact on their shortest decimal form.
//
// A Schema is immutable, cheap to copy, and safe to use from several threads at once.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/result.h"
#include "pkg/json/document.h"

namespace narad::jsonschema {

// Nesting of schemas and of documents.
inline constexpr std::size_t kDepthMax = 128;
// Subschema evaluations for one document; a document that needs more is refused.
inline constexpr std::uint64_t kStepsMax = 5'000'000;

struct Violation {
  std::string path;  // JSON pointer into the document; "" is the document itself
  std::string text;  // "expected an integer, got a string"
};
// "at /a/0: expected an integer, got a string".
std::string to_string(const Violation& violation);

struct Compiled;

class Schema {
 public:
  // invalid_argument, naming the place in the schema.
  static Result<Schema> compile(std::string text);

  // The first violation met, if any.
  std::optional<Violation> check(const json::Document& document) const;
  // Parses and checks; invalid_argument "schema violation at …", or that it is not JSON.
  Result<void> validate(std::string document) const;

 private:
  explicit Schema(std::shared_ptr<const Compiled> compiled);
  std::shared_ptr<const Compiled> compiled_;
};

// A document for check(): one JSON value of depth at most kDepthMax whose numbers all fit a 64-bit
// float. invalid_argument otherwise.
Result<json::Document> parse_document(std::string text);

// Whether `next` may follow `previous` as the schema of a topic (http-api 2.6). Looks at the top
// level only: every old property stays; where both sides give it a type, every old type is still
// named; every required name of old is still a property; nothing new is required. The same text is
// always compatible. REQUIRES: both compile. invalid_argument, "schema is not compatible: …".
Result<void> check_evolution(std::string_view previous, std::string_view next);

}  // namespace narad::jsonschema
