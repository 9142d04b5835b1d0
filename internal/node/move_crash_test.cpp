// Whole moves onto this node's real partitions, and the power cut at every disk call of the
// destination: whatever the moment, afterwards exactly one node owns the partition, and every
// record that was ever committed is there, at its offset, with its bytes.
#include <gtest/gtest.h>

#include "internal/moves/staging.h"
#include "internal/moves/world_for_test.h"
#include "internal/node/install_place.h"

namespace narad::node {
namespace {

using namespace moves::testing;
using sim::Machine;
using sim::SimFs;

// The partitions of a node, as its process has them.
class NodeSite final : public Site {
 public:
  explicit NodeSite(Env& env) : env_(env) {}
  Task<Result<void>> open() override {
    DataDirOptions where;
    where.data_dir = "/data";
    where.default_node_id = kSelf;
    where.holder = "a test";
    auto dir = [&env = env_, where] {
      return DataDir::open(env.fs, env.random, env.clock.wall_millis(), where);
    };
    auto opened = co_await blocking(env_, "data", std::move(dir));
    if (!opened) co_return opened.error();
    data_ = std::move(opened.value());
    auto finish = [&fs = env_.fs, disk = data_->disks()[0]] { return finish_deletes(fs, disk); };
    co_return co_await blocking(env_, "finish deletes", std::move(finish));
  }
  void begin(metastore::Proposer& metastore) override {
    PartitionsOptions how;
    how.node_id = kSelf;
    partitions_ = std::make_unique<Partitions>(env_, std::move(how), *data_, metastore);
    place_ = std::make_unique<CopyPlace>(env_, kSelf, *data_, *partitions_, metastore);
  }
  std::string disk_id() const override { return data_->disks()[0].id; }
  moves::InstallPlace& place() override { return *place_; }
  Partitions& partitions() { return *partitions_; }
  std::string path() const { return partition_path(data_->disks()[0], kPartition); }

