#include "pkg/client/server_url.h"

#include "pkg/base/text.h"

namespace narad::client {
namespace {

Error bad(std::string_view text, std::string_view why) {
  return {Errc::invalid_argument, cat("server ", std::string(text), ": ", std::string(why))};
}

}  // namespace

Result<ServerUrl> parse_server_url(std::string_view text) {
  std::string_view rest = text;
  if (std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    if (rest.substr(0, scheme) == "https") {
      return bad(text, "TLS is not supported here; put http:// and a tunnel or a proxy in between");
    }
    if (rest.substr(0, scheme) != "http") return bad(text, "the scheme must be http");
    rest.remove_prefix(scheme + 3);
  }
  if (rest.find_first_of("?#@ ") != std::string_view::npos) {
    return bad(text, "expected http://host:port");
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string authority(rest.substr(0, slash));
  if (authority.empty()) return bad(text, "it names no host");
  bool ipv6 = authority.front() == '[';
  bool has_port =
      ipv6 ? authority.find("]:") != std::string::npos : authority.find(':') != std::string::npos;
  if (!has_port) authority += ":80";
  auto endpoint = parse_endpoint(authority);
  if (!endpoint) return bad(text, endpoint.error().text());
  if (endpoint.value().host.empty()) return bad(text, "it names no host");
  return ServerUrl{endpoint.value(), std::string(rest.substr(slash))};
}

}  // namespace narad::client
