#include "internal/security/authenticator.h"

#include "internal/security/credentials.h"
#include "internal/security/password.h"
#include "pkg/base/text.h"

namespace narad::security {
namespace {

Error wrong_credentials() { return Error(Errc::unauthenticated, "authentication required"); }

Error locked_out() {
  return Error(
      Errc::busy,
      cat("too many failed logins for this user: one more try every ",
          std::chrono::duration_cast<std::chrono::seconds>(Failures::kAttemptEvery).count(),
          " seconds"));
}

}  // namespace

// One password that is being looked at, and all who wait for it.
struct Authenticator::Check {
  Check(Env& env, std::string u, std::string p, metastore::UserPtr r, Fingerprint f)
      : username(std::move(u)),
        password(std::move(p)),
        row(std::move(r)),
        credentials(f),
        done(env) {}
  const std::string username;
  std::string password;
  const metastore::UserPtr row;  // null: no such user
  const Fingerprint credentials;
  std::optional<Result<bool>> outcome;
  Event done;
};

Authenticator::Authenticator(Env& env, metastore::Proposer& proposer)
    : env_(env),
      proposer_(proposer),
      key_{env.random.next(), env.random.next()},
      turn_(env),
      tasks_(env) {}

Fingerprint Authenticator::fingerprint_of(std::string_view username,
                                          std::string_view password) const {
  return fingerprint(key_, cat(username, ':', password));
}

metastore::UserPtr Authenticator::verified(const std::string& username,
                                           const Fingerprint& credentials) const {
  const auto known = verified_.find(username);
  if (known == verified_.end() || known->second.credentials != credentials) return nullptr;
  metastore::UserPtr row = proposer_.view()->users.get(username);
  if (row == known->second.row) return row;
  if (row == nullptr || row->password_hash != known->second.row->password_hash) {
    verified_.erase(known);
    return nullptr;
  }
  known->second.row = row;
  return row;
}

metastore::UserPtr Authenticator::recall(std::string_view authorization) const {
  const auto given = parse_basic(authorization);
  if (!given) return nullptr;
  return verified(given->username, fingerprint_of(given->username, given->password));
}

Result<std::shared_ptr<Authenticator::Check>> Authenticator::begin_check(
    const std::string& username, std::string password, const metastore::UserPtr& user,
    const Fingerprint& credentials) {
  if (checks_.size() >= kWaitingMax) {
    return Error(Errc::unavailable, "too many passwords wait to be checked");
  }
  const Nanos now = env_.clock.mono();
  const auto verdict = user != nullptr
                           ? failures_.admit(username, user->password_hash, credentials, now)
                           : failures_.admit_unknown(credentials, now);
  if (verdict == Failures::Verdict::wrong) return wrong_credentials();
  if (verdict == Failures::Verdict::locked_out) return locked_out();
  // To look at it would find out nothing. The wait is about that of a check that begins now.
  if (user == nullptr && strangers_ >= kStrangersMax) return last_stranger_;
  auto check = std::make_shared<Check>(env_, username, std::move(password), user, credentials);
  checks_.emplace(credentials, check);
  if (user == nullptr) {
    ++strangers_;
    last_stranger_ = check;
  }
  tasks_.spawn("password check", run_check(check));
  return check;
}

void Authenticator::remember(const Check& check, bool right) {
  const Nanos now = env_.clock.mono();
  if (check.row == nullptr) {
    failures_.wrong_unknown(check.credentials, now);
  } else if (right) {
    failures_.right(check.username, now);
    verified_.insert_or_assign(check.username, Verified{check.credentials, check.row});
  } else {
    failures_.wrong(check.username, check.row->password_hash, check.credentials, now);
  }
}

Task<void> Authenticator::run_check(std::shared_ptr<Check> check) {
  Mutex::Guard turn = co_await turn_.lock();
  const std::string hash(check->row != nullptr ? check->row->password_hash
                                               : std::string(kNobodysHash));
  auto job = [password = std::exchange(check->password, {}), hash] {
    return verify_password(password, hash);
  };
  Result<bool> right = co_await blocking(env_, "password check", std::move(job));
  turn.release();
  ++hashed_;
  if (check->row == nullptr && right) right = false;
  if (right) {
    remember(*check, right.value());
  } else {
    NARAD_LOG_ERROR(env_.log, "a password could not be checked", {"error", right.error()});
    if (check->row != nullptr) failures_.unchecked(check->username, env_.clock.mono());
  }
  checks_.erase(check->credentials);
  if (check->row == nullptr && --strangers_ == 0) last_stranger_.reset();
  check->outcome.emplace(std::move(right));
  check->done.notify_all();
}

Task<Result<metastore::UserPtr>> Authenticator::identify(std::string authorization) {
  auto given = parse_basic(authorization);
  if (!given) co_return wrong_credentials();
  const std::string username = std::move(given->username);
  const Fingerprint credentials = fingerprint_of(username, given->password);
  // Twice only if the user's password was changed while it was checked.
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (auto user = verified(username, credentials)) co_return user;
    std::shared_ptr<Check> check;
    if (const auto running = checks_.find(credentials); running != checks_.end()) {
      check = running->second;
    } else {
      const metastore::UserPtr user = proposer_.view()->users.get(username);
      NARAD_CO_TRY(check, begin_check(username, given->password, user, credentials));
    }
    while (!check->outcome) co_await check->done.wait();
    if (!*check->outcome) {
      co_return Error(Errc::internal, "authentication unavailable");
    }
    const metastore::UserPtr now = proposer_.view()->users.get(username);
    const bool same = (now == nullptr) == (check->row == nullptr) &&
                      (now == nullptr || now->password_hash == check->row->password_hash);
    if (same && !check->outcome->value()) co_return wrong_credentials();
  }
  co_return wrong_credentials();
}

Task<Result<std::string>> Authenticator::hash(std::string password) {
  const Salt salt{env_.random.next(), env_.random.next()};
  Mutex::Guard turn = co_await turn_.lock();
  auto job = [password = std::move(password), salt] { return hash_password(password, salt); };
  co_return co_await blocking(env_, "password hash", std::move(job));
}

Task<Result<bool>> Authenticator::is_password_of(metastore::UserPtr user, std::string password) {
  const auto known = verified_.find(user->username);
  // One password has this hash, and it is known which: no other needs to be hashed to be wrong.
  if (known != verified_.end() && known->second.row->password_hash == user->password_hash) {
    co_return known->second.credentials == fingerprint_of(user->username, password);
  }
  Mutex::Guard turn = co_await turn_.lock();
  auto job = [user, password = std::move(password)] {
    return verify_password(password, user->password_hash);
  };
  auto right = co_await blocking(env_, "password check", std::move(job));
  ++hashed_;
  co_return right;
}

Task<void> Authenticator::stop() { co_await tasks_.stop(); }

}  // namespace narad::security
