// Dispatchers that time out and send again, readers that follow, kills, power cuts and failing
// disks: every record acknowledged is in the log exactly once, in the order of its origin, and what
// readers saw stays true.
#include <gtest/gtest.h>

#include <map>

#include "internal/partition/test_partition.h"
#include "pkg/async/timeout.h"

namespace narad {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using sim::FsCall;
using sim::Machine;

struct World {
  explicit World(std::uint64_t seed) : solo(seed), rng(sim::derive(seed, "partition-history")) {
    options = partition_options();
    options.knobs.segment_bytes = rng.range(600, 6000);
    options.knobs.frame_raw_bytes = rng.range(100, 800);
    options.tail_records_max = rng.range(1, 50);
    options.repair_interval = 1s;
    options.hwm_interval = 300ms;
  }

  sim::Solo solo;
  sim::Rng rng;
  PartitionOptions options;
  std::map<std::uint64_t, std::uint64_t> acknowledged;  // by origin
  std::map<std::uint64_t, std::string> seen;            // by offset: what some reader got
  std::uint64_t sent_again = 0, refused = 0, latched = 0;
};

// The node of one life: one partition, three dispatchers, one reader.
struct Node {
  Node(Env& env, World& world) : env(env), world(world), tasks(env) { tasks.spawn("main", main()); }

  Task<void> main() {
    while (true) {
      auto opened = co_await Partition::open(env, world.options);
      if (opened) {
        partition = std::move(opened.value());
        break;
      }
      EXPECT_NE(opened.error().code(), Errc::data_loss) << opened.error().text();
      co_await sleep_for(env, 10ms);
    }
    EXPECT_TRUE(partition->stats().open.lost.empty());
    for (std::uint64_t origin = 1; origin <= 3; ++origin) {
      tasks.spawn("dispatch", dispatch(origin));
    }
    tasks.spawn("follow", follow());
  }

