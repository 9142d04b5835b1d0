#pragma once
// Security: everything about users that a node does, over any Proposer. Lives on the node's loop;
// the proposer outlives it.
//
// With `enabled` the first user, `admin`, is made by the node that leads as soon as there is none
// (tried every 2 s). With it off every request is allowed and nobody has a name; users can be
// managed all the same, which is the way back in for those who have lost every password.
#include <functional>

#include "internal/security/audit.h"
#include "internal/security/authenticator.h"
#include "internal/security/rates.h"

namespace narad::security {

inline constexpr std::string_view kRootUser = "admin";

struct Options {
  bool enabled = true;
  std::string admin_password;             // of the first user; empty: random, logged once
  std::uint64_t requests_per_second = 0;  // for each user; 0: no limit
  std::uint64_t bytes_per_second = 0;
  std::string audit_file;  // empty: no record
};

struct NewUser {
  std::string username;
  std::string password;
  std::vector<Grant> grants;
};

class Security {
 public:
  static constexpr Nanos kSeedEvery = std::chrono::seconds(2);

  Security(Env& env, metastore::Proposer& proposer, Options options);
  Security(const Security&) = delete;
  ~Security();  // REQUIRES: stop() has ended, or start() was never called

  // Errors: the audit file cannot be opened; an admin password that bcrypt cannot take or
  // that no login could send.
  Task<Result<void>> start();
  Task<void> stop();
  // SIGHUP: opens the audit file anew.
  Task<Result<void>> reload() { return audit_.reopen(); }

  bool enabled() const { return options_.enabled; }
  Authenticator& authenticator() { return authenticator_; }
  Rates& rates() { return rates_; }
  Audit& audit() { return audit_; }
  metastore::ViewPtr view() const { return proposer_.view(); }

  // ---- changing users, all durable when they answer. Errors of all: not_found, exists,
  // invalid_argument, conflict (it was changed since `user` was read), unavailable,
  // unknown_outcome; a password that bcrypt cannot take is `internal`, as the contract has it.
  Task<Result<User>> create_user(NewUser user);
  Task<Result<User>> set_grants(metastore::UserPtr user, std::vector<Grant> grants);
  Task<Result<User>> set_password(metastore::UserPtr user, std::string password);
  Task<Result<User>> delete_user(metastore::UserPtr user);

 private:
  Task<Result<std::string>> hash(std::string password);
  Task<Result<User>> propose(metastore::Command command);
  Task<void> seed_loop();
  Task<Result<User>> seed(std::string password);

  Env& env_;
  metastore::Proposer& proposer_;
  const Options options_;
  Authenticator authenticator_;
  Rates rates_;
  Audit audit_;
  TaskGroup tasks_;
};

}  // namespace narad::security
