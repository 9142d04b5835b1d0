#include "pkg/json/writer.h"

#include <charconv>
#include <cmath>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::json {

void Writer::before_value() {
  if (levels_.empty()) {
    NARAD_ASSERT(out_.empty(), "a second value at the top");
    return;
  }
  Level& level = levels_.back();
  if (level.close == '}') {
    NARAD_ASSERT(level.has_key, "a value without a key");
    level.has_key = false;
  } else {
    if (!level.first) out_ += ',';
    level.first = false;
  }
}

Writer& Writer::key(std::string_view name) {
  NARAD_ASSERT(!levels_.empty() && levels_.back().close == '}' && !levels_.back().has_key,
               "a key outside an object");
  Level& level = levels_.back();
  if (!level.first) out_ += ',';
  level.first = false;
  level.has_key = true;
  append_json_string(out_, name);
  out_ += ':';
  return *this;
}

Writer& Writer::open(char bracket) {
  before_value();
  out_ += bracket;
  levels_.push_back({bracket == '{' ? '}' : ']'});
  return *this;
}

Writer& Writer::close(char bracket) {
  NARAD_ASSERT(!levels_.empty() && levels_.back().close == bracket && !levels_.back().has_key,
               "a bracket that closes nothing");
  levels_.pop_back();
  out_ += bracket;
  return *this;
}

Writer& Writer::value(std::string_view text) {
  before_value();
  append_json_string(out_, text);
  return *this;
}

Writer& Writer::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

Writer& Writer::number(double v) {
  if (!std::isfinite(v)) return null();
  char buffer[32];
  const auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, v);
  NARAD_ASSERT(ec == std::errc{});
  return raw(std::string_view(buffer, static_cast<std::size_t>(end - buffer)));
}

std::string Writer::take() {
  NARAD_ASSERT(levels_.empty(), "an open bracket at take()");
  std::string out;
  out.swap(out_);
  return out;
}

}  // namespace narad::json
