#pragma once
// TaskGroup: the only way to start a task that nobody awaits. The owner calls stop() and waits for
// it before it destroys what the tasks use; the destructor asserts that none is left. Lives on one
// loop.
//
// If the node is killed in simulation, its frames are destroyed where they stand, in no particular
// order, and its components after them. So a task may refer to a component or own what it uses, but
// not refer to the locals of another coroutine, not even of the one that owns its group.
#include <boost/asio/cancellation_signal.hpp>
#include <list>
#include <string>

#include "pkg/async/event.h"

namespace narad {

class TaskGroup {
 public:
  explicit TaskGroup(Env& env);
  TaskGroup(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts `task`. `name` is a string literal for the log. An exception other than cancellation
  // that leaves the task is a bug or bad_alloc: it is logged at error and ends the process. After
  // stop() has begun the task is destroyed unstarted.
  void spawn(const char* name, Task<void> task);

  // Asks every task to stop (cancellation), and waits until all have ended. Idempotent. A
  // cancellation of the caller that comes during stop() does not cut the waiting short; one that
  // came before must have been cleared (clear_cancellation()), or the co_await throws and nothing
  // stops.
  Task<void> stop();
  bool stopping() const;
  std::size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace narad
