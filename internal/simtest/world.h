#pragma once
// World: one whole node on a simulated machine, under a random workload and a plan of faults,
// judged by an Oracle. Everything follows from the seed (and the plan, which may be given instead).
//
//   faults  ->  calm (all healed: progress is demanded)  ->  everything read back  ->  a last power
//   cut  ->  everything read back again  ->  a clean stop and start  ->  and again.
#include <string>
#include <vector>

#include "internal/simtest/defects.h"
#include "internal/simtest/oracle.h"
#include "pkg/sim/plan.h"
#include "pkg/sim/runner.h"

namespace narad::simtest {

// A cluster of three to five nodes in place of one.
inline constexpr const char* kClusterScenario = "cluster";
// Four nodes and one partition under constant load, moved about; at a step of the move that the
// seed draws, one who takes part is paused, cut off or killed.
inline constexpr const char* kMovesScenario = "moves";

// The faults that `seed` draws.
sim::Plan plan_of(std::uint64_t seed);
sim::Plan cluster_plan_of(std::uint64_t seed);
sim::Plan moves_plan_of(std::uint64_t seed);

// One fixed script instead of the random workload (create, produce across segment rolls, consume,
// ack out of order, retention, delete, recreate), and, if `call` is not 0, a power cut at that disk
// call: before it, or (torn) in the middle of it. Run for every call, it visits every crash point.
sim::Plan scripted_plan(std::uint64_t seed, std::uint64_t call = 0, bool torn = false);

struct RunResult {
  sim::Outcome outcome;  // violation: every rule that was broken, one a line
  Oracle::Counts counts;
  std::string options;           // what was drawn from the seed, in words
  std::uint64_t disk_calls = 0;  // that change the disk, up to the calm
};
// `echo_log`: the node's log on standard error.
RunResult run(const sim::Plan& plan, const sim::RunWish& wish = {}, Defect defect = Defect::none,
              bool echo_log = false);

// What a CI run must have met at least once, over all its seeds.
std::vector<std::string> required_marks(bool cluster = false);

}  // namespace narad::simtest
