#include "pkg/http/accept.h"

#include <algorithm>

#include "pkg/http/ascii.h"
#include "pkg/http/message.h"

namespace narad::http {
namespace {

constexpr int kMost = 1000;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes what stands before the next `separator` outside of quotes off `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < rest.size(); ++end) {
    if (rest[end] == '"') quoted = !quoted;
    if (rest[end] == '\\' && quoted && end + 1 < rest.size()) ++end;
    if (rest[end] == separator && !quoted) break;
  }
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return trim(part);
}

// "0.25" is 250.
int parse_quality(std::string_view text) {
  if (text.empty() || (text[0] != '0' && text[0] != '1')) return kMost;
  int value = (text[0] - '0') * kMost;
  if (text.size() == 1) return value;
  if (text[1] != '.' || text.size() > 5) return kMost;
  int digit = kMost / 10;
  for (const char c : text.substr(2)) {
    if (c < '0' || c > '9') return kMost;
    value += (c - '0') * digit;
    digit /= 10;
  }
  return std::min(value, kMost);
}

int quality_of(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = take_until(parameters, ';');
    const std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos) continue;
    if (!equal_ignoring_case(trim(parameter.substr(0, equals)), "q")) continue;
    return parse_quality(trim(parameter.substr(equals + 1)));
  }
  return kMost;
}

}  // namespace

std::optional<int> accept_quality(const Headers& headers, std::string_view header,
                                  std::string_view name) {
  std::optional<int> best;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    auto [field, rest] = headers.at(i);
    if (!equal_ignoring_case(field, header)) continue;
    while (!rest.empty()) {
      std::string_view item = take_until(rest, ',');
      if (!equal_ignoring_case(take_until(item, ';'), name)) continue;
      best = std::max(best.value_or(0), quality_of(item));
    }
  }
  return best;
}

}  // namespace narad::http
