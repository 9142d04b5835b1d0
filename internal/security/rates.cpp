#include "internal/security/rates.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad::security {
namespace {

constexpr Nanos kBurst = std::chrono::seconds(1);
// No answer or body is larger; keeps the product below within 63 bits.
constexpr std::uint64_t kChargeMax = std::uint64_t{1} << 32;

}  // namespace

Nanos Rates::cost_of_request() const {
  return requests_per_second_ > 0 ? kBurst / static_cast<std::int64_t>(requests_per_second_)
                                  : Nanos(0);
}

Rates::Entry& Rates::entry_of(const std::string& user, Nanos now) {
  if (const auto at = users_.find(user); at != users_.end()) return at->second;
  if (users_.size() >= sweep_at_) {
    std::erase_if(users_, [now](const auto& item) {
      return item.second.requests_paid <= now && item.second.bytes_paid <= now;
    });
    sweep_at_ = std::max<std::size_t>(64, users_.size() * 2);
  }
  return users_.emplace(user, Entry{now, now}).first->second;
}

std::optional<Nanos> Rates::admit(const std::string& user, Nanos now) {
  if (!limited()) return std::nullopt;
  Entry& entry = entry_of(user, now);
  const Nanos after = std::max(entry.requests_paid, now) + cost_of_request();
  const Nanos wait = std::max(after, entry.bytes_paid) - now - kBurst;
  if (wait > Nanos(0)) return wait;
  entry.requests_paid = after;
  return std::nullopt;
}

void Rates::charge(const std::string& user, std::uint64_t bytes, Nanos now) {
  if (bytes_per_second_ == 0) return;
  Entry& entry = entry_of(user, now);
  const std::uint64_t counted = std::min(bytes, kChargeMax);
  const auto cost = counted * 1'000'000'000u / bytes_per_second_;
  entry.bytes_paid = std::max(entry.bytes_paid, now) + Nanos(static_cast<std::int64_t>(cost));
}

void Rates::check_invariants(Nanos now) const {
  for (const auto& [user, entry] : users_) {
    NARAD_ASSERT(entry.requests_paid <= now + kBurst, user);
  }
}

}  // namespace narad::security
