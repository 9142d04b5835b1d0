#include "internal/delivery/delivery.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/post.hpp>

#include "internal/delivery/delivery_testing.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::delivery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using testing::FakeLog;
using testing::kDirectory;
using testing::LogData;

// One machine on which time passes only when nothing else is left to do.
struct World {
  World() : env(solo.env()) {
    solo.machine.timers().stretch_max = Nanos(0);
    solo.machine.blocking().latency_min = Nanos(0);
    solo.machine.blocking().latency_spread = Nanos(0);
  }
  template <class T>
  T run(Task<T> task) {
    return solo.run([task = std::move(task)](Env&) mutable { return std::move(task); });
  }
  void settle() { solo.sim.run_for(Nanos(0)); }
  void advance(Nanos by) { solo.sim.run_for(by); }
  template <class Done>
  void run_until(Done done) {
    EXPECT_TRUE(solo.sim.run_until(done, std::chrono::hours(1)));
  }
  std::uint64_t warnings() {
    return solo.machine.log().count(LogLevel::warn) + solo.machine.log().count(LogLevel::error);
  }

  sim::Solo solo;
  Env& env;
  sim::SimFs& disk = solo.machine.disk();
};

class DeliveryTest : public ::testing::Test {
 protected:
  DeliveryTest() {
    EXPECT_TRUE(make_directories(world.disk, kDirectory));
    log = std::make_shared<FakeLog>(world.env, data);
    config.partition = {"orders", PartitionId(3)};
    config.directory = kDirectory;
    config.identity = 77;
    config.read_ahead = std::make_shared<ReadAheadBudget>(64u << 20);
    config.topic_waiters = std::make_shared<Waiters>();
  }
  ~DeliveryTest() override {
    if (delivery) (void)close();
    if (config.read_ahead) {
      EXPECT_EQ(config.read_ahead->bytes_left, 64u << 20) << "what was read ahead is given back";
    }
  }

  void open() {
    auto opened = world.run(Delivery::open(world.env, config, log));
    ASSERT_TRUE(opened) << opened.error().text();
    delivery = std::move(opened).value();
  }
  Result<void> close() {
    auto result = world.run(delivery->close());
    delivery.reset();
    world.settle();
    return result;
  }
  // A power cut between two moments of the loop.
  void crash() {
    world.disk.freeze();
    (void)close();
    world.disk.power_cycle();
    open();
  }
  Result<ConsumeResult> try_consume(std::size_t count = 1) {
    options.records_max = count;
    return world.run(delivery->consume(options));
  }
  std::vector<Lease> take(std::size_t count = 1) {
    std::vector<Lease> out;
    auto result = try_consume(count);
    EXPECT_TRUE(result) << result.error().text();
    if (!result) return out;
    for (const LeasedRecord& leased : result.value().records) {
      out.push_back({leased.record.offset, leased.nonce});
    }
    return out;
  }
  Lease one() {
    const auto leases = take();
    EXPECT_EQ(leases.size(), 1u);
    return leases.empty() ? Lease{} : leases.front();
  }
  std::vector<std::uint64_t> offsets(std::size_t count) {
    std::vector<std::uint64_t> out;
    for (const Lease& lease : take(count)) out.push_back(lease.offset.value());
    return out;
  }
  SettleStatus ack(Lease lease) { return delivery->ack(lease, options.caps); }

  // A long-poll: waits and takes one. Answers how it went and when.
  struct Poll {
    bool done = false;
    bool found = false;
    Nanos at{0};
    Lease lease;
  };
  static Task<void> poll_once(Env& env, std::shared_ptr<Delivery> delivery, ConsumeOptions options,
                              Nanos wait, Poll& out) {
    const Deadline deadline = Deadline::after(env, wait);
    while (co_await delivery->wait_for_messages(options.caps, deadline)) {
      auto result = co_await delivery->consume(options);
      if (!result) break;
      if (result.value().records.empty()) continue;
      out.found = true;
      out.lease = {result.value().records[0].record.offset, result.value().records[0].nonce};
      break;
    }
    out.done = true;
    out.at = env.clock.mono();
  }
  void start(Poll& poll, Nanos wait = seconds(10)) {
    ConsumeOptions one_record = options;
    one_record.records_max = 1;
    asio::co_spawn(world.env.executor, poll_once(world.env, delivery, one_record, wait, poll),
                   [](std::exception_ptr) {});
    world.settle();
  }

