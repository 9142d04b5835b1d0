#pragma once
// Majorities: what a set of voters has agreed on. Free functions over plain values, so that they
// can be held against a brute-force definition in tests.
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "pkg/raft/types.h"

namespace narad::raft {

// The size of a majority of `voters` (at least 1).
inline std::size_t majority(std::size_t voters) { return voters / 2 + 1; }

// The highest value that a majority of `voters` has reached; nothing if there are no voters.
// `reached` answers a voter's value.
std::optional<std::uint64_t> agreed(const std::vector<ReplicaId>& voters,
                                    const std::function<std::uint64_t(ReplicaId)>& reached);

enum class Tally { open, won, lost };
// Votes of replicas that are not voters count for nothing.
Tally tally(const std::vector<ReplicaId>& voters, const std::map<ReplicaId, bool>& votes);

}  // namespace narad::raft
