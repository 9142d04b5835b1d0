#include "internal/security/failures.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad::security {

bool Failures::idle(const Entry& entry, Nanos now) {
  return entry.full_at <= now && (entry.remembered.empty() || entry.remembered.back().until <= now);
}

// Keeps the number of entries within twice of what is in use.
void Failures::sweep(Nanos now) {
  if (users_.size() < sweep_at_) return;
  std::erase_if(users_, [now](const auto& item) { return idle(item.second, now); });
  sweep_at_ = std::max<std::size_t>(64, users_.size() * 2);
}

Failures::Entry& Failures::entry_of(const std::string& user, const std::string& hash, Nanos now) {
  auto at = users_.find(user);
  if (at == users_.end()) {
    sweep(now);
    at = users_.emplace(user, Entry{now, hash, {}}).first;
  }
  Entry& entry = at->second;
  if (entry.hash != hash) {
    entry.hash = hash;
    entry.remembered.clear();
  }
  while (!entry.remembered.empty() && entry.remembered.front().until <= now) {
    entry.remembered.pop_front();
  }
  return entry;
}

Failures::Verdict Failures::admit(const std::string& user, const std::string& hash,
                                  const Fingerprint& credentials, Nanos now) {
  Entry& entry = entry_of(user, hash, now);
  for (const Wrong& w : entry.remembered) {
    if (w.credentials == credentials) return Verdict::wrong;
  }
  const Nanos after = std::max(entry.full_at, now) + kAttemptEvery;
  if (after - now > kAttemptEvery * kAttemptsMax) return Verdict::locked_out;
  entry.full_at = after;
  return Verdict::check;
}

void Failures::right(const std::string& user, Nanos now) {
  const auto at = users_.find(user);
  if (at == users_.end()) return;
  at->second.full_at = std::max(at->second.full_at - kAttemptEvery, now);
}

void Failures::wrong(const std::string& user, const std::string& hash,
                     const Fingerprint& credentials, Nanos now) {
  Entry& entry = entry_of(user, hash, now);
  if (entry.remembered.size() == kRememberedMax) entry.remembered.pop_front();
  entry.remembered.push_back({credentials, now + kRememberFor});
}

Failures::Verdict Failures::admit_unknown(const Fingerprint& credentials, Nanos now) {
  const auto at = unknown_.find(credentials);
  return at != unknown_.end() && at->second > now ? Verdict::wrong : Verdict::check;
}

void Failures::wrong_unknown(const Fingerprint& credentials, Nanos now) {
  const Nanos until = now + kRememberFor;
  const auto [at, fresh] = unknown_.try_emplace(credentials, until);
  at->second = until;
  if (!fresh) return;
  unknown_order_.push_back(credentials);
  if (unknown_order_.size() <= kUnknownMax) return;
  unknown_.erase(unknown_order_.front());
  unknown_order_.pop_front();
}

int Failures::attempts_left(const std::string& user, Nanos now) const {
  const auto at = users_.find(user);
  if (at == users_.end() || at->second.full_at <= now) return kAttemptsMax;
  const auto missing = (at->second.full_at - now + kAttemptEvery - Nanos(1)) / kAttemptEvery;
  return kAttemptsMax - static_cast<int>(missing);
}

void Failures::check_invariants(Nanos now) const {
  for (const auto& [user, entry] : users_) {
    NARAD_ASSERT(entry.full_at - now <= kAttemptEvery * kAttemptsMax, user);
    NARAD_ASSERT(entry.remembered.size() <= kRememberedMax, user);
    for (const Wrong& w : entry.remembered) NARAD_ASSERT(w.until <= now + kRememberFor, user);
  }
  NARAD_ASSERT(unknown_.size() == unknown_order_.size());
  NARAD_ASSERT(unknown_.size() <= kUnknownMax);
}

}  // namespace narad::security
