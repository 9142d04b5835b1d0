#include <gtest/gtest.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad {
namespace {

using namespace std::chrono_literals;
using sim::Solo;

// Records what happened, in order.
using Log = std::shared_ptr<std::vector<std::string>>;
Log new_log() { return std::make_shared<std::vector<std::string>>(); }

error_code code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& e) {
    return e.code();
  } catch (...) {
    return {};
  }
}

// ---- sleep_for, yield, blocking ----------------------------------------------------------------

Task<void> sleeps(Env& env) {
  const Nanos before = env.clock.mono();
  co_await sleep_for(env, 3s);
  const Nanos took = env.clock.mono() - before;
  EXPECT_GE(took, 3s);
  EXPECT_LT(took, 3s + 1ms);
}

TEST(SleepFor, ADelay_TakesThatLongOfTheMonoClock) {
  Solo solo;
  solo.run(sleeps);
  solo.machine.clock().set_rate(500'000);  // half as fast
  const Nanos before = solo.sim.now();
  solo.run(sleeps);
  EXPECT_GE(solo.sim.now() - before, 6s);
}

Task<void> appends(Env& env, Log log, std::string word, bool yields) {
  log->push_back(word + " starts");
  if (yields) co_await yield(env);
  log->push_back(word + " ends");
}

Task<void> two_in_turn(Env& env, Log log) {
  TaskGroup group(env);
  group.spawn("a", appends(env, log, "a", true));
  group.spawn("b", appends(env, log, "b", false));
  co_await sleep_for(env, 1ms);
  EXPECT_EQ(*log, (std::vector<std::string>{"a starts", "b starts", "b ends", "a ends"}));
  co_await group.stop();
}

TEST(Yield, InOneTask_LetsTheOtherRunFirst) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return two_in_turn(env, log); });
}

Task<void> blocks(Env& env) {
  auto counter = std::make_shared<int>(0);
  auto job = [counter]() -> Result<int> { return ++*counter; };
  auto result = co_await blocking(env, "count", std::move(job));
  EXPECT_EQ(result.value(), 1);
  auto failing = []() -> Result<> { return Error(Errc::unavailable, "the disk is full"); };
  auto failed = co_await blocking(env, "fail", std::move(failing));
  EXPECT_EQ(failed.error().text(), "the disk is full");
  auto owner = [p = std::make_unique<std::string>("moved")]() { return *p; };
  auto text = co_await blocking(env, "own", std::move(owner));
  EXPECT_EQ(text, "moved");
}

TEST(Blocking, AJob_AnswersItsValueOrErrorAndMayOwnMoveOnlyThings) {
  Solo solo;
  solo.run(blocks);
}

Task<int> sets(Env& env, std::shared_ptr<int> target) {
  auto job = [target] { return *target = 7; };
  co_return co_await blocking(env, "set", std::move(job));
}

TEST(Blocking, CancelledCaller_StillWaitsForItsJob) {
  Solo solo;
  auto target = std::make_shared<int>(0);
  // The await itself completes normally; the next co_await of the cancelled task throws.
  const auto task = [](Env& env, std::shared_ptr<int> target) -> Task<void> {
    TaskGroup group(env);
    const auto child = [](Env& env, std::shared_ptr<int> target) -> Task<void> {
      (void)co_await sets(env, target);
      co_await sleep_for(env, 1s);
      ADD_FAILURE() << "a cancelled task went on";
    };
    group.spawn("job", child(env, target));
    co_await yield(env);
    const Nanos before = env.clock.mono();
    co_await group.stop();
    EXPECT_EQ(*target, 7) << "a started job runs to its end before stop() answers";
    EXPECT_LT(env.clock.mono() - before, 100ms);
  };
  solo.run([target, task](Env& env) { return task(env, target); });
}

// ---- Event -------------------------------------------------------------------------------------

Task<void> waits(Event& event, Log log, std::string word) {
  co_await event.wait();
  log->push_back(word);
}

Task<void> waits_for(Event& event, Nanos delay, Log log, std::string word) {
  const bool notified = co_await event.wait_for(delay);
  log->push_back(cat(word, notified ? " notified" : " late"));
}

