#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "pkg/base/text.h"
#include "pkg/raft/sim_test/cluster.h"

namespace narad::raft::simtest {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : parse_number<std::uint64_t>(text).value_or(otherwise);
}

TEST(RaftSim, RandomFaults_KeepSafetyAndComeBackToLife) {
  const std::uint64_t first = setting("NARAD_RAFT_FIRST_SEED", 1);
  const std::uint64_t seeds = setting("NARAD_RAFT_SEEDS", 60);
  const std::uint64_t steps = setting("NARAD_RAFT_STEPS", 5'000);
  Counters counters;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Cluster cluster(seed, counters);
    RunResult r = cluster.run(steps);
    ASSERT_FALSE(r.finding) << *r.finding;
  }
  for (const auto& [mark, n] : counters.all) std::cout << n << "\t" << mark << "\n";
  if (seeds < 50) return;
  // A run that never does the rare things proves nothing.
  for (const char* mark : {"crash",
                           "unsynced writes lost",
                           "message lost",
                           "partition",
                           "partition, one way in",
                           "partition, one way out",
                           "partition with a bridge",
                           "elected",
                           "proposal done",
                           "outcome unknown",
                           "read answered",
                           "compacted",
                           "snapshot installed",
                           "damaged snapshot refused",
                           "damaged chunk",
                           "transfer begun",
                           "membership change",
                           "leader removes itself",
                           "newcomer",
                           "disk emptied",
                           "removed replica gone"}) {
    EXPECT_GT(counters.all[mark], 0u) << mark;
  }
}

TEST(RaftSim, SameSeed_RunsTheSame) {
  for (std::uint64_t seed : {11, 12, 13}) {
    Counters counters;
    RunResult a = Cluster(seed, counters).run(12'000);
    RunResult b = Cluster(seed, counters).run(12'000);
    EXPECT_EQ(a.trace, b.trace) << seed;
    EXPECT_FALSE(a.finding) << *a.finding;
  }
}

}  // namespace
}  // namespace narad::raft::simtest
