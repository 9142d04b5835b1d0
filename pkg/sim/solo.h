#pragma once
// Solo: one machine on an empty network, to run a coroutine of a unit test.
//
//   Task<void> check(Env& env) { ... EXPECT_EQ(...); }
//   TEST(Thing, ...) { sim::Solo solo; solo.run([](Env& env) { return check(env); }); }
//
// run() boots the machine if it is down, runs the task to its end, and leaves the machine up for
// the next run() (kill() or machine.kill() in between as you like).
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "pkg/async/task.h"
#include "pkg/base/assert.h"
#include "pkg/sim/machine.h"

namespace narad::sim {

class Solo {
 public:
  explicit Solo(std::uint64_t seed = 1) : sim(seed), net(sim), machine(sim, net, 0, "n0") {}

  Sim sim;
  SimNet net;
  Machine machine;

  Env& env() {
    if (!machine.up()) machine.boot([](Env&) { return std::shared_ptr<void>(); });
    return machine.env();
  }

  // Runs `make(env)`, a Task<T>, and answers its result; rethrows what it threw. Throws
  // std::runtime_error if it has not ended after `limit` of virtual time, or the node died.
  template <class F>
  auto run(F make, Nanos limit = std::chrono::hours(1)) {
    using T = typename std::invoke_result_t<F&, Env&>::value_type;
    Env& env = this->env();
    auto state = std::make_shared<State<T>>();
    // The task is made inside the loop, and `make` outlives it: so `make` may have captures.
    auto keep = std::make_shared<F>(std::move(make));
    asio::post(env.executor, [state, keep, &env] {
      asio::co_spawn(env.executor, wrap<T>((*keep)(env), state),
                     [state, keep](std::exception_ptr error) {
                       state->error = error;
                       state->done = true;
                     });
    });
    keep.reset();
    const bool ended =
        sim.run_until([&] { return state->done || !machine.up(); }, limit) && state->done;
    if (!ended) throw std::runtime_error("the task did not end");
    if (state->error) std::rethrow_exception(state->error);
    if constexpr (!std::is_void_v<T>) return std::move(*state->value);
  }

  void kill(Machine::Kill kind = Machine::Kill::power_cut) { machine.kill(kind); }

 private:
  template <class T>
  struct State {
    bool done = false;
    std::exception_ptr error;
    std::optional<std::conditional_t<std::is_void_v<T>, bool, T>> value;
  };
  template <class T>
  static Task<void> wrap(Task<T> task, std::shared_ptr<State<T>> state) {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
      state->value.emplace(true);
    } else {
      state->value.emplace(co_await std::move(task));
    }
  }
};

}  // namespace narad::sim