 private:
  Env& env_;
  std::unique_ptr<DataDir> data_;
  std::unique_ptr<Partitions> partitions_;
  std::unique_ptr<CopyPlace> place_;
};

std::shared_ptr<Site> make_site(Env& env) { return std::make_shared<NodeSite>(env); }
NodeSite& site(World& world) { return static_cast<NodeSite&>(*world.node().site); }

// What the broker of this node reads in the partition that it owns now.
struct Read {
  bool done = false;
  std::string problem;
  std::vector<std::string> records;
};
Task<void> read_all(Partitions& partitions, std::shared_ptr<Read> out) {
  auto pin = co_await partitions.open(kPartition, kLife, OpenFor::read);
  if (!pin) {
    out->problem = pin.error().text();
    out->done = true;
    co_return;
  }
  Offset next = pin.value()->log->oldest();
  while (next < pin.value()->log->hwm()) {
    auto batch = co_await pin.value()->log->read(next, 1000, 1 << 20);
    if (!batch) {
      out->problem = batch.error().text();
      break;
    }
    for (const auto& r : batch.value().records) {
      out->records.push_back(cat(r.offset, " ", r.commit_time, " ", r.key, " ", r.payload));
    }
    next = batch.value().next;
  }
  out->done = true;
}
Read read_here(World& world) {
  auto out = std::make_shared<Read>();
  world.node().tasks.spawn("read", read_all(site(world).partitions(), out));
  EXPECT_TRUE(world.until([&] { return out->done; }, 60s));
  return *out;
}

bool arrives(World& world, Nanos limit = 5min) {
  return world.until([&] { return world.here() && world.node().runner->reports().empty(); }, limit);
}

// The only owner is this node, and it has everything, on its disk: the power is cut once more.
void expect_everything_here(World& world, const std::string& when) {
  world.machine.kill(Machine::Kill::power_cut);
  ASSERT_TRUE(world.boot()) << when << ": " << world.node().failed;
  EXPECT_EQ(world.row().owner_node, kSelf) << when;
  EXPECT_TRUE(world.row().target_node.empty()) << when;
  EXPECT_EQ(world.source.commit(1), 0u) << when << ": the old owner would still commit";
  const Read read = read_here(world);
  EXPECT_EQ(read.problem, "") << when;
  EXPECT_TRUE(read.records == world.log.records())
      << when << ": " << read.records.size() << " records, not " << world.log.records().size();
  for (const std::string& path : world.machine.disk().all_paths()) {
    if (path == "/data/.moves/" || path == "/data/.quarantine/") continue;
    EXPECT_FALSE(path.starts_with("/data/.moves/")) << when << ": " << path;
    EXPECT_EQ(path.find("quarantine"), std::string::npos) << when << ": " << path;
  }
}

void begin(World& world) {
  world.log.append(40);
  world.source.commits_each_tick = 1;
  world.timing.retry = 200ms;
  world.timing.quiet_before_undo = 1s;
  world.timing.lag_bytes = 2000;
}

TEST(MoveOntoANode, CON_1_CON_9_ArrivesWhole_AndIsServedFromWhereItsConsumersWere) {
  World world(make_site);
  begin(world);
  world.log.frontier = Offset(12);
  ASSERT_TRUE(world.boot());
  std::uint64_t flips = 0;
  world.node().proposer->before = [&](const metastore::Command& c) {
    if (metastore::op_name(c) != "complete_move") return;
    ++flips;
    EXPECT_TRUE(site(world).partitions().open_now().empty()) << "only an owner reserves";
  };
  world.set_target();
  ASSERT_TRUE(arrives(world));
  EXPECT_EQ(flips, 1u);
  EXPECT_EQ(read_here(world).problem, "");  // reading opens it
  ASSERT_EQ(site(world).partitions().open_now().size(), 1u);
  EXPECT_EQ(site(world).partitions().open_now()[0]->delivery->stats().frontier, Offset(12));
  expect_everything_here(world, "undisturbed");
}

// Boots it again until the move has arrived, with another crash in the second life if `again`.
void finish_after_crashes(World& world, std::uint64_t again, const std::string& when) {
  for (int life = 2; life < 5; ++life) {
    ASSERT_FALSE(world.machine.up()) << "stuck: " << when;
    (void)world.source.commit(3);  // if it is not frozen, it does not wait for anybody
    if (!world.boot()) {
      ASSERT_FALSE(world.machine.up()) << when << ": " << world.node().failed;
      continue;
    }
    if (life == 2 && again > 0) world.machine.kill_at_disk_call(again, Machine::Kill::power_cut);
    if (arrives(world)) return;
  }
  FAIL() << "never arrived: " << when;
}

// One crash before (or in) each disk call of the destination, and one more at some call of the life
// after it.
void sweep(SimFs::Cut how, Machine::Kill kill) {
  std::uint64_t crashes = 0;
  for (std::uint64_t n = 1; !::testing::Test::HasFailure(); ++n) {
    World world(make_site, n);
    begin(world);
    ASSERT_TRUE(world.boot());
    world.set_target();
    world.machine.kill_at_disk_call(n, kill, how);
    const bool whole = arrives(world);
    const std::string when = cat("crash at ", n);
    if (!whole) {
      ++crashes;
      finish_after_crashes(world, 1 + n * 37 % 150, when);
    }
    world.machine.disk().cancel_cut();
    expect_everything_here(world, when);
    if (whole) break;
  }
  EXPECT_GT(crashes, 80u);
  std::printf("%llu crash points\n", static_cast<unsigned long long>(crashes));
}

TEST(MoveOntoANode, PowerCutBeforeEveryDiskCall_OneOwnerAndEveryRecord) {
  sweep(SimFs::Cut::before_call, Machine::Kill::power_cut);
}
TEST(MoveOntoANode, PowerCutInEveryDiskCall_OneOwnerAndEveryRecord) {
  sweep(SimFs::Cut::during_call, Machine::Kill::power_cut);
}
TEST(MoveOntoANode, ProcessKilledAtEveryDiskCall_OneOwnerAndEveryRecord) {
  sweep(SimFs::Cut::during_call, Machine::Kill::process_exit);
}

// Each call to the source once fails, and once is carried out with its answer lost.
TEST(MoveOntoANode, EveryCallLostOnce_OneOwnerAndEveryRecord) {
  for (const bool carried_out : {false, true}) {
    for (std::uint64_t n = 1; !::testing::Test::HasFailure(); ++n) {
      World world(make_site, n);
      begin(world);
      (carried_out ? world.source.faults.lose_answer : world.source.faults.fail).insert(n);
      ASSERT_TRUE(world.boot());
      world.set_target();
      ASSERT_TRUE(arrives(world)) << "call " << n;
      expect_everything_here(world, cat("call ", n, carried_out ? " unanswered" : " lost"));
      if (world.source.all_calls < n) break;
    }
  }
}

// Each entry that the destination or the source proposes: never applied, or applied and unanswered.
TEST(MoveOntoANode, FLP_4_EveryEntryOfUnknownOutcome_OneOwnerAndEveryRecord) {
  for (const char* op : {"complete_move", "void_freeze"}) {
    for (const char* how : {"never", "unanswered", "late"}) {
      for (std::uint64_t first : {1, 2}) {
        World world(make_site, first);
        begin(world);
        world.proposer_faults = [&](FaultyProposer& p) {
          auto& set = how[0] == 'u' ? p.unanswered : how[0] == 'l' ? p.late : p.never;
          for (std::uint64_t n = first; n < first + 3; ++n) set.insert({op, n});
        };
        world.source.faults.lose_answer = {9};
        ASSERT_TRUE(world.boot());
        world.set_target();
        ASSERT_TRUE(arrives(world, 20min)) << op;
        expect_everything_here(world, cat(op, " from ", first, " ", how));
      }
    }
  }
}

// Each disk call on staging and partition fails once; the node lives on.
TEST(MoveOntoANode, EveryFailedDiskCall_OneOwnerAndEveryRecord) {
  std::uint64_t fired = 0;
  for (const char* part : {"/data/.moves", "/data/topics"}) {
    for (const auto kind :
         {sim::FsCall::open, sim::FsCall::pread, sim::FsCall::pwrite, sim::FsCall::truncate,
          sim::FsCall::sync, sim::FsCall::rename, sim::FsCall::mkdir, sim::FsCall::remove,
          sim::FsCall::stat, sim::FsCall::list, sim::FsCall::set_mtime, sim::FsCall::sync_dir}) {
      for (std::uint64_t n = 1; !::testing::Test::HasFailure(); ++n) {
        World world(make_site, n);
        begin(world);
        ASSERT_TRUE(world.boot());
        SimFs& disk = world.machine.disk();
        disk.fail_call(kind, n, false, n % 2 == 0 ? 28 /* ENOSPC */ : 5 /* EIO */, part);
        world.set_target();
        const std::string when = cat(sim::to_string(kind), " ", n, " on ", part);
        ASSERT_TRUE(world.until([&] { return world.row().target_node.empty(); }, 20min)) << when;
        if (!world.here()) {
          ASSERT_EQ(n % 2, 0u) << when << ": a move is given back for lack of room only";
          world.set_target();
        }
        ASSERT_TRUE(arrives(world)) << when;
        const bool met = disk.failure_fired();
        disk.clear_failures();
        expect_everything_here(world, when);
        if (!met) break;
        ++fired;
      }
    }
  }
  EXPECT_GT(fired, 60u);
  std::printf("%llu failed calls\n", static_cast<unsigned long long>(fired));
}

// Everything at once, at random; then all is well, and the move arrives.
TEST(MoveOntoANode, RandomFaults_OneOwnerAndEveryRecord) {
  for (std::uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFailure(); ++seed) {
    sim::Rng rng(sim::derive(seed, "move faults"));
    World world(make_site, seed);
    begin(world);
    world.timing.propose_again_for = 10s;
    world.source.ttl = std::chrono::seconds(1 + rng.below(20));
    world.source.faults.latency = std::chrono::milliseconds(1 + rng.below(200));
    for (int i = 0; i < 10; ++i) {
      world.source.faults.fail.insert(1 + rng.below(80));
      world.source.faults.lose_answer.insert(1 + rng.below(80));
    }
    const std::uint64_t bad_flips = rng.below(6);
    const bool applied = rng.below(2) == 0;
    world.proposer_faults = [=](FaultyProposer& p) {
      for (std::uint64_t n = 1; n <= bad_flips; ++n) p.never.insert({"complete_move", n});
      if (applied) p.unanswered.insert({"complete_move", bad_flips + 1});
    };
    ASSERT_TRUE(world.boot());
    world.set_target();
    const std::string when = cat("seed ", seed);
    for (int crash = 0; crash < 4 && !world.here(); ++crash) {
      const auto kill = rng.below(2) == 0 ? Machine::Kill::power_cut : Machine::Kill::process_exit;
      const auto how = rng.below(2) == 0 ? SimFs::Cut::before_call : SimFs::Cut::during_call;
      world.machine.kill_at_disk_call(1 + rng.below(150), kill, how);
      (void)world.until([] { return false; }, std::chrono::seconds(1 + rng.below(30)));
      if (world.machine.up()) world.machine.kill(kill);
      (void)world.source.commit(rng.below(4));
      ASSERT_TRUE(world.boot()) << when << ": " << world.node().failed;
    }
    world.proposer_faults = nullptr;
    world.node().proposer->never.clear();
    world.source.faults.fail.clear();
    world.source.faults.lose_answer.clear();
    ASSERT_TRUE(arrives(world, 30min)) << when;
    expect_everything_here(world, when);
  }
}

}  // namespace
}  // namespace narad::node
