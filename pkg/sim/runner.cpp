#include "pkg/sim/runner.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::sim {

void Outcome::take(Sim& sim) {
  trace = sim.trace();
  events = sim.events();
  handlers = sim.handlers();
  reach.add(sim.reach());
  trace_lines = sim.trace_lines();
  steps = sim.take_recording();
}

namespace {
std::string describe(const Sim::Step& step) {
  return cat(format_duration(step.at), " ",
             step.owner == kWorld ? std::string("world") : cat("node ", step.owner), " ", step.tag);
}

std::string first_difference(const std::vector<Sim::Step>& a, const std::vector<Sim::Step>& b) {
  const std::size_t n = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i].hash == b[i].hash) continue;
    std::string out = cat("event ", i, ": ", describe(a[i]), " against ", describe(b[i]));
    if (i > 0) out += cat("; equal up to ", describe(a[i - 1]));
    return out;
  }
  return cat("one run has ", a.size(), " events, the other ", b.size());
}
}  // namespace

std::string compare_runs(const Plan& plan, const Scenario& scenario, std::uint64_t* events) {
  RunWish wish;
  wish.record = true;
  const Outcome a = scenario(plan, wish);
  const Outcome b = scenario(plan, wish);
  if (events != nullptr) *events = a.events;
  if (a.trace == b.trace && a.events == b.events && a.handlers == b.handlers &&
      a.violation == b.violation) {
    return {};
  }
  if (a.steps.empty() || b.steps.empty()) return "two runs of one plan differ";
  return cat("two runs of one plan differ at ", first_difference(a.steps, b.steps));
}

Report run_seeds(const std::function<Plan(std::uint64_t)>& make_plan, const Scenario& scenario,
                 const RunOptions& options) {
  Report report;
  const auto say = [&](const std::string& text) {
    if (options.print) options.print(text);
  };
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    if (options.go_on && !options.go_on()) break;
    const std::uint64_t seed = options.first_seed + i;
    const Plan plan = make_plan(seed);
    Outcome outcome = scenario(plan, RunWish{});
    ++report.seeds;
    report.events += outcome.events;
    report.handlers += outcome.handlers;
    report.reach.add(outcome.reach);
    const bool twice =
        options.double_every != 0 && derive(seed, "run-twice") % options.double_every == 0;
    if (twice && outcome.violation.empty()) {
      const Outcome again = scenario(plan, RunWish{});
      ++report.doubles;
      if (outcome.events < options.double_events_min) ++report.short_doubles;
      if (again.trace != outcome.trace || again.events != outcome.events ||
          again.handlers != outcome.handlers || again.violation != outcome.violation) {
        outcome.violation = compare_runs(plan, scenario);
        if (outcome.violation.empty()) outcome.violation = "two runs of one plan differ, at times";
      }
    }
    if (outcome.violation.empty()) continue;

    Failure failure{plan, outcome.violation};
    say(cat("seed ", seed, ": ", failure.violation, "\n"));
    if (report.failures.empty()) {
      if (options.shrink_first) {
        const auto fails = [&](const Plan& smaller) {
          return !scenario(smaller, RunWish{}).violation.empty();
        };
        // A difference between two runs is not seen in one: such a plan stays as it is.
        if (fails(plan)) {
          const Shrunk shrunk = shrink(plan, fails);
          say(cat("shrunk from ", plan.faults.size(), " faults to ", shrunk.plan.faults.size(),
                  " in ", shrunk.runs, " runs\n"));
          failure.plan = shrunk.plan;
        }
      }
      RunWish wish;
      wish.trace_lines = options.trace_lines;
      const Outcome traced = scenario(failure.plan, wish);
      if (!traced.violation.empty()) failure.violation = traced.violation;
      for (const std::string& line : traced.trace_lines) say(cat(line, "\n"));
      say(cat(plan_text(failure.plan), "violation: ", failure.violation, "\n"));
    }
    report.failures.push_back(std::move(failure));
    if (report.failures.size() >= options.failures_max) break;
  }
  report.never_reached = report.reach.missing(options.must_reach);
  return report;
}

std::string Report::text() const {
  std::string out =
      cat(seeds, " seeds, ", events, " events, ", handlers, " handlers; ", doubles, " run twice (",
          short_doubles, " of them short); ", failures.size(), " failed\n");
  for (const auto& [mark, n] : reach.all()) out += cat("  ", mark, ": ", n, "\n");
  for (const std::string& mark : never_reached) out += cat("never reached: ", mark, "\n");
  for (const Failure& failure : failures) {
    out += cat("seed ", failure.plan.seed, ": ", failure.violation, "\n", plan_text(failure.plan));
  }
  return out;
}

}  // namespace narad::sim
