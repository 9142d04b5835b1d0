#include "internal/ingress/ingress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/ingress/wal.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::ingress {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kDir = "/data/ingress";

MessagePtr message(std::string payload) {
  return std::make_shared<const Message>(
      Message{Incarnation(7), "orders", PartitionId(1), "k", UnixMillis(5), std::move(payload)});
}

std::vector<MessagePtr> messages(std::size_t count, std::size_t size) {
  std::vector<MessagePtr> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(message(std::string(size, 'x')));
  return out;
}

Task<void> accept_into(Ingress& ingress, MessagePtr m, std::vector<Result<Sequence>>& out) {
  auto r = co_await ingress.accept(std::move(m));
  out.push_back(std::move(r));
}

// Runs `count` accepts at once and waits for all.
Task<std::vector<Result<Sequence>>> accept_together(Env& env, Ingress& ingress, int count,
                                                    std::size_t size) {
  std::vector<Result<Sequence>> out;
  TaskGroup tasks(env);
  for (int i = 0; i < count; ++i) {
    tasks.spawn("accept", accept_into(ingress, message(std::string(size, 'x')), out));
  }
  while (tasks.size() > 0) co_await sleep_for(env, 1ms);
  co_await tasks.stop();
  co_return out;
}

class IngressTest : public testing::Test {
 protected:
  IngressTest() { options.directory = kDir; }

  // Boots if need be, opens the ingress, and runs `make(env, ingress)`.
  template <class F>
  void with_ingress(F make) {
    solo.run([&](Env& env) { return start(env); });
    run(std::move(make));
  }
  template <class F>
  void run(F make) {
    solo.run([this, make](Env& env) { return make(env, *ingress); });
  }
  Task<void> start(Env& env) {
    ingress = std::make_unique<Ingress>(env, options);
    auto r = co_await ingress->start();
    EXPECT_TRUE(r) << r.error().text();
  }
  Task<void> refused_start(Env& env) {
    ingress = std::make_unique<Ingress>(env, options);
    auto r = co_await ingress->start();
    EXPECT_FALSE(r);
    if (r) co_return;
    EXPECT_EQ(r.error().code(), Errc::data_loss);
    EXPECT_THAT(r.error().text(), HasSubstr("narad fsck wal"));
  }
  Task<void> close() {
    auto r = co_await ingress->close();
    EXPECT_TRUE(r) << r.error().text();
  }
  void stop() {
    solo.run([this](Env&) { return close(); });
    ingress.reset();
  }
  // The object goes after the frames that use it.
  void kill(sim::Machine::Kill kind) {
    solo.machine.kill(kind);
    ingress.reset();
  }
  void TearDown() override {
    if (ingress) kill(sim::Machine::Kill::process_exit);
  }
  sim::SimFs& disk() { return solo.machine.disk(); }
  std::uint64_t wal_bytes() {
    std::uint64_t bytes = 0;
    for (const std::string& path : disk().all_paths()) {
      if (path.ends_with(".wal") || path.ends_with("checkpoint")) {
        bytes += disk().seen_bytes(path)->size();
      }
    }
    return bytes;
  }

  sim::Solo solo;
  Options options;
  std::unique_ptr<Ingress> ingress;
};

// ---- accepting ------------------------------------------------------------------------------

Task<void> check_durable_when_answered(Env& env, Ingress& ingress, sim::SimFs& disk) {
  auto r = co_await ingress.accept(message("precious"));
  EXPECT_TRUE(r);
  if (!r) co_return;
  EXPECT_EQ(r.value(), Sequence(1));
  const auto bytes = disk.durable_bytes(segment_path(kDir, Sequence(1)));
  EXPECT_TRUE(bytes);
  if (bytes) EXPECT_NE(as_chars(*bytes).find("precious"), std::string_view::npos);
  EXPECT_EQ(ingress.durable_end(), Sequence(2));
}

TEST_F(IngressTest, Accept_AnswersOnlyWhatIsOnTheDisk) {
  with_ingress([&](Env& env, Ingress& i) { return check_durable_when_answered(env, i, disk()); });
}

Task<void> check_shared_sync(Env& env, Ingress& ingress) {
  auto results = co_await accept_together(env, ingress, 200, 100);
  std::set<std::uint64_t> sequences;
  for (auto& r : results) {
    EXPECT_TRUE(r);
    if (r) sequences.insert(r.value().value());
  }
  EXPECT_EQ(sequences.size(), 200u);
  EXPECT_EQ(*sequences.begin(), 1u);
  EXPECT_EQ(*sequences.rbegin(), 200u);
  EXPECT_LE(ingress.stats().groups, 4u);
}

