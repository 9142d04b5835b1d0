// How fast the ingress accepts, as ratios to one fdatasync measured in the same run.
//
//   internal_ingress_ingress_bench [--check] [DIRECTORY]
//
// DIRECTORY (default: ingress_bench.dir, removed afterwards) must lie on a real disk. --check exits
// with 1 if a budget of the architecture is missed. On a disk too slow for the absolute rates, what
// counts is how many records share the time of one fdatasync.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "internal/ingress/ingress.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"

namespace narad::ingress {
namespace {

constexpr std::size_t kPayload = 256;

MessagePtr message(std::uint64_t n) {
  return std::make_shared<const Message>(Message{Incarnation(7), "orders", PartitionId(n % 8),
                                                 cat("key-", n), UnixMillis(1),
                                                 std::string(kPayload, 'x')});
}

Nanos percentile(std::vector<Nanos>& times, int percent) {
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) * static_cast<std::size_t>(percent) / 100];
}

double micros(Nanos t) { return static_cast<double>(t.count()) / 1000; }

// One record-sized write into reserved space and one datasync, over and over.
Result<Nanos> sync_baseline(Env& env, const std::string& directory) {
  const std::string path = directory + "/baseline";
  NARAD_TRY(auto file, env.fs.open(path, OpenMode::create));
  NARAD_TRY(file->allocate(4u << 20));
  NARAD_TRY(file->sync());
  const Bytes bytes(kPayload + 64, std::byte{'x'});
  std::vector<Nanos> times;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Nanos begin = env.clock.mono();
    NARAD_TRY(write_all(*file, bytes, i * bytes.size()));
    NARAD_TRY(file->datasync());
    times.push_back(env.clock.mono() - begin);
  }
  return percentile(times, 50);
}

Task<double> sync_micros(Env& env, std::string directory) {
  auto job = [e = &env, directory] { return sync_baseline(*e, directory); };
  Result<Nanos> sync = co_await blocking(env, "baseline", std::move(job));
  if (!sync) {
    std::printf("%s\n", sync.error().text().c_str());
    co_return 0;
  }
  std::printf("one write and fdatasync, p50                 %12.1f us\n", micros(sync.value()));
  co_return micros(sync.value());
}

struct Counts {
  std::uint64_t records = 0;
  std::uint64_t errors = 0;
  Nanos until{0};
};

Task<void> single_caller(Env& env, Ingress& ingress, Counts& counts, std::vector<Nanos>* times) {
  while (env.clock.mono() < counts.until) {
    MessagePtr m = message(counts.records);
    const Nanos begin = env.clock.mono();
    auto r = co_await ingress.accept(std::move(m));
    if (times != nullptr) times->push_back(env.clock.mono() - begin);
    ++(r ? counts.records : counts.errors);
  }
}

Task<void> batch_caller(Env& env, Ingress& ingress, Counts& counts, std::size_t size) {
  while (env.clock.mono() < counts.until) {
    std::vector<MessagePtr> batch;
    batch.reserve(size);
    for (std::size_t i = 0; i < size; ++i) batch.push_back(message(i));
    auto r = co_await ingress.accept_batch(std::move(batch));
    (r ? counts.records : counts.errors) += size;
  }
}

// Hands everything over at once, so that the backlog stays flat.
Task<void> hand_over(Ingress& ingress) {
  while (true) {
    co_await ingress.changed().wait();
    ingress.advance_checkpoint(ingress.durable_end());
  }
}

Task<double> rate_of(Env& env, Ingress& ingress, std::size_t callers, std::size_t batch) {
  Counts counts;
  const Nanos begin = env.clock.mono();
  counts.until = begin + std::chrono::seconds(3);
  TaskGroup tasks(env);
  for (std::size_t i = 0; i < callers; ++i) {
    if (batch == 1) {
      tasks.spawn("single", single_caller(env, ingress, counts, nullptr));
    } else {
      tasks.spawn("batch", batch_caller(env, ingress, counts, batch));
    }
  }
  while (tasks.size() > 0) co_await sleep_for(env, std::chrono::milliseconds(1));
  co_await tasks.stop();
  if (counts.errors > 0) std::printf("  %llu errors\n", (unsigned long long)counts.errors);
  co_return static_cast<double>(counts.records) * 1e9 /
      static_cast<double>((env.clock.mono() - begin).count());
}

