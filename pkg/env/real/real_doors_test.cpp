// The doors that need a loop or threads: timers, blocking, net, signals, runtime.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/read.hpp>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/env/real/real_process.h"
#include "pkg/env/real/runtime.h"
#include "pkg/env/real/system.h"

namespace narad {
namespace {

using std::chrono::milliseconds;

RuntimeOptions quiet() {
  RuntimeOptions options;
  options.log.level = LogLevel::error;
  return options;
}

Task<std::size_t> read_some(Stream& stream, std::span<char> into) {
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&,
                                          void(error_code, std::size_t)>(
      [&stream, into](auto handler) {
        stream.read_some(asio::buffer(into.data(), into.size()), IoHandler(std::move(handler)));
      },
      asio::use_awaitable);
}

Task<std::size_t> write_some(Stream& stream, std::string_view text) {
  ConstBuffers buffers;
  buffers.items[buffers.count++] = asio::buffer(text.data(), text.size());
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&,
                                          void(error_code, std::size_t)>(
      [&stream, buffers](auto handler) {
        stream.write_some(buffers, IoHandler(std::move(handler)));
      },
      asio::use_awaitable);
}

TEST(RealClock, Clocks_AdvanceAndAgreeOnTheirScale) {
  RealClock clock;
  const Nanos first = clock.mono();
  EXPECT_GT(clock.wall(), std::chrono::hours(24 * 365 * 50));
  EXPECT_GE(clock.boot(), first);
  EXPECT_GE(clock.mono(), first);
}

TEST(RealRandom, ManyNumbersFromTwoThreads_AreDistinct) {
  RealRandom random;
  std::vector<std::uint64_t> other;
  std::thread thread([&] {
    for (int i = 0; i < 1000; ++i) other.push_back(random.next());
  });
  std::set<std::uint64_t> all;
  for (int i = 0; i < 1000; ++i) all.insert(random.next());
  thread.join();
  all.insert(other.begin(), other.end());
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_FALSE(all.contains(0));
}

TEST(Runtime, MainTask_GivesTheExitCode) {
  Runtime runtime(quiet());
  const auto main = [](Env& env) -> Task<int> {
    const Nanos before = env.clock.mono();
    co_await sleep_for(env, milliseconds(2));
    co_return env.clock.mono() - before >= milliseconds(2) ? 7 : 1;
  };
  EXPECT_EQ(runtime.run(main(runtime.env())), 7);
  EXPECT_EQ(runtime.run(main(runtime.env())), 7);
}

TEST(Runtime, MainTaskThatThrows_IsAFailure) {
  RuntimeOptions options = quiet();
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  options.log.fd = pipe_fds[1];
  {
    Runtime runtime(options);
    const auto main = [](Env& env) -> Task<int> {
      co_await yield(env);
      throw std::runtime_error("out of ideas");
    };
    EXPECT_EQ(runtime.run(main(runtime.env())), kExitFailure);
  }
  char line[4096];
  const auto n = ::read(pipe_fds[0], line, sizeof line);
  ASSERT_GT(n, 0);
  EXPECT_NE(std::string_view(line, static_cast<std::size_t>(n)).find("out of ideas"),
            std::string_view::npos);
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}

TEST(Runtime, TasksStillSuspended_AreDestroyedWithTheDoorsStanding) {
  Runtime runtime(quiet());
  Env& env = runtime.env();
  Event event(env);
  auto listener = env.net.listen(Endpoint{"127.0.0.1", 0});
  ASSERT_TRUE(listener);
  TaskGroup group(env);
  const auto wait = [](Event& e) -> Task<void> { co_await e.wait(); };
  const auto nap = [](Env& e) -> Task<void> { co_await sleep_for(e, std::chrono::hours(1)); };
  const auto take = [](Listener& l) -> Task<void> { co_await accept(l); };
  const auto signal = [](Env& e) -> Task<void> { co_await next_signal(e); };
  group.spawn("wait", wait(event));
  group.spawn("nap", nap(env));
  group.spawn("take", take(*listener.value()));
  group.spawn("signal", signal(env));
  const auto main = [](Env& e) -> Task<int> {
    co_await sleep_for(e, milliseconds(1));
    co_return 0;
  };
  EXPECT_EQ(runtime.run(main(env)), 0);
  EXPECT_EQ(group.size(), 4u);
  runtime.shutdown();
  EXPECT_EQ(group.size(), 0u);
}

Task<void> wait_with_limit(Event& event, bool& notified) {
  notified = co_await event.wait_for(std::chrono::microseconds(1500));
}
Task<void> notify_later(Env& env, Event& event) {
  co_await sleep_for(env, milliseconds(1));
  event.notify_all();
}
// Holds the loop until both timers are due, so that they ring in one turn of it.
Task<int> hold_the_loop(Env& env, Event& event, bool& notified) {
  TaskGroup group(env);
  group.spawn("wait", wait_with_limit(event, notified));
  group.spawn("notify", notify_later(env, event));
  co_await yield(env);
  co_await yield(env);
  const Nanos until = env.clock.mono() + milliseconds(5);
  while (env.clock.mono() < until) {
  }
  co_await sleep_for(env, milliseconds(1));
  co_await group.stop();
  co_return 0;
}

TEST(RealTimers, EventNotifiedAsItsLimitRings_IsNotifiedAndTheTimerIsLeftAlone) {
  Runtime runtime(quiet());
  Event event(runtime.env());
  bool notified = false;
  EXPECT_EQ(runtime.run(hold_the_loop(runtime.env(), event, notified)), 0);
  EXPECT_TRUE(notified);
}

TEST(RealTimers, CancelledWait_EndsAtOnceWithOperationAborted) {
  Runtime runtime(quiet());
  const auto main = [](Env& env) -> Task<int> {
    const auto nap = [](Env& e) -> Task<int> {
      co_await sleep_for(e, std::chrono::hours(1));
      co_return 1;
    };
    auto slow = nap(env);
    auto r = co_await with_timeout(env, milliseconds(1), std::move(slow));
    co_return r ? 1 : 0;
  };
  EXPECT_EQ(runtime.run(main(runtime.env())), 0);
}

TEST(RealTimers, EndlessDelay_DoesNotOverflow) {
  Runtime runtime(quiet());
  const auto main = [](Env& env) -> Task<int> {
    const auto nap = [](Env& e) -> Task<int> {
      co_await sleep_for(e, Nanos::max());
      co_return 1;
    };
    auto slow = nap(env);
    auto r = co_await with_timeout(env, milliseconds(1), std::move(slow));
    co_return r ? 1 : 0;
  };
  EXPECT_EQ(runtime.run(main(runtime.env())), 0);
}

TEST(TaskGroup, StopDuringTimedWaits_IsCancellationNotFailure) {
  Runtime runtime(quiet());
  const auto main = [](Env& env) -> Task<int> {
    Event event(env);
    TaskGroup group(env);
    const auto waits = [](Event& e) -> Task<void> {
      (void)co_await e.wait_for(std::chrono::hours(1));
    };
    const auto naps = [](Env& e) -> Task<void> {
      const auto nap = [](Env& e) -> Task<int> {
        co_await sleep_for(e, std::chrono::hours(1));
        co_return 1;
      };
      auto slow = nap(e);
      (void)co_await with_timeout(e, std::chrono::hours(1), std::move(slow));
    };
    group.spawn("waits", waits(event));
    group.spawn("naps", naps(env));
    co_await sleep_for(env, milliseconds(1));
    co_await group.stop();
    co_return 0;
  };
  EXPECT_EQ(runtime.run(main(runtime.env())), 0);
}

TEST(RealBlocking, Jobs_RunOnOtherThreadsAndComeBackToTheLoop) {
  Runtime runtime(quiet());
  const auto main = [](Env& env) -> Task<int> {
    const auto loop = std::this_thread::get_id();
    for (int i = 0; i < 200; ++i) {
      auto job = [i]() -> Result<std::pair<std::thread::id, int>> {
        return std::pair(std::this_thread::get_id(), i);
      };
      auto r = co_await blocking(env, "test", std::move(job));
      if (!r || r.value().second != i || r.value().first == loop) co_return 1;
      if (std::this_thread::get_id() != loop) co_return 2;
    }
    co_return 0;
  };
  EXPECT_EQ(runtime.run(main(runtime.env())), 0);
}

// Two jobs that wait for each other can only end if they run at the same time.
TEST(RealBlocking, TwoJobs_Overlap) {
  Runtime runtime(quiet());
  auto here = std::make_shared<std::atomic<int>>(0);
  const auto meet = [](Env& env, std::shared_ptr<std::atomic<int>> count) -> Task<bool> {
    auto job = [count]() -> Result<bool> {
      count->fetch_add(1);
      count->notify_all();
      for (int n = count->load(); n < 2; n = count->load()) count->wait(n);
      return true;
    };
    auto r = co_await blocking(env, "meet", std::move(job));
    co_return r.value();
  };
  const auto main = [](Env&, Task<bool> a, Task<bool> b) -> Task<int> {
    using namespace asio::experimental::awaitable_operators;
    auto both = co_await (std::move(a) && std::move(b));
    co_return std::get<0>(both) && std::get<1>(both) ? 0 : 1;
  };
  EXPECT_EQ(runtime.run(main(runtime.env(), meet(runtime.env(), here), meet(runtime.env(), here))),
            0);
}

TEST(RealBlocking, JobsLeftAtTheEnd_AreDroppedUnlessStarted) {
  auto options = quiet();
  options.blocking_threads = 1;
  auto owned = std::make_shared<int>(1);
  std::weak_ptr<int> alive = owned;
  auto done = std::make_shared<std::atomic<bool>>(false);
  {
    Runtime runtime(options);
    TaskGroup group(runtime.env());
    auto started = std::make_shared<std::atomic<bool>>(false);
    auto release = std::make_shared<std::atomic<bool>>(false);
    std::thread releaser([started, release] {
      started->wait(false);
      release->store(true);
      release->notify_all();
    });
    const auto first = [](Env& env, std::shared_ptr<std::atomic<bool>> started,
                          std::shared_ptr<std::atomic<bool>> release,
                          std::shared_ptr<std::atomic<bool>> done) -> Task<void> {
      auto job = [started, release, done]() -> Result<> {
        started->store(true);
        started->notify_all();
        release->wait(false);
        done->store(true);
        return ok();
      };
      (void)co_await blocking(env, "first", std::move(job));
    };
    const auto second = [](Env& env, std::shared_ptr<int> owned) -> Task<void> {
      auto job = [owned]() -> Result<> {
        *owned = 2;
        return ok();
      };
      (void)co_await blocking(env, "second", std::move(job));
    };
    group.spawn("first", first(runtime.env(), started, release, done));
    group.spawn("second", second(runtime.env(), std::move(owned)));
    const auto main = [](Env& env, std::shared_ptr<std::atomic<bool>> started) -> Task<int> {
      co_await yield(env);
      started->wait(false);
      co_return 0;
    };
    EXPECT_EQ(runtime.run(main(runtime.env(), started)), 0);
    releaser.join();
    runtime.shutdown();
  }
  EXPECT_TRUE(done->load());
  EXPECT_TRUE(alive.expired());
}

Task<int> echo_once(std::unique_ptr<Listener> listener) {
  auto stream = co_await accept(*listener);
  char buffer[64];
  for (;;) {
    std::size_t n = 0;
    try {
      n = co_await read_some(*stream, buffer);
    } catch (const boost::system::system_error& e) {
      co_return e.code() == asio::error::eof ? 0 : 1;
    }
    co_await write_some(*stream, std::string_view(buffer, n));
  }
}

Task<int> say_hello(Env& env, Endpoint to) {
  auto stream = co_await connect(env, to);
  if (stream->peer().port != to.port) co_return 2;
  co_await write_some(*stream, "hello");
  stream->shutdown_write();
  std::string got;
  char buffer[64];
  for (;;) {
    try {
      const std::size_t n = co_await read_some(*stream, buffer);
      got.append(buffer, n);
    } catch (const boost::system::system_error& e) {
      if (e.code() != asio::error::eof) co_return 3;
      break;
    }
  }
  co_return got == "hello" ? 0 : 4;
}

Task<int> both(Task<int> a, Task<int> b) {
  using namespace asio::experimental::awaitable_operators;
  auto r = co_await (std::move(a) && std::move(b));
  co_return std::get<0>(r) * 10 + std::get<1>(r);
}

struct Hosts {
  std::string name;
  std::string listen_on;
  std::string connect_to;
};
void PrintTo(const Hosts& hosts, std::ostream* out) { *out << hosts.name; }
class RealNetListening : public testing::TestWithParam<Hosts> {};

TEST_P(RealNetListening, ConnectWriteHalfCloseRead_Works) {
  Runtime runtime(quiet());
  Env& env = runtime.env();
  auto listener = env.net.listen(Endpoint{GetParam().listen_on, 0});
  if (!listener && listener.error().os_errno() == EADDRNOTAVAIL) GTEST_SKIP() << "no IPv6 here";
  ASSERT_TRUE(listener) << listener.error().text();
  const auto port = listener.value()->local().port;
  ASSERT_NE(port, 0);
  EXPECT_EQ(runtime.run(both(echo_once(std::move(listener.value())),
                             say_hello(env, Endpoint{GetParam().connect_to, port}))),
            0);
}

INSTANTIATE_TEST_SUITE_P(Hosts, RealNetListening,
                         testing::Values(Hosts{"V4", "127.0.0.1", "127.0.0.1"},
                                         Hosts{"Empty", "", "127.0.0.1"},
                                         Hosts{"AnyV4", "0.0.0.0", "localhost"},
                                         Hosts{"Localhost", "localhost", "localhost"},
                                         Hosts{"V6", "::1", "::1"},
                                         Hosts{"AnyV6", "::", "127.0.0.1"}),
                         [](const auto& info) { return info.param.name; });

TEST(RealNet, ListenOnATakenPort_NamesTheAddress) {
  Runtime runtime(quiet());
  auto first = runtime.env().net.listen(Endpoint{"127.0.0.1", 0});
  ASSERT_TRUE(first);
  const Endpoint at = first.value()->local();
  auto second = runtime.env().net.listen(at);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().os_errno(), EADDRINUSE);
  EXPECT_NE(second.error().text().find(to_string(at)), std::string::npos);
  auto named = runtime.env().net.listen(Endpoint{"example.com", 0});
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code(), Errc::invalid_argument);
}

