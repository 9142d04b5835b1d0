#pragma once
// Runs a scenario over many seeds: one seed in twenty twice, to catch whatever does not depend on
// the seed alone; sums up counts and reach marks; says which seeds failed and with which plan.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pkg/sim/plan.h"
#include "pkg/sim/reach.h"
#include "pkg/sim/sim.h"

namespace narad::sim {

// How one run ended.
struct Outcome {
  std::string violation;  // what a checker found; empty if all is well
  std::uint64_t trace = 0;
  std::uint64_t events = 0;
  std::uint64_t handlers = 0;
  Reach reach;                           // counts are reach marks too: crashes, torn writes, ...
  std::vector<std::string> trace_lines;  // if asked for
  std::vector<Sim::Step> steps;          // if asked for

  // Takes trace, events, handlers, reach, trace lines and recorded steps from a finished run.
  void take(Sim& sim);
};

// What a scenario must do: build a Sim from plan.seed, follow the plan, check, answer. Everything
// must follow from the plan.
struct RunWish {
  std::size_t trace_lines = 0;  // for Sim::set_tracing
  bool record = false;          // for Sim::set_recording
};
using Scenario = std::function<Outcome(const Plan& plan, const RunWish& wish)>;

struct RunOptions {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 100;
  // Asked before each seed; false ends the run (a time budget: this library has no clock).
  std::function<bool()> go_on;
  std::uint64_t double_every = 20;           // run twice: seeds picked at random, one in so many
  std::uint64_t double_events_min = 10'000;  // a double run of fewer events is counted apart
  std::vector<std::string> must_reach;       // reach marks that must not stay at zero
  std::uint64_t failures_max = 5;            // stop after so many
  bool shrink_first = true;                  // of the first failure
  std::size_t trace_lines = 60;              // of the first failure, printed
  std::function<void(const std::string&)> print;  // progress and failures; default: nothing
};

struct Failure {
  Plan plan;
  std::string violation;
};

struct Report {
  std::uint64_t seeds = 0;
  std::uint64_t events = 0, handlers = 0;
  std::uint64_t doubles = 0, short_doubles = 0;  // compared; of these with too few events
  std::vector<Failure> failures;                 // the first one shrunk, if it was asked for
  std::vector<std::string> never_reached;
  Reach reach;
  bool ok() const { return failures.empty() && never_reached.empty(); }
  // One line a count, then failures with their plans.
  std::string text() const;
};

Report run_seeds(const std::function<Plan(std::uint64_t seed)>& make_plan, const Scenario& scenario,
                 const RunOptions& options);

// Two runs of one plan: empty if equal, else where they parted.
std::string compare_runs(const Plan& plan, const Scenario& scenario,
                         std::uint64_t* events = nullptr);

}  // namespace narad::sim
