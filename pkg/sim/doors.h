#pragma once
// The simulated doors of one node that need the scheduler: clock, timers, blocking work, log,
// signals, process. A Machine owns them; they live longer than every boot of the node. Once its
// power is off every call is ignored and its handler dropped: nothing leaves a dead node.
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "pkg/env/blocking.h"
#include "pkg/env/log.h"
#include "pkg/env/process.h"
#include "pkg/env/timers.h"
#include "pkg/sim/sim.h"
#include "pkg/sim/sim_fs.h"

namespace narad::sim {

// Whether the node's process lives. The doors look at it; only the Machine changes it.
struct Power {
  bool on = false;
};

// Virtual time x rate + offset. mono() and boot() start anew when the machine reboots.
class SimClock final : public Clock {
 public:
  explicit SimClock(Sim& sim) : sim_(sim) {}
  Nanos mono() const noexcept override;
  Nanos boot() const noexcept override { return mono() + suspended_; }
  Nanos wall() const noexcept override { return boot() + wall_offset_; }

  // Seconds of this clock per million virtual seconds; time so far stays as it is.
  void set_rate(Ppm rate);
  Ppm rate() const { return rate_; }
  void step_wall(Nanos by) { wall_offset_ += by; }
  // The machine was started anew: mono() begins near zero, wall() goes on.
  void reboot();
  // The machine slept for this (virtual) long: mono() stood still.
  void slept(Nanos virtual_time);
  // How much virtual time it takes until `delay` of this clock has passed.
  Nanos to_virtual(Nanos delay) const;

 private:
  Nanos scaled(Nanos virtual_time) const;
  Sim& sim_;
  Ppm rate_ = kAlways;
  Nanos anchor_virtual_{0}, anchor_mono_{0};
  Nanos suspended_{0};
  Nanos wall_offset_ = std::chrono::seconds(1'767'225'600);  // 2026-01-01
};

class SimTimers final : public Timers {
 public:
  SimTimers(Sim& sim, NodeId node, const Power& power, const SimClock& clock)
      : sim_(sim), node_(node), power_(power), clock_(clock), rng_(sim.stream("timers", index())) {}
  void wait(Nanos delay, VoidHandler handler) override;
  // Every timer rings up to this much late, so that orders vary.
  Nanos stretch_max = std::chrono::microseconds(50);

 private:
  std::uint64_t index() const { return static_cast<std::uint64_t>(node_); }
  Sim& sim_;
  const NodeId node_;
  const Power& power_;
  const SimClock& clock_;
  Rng rng_;
};

// A pool of `threads` workers. A job runs whole at one instant, then its worker stays busy for as
// long as the disk asked for; jobs beyond the workers wait in order.
class SimBlocking final : public Blocking {
 public:
  SimBlocking(Sim& sim, NodeId node, const Power& power, SimFs& disk)
      : sim_(sim),
        node_(node),
        power_(power),
        disk_(disk),
        rng_(sim.stream("blocking", static_cast<std::uint64_t>(node))) {}
  void run(const char* name, UniqueFunction job, VoidHandler handler) override;

  std::size_t threads = 4;
  Nanos latency_min = std::chrono::microseconds(20);
  Nanos latency_spread = std::chrono::milliseconds(2);

  std::size_t waiting() const { return queue_.size(); }
  std::uint64_t jobs() const { return jobs_; }
  void drop_all();  // the node is dead

 private:
  struct Job {
    const char* name;
    UniqueFunction work;
    VoidHandler handler;
  };
  void pump();
  void finish(VoidHandler handler);
  Sim& sim_;
  const NodeId node_;
  const Power& power_;
  SimFs& disk_;
  Rng rng_;
  std::deque<Job> queue_;
  std::size_t busy_ = 0;
  std::uint64_t jobs_ = 0;
};

// Keeps the lines, counts them by message, marks each message as reached ("log: <message>").
class SimLogSink final : public LogSink {
 public:
  SimLogSink(Sim& sim, NodeId node) : sim_(sim), node_(node) {}
  bool enabled(LogLevel level) const noexcept override { return level >= level_; }
  void write(const LogRecord& record) override;

  struct Line {
    Nanos at;
    LogLevel level;
    std::string message;
    std::string text;  // message and fields
  };
  const std::deque<Line>& lines() const { return lines_; }
  std::uint64_t count(std::string_view message) const;
  std::uint64_t count(LogLevel level) const;
  // The newest line with that message, or nullptr.
  const Line* last(std::string_view message) const;
  void set_level(LogLevel level) { level_ = level; }
  void set_echo(bool on) { echo_ = on; }  // to stderr as well
  void clear();

 private:
  static constexpr std::size_t kKeep = 20'000;
  Sim& sim_;
  const NodeId node_;
  LogLevel level_ = LogLevel::info;
  bool echo_ = false;
  std::deque<Line> lines_;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
  std::map<LogLevel, std::uint64_t> levels_;
};

class SimSignals final : public Signals {
 public:
  explicit SimSignals(const Power& power) : power_(power) {}
  void wait(SignalHandler handler) override;
  void deliver(Signal signal);
  void drop_all();

 private:
  const Power& power_;
  std::map<std::uint64_t, SignalHandler> waiting_;
  std::uint64_t last_ = 0;
  std::deque<Signal> pending_;
};

class SimProcess final : public Process {
 public:
  using OnExit = std::function<void(int code, std::string_view why)>;
  SimProcess(const Power& power, OnExit on_exit) : power_(power), on_exit_(std::move(on_exit)) {}
  void exit(int code, std::string_view why) override {
    if (power_.on) on_exit_(code, why);
  }

 private:
  const Power& power_;
  OnExit on_exit_;
};

}  // namespace narad::sim
