#include "internal/security/password.h"

#include <crypt.h>

#include <cstring>
#include <memory>

#include "internal/model/user.h"
#include "pkg/base/text.h"

namespace narad::security {
namespace {

constexpr unsigned long kCost = 10;

// What crypt_rn works on is large, and holds the password: cleared before it is given back.
struct Wiped {
  void operator()(crypt_data* data) const {
    ::explicit_bzero(data, sizeof *data);
    delete data;
  }
};

Result<std::string> crypt(const std::string& password, const std::string& setting) {
  const std::unique_ptr<crypt_data, Wiped> data(new crypt_data());
  const char* hash = ::crypt_rn(password.c_str(), setting.c_str(), data.get(), sizeof *data);
  if (hash == nullptr) return Error(Errc::internal, "bcrypt refused to hash a password");
  return std::string(hash);
}

// Without an early end: how much of a hash agrees is nobody's business.
bool equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace

Result<void> validate_password(std::string_view password) {
  if (password.empty()) return Error(Errc::invalid_argument, "password must not be empty");
  if (password.size() > kPasswordBytesMax) {
    return Error(Errc::invalid_argument,
                 cat("password must have at most ", kPasswordBytesMax, " bytes"));
  }
  if (password.find('\0') != std::string_view::npos) {
    return Error(Errc::invalid_argument, "password must not contain a NUL character");
  }
  return ok();
}

Result<std::string> hash_password(std::string_view password, const Salt& salt) {
  NARAD_TRY(validate_password(password));
  std::array<char, sizeof salt> bytes;
  std::memcpy(bytes.data(), salt.data(), bytes.size());
  std::array<char, CRYPT_GENSALT_OUTPUT_SIZE> setting;
  const char* made = ::crypt_gensalt_rn("$2b$", kCost, bytes.data(), static_cast<int>(bytes.size()),
                                        setting.data(), static_cast<int>(setting.size()));
  if (made == nullptr) return Error(Errc::internal, "bcrypt is not to be had in this build");
  return crypt(std::string(password), made);
}

Result<bool> verify_password(std::string_view password, const std::string& hash) {
  // libxcrypt knows older kinds too, and takes anything for one of them.
  if (!is_password_hash(hash)) {
    return Error(Errc::internal, "the stored password hash is not one of bcrypt");
  }
  const bool possible = validate_password(password).has_value();
  NARAD_TRY(std::string found, crypt(std::string(password.substr(0, kPasswordBytesMax)), hash));
  return possible && equal(found, hash);
}

}  // namespace narad::security
