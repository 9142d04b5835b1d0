#include "pkg/jsonschema/uri.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::jsonschema {
namespace {

bool is_scheme(std::string_view s) {
  if (s.empty()) return false;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return letter(s[0]) && std::all_of(s.begin(), s.end(), [&](char c) {
           return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
         });
}

bool is_uri_character(char c) {
  const auto u = static_cast<unsigned char>(c);
  // Letters beyond ASCII are let through: they only ever serve as names here.
  return u > 0x20 && u != 0x7f && std::string_view("\"<>\\^`{|}").find(c) == std::string_view::npos;
}

std::string remove_dot_segments(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    if (path.starts_with("../")) {
      path.remove_prefix(3);
    } else if (path.starts_with("./") || path.starts_with("/./")) {
      path.remove_prefix(2);
    } else if (path == "/.") {
      path = "/";
    } else if (path.starts_with("/../") || path == "/..") {
      path = path.size() == 3 ? std::string_view("/") : path.substr(3);
      const std::size_t slash = out.rfind('/');
      out.erase(slash == std::string::npos ? 0 : slash);
    } else if (path == "." || path == "..") {
      path = {};
    } else {
      const std::size_t end = std::min(path.find('/', 1), path.size());
      out += path.substr(0, end);
      path.remove_prefix(end);
    }
  }
  return out;
}

}  // namespace

std::optional<Uri> Uri::parse(std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), is_uri_character)) return std::nullopt;
  Uri uri;
  if (const std::size_t hash = text.find('#'); hash != std::string_view::npos) {
    uri.fragment.emplace(text.substr(hash + 1));
    if (uri.fragment->find('#') != std::string::npos) return std::nullopt;
    text = text.substr(0, hash);
  }
  if (const std::size_t mark = text.find('?'); mark != std::string_view::npos) {
    uri.query.emplace(text.substr(mark + 1));
    text = text.substr(0, mark);
  }
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos && is_scheme(text.substr(0, colon))) {
    std::string scheme(text.substr(0, colon));
    std::transform(scheme.begin(), scheme.end(), scheme.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    uri.scheme = std::move(scheme);
    text = text.substr(colon + 1);
  }
  if (text.starts_with("//")) {
    const std::size_t end = std::min(text.find('/', 2), text.size());
    uri.authority.emplace(text.substr(2, end - 2));
    text = text.substr(end);
  }
  uri.path = text;
  return uri;
}

Uri Uri::resolve(const Uri& reference) const {
  Uri out;
  out.fragment = reference.fragment;
  if (reference.scheme) {
    out.scheme = reference.scheme;
    out.authority = reference.authority;
    // An opaque path ("urn:a:b") has no segments.
    out.path =
        reference.path.starts_with('/') ? remove_dot_segments(reference.path) : reference.path;
    out.query = reference.query;
    return out;
  }
  out.scheme = scheme;
  if (reference.authority) {
    out.authority = reference.authority;
    out.path = remove_dot_segments(reference.path);
    out.query = reference.query;
    return out;
  }
  out.authority = authority;
  if (reference.path.empty()) {
    out.path = path;
    out.query = reference.query ? reference.query : query;
    return out;
  }
  out.query = reference.query;
  if (reference.path.starts_with('/')) {
    out.path = remove_dot_segments(reference.path);
  } else if (authority && path.empty()) {
    out.path = remove_dot_segments("/" + reference.path);
  } else {
    const std::size_t slash = path.rfind('/');
    const std::string before = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    out.path = remove_dot_segments(before + reference.path);
  }
  return out;
}

std::string Uri::resource() const {
  std::string out;
  if (scheme) out += cat(*scheme, ":");
  if (authority) out += cat("//", *authority);
  out += path;
  if (query) out += cat("?", *query);
  return out;
}

std::optional<std::string> percent_decode(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0) {
      return std::nullopt;
    }
    out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return out;
}

}  // namespace narad::jsonschema
