#pragma once
// Who sent this request? Lives on the node's loop.
//
// A right password is checked once: its fingerprint is kept with the row it was checked against,
// and counts as long as that user has the same hash; so a changed password, changed grants and a
// deleted user take effect with the next request. Passwords are hashed one at a time (each takes a
// core for 50 ms), equal ones once for all who wait. Nothing here holds a password longer than the
// check of it takes.
//
// A name that nobody has is refused after a hash, as a wrong password is. But such names have few
// places in the row, and who finds them taken is refused together with the last in them: whoever
// invents names by the thousand keeps nobody out who has one.
#include <memory>
#include <string>
#include <unordered_map>

#include "internal/metastore/metastore.h"
#include "internal/security/failures.h"
#include "internal/security/rights.h"
#include "pkg/async/task_group.h"

namespace narad::security {

class Authenticator {
 public:
  // Checks that wait for their turn. Beyond it: unavailable.
  static constexpr std::size_t kWaitingMax = 256;
  // Of those, the ones of users that do not exist. Beyond it one stands for others too.
  static constexpr std::size_t kStrangersMax = 4;

  // REQUIRES: the proposer outlives this.
  Authenticator(Env& env, metastore::Proposer& proposer);

  // The user, if the value of the Authorization header has been found right before. Fast.
  metastore::UserPtr recall(std::string_view authorization) const;
  // The user. Errors: unauthenticated (none, garbled or wrong credentials, in the same words), busy
  // (too many wrong passwords for this user), internal (hashing fails), unavailable (too many
  // passwords wait to be checked). If the caller goes away the check goes on: its result counts.
  Task<Result<metastore::UserPtr>> identify(std::string authorization);

  // Hashes a new password, in turn with the checks. Errors: those of hash_password.
  Task<Result<std::string>> hash(std::string password);
  // Whether it is this user's password, without counting a failure. Answered at once if the user
  // has logged in with what this row holds.
  Task<Result<bool>> is_password_of(metastore::UserPtr user, std::string password);

  Task<void> stop();
  const Failures& failures() const { return failures_; }
  std::uint64_t hashed() const { return hashed_; }  // checks since the start

 private:
  struct Check;
  struct Verified {
    Fingerprint credentials;
    metastore::UserPtr row;
  };
  Fingerprint fingerprint_of(std::string_view username, std::string_view password) const;
  metastore::UserPtr verified(const std::string& username, const Fingerprint& credentials) const;
  Result<std::shared_ptr<Check>> begin_check(const std::string& username, std::string password,
                                             const metastore::UserPtr& user,
                                             const Fingerprint& credentials);
  Task<void> run_check(std::shared_ptr<Check> check);
  void remember(const Check& check, bool right);

  Env& env_;
  metastore::Proposer& proposer_;
  const FingerprintKey key_;
  Failures failures_;
  mutable std::unordered_map<std::string, Verified> verified_;  // by username
  std::unordered_map<Fingerprint, std::shared_ptr<Check>> checks_;
  std::size_t strangers_ = 0;             // checks of users that do not exist
  std::shared_ptr<Check> last_stranger_;  // the newest of them: done after the others
  Mutex turn_;                            // held while a job hashes
  std::uint64_t hashed_ = 0;
  TaskGroup tasks_;
};

}  // namespace narad::security