TEST(RealNet, MappedIpv4Peer_IsShownAsIpv4) {
  Runtime runtime(quiet());
  Env& env = runtime.env();
  auto listener = env.net.listen(Endpoint{"", 0});
  ASSERT_TRUE(listener);
  const auto port = listener.value()->local().port;
  const auto server = [](std::unique_ptr<Listener> l) -> Task<int> {
    auto stream = co_await accept(*l);
    co_return stream->peer().host == "127.0.0.1" ? 0 : 1;
  };
  const auto client = [](Env& e, Endpoint to) -> Task<int> {
    auto stream = co_await connect(e, to);
    co_return 0;
  };
  EXPECT_EQ(runtime.run(both(server(std::move(listener.value())),
                             client(env, Endpoint{"127.0.0.1", port}))),
            0);
}

TEST(RealNet, RefusedConnect_SaysSo) {
  Runtime runtime(quiet());
  auto listener = runtime.env().net.listen(Endpoint{"127.0.0.1", 0});
  const Endpoint at = listener.value()->local();
  listener.value().reset();
  const auto main = [](Env& env, Endpoint to) -> Task<int> {
    try {
      co_await connect(env, to);
    } catch (const boost::system::system_error& e) {
      co_return e.code() == asio::error::connection_refused ? 0 : 2;
    }
    co_return 1;
  };
  EXPECT_EQ(runtime.run(main(runtime.env(), at)), 0);
}

