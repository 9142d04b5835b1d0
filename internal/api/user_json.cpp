#include "internal/api/user_json.h"

#include "internal/security/credentials.h"
#include "pkg/base/text.h"
#include "pkg/json/decode.h"
#include "pkg/json/writer.h"

namespace narad::api {
namespace {

Error invalid(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }

void write_user(json::Writer& w, const User& user) {
  w.begin_object().member("username", user.username);
  if (!user.grants.empty()) {
    w.key("grants").begin_array();
    for (const Grant& grant : user.grants) {
      w.begin_object().member("action", to_string(grant.action));
      if (!grant.patterns.empty()) {
        w.key("patterns").begin_array();
        for (const std::string& pattern : grant.patterns) w.value(pattern);
        w.end_array();
      }
      w.end_object();
    }
    w.end_array();
  }
  if (user.root) w.member("root", true);
  if (user.created_at.value() != 0) w.member("created_at_ms", user.created_at);
  if (user.updated_at.value() != 0) w.member("updated_at_ms", user.updated_at);
  w.end_object();
}

// A grant as it was written; its action is looked at once the whole body is known to be sound.
struct RawGrant {
  std::string action;
  std::vector<std::string> patterns;
};

void decode_grants(json::Decoder& d, std::vector<RawGrant>& out) {
  d.each("grants", [&out](json::Value item) -> Result<void> {
    json::Decoder one(item, cat("grants[", out.size(), "]"));
    RawGrant& grant = out.emplace_back();
    one.field("action", grant.action).field("patterns", grant.patterns);
    return one.finish();
  });
}

Result<std::vector<Grant>> to_grants(std::vector<RawGrant> raw) {
  std::vector<Grant> out;
  for (RawGrant& r : raw) {
    const auto action = parse_grant_action(r.action);
    if (!action) {
      return invalid(
          cat("unknown action \"", r.action, "\": use produce, consume, create or admin"));
    }
    Grant grant{*action, std::move(r.patterns)};
    NARAD_TRY(validate_grant(grant));
    out.push_back(std::move(grant));
  }
  return out;
}

// Length is not looked at here: what bcrypt cannot take is no bad request (http-api 1.12).
Result<void> check_password(std::string_view field, std::string_view password) {
  if (password.empty()) return invalid(cat(field, " must not be empty"));
  if (!security::has_control(password)) return ok();
  return invalid(cat(field, " must not contain control characters: HTTP Basic cannot carry them"));
}

}  // namespace

std::string user_body(const User& user) {
  json::Writer w;
  write_user(w, user);
  return w.take() + "\n";
}

std::string user_list_body(const metastore::State& state) {
  json::Writer w;
  w.begin_array();
  state.users.for_each([&w](const metastore::UserPtr& user) { write_user(w, *user); });
  w.end_array();
  return w.take() + "\n";
}

Result<security::NewUser> parse_new_user(std::string body) {
  security::NewUser user;
  std::vector<RawGrant> grants;
  NARAD_TRY(auto document, json::parse_body(std::move(body)));
  json::Decoder d(document.root());
  d.field("username", user.username).field("password", user.password);
  decode_grants(d, grants);
  NARAD_TRY(d.finish());
  NARAD_TRY(validate_username(user.username));
  NARAD_TRY(check_password("password", user.password));
  NARAD_TRY(user.grants, to_grants(std::move(grants)));
  return user;
}

Result<std::vector<Grant>> parse_grants(std::string body) {
  std::vector<RawGrant> grants;
  NARAD_TRY(auto document, json::parse_body(std::move(body)));
  json::Decoder d(document.root());
  decode_grants(d, grants);
  NARAD_TRY(d.finish());
  return to_grants(std::move(grants));
}

Result<PasswordChange> parse_password_change(std::string body) {
  PasswordChange change;
  NARAD_TRY(auto document, json::parse_body(std::move(body)));
  json::Decoder d(document.root());
  d.field("new_password", change.new_password).field("current_password", change.current_password);
  NARAD_TRY(d.finish());
  NARAD_TRY(check_password("new_password", change.new_password));
  return change;
}

}  // namespace narad::api
