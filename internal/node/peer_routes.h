#pragma once
// What other nodes may ask of this one about messages: the routes of the cluster plane that answer
// from the partitions that live here (the other end is remote_owners.h). Listed with lanes and
// deadlines in docs/internals/peer-protocol.md.
#include "internal/node/local_broker.h"
#include "internal/node/wakes.h"
#include "internal/peer/server.h"

namespace narad::node {

// Everything outlives `server`. REQUIRES: `server` does not listen yet.
void add_broker_routes(peer::Server& server, LocalBroker& local, Wakes& wakes);

}  // namespace narad::node
