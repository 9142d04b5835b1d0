#pragma once
// Asks several nodes the same, all at once, and waits for nobody beyond a deadline. Lives on the
// node's loop.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::node {

template <class T>
class AskAll {
 public:
  // What one node answers. What it refers to outlives this up to stop().
  using Ask = std::function<Task<Result<T>>(std::string node, Nanos deadline)>;
  using Answers = std::map<std::string, Result<T>>;

  AskAll(Env& env, Ask ask) : env_(env), ask_(std::move(ask)), tasks_(env) {}

  // One entry per node asked. unreachable: no answer within `deadline`. Answers as soon as all
  // have.
  Task<Answers> ask(std::vector<std::string> nodes, Nanos deadline) {
    const Deadline end = Deadline::after(env_, deadline);
    auto round = std::make_shared<Round>(env_);
    round->open = nodes.size();
    for (const std::string& node : nodes) {
      tasks_.spawn("ask a node", ask_one(this, node, deadline, round));
    }
    while (round->open > 0 && !end.passed(env_)) {
      (void)co_await round->changed.wait_for(end.left(env_));
    }
    Answers answers = std::move(round->answers);
    for (const std::string& node : nodes) {
      answers.try_emplace(node, Error(Errc::unreachable, cat("node ", node, " did not answer in ",
                                                             format_duration(deadline))));
    }
    co_return answers;
  }
  Task<void> stop() { return tasks_.stop(); }

 private:
  struct Round {
    explicit Round(Env& env) : changed(env) {}
    Answers answers;
    std::size_t open = 0;
    Event changed;
  };

  static Task<void> ask_one(AskAll* self, std::string node, Nanos deadline,
                            std::shared_ptr<Round> round) {
    auto answer = co_await self->ask_(node, deadline);
    round->answers.insert_or_assign(std::move(node), std::move(answer));
    --round->open;
    round->changed.notify_all();
  }

  Env& env_;
  const Ask ask_;
  TaskGroup tasks_;
};

}  // namespace narad::node
