#pragma once
// What the desk and the controller of one node share while it leads: who was heard when, and a
// signal that a dead mark's outcome is known. Lives on the node's loop.
#include "internal/cluster/liveness.h"
#include "pkg/async/event.h"

namespace narad::cluster {

struct Leadership {
  explicit Leadership(Env& env, LivenessTiming timing = {}) : liveness(timing), settled(env) {}
  Liveness liveness;
  Event settled;  // after each Liveness::mark_ended()
};

}  // namespace narad::cluster
