#pragma once
// URI references as JSON Schema needs them (RFC 3986): split, resolve, decode. Pure.
#include <optional>
#include <string>
#include <string_view>

namespace narad::jsonschema {

struct Uri {
  std::optional<std::string> scheme;
  std::optional<std::string> authority;
  std::string path;
  std::optional<std::string> query;
  std::optional<std::string> fragment;  // as written, not decoded

  // Nothing if the text holds characters that no URI reference may hold.
  static std::optional<Uri> parse(std::string_view text);
  // RFC 3986, 5.2.2. The fragment is that of `reference`.
  Uri resolve(const Uri& reference) const;
  // Without the fragment: the name of a schema resource.
  std::string resource() const;
  bool only_fragment() const { return !scheme && !authority && path.empty() && !query; }
};

// %XX decoded; nothing if an escape is malformed.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace narad::jsonschema
