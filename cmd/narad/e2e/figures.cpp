#include "cmd/narad/e2e/figures.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

std::vector<Row> rows;

}  // namespace

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void report(const std::string& name, double value, const char* unit, double target, bool at_most) {
  rows.push_back({name, value, target, at_most});
  std::printf("%-52s %12.2f %-10s %s %.2f  %s\n", name.c_str(), value, unit,
              at_most ? "<=" : ">=", target, rows.back().good() ? "ok" : "MISSED");
  std::fflush(stdout);
}

double percentile(std::vector<double>& values, double p) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(p * static_cast<double>(values.size())))];
}

void state(const std::string& name, double value, const char* unit) {
  std::printf("%-52s %12.2f %-10s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

bool all_good() {
  return std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.good(); });
}

double sync_baseline(const std::string& directory) {
  const std::string path = directory + "/baseline";
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  char block[400] = {};
  std::vector<double> took;
  for (int i = 0; i < 1000; ++i) {
    if (::write(fd, block, sizeof block) != sizeof block) std::abort();
    const auto start = Clock::now();
    if (::fdatasync(fd) != 0) std::abort();
    took.push_back(seconds_since(start) * 1e6);
  }
  ::close(fd);
  return percentile(took, 0.5);
}

Usage usage(pid_t pid) {
  Usage u;
  std::ifstream statm(cat("/proc/", pid, "/statm"));
  double size = 0, resident = 0;
  statm >> size >> resident;
  u.rss_mib = resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
  std::ifstream stat(cat("/proc/", pid, "/stat"));
  std::string word;
  double user = 0, system = 0;
  for (int i = 1; i <= 15 && stat >> word; ++i) {
    if (i == 14) user = std::atof(word.c_str());
    if (i == 15) system = std::atof(word.c_str());
  }
  u.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return u;
}

}  // namespace narad::e2e
