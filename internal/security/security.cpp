#include "internal/security/security.h"

#include <algorithm>
#include <array>

#include "internal/security/credentials.h"
#include "internal/security/password.h"
#include "pkg/base/text.h"

namespace narad::security {
namespace {

// 192 random bits in the alphabet that needs no escaping anywhere.
std::string random_password(Random& random) {
  const std::array<std::uint64_t, 3> bits{random.next(), random.next(), random.next()};
  std::string text = to_base64(std::as_bytes(std::span(bits)));
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

bool has_administrator(const metastore::State& state) {
  bool found = false;
  state.users.for_each([&](const metastore::UserPtr& user) { found = found || is_admin(user); });
  return found;
}

// The first user's password comes from the environment, not from a request: one that the header of
// a login cannot carry would make a user that nobody can be.
Result<void> check_admin_password(std::string_view password) {
  NARAD_TRY(validate_password(password));
  const auto back = parse_basic(basic_header(kRootUser, password));
  if (back && back->username == kRootUser && back->password == password) return ok();
  return Error(Errc::invalid_argument,
               "HTTP Basic cannot carry this password back: it must be UTF-8 without control "
               "characters (a line break at its end is one)");
}

}  // namespace

Security::Security(Env& env, metastore::Proposer& proposer, Options options)
    : env_(env),
      proposer_(proposer),
      options_(std::move(options)),
      authenticator_(env, proposer),
      rates_(options_.requests_per_second, options_.bytes_per_second),
      audit_(env, options_.audit_file),
      tasks_(env) {}

Security::~Security() = default;

Task<Result<void>> Security::start() {
  if (!options_.admin_password.empty()) {
    if (auto valid = check_admin_password(options_.admin_password); !valid) {
      co_return valid.error().with_context("NARAD_ADMIN_PASSWORD");
    }
  }
  NARAD_CO_TRY(co_await audit_.open());
  if (enabled()) {
    tasks_.spawn("root user", seed_loop());
  } else if (rates_.limited()) {
    NARAD_LOG_WARN(env_.log,
                   "limits.* are per user: with security.enabled=false nothing is limited");
  }
  co_return ok();
}

Task<void> Security::stop() {
  co_await tasks_.stop();
  co_await authenticator_.stop();
  co_await audit_.stop();
}

Task<void> Security::seed_loop() {
  const bool generated = options_.admin_password.empty();
  const std::string password = generated ? random_password(env_.random) : options_.admin_password;
  for (bool told = false;;) {
    const metastore::ViewPtr view = proposer_.view();
    if (!view->users.empty()) {
      if (!has_administrator(*view)) {
        NARAD_LOG_WARN(env_.log,
                       "no user may administer: start once with security.enabled=false on loopback "
                       "and give one of them the admin grant");
      }
      co_return;
    }
    // What is missing here may only not have arrived yet; the leader is asked, and the entry itself
    // is refused if there is a user after all.
    if (!proposer_.leader().is_self || !proposer_.caught_up()) {
      co_await proposer_.changed().wait_for(kSeedEvery);
      continue;
    }
    auto root = co_await seed(password);
    if (root && generated) {
      NARAD_LOG_WARN(env_.log, "first user made; its password is shown this once",
                     {"user", kRootUser}, {"password", password});
    } else if (root) {
      NARAD_LOG_INFO(env_.log, "first user made, with the password that was given",
                     {"user", kRootUser});
    } else if (root.error().code() != Errc::exists && !std::exchange(told, true)) {
      NARAD_LOG_WARN(env_.log, "the first user cannot be made yet; trying again",
                     {"error", root.error()});
    }
    if (!root) co_await sleep_for(env_, kSeedEvery);
  }
}

Task<Result<User>> Security::seed(std::string password) {
  NARAD_CO_TRY(std::string hashed, co_await authenticator_.hash(std::move(password)));
  metastore::CreateUser c;
  c.username = kRootUser;
  c.password_hash = std::move(hashed);
  c.root = true;
  c.now = env_.clock.wall_millis();
  metastore::Command command = std::move(c);
  co_return co_await propose(std::move(command));
}

Task<Result<User>> Security::propose(metastore::Command command) {
  NARAD_CO_TRY(auto result, co_await proposer_.propose(std::move(command)));
  if (!result.done()) co_return metastore::to_error(result);
  co_return std::get<User>(std::move(result.row));
}

Task<Result<std::string>> Security::hash(std::string password) {
  auto hashed = co_await authenticator_.hash(std::move(password));
  if (hashed) co_return hashed;
  co_return Error(Errc::internal, hashed.error().text());
}

Task<Result<User>> Security::create_user(NewUser user) {
  if (proposer_.view()->users.contains(user.username)) {
    co_return Error(Errc::exists, "user already exists");
  }
  NARAD_CO_TRY(std::string hashed, co_await hash(std::move(user.password)));
  metastore::CreateUser c;
  c.username = std::move(user.username);
  c.password_hash = std::move(hashed);
  c.grants = std::move(user.grants);
  c.now = env_.clock.wall_millis();
  metastore::Command command = std::move(c);
  co_return co_await propose(std::move(command));
}

Task<Result<User>> Security::set_grants(metastore::UserPtr user, std::vector<Grant> grants) {
  metastore::SetUserGrants c;
  c.username = user->username;
  c.version = user->changed_at;
  c.grants = std::move(grants);
  c.now = env_.clock.wall_millis();
  metastore::Command command = std::move(c);
  co_return co_await propose(std::move(command));
}

Task<Result<User>> Security::set_password(metastore::UserPtr user, std::string password) {
  NARAD_CO_TRY(std::string hashed, co_await hash(std::move(password)));
  metastore::SetUserPassword c;
  c.username = user->username;
  c.version = user->changed_at;
  c.password_hash = std::move(hashed);
  c.now = env_.clock.wall_millis();
  metastore::Command command = std::move(c);
  co_return co_await propose(std::move(command));
}

Task<Result<User>> Security::delete_user(metastore::UserPtr user) {
  metastore::Command command = metastore::DeleteUser{user->username, user->changed_at};
  co_return co_await propose(std::move(command));
}

}  // namespace narad::security
