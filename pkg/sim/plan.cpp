#include "pkg/sim/plan.h"

#include <algorithm>
#include <optional>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::sim {

std::int64_t Plan::option(const std::string& name, std::int64_t otherwise) const {
  auto it = options.find(name);
  return it == options.end() ? otherwise : it->second;
}

std::string plan_text(const Plan& plan) {
  std::string out = cat("narad-sim plan 1\nscenario ", plan.scenario, "\nseed ", plan.seed, "\n");
  for (const auto& [name, value] : plan.options) out += cat("option ", name, " ", value, "\n");
  for (const Fault& f : plan.faults) {
    out += cat("fault ", f.at_ms, " ", f.kind, " ", f.node, " ", f.number, "\n");
  }
  return out;
}

namespace {
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    out.push_back(line.substr(begin, at - begin));
  }
  return out;
}

// Whether the line was understood.
bool parse_line(const std::vector<std::string_view>& words, Plan& plan) {
  if (words[0] == "scenario" && words.size() == 2) {
    plan.scenario = std::string(words[1]);
    return true;
  }
  if (words[0] == "seed" && words.size() == 2) {
    auto seed = parse_number<std::uint64_t>(words[1]);
    if (seed) plan.seed = *seed;
    return seed.has_value();
  }
  if (words[0] == "option" && words.size() == 3) {
    auto value = parse_number<std::int64_t>(words[2]);
    if (value) plan.options[std::string(words[1])] = *value;
    return value.has_value();
  }
  if (words[0] == "fault" && words.size() == 5) {
    auto at = parse_number<std::int64_t>(words[1]);
    auto node = parse_number<int>(words[3]);
    auto number = parse_number<std::int64_t>(words[4]);
    if (!at || !node || !number || *at < 0) return false;
    plan.faults.push_back({*at, std::string(words[2]), *node, *number});
    return true;
  }
  return false;
}

// Those of one time keep their order.
void sort_by_time(std::vector<Fault>& faults) {
  std::multimap<std::int64_t, Fault> sorted;
  for (Fault& fault : faults) sorted.emplace(fault.at_ms, std::move(fault));
  faults.clear();
  for (auto& [at, fault] : sorted) faults.push_back(std::move(fault));
}
}  // namespace

Result<Plan> parse_plan(std::string_view text) {
  Plan plan;
  bool header = false;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (const std::size_t comment = line.find('#'); comment != std::string_view::npos) {
      line = line.substr(0, comment);
    }
    const auto words = words_of(line);
    if (words.empty()) continue;
    if (!header) {
      const std::vector<std::string_view> expected{"narad-sim", "plan", "1"};
      if (words != expected) {
        return Error(Errc::invalid_argument,
                     cat("line ", number, ": a plan begins with \"narad-sim plan 1\""));
      }
      header = true;
      continue;
    }
    if (!parse_line(words, plan)) {
      return Error(Errc::invalid_argument, cat("line ", number, ": not part of a plan: ", line));
    }
  }
  if (!header) return Error(Errc::invalid_argument, "the plan is empty");
  sort_by_time(plan.faults);
  return plan;
}

Plan draw_plan(const PlanShape& shape, std::uint64_t seed) {
  NARAD_ASSERT(!shape.kinds.empty() && !shape.nodes.empty() && shape.duration_ms > 0);
  Plan plan;
  plan.scenario = shape.scenario;
  plan.seed = seed;
  std::uint64_t weights = 0;
  for (const FaultKind& kind : shape.kinds) weights += kind.weight;
  Rng how_many(derive(seed, "plan-size"));
  const std::uint64_t count = how_many.below(shape.faults_max + 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    Rng rng(derive(seed, "plan-fault", i));
    Fault fault;
    fault.at_ms =
        static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(shape.duration_ms)));
    std::uint64_t pick = rng.below(weights);
    const FaultKind* kind = shape.kinds.data();
    while (pick >= kind->weight) pick -= (kind++)->weight;
    fault.kind = kind->kind;
    fault.node = shape.nodes[static_cast<std::size_t>(rng.below(shape.nodes.size()))];
    fault.number =
        static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(kind->number_max) + 1));
    plan.faults.push_back(std::move(fault));
  }
  sort_by_time(plan.faults);
  return plan;
}

namespace {
class Shrinker {
 public:
  Shrinker(Plan plan, const std::function<bool(const Plan&)>& fails, std::uint64_t runs_max)
      : fails_(fails), runs_max_(runs_max) {
    out_.plan = std::move(plan);
  }

  Shrunk run(const std::vector<std::string>& halve) {
    bool smaller = true;
    while (smaller) {  // a smaller workload may need fewer faults, and the other way round
      smaller = drop_faults();
      for (const std::string& name : halve) smaller |= halve_option(name);
    }
    return std::move(out_);
  }

 private:
  // Keeps `candidate` if it still fails.
  bool keep_if_failing(Plan candidate) {
    if (out_.runs >= runs_max_) {
      out_.complete = false;
      return false;
    }
    ++out_.runs;
    if (!fails_(candidate)) return false;
    out_.plan = std::move(candidate);
    return true;
  }

  // Takes ever smaller slices away, down to single faults, until none can go.
  bool drop_faults() {
    bool dropped = false;
    std::size_t slice = out_.plan.faults.size();
    while (slice > 0) {
      bool any = false;
      for (std::size_t at = 0; at < out_.plan.faults.size();) {
        Plan candidate = out_.plan;
        const std::size_t end = std::min(at + slice, candidate.faults.size());
        candidate.faults.erase(candidate.faults.begin() + static_cast<std::ptrdiff_t>(at),
                               candidate.faults.begin() + static_cast<std::ptrdiff_t>(end));
        if (keep_if_failing(std::move(candidate))) {
          any = dropped = true;  // what followed has moved to `at`
        } else {
          at += slice;
        }
      }
      if (slice == 1 && !any) break;
      slice = slice == 1 ? 1 : slice / 2;
      slice = std::min(slice, out_.plan.faults.size());
    }
    return dropped;
  }

  bool halve_option(const std::string& name) {
    bool halved = false;
    while (out_.plan.option(name, 0) > 1) {
      Plan candidate = out_.plan;
      candidate.options[name] /= 2;
      if (!keep_if_failing(std::move(candidate))) break;
      halved = true;
    }
    return halved;
  }

  const std::function<bool(const Plan&)>& fails_;
  const std::uint64_t runs_max_;
  Shrunk out_;
};
}  // namespace

Shrunk shrink(Plan plan, const std::function<bool(const Plan&)>& fails,
              const std::vector<std::string>& halve, std::uint64_t runs_max) {
  return Shrinker(std::move(plan), fails, runs_max).run(halve);
}

}  // namespace narad::sim
