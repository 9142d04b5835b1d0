#pragma once
// Whether a member may leave the cluster, and everything that keeps it (moves.md, "Decommission";
// DEC). Pure: the same function judges an operator's request, says what a drain waits for, and lets
// the controller take the step from which there is no way back.
#include <optional>
#include <string>
#include <vector>

#include "internal/metastore/state.h"
#include "internal/model/operations.h"
#include "internal/wire/member_messages.h"
#include "pkg/raft/configuration.h"

namespace narad::cluster {

inline constexpr std::size_t kMinVoters = 3;

// What the state does not hold.
struct DrainPicture {
  raft::Configuration configuration;  // the newest
  std::string leader;                 // node id
  // What the member last told this leader of its drain; nothing: it told nothing yet.
  std::optional<wire::DrainStatus> status;
  bool leader_told = true;  // false: no leader was asked, and what only it knows is left out
};

enum class DrainAsked : std::uint8_t {
  before,  // may a drain begin? Others that drain count as gone already
  during,  // what does it wait for? Only others that are leaving count as gone
};

// REQUIRES: `node` is a member. `wal_lost`: what its ingress WAL holds is given up if it is dead
// (besides the member's own mark).
DrainVerdict judge_drain(const metastore::State& state, const std::string& node,
                         const DrainPicture& picture, DrainAsked asked, bool wal_lost = false);

// It may be told to leave now: it drains, and nothing keeps it.
bool may_leave(const DrainVerdict& verdict);

// The members that drain and do not leave yet, in the order in which they are to go: dead ones
// first (DEC-7), then by id.
std::vector<std::string> draining_members(const metastore::State& state);

}  // namespace narad::cluster
