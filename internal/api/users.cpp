// Users: create, list, look at, delete, grants, password (http-api 1.12).
#include "internal/api/gate.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "internal/api/user_json.h"
#include "pkg/base/text.h"

namespace narad::api {
namespace {

// A change names the version of the user it was judged for; if somebody else was faster, it is
// judged again.
constexpr int kTries = 3;

http::Response not_found() { return http::error_response(404, "user not found"); }

http::Response only_root(const security::Caller& caller) {
  return forbidden(cat("user ", security::name_of(caller),
                       " is not root, and only root hands out admin grants"));
}

bool changed_meanwhile(const Result<User>& result) {
  return !result && result.error().code() == Errc::conflict;
}

}  // namespace

Task<http::Response> create_user(Context& context, http::Request request) {
  const Call& call = call_of(request);
  auto user = parse_new_user(std::move(request.body));
  if (!user) co_return fail(context.env.log, "create user", user.error());
  call.target = user.value().username;
  if (!security::may_hand_out(call.caller, user.value().grants)) co_return only_root(call.caller);
  auto created = co_await context.security.create_user(std::move(user.value()));
  if (!created) co_return fail_write(context, "create user", created.error());
  co_return http::json_response(201, user_body(created.value()));
}

Task<http::Response> list_users(Context& context, http::Request) {
  co_return http::json_response(200, user_list_body(*context.security.view()));
}

Task<http::Response> get_user(Context& context, http::Request request) {
  const metastore::ViewPtr view = context.security.view();
  const User* user = view->users.find(request.match.param("username"));
  if (user == nullptr) co_return not_found();
  co_return http::json_response(200, user_body(*user));
}

Task<http::Response> delete_user(Context& context, http::Request request) {
  const security::Caller caller = call_of(request).caller;
  const std::string name(request.match.param("username"));
  for (int attempt = 1;; ++attempt) {
    const metastore::UserPtr user = context.security.view()->users.get(name);
    if (user == nullptr) co_return not_found();
    if (user->root) co_return forbidden("the root user cannot be deleted");
    if (security::name_of(caller) == name) co_return forbidden("nobody deletes the own account");
    auto deleted = co_await context.security.delete_user(user);
    if (deleted) co_return http::empty_response(204);
    if (changed_meanwhile(deleted) && attempt < kTries) continue;
    co_return fail_write(context, "delete user", deleted.error());
  }
}

Task<http::Response> set_user_grants(Context& context, http::Request request) {
  const security::Caller caller = call_of(request).caller;
  const std::string name(request.match.param("username"));
  const auto grants = parse_grants(std::move(request.body));
  if (!grants) co_return fail(context.env.log, "set grants", grants.error());
  if (security::name_of(caller) == name) co_return forbidden("nobody changes the own grants");
  if (!security::may_hand_out(caller, grants.value())) co_return only_root(caller);
  for (int attempt = 1;; ++attempt) {
    const metastore::UserPtr user = context.security.view()->users.get(name);
    if (user == nullptr) co_return not_found();
    if (user->root) co_return forbidden("the root user needs no grants");
    auto changed = co_await context.security.set_grants(user, grants.value());
    if (changed) co_return http::json_response(200, user_body(changed.value()));
    if (changed_meanwhile(changed) && attempt < kTries) continue;
    co_return fail_write(context, "set grants", changed.error());
  }
}

Task<http::Response> set_user_password(Context& context, http::Request request) {
  const security::Caller caller = call_of(request).caller;
  const std::string name(request.match.param("username"));
  const auto change = parse_password_change(std::move(request.body));
  if (!change) co_return fail(context.env.log, "set password", change.error());
  for (int attempt = 1;; ++attempt) {
    const metastore::UserPtr user = context.security.view()->users.get(name);
    if (user == nullptr) co_return not_found();
    if (user->root && !security::is_root(caller)) {
      co_return forbidden("only root changes the password of root");
    }
    if (!security::is_admin(caller)) {
      const std::string current = change.value().current_password.value_or("");
      auto right = co_await context.security.authenticator().is_password_of(user, current);
      if (!right) co_return fail(context.env.log, "set password", right.error());
      if (!right.value()) co_return forbidden("current_password is missing or wrong");
    }
    auto changed = co_await context.security.set_password(user, change.value().new_password);
    if (changed) co_return http::empty_response(204);
    if (changed_meanwhile(changed) && attempt < kTries) continue;
    co_return fail_write(context, "set password", changed.error());
  }
}

}  // namespace narad::api
