// Delivery under everything at once, on a simulated machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "internal/delivery/delivery.h"
#include "internal/delivery/delivery_testing.h"
#include "pkg/sim/solo.h"

namespace narad::delivery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeLog;
using testing::kDirectory;
using testing::LogData;

// Consumers that take, hold, ack, nack and forget; a log that fails, loses records and is slow; a
// disk whose power is cut. After every cut: what was flushed stays acked. Throughout: no two live
// leases on one record. At the end, when faults stop: every record that is not lost was acked.
class Soak {
 public:
  explicit Soak(std::uint64_t seed) : solo_(seed), rng_(solo_.sim.stream("soak")) {
    EXPECT_TRUE(make_directories(solo_.machine.disk(), kDirectory));
    options_.visibility = seconds(2);
    options_.caps = {40, 20};
  }

  void run() {
    open();
    for (int round = 0; round < 12; ++round) {
      for (int step = 0; step < 120; ++step) random_step(true);
      crash();
    }
    data_.fail_in = 0;
    data_.latency = Nanos(0);
    for (int step = 0; step < 20'000 && acked_.size() < alive(); ++step) random_step(false);
    EXPECT_EQ(acked_.size(), alive()) << "every record is delivered until acked";
    EXPECT_TRUE(run_task(delivery().close()));
  }
  std::uint64_t redelivered() const { return redelivered_; }

 private:
  std::size_t alive() const { return committed_ - data_.lost.size(); }

  // What runs on the machine; destroyed with it, after all that waits.
  struct Node {
    Node(Env& env, LogData& data) : log(std::make_shared<FakeLog>(env, data)) {}
    std::shared_ptr<FakeLog> log;
    std::shared_ptr<Delivery> delivery;
  };
  Node& node() { return solo_.machine.component<Node>(); }
  Delivery& delivery() { return *node().delivery; }
  static Task<bool> open_on(Env& env, Node& node) {
    DeliveryConfig config;
    config.partition = {"orders", PartitionId(3)};
    config.directory = kDirectory;
    config.identity = 77;
    config.read_ahead = std::make_shared<ReadAheadBudget>(64u << 20);
    auto opened = co_await Delivery::open(env, std::move(config), node.log);
    if (!opened) co_return false;
    node.delivery = std::move(opened).value();
    co_return true;
  }
  template <class T>
  T run_task(Task<T> task) {
    return solo_.run([task = std::move(task)](Env&) mutable { return std::move(task); });
  }

  void open() {
    solo_.machine.boot([this](Env& env) { return std::make_shared<Node>(env, data_); });
    ASSERT_TRUE(run_task(open_on(solo_.machine.env(), node())));
    const ConsumerPositions found = delivery().positions();
    for (std::uint64_t at : flushed_) {
      EXPECT_TRUE(settled(found, at)) << "offset " << at << " was flushed as acked";
    }
    for (std::uint64_t at = 0; at < found.frontier.value(); ++at) {
      EXPECT_TRUE(acked_.contains(at) || data_.lost.contains(at)) << "offset " << at;
    }
    held_.clear();
    // An ack that was not stored is void, and its record comes again.
    std::erase_if(current_, [&](std::uint64_t at) { return !settled(found, at); });
  }
  static bool settled(const ConsumerPositions& positions, std::uint64_t at) {
    if (at < positions.frontier.value()) return true;
    return std::any_of(
        positions.acked_ahead.begin(), positions.acked_ahead.end(),
        [&](const OffsetRun& run) { return run.begin.value() <= at && at < run.end.value(); });
  }
  void crash() {
    // Somewhere between two handlers, perhaps while a job is on its way.
    for (std::uint64_t n = rng_.below(40); n > 0; --n) (void)solo_.sim.step();
    const bool power = rng_.below(2) == 0;
    solo_.kill(power ? sim::Machine::Kill::power_cut : sim::Machine::Kill::process_exit);
    open();
  }

  void random_step(bool faults) {
    const Nanos now = solo_.machine.clock().mono();
    std::erase_if(held_, [&](const auto& entry) { return entry.second.until <= now; });
    const std::uint64_t what = rng_.below(100);
    if (what < 15 && faults) {
      const std::uint64_t count = rng_.below(6);
      for (std::uint64_t n = 0; n < count; ++n, ++committed_) {
        if (rng_.below(10) == 0) data_.lost.insert(committed_);
      }
      node().log->commit(count);
    } else if (what < 50) {
      consume();
    } else if (what < 80 && !held_.empty()) {
      settle();
    } else if (what < 84) {
      const std::set<std::uint64_t> acked = current_;
      if (run_task(delivery().flush())) flushed_ = acked;
    } else if (what < 90) {
      run_task(sleep_for(solo_.machine.env(), milliseconds(rng_.below(400))));
    } else if (faults) {
      data_.fail_in = static_cast<int>(rng_.below(3));
      data_.latency = milliseconds(rng_.below(5) == 0 ? 300 : 0);
    }
  }
  void consume() {
    ConsumeOptions options = options_;
    options.records_max = 1 + rng_.below(rng_.below(3) == 0 ? 12 : 1);
    auto result = run_task(delivery().consume(options));
    const Nanos now = solo_.machine.clock().mono();
    std::erase_if(held_, [&](const auto& entry) { return entry.second.until <= now; });
    if (!result) return;
    for (const LeasedRecord& leased : result.value().records) {
      const std::uint64_t at = leased.record.offset.value();
      EXPECT_FALSE(held_.contains(at)) << "offset " << at << " is out twice";
      EXPECT_FALSE(data_.lost.contains(at));
      redelivered_ += delivered_.insert(at).second ? 0 : 1;
      // Conservative: the lease began when it was taken, perhaps a slow read ago.
      held_[at] = {leased.nonce, now + options.visibility - seconds(1)};
    }
  }
  void settle() {
    auto it = held_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(rng_.below(held_.size())));
    const Lease lease{Offset(it->first), it->second.nonce};
    switch (rng_.below(6)) {
      case 0:
        EXPECT_EQ(delivery().nack(lease), SettleStatus::done);
        held_.erase(it);
        break;
      case 1:
        EXPECT_EQ(delivery().extend(lease, options_.visibility), SettleStatus::done);
        it->second.until = solo_.machine.clock().mono() + options_.visibility;
        break;
      default: {
        const SettleStatus status = delivery().ack(lease, options_.caps);
        EXPECT_NE(status, SettleStatus::stale);
        if (status != SettleStatus::done) break;
        acked_.insert(it->first);
        current_.insert(it->first);
        held_.erase(it);
      }
    }
  }

  struct Held {
    LeaseNonce nonce;
    Nanos until;
  };
  sim::Solo solo_;
  sim::Rng rng_;
  LogData data_;
  ConsumeOptions options_;
  std::size_t committed_ = 0;
  std::map<std::uint64_t, Held> held_;
  std::set<std::uint64_t> acked_;    // ever
  std::set<std::uint64_t> current_;  // as this opening knows
  std::set<std::uint64_t> flushed_;
  std::set<std::uint64_t> delivered_;
  std::uint64_t redelivered_ = 0;
};

TEST(DeliverySoak, CrashesFaultsAndRestlessConsumers_DeliverUntilAcked) {
  std::uint64_t redelivered = 0;
  for (std::uint64_t seed = 1; seed <= 8 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Soak soak(seed);
    soak.run();
    redelivered += soak.redelivered();
  }
  EXPECT_GT(redelivered, 100u);
}

}  // namespace
}  // namespace narad::delivery