Task<void> notify_wakes_all(Env& env, Log log) {
  Event event(env);
  TaskGroup group(env);
  group.spawn("a", waits(event, log, "a"));
  group.spawn("b", waits(event, log, "b"));
  co_await sleep_for(env, 1ms);
  EXPECT_EQ(event.waiters(), 2u);
  event.notify_all();
  EXPECT_EQ(event.waiters(), 0u);
  group.spawn("c", waits(event, log, "c"));
  co_await sleep_for(env, 1ms);
  EXPECT_EQ(*log, (std::vector<std::string>{"a", "b"})) << "nothing is remembered for later ones";
  co_await group.stop();
  EXPECT_EQ(log->size(), 2u);
}

TEST(Event, NotifyAll_WakesThoseWhoWaitNowInOrder) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return notify_wakes_all(env, log); });
}

Task<void> timed_waits(Env& env, Log log) {
  Event event(env);
  TaskGroup group(env);
  group.spawn("a", waits_for(event, 1s, log, "a"));
  group.spawn("b", waits_for(event, 3s, log, "b"));
  group.spawn("c", waits_for(event, 0s, log, "c"));
  co_await sleep_for(env, 2s);
  event.notify_all();
  co_await sleep_for(env, 2s);
  EXPECT_EQ(*log, (std::vector<std::string>{"c late", "a late", "b notified"}));
  EXPECT_EQ(event.waiters(), 0u);
  EXPECT_EQ(env.parking.size(), 0u);
  co_await group.stop();
}

TEST(Event, WaitFor_TellsNotificationFromTimeOut) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return timed_waits(env, log); });
  EXPECT_LE(solo.sim.now(), 5s);
}

Task<void> notify_at_once(Env& env) {
  Event event(env);
  TaskGroup group(env);
  auto log = new_log();
  // The notification comes as soon as another task can possibly run.
  const auto notifier = [](Event& event) -> Task<void> {
    event.notify_all();
    co_return;
  };
  group.spawn("notify", notifier(event));
  const bool notified = co_await event.wait_for(1s);
  // Whether spawn() ran the notifier inside or later, both orders are consistent: a notification
  // before the wait is not remembered, one after it is seen.
  if (!notified) {
    EXPECT_GE(env.clock.mono(), 1s);
  }
  group.spawn("wait", waits_for(event, 1s, log, "w"));
  co_await yield(env);
  co_await yield(env);
  event.notify_all();
  co_await sleep_for(env, 10ms);
  EXPECT_EQ(*log, (std::vector<std::string>{"w notified"}));
  co_await group.stop();
}

TEST(Event, NotificationRightAfterWaitForBegan_IsSeen) {
  Solo solo;
  solo.run(notify_at_once);
}

Task<void> cancelled_wait_for(Env& env, Log log) {
  Event event(env);
  TaskGroup group(env);
  group.spawn("w", waits_for(event, 1h, log, "w"));
  co_await sleep_for(env, 1ms);
  co_await group.stop();
  EXPECT_TRUE(log->empty());
  EXPECT_EQ(event.waiters(), 0u);
  EXPECT_EQ(env.parking.size(), 0u);
}

TEST(Event, CancelledWaitFor_EndsAtOnceAsACancellationNotAFailure) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return cancelled_wait_for(env, log); });
  EXPECT_LT(solo.sim.now(), 1s);
  EXPECT_EQ(solo.machine.log().count(LogLevel::error), 0u);
  EXPECT_FALSE(solo.machine.last_exit());
  solo.sim.run_for(10ms);
  EXPECT_EQ(solo.sim.pending(), 0u) << "the timer was cancelled too";
}

Task<error_code> wait_outcome(std::shared_ptr<Event> event) {
  std::exception_ptr error;
  Event& e = *event;
  event.reset();
  try {
    co_await e.wait();
  } catch (...) {
    error = std::current_exception();
  }
  co_return error ? code_of(error) : error_code{};
}

