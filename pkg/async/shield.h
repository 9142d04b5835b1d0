#pragma once
// Shield: runs tasks that their callers may walk away from, but that nobody cuts short. For steps
// that must not end half-way when the request which caused them is cancelled: opening what must be
// closed again, closing, removing. Lives on one loop, and outlives its tasks: await drain() before
// it goes.
#include <memory>
#include <optional>
#include <utility>

#include "pkg/async/event.h"
#include "pkg/async/task_group.h"

namespace narad {

class Shield {
 public:
  explicit Shield(Env& env) : env_(env), ended_(env), tasks_(env) {}

  // Runs `task` to its end and answers what it answered. If the caller is cancelled it is told so
  // at once; the task goes on, and its result is destroyed when it ends.
  template <class T>
  Task<T> run(const char* name, Task<T> task) {
    auto shared = std::make_shared<Shared<T>>(env_);
    ++running_;
    tasks_.spawn(name, finish<T>(std::move(task), shared, *this));
    while (!shared->result) co_await shared->done.wait();
    co_return std::move(*shared->result);
  }

  // Waits until no task runs.
  Task<void> drain() {
    while (running_ > 0) co_await ended_.wait();
    co_await tasks_.stop();
  }

 private:
  template <class T>
  struct Shared {
    explicit Shared(Env& env) : done(env) {}
    std::optional<T> result;
    Event done;
  };
  template <class T>
  static Task<void> finish(Task<T> task, std::shared_ptr<Shared<T>> shared, Shield& shield) {
    shared->result.emplace(co_await std::move(task));
    shared->done.notify_all();
    --shield.running_;
    shield.ended_.notify_all();
  }

  Env& env_;
  std::size_t running_ = 0;
  Event ended_;
  TaskGroup tasks_;
};

}  // namespace narad
