#pragma once
// Machine: one simulated computer. Its disk, clock and network address survive; the process on it
// is booted, killed, paused and booted again. Owns all doors of its node.
//
//   Sim sim(seed);
//   SimNet net(sim);
//   Machine m(sim, net, 0, "n0");
//   m.boot([](Env& env) { return std::make_shared<Node>(env); });
//   sim.run_for(5s);
//   m.kill(Machine::Kill::power_cut);
//
// Declare the Sim first, then the SimNet, then the Machines.
#include <boost/asio/executor_work_guard.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pkg/env/env.h"
#include "pkg/sim/doors.h"
#include "pkg/sim/sim.h"
#include "pkg/sim/sim_fs.h"
#include "pkg/sim/sim_net.h"

namespace narad::sim {

class Machine {
 public:
  enum class Kill {
    power_cut,    // everything unsynced is at risk; peers hear nothing, or a late reset
    process_exit  // kill -9 or exit(): the page cache survives, the kernel closes connections
  };
  struct Exit {
    int code = 0;
    std::string why;
    Nanos at{0};
  };
  // Builds what runs on the node and starts it (spawns its tasks on env.executor). Called outside
  // the loop. What it returns is destroyed at the kill, after every frame of the node; whatever it
  // started must refer only to it and to `env`.
  using Factory = std::function<std::shared_ptr<void>(Env& env)>;

  // `host` is the name (or IP literal) under which others connect to it.
  Machine(Sim& sim, SimNet& net, NodeId id, std::string host);
  Machine(const Machine&) = delete;
  ~Machine();

  // REQUIRES: down.
  void boot(Factory factory);
  // The same factory again. REQUIRES: down, and booted before.
  void boot() { boot(factory_); }
  // As a later event, if the machine is still down then.
  void boot_after(Nanos delay);
  // REQUIRES: not called from inside the node's own handlers and jobs (use kill_soon() there).
  // Nothing happens if it is down.
  void kill(Kill kind);
  // From now on the node is inert; it is torn down as the next event.
  void kill_soon(Kill kind);
  // Kills the node at a disk call, see SimFs::cut_power_at: in the middle of a job. Counted from
  // now, 1 = the next mutating one.
  void kill_at_disk_call(std::uint64_t n, Kill kind = Kill::power_cut,
                         SimFs::Cut how = SimFs::Cut::before_call);
  // SIGSTOP: nothing of the node runs, its events wait; its kernel, its peers and all its clocks go
  // on. With `suspended` the machine sleeps as a whole: its mono() stands still.
  void pause(bool suspended = false);
  void resume();
  void signal(Signal signal) { signals_.deliver(signal); }

  bool up() const { return power_.on; }
  bool paused() const { return sim_.paused(id_); }
  NodeId id() const { return id_; }
  const std::string& host() const { return host_; }
  int boots() const { return boots_; }
  // How the process last ended by its own will since it was last booted.
  const std::optional<Exit>& last_exit() const { return exit_; }
  // Called after every teardown, with what it was. May boot again, now or later.
  void set_on_down(std::function<void(Kill)> on_down) { on_down_ = std::move(on_down); }

  // REQUIRES: up.
  Env& env();
  // What the factory returned. REQUIRES: up, and that the factory made a T.
  template <class T>
  T& component() {
    return *static_cast<T*>(component_.get());
  }
  const std::shared_ptr<void>& component_pointer() const { return component_; }

  Sim& sim() { return sim_; }
  SimFs& disk() { return disk_; }
  SimClock& clock() { return clock_; }
  SimTimers& timers() { return timers_; }
  SimBlocking& blocking() { return blocking_; }
  SimLogSink& log() { return log_; }
  // Suspended waits on events and mutexes of this life of the process. REQUIRES: up.
  Parking& parking() { return *parking_; }

 private:
  void go_inert();
  void tear_down(Kill kind);

  Sim& sim_;
  SimNet& net_;
  const NodeId id_;
  const std::string host_;
  Power power_;
  bool dying_ = false;
  std::uint64_t life_ = 0;
  int boots_ = 0;
  bool machine_was_off_ = true;
  std::optional<Exit> exit_;
  Nanos suspended_at_{-1};
  Factory factory_;
  std::function<void(Kill)> on_down_;

  SimFs disk_;
  SimClock clock_;
  SimTimers timers_;
  Rng random_;
  SimBlocking blocking_;
  std::unique_ptr<Net> stack_;
  SimLogSink log_;
  SimProcess process_;
  SimSignals signals_;

  // Of one life of the process.
  std::optional<Parking> parking_;
  std::optional<Env> env_;
  std::unique_ptr<NodeContext> context_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::shared_ptr<void> component_;
};

}  // namespace narad::sim