Task<void> destroyed_event(Env& env) {
  auto event = std::make_shared<Event>(env);
  auto outcome = std::make_shared<std::optional<error_code>>();
  TaskGroup group(env);
  const auto watch = [](std::shared_ptr<Event> event,
                        std::shared_ptr<std::optional<error_code>> out) -> Task<void> {
    out->emplace(co_await wait_outcome(std::move(event)));
  };
  group.spawn("watch", watch(event, outcome));
  co_await sleep_for(env, 1ms);
  event.reset();
  co_await sleep_for(env, 1ms);
  EXPECT_TRUE(outcome->has_value());
  if (outcome->has_value()) {
    EXPECT_EQ(**outcome, asio::error::operation_aborted);
  }
  co_await group.stop();
}

TEST(Event, DestroyedWhileWaitedFor_WakesTheWaiterWithOperationAborted) {
  Solo solo;
  solo.run(destroyed_event);
}

Task<void> many_timed_out_waits(Env& env) {
  Event event(env);
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_FALSE(co_await event.wait_for(1ms));
  }
  EXPECT_EQ(event.waiters(), 0u);
  EXPECT_EQ(env.parking.size(), 0u);
}

TEST(Event, ManyTimedOutWaits_LeaveNothingBehind) {
  Solo solo;
  solo.run(many_timed_out_waits);
}

// ---- Mutex -------------------------------------------------------------------------------------

Task<void> holds(Env& env, Mutex& mutex, Nanos how_long, Log log, std::string word) {
  auto guard = co_await mutex.lock();
  log->push_back(word + " in");
  co_await sleep_for(env, how_long);
  log->push_back(word + " out");
}

Task<void> lock_in_order(Env& env, Log log) {
  Mutex mutex(env);
  TaskGroup group(env);
  for (const char* word : {"a", "b", "c"}) {
    group.spawn("hold", holds(env, mutex, 10ms, log, word));
    co_await yield(env);
  }
  co_await sleep_for(env, 100ms);
  EXPECT_EQ(*log, (std::vector<std::string>{"a in", "a out", "b in", "b out", "c in", "c out"}));
  EXPECT_FALSE(mutex.locked());
  co_await group.stop();
}

TEST(Mutex, ThreeHolders_ComeInTurnAndInOrder) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return lock_in_order(env, log); });
}

Task<void> cancelled_lock(Env& env, Log log) {
  Mutex mutex(env);
  TaskGroup holders(env), waiters(env);
  holders.spawn("a", holds(env, mutex, 10ms, log, "a"));
  co_await yield(env);
  waiters.spawn("b", holds(env, mutex, 10ms, log, "b"));
  co_await yield(env);
  holders.spawn("c", holds(env, mutex, 10ms, log, "c"));
  co_await sleep_for(env, 1ms);
  co_await waiters.stop();
  co_await sleep_for(env, 100ms);
  EXPECT_EQ(*log, (std::vector<std::string>{"a in", "a out", "c in", "c out"}));
  EXPECT_FALSE(mutex.locked());
  co_await holders.stop();
}

TEST(Mutex, CancelledWaiter_DoesNotSwallowTheLock) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return cancelled_lock(env, log); });
}

// The holder lets go and the waiter is cancelled in the same instant, before it has run.
Task<void> cancelled_at_hand_over(Env& env, Log log) {
  Mutex mutex(env);
  TaskGroup waiters(env);
  auto guard = co_await mutex.lock();
  waiters.spawn("b", holds(env, mutex, 1h, log, "b"));
  co_await sleep_for(env, 1ms);
  guard.release();
  co_await waiters.stop();
  EXPECT_FALSE(mutex.locked());
  auto again = co_await mutex.lock();
  EXPECT_TRUE(mutex.locked());
}

TEST(Mutex, WaiterCancelledWhileItIsHandedTheLock_ReleasesIt) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return cancelled_at_hand_over(env, log); });
  EXPECT_LT(solo.sim.now(), 1s);
}

Task<void> lock_with_timeout(Env& env, Log log) {
  Mutex mutex(env);
  auto guard = co_await mutex.lock();
  for (int i = 0; i < 300; ++i) {
    auto locking = mutex.lock();
    auto got = co_await with_timeout(env, 1ms, std::move(locking));
    EXPECT_FALSE(got.has_value());
  }
  guard.release();
  auto locking = mutex.lock();
  auto got = co_await with_timeout(env, 1ms, std::move(locking));
  EXPECT_TRUE(got.has_value());
  EXPECT_TRUE(mutex.locked());
  got.reset();
  EXPECT_FALSE(mutex.locked());
  EXPECT_EQ(env.parking.size(), 0u);
}

