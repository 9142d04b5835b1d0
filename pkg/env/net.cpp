#include "pkg/env/net.h"

#include "pkg/base/text.h"

namespace narad {

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.host.find(':') != std::string::npos)
    return cat("[", endpoint.host, "]:", endpoint.port);
  return cat(endpoint.host, ":", endpoint.port);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Error(Errc::invalid_argument, cat("invalid address \"", text, "\": ", why));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("a port is missing (use host:port or :port)");
  auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  if (!port) return bad("the port must be a number from 0 to 65535");
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("write an IPv6 address in brackets");
  }
  return Endpoint{std::string(host), *port};
}

bool is_loopback(const Endpoint& endpoint) {
  return endpoint.host == "localhost" || endpoint.host == "::1" ||
         endpoint.host.starts_with("127.");
}

}  // namespace narad
