// Any bytes as a schema: refused with a text, or compiled and then applied to a few documents.
#include <cstdint>
#include <cstdlib>

#include "pkg/jsonschema/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad::jsonschema;
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto schema = Schema::compile(text);
  if (!schema) {
    if (schema.error().text().empty()) std::abort();
    return 0;
  }
  for (const char* document : {"null", "1.5", "\"abc\"", "[1,\"a\",[],{}]",
                               R"({"a":{"b":[1,{"a":null}]},"b":"x","c":3})"}) {
    auto r = schema.value().validate(document);
    if (!r && r.error().text().empty()) std::abort();
  }
  if (!check_evolution(text, text)) std::abort();
  return 0;
}