TEST(Mutex, LockWithTimeout_GetsItOrLeavesNothingBehind) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return lock_with_timeout(env, log); });
}

// ---- with_timeout ------------------------------------------------------------------------------

Task<Result<int>> answers_after(Env& env, Nanos delay, Result<int> answer) {
  co_await sleep_for(env, delay);
  co_return answer;
}

Task<void> timeouts(Env& env) {
  auto fast = answers_after(env, 1ms, 5);
  auto in_time = co_await with_timeout(env, 1s, std::move(fast));
  EXPECT_TRUE(in_time.has_value());
  if (in_time) {
    EXPECT_EQ(in_time->value(), 5);
  }
  auto failing = answers_after(env, 1ms, Error(Errc::not_found, "no such topic"));
  auto failed = co_await with_timeout(env, 1s, std::move(failing));
  EXPECT_TRUE(failed.has_value());
  if (failed) {
    EXPECT_EQ(failed->error().code(), Errc::not_found);
  }
  const Nanos before = env.clock.mono();
  auto slow = answers_after(env, 1h, 5);
  auto late = co_await with_timeout(env, 1s, std::move(slow));
  EXPECT_FALSE(late.has_value());
  EXPECT_GE(env.clock.mono() - before, 1s);
  EXPECT_LT(env.clock.mono() - before, 2s);
  auto sleeping = sleep_for(env, 1ms);
  EXPECT_TRUE(co_await finishes_within(env, 1s, std::move(sleeping)));
  auto too_long = sleep_for(env, 1h);
  EXPECT_FALSE(co_await finishes_within(env, 1s, std::move(too_long)));
}

TEST(WithTimeout, TaskInTimeOrNot_GivesItsResultOrNothing) {
  Solo solo;
  solo.run(timeouts);
}

Task<int> throws_after(Env& env, Nanos delay) {
  co_await sleep_for(env, delay);
  throw boost::system::system_error(asio::error::connection_reset);
}

Task<void> failure_passes_at_once(Env& env) {
  const Nanos before = env.clock.mono();
  error_code ec;
  try {
    auto task = throws_after(env, 1ms);
    (void)co_await with_timeout(env, 1h, std::move(task));
    ADD_FAILURE() << "nothing thrown";
  } catch (const boost::system::system_error& e) {
    ec = e.code();
  }
  EXPECT_EQ(ec, asio::error::connection_reset);
  EXPECT_LT(env.clock.mono() - before, 1s) << "a failure is not a time-out";
}

TEST(WithTimeout, TaskThatThrows_PassesItsExceptionAtOnce) {
  Solo solo;
  solo.run(failure_passes_at_once);
}

Task<void> throws_bare(Env& env, Nanos delay) { (void)co_await throws_after(env, delay); }

Task<void> races(Env& env) {
  const Nanos before = env.clock.mono();
  auto fast = sleep_for(env, 1ms), slow = sleep_for(env, 1h);
  EXPECT_TRUE(co_await finishes_before(std::move(fast), std::move(slow)));
  auto late = sleep_for(env, 1h), early = sleep_for(env, 1ms);
  EXPECT_FALSE(co_await finishes_before(std::move(late), std::move(early)));
  for (bool first : {true, false}) {
    error_code ec;
    try {
      auto broken = throws_bare(env, 1ms), sleeping = sleep_for(env, 1h);
      (void)co_await (first ? finishes_before(std::move(broken), std::move(sleeping))
                            : finishes_before(std::move(sleeping), std::move(broken)));
    } catch (const boost::system::system_error& e) {
      ec = e.code();
    }
    EXPECT_EQ(ec, asio::error::connection_reset);
  }
  EXPECT_LT(env.clock.mono() - before, 1s);
}

TEST(FinishesBefore, OneOfTwoTasks_WinsOrBreaksTheRace) {
  Solo solo;
  solo.run(races);
}