TEST_F(IngressTest, ConcurrentAccepts_ShareSyncs) { with_ingress(check_shared_sync); }

Task<void> check_idle_start(Env& env, Ingress& ingress, sim::SimFs& disk) {
  EXPECT_TRUE(co_await ingress.accept(message("a")));
  co_await sleep_for(env, 5s);
  const auto syncs = disk.calls(sim::FsCall::sync);
  const Nanos before = env.clock.mono();
  EXPECT_TRUE(co_await ingress.accept(message("b")));
  // One job, no waiting for company. (The door's own latency is at most 2.02 ms.)
  EXPECT_LE(env.clock.mono() - before, 2100us);
  EXPECT_EQ(disk.calls(sim::FsCall::sync), syncs + 1);
}

TEST_F(IngressTest, IdleWal_SyncsAtOnce) {
  with_ingress([&](Env& env, Ingress& i) { return check_idle_start(env, i, disk()); });
}

Task<void> check_batch(Env& env, Ingress& ingress) {
  EXPECT_TRUE(co_await ingress.accept(message("first")));
  auto r = co_await ingress.accept_batch(messages(1000, 50));
  EXPECT_TRUE(r);
  if (!r) co_return;
  EXPECT_EQ(r.value(), Sequence(2));
  EXPECT_EQ(ingress.durable_end(), Sequence(1002));
  EXPECT_EQ(ingress.stats().groups, 2u);
}

TEST_F(IngressTest, Batch_IsOneGroupWithoutGaps) { with_ingress(check_batch); }

Task<void> check_bad_batch(Env& env, Ingress& ingress) {
  auto batch = messages(3, 10);
  batch[2] = message(std::string(kFramePayloadBytesMax, 'x'));
  auto r = co_await ingress.accept_batch(std::move(batch));
  EXPECT_FALSE(r);
  if (!r) {
    EXPECT_EQ(r.error().code(), Errc::too_large);
    EXPECT_THAT(r.error().text(), HasSubstr("record 2"));
  }
  EXPECT_EQ(ingress.durable_end(), Sequence(1));
  auto none = std::make_shared<const Message>(Message{});
  auto bad = co_await ingress.accept(none);
  EXPECT_FALSE(bad);
  if (!bad) EXPECT_EQ(bad.error().code(), Errc::invalid_argument);
}

TEST_F(IngressTest, BatchWithABadRecord_AcceptsNothing) { with_ingress(check_bad_batch); }

Task<void> check_cancelled(Env& env, Ingress& ingress) {
  std::vector<Result<Sequence>> out;
  TaskGroup tasks(env);
  tasks.spawn("accept", accept_into(ingress, message("kept"), out));
  co_await yield(env);
  co_await tasks.stop();  // the client is gone
  EXPECT_EQ(out.size(), 1u);
  if (!out.empty()) EXPECT_TRUE(out[0]);
  EXPECT_EQ(ingress.durable_end(), Sequence(2));
}

TEST_F(IngressTest, CallerCancelledOnceStaged_StillGetsTheTrueOutcome) {
  with_ingress(check_cancelled);
}

Task<void> check_full_groups(Env& env, Ingress& ingress) {
  auto results = co_await accept_together(env, ingress, 40, 1000);
  for (auto& r : results) EXPECT_TRUE(r);
  EXPECT_EQ(results.size(), 40u);
  EXPECT_GE(ingress.stats().groups, 10u);
  auto large = co_await ingress.accept_batch(messages(20, 1000));  // larger than a group: alone
  EXPECT_TRUE(large);
}

TEST_F(IngressTest, GroupsAtTheirLimit_MakeCallersWaitNotFail) {
  options.group_bytes_max = 4096;
  with_ingress(check_full_groups);
}

// ---- trouble --------------------------------------------------------------------------------

