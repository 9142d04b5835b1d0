#include "pkg/jsonschema/equality.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "pkg/base/assert.h"

namespace narad::jsonschema {
namespace {

using json::Kind;
using json::Value;

void append_count(std::string& out, std::size_t n) {
  const auto wide = static_cast<std::uint32_t>(n);
  char bytes[4];
  std::memcpy(bytes, &wide, 4);
  out.append(bytes, 4);
}

void append_text(std::string& out, std::string_view text) {
  append_count(out, text.size());
  out += text;
}

double number_of(Value value) {
  const double d = value.as_double().value_or(0);
  return d == 0 ? 0.0 : d;  // no negative zero
}

// A scalar, or the opening of a container.
void append_head(std::string& out, Value value) {
  switch (value.kind()) {
    case Kind::null:
      out += 'n';
      return;
    case Kind::boolean:
      out += value.as_bool() ? 't' : 'f';
      return;
    case Kind::number: {
      const double d = number_of(value);
      char bytes[8];
      std::memcpy(bytes, &d, 8);
      out += 'd';
      out.append(bytes, 8);
      return;
    }
    case Kind::string:
      out += 's';
      append_text(out, value.as_string());
      return;
    case Kind::array:
      out += '[';
      append_count(out, value.size());
      return;
    case Kind::object:
      out += '{';
      append_count(out, value.unique_size());
      return;
  }
}

bool is_container(Value value) { return value.is(Kind::array) || value.is(Kind::object); }

template <class T>
std::optional<std::size_t> equal_neighbours(std::vector<std::pair<T, std::size_t>>& sorted) {
  std::sort(sorted.begin(), sorted.end());
  const auto at =
      std::adjacent_find(sorted.begin(), sorted.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (at == sorted.end()) return std::nullopt;
  return std::next(at)->second;
}

struct Decimal {
  std::uint64_t digits = 0;  // at most 17 of them
  int exponent = 0;          // value = digits * 10^exponent
};

Decimal decimal_of(double value) {
  char buffer[40];
  const auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, value < 0 ? -value : value,
                                       std::chars_format::scientific);
  NARAD_ASSERT(ec == std::errc{});
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = text.find('e');
  Decimal out;
  bool fraction = false;
  for (char c : text.substr(0, e)) {
    if (c == '.') {
      fraction = true;
    } else {
      out.digits = out.digits * 10 + static_cast<std::uint64_t>(c - '0');
      out.exponent -= fraction ? 1 : 0;
    }
  }
  std::string_view power = text.substr(e + 1);
  if (power.front() == '+') power.remove_prefix(1);
  int ten = 0;
  std::from_chars(power.data(), power.data() + power.size(), ten);
  out.exponent += ten;
  return out;
}

using Wide = unsigned __int128;

}  // namespace

void append_canonical(std::string& out, Value value, std::size_t bytes_max) {
  struct Open {
    Value container;
    std::size_t next;
  };
  const std::size_t limit =
      bytes_max > out.max_size() - out.size() ? out.max_size() : out.size() + bytes_max;
  std::vector<Open> open;
  append_head(out, value);
  if (is_container(value)) open.push_back({value, 0});
  while (!open.empty() && out.size() <= limit) {
    Open& top = open.back();
    const bool array = top.container.is(Kind::array);
    const std::size_t size = array ? top.container.size() : top.container.unique_size();
    if (top.next == size) {
      open.pop_back();
      continue;
    }
    const std::size_t i = top.next++;
    const Value child = array ? top.container.element(i) : top.container.unique_member(i).value;
    if (!array) append_text(out, top.container.unique_member(i).name);
    append_head(out, child);
    if (is_container(child)) open.push_back({child, 0});
  }
}

std::optional<std::size_t> find_duplicate(Value array) {
  // By kind: values of different kinds are never equal, and the common kinds sort fast.
  std::optional<std::size_t> seen_null, seen_true, seen_false;
  std::vector<std::pair<double, std::size_t>> numbers;
  std::vector<std::pair<std::string_view, std::size_t>> strings;
  std::vector<std::pair<std::string, std::size_t>> containers;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const Value v = array.element(i);
    switch (v.kind()) {
      case Kind::number:
        numbers.emplace_back(number_of(v), i);
        break;
      case Kind::string:
        strings.emplace_back(v.as_string(), i);
        break;
      case Kind::array:
      case Kind::object:
        append_canonical(containers.emplace_back(std::string(), i).first, v, std::string::npos);
        break;
      case Kind::null:
      case Kind::boolean: {
        auto& seen = v.is(Kind::null) ? seen_null : v.as_bool() ? seen_true : seen_false;
        if (seen) return i;
        seen = i;
      }
    }
  }
  if (auto at = equal_neighbours(numbers)) return at;
  if (auto at = equal_neighbours(strings)) return at;
  return equal_neighbours(containers);
}

bool is_multiple(double value, double unit) {
  const Decimal v = decimal_of(value);
  const Decimal u = decimal_of(unit);
  NARAD_ASSERT(u.digits != 0);
  if (v.digits == 0) return true;
  int shift = v.exponent - u.exponent;
  if (shift >= 0) {
    // v.digits * 10^shift divisible by u.digits; everything stays below 10^34.
    Wide rest = v.digits % u.digits;
    for (; shift > 0 && rest != 0; --shift) rest = rest * 10 % u.digits;
    return rest == 0;
  }
  if (shift < -17) return false;  // v.digits has no 18 decimal places to give
  Wide whole = u.digits;
  for (; shift < 0; ++shift) whole *= 10;
  return v.digits % whole == 0;
}

}  // namespace narad::jsonschema
