#include "internal/simtest/world.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace narad::simtest {
namespace {

TEST(World, WithoutFaults_EverythingArrivesOnce) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    sim::Plan plan;
    plan.seed = seed;
    const RunResult r = run(plan);
    EXPECT_EQ(r.outcome.violation, "") << "seed " << seed << " (" << r.options << ")";
    EXPECT_GT(r.counts.accepted, 20u);
    EXPECT_GT(r.counts.delivered, 20u);
  }
}

TEST(World, UnderRandomFaults_PromisesHold) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const RunResult r = run(plan_of(seed));
    EXPECT_EQ(r.outcome.violation, "") << "seed " << seed << " (" << r.options << ")\n"
                                       << sim::plan_text(plan_of(seed));
  }
}

TEST(ClusterWorld, WithoutFaults_EverythingArrivesOnce) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    sim::Plan plan;
    plan.scenario = kClusterScenario;
    plan.seed = seed;
    const RunResult r = run(plan, {}, Defect::none, std::getenv("ECHO") != nullptr);
    EXPECT_EQ(r.outcome.violation, "") << "seed " << seed << " (" << r.options << ")";
    EXPECT_GT(r.counts.accepted, 20u);
    EXPECT_GT(r.counts.delivered, 20u);
  }
}

TEST(ClusterWorld, UnderRandomFaults_PromisesHold) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const RunResult r = run(cluster_plan_of(seed));
    EXPECT_EQ(r.outcome.violation, "") << "seed " << seed << " (" << r.options << ")\n"
                                       << sim::plan_text(cluster_plan_of(seed));
  }
}

TEST(MovesWorld, StruckAtItsSteps_PromisesHold) {
  std::uint64_t moved = 0, struck = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const RunResult r = run(moves_plan_of(seed));
    EXPECT_EQ(r.outcome.violation, "") << "seed " << seed << " (" << r.options << ")\n"
                                       << sim::plan_text(moves_plan_of(seed));
    for (const auto& [mark, n] : r.outcome.reach.all()) {
      if (mark == "partition moved" || mark == "partition promoted") moved += n;
      if (mark.starts_with("strike: ") && mark != "strike: never came") struck += n;
    }
  }
  EXPECT_GE(moved, 15u);
  EXPECT_GE(struck, 20u);
}

TEST(World, SameSeed_RepeatsEventForEvent) {
  const auto scenario = [](const sim::Plan& plan, const sim::RunWish& wish) {
    return run(plan, wish).outcome;
  };
  std::uint64_t events = 0;
  EXPECT_EQ(sim::compare_runs(plan_of(77), scenario, &events), "");
  EXPECT_GT(events, 1000u);
}

// Every plan that once broke a promise (testdata/sim, with a sentence in its README).
TEST(FoundPlans, OfWholeNodes_StayFixed) {
  int plans = 0;
  for (const auto& entry : std::filesystem::directory_iterator("testdata/sim")) {
    if (entry.path().extension() != ".plan") continue;
    std::ifstream in(entry.path());
    auto plan = sim::parse_plan(std::string(std::istreambuf_iterator<char>(in), {}));
    ASSERT_TRUE(plan) << entry.path() << ": " << plan.error().text();
    const std::string& scenario = plan.value().scenario;
    if (scenario != "single-node" && scenario != kClusterScenario && scenario != kMovesScenario)
      continue;
    ++plans;
    EXPECT_EQ(run(plan.value()).outcome.violation, "") << entry.path();
  }
  EXPECT_GE(plans, 5);
}

std::vector<DefectInfo> bugs_of_a_node() {
  std::vector<DefectInfo> bugs = all_defects();
  std::erase_if(bugs, [](const DefectInfo& d) { return d.of_moves; });
  return bugs;
}

// Teeth: each planted bug is found within a small part of the seeds that CI runs. Those of moves
// take many seeds of whole clusters: .ci/move-bugs, in ./dev long.
class PlantedBug : public testing::TestWithParam<DefectInfo> {};

TEST_P(PlantedBug, IsFound_WithinTheBudget) {
  constexpr std::uint64_t kSeeds = 400;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunResult r = run(plan_of(seed), {}, GetParam().defect);
    if (r.outcome.violation.empty()) continue;
    std::printf("%s found by seed %llu: %s\n", std::string(GetParam().name).c_str(),
                static_cast<unsigned long long>(seed), r.outcome.violation.c_str());
    return;
  }
  FAIL() << GetParam().name << " was not found in " << kSeeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(bugs_of_a_node()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace narad::simtest
