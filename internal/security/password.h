#pragma once
// Hashing passwords with bcrypt (libxcrypt), cost 10: some 50 ms of one core. Both functions are
// pure but slow: call them inside jobs of the blocking door.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/result.h"

namespace narad::security {

// What bcrypt takes: more would be cut off, and so would everything after a NUL.
inline constexpr std::size_t kPasswordBytesMax = 72;
// invalid_argument: empty, too long, or with a NUL in it.
Result<void> validate_password(std::string_view password);

using Salt = std::array<std::uint64_t, 2>;
// "$2b$10$…". Errors: those of validate_password; internal if the library refuses.
Result<std::string> hash_password(std::string_view password, const Salt& salt);
// Takes as long whatever the password is. A password that validate_password refuses is wrong.
// internal: the hash cannot be checked.
Result<bool> verify_password(std::string_view password, const std::string& hash);

// A hash that no password has, for users that do not exist.
inline constexpr std::string_view kNobodysHash =
    "$2b$10$CwTycUXWue0Thq9StjUM0uAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

}  // namespace narad::security
