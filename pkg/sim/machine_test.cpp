#include "pkg/sim/machine.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_executor.hpp>
#include <chrono>

#include "pkg/async/stream_io.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::sim {
namespace {

using namespace std::chrono_literals;

// ---- clock and timers --------------------------------------------------------------------------

TEST(SimClock, Rate_StretchesMonoAndTimersTogether) {
  Sim sim(1);
  SimClock clock(sim);
  clock.set_rate(2 * kAlways);
  sim.run_for(10s);
  EXPECT_EQ(clock.mono(), 20s);
  EXPECT_EQ(clock.to_virtual(20s), 10s);
  clock.set_rate(kAlways / 10);
  EXPECT_EQ(clock.mono(), 20s) << "time so far stays";
  sim.run_for(10s);
  EXPECT_EQ(clock.mono(), 21s);
}

TEST(SimClock, AnyRate_TimerNeverRingsEarlyByItsOwnClock) {
  Solo solo;
  solo.machine.timers().stretch_max = 0ns;
  Env& env = solo.env();
  for (Ppm rate : {526'316u, 900'001u, 1'000'000u, 1'100'003u, 1'900'000u}) {
    solo.machine.clock().set_rate(rate);
    for (std::int64_t ns : {1, 7, 999'999'937}) {
      const Nanos before = env.clock.mono();
      solo.run([ns](Env& env) { return sleep_for(env, Nanos(ns)); });
      EXPECT_GE(env.clock.mono() - before, Nanos(ns)) << rate;
      EXPECT_LT(env.clock.mono() - before, Nanos(ns + 5)) << rate;
    }
  }
}

TEST(SimClock, WallStep_DoesNotTouchMono) {
  Sim sim(1);
  SimClock clock(sim);
  const Nanos wall = clock.wall();
  clock.step_wall(-1h);
  EXPECT_EQ(clock.wall(), wall - 1h);
  EXPECT_EQ(clock.mono(), 0s);
  EXPECT_GT(clock.wall_millis().value(), 1'767'000'000'000);
}

TEST(SimClock, Reboot_BeginsMonoAnewAndKeepsWall) {
  Sim sim(1);
  SimClock clock(sim);
  clock.set_rate(kAlways * 11 / 10);
  sim.run_for(100s);
  const Nanos wall = clock.wall();
  clock.reboot();
  EXPECT_EQ(clock.mono(), 0s);
  EXPECT_EQ(clock.wall(), wall);
}

TEST(SimTimers, HugeDelay_NeverRings) {
  Solo solo;
  bool rang = false;
  auto ring = [&rang](error_code) { rang = true; };
  Env& env = solo.env();
  env.timers.wait(Nanos::max(), VoidHandler(asio::bind_executor(env.executor, ring)));
  solo.sim.run_for(1'000h);
  EXPECT_FALSE(rang);
}

TEST(Sim, EventsOfOneTime_RunInOrderAndCancelledOnesAreTold) {
  Sim sim(1);
  std::string order;
  sim.at(1s, kWorld, "b", [&](bool) { order += 'b'; });
  sim.at(500ms, kWorld, "a", [&](bool) { order += 'a'; });
  sim.at(1s, kWorld, "c", [&](bool) { order += 'c'; });
  const auto id = sim.at(1s, kWorld, "d", [&](bool cancelled) { order += cancelled ? 'X' : 'd'; });
  EXPECT_TRUE(sim.cancel(id));
  EXPECT_FALSE(sim.cancel(id));
  sim.run_for(2s);
  EXPECT_EQ(order, "Xabc");
  EXPECT_EQ(sim.now(), 2s);
}

TEST(Sim, EmptyWorld_LeapsOverYears) {
  Sim sim(1);
  sim.run_for(24h * 365 * 10);
  EXPECT_EQ(sim.now(), 24h * 365 * 10);
  EXPECT_EQ(sim.events(), 1u);
}

TEST(Sim, TraceLines_ShowTheLastStepsAndLogLines) {
  Solo solo;
  solo.sim.set_tracing(3);
  for (int i = 0; i < 5; ++i) solo.sim.at(std::chrono::seconds(i), kWorld, "tick", [](bool) {});
  solo.sim.run_until(3s);
  NARAD_LOG_INFO(solo.machine.log(), "hello", {"n", 5});
  EXPECT_EQ(solo.sim.trace_lines(),
            (std::vector<std::string>{"3s world tick", "3s world stop", "3s node 0   hello n=5"}));
}

// ---- boot, exit, kill --------------------------------------------------------------------------

struct Boots {
  explicit Boots(Env& env) : env(env), group(env) { group.spawn("count", count()); }
  Task<void> count() {
    auto job = [&fs = env.fs]() -> Result<int> {
      std::uint64_t n = 0;
      if (auto file = fs.open("/boots", OpenMode::read)) {
        NARAD_TRY(n, file.value()->size());
      }
      NARAD_TRY(replace_file(fs, "/boots", Bytes(static_cast<std::size_t>(n) + 1)));
      return static_cast<int>(n) + 1;
    };
    auto result = co_await blocking(env, "count", std::move(job));
    if (result) boots = result.value();
    co_await sleep_for(env, 1h);
  }
  Env& env;
  int boots = 0;
  TaskGroup group;
};

Machine::Factory boots() {
  return [](Env& env) { return std::make_shared<Boots>(env); };
}

TEST(Machine, DiskSurvivesEveryDeath_TheRestDoesNot) {
  Sim sim(1);
  SimNet net(sim);
  Machine m(sim, net, 0, "n0");
  for (int i = 1; i <= 6; ++i) {
    m.boot(boots());
    sim.run_for(1s);
    EXPECT_EQ(m.component<Boots>().boots, i);
    m.kill(i % 2 == 0 ? Machine::Kill::power_cut : Machine::Kill::process_exit);
    EXPECT_FALSE(m.up());
  }
  EXPECT_EQ(m.boots(), 6);
  EXPECT_EQ(m.disk().stats.cuts, 3u);
}

TEST(Machine, MonoClock_RestartsWithTheMachineNotWithTheProcess) {
  Sim sim(1);
  SimNet net(sim);
  Machine m(sim, net, 0, "n0");
  m.boot(boots());
  sim.run_for(10s);
  m.kill(Machine::Kill::process_exit);
  m.boot();
  EXPECT_EQ(m.env().clock.mono(), 10s);
  m.kill(Machine::Kill::power_cut);
  m.boot();
  EXPECT_EQ(m.env().clock.mono(), 0s);
}

TEST(Machine, RandomDoor_DiffersFromBootToBootAndRepeatsWithTheSeed) {
  const auto draws = [](std::uint64_t seed) {
    Sim sim(seed);
    SimNet net(sim);
    Machine a(sim, net, 0, "a"), b(sim, net, 1, "b");
    std::vector<std::uint64_t> out;
    for (int i = 0; i < 2; ++i) {
      a.boot(boots());
      b.boot(boots());
      out.push_back(a.env().random.next());
      out.push_back(b.env().random.next());
      a.kill(Machine::Kill::process_exit);
      b.kill(Machine::Kill::process_exit);
    }
    return out;
  };
  const auto first = draws(1);
  EXPECT_EQ(std::set<std::uint64_t>(first.begin(), first.end()).size(), 4u);
  EXPECT_EQ(first, draws(1));
  EXPECT_NE(first, draws(2));
}

Task<void> exits(Env& env) {
  co_await sleep_for(env, 1s);
  auto stream = co_await connect(env, Endpoint{"n1", 80});
  env.process.exit(kExitSyncFailed, "sync of the WAL failed");
  // Nothing leaves the node any more.
  (void)co_await write_all(*stream, buffers_of("ghost"));
  NARAD_LOG_INFO(env.log, "ghost");
  co_await sleep_for(env, 1h);
}

TEST(Machine, ProcessExit_TearsTheNodeDownNextAndRecordsTheCode) {
  Sim sim(1);
  SimNet net(sim);
  Machine m(sim, net, 0, "n0"), other(sim, net, 1, "n1");
  std::string heard;
  bool ended = false;
  const auto server = [](Env& env, std::string* heard, bool* ended) -> Task<void> {
    auto listener = env.net.listen(Endpoint{"", 80});
    auto owned = std::move(listener.value());
    auto stream = co_await accept(*owned);
    std::array<char, 100> buffer;
    for (;;) {
      auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer));
      if (ec) break;
      heard->append(buffer.data(), n);
    }
    *ended = true;
  };
  other.boot([&](Env& env) {
    auto group = std::make_shared<TaskGroup>(env);
    group->spawn("server", server(env, &heard, &ended));
    return group;
  });
  std::optional<Machine::Kill> down;
  m.set_on_down([&](Machine::Kill kind) { down = kind; });
  m.boot([](Env& env) {
    auto group = std::make_shared<TaskGroup>(env);
    group->spawn("exits", exits(env));
    return group;
  });
  sim.run_for(5s);
  EXPECT_FALSE(m.up());
  EXPECT_EQ(down, Machine::Kill::process_exit);
  ASSERT_TRUE(m.last_exit());
  EXPECT_EQ(m.last_exit()->code, kExitSyncFailed);
  EXPECT_EQ(m.last_exit()->why, "sync of the WAL failed");
  EXPECT_TRUE(ended) << "the kernel closed the connection";
  EXPECT_EQ(heard, "");
  m.boot(boots());
  EXPECT_FALSE(m.last_exit());
}

