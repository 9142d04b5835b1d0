// The ingress on the real doors: its jobs run on other threads here, so this is what the thread
// sanitizer has to see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "internal/ingress/ingress.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"

namespace narad::ingress {
namespace {

using namespace std::chrono_literals;

MessagePtr message(std::string payload) {
  return std::make_shared<const Message>(
      Message{Incarnation(7), "orders", PartitionId(1), "k", UnixMillis(5), std::move(payload)});
}

Task<void> accept_many(Ingress& ingress, int count, std::uint64_t& accepted) {
  for (int i = 0; i < count; ++i) {
    auto r = co_await ingress.accept(message(std::string(300, 'x')));
    if (r) ++accepted;
  }
}

// Reads behind the accepts, from memory and from disk, and hands over.
Task<void> consume(Ingress& ingress, std::uint64_t& seen) {
  Sequence at = ingress.checkpoint();
  while (true) {
    while (at < ingress.durable_end()) {
      auto r = co_await ingress.read(at, 50, 1 << 20);
      EXPECT_TRUE(r) << r.error().text();
      if (!r) co_return;
      for (const DurableRecord& record : r.value()) {
        EXPECT_EQ(record.sequence, at);
        at = at.next();
        ++seen;
      }
      ingress.advance_checkpoint(at);
    }
    co_await ingress.changed().wait();
  }
}

Task<int> run(Env& env, Options options) {
  std::uint64_t accepted = 0;
  std::uint64_t seen = 0;
  for (int life = 0; life < 2; ++life) {
    Ingress ingress(env, options);
    auto started = co_await ingress.start();
    EXPECT_TRUE(started) << started.error().text();
    TaskGroup consumers(env);
    consumers.spawn("consume", consume(ingress, seen));
    TaskGroup producers(env);
    for (int i = 0; i < 8; ++i) {
      producers.spawn("accept", accept_many(ingress, 50, accepted));
    }
    while (producers.size() > 0) co_await sleep_for(env, 1ms);
    while (seen < accepted) co_await sleep_for(env, 1ms);
    co_await producers.stop();
    co_await consumers.stop();
    EXPECT_TRUE(co_await ingress.close());
  }
  EXPECT_EQ(accepted, 800u);
  EXPECT_EQ(seen, 800u);
  co_return 0;
}

TEST(IngressOnTheRealDoors, ConcurrentUse_AcceptsAndReadsBackEverything) {
  RuntimeOptions runtime_options;
  runtime_options.log.level = LogLevel::error;
  Runtime runtime(runtime_options);
  const auto root = std::filesystem::temp_directory_path() /
                    cat("narad-ingress-", to_hex16(runtime.env().random.next()));
  Options options;
  options.directory = root / "ingress";
  options.segment_bytes_max = 16 << 10;
  options.preallocate_bytes = 4 << 10;
  options.memory_bytes_max = 8 << 10;
  options.checkpoint_interval = 10ms;
  EXPECT_EQ(runtime.run(run(runtime.env(), options)), 0);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace narad::ingress
