// The actor over the doors of this machine: jobs run on real threads. Meant for the thread
// sanitizer; the answers are checked all the same.
#include <gtest/gtest.h>

#include <filesystem>

#include "internal/partition/test_partition.h"
#include "pkg/env/real/runtime.h"

namespace narad {
namespace {

using namespace testing;

struct Work {
  explicit Work(std::string dir) : options(partition_options(dir)) {
    options.knobs.segment_bytes = 64 << 10;
    options.tail_records_max = 50;  // so that readers need the disk as well
  }
  PartitionOptions options;
  std::shared_ptr<Partition> partition;
  std::uint64_t committed = 0, read = 0;
  int running = 0;
};

Task<void> produce(std::shared_ptr<Work> work, std::uint64_t origin) {
  for (std::uint64_t s = 1; s <= 400; s += 4) {
    auto done = co_await work->partition->commit(batch(origin, s, s + 3, 60));
    EXPECT_TRUE(done);
    work->committed += 4;
  }
  --work->running;
}

Task<void> consume(std::shared_ptr<Work> work) {
  Offset next{0};
  while (work->running > 0 || next < work->partition->hwm()) {
    auto got = co_await work->partition->read(next, 30, 10'000);
    EXPECT_TRUE(got);
    if (!got) break;
    EXPECT_TRUE(got.value().lost.empty());
    work->read += got.value().records.size();
    next = got.value().next;
    if (next == work->partition->hwm() && work->running > 0) {
      co_await work->partition->committed().wait_for(std::chrono::milliseconds(20));
    }
  }
}

Task<int> all(Env& env, std::shared_ptr<Work> work) {
  auto opened = co_await Partition::open(env, work->options);
  if (!opened) co_return 1;
  work->partition = std::move(opened.value());
  TaskGroup tasks(env);
  for (std::uint64_t origin = 1; origin <= 6; ++origin) {
    ++work->running;
    tasks.spawn("produce", produce(work, origin));
  }
  tasks.spawn("consume", consume(work));
  tasks.spawn("consume", consume(work));
  while (tasks.size() > 0) co_await sleep_for(env, std::chrono::milliseconds(5));
  co_await work->partition->close();
  work->partition.reset();
  co_return 0;
}

TEST(PartitionThreads, ProducersAndConsumersOnRealThreads_SeeEveryRecord) {
  const auto dir = std::filesystem::temp_directory_path() / "narad-partition-threads-test";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  auto work = std::make_shared<Work>((dir / "p").string());
  RuntimeOptions options;
  options.log.level = LogLevel::error;
  {
    Runtime runtime(options);
    EXPECT_EQ(runtime.run(all(runtime.env(), work)), 0);
  }
  EXPECT_EQ(work->committed, 2400u);
  EXPECT_EQ(work->read, 4800u);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace narad
