#include "internal/delivery/waiters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "internal/delivery/delivery.h"
#include "internal/delivery/delivery_testing.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/rng.h"
#include "pkg/sim/solo.h"

namespace narad::delivery {
namespace {

using std::chrono::seconds;
using testing::FakeLog;
using testing::LogData;

class WaitersTest : public ::testing::Test {
 protected:
  struct Poll {
    Poll(Env& env, std::shared_ptr<Waiters> waiters) : ticket(env, std::move(waiters)) {}
    Waiters::Ticket ticket;
    bool sleeps = false;
    bool woken = false;
  };
  // Busy until it is sent to sleep.
  std::unique_ptr<Poll> poll() { return std::make_unique<Poll>(solo.env(), waiters); }
  static Task<void> wait(Env& env, Poll& poll) {
    poll.woken = co_await poll.ticket.wait(Deadline::after(env, seconds(10)));
    poll.sleeps = false;
  }
  void doze(Poll& poll) {
    poll.sleeps = true;
    poll.woken = false;
    asio::co_spawn(solo.env().executor, wait(solo.env(), poll), [](std::exception_ptr) {});
    settle();
  }
  void settle() { solo.sim.run_for(std::chrono::milliseconds(1)); }
  void wake(std::uint64_t count) {
    waiters->wake(count);
    settle();
  }
  bool woken(const Poll& poll) { return !poll.sleeps && poll.woken; }

