#pragma once
// What benchmarks of the binary print: one line per figure with its target, and whether it is met.
#include <string>
#include <vector>

#include "cmd/narad/e2e/child.h"

namespace narad::e2e {

double seconds_since(Clock::time_point start);
// The value below which the share `p` of them lies. Sorts them.
double percentile(std::vector<double>& values, double p);

struct Row {
  std::string name;
  double value;
  double target;
  bool at_most;
  bool good() const { return at_most ? value <= target : value >= target; }
};
// Prints and remembers one figure.
void report(const std::string& name, double value, const char* unit, double target,
            bool at_most = false);
// One without a target.
void state(const std::string& name, double value, const char* unit);
bool all_good();

// Median time of an fdatasync after a 400-byte append in that directory, in microseconds.
double sync_baseline(const std::string& directory);

struct Usage {
  double rss_mib = 0;
  double cpu_seconds = 0;
};
Usage usage(pid_t pid);

}  // namespace narad::e2e
