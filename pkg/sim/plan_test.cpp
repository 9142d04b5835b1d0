#include "pkg/sim/plan.h"

#include <gtest/gtest.h>

#include <set>

#include "pkg/base/text.h"
#include "pkg/sim/runner.h"

namespace narad::sim {
namespace {

PlanShape shape() {
  PlanShape s;
  s.scenario = "test";
  s.kinds = {{"power-cut", 2, 40}, {"partition", 1, 3}, {"never", 0, 0}};
  s.nodes = {1, 2};
  return s;
}

TEST(Plan, WrittenAndRead_IsTheSame) {
  Plan plan = draw_plan(shape(), 7);
  plan.options["workload"] = 60;
  plan.options["segment_bytes"] = -1;
  auto back = parse_plan(plan_text(plan));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back.value(), plan);
}

TEST(Plan, CommentsAndBlankLines_AreSkippedAndFaultsSortedByTime) {
  auto plan = parse_plan(
      "# found on a Friday\n\nnarad-sim plan 1\nscenario moves\nseed 5\n"
      "fault 20 heal 0 0  # last\n  fault 10 partition 1 2\n");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan.value().seed, 5u);
  ASSERT_EQ(plan.value().faults.size(), 2u);
  EXPECT_EQ(plan.value().faults[0], (Fault{10, "partition", 1, 2}));
}

TEST(Plan, DamagedText_IsRefusedWithTheLine) {
  EXPECT_EQ(parse_plan("").error().text(), "the plan is empty");
  EXPECT_EQ(parse_plan("seed 5\n").error().text(),
            "line 1: a plan begins with \"narad-sim plan 1\"");
  for (const char* bad : {"seed x", "seed", "fault 1 kind 2", "fault -1 kind 2 3", "option a",
                          "fault 1 kind two 3", "what 1", "scenario a b"}) {
    auto plan = parse_plan(cat("narad-sim plan 1\n", bad, "\n"));
    ASSERT_FALSE(plan) << bad;
    EXPECT_EQ(plan.error().code(), Errc::invalid_argument);
    EXPECT_EQ(plan.error().text(), cat("line 2: not part of a plan: ", bad));
  }
}

TEST(DrawPlan, SameSeed_SamePlanAndOtherSeedsAllShapes) {
  EXPECT_EQ(draw_plan(shape(), 3), draw_plan(shape(), 3));
  std::set<std::size_t> sizes;
  std::set<std::string> kinds;
  std::set<int> nodes;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Plan plan = draw_plan(shape(), seed);
    sizes.insert(plan.faults.size());
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
      const Fault& f = plan.faults[i];
      kinds.insert(f.kind);
      nodes.insert(f.node);
      EXPECT_GE(f.at_ms, 0);
      EXPECT_LT(f.at_ms, 8'000);
      EXPECT_LE(f.number, f.kind == "partition" ? 3 : 40);
      if (i > 0) {
        EXPECT_LE(plan.faults[i - 1].at_ms, f.at_ms);
      }
    }
  }
  EXPECT_EQ(sizes.size(), 25u) << "0 to 24 faults";
  EXPECT_EQ(kinds, (std::set<std::string>{"partition", "power-cut"}));
  EXPECT_EQ(nodes, (std::set<int>{1, 2}));
}

TEST(Shrink, FailureThatNeedsTwoFaults_KeepsExactlyThose) {
  Plan plan = draw_plan(shape(), 1);
  plan.faults.clear();
  for (int i = 0; i < 100; ++i) plan.faults.push_back({i, "noise", 1, i});
  plan.faults[17].kind = "first";
  plan.faults[71].kind = "second";
  plan.options["workload"] = 60;
  const auto fails = [](const Plan& p) {
    bool first = false, both = false;
    for (const Fault& f : p.faults) {
      first |= f.kind == "first";
      both |= first && f.kind == "second";
    }
    return both && p.option("workload", 0) >= 5;
  };
  const Shrunk shrunk = shrink(plan, fails);
  ASSERT_EQ(shrunk.plan.faults.size(), 2u);
  EXPECT_EQ(shrunk.plan.faults[0].kind, "first");
  EXPECT_EQ(shrunk.plan.faults[1].kind, "second");
  EXPECT_EQ(shrunk.plan.option("workload", 0), 7);
  EXPECT_TRUE(shrunk.complete);
  EXPECT_LT(shrunk.runs, 150u);
}

TEST(Shrink, FailureThatNeedsNoFault_EndsEmpty) {
  Plan plan = draw_plan(shape(), 2);
  while (plan.faults.size() < 5) plan.faults.push_back({1, "x", 1, 1});
  const Shrunk shrunk = shrink(plan, [](const Plan&) { return true; });
  EXPECT_TRUE(shrunk.plan.faults.empty());
}