  sim::Solo solo;
  std::vector<std::uint64_t> told;  // what was told to other nodes
  std::shared_ptr<Waiters> waiters =
      std::make_shared<Waiters>([this](std::uint64_t count) { told.push_back(count); });
};

TEST_F(WaitersTest, MessagesHere_OnlyWhatNobodyHereSleepsForIsToldElsewhere) {
  waiters->set_watched(true);
  wake(2);
  EXPECT_EQ(told, std::vector<std::uint64_t>({2}));
  auto one = poll();
  doze(*one);
  wake(1);
  EXPECT_TRUE(woken(*one));
  EXPECT_EQ(told.size(), 1u) << "the poll here takes it";
  one->ticket.used();
  doze(*one);
  wake(3);
  EXPECT_EQ(told.back(), 2u);
  EXPECT_TRUE(woken(*one));
  one->ticket.used();
  waiters->set_watched(false);
  wake(5);
  EXPECT_EQ(told.size(), 2u);
  doze(*one);  // the last wake-up was kept
  EXPECT_TRUE(woken(*one));
  one->ticket.used();
  doze(*one);
  solo.sim.run_for(seconds(11));
  EXPECT_FALSE(one->sleeps || one->woken);
}

// It looks at another node, perhaps, and may be long about it.
TEST_F(WaitersTest, BusyPoll_IsWokenAfterTheSleepersAndElsewhereIsToldAsWell) {
  waiters->set_watched(true);
  auto busy = poll(), sleeper = poll();
  doze(*sleeper);
  wake(1);
  EXPECT_TRUE(woken(*sleeper)) << "though the other one came first";
  EXPECT_FALSE(busy->ticket.woken());
  EXPECT_TRUE(told.empty());
  sleeper->ticket.used();
  wake(1);
  EXPECT_TRUE(busy->ticket.woken());
  EXPECT_EQ(told, std::vector<std::uint64_t>({1}));
}

TEST_F(WaitersTest, MessageThatNobodyHereWants_IsToldElsewhere) {
  waiters->set_watched(true);
  auto first = poll(), second = poll();
  doze(*first);
  doze(*second);
  wake(1);
  ASSERT_TRUE(woken(*first));
  doze(*first);  // not for it: handed over
  EXPECT_TRUE(told.empty());
  ASSERT_TRUE(woken(*second));
  doze(*second);
  EXPECT_TRUE(first->sleeps && second->sleeps);
  EXPECT_EQ(told, std::vector<std::uint64_t>({1}));
  waiters->wake_all(false);
  settle();
}

TEST_F(WaitersTest, WokenAndGone_IsPassedOnHereOrToldElsewhere) {
  waiters->set_watched(true);
  auto first = poll(), second = poll();
  doze(*first);
  doze(*second);
  wake(1);
  ASSERT_TRUE(woken(*first));
  first.reset();
  settle();
  EXPECT_TRUE(woken(*second));
  EXPECT_TRUE(told.empty());
  second.reset();
  EXPECT_EQ(told, std::vector<std::uint64_t>({1}));
}

TEST_F(WaitersTest, WordFromElsewhere_NamesItsSenderAndDoesNotGoBackOut) {
  waiters->set_watched(true);
  auto one = poll();
  EXPECT_EQ(one->ticket.told_by(), "");
  doze(*one);
  waiters->wake_for("node-2", 4);
  settle();
  ASSERT_TRUE(woken(*one));
  EXPECT_EQ(one->ticket.told_by(), "node-2");
  doze(*one);
  EXPECT_TRUE(one->sleeps);
  EXPECT_EQ(one->ticket.told_by(), "") << "that word is used up";
  EXPECT_TRUE(told.empty());
  waiters->wake_all(false);
  settle();
}

TEST_F(WaitersTest, NothingForAnybody_IsNotPassedOn) {
  auto first = poll(), second = poll();
  doze(*first);
  doze(*second);
  wake(1);
  ASSERT_TRUE(woken(*first));
  first->ticket.used();  // it looked everywhere: somebody was faster
  doze(*first);
  EXPECT_TRUE(first->sleeps && second->sleeps);
  wake(2);
  EXPECT_TRUE(woken(*first) && woken(*second));
}

TEST_F(WaitersTest, WakeAll_ReachesEverybodyHereAndIfAskedElsewhere) {
  waiters->set_watched(true);
  auto first = poll(), second = poll();
  for (const bool elsewhere : {false, true}) {
    doze(*first);
    doze(*second);
    waiters->wake_all(elsewhere);
    settle();
    EXPECT_TRUE(woken(*first) && woken(*second));
    first->ticket.used();
    second->ticket.used();
    EXPECT_EQ(told.size(), elsewhere ? 1u : 0u);
  }
}

// Long-polls for any partition of a topic or for one of them, that take one record or some, come
// and go, keep, ack, nack and forget what they took; caps of a few records; slow reads. Throughout:
// nobody sleeps while there is a record that they could have.
class Crowd {
 public:
  explicit Crowd(std::uint64_t seed) : random_(seed) {
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      const std::string directory = cat("/p", p);
      EXPECT_TRUE(make_directories(solo_.machine.disk(), directory));
      logs_.push_back(std::make_shared<FakeLog>(solo_.env(), data_[p]));
      DeliveryConfig config;
      config.partition = {"orders", PartitionId(p)};
      config.directory = directory;
      config.identity = 7;
      config.read_ahead = memory_;
      config.topic_waiters = waiters_;
      auto opened =
          solo_.run([&](Env& env) { return Delivery::open(env, std::move(config), logs_.back()); });
      EXPECT_TRUE(opened);
      deliveries_.push_back(std::move(opened).value());
    }
    options_.visibility = seconds(30);
    options_.caps = {6, 4};
  }
  ~Crowd() {
    for (auto& poller : pollers_) stop(poller);
    solo_.sim.run_for(seconds(1));
    for (auto& delivery : deliveries_) {
      EXPECT_TRUE(solo_.run([&](Env&) { return delivery->close(); }));
    }
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      random_step();
      for (auto& data : data_) data.latency = Nanos(random_.next() % 3 * 1000);
      solo_.sim.run_for(std::chrono::milliseconds(random_.next() % 8 == 0 ? 0 : 1));
      if (random_.next() % 4 != 0) continue;
      solo_.sim.run_for(std::chrono::milliseconds(50));  // all looks have ended
      expect_nobody_sleeps_beside_a_record();
    }
  }
  int taken() const { return taken_; }
  int slept() const { return slept_; }

 private:
  static constexpr std::uint32_t kPartitions = 3;
  struct Held {
    std::uint32_t partition = 0;
    Lease lease;
  };
  struct Poller {
    std::optional<std::uint32_t> pinned;
    std::size_t max = 1;
    bool done = false;
    asio::cancellation_signal stop;
  };

