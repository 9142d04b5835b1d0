#pragma once
// What the desk and the controller of one node share while it leads: who was heard when, what each
// said of its drain, and a signal that a dead mark's outcome is known. Lives on the node's loop.
#include <map>
#include <string>

#include "internal/cluster/liveness.h"
#include "internal/wire/member_messages.h"
#include "pkg/async/event.h"

namespace narad::cluster {

struct Leadership {
  explicit Leadership(Env& env, LivenessTiming timing = {})
      : liveness(timing), settled(env), began(env) {}
  std::uint64_t term = 0;  // in which this node leads and counts silence; 0: it does not
  Liveness liveness;
  std::map<std::string, wire::DrainStatus> drains;  // by member, as last heard in this term
  Event settled;                                    // after each Liveness::mark_ended()
  Event began;                                      // this node leads, since now
};

}  // namespace narad::cluster
