#pragma once
// Where partitions that need a home (State::needs_home) should live. Pure. New topics are placed by
// apply() itself; what it could not place (no member was fit) the controller assigns later, by the
// same round.
#include <vector>

#include "internal/metastore/command.h"
#include "internal/metastore/state.h"

namespace narad::cluster {

// At most `max` of them, in order of topics and partitions; none while no member may receive:
// alive, neither draining nor leaving.
std::vector<metastore::AssignPartition> assign_unassigned(const metastore::State& state,
                                                          std::size_t max);

}  // namespace narad::cluster
