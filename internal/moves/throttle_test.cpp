#include "internal/moves/throttle.h"

#include <gtest/gtest.h>

#include "pkg/async/task_group.h"
#include "pkg/sim/solo.h"

namespace narad::moves {
namespace {

using namespace std::chrono_literals;

Task<void> take_in_turn(Env& env, Throttle& budget, Nanos* took) {
  const Nanos began = env.clock.mono();
  for (int i = 0; i < 11; ++i) co_await budget.take(500);
  *took = env.clock.mono() - began;
}

TEST(Throttle, Budget_IsHeld) {
  sim::Solo solo;
  Throttle budget(solo.env(), 1000);
  Nanos took{0};
  solo.run([&](Env& env) { return take_in_turn(env, budget, &took); });
  EXPECT_GE(took, 5s);
  EXPECT_LT(took, 5100ms);
}

Task<void> take_often(Env& env, Throttle& budget, Nanos* took) {
  const Nanos began = env.clock.mono();
  for (int i = 0; i < 201; ++i) co_await budget.take(50);  // 50 ms each
  *took = env.clock.mono() - began;
}

TEST(Throttle, WaitsThatEndLate_CostNothingOfTheBudget) {
  sim::Solo solo;
  solo.machine.timers().stretch_max = 40ms;
  Throttle budget(solo.env(), 1000);
  Nanos took{0};
  solo.run([&](Env& env) { return take_often(env, budget, &took); });
  EXPECT_GE(took, 9900ms);
  EXPECT_LT(took, 10'200ms);
}

// What a move that ended had asked for would otherwise keep the next ones waiting.
Task<void> cancel_one_that_waits(Env& env, Throttle& budget, Nanos* took) {
  const Nanos began = env.clock.mono();
  budget.take_now(5000);
  TaskGroup waiting(env);
  waiting.spawn("takes a lot", budget.take(1'000'000));
  co_await sleep_for(env, 1s);
  co_await waiting.stop();
  co_await budget.take(1);
  *took = env.clock.mono() - began;
}

TEST(Throttle, WhoIsCancelledWhileItWaits_HasTakenNothing) {
  sim::Solo solo;
  Throttle budget(solo.env(), 1000);
  Nanos took{0};
  solo.run([&](Env& env) { return cancel_one_that_waits(env, budget, &took); });
  EXPECT_GE(took, 5s);
  EXPECT_LT(took, 5100ms);
}

Task<void> be_urgent(Env& env, Throttle& budget, Nanos* urgent, Nanos* other) {
  const Nanos began = env.clock.mono();
  for (int i = 0; i < 10; ++i) budget.take_now(1000);
  *urgent = env.clock.mono() - began;
  co_await budget.take(1);
  *other = env.clock.mono() - began;
}

TEST(Throttle, WhatAFrozenPartitionTakes_IsPaidForByTheOthers) {
  sim::Solo solo;
  Throttle budget(solo.env(), 1000);
  Nanos urgent{0}, other{0};
  solo.run([&](Env& env) { return be_urgent(env, budget, &urgent, &other); });
  EXPECT_EQ(urgent, Nanos(0));
  EXPECT_GE(other, 10s);
}

// Waits for what another has taken, while the rate changes after a second.
Task<void> change_while_one_waits(Env& env, Throttle& budget, std::uint64_t rate, Nanos* waited) {
  budget.take_now(600'000);
  const Nanos began = env.clock.mono();
  const auto wait = [](Env& e, Throttle& b, Nanos since, Nanos* took) -> Task<void> {
    co_await b.take(1000);
    *took = e.clock.mono() - since;
  };
  TaskGroup waiting(env);
  waiting.spawn("waits", wait(env, budget, began, waited));
  co_await sleep_for(env, 1s);
  budget.set_rate(rate);
  co_await sleep_for(env, 20min);
  co_await waiting.stop();
}

TEST(Throttle, ChangedRate_CountsForThoseWhoWait) {
  struct Case {
    std::uint64_t rate;
    Nanos least, most;
  };
  // 600 s at 1000 a second, of which one has passed.
  for (const Case& c : {Case{0, 1s, 1001ms}, Case{599'000, 2s, 2001ms},
                        Case{2000, 300500ms, 300501ms}, Case{1000, 600s, 600001ms}}) {
    sim::Solo solo;
    Throttle budget(solo.env(), 1000);
    Nanos waited{0};
    solo.run([&](Env& env) { return change_while_one_waits(env, budget, c.rate, &waited); });
    EXPECT_GE(waited, c.least) << c.rate;
    EXPECT_LE(waited, c.most) << c.rate;
    EXPECT_EQ(budget.rate(), c.rate);
  }
}

Task<void> limit_the_unlimited(Env& env, Throttle& budget, Nanos* took) {
  co_await budget.take(1'000'000'000);
  budget.set_rate(1000);
  const Nanos began = env.clock.mono();
  co_await budget.take(5000);
  co_await budget.take(1);
  *took = env.clock.mono() - began;
}

TEST(Throttle, LimitSetLater_IsNotOwedForWhatWentBefore) {
  sim::Solo solo;
  Throttle budget(solo.env(), 0);
  Nanos took{0};
  solo.run([&](Env& env) { return limit_the_unlimited(env, budget, &took); });
  EXPECT_GE(took, 5s);
  EXPECT_LT(took, 5100ms);
}

}  // namespace
}  // namespace narad::moves
