#pragma once
// What a client says of itself: the Authorization header of HTTP Basic (RFC 7617). Pure.
#include <optional>
#include <string>
#include <string_view>

namespace narad::security {

struct Credentials {
  std::string username;  // without ':'
  std::string password;  // may hold ':' and may be empty
};

// Whether there is an ASCII control character in it, which no Authorization header may carry.
bool has_control(std::string_view text);

// "Basic " in any case, one space, then padded base64 of "username:password" in UTF-8 without
// control characters. Nothing for anything else.
std::optional<Credentials> parse_basic(std::string_view authorization);

// The header value of these credentials. REQUIRES: no ':' in the username.
std::string basic_header(std::string_view username, std::string_view password);

}  // namespace narad::security