  // As the broker does it.
  static Task<void> poll(Crowd& crowd, std::shared_ptr<Poller> self) {
    Waiters::Ticket ticket(crowd.solo_.env(), crowd.waiters_);
    for (;;) {
      bool found = false;
      for (std::uint32_t p = 0; p < kPartitions && !found; ++p) {
        if (self->pinned && *self->pinned != p) continue;
        ConsumeOptions options = crowd.options_;
        options.records_max = self->max;
        auto got = co_await crowd.deliveries_[p]->consume(std::move(options));
        if (!got) continue;
        for (auto& leased : got.value().records) {
          crowd.held_.push_back({p, {leased.record.offset, leased.nonce}});
          found = true;
        }
      }
      if (found || !self->pinned) ticket.used();
      if (found) break;
      (void)co_await ticket.wait(Deadline::after(crowd.solo_.env(), std::chrono::hours(100)));
    }
    ++crowd.taken_;
    self->done = true;
  }

  void stop(std::shared_ptr<Poller> poller) {  // on the loop, as everybody does
    asio::post(solo_.env().executor, [poller] {
      if (!poller->done) poller->stop.emit(asio::cancellation_type::terminal);
    });
  }

  void random_step() {
    const auto what = random_.next() % 10;
    if (what < 3) {
      // From the loop, between two steps of others, or from outside of it.
      const std::size_t at = random_.next() % kPartitions, count = 1 + random_.next() % 3;
      if (what == 0) {
        logs_[at]->commit(count);
      } else {
        for (std::size_t n = 0; n < count; ++n) {
          asio::post(solo_.env().executor, [log = logs_[at]] { log->commit(1); });
        }
      }
    } else if (what < 6) {
      auto poller = std::make_shared<Poller>();
      if (random_.next() % 3 == 0) {
        poller->pinned = static_cast<std::uint32_t>(random_.next() % kPartitions);
      }
      poller->max = 1 + random_.next() % 3;
      pollers_.push_back(poller);
      asio::co_spawn(
          solo_.env().executor, poll(*this, poller),
          asio::bind_cancellation_slot(poller->stop.slot(),
                                       [poller](std::exception_ptr) { poller->done = true; }));
    } else if (what == 6 && !pollers_.empty()) {
      stop(pollers_[random_.next() % pollers_.size()]);
    } else if (what == 7 && random_.next() % 10 == 0) {
      solo_.sim.run_for(seconds(31));  // leases run out
    } else if (!held_.empty()) {
      const std::size_t at = random_.next() % held_.size();
      const Held held = held_[at];
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
      Delivery& delivery = *deliveries_[held.partition];
      if (random_.next() % 3 == 0) {
        (void)delivery.nack(held.lease);
      } else {
        (void)delivery.ack(held.lease, options_.caps);
      }
    }
    std::erase_if(pollers_, [](const auto& poller) { return poller->done; });
  }

  void expect_nobody_sleeps_beside_a_record() {
    std::erase_if(pollers_, [](const auto& poller) { return poller->done; });
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      const bool wanted = std::any_of(pollers_.begin(), pollers_.end(), [&](const auto& poller) {
        return !poller->pinned || *poller->pinned == p;
      });
      if (!wanted) continue;
      ++slept_;
      ConsumeOptions options = options_;
      options.records_max = 1;
      auto got = solo_.run([&](Env&) { return deliveries_[p]->consume(std::move(options)); });
      ASSERT_TRUE(got);
      EXPECT_TRUE(got.value().records.empty())
          << "partition " << p << " has offset " << got.value().records[0].record.offset.value();
      for (auto& leased : got.value().records) {
        (void)deliveries_[p]->nack({leased.record.offset, leased.nonce});
      }
    }
  }

  sim::Rng random_;
  sim::Solo solo_;
  std::array<LogData, kPartitions> data_;
  std::vector<std::shared_ptr<FakeLog>> logs_;
  std::shared_ptr<ReadAheadBudget> memory_ = std::make_shared<ReadAheadBudget>(64u << 20);
  std::shared_ptr<Waiters> waiters_ = std::make_shared<Waiters>();
  std::vector<std::shared_ptr<Delivery>> deliveries_;
  ConsumeOptions options_;
  std::vector<std::shared_ptr<Poller>> pollers_;
  std::vector<Held> held_;
  int taken_ = 0, slept_ = 0;
};

TEST(WaitersCrowd, NobodySleepsBesideARecordThatTheyCouldHave) {
  int taken = 0, slept = 0;
  for (std::uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    Crowd crowd(seed);
    crowd.run(400);
    taken += crowd.taken();
    slept += crowd.slept();
  }
  EXPECT_GT(taken, 2000);
  EXPECT_GT(slept, 500) << "the check had something to look at";
}

}  // namespace
}  // namespace narad::delivery
