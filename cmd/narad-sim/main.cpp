// narad-sim: runs whole nodes in the simulator.
//
//   narad-sim --seed 7 [--trace] [--log]   one seed: its plan, what it did, the last steps
//   narad-sim --seeds 2000 [--from 1]      many; the first failure is shrunk and printed
//   narad-sim --scenario cluster ...       clusters of three to five nodes in place of one
//   narad-sim --scenario moves ...         one partition that moves under load, struck at its steps
//   narad-sim --scenario walk --every K    one move, something done at each step that matters and
//                                          at every K-th of the others (simulation.md)
//   narad-sim --budget --floors FILE       as many as fit the time budget, on all processors
//   narad-sim --plan FILE                  a plan from a file instead of one drawn from a seed
//   --defect NAME plants a bug (--defects lists them; with --scenario moves those of moves only).
//
// Exit status: 0 all held, 1 a promise was broken or a run did not repeat, 2 usage, 4 a mark was
// never reached or fewer seeds ran than the floor.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "internal/simtest/world.h"
#include "pkg/base/text.h"

namespace {

using namespace narad;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::optional<std::uint64_t> seed;
  std::uint64_t seeds = 0;
  std::uint64_t from = 1;
  std::string plan_file;
  std::string floors;
  std::optional<std::uint64_t> every;
  std::uint64_t start = 0;
  std::optional<simtest::Deed> deed;
  bool budget = false, trace = false, echo = false;
  std::string scenario = "single-node";
  simtest::Defect defect = simtest::Defect::none;
};

