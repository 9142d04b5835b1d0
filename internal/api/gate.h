#pragma once
// What stands in front of every route: who is it, how much may they send, may they do this
// (http-api 1.0.1, 1.0.2, 7). Private to this directory.
#include <optional>
#include <string>
#include <string_view>

#include "internal/security/security.h"
#include "pkg/http/message.h"

namespace narad::api {

// Who may use a route. Each is decided before its handler runs, but for the two that depend on the
// body, which its handler asks for with the functions below.
enum class Right : std::uint8_t {
  unset,             // a route that nobody has thought about: refused
  anybody,           // without credentials
  any_user,          // whoever has logged in
  produce,           // a grant on the topic, the first parameter of the route
  consume,           // the same
  manage,            // the topic's owner or an admin; if there is no topic, the handler says so
  create_named,      // a create grant on the name in the body
  manage_when_read,  // as manage, but a bad body is refused first
  admin,             // root, or an admin grant
  self_or_admin,     // the user who is the first parameter of the route, or an admin
};

// Who sent a request, and what its handler leaves for the record. Every handler has one.
struct Call {
  security::Caller caller;     // null: security is off
  mutable std::string target;  // of an administrative write, if the path does not name it
  // It was answered that nobody knows whether it happened.
  mutable bool outcome_unknown = false;
};
// REQUIRES: the request went through Api::handle(). Lives as long as the request.
const Call& call_of(const http::Request& request);

// Exactly these answer without credentials.
bool needs_no_login(std::string_view path);
// The value of the one Authorization header; empty if there is none or more.
std::string_view authorization_of(const http::Request& request);

// The topic that the request changes, or puts into or takes from; empty for others. "There is none"
// must be true of the cluster then, not only of what this node has heard so far.
std::string_view topic_needed(Right right, const http::Request& request);

// Fills `call.caller`, and counts the request against its user's limits; or answers 401, 429, 500,
// 503. Nothing else may have been done for the request before.
Task<std::optional<http::Response>> let_in(security::Security& security, Env& env,
                                           const http::Request& request, Call& call);

// 403 unless the caller has the right. `unset` is refused for everybody.
std::optional<http::Response> check_right(Right right, const http::Request& request,
                                          const security::Caller& caller,
                                          const metastore::State& state);
std::optional<http::Response> check_create(const security::Caller& caller, std::string_view topic);
std::optional<http::Response> check_manage(const security::Caller& caller,
                                           const metastore::State& state, std::string_view topic);

// {"error":"forbidden: …"}.
http::Response forbidden(std::string_view why);

}  // namespace narad::api
