#pragma once
// Env: all the doors of one node, passed by reference to everything that waits, stores or talks.
// Nothing but pkg/env/real names the operating system, and nothing but pkg/sim pretends to be one.
// The owner (cmd/narad or the simulator) keeps the doors alive longer than every user of them.
#include "pkg/env/blocking.h"
#include "pkg/env/clock.h"
#include "pkg/env/fs.h"
#include "pkg/env/handlers.h"
#include "pkg/env/log.h"
#include "pkg/env/net.h"
#include "pkg/env/parking.h"
#include "pkg/env/process.h"
#include "pkg/env/random.h"
#include "pkg/env/timers.h"

namespace narad {

struct Env {
  asio::any_io_executor executor;  // the node's loop
  Clock& clock;
  Timers& timers;
  Random& random;
  FileSystem& fs;
  Blocking& blocking;
  Net& net;
  LogSink& log;
  Process& process;
  Signals& signals;
  Parking& parking;
};

}  // namespace narad