[[noreturn]] void usage(const std::string& why) {
  std::fprintf(stderr,
               "narad-sim: %s\n"
               "usage: narad-sim [--scenario single-node|cluster|moves|walk] and one of\n"
               "       narad-sim --seed N [--trace] [--log] [--defect NAME]\n"
               "       narad-sim --plan FILE [--trace] [--log] [--defect NAME]\n"
               "       narad-sim --seeds N [--from N] [--defect NAME]\n"
               "       narad-sim --budget --floors FILE\n"
               "       narad-sim --scenario walk --every K [--start S] [--seed N] [--deed NAME]\n"
               "       narad-sim --defects\n",
               why.c_str());
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= words.size()) usage(word + " needs a value");
      return words[++i];
    };
    const auto number = [&] {
      const std::string text = value();
      auto n = parse_number<std::uint64_t>(text);
      if (!n) usage(cat(word, " needs a number, not \"", text, "\""));
      return *n;
    };
    if (word == "--seed") {
      a.seed = number();
    } else if (word == "--seeds") {
      a.seeds = number();
    } else if (word == "--from") {
      a.from = number();
    } else if (word == "--every") {
      a.every = number();
    } else if (word == "--deed") {
      const std::string name = value();
      for (auto d = simtest::Deed::none; d <= simtest::Deed::abort;
           d = static_cast<simtest::Deed>(static_cast<int>(d) + 1)) {
        if (simtest::to_string(d) == name) a.deed = d;
      }
      if (!a.deed) usage(cat("no deed is called \"", name, "\""));
    } else if (word == "--start") {
      a.start = number();
    } else if (word == "--plan") {
      a.plan_file = value();
    } else if (word == "--floors") {
      a.floors = value();
    } else if (word == "--budget") {
      a.budget = true;
    } else if (word == "--trace") {
      a.trace = true;
    } else if (word == "--log") {
      a.echo = true;
    } else if (word == "--scenario") {
      a.scenario = value();
      if (a.scenario != simtest::kClusterScenario && a.scenario != simtest::kMovesScenario &&
          a.scenario != simtest::kWalkScenario && a.scenario != "single-node") {
        usage(cat("no scenario is called \"", a.scenario,
                  "\": use single-node, cluster, moves or walk"));
      }
    } else if (word == "--defect") {
      const std::string name = value();
      for (const auto& info : simtest::all_defects()) {
        if (info.name == name) a.defect = info.defect;
      }
      if (a.defect == simtest::Defect::none) {
        usage(cat("no defect is called \"", name, "\" (see --defects)"));
      }
    } else if (word == "--defects") {
      for (const auto& info : simtest::all_defects()) {
        if (a.scenario == simtest::kMovesScenario && (!info.of_moves || info.of_walk)) continue;
        if (a.scenario == simtest::kWalkScenario && !info.of_walk) continue;
        std::printf("%s\n", std::string(info.name).c_str());
      }
      std::exit(0);
    } else {
      usage(cat("unknown argument \"", word, "\""));
    }
  }
  return a;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) usage("cannot read " + path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

sim::RunOptions options_of(const Arguments& a) {
  sim::RunOptions options;
  options.first_seed = a.from;
  options.failures_max = 1;
  options.double_events_min = 10'000;
  options.print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  return options;
}

// How plans are drawn from seeds.
sim::Plan (*plans_of(const Arguments& a))(std::uint64_t) {
  if (a.scenario == simtest::kMovesScenario) return simtest::moves_plan_of;
  if (a.scenario == simtest::kWalkScenario)
    return [](std::uint64_t seed) { return simtest::walk_plan(seed); };
  return a.scenario == simtest::kClusterScenario ? simtest::cluster_plan_of : simtest::plan_of;
}

// The prefix of its lines in .ci/floors.
std::string floors_of(const Arguments& a) {
  return a.scenario == "single-node" ? "simulation" : a.scenario;
}

sim::Scenario scenario_of(const Arguments& a) {
  return [defect = a.defect](const sim::Plan& plan, const sim::RunWish& wish) {
    return simtest::run(plan, wish, defect).outcome;
  };
}

int run_many(const Arguments& a) {
  sim::RunOptions options = options_of(a);
  options.seeds = a.seeds;
  const sim::Report report = sim::run_seeds(plans_of(a), scenario_of(a), options);
  std::printf("%s", report.text().c_str());
  return report.failures.empty() ? 0 : 1;
}

int run_single(const Arguments& a) {
  sim::Plan plan;
  if (a.plan_file.empty()) {
    plan = plans_of(a)(*a.seed);
  } else {
    auto parsed = sim::parse_plan(read_text(a.plan_file));
    if (!parsed) usage(parsed.error().text());
    plan = std::move(parsed.value());
  }
  sim::RunWish wish;
  wish.trace_lines = a.trace ? 20000 : 0;
  const simtest::RunResult r = simtest::run(plan, wish, a.defect, a.echo);
  for (const std::string& line : r.outcome.trace_lines) std::printf("  %s\n", line.c_str());
  std::printf("%s%s\n", sim::plan_text(plan).c_str(), r.options.c_str());
  const auto& c = r.counts;
  std::printf("%s\n",
              cat("sent ", c.sent, ", accepted ", c.accepted, ", refused ", c.refused, ", unknown ",
                  c.unknown, ", delivered ", c.delivered, " (again ", c.redelivered, "), acked ",
                  c.acked, ", topics deleted ", c.topics_deleted, ", events ", r.outcome.events)
                  .c_str());
  if (r.outcome.violation.empty()) return 0;
  std::printf("BROKEN: %s\n", r.outcome.violation.c_str());
  return 1;
}

std::map<std::string, std::uint64_t> read_floors(const std::string& path) {
  std::map<std::string, std::uint64_t> floors;
  std::ifstream in(path);
  if (!in) usage("cannot read " + path);
  for (std::string name, value; in >> name >> value;) {
    floors[name] = parse_number<std::uint64_t>(value).value_or(0);
  }
  return floors;
}

// What a worker process tells its parent, a line a number.
std::string summary(const sim::Report& report) {
  std::string text =
      cat("seeds ", report.seeds, "\ndoubles ", report.doubles, "\nevents ", report.events, "\n");
  for (const auto& [mark, n] : report.reach.all()) text += cat("mark ", n, " ", mark, "\n");
  return text;
}

void add_summary(sim::Report& total, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string word = line.substr(0, space), rest = line.substr(space + 1);
    const std::uint64_t n = std::strtoull(rest.c_str(), nullptr, 10);
    if (word == "seeds") total.seeds += n;
    if (word == "doubles") total.doubles += n;
    if (word == "events") total.events += n;
    if (word == "mark") total.reach.hit(rest.substr(rest.find(' ') + 1), n);
  }
}

// Runs `work` in one process per processor. It answers what its parent is told in `summaries` and
// its exit status; the worst of these is answered.
struct Work {
  std::string summary;
  int status = 0;
};
int in_workers(unsigned workers, const std::function<Work(unsigned)>& work,
               std::vector<std::string>& summaries) {
  std::vector<std::pair<pid_t, int>> children;
  for (unsigned w = 0; w < workers; ++w) {
    int pipes[2];
    if (::pipe(pipes) != 0) return 2;
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(pipes[0]);
      const Work done = work(w);
      std::fflush(stdout);
      FILE* out = ::fdopen(pipes[1], "w");
      std::fputs(done.summary.c_str(), out);
      std::fclose(out);
      ::_exit(done.status);
    }
    ::close(pipes[1]);
    children.emplace_back(child, pipes[0]);
  }
  int worst = 0;
  for (auto [child, fd] : children) {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(fd);
    int status = 0;
    ::waitpid(child, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    summaries.push_back(std::move(text));
  }
  return worst;
}

unsigned processors() { return std::max(1u, std::thread::hardware_concurrency()); }

constexpr std::uint64_t kSeedsApart = 2000;

