#pragma once
// Rate limits (http-api section 7): so many requests and bytes a second for each user, with a burst
// of one second's worth. Pure: time is passed in. Bytes count once they are known (a body that has
// arrived, an answer that was made), so a user may be in debt, and waits until it is paid.
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "pkg/base/text.h"

namespace narad::security {

class Rates {
 public:
  // 0: no limit.
  Rates(std::uint64_t requests_per_second, std::uint64_t bytes_per_second)
      : requests_per_second_(requests_per_second), bytes_per_second_(bytes_per_second) {}

  bool limited() const { return requests_per_second_ > 0 || bytes_per_second_ > 0; }
  // Counts a request; or answers how long to wait until one would be let in, and counts nothing.
  std::optional<Nanos> admit(const std::string& user, Nanos now);
  void charge(const std::string& user, std::uint64_t bytes, Nanos now);

  std::size_t size() const { return users_.size(); }
  void check_invariants(Nanos now) const;

 private:
  struct Entry {
    // When what was used will have been earned again.
    Nanos requests_paid{0};
    Nanos bytes_paid{0};
  };
  Entry& entry_of(const std::string& user, Nanos now);
  Nanos cost_of_request() const;

  std::uint64_t requests_per_second_;
  std::uint64_t bytes_per_second_;
  std::map<std::string, Entry> users_;
  std::size_t sweep_at_ = 64;
};

}  // namespace narad::security
