#include "pkg/http/query.h"

#include "pkg/base/text.h"
#include "pkg/http/ascii.h"

namespace narad::http {
namespace {

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += c == '+' && plus_is_space ? ' ' : c;
    }
  }
  return out;
}

struct Pair {
  std::string_view name;
  std::string_view value;
};

// Takes the next non-empty pair off `rest`; false at the end.
bool next_pair(std::string_view& rest, Pair& pair) {
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view text = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (text.empty()) continue;
    const std::size_t equals = text.find('=');
    pair.name = text.substr(0, equals);
    pair.value = equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
    return true;
  }
  return false;
}

bool is_plain(std::string_view text) { return text.find_first_of("%+") == std::string_view::npos; }

bool matches(std::string_view raw_name, std::string_view name) {
  if (is_plain(raw_name)) return raw_name == name;
  const auto decoded = decode_query(raw_name);
  return decoded && *decoded == name;
}

}  // namespace

std::optional<std::string> decode_path(std::string_view text) { return decode(text, false); }
std::optional<std::string> decode_query(std::string_view text) { return decode(text, true); }

Result<std::optional<std::string>> Query::get(std::string_view name) const {
  std::string_view rest = raw_;
  Pair pair;
  while (next_pair(rest, pair)) {
    if (!matches(pair.name, name)) continue;
    auto value = decode_query(pair.value);
    if (!value)
      return Error(Errc::invalid_argument,
                   cat("invalid query: the value of \"", name, "\" has a bad percent escape"));
    return value;
  }
  return std::optional<std::string>();
}

std::optional<std::string> Query::first(std::string_view name) const {
  std::string_view rest = raw_;
  Pair pair;
  while (next_pair(rest, pair)) {
    if (!matches(pair.name, name)) continue;
    if (auto value = decode_query(pair.value)) return value;
  }
  return std::nullopt;
}

std::size_t Query::count(std::string_view name) const {
  std::string_view rest = raw_;
  Pair pair;
  std::size_t n = 0;
  while (next_pair(rest, pair)) n += matches(pair.name, name);
  return n;
}

bool Query::has_bad_name() const {
  std::string_view rest = raw_;
  Pair pair;
  while (next_pair(rest, pair)) {
    if (!is_plain(pair.name) && !decode_query(pair.name)) return true;
  }
  return false;
}

std::string encode_component(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace narad::http
