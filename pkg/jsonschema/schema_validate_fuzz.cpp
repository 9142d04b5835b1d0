// The first line is a schema, the rest a document. The same twice gives the same answer, and a
// document that satisfies a schema satisfies it again as `allOf` (unless the schema names itself).
#include <cstdint>
#include <cstdlib>
#include <string>

#include "pkg/jsonschema/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad::jsonschema;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  if (line == std::string::npos) return 0;
  const std::string schema_text = text.substr(0, line);
  const std::string document = text.substr(line + 1);
  auto schema = Schema::compile(schema_text);
  if (!schema) return 0;
  const auto first = schema.value().validate(document);
  const auto second = schema.value().validate(document);
  if (first.has_value() != second.has_value()) std::abort();
  if (!first && first.error().text() != second.error().text()) std::abort();
  if (schema_text.find('$') != std::string::npos || schema_text.find("\\u") != std::string::npos) {
    return 0;
  }
  const auto parsed = parse_document(document);
  if (!parsed) return 0;
  auto wrapped = Schema::compile("{\"allOf\":[" + schema_text + "]}");
  if (wrapped && wrapped.value().validate(document).has_value() != first.has_value()) std::abort();
  auto negated = Schema::compile("{\"not\":" + schema_text + "}");
  // Beyond the step limit both are violations.
  if (negated && first.has_value() && negated.value().validate(document).has_value()) std::abort();
  return 0;
}