  World world;
  LogData data;
  DeliveryConfig config;
  std::shared_ptr<FakeLog> log;
  std::shared_ptr<Delivery> delivery;
  ConsumeOptions options;
};

using Offsets = std::vector<std::uint64_t>;

// ---- consume ------------------------------------------------------------------------------

TEST_F(DeliveryTest, Consume_AnswersRecordAndNonceAndCounts) {
  open();
  log->commit(2, "hello");
  auto result = try_consume();
  ASSERT_TRUE(result);
  ASSERT_EQ(result.value().records.size(), 1u);
  EXPECT_EQ(result.value().records[0].record.payload, "hello");
  EXPECT_EQ(result.value().records[0].record.offset, Offset(0));
  EXPECT_GE(result.value().records[0].nonce.value(), 1u);
  const DeliveryStats stats = delivery->stats();
  EXPECT_EQ(stats.delivered_total, 1u);
  EXPECT_EQ(stats.delivered_bytes_total, 5u);
  EXPECT_EQ(stats.in_flight, 1u);
  EXPECT_EQ(stats.lag, 2u);
}

TEST_F(DeliveryTest, Consume_NothingThere_SaysWhy) {
  open();
  EXPECT_EQ(try_consume().value().outcome, ReserveOutcome::empty);
  log->commit(1);
  (void)one();
  EXPECT_EQ(try_consume().value().outcome, ReserveOutcome::all_reserved);
  options.caps.in_flight_max = 1;
  EXPECT_EQ(try_consume().value().outcome, ReserveOutcome::cap);
}

TEST_F(DeliveryTest, Consume_Batch_IsOneReadInOffsetOrder) {
  open();
  log->commit(500);
  const auto leases = take(200);
  ASSERT_EQ(leases.size(), 200u);
  for (std::size_t n = 0; n < leases.size(); ++n) ASSERT_EQ(leases[n].offset, Offset(n));
  EXPECT_EQ(data.reads, 1);
}

TEST_F(DeliveryTest, Consume_SingleRecords_ShareReads) {
  open();
  log->commit(200);
  for (std::uint64_t n = 0; n < 200; ++n) ASSERT_EQ(one().offset, Offset(n));
  EXPECT_EQ(data.reads, 1);
}

TEST_F(DeliveryTest, Consume_BudgetSpent_ReadsWhatIsAskedForOnly) {
  config.read_ahead->bytes_left = 0;
  open();
  log->commit(3);
  EXPECT_EQ(offsets(1), (Offsets{0}));
  EXPECT_EQ(offsets(1), (Offsets{1}));
  EXPECT_EQ(data.reads, 2);
  config.read_ahead->bytes_left = 64u << 20;
}

TEST_F(DeliveryTest, Consume_OverTheByteLimit_GivesTheRestBack) {
  open();
  log->commit(5, std::string(1000, 'x'));
  options.bytes_max = 2000;
  EXPECT_EQ(offsets(5), (Offsets{0, 1}));
  EXPECT_EQ(delivery->stats().in_flight, 2u);
  EXPECT_EQ(offsets(5), (Offsets{2, 3}));
  options.bytes_max = 1;
  EXPECT_EQ(offsets(5), (Offsets{4})) << "one record is always answered";
}

TEST_F(DeliveryTest, Consume_RecordsGivenBackAmongFreshOnes_ComeInOrder) {
  open();
  log->commit(10);
  const auto leases = take(6);
  for (std::size_t n : {1, 4}) ASSERT_EQ(delivery->nack(leases[n]), SettleStatus::done);
  EXPECT_EQ(offsets(4), (Offsets{1, 4, 6, 7}));
}

TEST_F(DeliveryTest, Consume_LostRecords_ArePassedAndCountedInTheSameCall) {
  open();
  log->commit(10);
  data.lost = {0, 1, 4, 7};
  EXPECT_EQ(offsets(1), (Offsets{2}));
  EXPECT_EQ(offsets(9), (Offsets{3, 5, 6, 8, 9}));
  EXPECT_EQ(delivery->stats().corrupt_skipped_total, 4u);
  EXPECT_EQ(delivery->stats().frontier, Offset(2));
}

TEST_F(DeliveryTest, Consume_NothingButLostRecords_IsEmptyAndMovesTheFrontier) {
  open();
  log->commit(600);
  for (std::uint64_t n = 0; n < 600; ++n) data.lost.insert(n);
  auto result = try_consume();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.value().records.empty());
  EXPECT_EQ(result.value().outcome, ReserveOutcome::empty);
  EXPECT_EQ(delivery->stats().frontier, Offset(600));
  EXPECT_EQ(delivery->stats().corrupt_skipped_total, 600u);
}

