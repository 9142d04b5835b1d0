#include "pkg/json/text.h"

#include <boost/json/basic_parser_impl.hpp>
#include <limits>

#include "pkg/base/text.h"

namespace narad::json {
namespace {

using boost::system::error_code;

// Accepts every event: basic_parser alone decides what is JSON.
struct NullHandler {
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;
  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t, error_code&) { return true; }
  bool on_string_part(std::string_view, std::size_t, error_code&) { return true; }
  bool on_string(std::string_view, std::size_t, error_code&) { return true; }
  bool on_key_part(std::string_view, std::size_t, error_code&) { return true; }
  bool on_key(std::string_view, std::size_t, error_code&) { return true; }
  bool on_number_part(std::string_view, error_code&) { return true; }
  bool on_int64(std::int64_t, std::string_view, error_code&) { return true; }
  bool on_uint64(std::uint64_t, std::string_view, error_code&) { return true; }
  bool on_double(double, std::string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(std::string_view, error_code&) { return true; }
  bool on_comment(std::string_view, error_code&) { return true; }
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string explain(const error_code& ec, std::size_t depth_max) {
  namespace bj = boost::json;
  if (ec == bj::error::incomplete) return "the text ends inside a value";
  if (ec == bj::error::too_deep) return cat("nested deeper than ", depth_max, " levels");
  if (ec == bj::error::illegal_leading_surrogate || ec == bj::error::illegal_trailing_surrogate) {
    return "a \\u escape names half of a surrogate pair";
  }
  if (ec == bj::error::exponent_overflow) return "the exponent of a number is out of range";
  return ec.message();
}

// Where the string that opens at `at` ends (just past its closing quote). REQUIRES valid JSON.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

void append_line(std::string& out, std::size_t depth) {
  out += '\n';
  out.append(2 * depth, ' ');
}

}  // namespace

Result<void> check(std::string_view text, std::size_t depth_max) {
  boost::json::parse_options options;
  options.max_depth = depth_max;
  boost::json::basic_parser<NullHandler> parser(options);
  error_code ec;
  std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (ec) return Error(Errc::invalid_argument, cat(explain(ec, depth_max), " (byte ", used, ")"));
  while (used < text.size() && is_space(text[used])) ++used;
  if (used < text.size()) {
    return Error(Errc::invalid_argument, cat("more text after the value (byte ", used, ")"));
  }
  return ok();
}

bool is_payload(std::string_view text) { return check(text, kPayloadDepthMax).has_value(); }

std::string quote(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::optional<std::string> pretty(std::string_view text) {
  if (!is_payload(text)) return std::nullopt;
  std::string out;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      const std::size_t end = string_end(text, i);
      out.append(text.substr(i, end - i));
      i = end;
      continue;
    }
    ++i;
    if (is_space(c)) continue;
    if (c == '{' || c == '[') {
      out += c;
      while (is_space(text[i])) ++i;
      if (text[i] == '}' || text[i] == ']') {
        out += text[i++];
      } else {
        append_line(out, ++depth);
      }
    } else if (c == '}' || c == ']') {
      append_line(out, --depth);
      out += c;
    } else if (c == ',') {
      out += c;
      append_line(out, depth);
    } else if (c == ':') {
      out += ": ";
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<std::string> compact(std::string_view text) {
  if (!is_payload(text)) return std::nullopt;
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      const std::size_t end = string_end(text, i);
      out.append(text.substr(i, end - i));
      i = end;
    } else {
      if (!is_space(text[i])) out += text[i];
      ++i;
    }
  }
  return out;
}

}  // namespace narad::json
