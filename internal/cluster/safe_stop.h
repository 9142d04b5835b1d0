#pragma once
// Whether a member may be stopped for a while without anybody noticing, and everything that speaks
// against it (`narad cluster safe-to-stop`). Pure. Says how things stand, and holds nothing: what
// is true of the moment may have changed by the time that the member stops.
#include <string>

#include "internal/metastore/state.h"
#include "internal/model/operations.h"
#include "internal/wire/operation_messages.h"
#include "pkg/raft/configuration.h"

namespace narad::cluster {

// A voter that the leader has not heard for so long does not count as one that answers: two
// heartbeats, long before it is marked dead.
inline constexpr std::uint64_t kAnswersWithinMs = 10'000;

// REQUIRES: `node` is a member. `facts`: of the leader.
StopVerdict judge_stop(const metastore::State& state, const std::string& node,
                       const raft::Configuration& configuration, const wire::LeaderFacts& facts);

}  // namespace narad::cluster
