// A node is killed between any two handlers, a thousand times and more, with every kind of wait in
// flight: nothing leaks, nothing is touched after its end (run under the sanitizers), and the peers
// live on.
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>

#include "pkg/async/event.h"
#include "pkg/async/stream_io.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"

namespace narad::sim {
namespace {

using namespace std::chrono_literals;

int frames = 0, components = 0;
struct Guard {
  explicit Guard(int& n) : n(n) { ++n; }
  Guard(const Guard&) = delete;
  ~Guard() { --n; }
  int& n;
};

// A component with everything a node has: groups, events, mutexes, time-outs, jobs, files, streams,
// signals. Its frames refer to it by reference.
class App {
 public:
  App(Env& env, std::string peer)
      : env_(env),
        peer_(std::move(peer)),
        group_(env),
        changed_(env),
        mutex_(env),
        alive_(components) {
    group_.spawn("ticker", ticker());
    group_.spawn("waiter", waiter());
    group_.spawn("patient waiter", patient_waiter());
    for (int i = 0; i < 2; ++i) group_.spawn("locker", locker());
    for (int i = 0; i < 2; ++i) group_.spawn("blocker", blocker());
    group_.spawn("timeouts", timeouts());
    group_.spawn("server", server());
    group_.spawn("client", client());
    group_.spawn("signals", signals());
    group_.spawn("nest", nest());
  }
  ~App() { EXPECT_EQ(in_flight_, 0) << "every frame was gone before the component"; }

  std::uint64_t work = 0;
  std::uint64_t echoed = 0;

 private:
  struct Frame {
    explicit Frame(App& app) : all(frames), mine(app.in_flight_) {}
    Guard all, mine;
  };

