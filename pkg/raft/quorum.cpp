#include "pkg/raft/quorum.h"

#include <algorithm>

namespace narad::raft {

std::optional<std::uint64_t> agreed(const std::vector<ReplicaId>& voters,
                                    const std::function<std::uint64_t(ReplicaId)>& reached) {
  if (voters.empty()) return std::nullopt;
  std::vector<std::uint64_t> values;
  values.reserve(voters.size());
  for (ReplicaId voter : voters) values.push_back(reached(voter));
  auto nth = values.begin() + static_cast<std::ptrdiff_t>(majority(voters.size()) - 1);
  std::nth_element(values.begin(), nth, values.end(), std::greater<>());
  return *nth;
}

Tally tally(const std::vector<ReplicaId>& voters, const std::map<ReplicaId, bool>& votes) {
  std::size_t yes = 0;
  std::size_t no = 0;
  for (ReplicaId voter : voters) {
    auto vote = votes.find(voter);
    if (vote == votes.end()) continue;
    ++(vote->second ? yes : no);
  }
  if (!voters.empty() && yes >= majority(voters.size())) return Tally::won;
  bool can_win = yes + (voters.size() - yes - no) >= majority(voters.size());
  return can_win ? Tally::open : Tally::lost;
}

}  // namespace narad::raft
