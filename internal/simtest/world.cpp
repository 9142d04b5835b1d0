#include "internal/simtest/world.h"

#include <algorithm>

#include "internal/simtest/parts.h"
#include "pkg/base/assert.h"
#include "pkg/sqlite/database.h"

namespace narad::simtest {

using namespace std::chrono_literals;

namespace {

constexpr Nanos kFaultsFor = 60s;  // virtual time under faults
constexpr Nanos kCalmMax = 900s;   // by then everything must be handed over and consumable
constexpr Nanos kLookAgain = 5ms;

}  // namespace

World::World(const sim::Plan& plan, const sim::RunWish& wish, Defect defect, bool echo_log)
    : plan_(plan),
      wish_(wish),
      defect_(defect),
      workload_percent_(plan.option("workload", 100)),
      scripted_(plan.option("script", 0) != 0),
      sim_(plan.seed),
      net_(sim_),
      knobs_(scripted_                         ? script_knobs()
             : plan.scenario == kMovesScenario ? draw_load_knobs(sim_)
             : plan.scenario == kWalkScenario  ? walk_knobs(sim_)
                                               : draw_knobs(sim_, plan.scenario == kClusterScenario,
                                                            plan.option("moves", 0) != 0)),
      oracle_(knobs_.nodes > 1, [this] { return sim_.now(); }),
      shown_(static_cast<std::size_t>(knobs_.nodes)),
      went_down_at_(shown_.size(), Nanos(-1h)),
      down_until_(shown_.size(), Nanos(0)) {
  if (plan.scenario == kWalkScenario) {
    walk_.on = true;
    walk_.point.deed = static_cast<Deed>(plan.option("deed", 0));
    walk_.point.role = static_cast<Role>(plan.option("role", 0));
    walk_.point.step = static_cast<std::uint64_t>(plan.option("step", 0));
    walk_.point.lasting = plan.option("lasting", 0) != 0;
  }
  // SQLite's generator is one for the process: it starts anew with every run.
  sim::Rng sqlite_random = sim_.stream("sqlite");
  sqlite::reseed_randomness(sqlite_random);
  sim_.set_tracing(wish.trace_lines);
  sim_.set_recording(wish.record);
  for (int i = 0; i < knobs_.nodes; ++i) {
    machines_.push_back(
        std::make_unique<sim::Machine>(sim_, net_, static_cast<sim::NodeId>(i), host_of(i)));
    machines_.back()->log().set_echo(echo_log);
    if (knobs_.moves) {
      // Any two clocks differ by less than a factor of two: all that moves assume of them.
      sim::Rng random = sim_.stream("clock rate", static_cast<std::uint64_t>(i));
      machines_.back()->clock().set_rate(static_cast<sim::Ppm>(random.range(700'000, 1'350'000)));
    }
    if (knobs_.slow_disk_max > Nanos(0)) {
      machines_.back()->disk().faults.slow = 100'000;
      machines_.back()->disk().faults.slow_max = knobs_.slow_disk_max;
    }
    machines_.back()->set_on_down([this, i](sim::Machine::Kill) { went_down(i); });
  }
}

World::Moment World::moment() {
  look();
  Moment m;
  m.changes = ownership_.changes();
  for (const auto& machine : machines_) {
    m.boots.push_back(machine->boots());
    m.mono.push_back(machine->clock().mono());
  }
  return m;
}

int World::node_of(const std::string& id) const {
  if (machines_.size() == 1) return 0;
  for (int i = 0; i < knobs_.nodes; ++i) {
    if (host_of(i) == id) return i;
  }
  NARAD_ASSERT(false, id);
}

std::optional<int> World::owner_of(const LogName& log) {
  const auto owner = ownership_.owner(log);
  if (!owner) return std::nullopt;
  return node_of(*owner);
}

// False if a node is down or not ready, or `holds` does not hold for it.
bool World::each_node(const std::function<bool(App&)>& holds) {
  return std::all_of(machines_.begin(), machines_.end(), [&](const auto& machine) {
    if (!machine->up()) return false;
    App& app = machine->template component<App>();
    return app.ready() && !app.stopping() && holds(app);
  });
}

bool World::has_disk(int node, const std::string& disk) {
  const auto& machine = machines_[static_cast<std::size_t>(node)];
  return machine->up() && machine->component<App>().ready() &&
         machine->component<App>().has_disk(disk);
}

std::uint64_t World::unsettled() {
  std::uint64_t sum = 0;
  for (const auto& machine : machines_) {
    if (!machine->up() || !machine->component<App>().ready()) return 1;  // nobody knows
    sum += machine->component<App>().node().dispatch_stats().unsettled;
  }
  return sum;
}
std::function<bool()> World::every(Nanos pause, std::function<bool()> holds) {
  return [this, pause, holds = std::move(holds), next = sim_.now()]() mutable {
    if (sim_.now() < next) return false;
    next = sim_.now() + pause;
    return holds();
  };
}

bool World::settle(const char* what, const std::function<bool()>& done) {
  if (sim_.run_until(every(kLookAgain, done), kCalmMax)) return true;
  std::string why = cat("no progress: ", what, " does not end within ", format_duration(kCalmMax),
                        " after all faults stopped");
  for (const auto& machine : machines_) {
    if (machines_.size() > 1) why += cat("; ", machine->host(), ":");
    if (!machine->up())
      why += "; the machine is down";
    else if (!machine->component<App>().ready())
      why += "; the node is not ready";
    else
      why += machine->component<App>().describe();
    if (const auto& exit = machine->last_exit())
      why += cat("; last exit ", exit->code, " (", exit->why, ")");
  }
  oracle_.violation(why);
  return false;
}

void World::read_back(const char* when) {
  const auto ready = [&] { return each_node([](App&) { return true; }); };
  if (!settle(cat("start ", when).c_str(), ready)) return;
  const int before = read_backs_done_;
  for (const auto& machine : machines_) machine->component<App>().start_read_back();
  const int all = before + knobs_.nodes;
  if (!settle(cat("reading back ", when).c_str(), [&] { return read_backs_done_ >= all; })) return;
  if (knobs_.moves) read_copies_set_aside();
  for (const auto& row : machines_[0]->component<App>().topics()) {
    oracle_.topic_read(row->topic.name, row->topic.incarnation, sim_.now(), reroutes());
  }
}

void World::collect_reach() {
  for (const auto& machine : machines_) {
    const auto& d = machine->disk().stats;
    reach_.hit("power cuts", d.cuts);
    reach_.hit("torn writes", d.torn);
    reach_.hit("dropped writes", d.dropped);
    reach_.hit("garbage sectors", d.garbage);
    reach_.hit("lost names", d.names_lost);
    reach_.hit("EIO", d.eio + d.scripted);
    reach_.hit("ENOSPC", d.enospc);
    reach_.hit("short writes", d.short_writes);
  }
}

void World::run_faults() {
  for (const auto& fault : plan_.faults) {
    sim_.at(std::chrono::milliseconds(fault.at_ms), sim::kWorld, "fault", [this, fault](bool) {
      if (phase_ == Phase::faults) apply(fault);
    });
  }
  if (scripted_) {
    // Until the script is through, or the crash has happened and the node is back.
    sim::Machine& machine = *machines_[0];
    sim_.run_until(
        [&] {
          return script_done_ ||
                 (machine.boots() > 1 && machine.up() && machine.component<App>().ready());
        },
        kFaultsFor);
  } else if (walk_.on) {
    sim_.run_until([this] { return watch_walk(); }, kFaultsFor * 2);
  } else if (knobs_.under_load) {
    sim_.run_until(
        [this] {
          watch_moves();
          return false;
        },
        kFaultsFor);
  } else {
    sim_.run_until(kFaultsFor);
  }
}

void World::stop_all_cleanly() {
  for (const auto& machine : machines_) {
    if (!machine->up() || !machine->component<App>().ready()) return;
  }
  for (const auto& machine : machines_) machine->component<App>().stop_cleanly();
  const auto stopped = [&] {
    return std::all_of(machines_.begin(), machines_.end(), [](const auto& machine) {
      return machine->up() && machine->template component<App>().stopped();
    });
  };
  if (!settle("clean stop", stopped)) return;
  for (const auto& machine : machines_) machine->kill(sim::Machine::Kill::process_exit);
  read_back("after a clean stop");
}

RunResult World::run() {
  for (int i = 0; i < knobs_.nodes; ++i) {
    machines_[static_cast<std::size_t>(i)]->boot(
        [this, i](Env& env) { return std::make_shared<App>(env, *this, i); });
  }
  if (knobs_.nodes > 1) look_regularly();
  run_faults();
  disk_calls_ = machines_[0]->disk().ops();
  phase_ = Phase::calm;
  heal();
  for (const auto& machine : machines_) {
    machine->clock().set_rate(sim::kAlways);
    if (!machine->up()) machine->boot_after(500ms);
  }
  // A node that was told to stop cleanly just now is started anew.
  for (const auto& machine : machines_) {
    if (!machine->up()) continue;
    App& app = machine->component<App>();
    if (!app.ready() || app.stopping()) machine->kill(sim::Machine::Kill::process_exit);
  }
  const auto handed_over = [](App& app) {
    return app.node().dispatch_stats().unsettled == 0 && app.node().ingress().is_open();
  };
  const auto given_up = [&] {
    if (!wiped_) return true;
    machines_[0]->component<App>().start_giving_up();
    return settle("giving topics up", [&] { return gave_up_; });
  };
  if (settle("start", [&] { return each_node([](App&) { return true; }); }) && given_up() &&
      settle("hand-over", [&] { return each_node(handed_over); })) {
    for (const auto& machine : machines_) {
      reach_.hit("rerouted", machine->component<App>().node().dispatch_stats().rerouted);
    }
    machines_[0]->component<App>().start_drain();
    if (settle("consuming everything", [&] { return drained_; })) {
      for (const auto& machine : machines_) machine->component<App>().check_lag();
    }
    if (knobs_.moves) end_moves();
    if (walk_.on) check_walk_abort();
    phase_ = Phase::read_back;
    read_back("after the faults");
    for (const auto& machine : machines_) machine->kill(sim::Machine::Kill::power_cut);
    read_back("after a last power cut");
    if (!walk_.on) stop_all_cleanly();
  }
  clean_stop_ = true;
  for (const auto& machine : machines_) {
    if (machine->up()) machine->kill(sim::Machine::Kill::process_exit);
  }
  collect_reach();
  RunResult result;
  result.outcome.take(sim_);
  result.outcome.reach.add(reach_);
  for (const std::string& violation : oracle_.violations()) {
    result.outcome.violation += (result.outcome.violation.empty() ? "" : "\n") + violation;
  }
  result.counts = oracle_.counts();
  result.options = knobs_.text;
  result.disk_calls = disk_calls_;
  result.walk = std::move(walk_.steps);
  return result;
}

RunResult run(const sim::Plan& plan, const sim::RunWish& wish, Defect defect, bool echo_log) {
  return World(plan, wish, defect, echo_log).run();
}

}  // namespace narad::simtest
