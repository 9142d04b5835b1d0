#pragma once
// JSON as text: is it valid, quote a string, re-indent, compact. Pure; no allocation surprises:
// output is at most a small multiple of the input, nesting is bounded.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/result.h"

namespace narad::json {

// Nesting that a payload may have and still count as JSON (decisions.md, "Boost.JSON's limits").
inline constexpr std::size_t kPayloadDepthMax = 1000;
// Nesting allowed in a request body of the API.
inline constexpr std::size_t kBodyDepthMax = 64;

// Checks that `text` is exactly one JSON value, white space around it allowed, UTF-8 throughout.
// Escapes of lone surrogates and exponents that no integer holds are refused. invalid_argument says
// what is wrong and at which byte.
Result<void> check(std::string_view text, std::size_t depth_max);

// True if a payload is spliced into an answer as it is: check(text, kPayloadDepthMax).
bool is_payload(std::string_view text);

// `text` as a JSON string with its quotes (append_json_string of pkg/base/text.h).
std::string quote(std::string_view text);

// The same value with two-space indent, `"key": value`, `{}` and `[]` when empty, no newline at the
// end; key order, duplicates and the spelling of strings and numbers are kept. Nothing if `text` is
// not valid JSON of depth kPayloadDepthMax.
std::optional<std::string> pretty(std::string_view text);
// The same value without white space outside strings. Nothing if `text` is not valid JSON.
std::optional<std::string> compact(std::string_view text);

}  // namespace narad::json
