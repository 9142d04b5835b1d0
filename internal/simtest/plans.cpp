#include <algorithm>

#include "internal/simtest/world.h"

namespace narad::simtest {

sim::Plan plan_of(std::uint64_t seed) {
  sim::PlanShape shape;
  shape.scenario = "single-node";
  shape.nodes = {0};
  shape.duration_ms = 58'000;
  shape.faults_max = 16;
  shape.kinds = {
      {"power_cut", 3, 0},
      {"kill9", 2, 0},
      {"cut_at_call", 4, 120},
      {"eio_write", 2, 20},
      {"eio_sync", 3, 20},
      {"eio_read", 2, 20},
      {"partition_refuses", 2, 9'000},
      {"disk_full", 2, 20'000},
      {"short_io", 1, 300'000},
      {"slow_disk", 2, 2'000},
      {"wall_step", 1, 7'200},
      {"clean_restart", 1, 0},
  };
  return sim::draw_plan(shape, seed);
}

sim::Plan cluster_plan_of(std::uint64_t seed) {
  sim::PlanShape shape;
  shape.scenario = kClusterScenario;
  shape.nodes = {0, 1, 2, 3, 4};
  shape.duration_ms = 58'000;
  shape.faults_max = 20;
  shape.kinds = {
      {"power_cut", 3, 0},
      {"kill9", 2, 0},
      {"cut_at_call", 3, 120},
      {"eio_write", 1, 20},
      {"eio_sync", 2, 20},
      {"eio_read", 1, 20},
      {"partition_refuses", 1, 9'000},
      {"disk_full", 1, 20'000},
      {"slow_disk", 1, 2'000},
      {"wall_step", 1, 7'200},
      {"clean_restart", 1, 0},
      {"isolate", 3, 20'000},
      {"split", 2, 20'000},
      {"one_way", 2, 20'000},
      {"deaf", 1, 20'000},
      {"resets", 2, 3},
      {"slow_link", 1, 8'000},
      {"pause", 2, 15'000},
      {"wipe", 1, 0},
  };
  // Found plans of before (testdata/sim) have no moves; a quarter of the seeds neither.
  const bool moves = seed % 4 != 0;
  if (moves) {
    shape.kinds.push_back({"doom", 2, 4'000});
    shape.kinds.push_back({"ambush", 4, 1'199});
  }
  sim::Plan plan = sim::draw_plan(shape, seed);
  if (moves) plan.options["moves"] = 1;
  return plan;
}

sim::Plan moves_plan_of(std::uint64_t seed) {
  sim::PlanShape shape;
  shape.scenario = kMovesScenario;
  shape.nodes = {0, 1, 2};
  shape.duration_ms = 40'000;
  shape.faults_max = 7;
  shape.kinds = {{"strike", 1, 999'999}};
  sim::Plan plan = sim::draw_plan(shape, seed);
  // A first one in every plan, early enough for the longest.
  sim::Rng first(sim::derive(seed, "first strike"));
  const sim::Fault early{3'000, "strike", static_cast<int>(first.below(3)),
                         static_cast<std::int64_t>(first.below(1'000'000))};
  const auto later = std::find_if(plan.faults.begin(), plan.faults.end(),
                                  [&](const auto& f) { return f.at_ms > early.at_ms; });
  plan.faults.insert(later, early);
  plan.options["workload"] = 300;
  return plan;
}

sim::Plan scripted_plan(std::uint64_t seed, std::uint64_t call, bool torn) {
  sim::Plan plan;
  plan.scenario = "single-node";
  plan.seed = seed;
  plan.options["script"] = 1;
  if (call > 0) {
    plan.faults.push_back(
        {0, "cut_at_call", 0, static_cast<std::int64_t>(2 * (call - 1) + (torn ? 1 : 0))});
  }
  return plan;
}

std::vector<std::string> required_marks(bool cluster) {
  std::vector<std::string> marks{"power cuts",
                                 "torn writes",
                                 "dropped writes",
                                 "garbage sectors",
                                 "lost names",
                                 "EIO",
                                 "ENOSPC",
                                 "produce refused",
                                 "topic deleted",
                                 "nack",
                                 "fault: kill9",
                                 "fault: eio_sync",
                                 "fault: slow_disk",
                                 "fault: clean_restart",
                                 "lease left to expire",
                                 "exit after a failed sync"};
  if (!cluster) {
    marks.emplace_back("short writes");
    return marks;
  }
  for (const char* mark :
       {"delivered by another node than the owner", "rerouted", "fault: isolate", "fault: split",
        "fault: one_way", "fault: deaf", "fault: resets", "fault: slow_link", "fault: pause",
        "topic given up with its disk", "log: leading the cluster", "log: leads no longer",
        "log: leadership handed over", "operator: held moves back", "operator: let moves go on"}) {
    marks.emplace_back(mark);
  }
  return marks;
}

}  // namespace narad::simtest
