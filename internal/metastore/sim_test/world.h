#pragma once
// A cluster of metastores on simulated machines, under faults that the seed draws, with clients
// that propose and read through random nodes. Everything follows from the seed.
//
// Messages and forwarded proposals travel as the bytes of internal/wire, and are lost, doubled,
// delayed, overtaken and cut off. Machines lose power at random instants and in the middle of disk
// calls, their processes are killed, syncs fail, clocks run at different rates.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "internal/metastore/sim_test/history.h"
#include "pkg/sim/machine.h"

namespace narad::metastore::simtest {

// Planted in the world to show that it would be found.
enum class Defect : std::uint8_t {
  none,
  stale_read,     // a local read served as a leader read
  early_refusal,  // "leadership lost" told as "not done"
};

struct Wish {
  Defect defect = Defect::none;
  bool members_change = false;  // during the faults
};

struct Counters {
  std::map<std::string, std::uint64_t> all;
  void hit(const std::string& mark, std::uint64_t n = 1) { all[mark] += n; }
};

struct RunResult {
  std::optional<std::string> finding;
  std::size_t operations = 0;
  std::size_t unknowns = 0;
  std::size_t clients = 0;
  std::uint64_t trace = 0;
};

RunResult run(std::uint64_t seed, Counters& counters, Wish wish = {});

}  // namespace narad::metastore::simtest
