#include "pkg/async/task_group.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <vector>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad {

// Shared with the completion handlers of the tasks: a handler that is destroyed without running
// (the node was killed) still takes its task off the list.
struct TaskGroup::State {
  explicit State(Env& e) : env(e), changed(e) {}
  Env& env;
  Event changed;
  bool stopping = false;
  struct Child {
    const char* name;
    asio::cancellation_signal signal;
  };
  std::list<std::shared_ptr<Child>> children;
};

TaskGroup::TaskGroup(Env& env) : state_(std::make_shared<State>(env)) {}

TaskGroup::~TaskGroup() {
  // A dead node's frames go in any order: a group in one of them, or owned by its own tasks, may go
  // before its tasks.
  if (state_->env.parking.dead()) return;
  NARAD_ASSERT(state_->children.empty(), state_->children.front()->name);
}

namespace {

std::string describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace

void TaskGroup::spawn(const char* name, Task<void> task) {
  if (state_->stopping) return;
  auto child = std::make_shared<State::Child>();
  child->name = name;
  state_->children.push_back(child);

  struct Membership {
    std::shared_ptr<State> state;
    std::list<std::shared_ptr<State::Child>>::iterator
        place;  // a list: ten thousand sessions leave
    Membership(std::shared_ptr<State> s, std::list<std::shared_ptr<State::Child>>::iterator p)
        : state(std::move(s)), place(p) {}
    Membership(Membership&&) = default;
    Membership(const Membership&) = delete;
    ~Membership() {
      if (!state) return;
      state->children.erase(place);
      if (state->children.empty()) state->changed.notify_all();
    }
  };
  auto done =
      [member = Membership(state_, std::prev(state_->children.end()))](std::exception_ptr error) {
        if (!error || is_cancellation(error)) return;
        Env& env = member.state->env;
        const std::string what = describe(error);
        NARAD_LOG_ERROR(env.log, "task failed", {"task", (*member.place)->name}, {"error", what});
        env.process.exit(kExitFailure, cat("task ", (*member.place)->name, " failed: ", what));
      };
  asio::co_spawn(state_->env.executor, std::move(task),
                 asio::bind_cancellation_slot(child->signal.slot(), std::move(done)));
}

Task<void> TaskGroup::stop() {
  auto state = state_;
  state->stopping = true;
  // emit() may end children, which changes the list.
  std::vector<std::shared_ptr<State::Child>> children(state->children.begin(),
                                                      state->children.end());
  for (auto& child : children) child->signal.emit(asio::cancellation_type::terminal);
  children.clear();
  // A caller that is cancelled now must still not go on and destroy what the children use.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!state->children.empty()) {
    try {
      co_await state->changed.wait();
    } catch (const boost::system::system_error& e) {
      if (e.code() != asio::error::operation_aborted) throw;
    }
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
}

bool TaskGroup::stopping() const { return state_->stopping; }
std::size_t TaskGroup::size() const { return state_->children.size(); }

}  // namespace narad
