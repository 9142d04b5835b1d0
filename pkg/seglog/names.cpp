#include "pkg/seglog/names.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::seglog {
namespace {
constexpr std::size_t kDigits = 20;
}  // namespace

std::string log_file_name(Offset base, std::string_view suffix) {
  const std::string digits = std::to_string(base.value());
  return cat(std::string(kDigits - digits.size(), '0'), digits, suffix);
}

std::string segment_name(Offset base) { return log_file_name(base, kSegmentSuffix); }

std::optional<Offset> parse_log_file_name(std::string_view name, std::string_view suffix) {
  if (name.size() != kDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = name.substr(0, kDigits);
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  const auto value = parse_number<std::uint64_t>(digits);  // nothing on overflow
  if (!value) return std::nullopt;
  return Offset(*value);
}

}  // namespace narad::seglog