TEST_F(DeliveryTest, FRZ_3_ForbiddenWhileItReads_NoMoreLeasesAreTaken) {
  open();
  log->commit(3);
  data.lost = {0, 1};
  int asked = 0;
  options.may_lease = [&asked] { return ++asked == 1; };  // once: the freeze begins meanwhile
  auto result = try_consume(2);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.value().records.empty());
  EXPECT_EQ(delivery->stats().in_flight, 0u);
  options.may_lease = nullptr;
  EXPECT_EQ(offsets(2), (Offsets{2}));
}

TEST_F(DeliveryTest, WaitForLeases_EndsWithTheLastOneOrAtTheDeadline) {
  open();
  log->commit(2);
  const auto leases = take(2);
  ASSERT_EQ(leases.size(), 2u);
  const Nanos begin = world.env.clock.mono();
  const Deadline soon = Deadline::after(world.env, milliseconds(500));
  EXPECT_FALSE(world.run(delivery->wait_for_leases(soon)));
  EXPECT_EQ(world.env.clock.mono() - begin, milliseconds(500));
  std::optional<bool> ended;
  const Deadline later = Deadline::after(world.env, seconds(10));
  asio::co_spawn(world.env.executor, delivery->wait_for_leases(later),
                 [&ended](std::exception_ptr, bool none) { ended = none; });
  (void)ack(leases[0]);
  world.settle();
  EXPECT_FALSE(ended);
  (void)ack(leases[1]);
  world.settle();
  EXPECT_EQ(ended, true);
  EXPECT_EQ(world.env.clock.mono() - begin, milliseconds(500)) << "told at once";
  (void)delivery->nack(leases[1]);
  EXPECT_TRUE(world.run(delivery->wait_for_leases(Deadline::after(world.env, Nanos(0)))));
}

TEST_F(DeliveryTest, Consume_TransientReadError_GivesTheLeasesBackAtOnce) {
  open();
  log->commit(3);
  data.fail_in = 1;
  auto result = try_consume(3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::unavailable);
  EXPECT_NE(result.error().text().find("orders/3"), std::string::npos);
  EXPECT_EQ(delivery->stats().in_flight, 0u);
  EXPECT_EQ(offsets(3), (Offsets{0, 1, 2}));
  EXPECT_EQ(delivery->stats().corrupt_skipped_total, 0u);
}

TEST_F(DeliveryTest, Consume_ErrorAfterSomeRecords_AnswersThose) {
  config.read_ahead->bytes_left = 0;
  open();
  log->commit(10);
  const auto leases = take(10);
  for (std::size_t n : {2, 6}) ASSERT_EQ(delivery->nack(leases[n]), SettleStatus::done);
  data.fail_in = 2;  // 2 and 6 are two reads
  EXPECT_EQ(offsets(5), (Offsets{2}));
  EXPECT_EQ(offsets(5), (Offsets{6}));
  config.read_ahead->bytes_left = 64u << 20;
}

TEST_F(DeliveryTest, Consume_RetentionDuringTheRead_GoesOnAtTheOldestRecord) {
  open();
  log->commit(10);
  data.latency = seconds(1);
  std::optional<Result<ConsumeResult>> result;
  options.records_max = 2;
  asio::co_spawn(
      world.env.executor,
      [](std::shared_ptr<Delivery> d, ConsumeOptions o, std::optional<Result<ConsumeResult>>& out)
          -> Task<void> { out.emplace(co_await d->consume(o)); }(delivery, options, result),
      [](std::exception_ptr) {});
  world.settle();
  log->delete_below(5);
  world.run_until([&] { return result.has_value(); });
  ASSERT_TRUE(*result) << result->error().text();
  EXPECT_EQ(result->value().records.at(0).record.offset, Offset(5));
  EXPECT_EQ(delivery->stats().dropped_total, 5u);
}

