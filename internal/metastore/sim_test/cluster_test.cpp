#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "internal/metastore/sim_test/world.h"
#include "pkg/base/text.h"

namespace narad::metastore::simtest {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : parse_number<std::uint64_t>(text).value_or(otherwise);
}

TEST(Cluster, RandomFaults_KeepMetadataLinearizable) {
  const std::uint64_t first = setting("NARAD_METASTORE_FIRST_SEED", 1);
  const std::uint64_t seeds = setting("NARAD_METASTORE_SEEDS", 10);
  Counters counters;
  std::uint64_t operations = 0, unknowns = 0, clients = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const RunResult r = run(seed, counters);
    ASSERT_FALSE(r.finding) << *r.finding;
    operations += r.operations;
    unknowns += r.unknowns;
    clients += r.clients;
  }
  for (const auto& [mark, count] : counters.all) std::cout << mark << ": " << count << "\n";
  std::cout << "operations: " << operations << ", unknown: " << unknowns << "\n";
  if (seeds < 10) return;
  // What a history owes, on average.
  EXPECT_GE(clients, 5 * seeds);
  EXPECT_GE(operations, 200 * seeds);
  EXPECT_GE(unknowns * 20, operations);
  for (const char* mark :
       {"partition", "one-way partition", "bridge", "power cut", "power cut in a disk call",
        "process killed", "sync failed", "disk full", "snapshot installed", "message lost",
        "message delayed", "proposal forwarded", "outcome unknown", "leadership handed over",
        "disk replaced", "node removed", "node isolated"}) {
    EXPECT_GT(counters.all[mark], 0u) << mark;
  }
}

// traps.md 36: a change of members with a partition and a kill lost acknowledged writes.
TEST(Cluster, Trap36_MembersChangeUnderFaults_NoAnsweredWriteIsLost) {
  const std::uint64_t first = setting("NARAD_METASTORE_FIRST_SEED", 1);
  const std::uint64_t seeds = setting("NARAD_METASTORE_SEEDS", 10) / 2;
  Counters counters;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const RunResult r = run(seed, counters, {Defect::none, true});
    ASSERT_FALSE(r.finding) << *r.finding;
  }
  EXPECT_GE(counters.all["members changed"], 2 * seeds);
}

TEST(Cluster, SameSeed_GivesTheSameRun) {
  Counters counters;
  const RunResult a = run(3, counters), b = run(3, counters);
  EXPECT_EQ(a.trace, b.trace);
  EXPECT_EQ(a.operations, b.operations);
}

std::uint64_t seeds_until_found(Defect defect) {
  Counters counters;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const RunResult r = run(seed, counters, {defect, false});
    if (!r.finding) continue;
    EXPECT_NE(r.finding->find("no order explains"), std::string::npos) << *r.finding;
    return seed;
  }
  return 0;
}

TEST(Cluster, LocalReadServedAsALeaderRead_IsFound) {
  EXPECT_GT(seeds_until_found(Defect::stale_read), 0u);
}

// traps.md 32: leadership lost is not failure.
TEST(Cluster, Trap32_UnknownOutcomeToldAsRefusal_IsFound) {
  EXPECT_GT(seeds_until_found(Defect::early_refusal), 0u);
}

}  // namespace
}  // namespace narad::metastore::simtest