Task<void> long_timeout(Env& env, Log log) {
  auto task = answers_after(env, 1h, 5);
  (void)co_await with_timeout(env, 2h, std::move(task));
  log->push_back("went on");
}

Task<void> cancel_a_timeout(Env& env, Log log) {
  TaskGroup group(env);
  group.spawn("t", long_timeout(env, log));
  co_await sleep_for(env, 1ms);
  co_await group.stop();
  EXPECT_TRUE(log->empty());
}

TEST(WithTimeout, CancelledFromOutside_EndsAsACancellationNotAFailure) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return cancel_a_timeout(env, log); });
  EXPECT_LT(solo.sim.now(), 1s);
  EXPECT_EQ(solo.machine.log().count("task failed"), 0u);
  EXPECT_TRUE(solo.machine.up());
}

Task<void> late_job(Env& env) {
  auto job = sets(env, std::make_shared<int>(0));
  const Nanos before = env.clock.mono();
  auto result = co_await with_timeout(env, 1us, std::move(job));
  EXPECT_GT(env.clock.mono() - before, 1us);
  EXPECT_TRUE(result.has_value()) << "what was achieved in spite of the cancellation is kept";
}

TEST(WithTimeout, TaskThatIgnoresCancellation_IsAwaitedAndItsResultKept) {
  Solo solo;
  solo.machine.blocking().latency_min = 1ms;
  solo.run(late_job);
}

Task<void> deadlines(Env& env) {
  const auto never = Deadline::after(env, Nanos::max());
  EXPECT_FALSE(never.passed(env));
  EXPECT_GT(never.left(env), 24h * 365);
  const auto soon = Deadline::after(env, 1s);
  co_await sleep_for(env, 2s);
  EXPECT_TRUE(soon.passed(env));
  EXPECT_LT(soon.left(env), 0s);
  EXPECT_FALSE(never.passed(env));
}

TEST(Deadline, ADelay_PassesAndTheLargestNeverDoes) {
  Solo solo;
  solo.run(deadlines);
}

// ---- TaskGroup ---------------------------------------------------------------------------------

Task<void> cleans_up_when_cancelled(Env& env, Log log) {
  try {
    co_await sleep_for(env, 1h);
  } catch (const boost::system::system_error& e) {
    log->push_back(e.code() == asio::error::operation_aborted ? "cancelled" : "?");
  }
}

Task<void> stops(Env& env, Log log) {
  TaskGroup group(env);
  for (int i = 0; i < 3; ++i) group.spawn("sleeper", cleans_up_when_cancelled(env, log));
  co_await sleep_for(env, 1ms);
  EXPECT_EQ(group.size(), 3u);
  EXPECT_FALSE(group.stopping());
  co_await group.stop();
  EXPECT_EQ(group.size(), 0u);
  EXPECT_TRUE(group.stopping());
  EXPECT_EQ(log->size(), 3u);
  group.spawn("late", cleans_up_when_cancelled(env, log));
  EXPECT_EQ(group.size(), 0u) << "after stop() a task is destroyed unstarted";
  co_await group.stop();
}

TEST(TaskGroup, Stop_CancelsAndJoinsAllAndRefusesNewOnes) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return stops(env, log); });
}

Task<void> child_of_component(Env& env, Log log) {
  try {
    co_await sleep_for(env, 1h);
  } catch (const boost::system::system_error&) {
  }
  // Takes its time to end: a job cannot be cancelled.
  auto job = [log] {
    log->push_back("child ended");
    return 0;
  };
  co_await clear_cancellation();
  (void)co_await blocking(env, "linger", std::move(job));
}

Task<void> component(Env& env, Log log) {
  TaskGroup children(env);
  children.spawn("child", child_of_component(env, log));
  bool cancelled = false;
  try {
    co_await sleep_for(env, 1h);
  } catch (const boost::system::system_error&) {
    cancelled = true;
  }
  co_await clear_cancellation();
  co_await children.stop();
  log->push_back(cancelled ? "component joined" : "?");
}