TEST_F(DeliveryTest, Consume_Cancelled_GivesTheLeasesBack) {
  open();
  log->commit(3);
  data.latency = seconds(5);
  asio::cancellation_signal signal;
  bool ended = false;
  asio::co_spawn(
      world.env.executor,
      [](std::shared_ptr<Delivery> d, ConsumeOptions o) -> Task<void> {
        (void)co_await d->consume(o);
      }(delivery, options),
      asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) {
        EXPECT_TRUE(e);
        ended = true;
      }));
  world.settle();
  EXPECT_EQ(delivery->stats().in_flight, 1u);
  signal.emit(asio::cancellation_type::terminal);
  world.settle();
  ASSERT_TRUE(ended);
  EXPECT_EQ(delivery->stats().in_flight, 0u);
}

TEST_F(DeliveryTest, Consume_LeaseRunsOutDuringTheRead_IsTakenAnew) {
  open();
  log->commit(1);
  data.latency = seconds(2);
  options.visibility = seconds(1);
  EXPECT_EQ(ack(one()), SettleStatus::done) << "the nonce that was answered is live";
  EXPECT_EQ(data.reads, 1);
}

TEST_F(DeliveryTest, Consume_LogSlowerThanTheVisibility_EndsWithoutARecord) {
  config.read_ahead.reset();
  open();
  log->commit(1);
  data.latency = seconds(2);
  options.visibility = seconds(1);
  auto result = try_consume();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.value().records.empty());
  data.latency = Nanos(0);
  EXPECT_EQ(offsets(1), (Offsets{0}));
}

TEST_F(DeliveryTest, Consume_BelowTheOldestRecord_JumpsAndCountsTheDropped) {
  open();
  log->commit(1000);
  log->delete_below(900);
  EXPECT_EQ(delivery->stats().dropped, 900u);
  EXPECT_EQ(offsets(1), (Offsets{900}));
  EXPECT_EQ(delivery->stats().dropped, 0u);
  EXPECT_EQ(delivery->stats().dropped_total, 900u);
  EXPECT_EQ(world.warnings(), 1u) << "logged once";
}

TEST_F(DeliveryTest, Consume_HighWatermarkWentBack_ForgetsAndStoresBeforeAnythingIsHandedOut) {
  open();
  log->commit(10);
  for (const Lease& lease : take(10)) ASSERT_EQ(ack(lease), SettleStatus::done);
  ASSERT_TRUE(world.run(delivery->flush()));
  log->go_back_to(4);
  EXPECT_EQ(try_consume().value().outcome, ReserveOutcome::empty);
  log->commit(2, "other");
  crash();
  EXPECT_EQ(offsets(9), (Offsets{4, 5})) << "records under offsets that were acked before";
}

// ---- waiting ------------------------------------------------------------------------------

TEST_F(DeliveryTest, Wait_CommitWakesAtOnce) {
  open();
  Poll poll;
  start(poll);
  EXPECT_FALSE(poll.done);
  world.advance(seconds(3));
  log->commit(1);
  world.settle();
  EXPECT_TRUE(poll.found);
  EXPECT_EQ(poll.at, seconds(3));
}

TEST_F(DeliveryTest, Wait_NothingComes_EndsAtTheDeadline) {
  open();
  Poll poll;
  start(poll, seconds(10));
  world.run_until([&] { return poll.done; });
  EXPECT_FALSE(poll.found);
  EXPECT_EQ(poll.at, seconds(10));
}

TEST_F(DeliveryTest, Wait_ExpiryWakesAtTheDeadlineOfTheLease) {
  open();
  log->commit(1);
  options.visibility = seconds(4);
  (void)one();
  Poll poll;
  start(poll, seconds(10));
  world.run_until([&] { return poll.done; });
  EXPECT_TRUE(poll.found);
  EXPECT_EQ(poll.at, seconds(4));
}

TEST_F(DeliveryTest, Wait_ShorterLeaseBehindALongerOne_WakesInTime) {
  open();
  log->commit(2);
  options.visibility = seconds(60);
  (void)one();
  world.settle();
  options.visibility = seconds(2);
  (void)one();
  Poll poll;
  start(poll, seconds(10));
  world.run_until([&] { return poll.done; });
  EXPECT_TRUE(poll.found);
  EXPECT_EQ(poll.at, seconds(2));
}

TEST_F(DeliveryTest, Wait_ExtendedLease_DoesNotWakeAtTheOldDeadline) {
  open();
  log->commit(1);
  options.visibility = seconds(4);
  const Lease lease = one();
  EXPECT_EQ(delivery->extend(lease, seconds(7)), SettleStatus::done);
  Poll poll;
  start(poll, seconds(10));
  world.run_until([&] { return poll.done; });
  EXPECT_EQ(poll.at, seconds(7));
  EXPECT_EQ(delivery->stats().extended_total, 1u);
}

