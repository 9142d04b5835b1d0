#pragma once
// The address of a broker as people write it. Pure.
#include <string>
#include <string_view>

#include "pkg/base/result.h"
#include "pkg/env/net.h"

namespace narad::client {

struct ServerUrl {
  Endpoint endpoint;
  std::string base;  // what stands before "/v1/..." in every target; empty or "/prefix"
};

// "http://host:port/prefix"; the scheme may be left out, the port is 80 without one, slashes at the
// end are dropped. invalid_argument for anything else (https, user info, query, no host).
Result<ServerUrl> parse_server_url(std::string_view text);

}  // namespace narad::client
