#pragma once
// World: one whole node on a simulated machine, under a random workload and a plan of faults,
// judged by an Oracle. Everything follows from the seed (and the plan, which may be given instead).
//
//   faults  ->  calm (all healed: progress is demanded)  ->  everything read back  ->  a last power
//   cut  ->  everything read back again  ->  a clean stop and start  ->  and again.
#include <cstdint>
#include <string>
#include <string_view>
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

// One move of that partition, walked through step by step: each change of a disk of its source, its
// destination or the leader is a step, and so is each message between the nodes. A plan names one
// step and what is done there; without a deed the steps are counted.
inline constexpr const char* kWalkScenario = "walk";

// The faults that `seed` draws.
sim::Plan plan_of(std::uint64_t seed);
sim::Plan cluster_plan_of(std::uint64_t seed);
sim::Plan moves_plan_of(std::uint64_t seed);

// One fixed script instead of the random workload (create, produce across segment rolls, consume,
// ack out of order, retention, delete, recreate), and, if `call` is not 0, a power cut at that disk
// call: before it, or (torn) in the middle of it. Run for every call, it visits every crash point.
sim::Plan scripted_plan(std::uint64_t seed, std::uint64_t call = 0, bool torn = false);

// Those who take part in a move.
enum class Role : std::uint8_t { source, target, leader };
inline constexpr std::size_t kRoles = 3;

// What is done at a step. Power goes before or in the middle of a disk call; the others come when a
// message has arrived.
enum class Deed : std::uint8_t {
  none,
  cut_before,  // to a role
  cut_torn,
  kill9,
  power_cut,
  pause,
  separate_all_but,  // two roles from each other: all but the one that is named
  reborn_apart,      // power cut; when it is back it hears of nobody, and nobody of it
  reverted,          // power cut; when it is back its log is an earlier state of it
  abort,             // the move, asked of a role: what it answers has to be true (ABT-7)
};
std::string_view to_string(Role role);
std::string_view to_string(Deed deed);

// One point of a walk. `step` counts from 1, of the role's disk calls or of all messages.
struct WalkPoint {
  Deed deed = Deed::none;
  Role role = Role::source;
  std::uint64_t step = 0;
  bool lasting = false;  // until everything heals, else it ends by itself
};
sim::Plan walk_plan(std::uint64_t seed, const WalkPoint& point = {});

// What a walk without a deed has met.
struct WalkSteps {
  bool whole = false;               // the move has ended and nothing is left of it
  bool leader_apart = false;        // it is neither source nor target
  Role leads = Role::leader;        // else: which of them
  std::vector<bool> calls[kRoles];  // disk calls; true: one that makes something durable or gone
  std::uint64_t flip = 0;           // the message at which another owner was first shown
  std::vector<bool> covered;        // messages while the target is known to have all there is
  std::vector<bool> messages;       // true: next to one that changed what is shown of the move
};
// Every point of that walk: those that are marked, and of the others every `every`-th, from the
// `start`-th on (0: none of them). From 2 on an eighth of them also as lasting ones, else all. An
// abort races against the flip at each message around it.
std::vector<WalkPoint> walk_points(const WalkSteps& steps, std::uint64_t every,
                                   std::uint64_t start);

struct RunResult {
  sim::Outcome outcome;  // violation: every rule that was broken, one a line
  Oracle::Counts counts;
  std::string options;           // what was drawn from the seed, in words
  std::uint64_t disk_calls = 0;  // that change the disk, up to the calm
  WalkSteps walk;                // of a walk
};
// `echo_log`: the node's log on standard error.
RunResult run(const sim::Plan& plan, const sim::RunWish& wish = {}, Defect defect = Defect::none,
              bool echo_log = false);

// What a CI run must have met at least once, over all its seeds.
std::vector<std::string> required_marks(bool cluster = false);

}  // namespace narad::simtest