TEST(Machine, ProcessKilledAtADiskCall_KeepsThePageCacheOfTheCallsBefore) {
  Sim sim(1);
  SimNet net(sim);
  Machine m(sim, net, 0, "n0");
  m.boot([](Env& env) {
    auto group = std::make_shared<TaskGroup>(env);
    const auto write = [](Env& env) -> Task<void> {
      auto job = [&fs = env.fs]() -> Result<> {
        NARAD_TRY(auto file, fs.open("/f", OpenMode::create));
        NARAD_TRY(write_all(*file, as_bytes("one"), 0));
        NARAD_TRY(write_all(*file, as_bytes("two"), 3));
        return ok();
      };
      (void)co_await blocking(env, "write", std::move(job));
      ADD_FAILURE() << "the process was killed inside the job";
    };
    group->spawn("write", write(env));
    return group;
  });
  m.kill_at_disk_call(3, Machine::Kill::process_exit);
  sim.run_for(1s);
  EXPECT_FALSE(m.up());
  EXPECT_EQ(m.disk().stats.cuts, 0u);
  EXPECT_EQ(to_text(*m.disk().seen_bytes("/f")), "one");
}

TEST(Machine, BootAfter_BootsOnceAndOnlyIfStillDown) {
  Sim sim(1);
  SimNet net(sim);
  Machine m(sim, net, 0, "n0");
  m.boot(boots());
  m.kill(Machine::Kill::power_cut);
  m.boot_after(1s);
  m.boot_after(2s);
  sim.run_for(500ms);
  EXPECT_FALSE(m.up());
  sim.run_for(1s);
  EXPECT_TRUE(m.up());
  sim.run_for(5s);
  EXPECT_EQ(m.boots(), 2);
}

