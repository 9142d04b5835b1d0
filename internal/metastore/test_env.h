#pragma once
// The smallest world in which a runner can be tested alone: one loop, a virtual clock that leaps
// when nothing is ready, blocking jobs that run a step later, a simulated disk. For tests of single
// components; whole nodes run in pkg/sim.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/async/task.h"
#include "pkg/base/assert.h"
#include "pkg/sim/sim_fs.h"

namespace narad::test {

class TestWorld final : Clock, Timers, Random, Blocking, Net, LogSink, Process, Signals {
  struct Loop : asio::io_context {
    void stop_everything() { shutdown(); }
  };
  Loop context_;

 public:
  TestWorld()
      : env{context_.get_executor(),
            *this,
            *this,
            *this,
            disk,
            *this,
            *this,
            *this,
            *this,
            *this,
            parking} {}
  // Suspended coroutines go first, while what they use still lives.
  ~TestWorld() override { kill(); }

  sim::SimFs disk;
  Parking parking;
  Env env;
  std::vector<std::string> log;  // messages of warn and above
  std::optional<int> exited;     // the code given to Process::exit
  Nanos wall_start = std::chrono::seconds(1'783'615'000);

  // Runs `task` to its end and answers its result; fails the test if everything waits for ever.
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    run(keep(std::move(task), result));
    return std::move(*result);
  }
  void run(Task<void> task) {
    bool done = false;
    asio::co_spawn(env.executor, std::move(task), [&](std::exception_ptr e) {
      NARAD_ASSERT(!e, "the task threw");
      done = true;
    });
    run_until([&] { return done; });
    NARAD_ASSERT(done, "the task waits for something that never comes");
  }
  // Steps until `done()`, or nothing is left to happen.
  template <class Done>
  void run_until(Done done) {
    while (!done() && step()) {
    }
  }
  // Everything that is ready, without letting time pass.
  void settle() {
    context_.restart();
    while (context_.poll_one() != 0) {
    }
  }
  void advance(Nanos by) {
    now_ += by;
    settle();
  }
  asio::io_context& context() { return context_; }

  // The node dies here: its coroutines are destroyed, nothing completes any more.
  void kill() {
    timers_.clear();
    parking.drop_all();
    context_.stop_everything();
  }

 private:
  template <class T>
  static Task<void> keep(Task<T> task, std::optional<T>& result) {
    result.emplace(co_await std::move(task));
  }

  bool step() {
    context_.restart();
    if (context_.poll_one() != 0) return true;
    if (timers_.empty()) return false;
    auto first = timers_.begin();
    now_ = std::max(now_, first->first.first);
    VoidHandler handler = std::move(first->second);
    timers_.erase(first);
    complete(std::move(handler), error_code{});
    return true;
  }

  // ---- the doors
  Nanos mono() const noexcept override { return now_; }
  Nanos boot() const noexcept override { return now_; }
  Nanos wall() const noexcept override { return wall_start + now_; }
  void wait(Nanos delay, VoidHandler handler) override {
    const auto key = std::make_pair(now_ + delay, ++timer_count_);
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) {
      slot.assign([this, key](asio::cancellation_type) {
        auto at = timers_.find(key);
        if (at == timers_.end()) return;
        VoidHandler cancelled = std::move(at->second);
        timers_.erase(at);
        complete(std::move(cancelled), error_code(asio::error::operation_aborted));
      });
    }
    timers_.emplace(key, std::move(handler));
  }
  std::uint64_t next() override {
    random_ += 0x9E3779B97F4A7C15u;
    return random_ ^ (random_ >> 29);
  }
  void run(const char*, UniqueFunction job, VoidHandler handler) override {
    struct Work {
      UniqueFunction job;
      VoidHandler handler;
    };
    auto work = std::make_shared<Work>(Work{std::move(job), std::move(handler)});
    context_.get_executor().execute([work] {
      work->job();
      complete(VoidHandler(std::move(work->handler)), error_code{});
    });
  }
  Result<std::unique_ptr<Listener>> listen(const Endpoint&) override {
    return Error(Errc::unavailable, "no network here");
  }
  void connect(const Endpoint&, StreamHandler) override {}
  bool enabled(LogLevel level) const noexcept override { return level >= LogLevel::warn; }
  void write(const LogRecord& record) override {
    std::string line(record.message);
    for (const LogField& f : record.fields) line += " " + f.key + "=" + f.value;
    log.push_back(line);
  }
  void exit(int code, std::string_view why) override {
    exited = code;
    log.push_back("exit: " + std::string(why));
  }
  void wait(SignalHandler) override {}

  Nanos now_{0};
  std::uint64_t timer_count_ = 0;
  std::map<std::pair<Nanos, std::uint64_t>, VoidHandler> timers_;
  std::uint64_t random_ = 42;
};

}  // namespace narad::test
