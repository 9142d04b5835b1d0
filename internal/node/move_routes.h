#pragma once
// What other nodes may ask of this one about moves: a destination (or a sweep) about a partition
// that lives here, anybody about the moves that this node works on and what it keeps aside, a
// destination about a silent member if this node leads. The other end is remote_source.h. Listed
// with lanes and deadlines in docs/internals/peer-protocol.md.
#include <functional>
#include <string>

#include "internal/moves/calls.h"
#include "internal/peer/server.h"
#include "internal/wire/operation_messages.h"

namespace narad::node {

struct MoveDesk {
  // This node as an owner; what it is given for `node` does not count.
  moves::SourceCalls* source = nullptr;
  std::function<wire::MoveReports()> reports;
  // not_leader if this node does not lead.
  std::function<Task<Result<wire::SilenceAnswer>>(std::string node)> silence;
  std::function<Task<Result<wire::SetAsideCopies>>()> quarantine = {};
};

// What `desk` refers to outlives `server`. REQUIRES: `server` does not listen yet.
void add_move_routes(peer::Server& server, MoveDesk desk);

}  // namespace narad::node