TEST(Shrink, RunLimit_StopsWithAPlanThatStillFails) {
  Plan plan;
  for (int i = 0; i < 64; ++i) plan.faults.push_back({i, i == 40 ? "bad" : "noise", 1, i});
  const auto fails = [](const Plan& p) {
    for (const Fault& f : p.faults) {
      if (f.kind == "bad") return true;
    }
    return false;
  };
  const Shrunk shrunk = shrink(plan, fails, {}, 3);
  EXPECT_EQ(shrunk.runs, 3u);
  EXPECT_FALSE(shrunk.complete);
  EXPECT_TRUE(fails(shrunk.plan));
}

// ---- the runner ---------------------------------------------------------------------------------

// A world of a few thousand events whose order depends on the seed and the plan alone, or (planted)
// on how often it ran.
struct Toy {
  bool leaks = false;    // something that does not follow from the plan
  bool has_bug = false;  // two power cuts of node 1 lose something
  std::uint64_t runs = 0;

  Outcome operator()(const Plan& plan, const RunWish& wish) {
    ++runs;
    Sim sim(plan.seed);
    sim.set_tracing(wish.trace_lines);
    sim.set_recording(wish.record);
    Rng rng = sim.stream("toy");
    int cuts = 0;
    for (const Fault& f : plan.faults) {
      sim.at(std::chrono::milliseconds(f.at_ms), kWorld, "fault", [&sim, &cuts, f](bool) {
        sim.reach().hit(f.kind);
        cuts += f.kind == "power-cut" && f.node == 1;
      });
    }
    for (int i = 0; i < 2'000; ++i) {
      std::uint64_t at = rng.below(8'000'000'000);
      if (leaks && i == 1'000) at += runs;
      sim.at(Nanos(static_cast<std::int64_t>(at)), 1, "tick", [](bool) {});
    }
    sim.run_until(std::chrono::seconds(9));
    Outcome outcome;
    outcome.take(sim);
    if (has_bug && cuts >= 2) outcome.violation = "a record is lost";
    return outcome;
  }
};

RunOptions quiet(std::uint64_t seeds) {
  RunOptions options;
  options.seeds = seeds;
  return options;
}

const auto kMakePlan = [](std::uint64_t seed) { return draw_plan(shape(), seed); };

TEST(RunSeeds, CorrectScenario_ReportsCountsAndComparesSomeRuns) {
  Toy toy;
  auto options = quiet(200);
  options.double_events_min = 2'010;
  options.must_reach = {"power-cut", "partition", "dragon"};
  const Report report =
      run_seeds(kMakePlan, [&](const Plan& p, const RunWish& w) { return toy(p, w); }, options);
  EXPECT_EQ(report.seeds, 200u);
  EXPECT_TRUE(report.failures.empty());
  EXPECT_GT(report.doubles, 3u);
  EXPECT_LT(report.doubles, 25u);
  EXPECT_EQ(toy.runs, 200 + report.doubles);
  EXPECT_GT(report.short_doubles, 0u);
  EXPECT_LT(report.short_doubles, report.doubles);
  EXPECT_GT(report.reach.count("power-cut"), 100u);
  EXPECT_EQ(report.never_reached, std::vector<std::string>{"dragon"});
  EXPECT_FALSE(report.ok());
  EXPECT_NE(report.text().find("never reached: dragon"), std::string::npos);
  EXPECT_GT(report.events, 400'000u);
}

TEST(RunSeeds, PlantedBug_IsFoundShrunkAndPrinted) {
  Toy toy;
  toy.has_bug = true;
  auto options = quiet(200);
  options.failures_max = 1;
  std::string printed;
  options.print = [&](const std::string& text) { printed += text; };
  const Report report =
      run_seeds(kMakePlan, [&](const Plan& p, const RunWish& w) { return toy(p, w); }, options);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failures[0].violation, "a record is lost");
  EXPECT_EQ(report.failures[0].plan.faults.size(), 2u);
  EXPECT_NE(printed.find("violation: a record is lost"), std::string::npos);
  EXPECT_NE(printed.find("node 1 tick"), std::string::npos) << "the trace of the run";
  EXPECT_NE(printed.find(" power-cut 1 "), std::string::npos) << "the plan";
  EXPECT_EQ(report.failures[0].plan, parse_plan(plan_text(report.failures[0].plan)).value());
}

TEST(RunSeeds, RunThatDoesNotFollowFromItsSeed_IsNoticedAndLocated) {
  Toy toy;
  toy.leaks = true;
  auto options = quiet(400);
  options.failures_max = 1;
  const Report report =
      run_seeds(kMakePlan, [&](const Plan& p, const RunWish& w) { return toy(p, w); }, options);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failures[0].violation.find("two runs of one plan differ at event "), 0u)
      << report.failures[0].violation;
}

TEST(RunSeeds, TimeBudget_EndsTheRun) {
  Toy toy;
  auto options = quiet(1'000);
  int left = 7;
  options.go_on = [&] { return left-- > 0; };
  const Report report =
      run_seeds(kMakePlan, [&](const Plan& p, const RunWish& w) { return toy(p, w); }, options);
  EXPECT_EQ(report.seeds, 7u);
}

}  // namespace
}  // namespace narad::sim