TEST(RealNet, CancelledAcceptAndRead_EndAtOnce) {
  Runtime runtime(quiet());
  Env& env = runtime.env();
  auto listener = env.net.listen(Endpoint{"127.0.0.1", 0});
  const auto main = [](Env& e, Listener& l) -> Task<int> {
    auto first = accept(l);
    if (co_await with_timeout(e, milliseconds(1), std::move(first))) co_return 1;
    auto client = co_await connect(e, l.local());
    auto server = co_await accept(l);
    char buffer[8];
    auto reading = read_some(*server, buffer);
    if (co_await with_timeout(e, milliseconds(1), std::move(reading))) co_return 2;
    co_return 0;
  };
  EXPECT_EQ(runtime.run(main(env, *listener.value())), 0);
}

// As a server stops: the listener goes, and in the same breath its task is cancelled.
TEST(RealNet, ListenerDestroyedThenAcceptCancelled_EndsTheTask) {
  const auto check = [](Env& env) -> Task<int> {
    auto listener = std::move(env.net.listen(Endpoint{"127.0.0.1", 0}).value());
    TaskGroup group(env);
    const auto take = [](Listener* l) -> Task<void> { co_await accept(*l); };
    group.spawn("accept", take(listener.get()));
    co_await yield(env);
    EXPECT_EQ(group.size(), 1u);
    listener.reset();
    co_await group.stop();
    co_return 0;
  };
  Runtime runtime(quiet());
  EXPECT_EQ(runtime.run(check(runtime.env())), 0);
}

