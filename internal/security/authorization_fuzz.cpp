// Any bytes as an Authorization header: what is taken is written back to the same credentials.
#include "internal/security/credentials.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  const std::string_view header(reinterpret_cast<const char*>(data), size);
  for (const std::string& text :
       {std::string(header), cat("Basic ", to_base64(as_bytes(header)))}) {
    const auto given = security::parse_basic(text);
    if (!given) continue;
    NARAD_ASSERT(is_utf8(given->username) && is_utf8(given->password));
    NARAD_ASSERT(given->username.find(':') == std::string::npos);
    const auto back =
        security::parse_basic(security::basic_header(given->username, given->password));
    NARAD_ASSERT(back && back->username == given->username && back->password == given->password);
  }
  return 0;
}
