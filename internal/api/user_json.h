#pragma once
// The user object of the contract and the bodies that change users (http-api 1.12). Pure.
#include <optional>
#include <string>
#include <vector>

#include "internal/metastore/state.h"
#include "internal/security/security.h"

namespace narad::api {

// `{"username":…}` and a newline; never anything of the password.
std::string user_body(const User& user);
// `[…]` and a newline, ascending by name.
std::string user_list_body(const metastore::State& state);

// The three bodies, checked. All errors are invalid_argument.
Result<security::NewUser> parse_new_user(std::string body);
Result<std::vector<Grant>> parse_grants(std::string body);
struct PasswordChange {
  std::string new_password;
  std::optional<std::string> current_password;
};
Result<PasswordChange> parse_password_change(std::string body);

}  // namespace narad::api