  Task<void> ticker() {
    Frame frame(*this);
    std::string big(200, 'x');
    for (;;) {
      co_await sleep_for(env_, 7ms);
      changed_.notify_all();
      ++work;
      ++big[0];
    }
  }
  Task<void> waiter() {
    Frame frame(*this);
    for (;;) {
      co_await changed_.wait();
      ++work;
    }
  }
  Task<void> patient_waiter() {
    Frame frame(*this);
    for (;;) {
      const auto delay = static_cast<std::int64_t>(env_.random.next() % 10'000'000);
      if (co_await changed_.wait_for(Nanos(delay))) ++work;
    }
  }
  Task<void> locker() {
    Frame frame(*this);
    for (;;) {
      auto guard = co_await mutex_.lock();
      co_await sleep_for(env_, 1ms);
      ++work;
    }
  }
  Task<void> blocker() {
    Frame frame(*this);
    for (int n = 0;; ++n) {
      auto job = [&fs = env_.fs, n]() -> Result<int> {
        NARAD_TRY(auto file, fs.open("/f", OpenMode::create));
        NARAD_TRY(write_all(*file, as_bytes("hello"), static_cast<std::uint64_t>(n % 100)));
        NARAD_TRY(file->sync());
        return n;
      };
      auto result = co_await blocking(env_, "write", std::move(job));
      if (result) EXPECT_EQ(result.value(), n);
      ++work;
    }
  }
  Task<int> nested(int depth) {
    Frame frame(*this);
    if (depth == 0) {
      co_await sleep_for(env_, 13ms);
      co_return 1;
    }
    co_return 1 + co_await nested(depth - 1);
  }
  Task<void> timeouts() {
    Frame frame(*this);
    for (;;) {
      const auto delay = static_cast<std::int64_t>(env_.random.next() % 20'000'000);
      auto task = nested(5);
      (void)co_await with_timeout(env_, Nanos(delay), std::move(task));
    }
  }
  Task<void> session(std::unique_ptr<Stream> stream) {
    Frame frame(*this);
    std::array<char, 300> buffer;
    for (;;) {
      auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer));
      if (ec) co_return;
      const error_code failed =
          co_await write_all(*stream, buffers_of(std::string_view(buffer.data(), n)));
      if (failed) co_return;
    }
  }
  Task<void> server() {
    Frame frame(*this);
    auto listener = env_.net.listen(Endpoint{"", 80});
    EXPECT_TRUE(listener);
    auto owned = std::move(listener.value());
    for (;;) {
      auto stream = co_await accept(*owned);
      group_.spawn("session", session(std::move(stream)));
    }
  }
  Task<void> one_exchange() {
    Frame frame(*this);
    auto stream = co_await connect(env_, Endpoint{peer_, 80});
    const std::string text(1 + env_.random.next() % 5'000, 'e');
    for (int i = 0; i < 10; ++i) {
      const error_code ec = co_await write_all(*stream, buffers_of(text));
      if (ec) co_return;
      std::string back(text.size(), ' ');
      const error_code failed =
          co_await read_exactly(*stream, asio::buffer(back.data(), back.size()));
      if (failed) co_return;
      EXPECT_EQ(back, text);
      ++echoed;
    }
  }
  Task<void> client() {
    Frame frame(*this);
    for (;;) {
      try {
        auto exchange = one_exchange();
        (void)co_await finishes_within(env_, 500ms, std::move(exchange));
      } catch (const boost::system::system_error& e) {
        if (e.code() == asio::error::operation_aborted) throw;
      }
      co_await sleep_for(env_, 1ms);
    }
  }
  Task<void> signals() {
    Frame frame(*this);
    for (;;) (void)co_await next_signal(env_);
  }
  Task<void> nest() {
    Frame frame(*this);
    for (;;) {
      TaskGroup inner(env_);
      inner.spawn("inner", waiter());
      inner.spawn("inner", locker());
      co_await sleep_for(env_, 3ms);
      co_await inner.stop();
    }
  }

  Env& env_;
  const std::string peer_;
  int in_flight_ = 0;
  TaskGroup group_;
  Event changed_;
  Mutex mutex_;
  Guard alive_;
};

Machine::Factory app(const std::string& peer) {
  return [peer](Env& env) { return std::make_shared<App>(env, peer); };
}

TEST(Kill, AThousandTimesBetweenAnyTwoHandlers_LeavesNothingBehind) {
  int kills = 0, killed_frames = 0;
  std::uint64_t echoed = 0;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    Sim sim(seed);
    SimNet net(sim);
    Machine a(sim, net, 0, "a"), b(sim, net, 1, "b");
    Rng pick = sim.stream("kills");
    a.boot(app("b"));
    b.boot(app("a"));
    for (int k = 0; k < 4; ++k) {
      const std::uint64_t steps = pick.below(600);
      for (std::uint64_t i = 0; i < steps; ++i) sim.step();
      const auto kind = pick.below(2) == 0 ? Machine::Kill::power_cut : Machine::Kill::process_exit;
      const int frames_before = frames;
      b.kill(kind);
      ++kills;
      EXPECT_EQ(components, 1);
      killed_frames += frames_before - frames;
      sim.run_for(5ms);
      b.boot();
    }
    sim.run_for(20ms);
    EXPECT_GT(a.component<App>().work, 0u);
    echoed += a.component<App>().echoed;
  }
  EXPECT_EQ(kills, 1'000);
  EXPECT_GT(killed_frames, 10'000) << "most kills caught the node in full flight";
  EXPECT_EQ(frames, 0);
  EXPECT_EQ(components, 0);
  EXPECT_GT(echoed, 300u) << "the peers did talk";
}

TEST(Kill, InsideADiskCall_TearsTheNodeDownAsTheNextEvent) {
  int cuts = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Sim sim(seed);
    SimNet net(sim);
    Machine a(sim, net, 0, "a"), b(sim, net, 1, "b");
    a.boot(app("b"));
    b.boot(app("a"));
    b.set_on_down([&](Machine::Kill kind) {
      EXPECT_EQ(kind, Machine::Kill::power_cut);
      ++cuts;
      b.boot_after(1ms);
    });
    Rng pick = sim.stream("cuts");
    for (int k = 0; k < 3; ++k) {
      const std::uint64_t at = pick.range(1, 30);
      b.kill_at_disk_call(at, Machine::Kill::power_cut,
                          k == 1 ? SimFs::Cut::during_call : SimFs::Cut::before_call);
      const int before = cuts;
      EXPECT_TRUE(sim.run_until([&] { return cuts > before; }, 10s));
      EXPECT_FALSE(b.up());
      EXPECT_TRUE(sim.run_until([&] { return b.up(); }, 1s));
    }
  }
  EXPECT_EQ(cuts, 600);
  EXPECT_EQ(frames, 0);
}

std::uint64_t trace_of(std::uint64_t seed) {
  Sim sim(seed);
  SimNet net(sim);
  Machine a(sim, net, 0, "a"), b(sim, net, 1, "b");
  a.boot(app("b"));
  b.boot(app("a"));
  sim.run_for(500ms);
  b.kill(Machine::Kill::power_cut);
  sim.run_for(100ms);
  b.boot();
  sim.run_for(500ms);
  EXPECT_GT(sim.events(), 10'000u);
  return sim.trace();
}

TEST(Determinism, OneSeedTwice_GivesTheSameTraceAndAnotherSeedAnother) {
  for (std::uint64_t seed : {7, 8, 9}) EXPECT_EQ(trace_of(seed), trace_of(seed));
  EXPECT_NE(trace_of(7), trace_of(8));
}

}  // namespace
}  // namespace narad::sim
