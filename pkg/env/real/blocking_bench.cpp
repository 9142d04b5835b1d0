// What the blocking door adds to a sync: an empty job, a sync in a job, and the same sync called
// directly, in microseconds (median and 99th percentile of 2,000), and the ratio that matters.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "pkg/env/real/runtime.h"

namespace narad {
namespace {

struct Times {
  std::vector<double> us;
  void add(Nanos t) { us.push_back(static_cast<double>(t.count()) / 1000); }
  double at(double quantile) {
    std::sort(us.begin(), us.end());
    return us[static_cast<std::size_t>(quantile * static_cast<double>(us.size() - 1))];
  }
};

Task<int> measure(Env& env, std::string path) {
  constexpr int kRounds = 2000;
  auto opened = env.fs.open(path, OpenMode::create);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().text().c_str());
    co_return 1;
  }
  std::shared_ptr<File> file = std::move(opened.value());
  // Written once before, so that no sync pays for the file growing.
  const Bytes zeros(kRounds * 4096, std::byte{0});
  if (!write_all(*file, zeros, 0) || !file->sync()) co_return 1;
  const auto sync_block = [](File& f, int i) -> Result<void> {
    static const Bytes block(4096, std::byte{1});
    NARAD_TRY(write_all(f, block, static_cast<std::uint64_t>(i) * block.size()));
    return f.datasync();
  };
  Times direct, job, empty;
  for (int i = 0; i < kRounds; ++i) {
    Nanos start = env.clock.mono();
    auto r = sync_block(*file, i);
    if (!r) co_return 1;
    direct.add(env.clock.mono() - start);

    auto work = [file, i, sync_block]() { return sync_block(*file, i); };
    start = env.clock.mono();
    r = co_await blocking(env, "sync", std::move(work));
    if (!r) co_return 1;
    job.add(env.clock.mono() - start);

    auto nothing = []() -> Result<void> { return ok(); };
    start = env.clock.mono();
    r = co_await blocking(env, "nothing", std::move(nothing));
    empty.add(env.clock.mono() - start);
  }
  std::printf("%-14s %8s %8s\n", "", "p50 us", "p99 us");
  std::printf("%-14s %8.1f %8.1f\n", "empty job", empty.at(0.5), empty.at(0.99));
  std::printf("%-14s %8.1f %8.1f\n", "direct sync", direct.at(0.5), direct.at(0.99));
  std::printf("%-14s %8.1f %8.1f\n", "sync in a job", job.at(0.5), job.at(0.99));
  std::printf("ratio %.2f\n", job.at(0.5) / direct.at(0.5));
  // The file is ours.
  auto removed = env.fs.remove(path);
  co_return removed ? 0 : 1;
}

}  // namespace
}  // namespace narad

int main(int argc, char** argv) {
  narad::Runtime runtime;
  return runtime.run(narad::measure(runtime.env(), argc > 1 ? argv[1] : "blocking_bench.tmp"));
}