  // At most one batch in flight, in sequence order; not answered in time is sent again, perhaps
  // with more behind it.
  Task<void> dispatch(std::uint64_t origin) {
    std::uint64_t& done = world.acknowledged[origin];
    while (true) {
      const std::uint64_t last = done + 1 + world.rng.below(8);
      const std::uint64_t first = done + 1 - world.rng.below(std::min<std::uint64_t>(done, 3) + 1);
      const Nanos patience = std::chrono::microseconds(world.rng.range(200, 20'000));
      const std::size_t bytes = world.rng.below(80);
      auto answer = co_await with_timeout(env, patience,
                                          partition->commit(batch(origin, first, last, bytes)));
      if (answer && *answer) {
        EXPECT_EQ(answer->value().appended + answer->value().known, last - first + 1);
        done = last;
      } else {
        ++(answer ? world.refused : world.sent_again);
        world.latched += partition->latched() ? 1 : 0;
        co_await sleep_for(env, 3ms);
      }
    }
  }

  // Reads from random places on; committed records never change, not even over a crash.
  Task<void> follow() {
    while (true) {
      const std::uint64_t hwm = partition->hwm().value();
      const std::uint64_t from = world.rng.below(hwm + 1);
      const std::uint64_t records = world.rng.range(1, 20);
      auto got = co_await partition->read(Offset(from), records, 2000);
      if (got) {
        EXPECT_TRUE(got.value().lost.empty());
        for (const StoredRecord& r : got.value().records) {
          auto [it, fresh] = world.seen.emplace(r.offset.value(), r.key);
          EXPECT_EQ(it->second, r.key) << "offset " << r.offset.value() << " changed";
        }
      }
      co_await sleep_for(env, 500us);
    }
  }

  Env& env;
  World& world;
  std::shared_ptr<Partition> partition;
  TaskGroup tasks;
};

Task<std::vector<StoredRecord>> read_everything(Env& env, PartitionOptions options) {
  std::vector<StoredRecord> all;
  auto opened = co_await Partition::open(env, options);
  EXPECT_TRUE(opened);
  if (!opened) co_return all;
  auto partition = std::move(opened.value());
  while (Offset(all.size()) < partition->hwm()) {
    auto got = co_await partition->read(Offset(all.size()), 1000, 1 << 20);
    EXPECT_TRUE(got);
    if (!got || !got.value().lost.empty()) break;
    for (StoredRecord& r : got.value().records) all.push_back(std::move(r));
  }
  EXPECT_EQ(Offset(all.size()), partition->hwm());
  co_await partition->close();
  co_return all;
}

void run_history(std::uint64_t seed, World& world) {
  sim::Machine& machine = world.solo.machine;
  sim::SimFs& disk = machine.disk();
  for (int life = 0; life < 6; ++life) {
    machine.boot([&](Env& env) { return std::make_shared<Node>(env, world); });
    for (int step = 0; step < 6 && machine.up(); ++step) {
      world.solo.sim.run_for(std::chrono::milliseconds(world.rng.range(1, 60)));
      const std::uint64_t fault = world.rng.below(6);
      if (fault == 0) disk.fail_call(FsCall::sync, world.rng.range(1, 4));
      if (fault == 1) disk.fail_call(FsCall::pwrite, world.rng.range(1, 4), false, ENOSPC);
      if (fault == 2) disk.faults.short_write = sim::kAlways / 3;
      if (fault == 3) disk.fail_call(FsCall::sync_dir, world.rng.range(1, 2));
      if (fault == 4) disk.fail_call(FsCall::pread, world.rng.range(1, 10));
    }
    // Between two handlers, or in the middle of a job.
    const auto kind =
        world.rng.below(3) == 0 ? Machine::Kill::process_exit : Machine::Kill::power_cut;
    if (world.rng.below(2) == 0) {
      machine.kill_at_disk_call(world.rng.range(1, 20), kind, sim::SimFs::Cut::during_call);
      world.solo.sim.run_until([&] { return !machine.up(); }, 1s);
    }
    machine.kill(kind);
    disk.clear_failures();
    disk.faults = sim::FsFaults();
  }
  machine.boot([](Env&) { return std::shared_ptr<void>(); });
  const auto all = world.solo.run([&](Env& env) { return read_everything(env, world.options); });
  std::map<std::uint64_t, std::uint64_t> next;
  for (const StoredRecord& r : all) {
    const std::size_t dash = r.key.find('-');
    const auto origin = *parse_number<std::uint64_t>(std::string_view(r.key).substr(1, dash - 1));
    const auto sequence = *parse_number<std::uint64_t>(std::string_view(r.key).substr(dash + 1));
    ASSERT_EQ(sequence, ++next[origin]) << "origin " << origin << ": lost or doubled";
    const auto seen = world.seen.find(r.offset.value());
    if (seen != world.seen.end()) {
      ASSERT_EQ(seen->second, r.key);
    }
  }
  for (const auto& [origin, done] : world.acknowledged) {
    ASSERT_GE(next[origin], done) << "origin " << origin;
  }
  for (const auto& [offset, key] : world.seen) ASSERT_LT(offset, all.size());
}

TEST(PartitionHistory, RetriesKillsAndFailingDisks_KeepEveryRecordExactlyOnceInOrder) {
  std::uint64_t records = 0, sent_again = 0, refused = 0, latched = 0, reads = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    World world(seed);
    run_history(seed, world);
    if (HasFailure()) return;
    for (const auto& [origin, done] : world.acknowledged) records += done;
    sent_again += world.sent_again;
    refused += world.refused;
    latched += world.latched;
    reads += world.seen.size();
  }
  EXPECT_GT(records, 2'000u);
  EXPECT_GT(sent_again, 60u);
  EXPECT_GT(refused, 5u);
  EXPECT_GT(latched, 1u);
  EXPECT_GT(reads, 1'000u);
}

}  // namespace
}  // namespace narad
