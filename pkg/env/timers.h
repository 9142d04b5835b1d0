#pragma once
// The timer door.
#include "pkg/env/clock.h"
#include "pkg/env/handlers.h"

namespace narad {

class Timers {
 public:
  virtual ~Timers() = default;
  // Completes `handler` after `delay` (mono clock), or with operation_aborted when its cancellation
  // slot fires. Call on the loop.
  virtual void wait(Nanos delay, VoidHandler handler) = 0;
};

}  // namespace narad