TEST_F(DeliveryTest, Wait_NackWakes) {
  open();
  log->commit(1);
  const Lease lease = one();
  Poll poll;
  start(poll);
  EXPECT_EQ(delivery->nack(lease), SettleStatus::done);
  world.settle();
  EXPECT_TRUE(poll.found);
  EXPECT_EQ(delivery->stats().nacked_total, 1u);
}

TEST_F(DeliveryTest, Wait_AckAtTheCap_WakesForTheFreeSlot) {
  open();
  log->commit(2);
  options.caps.in_flight_max = 1;
  const Lease lease = one();
  Poll poll;
  start(poll);
  EXPECT_FALSE(poll.done);
  EXPECT_EQ(ack(lease), SettleStatus::done);
  world.settle();
  EXPECT_TRUE(poll.found);
}

TEST_F(DeliveryTest, Wait_FrontierAckedWhileAheadWasFull_Wakes) {
  open();
  log->commit(4);
  options.caps.acked_ahead_max = 1;
  const auto leases = take(2);
  EXPECT_EQ(ack(leases[1]), SettleStatus::done);
  Poll poll;
  start(poll);
  EXPECT_FALSE(poll.done) << "only the frontier may go out, and it is out";
  EXPECT_EQ(ack(leases[0]), SettleStatus::done);
  world.settle();
  EXPECT_TRUE(poll.found);
}

TEST_F(DeliveryTest, Wait_OneMessage_WakesTheOneWhoWaitedLongest) {
  open();
  std::vector<Poll> polls(3);
  for (Poll& poll : polls) start(poll);
  log->commit(1);
  world.settle();
  EXPECT_TRUE(polls[0].found);
  EXPECT_FALSE(polls[1].done);
  EXPECT_EQ(delivery->waiters()->size(), 2u);
  log->commit(5);
  world.settle();
  EXPECT_TRUE(polls[1].found);
  EXPECT_TRUE(polls[2].found);
}

TEST_F(DeliveryTest, Wait_FewerRecordsThanOnceWereOffered_StillWake) {
  open();
  Poll first;
  start(first);
  log->commit(3);
  world.settle();
  ASSERT_TRUE(first.found);
  EXPECT_EQ(take(2).size(), 2u) << "while nobody waits";
  Poll second;
  start(second);
  log->commit(1);
  world.settle();
  EXPECT_TRUE(second.found);
}

// It is visible, and not offered yet, when the first one takes theirs.
TEST_F(DeliveryTest, Wait_RecordThatComesBeforeTheWokenOneTakesTheirs_WakesTheNext) {
  open();
  std::vector<Poll> polls(2);
  for (Poll& poll : polls) start(poll);
  log->commit(1);
  asio::post(world.env.executor, [&] { log->commit(1); });
  world.settle();
  EXPECT_TRUE(polls[0].found);
  EXPECT_TRUE(polls[1].found);
}

TEST_F(DeliveryTest, Wait_EachRecordWakesOne) {
  open();
  std::vector<Poll> polls(4);
  for (Poll& poll : polls) start(poll);
  log->commit(1);
  log->commit(1);
  world.settle();
  EXPECT_TRUE(polls[0].found && polls[1].found);
  EXPECT_EQ(delivery->waiters()->size(), 2u) << "not woken for nothing";
  log->commit(2);
  world.settle();
  EXPECT_TRUE(polls[2].found && polls[3].found);
}

TEST_F(DeliveryTest, Wait_RecordsGivenBackByAnError_WakeSomebodyElse) {
  open();
  data.latency = seconds(1);
  data.fail_in = 1;
  Poll first;
  Poll second;
  start(first, seconds(1));
  start(second, seconds(10));
  log->commit(1);
  world.run_until([&] { return second.done; });
  EXPECT_FALSE(first.found);
  EXPECT_TRUE(second.found);
}

TEST_F(DeliveryTest, Wait_Close_EndsIt) {
  open();
  Poll poll;
  start(poll);
  EXPECT_TRUE(close());
  EXPECT_TRUE(poll.done);
  EXPECT_FALSE(poll.found);
}

Task<void> wait_on(Env& env, std::shared_ptr<Waiters> waiters, bool& woken) {
  Waiters::Ticket ticket(env, std::move(waiters));
  woken = co_await ticket.wait(Deadline::after(env, seconds(10)));
}

