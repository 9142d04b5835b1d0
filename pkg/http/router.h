#pragma once
// Method and path to route. Pure.
//
// A pattern is "GET /v1/topics/{topic}": literal segments, and {name} for exactly one segment of at
// least one byte. Literals win over parameters. Paths are split at '/' first and percent-decoded
// after, so %2F stays inside a segment. A GET route serves HEAD too unless it says otherwise.
// "/v1/topics/{topic}/produce:batch" needs nothing special: "produce:batch" is a literal.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace narad::http {

enum class Method : std::uint8_t { get, head, post, put, patch, delete_, options, other };
std::string_view to_string(Method method);  // "GET"; "OTHER" for a method without a name here
Method parse_method(std::string_view name);

struct RouteOptions {
  std::uint64_t body_bytes_max = std::uint64_t{1} << 20;
  bool serves_head = true;  // GET routes only
  // The handler is cancelled when the client hangs up while it runs (long polls). Leave off for
  // handlers that must run to their end.
  bool cancel_when_gone = false;
  // A body over the limit does not end in 413 by the server: the handler is called with
  // Request::body_too_large set and an empty body, so that it can put 413 at its place among other
  // refusals. The connection is closed after its answer.
  bool handler_refuses_large = false;
};

struct Route {
  std::string pattern;  // "GET /v1/topics/{topic}": the label of metrics
  Method method = Method::other;
  RouteOptions options;
  int id = 0;                       // what the user gave to add(); to switch on
  std::vector<std::string> params;  // names, in order
};

struct RouteMatch {
  static constexpr std::size_t kParamsMax = 4;
  const Route* route = nullptr;  // null: no route; owned by the Router
  std::array<std::string, kParamsMax> values;
  // The decoded value of {name}. REQUIRES: the route has such a parameter.
  std::string_view param(std::string_view name) const;
  explicit operator bool() const { return route != nullptr; }
};

struct Response;

class Router {
 public:
  Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  // REQUIRES: a well-formed pattern that is not there yet, at most kParamsMax parameters, and one
  // parameter name per place in the tree. The Route lives as long as the Router.
  const Route& add(std::string_view pattern, int id, RouteOptions options = {});
  // `path` is encoded and without query. No match for an unclean path.
  RouteMatch match(Method method, std::string_view path) const;
  // The answer to a request that match() did not place: 301 to the cleaned path, 405 with Allow, or
  // 404; text/plain.
  Response refuse(Method method, std::string_view target) const;
  const std::vector<std::unique_ptr<Route>>& routes() const { return routes_; }

 private:
  struct Node;
  std::unique_ptr<Node> root_;
  std::vector<std::unique_ptr<Route>> routes_;
};

// "/a//b/../c/" -> "/a/c/". Works on the encoded form: %2E is no dot segment.
std::string clean_path(std::string_view path);

}  // namespace narad::http