Task<void> nested_stop(Env& env, Log log) {
  TaskGroup group(env);
  group.spawn("component", component(env, log));
  co_await sleep_for(env, 1ms);
  co_await group.stop();
  EXPECT_EQ(*log, (std::vector<std::string>{"child ended", "component joined"}));
}

TEST(TaskGroup, StopInsideATaskThatClearedItsCancellation_JoinsItsChildren) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return nested_stop(env, log); });
}

Task<void> stops_a_lingering_child(Env& env, Log log) {
  TaskGroup children(env);
  children.spawn("child", child_of_component(env, log));
  co_await sleep_for(env, 1ms);
  co_await children.stop();  // cancelled in here
  log->push_back("component joined");
}

Task<void> cancels_a_stop(Env& env, Log log) {
  TaskGroup group(env);
  group.spawn("component", stops_a_lingering_child(env, log));
  co_await sleep_for(env, 2ms);
  EXPECT_TRUE(log->empty());
  co_await group.stop();
  EXPECT_EQ(*log, (std::vector<std::string>{"child ended", "component joined"}));
}

TEST(TaskGroup, CancelledDuringStop_StillJoinsItsChildren) {
  Solo solo;
  solo.machine.blocking().latency_min = 1s;
  auto log = new_log();
  solo.run([log](Env& env) { return cancels_a_stop(env, log); });
}

Task<void> throws_a_bug(Env& env) {
  co_await sleep_for(env, 1ms);
  throw std::runtime_error("a bug");
}

Task<void> spawns_a_bug(Env& env) {
  TaskGroup group(env);
  group.spawn("worker", throws_a_bug(env));
  co_await sleep_for(env, 1h);
  co_await group.stop();
}

TEST(TaskGroup, ExceptionOfATask_IsLoggedAndEndsTheProcess) {
  Solo solo;
  EXPECT_THROW(solo.run(spawns_a_bug), std::runtime_error);
  EXPECT_FALSE(solo.machine.up());
  ASSERT_TRUE(solo.machine.last_exit());
  EXPECT_EQ(solo.machine.last_exit()->code, kExitFailure);
  EXPECT_EQ(solo.machine.last_exit()->why, "task worker failed: a bug");
  ASSERT_NE(solo.machine.log().last("task failed"), nullptr);
  EXPECT_EQ(solo.machine.log().last("task failed")->text, "task failed task=worker error=a bug");
}

Task<void> uses_boost_or(Env& env) {
  using namespace asio::experimental::awaitable_operators;
  co_await (sleep_for(env, 1h) || sleep_for(env, 2h));
}

Task<void> cancels_boost_or(Env& env) {
  TaskGroup group(env);
  group.spawn("or", uses_boost_or(env));
  co_await sleep_for(env, 1ms);
  co_await group.stop();
}

TEST(TaskGroup, CancelledBoostOperator_CountsAsCancellation) {
  Solo solo;
  solo.run(cancels_boost_or);
  EXPECT_TRUE(solo.machine.up());
}

Task<void> ten_thousand(Env& env, Log log) {
  TaskGroup group(env);
  for (int i = 0; i < 10'000; ++i) group.spawn("t", cleans_up_when_cancelled(env, log));
  co_await sleep_for(env, 1ms);
  co_await group.stop();
  EXPECT_EQ(log->size(), 10'000u);
}

TEST(TaskGroup, TenThousandTasks_StopTogether) {
  Solo solo;
  auto log = new_log();
  solo.run([log](Env& env) { return ten_thousand(env, log); });
}

// ---- signals -----------------------------------------------------------------------------------

Task<Signal> one_signal(Env& env) { co_return co_await next_signal(env); }

TEST(NextSignal, DeliveredBeforeOrWhileWaiting_IsSeenOnce) {
  Solo solo;
  (void)solo.env();
  solo.machine.signal(Signal::reload);
  EXPECT_EQ(solo.run(one_signal), Signal::reload);
  solo.sim.after(1s, sim::kWorld, "signal", [&](bool) { solo.machine.signal(Signal::terminate); });
  EXPECT_EQ(solo.run(one_signal), Signal::terminate);
  EXPECT_THROW(solo.run(one_signal, 1s), std::runtime_error);
}

}  // namespace
}  // namespace narad
