#pragma once
// The process door: leaving, and being asked to leave.
#include <string>
#include <string_view>

#include "pkg/env/handlers.h"

namespace narad {

// Exit codes of `narad serve` (decisions.md, "Errors").
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitSyncFailed = 74;
inline constexpr int kExitRemoved = 77;

class Process {
 public:
  virtual ~Process() = default;
  // Ends the process now, with `code`, after logging `why`: no destructors, no flush. In simulation
  // the call returns and the node is torn down as the next event; callers must do nothing after it
  // but return. Thread-safe.
  virtual void exit(int code, std::string_view why) = 0;
  // For people: "pid 4711 on vm-3". Simulated processes have a name of their own.
  virtual std::string describe() const { return "unnamed process"; }
};

enum class Signal { terminate, reload };
using SignalHandler = asio::any_completion_handler<void(error_code, Signal)>;

class Signals {
 public:
  virtual ~Signals() = default;
  // The next SIGTERM/SIGINT (terminate) or SIGHUP (reload). Honours the cancellation slot.
  virtual void wait(SignalHandler handler) = 0;
};

}  // namespace narad