// ---- blocking work -----------------------------------------------------------------------------

TEST(SimBlocking, SlowDisk_KeepsWorkersBusyAndTheRestWaiting) {
  Solo solo;
  auto& pool = solo.machine.blocking();
  pool.threads = 2;
  pool.latency_spread = 0ms;
  solo.machine.disk().faults.call_latency = 1s;
  Env& env = solo.env();
  std::vector<Nanos> ends;
  for (int i = 0; i < 6; ++i) {
    auto job = [&fs = env.fs] { (void)fs.stat("/"); };
    auto done = [&](error_code) { ends.push_back(solo.sim.now()); };
    env.blocking.run("stat", UniqueFunction(job),
                     VoidHandler(asio::bind_executor(env.executor, done)));
  }
  solo.sim.run_for(500ms);
  EXPECT_TRUE(ends.empty());
  EXPECT_EQ(pool.waiting(), 4u);
  solo.sim.run_for(10s);
  ASSERT_EQ(ends.size(), 6u);
  EXPECT_GE(ends[1], 1s);
  EXPECT_GE(ends[3], 2s);
  EXPECT_GE(ends[5], 3s);
  EXPECT_LT(ends[5], 4s);
}

// ---- pause -------------------------------------------------------------------------------------

struct Ticker {
  explicit Ticker(Env& env) : env(env), group(env) { group.spawn("tick", tick()); }
  Task<void> tick() {
    for (;;) {
      const Nanos before = env.clock.mono();
      co_await sleep_for(env, 100ms);
      longest = std::max(longest, env.clock.mono() - before);
      ++ticks;
    }
  }
  Env& env;
  int ticks = 0;
  Nanos longest{0};
  TaskGroup group;
};

TEST(Machine, Pause_StopsEverythingAndResumeCatchesUp) {
  Solo solo;
  auto& m = solo.machine;
  m.boot([](Env& env) { return std::make_shared<Ticker>(env); });
  solo.sim.run_for(1s);
  const int before = m.component<Ticker>().ticks;
  EXPECT_GE(before, 9);
  m.pause();
  EXPECT_TRUE(m.paused());
  solo.sim.run_for(60s);
  EXPECT_EQ(m.component<Ticker>().ticks, before);
  m.resume();
  solo.sim.run_for(1s);
  EXPECT_GE(m.component<Ticker>().ticks, before + 10);
  EXPECT_GE(m.component<Ticker>().longest, 60s) << "its clock went on, and it can notice";
  m.pause();
  solo.sim.run_for(1s);
  m.kill(Machine::Kill::process_exit);
  EXPECT_FALSE(m.paused());
  m.boot();
  solo.sim.run_for(1s);
  EXPECT_GE(m.component<Ticker>().ticks, 9);
}

