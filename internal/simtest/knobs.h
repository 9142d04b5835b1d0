#pragma once
// What a run draws from its seed before it begins.
#include <string>

#include "internal/dispatch/dispatcher.h"
#include "internal/ingress/ingress.h"
#include "pkg/config/config.h"
#include "pkg/seglog/log.h"
#include "pkg/sim/sim.h"

namespace narad::simtest {

// Sizes and odds drawn per seed: small and odd ones, so that rolls, splits and caps happen often.
struct Knobs {
  seglog::Knobs log;
  ingress::Options ingress;
  dispatch::Options dispatch;
  Config config;
  std::uint32_t producers = 1, consumers = 1;
  std::size_t message_bytes_max = 200;
  bool reroutes = false;
  int nodes = 1;
  bool moves = false;   // an operator moves partitions about
  bool brakes = false;  // which somebody holds back meanwhile, and lets go on
  // One partition under constant load, which is moved about; whoever takes part is struck.
  bool under_load = false;
  Nanos slow_disk_max{0};  // every tenth disk call takes up to so long
  std::string text;
};

// The name of a node of a cluster, and of its machine.
std::string host_of(int index);
Knobs draw_knobs(const sim::Sim& sim, bool cluster, bool moves);
// Of the scenario "moves": four nodes, one partition, everything that moves wait for is short.
Knobs draw_load_knobs(const sim::Sim& sim);
// Of the scenario "walk": three nodes, one partition, nothing left to chance that a step could
// differ by.
Knobs walk_knobs(const sim::Sim& sim);
// Small enough that the script rolls segments and WAL files, with nothing left to chance.
Knobs script_knobs();

}  // namespace narad::simtest