TEST_F(DeliveryTest, TopicWaiters_AreWokenByTheirPartitions) {
  open();
  bool woken = false;
  asio::co_spawn(world.env.executor, wait_on(world.env, config.topic_waiters, woken),
                 [](std::exception_ptr) {});
  world.settle();
  log->commit(1);
  world.settle();
  EXPECT_TRUE(woken);
}

TEST_F(DeliveryTest, Ticket_WokenBeforeItWaits_DoesNotMissIt) {
  auto waiters = std::make_shared<Waiters>();
  Waiters::Ticket ticket(world.env, waiters);
  waiters->wake(1);
  EXPECT_EQ(waiters->size(), 0u);
  EXPECT_TRUE(world.run(ticket.wait(Deadline::after(world.env, seconds(1)))));
  EXPECT_EQ(waiters->size(), 1u) << "enrolled anew";
  EXPECT_FALSE(world.run(ticket.wait(Deadline::after(world.env, seconds(1)))));
}

TEST_F(DeliveryTest, Ticket_WokenAndGone_PassesItOn) {
  auto waiters = std::make_shared<Waiters>();
  auto first = std::make_unique<Waiters::Ticket>(world.env, waiters);
  Waiters::Ticket second(world.env, waiters);
  waiters->wake(1);
  first.reset();
  EXPECT_TRUE(world.run(second.wait(Deadline::after(world.env, seconds(1)))));
}

TEST_F(DeliveryTest, Ticket_WokenForNothing_PassesItOnToEachWhoWaitedOnce) {
  auto waiters = std::make_shared<Waiters>();
  const auto wait = [&](Waiters::Ticket& ticket) {
    return world.run(ticket.wait(Deadline::after(world.env, seconds(1))));
  };
  Waiters::Ticket pinned_elsewhere(world.env, waiters);
  Waiters::Ticket second(world.env, waiters);
  Waiters::Ticket third(world.env, waiters);
  waiters->wake(1);
  EXPECT_TRUE(wait(pinned_elsewhere));
  EXPECT_FALSE(wait(pinned_elsewhere)) << "it found nothing; this hands the wake-up over";
  EXPECT_TRUE(wait(second));
  second.used();
  EXPECT_FALSE(wait(third)) << "put to use, so not passed on";
  waiters->wake(1);
  EXPECT_TRUE(wait(third)) << "it has waited longest by now";
  EXPECT_FALSE(wait(third));
  EXPECT_TRUE(wait(pinned_elsewhere));
  EXPECT_FALSE(wait(pinned_elsewhere));
  EXPECT_TRUE(wait(second));
  for (Waiters::Ticket* ticket : {&pinned_elsewhere, &second, &third}) {
    EXPECT_FALSE(wait(*ticket)) << "nobody found anything, and it does not go round for ever";
  }
}

TEST(Waiters, NodeKilledBetweenWakeUpAndWakening_TakesItsTicketsAlong) {
  auto waiters = std::make_shared<Waiters>();
  sim::Solo solo;
  Env& env = solo.env();
  static constexpr auto poll = [](Env& e, std::shared_ptr<Waiters> w) -> Task<void> {
    Waiters::Ticket ticket(e, std::move(w));
    (void)co_await ticket.wait(Deadline::after(e, seconds(10)));
  };
  for (int n = 0; n < 3; ++n)
    asio::co_spawn(env.executor, poll(env, waiters), [](std::exception_ptr) {});
  solo.sim.run_for(seconds(1));
  ASSERT_EQ(waiters->size(), 3u);
  waiters->wake(2);
  solo.kill();
  EXPECT_EQ(waiters->size(), 0u);
}

// ---- settling and storing -----------------------------------------------------------------

TEST_F(DeliveryTest, SettleMany_AnswersEachInItsPlace) {
  open();
  log->commit(10);
  options.caps.acked_ahead_max = 1;
  const auto leases = take(4);
  const auto out = delivery->settle_many(
      SettleMode::ack, {leases[2], leases[3], leases[0], {Offset(9), LeaseNonce(1)}, leases[3]},
      options.caps, options.visibility);
  EXPECT_EQ(out, (std::vector{SettleStatus::done, SettleStatus::ahead_full, SettleStatus::done,
                              SettleStatus::stale, SettleStatus::ahead_full}));
  EXPECT_EQ(delivery->stats().ack_rejected_total, 2u);
  EXPECT_EQ(delivery->stats().acked_total, 2u);
}

