#include "internal/model/user.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad {
namespace {

constexpr std::size_t kUsernameMax = 64;
constexpr std::size_t kPatternPrefixMax = 255;
constexpr std::size_t kHashChars = 60;

bool is_alphanumeric(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_name_character(char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_pattern(std::string_view text) {
  if (text.empty()) return false;
  if (text.ends_with('*')) text.remove_suffix(1);
  return text.size() <= kPatternPrefixMax &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

Error invalid(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }

}  // namespace

std::string_view to_string(GrantAction action) {
  switch (action) {
    case GrantAction::produce:
      return "produce";
    case GrantAction::consume:
      return "consume";
    case GrantAction::create:
      return "create";
    case GrantAction::admin:
      return "admin";
  }
  NARAD_ASSERT(false, "unknown action");
}

std::optional<GrantAction> parse_grant_action(std::string_view name) {
  for (const GrantAction action : kGrantActions) {
    if (to_string(action) == name) return action;
  }
  return std::nullopt;
}

Result<void> validate_username(std::string_view name) {
  if (!name.empty() && name.size() <= kUsernameMax &&
      std::all_of(name.begin(), name.end(), is_name_character)) {
    return ok();
  }
  return invalid("invalid username: use 1 to 64 of A-Z a-z 0-9 . _ -");
}

Result<void> validate_grant(const Grant& grant) {
  const std::string_view action = to_string(grant.action);
  if (grant.action == GrantAction::admin) {
    if (grant.patterns.empty()) return ok();
    return invalid("an admin grant takes no patterns: it allows everything");
  }
  if (grant.patterns.empty()) {
    return invalid(cat("a ", action, " grant needs at least one topic pattern"));
  }
  for (const std::string& pattern : grant.patterns) {
    if (is_pattern(pattern)) continue;
    return invalid(cat("invalid pattern \"", pattern, "\" in a ", action,
                       " grant: use a topic name, or the beginning of one and a single * at the "
                       "end"));
  }
  return ok();
}

bool is_password_hash(std::string_view text) {
  if (text.size() != kHashChars || !text.starts_with("$2")) return false;
  const bool kind = text[2] == 'a' || text[2] == 'b' || text[2] == 'y';
  if (!kind || text[3] != '$' || !is_digit(text[4]) || !is_digit(text[5]) || text[6] != '$') {
    return false;
  }
  return std::all_of(text.begin() + 7, text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '.' || c == '/'; });
}

bool pattern_matches(std::string_view pattern, std::string_view topic) {
  if (!pattern.ends_with('*')) return pattern == topic;
  pattern.remove_suffix(1);
  return topic.starts_with(pattern);
}

}  // namespace narad
