#pragma once
// The dispatcher: hands every record that the ingress WAL holds durably to the partition it belongs
// to, and advances the WAL's checkpoint. Plan (plan.h) decides, this waits. Lives on the node's
// loop.
//
// Promise: every durable record is handed over at least once, and exactly once unless it was
// rerouted (storage.md, "Exactly-once hand-off"). Nothing is lost by a crash at any point: the
// checkpoint never passes a record that is not settled, and a restart replays from it.
#include <memory>

#include "internal/dispatch/plan.h"
#include "internal/dispatch/source.h"
#include "internal/dispatch/target.h"
#include "pkg/async/task_group.h"

namespace narad::dispatch {

struct Options {
  PlanOptions plan;
  Nanos deadline = std::chrono::seconds(10);   // an answer counts only this long after sending
  Nanos stop_grace = std::chrono::seconds(2);  // stop() lets batches in flight finish this long
  std::size_t read_records_max = 16384;
  std::uint64_t read_bytes_max = 8u << 20;
};

class Dispatcher {
 public:
  // `source` and `target` outlive the dispatcher.
  Dispatcher(Env& env, Options options, RecordSource& source, CommitTarget& target);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;

  void start();
  // Sends nothing more, gives batches in flight a moment to finish, stores the checkpoint with the
  // source, and returns when no task is left. Idempotent.
  Task<void> stop();

  PlanStats stats() const;
  // For /readyz: empty, or what keeps records from being handed over right now.
  std::string trouble() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace narad::dispatch