TEST_F(DeliveryTest, Ack_IsStoredWithinATick) {
  open();
  log->commit(3);
  const auto leases = take(3);
  EXPECT_EQ(ack(leases[0]), SettleStatus::done);
  EXPECT_EQ(delivery->stats().unsaved_acks, 1u);
  world.run(sleep_for(world.env, kJournalTick + milliseconds(1)));
  EXPECT_EQ(delivery->stats().unsaved_acks, 0u);
  EXPECT_EQ(ack(leases[1]), SettleStatus::done);
  crash();  // before the next tick
  EXPECT_EQ(offsets(3), (Offsets{1, 2})) << "the ack of the last tick, and what was leased";
}

TEST_F(DeliveryTest, Ack_WhileASnapshotIsWritten_IsStoredToo) {
  open();
  log->commit(5);
  const auto leases = take(5);
  EXPECT_EQ(ack(leases[0]), SettleStatus::done);
  std::optional<Result<void>> flushed;
  asio::co_spawn(
      world.env.executor,
      [](std::shared_ptr<Delivery> d, std::optional<Result<void>>& out) -> Task<void> {
        out.emplace(co_await d->flush());
      }(delivery, flushed),
      [](std::exception_ptr) {});
  // Step by step, an ack at each: some fall between the start of the job and its end.
  for (std::size_t n = 1; n < 5;) {
    if (!world.solo.sim.step()) break;
    EXPECT_EQ(ack(leases[n]), SettleStatus::done);
    ++n;
  }
  world.run(sleep_for(world.env, seconds(2)));
  ASSERT_TRUE(flushed && *flushed);
  const Offset frontier = delivery->positions().frontier;
  EXPECT_EQ(delivery->stats().unsaved_acks, 0u);
  crash();
  EXPECT_EQ(delivery->positions().frontier, frontier);
}

TEST_F(DeliveryTest, Ticks_WithoutChanges_WriteNothing) {
  open();
  log->commit(2);
  EXPECT_EQ(ack(one()), SettleStatus::done);
  world.run(sleep_for(world.env, seconds(2)));
  const std::uint64_t ops = world.disk.ops();
  (void)one();
  world.run(sleep_for(world.env, seconds(20)));
  EXPECT_EQ(world.disk.ops(), ops);
}

TEST_F(DeliveryTest, Journal_GrowsIntoASnapshotNowAndThen) {
  open();
  options.caps = {200'000, 200'000};
  log->commit(200'000, "");
  options.visibility = seconds(3600);
  const auto leases = take(200'000);
  ASSERT_EQ(leases.size(), 200'000u);
  const auto journal_size = [&] {
    const auto bytes = world.disk.seen_bytes(kDirectory + "/" + kJournalFileName);
    return bytes ? bytes->size() : 0;
  };
  std::size_t largest = 0;
  int shrunk = 0;
  std::size_t before = 0;
  // Every other one, from the end, so that every ack costs bytes: about 40 KiB a second.
  for (std::size_t n = leases.size(); n >= 2000; n -= 2000) {
    std::vector<Lease> batch;
    for (std::size_t k = 0; k < 2000; k += 2) batch.push_back(leases[n - 1 - k]);
    (void)delivery->settle_many(SettleMode::ack, batch, options.caps, options.visibility);
    world.run(sleep_for(world.env, seconds(1)));
    const std::size_t now = journal_size();
    largest = std::max(largest, now);
    shrunk += now < before ? 1 : 0;
    before = now;
  }
  EXPECT_GT(largest, kJournalBytesSnapshot);
  EXPECT_LT(largest, kJournalBytesMax);
  EXPECT_GE(shrunk, 1);
  EXPECT_LE(shrunk, 4) << "at most every 30 s";
}

TEST_F(DeliveryTest, Close_StoresEverythingAndALaterOpeningGoesOn) {
  open();
  log->commit(6);
  const auto leases = take(5);
  for (std::size_t n : {0, 1, 3}) EXPECT_EQ(ack(leases[n]), SettleStatus::done);
  EXPECT_TRUE(close());
  world.disk.power_cycle();
  open();
  EXPECT_EQ(delivery->positions(), (ConsumerPositions{Offset(2), {{Offset(3), Offset(4)}}}));
  EXPECT_EQ(ack(leases[2]), SettleStatus::stale) << "a handle of an earlier opening";
  const auto again = take(9);
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].offset, Offset(2));
  for (const Lease& lease : leases) {
    EXPECT_EQ(ack({again[0].offset, lease.nonce}), SettleStatus::stale);
  }
}

TEST_F(DeliveryTest, Close_RefusesWhatComesAfter) {
  open();
  log->commit(1);
  const Lease lease = one();
  auto kept = delivery;
  EXPECT_TRUE(close());
  auto result = world.run(kept->consume(options));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::unavailable);
  EXPECT_EQ(kept->ack(lease, options.caps), SettleStatus::stale);
  EXPECT_TRUE(world.run(kept->close())) << "twice is fine";
}

