#pragma once
// What a client would like to get: the list syntax of Accept and its kin (RFC 9110, 12.4 and 12.5).
// Pure.
#include <optional>
#include <string_view>

namespace narad::http {

class Headers;

// The quality, 0 to 1000, that the fields called `header` give to exactly `name` (a media type or a
// coding, lower case); nothing if they do not name it: wildcards are not looked at. 0 means "not
// this one". A quality that cannot be read counts as 1000; of several the highest counts.
std::optional<int> accept_quality(const Headers& headers, std::string_view header,
                                  std::string_view name);

}  // namespace narad::http