Task<void> check_full_disk(Env& env, Ingress& ingress, sim::SimFs& disk) {
  EXPECT_TRUE(co_await ingress.accept(message("a")));
  disk.faults.capacity_bytes = disk.used_bytes() + 1000;
  Result<Sequence> r = Sequence(0);
  while (r) r = co_await ingress.accept(message(std::string(100'000, 'x')));
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_EQ(ingress.stats().state, State::refusing);
  EXPECT_NE(ingress.stats().reason, "");
  const auto calls = disk.calls(sim::FsCall::any);
  auto again = co_await ingress.accept(message("b"));
  EXPECT_FALSE(again);
  EXPECT_EQ(disk.calls(sim::FsCall::any), calls);  // refused without asking the disk
  co_await sleep_for(env, 5s);
  EXPECT_EQ(ingress.stats().state, State::refusing);
  disk.faults.capacity_bytes = 1ull << 40;
  co_await sleep_for(env, 2s);
  EXPECT_EQ(ingress.stats().state, State::open);
  auto healed = co_await ingress.accept(message("c"));
  EXPECT_TRUE(healed);
  if (healed)
    EXPECT_EQ(healed.value(), ingress.durable_end().value() == 0
                                  ? Sequence(0)
                                  : Sequence(ingress.durable_end().value() - 1));
}

TEST_F(IngressTest, FullDisk_RefusesUntilItPassesWithoutARestart) {
  with_ingress([&](Env& env, Ingress& i) { return check_full_disk(env, i, disk()); });
}

Task<void> check_failed_write(Env& env, Ingress& ingress, sim::SimFs& disk) {
  disk.fail_call(sim::FsCall::pwrite, 1, true);
  auto r = co_await ingress.accept(message("a"));
  EXPECT_FALSE(r);
  if (!r) EXPECT_EQ(r.error().code(), Errc::unavailable);
  disk.clear_failures();
  co_await sleep_for(env, 2s);
  auto again = co_await ingress.accept(message("b"));
  EXPECT_TRUE(again);
  if (again) EXPECT_EQ(again.value(), Sequence(1));
}

TEST_F(IngressTest, FailedWrite_RefusesAndReusesTheSequence) {
  with_ingress([&](Env& env, Ingress& i) { return check_failed_write(env, i, disk()); });
}

Task<void> check_unknown(Env& env, Ingress& ingress, sim::SimFs& disk) {
  disk.fail_call(sim::FsCall::pwrite, 1);
  disk.fail_call(sim::FsCall::truncate, 1, true);
  auto r = co_await ingress.accept(message("a"));
  EXPECT_FALSE(r);
  if (!r) EXPECT_EQ(r.error().code(), Errc::unknown_outcome);
  co_await sleep_for(env, 3s);
  EXPECT_EQ(ingress.stats().state, State::refusing);
  disk.clear_failures();
  co_await sleep_for(env, 2s);
  EXPECT_TRUE(co_await ingress.accept(message("b")));
}

TEST_F(IngressTest, WriteThatCannotBeTakenBack_IsUnknownAndBlocksUntilItCan) {
  with_ingress([&](Env& env, Ingress& i) { return check_unknown(env, i, disk()); });
}

TEST_F(IngressTest, FailedSync_EndsTheProcessAndAnswersNobody) {
  with_ingress(check_batch);
  disk().fail_call(sim::FsCall::sync, 1);
  bool answered = false;
  Ingress& i = *ingress;
  auto accept = [](Ingress& in, bool& out) -> Task<void> {
    auto r = co_await in.accept(message("lost"));
    out = true;
  };
  EXPECT_THROW(solo.run([&](Env&) { return accept(i, answered); }, 1min), std::runtime_error);
  solo.sim.run_for(1s);  // the teardown is an event of its own
  EXPECT_FALSE(answered);
  ASSERT_TRUE(solo.machine.last_exit());
  EXPECT_EQ(solo.machine.last_exit()->code, kExitSyncFailed);
  EXPECT_THAT(solo.machine.last_exit()->why, HasSubstr("sync of the ingress WAL"));
  ingress.reset();
  with_ingress([](Env&, Ingress& in) -> Task<void> {
    EXPECT_GE(in.durable_end(), Sequence(1002));
    co_return;
  });
}

Task<void> check_backlog(Env& env, Ingress& ingress) {
  Result<Sequence> r = Sequence(0);
  std::uint64_t taken = 0;
  for (; r && taken < 1000; ++taken) {
    r = co_await ingress.accept(message(std::string(10'000, 'x')));
  }
  EXPECT_FALSE(r);
  if (!r) {
    EXPECT_EQ(r.error().code(), Errc::unavailable);
    EXPECT_THAT(r.error().text(), HasSubstr("of at most 512.0 KiB"));
  }
  EXPECT_LE(ingress.stats().backlog_bytes, 512u << 10);
  EXPECT_EQ(ingress.stats().state, State::refusing);
  ingress.advance_checkpoint(ingress.durable_end());
  co_await sleep_for(env, 5s);
  EXPECT_EQ(ingress.stats().state, State::open);
  EXPECT_TRUE(co_await ingress.accept(message("again")));
}

TEST_F(IngressTest, BacklogLimit_RefusesUntilRecordsAreHandedOver) {
  options.max_backlog_bytes = 512 << 10;
  options.segment_bytes_max = 64 << 10;
  options.preallocate_bytes = 16 << 10;
  with_ingress(check_backlog);
}

Task<void> check_late_open(Env& env, Ingress& ingress, sim::SimFs& disk) {
  EXPECT_FALSE(ingress.is_open());
  EXPECT_EQ(ingress.stats().state, State::opening);
  auto r = co_await ingress.accept(message("a"));
  EXPECT_FALSE(r);
  if (!r) EXPECT_EQ(r.error().code(), Errc::unavailable);
  co_await sleep_for(env, 35s);
  EXPECT_FALSE(ingress.is_open());
  disk.clear_failures();
  EXPECT_TRUE(co_await ingress.changed().wait_for(11s));
  EXPECT_TRUE(ingress.is_open());
  EXPECT_TRUE(co_await ingress.accept(message("b")));
}

TEST_F(IngressTest, DiskThatKeepsItFromOpening_IsTriedEveryTenSeconds) {
  with_ingress(check_batch);
  kill(sim::Machine::Kill::process_exit);
  // The fresh copy of what an unclean stop left cannot be made.
  solo.env();
  disk().fail_call(sim::FsCall::sync, 1, true, 5, ".wal.tmp");
  with_ingress([&](Env& env, Ingress& i) { return check_late_open(env, i, disk()); });
  EXPECT_EQ(ingress->checkpoint(), Sequence(1));
}

TEST_F(IngressTest, DamagedWal_IsRefusedAtStart) {
  with_ingress(check_batch);
  kill(sim::Machine::Kill::power_cut);
  ASSERT_TRUE(disk().corrupt(segment_path(kDir, Sequence(1)), 90, std::byte{1}));
  const std::uint64_t before = disk().digest();
  solo.run([this](Env& env) { return refused_start(env); });
  EXPECT_EQ(disk().digest(), before);
}

// ---- for the dispatcher ---------------------------------------------------------------------

Task<void> read_all(Env& env, Ingress& ingress, std::uint64_t from, std::uint64_t to) {
  Sequence at(from);
  while (at < Sequence(to)) {
    auto r = co_await ingress.read(at, 7, 1 << 20);
    EXPECT_TRUE(r) << r.error().text();
    if (!r || r.value().empty()) co_return;
    for (const DurableRecord& record : r.value()) {
      EXPECT_EQ(record.sequence, at);
      EXPECT_EQ(record.message->payload, cat("p", at));
      at = at.next();
    }
  }
  EXPECT_EQ(at, Sequence(to));
  auto end = co_await ingress.read(Sequence(to), 7, 1 << 20);
  EXPECT_TRUE(end && end.value().empty());
}

Task<void> accept_numbered(Ingress& ingress, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    auto r = co_await ingress.accept(message(cat("p", ingress.durable_end())));
    EXPECT_TRUE(r);
  }
}

Task<void> check_reads(Env& env, Ingress& ingress) {
  co_await accept_numbered(ingress, 100);
  co_await read_all(env, ingress, 60, 101);
  EXPECT_LT(ingress.stats().memory_bytes, 30'000u);
  const auto before = ingress.stats().disk_reads;
  co_await read_all(env, ingress, 1, 101);
  EXPECT_GT(ingress.stats().disk_reads, before);
  co_await read_all(env, ingress, 95, 101);
}

TEST_F(IngressTest, RecordsBeyondTheMemoryBudget_AreReadFromDisk) {
  options.memory_bytes_max = 10'000;
  options.segment_bytes_max = 2000;
  options.preallocate_bytes = 500;
  with_ingress(check_reads);
}

TEST_F(IngressTest, RecordsOfEarlierLives_KeepTheirOrigins) {
  with_ingress([](Env& env, Ingress& i) { return accept_numbered(i, 10); });
  kill(sim::Machine::Kill::power_cut);
  with_ingress([](Env& env, Ingress& i) { return accept_numbered(i, 10); });
  stop();
  with_ingress([](Env& env, Ingress& i) -> Task<void> {
    co_await accept_numbered(i, 10);
    co_await read_all(env, i, 1, 31);
    std::set<std::uint64_t> origins;
    for (std::uint64_t from : {1, 11, 21}) {
      auto r = co_await i.read(Sequence(from), 10, 1 << 20);
      EXPECT_TRUE(r);
      if (!r) co_return;
      for (auto& record : r.value()) origins.insert(record.origin.value());
    }
    EXPECT_EQ(origins.size(), 3u);
  });
}

Task<void> check_checkpoint(Env& env, Ingress& ingress, sim::SimFs& disk) {
  co_await accept_numbered(ingress, 100);
  const auto segments = ingress.stats().segments;
  EXPECT_GE(segments, 3u);
  ingress.advance_checkpoint(Sequence(60));
  EXPECT_TRUE(disk.seen_bytes(segment_path(kDir, Sequence(1))));  // not before it is stored
  co_await sleep_for(env, 3s);
  EXPECT_FALSE(disk.seen_bytes(segment_path(kDir, Sequence(1))));
  EXPECT_LT(ingress.stats().segments, segments);
  co_await read_all(env, ingress, 60, 101);
}

TEST_F(IngressTest, Checkpoint_DeletesSegmentsHandedOverAndSurvives) {
  options.segment_bytes_max = 2000;
  options.preallocate_bytes = 500;
  with_ingress([&](Env& env, Ingress& i) { return check_checkpoint(env, i, disk()); });
  kill(sim::Machine::Kill::power_cut);
  with_ingress([](Env& env, Ingress& i) -> Task<void> {
    EXPECT_EQ(i.checkpoint(), Sequence(60));
    co_await read_all(env, i, 60, 101);
  });
}

Task<void> check_checkpoint_failure(Env& env, Ingress& ingress, sim::SimFs& disk) {
  co_await accept_numbered(ingress, 50);
  disk.fail_call(sim::FsCall::any, 1, true, 5, "checkpoint");
  ingress.advance_checkpoint(Sequence(40));
  co_await sleep_for(env, 3s);
  EXPECT_GT(ingress.stats().checkpoint_failures, 0u);
  EXPECT_TRUE(disk.seen_bytes(segment_path(kDir, Sequence(1))));
  EXPECT_TRUE(co_await ingress.accept(message("p51")));
  disk.clear_failures();
  co_await sleep_for(env, 3s);
  EXPECT_FALSE(disk.seen_bytes(segment_path(kDir, Sequence(1))));
}

TEST_F(IngressTest, CheckpointThatCannotBeStored_KeepsTheSegmentsAndAccepts) {
  options.segment_bytes_max = 2000;
  options.preallocate_bytes = 500;
  with_ingress([&](Env& env, Ingress& i) { return check_checkpoint_failure(env, i, disk()); });
}

Task<void> check_idle_size(Env& env, Ingress& ingress) {
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(co_await ingress.accept_batch(messages(100, 1000)));
  }
  ingress.advance_checkpoint(ingress.durable_end());
  co_await sleep_for(env, 10s);
  EXPECT_EQ(ingress.stats().shrinks, 1u);
  EXPECT_EQ(ingress.stats().segments, 1u);
  EXPECT_TRUE(co_await ingress.accept(message("more")));
}

TEST_F(IngressTest, IdleWal_IsBelowAMebibyte) {
  with_ingress(check_idle_size);
  EXPECT_LT(wal_bytes(), 1u << 20);
  EXPECT_GT(wal_bytes(), 0u);
}

TEST_F(IngressTest, IdleAndHandedOver_RunsNothing) {
  with_ingress([](Env& env, Ingress& i) -> Task<void> {
    co_await accept_numbered(i, 10);
    i.advance_checkpoint(i.durable_end());
    co_await sleep_for(env, 10s);
  });
  solo.sim.run_for(10s);  // the end of the run itself
  const auto events = solo.sim.events();
  const auto jobs = solo.machine.blocking().jobs();
  solo.sim.run_for(1h);
  EXPECT_LE(solo.sim.events() - events, 1u);  // run_for() itself
  EXPECT_EQ(solo.machine.blocking().jobs(), jobs);
}

Task<void> check_close(Env& env, Ingress& ingress) {
  std::vector<Result<Sequence>> out;
  TaskGroup tasks(env);
  for (int i = 0; i < 10; ++i) {
    tasks.spawn("accept", accept_into(ingress, message("x"), out));
  }
  co_await yield(env);
  auto closed = co_await ingress.close();
  EXPECT_TRUE(closed);
  while (tasks.size() > 0) co_await sleep_for(env, 1ms);
  for (auto& r : out) EXPECT_TRUE(r);  // what was staged is finished
  auto late = co_await ingress.accept(message("late"));
  EXPECT_FALSE(late);
  if (!late) EXPECT_EQ(late.error().code(), Errc::unavailable);
  EXPECT_TRUE(co_await ingress.close());
  co_await tasks.stop();
}

TEST_F(IngressTest, Close_FinishesWhatIsStagedAndMarksItClean) {
  with_ingress(check_close);
  ingress.reset();
  auto found = inspect_wal(disk(), kDir);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found.value().clean);
  EXPECT_EQ(found.value().next, Sequence(11));
}

// ---- crashes --------------------------------------------------------------------------------

struct Produced {
  std::uint64_t next = 0;
  std::set<std::string> accepted;
};

Task<void> produce(Env& env, Ingress& ingress, Produced& produced) {
  while (true) {
    std::vector<std::string> payloads;
    std::vector<MessagePtr> batch;
    for (std::uint64_t n = 1 + env.random.next() % 4; n > 0; --n) {
      payloads.push_back(cat("m", ++produced.next));
      batch.push_back(message(payloads.back()));
    }
    auto r = co_await ingress.accept_batch(std::move(batch));
    if (r) produced.accepted.insert(payloads.begin(), payloads.end());
    if (env.random.next() % 4 == 0) co_await sleep_for(env, 1ms);
  }
}

struct Node {
  Node(Env& env, const Options& options, Produced& produced)
      : env(env), ingress(env, options), produced(produced), tasks(env) {
    tasks.spawn("main", run());
  }
  Task<void> run() {
    auto r = co_await ingress.start();
    EXPECT_TRUE(r) << r.error().text();
    for (int i = 0; i < 5; ++i) tasks.spawn("produce", produce(env, ingress, produced));
  }
  Env& env;
  Ingress ingress;
  Produced& produced;
  TaskGroup tasks;
};

Task<void> collect(Env& env, Ingress& ingress, std::set<std::string>& out) {
  Sequence at = ingress.checkpoint();
  while (at < ingress.durable_end()) {
    auto r = co_await ingress.read(at, 100, 1 << 20);
    EXPECT_TRUE(r);
    if (!r) co_return;
    for (auto& record : r.value()) EXPECT_TRUE(out.insert(record.message->payload).second);
    at = at.plus(r.value().size());
  }
}

TEST_F(IngressTest, KilledAtAnyMoment_KeepsWhatWasAnswered) {
  options.segment_bytes_max = 3000;
  options.preallocate_bytes = 1000;
  options.memory_bytes_max = 2000;
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    sim::Solo world(seed);
    sim::Rng rng(sim::derive(seed, "kills"));
    Produced produced;
    for (int life = 0; life < 5; ++life) {
      world.machine.boot([&](Env& env) { return std::make_shared<Node>(env, options, produced); });
      if (rng.below(3) == 0) world.machine.disk().faults.eio_sync = 5000;
      if (rng.below(2) == 0) world.machine.kill_at_disk_call(rng.range(1, 150));
      world.sim.run_for(std::chrono::microseconds(rng.below(200'000)));
      world.machine.disk().faults.eio_sync = 0;
      world.machine.kill(rng.below(2) == 0 ? sim::Machine::Kill::power_cut
                                           : sim::Machine::Kill::process_exit);
    }
    world.machine.disk().power_cycle();
    std::set<std::string> found;
    auto last = [](Env& env, const Options& options, std::set<std::string>& out) -> Task<void> {
      Ingress ingress(env, options);
      auto r = co_await ingress.start();
      EXPECT_TRUE(r) << r.error().text();
      co_await collect(env, ingress, out);
      EXPECT_TRUE(co_await ingress.close());
    };
    // Without the factory of before: nobody produces now.
    world.machine.boot([](Env&) { return std::shared_ptr<void>(); });
    world.run([&](Env& env) { return last(env, options, found); });
    for (const std::string& payload : produced.accepted) {
      ASSERT_TRUE(found.contains(payload)) << payload << " was accepted, seed " << seed;
    }
    accepted += produced.accepted.size();
  }
  std::cout << "accepted " << accepted << "\n";
  EXPECT_GT(accepted, 10'000u);
}

}  // namespace
}  // namespace narad::ingress
