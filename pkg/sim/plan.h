#pragma once
// A plan: the faults of one simulated run, as plain data. Drawn from a seed before the run, or read
// from a file; printed with every failure; cut down by shrink(). The file format:
//
//   narad-sim plan 1
//   scenario moves
//   seed 123
//   option workload 60
//   fault 294 power-cut 1 34      at (virtual ms), kind, node, number
//
// What a kind or a number means is the scenario's business.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pkg/base/result.h"
#include "pkg/sim/rng.h"

namespace narad::sim {

struct Fault {
  std::int64_t at_ms = 0;
  std::string kind;
  int node = 0;
  std::int64_t number = 0;
  friend bool operator==(const Fault&, const Fault&) = default;
};

struct Plan {
  std::string scenario;
  std::uint64_t seed = 0;
  std::map<std::string, std::int64_t> options;
  std::vector<Fault> faults;  // by time
  friend bool operator==(const Plan&, const Plan&) = default;

  // The option's value, or `otherwise`.
  std::int64_t option(const std::string& name, std::int64_t otherwise) const;
};

std::string plan_text(const Plan& plan);
// invalid_argument with the line number if it is not a plan.
Result<Plan> parse_plan(std::string_view text);

// What to draw faults from.
struct FaultKind {
  std::string kind;
  std::uint32_t weight = 1;
  std::int64_t number_max = 0;  // numbers are drawn from 0 to this, both included
};
struct PlanShape {
  std::string scenario;
  std::vector<FaultKind> kinds;
  std::vector<int> nodes;
  std::int64_t duration_ms = 8'000;
  std::uint64_t faults_max = 24;  // 0 to this many
};
// Each fault comes from a stream of its own: the i-th does not depend on how many there are.
Plan draw_plan(const PlanShape& shape, std::uint64_t seed);

// Delta debugging. REQUIRES: fails(plan). Answers a plan that still fails, from which no single
// fault can be taken: first ever smaller slices of faults, then the options named in `halve`
// (workload sizes), then numbers and nodes are left as they are. At most `runs_max` calls of
// fails().
struct Shrunk {
  Plan plan;
  std::uint64_t runs = 0;
  bool complete = true;  // false: runs_max came first
};
Shrunk shrink(Plan plan, const std::function<bool(const Plan&)>& fails,
              const std::vector<std::string>& halve = {"workload"}, std::uint64_t runs_max = 2'000);

}  // namespace narad::sim
