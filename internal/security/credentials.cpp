#include "internal/security/credentials.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::security {
namespace {

constexpr std::string_view kScheme = "basic ";
// Far above what can be right: usernames have at most 64 characters, passwords 72 bytes. Longer
// ones are looked at all the same, so that they are wrong in the same way as others.
constexpr std::size_t kHeaderBytesMax = 8192;

bool is_basic(std::string_view text) {
  return text.size() > kScheme.size() &&
         std::equal(kScheme.begin(), kScheme.end(), text.begin(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
}

}  // namespace

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::optional<Credentials> parse_basic(std::string_view authorization) {
  if (authorization.size() > kHeaderBytesMax || !is_basic(authorization)) return std::nullopt;
  const auto decoded = parse_base64(authorization.substr(kScheme.size()));
  if (!decoded) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(decoded->data()), decoded->size());
  if (has_control(text) || !is_utf8(text)) return std::nullopt;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return Credentials{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

std::string basic_header(std::string_view username, std::string_view password) {
  NARAD_ASSERT(username.find(':') == std::string_view::npos);
  const std::string text = cat(username, ':', password);
  return cat("Basic ", to_base64(as_bytes(text)));
}

}  // namespace narad::security
