#include "internal/api/gate.h"

#include "internal/api/status.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::api {
namespace {

http::Response unauthenticated(std::string_view text) {
  http::Response response = http::error_response(401, text);
  response.headers.add("WWW-Authenticate", "Basic realm=\"narad\"");
  return response;
}

http::Response slow_down(Nanos wait) {
  const auto seconds = (wait + std::chrono::seconds(1) - Nanos(1)) / std::chrono::seconds(1);
  http::Response response =
      http::error_response(429, cat("over this user's rate limit: retry in ", seconds, " s"));
  response.headers.add("Retry-After", std::to_string(seconds));
  return response;
}

std::optional<http::Response> check_grant(const security::Caller& caller, GrantAction action,
                                          std::string_view topic) {
  if (security::may(caller, action, topic)) return std::nullopt;
  return forbidden(cat("user ", security::name_of(caller), " has no ", to_string(action),
                       " grant that matches ", topic));
}

std::optional<http::Response> check_admin(const security::Caller& caller) {
  if (security::is_admin(caller)) return std::nullopt;
  return forbidden(cat("user ", security::name_of(caller), " has no admin grant"));
}

// The topic or the user that the path names.
std::string_view subject_of(const http::Request& request) {
  NARAD_ASSERT(!request.match.route->params.empty(), request.match.route->pattern);
  return request.match.values[0];
}

}  // namespace

http::Response forbidden(std::string_view why) {
  return http::error_response(403, cat("forbidden: ", why));
}

const Call& call_of(const http::Request& request) {
  NARAD_ASSERT(request.context != nullptr, request.target);
  return *static_cast<const Call*>(request.context.get());
}

bool needs_no_login(std::string_view path) {
  return path == "/healthz" || path == "/readyz" || path == "/metrics";
}

std::string_view authorization_of(const http::Request& request) {
  const auto given = request.headers.get("Authorization");
  return given && request.headers.count("Authorization") == 1 ? *given : std::string_view();
}

std::string_view topic_needed(Right right, const http::Request& request) {
  switch (right) {
    case Right::produce:
    case Right::consume:
    case Right::manage:
    case Right::manage_when_read:
      return subject_of(request);
    case Right::unset:
    case Right::anybody:
    case Right::any_user:
    case Right::create_named:
    case Right::admin:
    case Right::self_or_admin:
      break;
  }
  return {};
}

Task<std::optional<http::Response>> let_in(security::Security& security, Env& env,
                                           const http::Request& request, Call& call) {
  if (!security.enabled() || needs_no_login(request.path())) co_return std::nullopt;
  const std::string_view authorization = authorization_of(request);
  call.caller = security.authenticator().recall(authorization);
  if (call.caller == nullptr) {
    auto user = co_await security.authenticator().identify(std::string(authorization));
    if (!user) {
      const Error& error = user.error();
      if (error.code() == Errc::unauthenticated) co_return unauthenticated(error.text());
      co_return http::error_response(status_of(error.code()), error.text());
    }
    call.caller = std::move(user.value());
  }
  const Nanos now = env.clock.mono();
  if (auto wait = security.rates().admit(call.caller->username, now)) co_return slow_down(*wait);
  co_return std::nullopt;
}

std::optional<http::Response> check_create(const security::Caller& caller, std::string_view topic) {
  return check_grant(caller, GrantAction::create, topic);
}

std::optional<http::Response> check_manage(const security::Caller& caller,
                                           const metastore::State& state, std::string_view topic) {
  const metastore::TopicRow* row = state.topics.find(topic);
  if (security::may_manage(caller, row != nullptr ? &row->topic : nullptr)) return std::nullopt;
  return forbidden(
      cat("user ", security::name_of(caller), " neither owns ", topic, " nor has an admin grant"));
}

std::optional<http::Response> check_right(Right right, const http::Request& request,
                                          const security::Caller& caller,
                                          const metastore::State& state) {
  switch (right) {
    case Right::anybody:
    case Right::any_user:
    case Right::create_named:
    case Right::manage_when_read:
      return std::nullopt;
    case Right::produce:
      return check_grant(caller, GrantAction::produce, subject_of(request));
    case Right::consume:
      return check_grant(caller, GrantAction::consume, subject_of(request));
    case Right::manage:
      return check_manage(caller, state, subject_of(request));
    case Right::admin:
      return check_admin(caller);
    case Right::self_or_admin:
      if (security::name_of(caller) == subject_of(request)) return std::nullopt;
      return check_admin(caller);
    case Right::unset:
      break;
  }
  return forbidden("no right is set for this route");
}

}  // namespace narad::api