TEST(Machine, Suspend_StopsMonoButNotBootAndWall) {
  Solo solo;
  auto& m = solo.machine;
  m.boot([](Env& env) { return std::make_shared<Ticker>(env); });
  solo.sim.run_for(1s);
  const Nanos mono = m.clock().mono(), boot = m.clock().boot(), wall = m.clock().wall();
  m.pause(true);
  solo.sim.run_for(60s);
  m.resume();
  EXPECT_EQ(m.clock().mono(), mono);
  EXPECT_EQ(m.clock().boot(), boot + 60s);
  EXPECT_EQ(m.clock().wall(), wall + 60s);
  const int before = m.component<Ticker>().ticks;
  solo.sim.run_for(1s);
  EXPECT_GE(m.component<Ticker>().ticks, before + 9);
  EXPECT_LT(m.component<Ticker>().longest, 1s) << "in its own time nothing happened";
}

// ---- log, reach --------------------------------------------------------------------------------

TEST(SimLogSink, Lines_AreKeptCountedAndMarkedAsReached) {
  Solo solo;
  auto& log = solo.machine.log();
  NARAD_LOG_WARN(log, "disk slow", {"ms", 5}, {"path", "/a"});
  NARAD_LOG_WARN(log, "disk slow", {"ms", 6}, {"path", "/b"});
  NARAD_LOG_DEBUG(log, "noise");
  EXPECT_EQ(log.count("disk slow"), 2u);
  EXPECT_EQ(log.count(LogLevel::warn), 2u);
  EXPECT_EQ(log.count("noise"), 0u);
  ASSERT_NE(log.last("disk slow"), nullptr);
  EXPECT_EQ(log.last("disk slow")->text, "disk slow ms=6 path=/b");
  EXPECT_EQ(solo.sim.reach().count("log: disk slow"), 2u);
  EXPECT_EQ(solo.sim.reach().missing({"log: disk slow", "log: noise"}),
            std::vector<std::string>{"log: noise"});
}

// ---- the same in every build -------------------------------------------------------------------

TEST(Determinism, DoorsDrivenByHand_GiveThisTraceInEveryBuild) {
  // A change of the number is a change of the simulation, fine if meant. A difference between two
  // builds of one source is a bug: evaluation order, addresses, uninitialised memory.
  Sim sim(42);
  SimNet net(sim);
  Machine a(sim, net, 0, "a"), b(sim, net, 1, "b");
  const auto nothing = [](Env&) { return std::shared_ptr<void>(); };
  a.boot(nothing);
  b.boot(nothing);
  std::array<char, 5'000> buffer{};
  std::string text(20'000, 'x');
  std::unique_ptr<Stream> client, server;
  auto listener = std::move(b.env().net.listen(Endpoint{"", 80}).value());
  auto accepted = [&](error_code, std::unique_ptr<Stream> s) { server = std::move(s); };
  listener->accept(StreamHandler(asio::bind_executor(b.env().executor, accepted)));
  auto connected = [&](error_code, std::unique_ptr<Stream> s) { client = std::move(s); };
  a.env().net.connect(Endpoint{"b", 80},
                      StreamHandler(asio::bind_executor(a.env().executor, connected)));
  for (int i = 0; i < 50; ++i) {
    auto job = [&fs = a.env().fs, i] {
      auto file = fs.open(cat("/f", i % 7), OpenMode::create);
      (void)write_all(*file.value(), Bytes(1'000), static_cast<std::uint64_t>(i) * 100);
      if (i % 3 == 0) (void)file.value()->sync();
      if (i % 5 == 0) (void)fs.sync_dir("/");
    };
    a.env().blocking.run("write", UniqueFunction(job),
                         VoidHandler(asio::bind_executor(a.env().executor, [](error_code) {})));
    sim.run_for(20ms);
    if (client && server) {
      ConstBuffers out = buffers_of(text);
      client->write_some(
          out, IoHandler(asio::bind_executor(a.env().executor, [](error_code, std::size_t) {})));
      server->read_some(
          asio::buffer(buffer),
          IoHandler(asio::bind_executor(b.env().executor, [](error_code, std::size_t) {})));
      sim.run_for(20ms);
    }
  }
  sim.mix(a.disk().digest());
  client.reset();
  server.reset();
  listener.reset();
  a.kill(Machine::Kill::power_cut);
  sim.mix(a.disk().digest());
  EXPECT_GT(a.disk().stats.dropped + a.disk().stats.torn + a.disk().stats.garbage, 0u);
  EXPECT_EQ(to_hex16(sim.trace()), "9a89adcbebf6e629");
}

}  // namespace
}  // namespace narad::sim
