#pragma once
// Writes compact JSON into a string, members in the order of the calls. Misuse (a member outside an
// object, an unclosed bracket at take()) is a bug and asserts.
//
//   json::Writer w;
//   w.begin_object().member("name", t.name).member("partitions", n);
//   w.key("children").begin_array();
//   for (auto& c : children) w.value(c);
//   w.end_array().end_object();
//   body = w.take();
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "pkg/base/ids.h"

namespace narad::json {

class Writer {
 public:
  Writer& begin_object() { return open('{'); }
  Writer& end_object() { return close('}'); }
  Writer& begin_array() { return open('['); }
  Writer& end_array() { return close(']'); }
  // The name of the member whose value follows.
  Writer& key(std::string_view name);

  Writer& value(std::string_view text);
  Writer& value(const char* text) { return value(std::string_view(text)); }
  Writer& value(const std::string& text) { return value(std::string_view(text)); }
  template <class T>
    requires std::is_arithmetic_v<T>
  Writer& value(T v) {
    if constexpr (std::is_same_v<T, bool>) {
      return raw(v ? "true" : "false");
    } else if constexpr (std::is_integral_v<T>) {
      return raw(std::to_string(v));
    } else {
      return number(static_cast<double>(v));
    }
  }
  template <class Tag, class Rep>
  Writer& value(StrongNumber<Tag, Rep> v) {
    return value(v.value());
  }
  Writer& null() { return raw("null"); }
  // Text that already is one valid JSON value, spliced in as it is.
  Writer& raw(std::string_view json);

  template <class T>
  Writer& member(std::string_view name, const T& v) {
    key(name);
    return value(v);
  }

  // The text written. REQUIRES: every bracket closed. The writer is empty afterwards.
  std::string take();

 private:
  Writer& open(char bracket);
  Writer& close(char bracket);
  Writer& number(double v);  // shortest form that reads back equal; not finite: null
  void before_value();

  struct Level {
    char close;
    bool first = true;
    bool has_key = false;
  };
  std::string out_;
  std::vector<Level> levels_;
};

}  // namespace narad::json