struct Budget {
  bool check = false;
  bool missed = false;
  void at_least(const char* what, double value, double wanted) {
    const bool good = value >= wanted;
    std::printf("%-44s %12.0f (budget: at least %.0f)%s\n", what, value, wanted,
                good ? "" : "  MISSED");
    missed = missed || !good;
  }
  void below(const char* what, double value, double wanted) {
    const bool good = value < wanted;
    std::printf("%-44s %12.2f (budget: below %.2f)%s\n", what, value, wanted,
                good ? "" : "  MISSED");
    missed = missed || !good;
  }
};

Task<int> bench(Env& env, std::string directory, bool check) {
  Budget budget{check};
  auto made = make_directories(env.fs, directory);
  if (!made) {
    std::printf("%s\n", made.error().text().c_str());
    co_return 2;
  }
  double sync = co_await sync_micros(env, directory);
  Options options;
  options.directory = directory + "/ingress";
  Ingress ingress(env, options);
  auto started = co_await ingress.start();
  if (!started) co_return 2;
  TaskGroup tasks(env);
  tasks.spawn("hand over", hand_over(ingress));

  Counts counts;
  counts.until = env.clock.mono() + std::chrono::seconds(2);
  std::vector<Nanos> times;
  co_await single_caller(env, ingress, counts, &times);
  std::printf("one caller: %zu accepts, %llu errors\n", times.size(),
              (unsigned long long)counts.errors);
  const Nanos p99 = percentile(times, 99);
  const Nanos p50 = percentile(times, 50);
  std::printf("one caller, p50 / p99                        %12.1f / %.1f us\n", micros(p50),
              micros(p99));
  budget.below("one caller, p50 in fdatasyncs", micros(p50) / sync, 2.2);

  // 64 callers that each wait for one sync can share no more than 64 of them.
  sync = co_await sync_micros(env, directory);
  const auto groups = ingress.stats().groups;
  const double singles = co_await rate_of(env, ingress, 64, 1);
  budget.at_least("64 callers, accepts/s", singles, std::min(40'000.0, 0.4 * 64 * 1e6 / sync));
  std::printf("  accepts in the time of one fdatasync       %12.1f\n", singles * sync / 1e6);
  std::printf("  records a group                            %12.1f\n",
              singles * 3 / static_cast<double>(ingress.stats().groups - groups));
  sync = co_await sync_micros(env, directory);
  const double batches = co_await rate_of(env, ingress, 4, 1000);
  // Four times 350 kB take longer to sync than one record.
  budget.at_least("batches of 1000 x 256 B, 4 callers, records/s", batches,
                  std::min(400'000.0, 0.2 * 4000 * 1e6 / sync));
  std::printf("  records in the time of one fdatasync       %12.1f\n", batches * sync / 1e6);

  co_await tasks.stop();
  (void)co_await ingress.close();
  co_return check&& budget.missed ? 1 : 0;
}

}  // namespace
}  // namespace narad::ingress

int main(int argc, char** argv) {
  bool check = false;
  std::string directory = "ingress_bench.dir";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--check") == 0) {
      check = true;
    } else {
      directory = argv[i];
    }
  }
  narad::RuntimeOptions options;
  options.log.level = narad::LogLevel::warn;
  narad::Runtime runtime(options);
  const int code = runtime.run(narad::ingress::bench(runtime.env(), directory, check));
  // Proof: the bench made this directory's contents itself.
  (void)narad::remove_tree(runtime.env().fs, directory);
  return code;
}
