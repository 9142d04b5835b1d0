#pragma once
// The door for work that blocks: file calls, SQLite, bcrypt, compression of big frames.
#include "pkg/base/unique_function.h"
#include "pkg/env/handlers.h"

namespace narad {

class Blocking {
 public:
  virtual ~Blocking() = default;
  // Runs `job` off the loop (production: a small pool; simulation: inline at a later virtual time),
  // then completes `handler` on its executor. `name` is a string literal for traces. A started job
  // cannot be cancelled; it owns what it touches, and never touches loop-owned state. Jobs are not
  // ordered among each other: an actor that needs order awaits one before starting the next.
  virtual void run(const char* name, UniqueFunction job, VoidHandler handler) = 0;
};

}  // namespace narad