TEST_F(DeliveryTest, Close_WaitsForAConsumeInProgress) {
  open();
  log->commit(1);
  data.latency = seconds(3);
  std::optional<Result<ConsumeResult>> result;
  asio::co_spawn(
      world.env.executor,
      [](std::shared_ptr<Delivery> d, ConsumeOptions o, std::optional<Result<ConsumeResult>>& out)
          -> Task<void> { out.emplace(co_await d->consume(o)); }(delivery, options, result),
      [](std::exception_ptr) {});
  world.settle();
  EXPECT_TRUE(close());
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Errc::unavailable);
}

TEST_F(DeliveryTest, DiskFull_AcksGoOnAndAreStoredWithoutARestart) {
  open();
  log->commit(10);
  const auto leases = take(10);
  EXPECT_EQ(ack(leases[0]), SettleStatus::done);
  ASSERT_TRUE(world.run(delivery->flush()));
  world.disk.faults.capacity_bytes = 0;
  EXPECT_EQ(ack(leases[1]), SettleStatus::done);
  EXPECT_FALSE(world.run(delivery->flush()));
  EXPECT_EQ(ack(leases[2]), SettleStatus::done);
  world.run(sleep_for(world.env, seconds(5)));
  DeliveryStats stats = delivery->stats();
  EXPECT_EQ(stats.unsaved_acks, 2u);
  EXPECT_GE(stats.write_failures_total, 4u);
  EXPECT_LE(stats.write_failures_total, 8u) << "once a second";
  EXPECT_EQ(world.warnings(), 1u) << "said once";
  world.disk.faults.capacity_bytes = 1u << 30;
  world.run(sleep_for(world.env, seconds(2)));
  EXPECT_EQ(delivery->stats().unsaved_acks, 0u);
  crash();
  EXPECT_EQ(delivery->positions().frontier, Offset(3));
}

TEST_F(DeliveryTest, FailedSync_FilesAreWrittenAnewAndNothingStoredIsLost) {
  for (int n = 1; n <= 6; ++n) {
    SCOPED_TRACE(n);
    open();
    log->commit(3);
    const auto leases = take(3);
    ASSERT_EQ(leases.size(), 3u);
    world.disk.fail_call(sim::FsCall::sync, static_cast<std::uint64_t>(n));
    for (const Lease& lease : leases) {
      EXPECT_EQ(ack(lease), SettleStatus::done);
      world.run(sleep_for(world.env, seconds(2)));
    }
    ASSERT_TRUE(world.run(delivery->flush()));
    const ConsumerPositions stored = delivery->positions();
    crash();
    EXPECT_EQ(delivery->positions(), stored);
    world.disk.clear_failures();
    ASSERT_TRUE(close());
  }
}

TEST_F(DeliveryTest, Open_UnreadableState_IsLoggedCountedAndDeliveredAgain) {
  open();
  log->commit(2);
  EXPECT_EQ(ack(one()), SettleStatus::done);
  EXPECT_TRUE(close());
  ASSERT_TRUE(world.disk.corrupt(kDirectory + "/" + kSnapshotFileName, 34, std::byte{4}));
  open();
  EXPECT_EQ(delivery->stats().state_unreadable_total, 1u);
  EXPECT_EQ(offsets(2), (Offsets{0, 1}));
  EXPECT_EQ(world.warnings(), 1u);
}

TEST_F(DeliveryTest, Open_ReadErrorOfTheDisk_IsAnsweredAndWorksLater) {
  open();
  log->commit(2);
  EXPECT_EQ(ack(one()), SettleStatus::done);
  EXPECT_TRUE(close());
  world.disk.fail_call(sim::FsCall::pread, 1);
  auto failed = world.run(Delivery::open(world.env, config, log));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  open();
  EXPECT_EQ(offsets(2), (Offsets{1}));
}

}  // namespace
}  // namespace narad::delivery
