#pragma once
// Users and their grants as the metastore keeps them, and the rules that names, grants and patterns
// follow (http-api 1.0.2, 1.12). Pure values; who may do what is decided in internal/security.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad {

enum class GrantAction : std::uint8_t { produce, consume, create, admin };
inline constexpr std::array kGrantActions{GrantAction::produce, GrantAction::consume,
                                          GrantAction::create, GrantAction::admin};
std::string_view to_string(GrantAction action);
std::optional<GrantAction> parse_grant_action(std::string_view name);

// What one user may do: an action on the topics that a pattern matches. `admin` has no patterns.
struct Grant {
  GrantAction action = GrantAction::produce;
  std::vector<std::string> patterns;
  friend bool operator==(const Grant&, const Grant&) = default;
};

struct User {
  std::string username;
  std::string password_hash;  // bcrypt, 60 characters; never leaves the node but to its peers
  std::vector<Grant> grants;
  bool root = false;  // at most one: the first user, seeded
  UnixMillis created_at{0};
  UnixMillis updated_at{0};
  RaftIndex changed_at{0};  // entry that last changed it; commands name the one they judged

  std::string_view key() const { return username; }
  friend bool operator==(const User&, const User&) = default;
};

// `^[A-Za-z0-9._-]{1,64}$`; invalid_argument otherwise.
Result<void> validate_username(std::string_view name);
// A scoped action has at least one pattern, each `^[A-Za-z0-9._-]{0,255}\*?$` and not empty; admin
// has none. invalid_argument otherwise.
Result<void> validate_grant(const Grant& grant);
// Whether `text` has the form of a bcrypt hash ("$2b$10$" and 53 characters of its alphabet).
bool is_password_hash(std::string_view text);
// A literal matches itself; one with a trailing '*' matches every name that begins with the rest.
bool pattern_matches(std::string_view pattern, std::string_view topic);

}  // namespace narad
