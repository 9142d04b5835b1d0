#include <algorithm>

#include "cmd/narad/commands.h"
#include "cmd/narad/session.h"
#include "pkg/base/text.h"
#include "pkg/http/query.h"
#include "pkg/json/writer.h"

namespace narad::cli {
namespace {

using http::Method;

Error refuse(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

// "produce:orders-*,audit" as a member of a "grants" array.
Result<void> write_grant(json::Writer& w, std::string_view grant) {
  constexpr std::string_view kActions[] = {"produce", "consume", "create", "admin"};
  std::size_t colon = std::min(grant.find(':'), grant.size());
  std::string_view action = grant.substr(0, colon);
  if (std::find(std::begin(kActions), std::end(kActions), action) == std::end(kActions)) {
    return refuse(
        cat("grant \"", grant, "\": the action must be produce, consume, create or admin"));
  }
  w.begin_object().member("action", action);
  std::string_view patterns = grant.substr(std::min(colon + 1, grant.size()));
  if (!patterns.empty()) {
    w.key("patterns").begin_array();
    while (!patterns.empty()) {
      std::size_t comma = std::min(patterns.find(','), patterns.size());
      if (comma > 0) w.value(patterns.substr(0, comma));
      patterns.remove_prefix(std::min(comma + 1, patterns.size()));
    }
    w.end_array();
  }
  w.end_object();
  return ok();
}

Result<void> write_grants(json::Writer& w, const std::vector<std::string>& grants) {
  w.key("grants").begin_array();
  for (const std::string& grant : grants) {
    NARAD_TRY(write_grant(w, grant));
  }
  w.end_array();
  return ok();
}

std::string user_path(std::string_view name, std::string_view rest = {}) {
  return cat("/v1/users/", http::encode_component(name), rest);
}

Task<Result<int>> show(Session& s, Method method, std::string target, std::string body = {}) {
  std::string type = body.empty() ? "" : "application/json";
  NARAD_CO_TRY(auto answer,
               co_await s.client.call(method, std::move(target), std::move(body), std::move(type)));
  print_json(s.terminal, answer.body);
  co_return 0;
}

Task<Result<int>> add(Session& s) {
  std::string password = s.args.text("user-password");
  if (password.empty()) co_return refuse("--user-password is required");
  json::Writer w;
  w.begin_object().member("username", s.args.operand(0)).member("password", password);
  std::vector<std::string> grants = s.args.list("grant");
  if (!grants.empty()) {
    NARAD_CO_TRY(write_grants(w, grants));
  }
  w.end_object();
  std::string body = w.take();
  co_return co_await show(s, Method::post, "/v1/users", std::move(body));
}

Task<Result<int>> grant(Session& s) {
  json::Writer w;
  w.begin_object();
  NARAD_CO_TRY(write_grants(w, s.args.list("grant")));
  w.end_object();
  std::string body = w.take();
  co_return co_await show(s, Method::put, user_path(s.args.operand(0), "/grants"), std::move(body));
}

Task<Result<int>> ls(Session& s) { return show(s, Method::get, "/v1/users"); }
Task<Result<int>> rm(Session& s) { return show(s, Method::delete_, user_path(s.args.operand(0))); }

}  // namespace

int user_add(const Arguments& a, Terminal& t) { return run_session(a, t, add); }
int user_grant(const Arguments& a, Terminal& t) { return run_session(a, t, grant); }
int user_ls(const Arguments& a, Terminal& t) { return run_session(a, t, ls); }
int user_rm(const Arguments& a, Terminal& t) { return run_session(a, t, rm); }

}  // namespace narad::cli
