#pragma once
// The record of administrative writes: one JSON object a line, appended to `audit.file`. Lives on
// the node's loop.
//
// A line is on disk before its request is answered; lines of one moment share a sync. It names who,
// from where, what and how it ended, and never holds a password. If it cannot be written, an error
// with all of it goes to the log, and the request is answered all the same: what it did is done.
//
// Rotation: rename the file, then reopen() (SIGHUP).
#include <memory>
#include <string>
#include <vector>

#include "pkg/async/event.h"
#include "pkg/async/task_group.h"

namespace narad::security {

struct AuditEvent {
  UnixMillis time{0};
  std::string user;      // empty: security is off
  std::string remote;    // host:port
  std::string action;    // "create_topic"
  std::string target;    // of what; empty: the request did not get as far as a name
  int status = 0;        // HTTP
  std::string error;     // what the client was told; empty if done
  bool unknown = false;  // nobody could tell the client whether it happened
};

// {"time":…,"user":…,"remote":…,"action":…,"target":…,"outcome":…,"status":…[,"error":…]}, without
// a newline. `outcome` is done (2xx), refused (4xx), failed (5xx: it may have happened) or
// unknown (5xx: the client was told that it may have happened). Pure.
std::string audit_line(const AuditEvent& event);

class Audit {
 public:
  // An empty path: nothing is recorded.
  Audit(Env& env, std::string path);
  ~Audit();

  bool enabled() const { return !path_.empty(); }
  // Opens the file, so that a wrong path is found at start. Errors: what the disk said.
  Task<Result<void>> open();
  // Answers once the line is on disk, or was logged instead. A caller that goes away does not take
  // the line back.
  Task<void> record(AuditEvent event);
  // The following lines go to the file that has the name now. Errors: it cannot be opened; the file
  // so far goes on.
  Task<Result<void>> reopen() { return open(); }
  // Writes what waits, and closes.
  Task<void> stop();

 private:
  struct Line;
  Task<void> write_loop();
  Task<void> write_batch(std::vector<std::shared_ptr<Line>> batch);

  Env& env_;
  const std::string path_;
  std::shared_ptr<File> file_;
  std::vector<std::shared_ptr<Line>> waiting_;
  bool stopping_ = false;
  bool ended_ = true;  // no write_loop runs
  Event work_;
  Event idle_;
  TaskGroup tasks_;
};

}  // namespace narad::security
