#pragma once
// Runtime: the doors of this process on Linux, and the loop they complete on. Created once in main,
// on the thread that runs the loop.
//
//   Runtime runtime(options);
//   return runtime.run(serve(runtime.env(), config));
#include <functional>
#include <memory>
#include <string>

#include "pkg/async/task.h"

namespace narad {

struct LogOptions {
  enum class Format : std::uint8_t { json, text };
  LogLevel level = LogLevel::info;
  Format format = Format::json;
  int fd = 1;                             // where lines go; not closed
  std::size_t queue_bytes_max = 4 << 20;  // waiting for a slow reader; beyond it lines are dropped
};

struct RuntimeOptions {
  // Jobs that may block at once. Four syncs of different files overlap; more gain nothing on a
  // disk.
  unsigned blocking_threads = 4;
  // Take over SIGTERM, SIGINT and SIGHUP (Signals). Off in tests and short-lived tools.
  bool handle_signals = false;
  LogOptions log;
};

class Runtime {
 public:
  explicit Runtime(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  // shutdown(), then flushes the log.
  ~Runtime();

  Env& env();
  // Runs the loop until `main` ends; its value. An exception that leaves `main` is logged and
  // answered kExitFailure. Tasks still suspended then stay so until the destructor. May be called
  // again.
  int run(Task<int> main);
  // Ends everything: waits for jobs in progress, destroys every suspended task. Afterwards nothing
  // runs, but the doors still stand, so that objects which outlive their tasks (listeners, task
  // groups) can be destroyed before the runtime. The destructor calls it. Idempotent.
  void shutdown();
  // Takes effect at once, from any thread.
  void set_log_level(LogLevel level);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad
