#pragma once
// Guessing passwords is slow (http-api 1.0.1): per user a bucket of five attempts, one back every
// 12 s, and a memory of wrong passwords that costs nothing to answer from. Pure: time is passed in.
//
// Users that do not exist have no bucket, but their wrong passwords are remembered too (the latest
// few thousand of all of them together), so that a client with an old name costs no hashing.
#include <deque>
#include <map>
#include <string>
#include <unordered_map>

#include "internal/security/fingerprint.h"
#include "pkg/base/text.h"

namespace narad::security {

class Failures {
 public:
  static constexpr int kAttemptsMax = 5;
  static constexpr Nanos kAttemptEvery = std::chrono::seconds(12);
  static constexpr std::size_t kRememberedMax = 16;  // per user
  static constexpr Nanos kRememberFor = std::chrono::seconds(60);
  static constexpr std::size_t kUnknownMax = 4096;

  enum class Verdict {
    check,       // look at the password; an attempt was taken for it
    wrong,       // known to be wrong
    locked_out,  // no attempt left
  };
  // `hash` is what the user's password is checked against: with another one nothing that was
  // remembered counts any more. `credentials` covers username and password.
  Verdict admit(const std::string& user, const std::string& hash, const Fingerprint& credentials,
                Nanos now);
  // What the check that admit() allowed has shown. The password was right: its attempt comes back.
  void right(const std::string& user, Nanos now);
  void wrong(const std::string& user, const std::string& hash, const Fingerprint& credentials,
             Nanos now);
  // It could not be checked: its attempt comes back.
  void unchecked(const std::string& user, Nanos now) { right(user, now); }

  // The same for a user that does not exist: check or wrong, never locked out.
  Verdict admit_unknown(const Fingerprint& credentials, Nanos now);
  void wrong_unknown(const Fingerprint& credentials, Nanos now);

  int attempts_left(const std::string& user, Nanos now) const;
  std::size_t size() const { return users_.size() + unknown_.size(); }
  void check_invariants(Nanos now) const;

 private:
  struct Wrong {
    Fingerprint credentials;
    Nanos until{0};
  };
  struct Entry {
    Nanos full_at{0};  // when all attempts are back
    std::string hash;
    std::deque<Wrong> remembered;  // oldest first
  };
  static bool idle(const Entry& entry, Nanos now);
  Entry& entry_of(const std::string& user, const std::string& hash, Nanos now);
  void sweep(Nanos now);

  std::map<std::string, Entry> users_;
  std::size_t sweep_at_ = 64;
  std::unordered_map<Fingerprint, Nanos> unknown_;  // until when
  std::deque<Fingerprint> unknown_order_;           // oldest first; as many as in unknown_
};

}  // namespace narad::security
