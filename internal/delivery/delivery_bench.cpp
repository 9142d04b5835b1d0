// What delivery itself costs a message, over a log in memory and with its journal on a real disk,
// as ratios to the bare lease table measured in the same run.
//
//   internal_delivery_delivery_bench [--check] [DIRECTORY]
//
// DIRECTORY (default: delivery_bench.dir, removed afterwards) must lie on a real disk. --check
// exits with 1 if delivery takes more than a fifth of what the architecture allows a message over
// HTTP.
#include <cstdio>
#include <cstring>

#include "internal/delivery/delivery.h"
#include "pkg/env/real/runtime.h"

namespace narad::delivery {
namespace {

constexpr std::size_t kPayload = 256;
constexpr Nanos kTime = std::chrono::seconds(2);

// As many records as anybody asks for.
class EndlessLog final : public RecordSource {
 public:
  explicit EndlessLog(Env& env) : committed_(env) {}
  LogBounds bounds() const override { return {Offset(0), Offset(std::uint64_t{1} << 50)}; }
  Event& committed() override { return committed_; }
  Task<Result<ReadBatch>> read(Offset from, std::uint32_t records_max, std::uint64_t) override {
    ReadBatch out;
    out.records.resize(records_max);
    for (StoredRecord& record : out.records) {
      record.offset = from;
      record.key = "key-1";
      record.payload = payload_;
      from = from.next();
    }
    out.next = from;
    co_return out;
  }

 private:
  Event committed_;
  const std::string payload_ = std::string(kPayload, 'x');
};

struct Shared {
  Env& env;
  std::shared_ptr<Delivery> delivery;
  Nanos until;
  std::uint64_t records = 0;
  std::uint64_t errors = 0;
};

Task<void> consume_and_ack(Shared& shared, std::size_t batch) {
  ConsumeOptions options;
  options.records_max = batch;
  options.caps = {1'000'000, 1'000'000};
  std::vector<Lease> leases;
  while (shared.env.clock.mono() < shared.until) {
    auto result = co_await shared.delivery->consume(options);
    if (!result) {
      ++shared.errors;
      continue;
    }
    leases.clear();
    for (const LeasedRecord& leased : result.value().records) {
      leases.push_back({leased.record.offset, leased.nonce});
    }
    co_await yield(shared.env);  // the request and the answer between the two calls
    const auto statuses =
        shared.delivery->settle_many(SettleMode::ack, leases, options.caps, options.visibility);
    for (SettleStatus status : statuses)
      ++(status == SettleStatus::done ? shared.records : shared.errors);
  }
}

Task<double> rate_of(Env& env, const std::string& directory, std::size_t callers,
                     std::size_t batch) {
  DeliveryConfig config;
  config.partition = {"bench", PartitionId(0)};
  config.directory = directory;
  config.read_ahead = std::make_shared<ReadAheadBudget>(64u << 20);
  auto opened = co_await Delivery::open(env, config, std::make_shared<EndlessLog>(env));
  if (!opened) {
    std::printf("%s\n", opened.error().text().c_str());
    co_return 0;
  }
  Shared shared{env, std::move(opened).value(), env.clock.mono() + kTime};
  const Nanos begin = env.clock.mono();
  TaskGroup tasks(env);
  for (std::size_t n = 0; n < callers; ++n) {
    tasks.spawn("consume and ack", consume_and_ack(shared, batch));
  }
  while (tasks.size() > 0) co_await sleep_for(env, std::chrono::milliseconds(1));
  const double seconds = static_cast<double>((env.clock.mono() - begin).count()) / 1e9;
  co_await tasks.stop();
  (void)co_await shared.delivery->close();
  if (shared.errors > 0) std::printf("  %llu errors\n", (unsigned long long)shared.errors);
  co_return static_cast<double>(shared.records) / seconds;
}

// The lease table alone: one reserved and acked at a time.
double table_rate(Env& env) {
  LeaseTable table({}, LeaseNonce(1));
  const LogBounds bounds{Offset(0), Offset(std::uint64_t{1} << 50)};
  const LeaseCaps caps;
  std::vector<Lease> leases;
  std::uint64_t records = 0;
  const Nanos begin = env.clock.mono();
  Nanos now = begin;
  while (now - begin < kTime / 4) {
    for (int n = 0; n < 1000; ++n, ++records) {
      leases.clear();
      (void)table.reserve(now, bounds, caps, std::chrono::seconds(30), 1, leases);
      (void)table.ack(now, leases.front(), caps);
    }
    now = env.clock.mono();
  }
  return static_cast<double>(records) * 1e9 / static_cast<double>((now - begin).count());
}

// A window of a million leases, acked from the far end, so that every ack parks.
double far_end_rate(Env& env) {
  LeaseTable table({}, LeaseNonce(1));
  const LogBounds bounds{Offset(0), Offset(std::uint64_t{1} << 50)};
  const LeaseCaps caps{1'000'000, 1'000'000};
  std::vector<Lease> leases;
  const Nanos begin = env.clock.mono();
  (void)table.reserve(begin, bounds, caps, std::chrono::hours(1), 1'000'000, leases);
  for (std::size_t n = leases.size(); n > 1; n -= 2) (void)table.ack(begin, leases[n - 1], caps);
  for (std::size_t n = 0; n < leases.size(); n += 2) (void)table.ack(begin, leases[n], caps);
  return static_cast<double>(leases.size()) * 1e9 /
         static_cast<double>((env.clock.mono() - begin).count());
}

Task<int> bench(Env& env, std::string directory, bool check) {
  if (auto made = make_directories(env.fs, directory); !made) {
    std::printf("%s\n", made.error().text().c_str());
    co_return 2;
  }
  const double table = table_rate(env);
  std::printf("%-44s %12.0f records/s\n", "lease table alone, one by one", table);
  const double far_end = far_end_rate(env);
  std::printf("%-44s %12.0f records/s (%.2f of the table)\n",
              "a million leases, every other acked first", far_end, far_end / table);
  bool missed = false;
  const auto report = [&](const char* what, double rate, double wanted) {
    std::printf("%-44s %12.0f records/s (%.2f of the table; at least %.0f)%s\n", what, rate,
                rate / table, wanted, rate < wanted ? "  MISSED" : "");
    missed = missed || rate < wanted;
  };
  const double one = co_await rate_of(env, directory, 1, 1);
  report("consume + ack, 1 caller", one, 150'000);
  const double many = co_await rate_of(env, directory, 64, 1);
  report("consume + ack, 64 callers", many, 150'000);
  const double batches = co_await rate_of(env, directory, 4, 1000);
  report("consume + ack of 1000, 4 callers", batches, 1'000'000);
  co_return check&& missed ? 1 : 0;
}

}  // namespace
}  // namespace narad::delivery

int main(int argc, char** argv) {
  bool check = false;
  std::string directory = "delivery_bench.dir";
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
  const int code = runtime.run(narad::delivery::bench(runtime.env(), directory, check));
  // Proof: the bench made this directory's contents itself.
  (void)narad::remove_tree(runtime.env().fs, directory);
  return code;
}
