#pragma once
// Query strings and percent-encoding. Pure.
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/result.h"

namespace narad::http {

// A light view of a raw query ("key=a%20b&partition=3"); the text must outlive it. Pairs are split
// at '&', names from values at the first '='; '+' is a space, %XX a byte. Names are compared
// decoded; a pair whose name has a bad escape matches no name.
class Query {
 public:
  explicit Query(std::string_view raw) : raw_(raw) {}

  // The first occurrence, decoded; nothing if there is none; invalid_argument if its value has a
  // bad escape.
  Result<std::optional<std::string>> get(std::string_view name) const;
  // The first occurrence that decodes; nothing otherwise. For routes that overlook bad escapes.
  std::optional<std::string> first(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  // Whether the name of any pair has a bad escape.
  bool has_bad_name() const;
  std::string_view raw() const { return raw_; }

 private:
  std::string_view raw_;
};

// Decodes %XX; '+' stays in a path and is a space in a query. Nothing on a bad escape.
std::optional<std::string> decode_path(std::string_view text);
std::optional<std::string> decode_query(std::string_view text);
// Everything but letters, digits and "-._~" becomes %XX: safe in a path segment and in a query.
std::string encode_component(std::string_view text);

}  // namespace narad::http