// One process per processor; each begins at a seed of its own and goes on until the time is up.
int run_budget(const Arguments& a) {
  auto floors = read_floors(a.floors);
  // A shorter budget (by hand) has no floor.
  const char* given = std::getenv("NARAD_SIM_SECONDS");
  const auto budget = given != nullptr ? parse_number<std::uint64_t>(given).value_or(0)
                                       : floors[cat(floors_of(a), "_budget_seconds")];
  const std::uint64_t floor = given != nullptr ? 0 : floors[cat(floors_of(a), "_seeds")];
  const unsigned workers = processors();
  const auto until = Clock::now() + std::chrono::seconds(budget);
  const auto work = [&](unsigned w) {
    sim::RunOptions options = options_of(a);
    // Enough to pass the floor; by hand (no floor) as many as the time allows.
    options.seeds = floor > 0 ? (floor + workers - 1) / workers : 1'000'000;
    // As far apart as a worker can go, so that no seed runs twice and counts for two. At least a
    // fixed step, so that a floor that moves a little does not change which seeds are run.
    options.first_seed = a.from + w * std::max<std::uint64_t>(kSeedsApart, options.seeds);
    options.go_on = [until] { return Clock::now() < until; };
    const sim::Report report = sim::run_seeds(plans_of(a), scenario_of(a), options);
    if (!report.failures.empty()) std::printf("%s", report.text().c_str());
    return Work{summary(report), report.failures.empty() ? 0 : 1};
  };
  std::vector<std::string> summaries;
  const int worst = in_workers(workers, work, summaries);
  sim::Report total;
  for (const std::string& text : summaries) add_summary(total, text);
  if (floor > 0)
    total.never_reached =
        total.reach.missing(simtest::required_marks(a.scenario == simtest::kClusterScenario));
  std::printf("%s", total.text().c_str());
  if (worst != 0) return worst;
  if (total.seeds < floor) {
    std::printf("%s\n", cat("only ", total.seeds, " seeds ran; the floor is ", floor).c_str());
    return 4;
  }
  return total.never_reached.empty() ? 0 : 4;
}

// Every so many steps of one move, each in a run of its own.
int run_walk(const Arguments& a) {
  const std::uint64_t seed = a.seed.value_or(1);
  const simtest::RunResult counted = simtest::run(simtest::walk_plan(seed));
  const simtest::WalkSteps& steps = counted.walk;
  if (!counted.outcome.violation.empty() || !steps.whole) {
    std::printf("the walk of seed %s does not end: %s\n", cat(seed).c_str(),
                counted.outcome.violation.c_str());
    return 1;
  }
  auto points = simtest::walk_points(steps, *a.every, a.start);
  if (a.deed) {
    std::erase_if(points, [&](const auto& p) { return p.deed != *a.deed; });
  }
  std::printf("seed %s: %zu messages, %zu + %zu + %zu disk calls, leader %s: %zu points\n",
              cat(seed).c_str(), steps.messages.size(), steps.calls[0].size(),
              steps.calls[1].size(), steps.calls[2].size(),
              steps.leader_apart ? "apart" : "takes part", points.size());
  constexpr std::uint64_t kFailuresMax = 5;
  const unsigned workers = processors();
  const auto work = [&](unsigned w) {
    sim::Report report;
    std::uint64_t failures = 0;
    for (std::size_t i = w; i < points.size() && failures < kFailuresMax; i += workers) {
      const sim::Plan plan = simtest::walk_plan(seed, points[i]);
      const sim::Outcome outcome = simtest::run(plan, {}, a.defect).outcome;
      ++report.seeds;
      report.events += outcome.events;
      report.reach.add(outcome.reach);
      if (outcome.violation.empty()) continue;
      ++failures;
      std::printf("FAILED at step %s (%s, %s%s): %s\n%s\n", cat(points[i].step).c_str(),
                  cat(simtest::to_string(points[i].deed)).c_str(),
                  cat(simtest::to_string(points[i].role)).c_str(),
                  points[i].lasting ? ", lasting" : "", outcome.violation.c_str(),
                  sim::plan_text(plan).c_str());
      std::fflush(stdout);
    }
    return Work{summary(report), failures == 0 ? 0 : 1};
  };
  std::vector<std::string> summaries;
  const int worst = in_workers(workers, work, summaries);
  sim::Report total;
  for (const std::string& text : summaries) add_summary(total, text);
  std::printf("%s", total.text().c_str());
  if (worst != 0) return worst;
  return total.seeds == points.size() && total.reach.count("walk: the step never came") == 0 ? 0
                                                                                             : 4;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = parse(argc, argv);
  if (a.every && a.scenario != simtest::kWalkScenario) usage("--every is for --scenario walk");
  if (a.budget) return run_budget(a);
  if (a.every) return run_walk(a);
  if (a.seed || !a.plan_file.empty()) return run_single(a);
  if (a.seeds == 0) usage("give --seed, --seeds, --plan or --budget");
  return run_many(a);
}