TEST(RealNet, CloseDuringRead_CompletesItWithOperationAborted) {
  Runtime runtime(quiet());
  Env& env = runtime.env();
  auto listener = env.net.listen(Endpoint{"127.0.0.1", 0});
  const auto main = [](Env& e, Listener& l) -> Task<int> {
    auto client = co_await connect(e, l.local());
    auto server = co_await accept(l);
    const auto closer = [](Env& e, Stream& s) -> Task<int> {
      co_await yield(e);
      s.close();
      co_return 0;
    };
    const auto reader = [](Stream& s) -> Task<int> {
      char buffer[8];
      try {
        co_await read_some(s, buffer);
      } catch (const boost::system::system_error& error) {
        co_return error.code() == asio::error::operation_aborted ? 0 : 2;
      }
      co_return 1;
    };
    auto a = reader(*server);
    auto b = closer(e, *server);
    co_return co_await both(std::move(a), std::move(b));
  };
  EXPECT_EQ(runtime.run(main(env, *listener.value())), 0);
}

TEST(RealSignals, TerminateAndHangup_ArriveInTheLoop) {
  auto options = quiet();
  options.handle_signals = true;
  Runtime runtime(options);
  const auto main = [](Env& env) -> Task<int> {
    ::kill(::getpid(), SIGHUP);
    if (co_await next_signal(env) != Signal::reload) co_return 1;
    ::kill(::getpid(), SIGTERM);  // between two waits: kept
    co_await yield(env);
    if (co_await next_signal(env) != Signal::terminate) co_return 2;
    ::kill(::getpid(), SIGINT);
    if (co_await next_signal(env) != Signal::terminate) co_return 3;
    ::kill(::getpid(), SIGPIPE);  // ignored
    auto none = next_signal(env);
    if (co_await with_timeout(env, milliseconds(5), std::move(none))) co_return 4;
    co_return 0;
  };
  EXPECT_EQ(runtime.run(main(runtime.env())), 0);
}

TEST(RealProcessDeathTest, Exit_LogsWhyAndEndsWithTheCode) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        RuntimeOptions options;
        options.log.fd = 2;
        Runtime runtime(options);
        runtime.env().process.exit(kExitSyncFailed, "the disk said no");
      },
      testing::ExitedWithCode(74), "\"level\":\"ERROR\".*\"code\":74,\"why\":\"the disk said no\"");
}

TEST(RealProcess, Describe_NamesThePid) {
  Runtime runtime(quiet());
  EXPECT_TRUE(runtime.env().process.describe().starts_with(cat("pid ", ::getpid())));
}

}  // namespace
}  // namespace narad
