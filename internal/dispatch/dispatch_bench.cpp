// Whether the dispatcher keeps up with accept: batches go into a real ingress at full speed, and
// are handed over to partitions that take them at once.
//
//   internal_dispatch_dispatch_bench [--check] [DIRECTORY]
//
// DIRECTORY (default: dispatch_bench.dir, removed afterwards) must lie on a real disk. Prints the
// rate of accept alone as the baseline, and with --check exits with 1 if the backlog grows.
#include <cstdio>
#include <cstring>

#include "internal/dispatch/dispatcher.h"
#include "internal/ingress/ingress.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"

namespace narad::dispatch {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kPartitions = 16;

class Taker final : public CommitTarget {
 public:
  explicit Taker(Env& env) : changed_(env) {}
  Route route(const TopicPartition& tp, Incarnation incarnation) const override {
    return Route{true, kPartitions, OwnerState::alive, RaftIndex(1)};
  }
  Task<Result<CommitOutcome>> commit(TopicPartition partition, CommitBatch batch) override {
    taken += batch.records.size();
    ++batches;
    co_return CommitOutcome{Offset(0), static_cast<std::uint32_t>(batch.records.size()), 0};
  }
  Task<Result<bool>> confirm_gone(std::string topic, Incarnation incarnation) override {
    co_return false;
  }
  Event& routing_changed() override { return changed_; }
  std::uint64_t taken = 0;
  std::uint64_t batches = 0;

 private:
  Event changed_;
};

Task<void> produce(Env& env, ingress::Ingress& in, Nanos until, std::uint64_t& records) {
  std::uint64_t n = 0;
  while (env.clock.mono() < until) {
    std::vector<MessagePtr> batch;
    batch.reserve(1000);
    for (int i = 0; i < 1000; ++i, ++n) {
      batch.push_back(std::make_shared<const Message>(Message{
          Incarnation(7), "orders", PartitionId(static_cast<std::uint32_t>(n % kPartitions)),
          cat("key-", n), UnixMillis(1), std::string(256, 'x')}));
    }
    auto r = co_await in.accept_batch(std::move(batch));
    if (r) records += 1000;
  }
}

// Records a second accepted by four producers in three seconds.
Task<double> produce_all(Env& env, ingress::Ingress& in) {
  std::uint64_t records = 0;
  const Nanos begin = env.clock.mono();
  TaskGroup tasks(env);
  for (int i = 0; i < 4; ++i) tasks.spawn("produce", produce(env, in, begin + 3s, records));
  while (tasks.size() > 0) co_await sleep_for(env, 1ms);
  co_await tasks.stop();
  co_return static_cast<double>(records) * 1e9 /
      static_cast<double>((env.clock.mono() - begin).count());
}

Task<void> settle_at_once(ingress::Ingress& in) {
  while (true) {
    co_await in.changed().wait();
    in.advance_checkpoint(in.durable_end());
  }
}

Task<int> bench(Env& env, std::string directory, bool check) {
  ingress::Options options;
  options.directory = directory + "/ingress";
  ingress::Ingress in(env, options);
  if (auto r = co_await in.start(); !r) {
    std::printf("%s\n", r.error().text().c_str());
    co_return 2;
  }
  double alone = 0;
  {
    TaskGroup tasks(env);
    tasks.spawn("settle", settle_at_once(in));
    alone = co_await produce_all(env, in);
    co_await tasks.stop();
    in.advance_checkpoint(in.durable_end());
  }
  SourceOf<ingress::Ingress> source(in);
  Taker target(env);
  Dispatcher dispatcher(env, Options{}, source, target);
  dispatcher.start();
  const double with = co_await produce_all(env, in);
  const std::uint64_t behind = in.durable_end().minus(in.checkpoint());
  const Nanos begin = env.clock.mono();
  while (in.checkpoint() < in.durable_end()) co_await sleep_for(env, 1ms);
  const double drained = static_cast<double>((env.clock.mono() - begin).count()) / 1e6;
  std::printf("accepted alone, records/s                    %12.0f\n", alone);
  std::printf("accepted while dispatched, records/s         %12.0f (%.2f of alone)\n", with,
              with / alone);
  std::printf("behind at the end, records                   %12llu, gone in %.1f ms\n",
              static_cast<unsigned long long>(behind), drained);
  std::printf("records a batch                              %12.1f\n",
              static_cast<double>(target.taken) / static_cast<double>(target.batches));
  co_await dispatcher.stop();
  (void)co_await in.close();
  const bool flat = static_cast<double>(behind) < 0.5 * with;  // half a second of it
  if (!flat) std::printf("the backlog grows: MISSED\n");
  co_return check && !flat ? 1 : 0;
}

}  // namespace
}  // namespace narad::dispatch

int main(int argc, char** argv) {
  bool check = false;
  std::string directory = "dispatch_bench.dir";
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
  const int code = runtime.run(narad::dispatch::bench(runtime.env(), directory, check));
  // Proof: the bench made this directory's contents itself.
  (void)narad::remove_tree(runtime.env().fs, directory);
  return code;
}
