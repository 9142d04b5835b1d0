#pragma once
// Internal: the header fields of peer calls.
#include <string_view>

#include "pkg/http/ascii.h"

namespace narad::peer {

inline constexpr std::string_view kDeadlineHeader = "Narad-Deadline-Ms";  // from now, decimal
inline constexpr std::string_view kRequestIdHeader = "Narad-Request-Id";  // 16 hex digits

// Fields that belong to a connection and not to what it carries: not passed on.
inline bool is_of_the_connection(std::string_view name) {
  return http::equal_ignoring_case(name, "Content-Length") ||
         http::equal_ignoring_case(name, "Connection") ||
         http::equal_ignoring_case(name, "Transfer-Encoding");
}

}  // namespace narad::peer
