#include "internal/dispatch/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/text.h"

namespace narad::dispatch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Incarnation kLife{7};

class Routes final : public Routing {
 public:
  Route route(const TopicPartition& tp, Incarnation incarnation) const override {
    Route out;
    out.topic_known = !gone.contains(tp.topic) && incarnation == kLife;
    out.partitions = partitions;
    auto it = owners.find(tp);
    out.owner = it == owners.end() ? OwnerState::alive : it->second;
    out.assignment_index = index;
    return out;
  }
  std::uint32_t partitions = 3;
  std::map<TopicPartition, OwnerState> owners;
  std::set<std::string> gone;
  RaftIndex index{1};
};

class PlanTest : public testing::Test {
 protected:
  Plan& plan() {
    if (!plan_) plan_.emplace(options, Sequence(1));
    return *plan_;
  }
  // Records of `topic`, one for each partition named.
  void offer(const std::string& topic, std::vector<std::uint32_t> partitions,
             OriginId origin = OriginId(1), std::size_t size = 10) {
    std::vector<DurableRecord> records;
    for (std::uint32_t p : partitions) {
      auto message = std::make_shared<const Message>(
          Message{kLife, topic, PartitionId(p), "k", UnixMillis(0), std::string(size, 'x')});
      all_.push_back({origin, Sequence(all_.size() + 1), std::move(message)});
      records.push_back(all_.back());
    }
    plan().offer(records);
    plan().check_invariants();
  }
  void read_again() {
    auto request = plan().read_next();
    ASSERT_TRUE(request);
    const auto from = request->from.value() - 1;
    plan().offer({all_.begin() + static_cast<std::ptrdiff_t>(from), all_.end()});
    plan().check_invariants();
  }
  std::vector<Send> act(Nanos at) {
    now_ = at;
    Actions actions = plan().next_actions(at, routes);
    confirms = actions.confirms;
    plan().check_invariants();
    return std::move(actions.sends);
  }
  void done(const Send& send, BatchResult result = BatchResult::committed) {
    last_turn = plan().on_result(send.id, result, now_);
    plan().check_invariants();
  }
  static std::vector<std::uint64_t> sequences(const Send& send) {
    std::vector<std::uint64_t> out;
    for (const CommitRecord& r : send.batch.records) out.push_back(r.sequence.value());
    return out;
  }
  // Fails the home of everything sent until `at`.
  void keep_failing(Nanos from, Nanos until) {
    for (Nanos t = from; t < until; t += 100ms) {
      for (const Send& send : act(t)) done(send, BatchResult::failed);
    }
  }

  PlanOptions options;
  Routes routes;
  std::vector<ConfirmGone> confirms;
  Turn last_turn = Turn::none;

 private:
  std::optional<Plan> plan_;
  std::vector<DurableRecord> all_;
  Nanos now_{0};
};

TEST_F(PlanTest, InterleavedRecords_BecomeOneBatchAPartitionInOrder) {
  offer("t", {0, 1, 0, 2, 1, 0});
  auto sends = act(0ms);
  ASSERT_EQ(sends.size(), 3u);
  EXPECT_EQ(to_string(sends[0].to), "t/0");
  EXPECT_THAT(sequences(sends[0]), ElementsAre(1, 3, 6));
  EXPECT_THAT(sequences(sends[1]), ElementsAre(2, 5));
  EXPECT_THAT(sequences(sends[2]), ElementsAre(4));
  EXPECT_EQ(sends[0].batch.origin, OriginId(1));
  EXPECT_EQ(sends[0].batch.incarnation, kLife);
  EXPECT_EQ(sends[0].batch.assignment_index, RaftIndex(1));
  EXPECT_FALSE(sends[0].batch.rerouted);
}

TEST_F(PlanTest, BatchInFlight_HoldsBackWhatFollowsForThatPartitionOnly) {
  offer("t", {0});
  auto first = act(0ms);
  offer("t", {0, 1});
  auto second = act(0ms);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(to_string(second[0].to), "t/1");
  done(first[0]);
  auto third = act(0ms);
  ASSERT_EQ(third.size(), 1u);
  EXPECT_THAT(sequences(third[0]), ElementsAre(2));
}

TEST_F(PlanTest, Trap46_Batch_StopsAtRecordAndByteLimits) {
  options.batch_records_max = 3;
  options.batch_bytes_max = 1000;
  offer("t", {0, 0, 0, 0});
  offer("u", {0, 0, 0}, OriginId(1), 400);
  auto sends = act(0ms);
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_THAT(sequences(sends[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(sequences(sends[1]), ElementsAre(5, 6));
}

TEST_F(PlanTest, Trap46_RecordAboveTheByteLimit_GoesAlone) {
  options.batch_bytes_max = 100;
  offer("t", {0, 0}, OriginId(1), 400);
  auto sends = act(0ms);
  EXPECT_THAT(sequences(sends.at(0)), ElementsAre(1));
}

TEST_F(PlanTest, OlderOrigin_GoesFirstAndAlone) {
  offer("t", {0, 0}, OriginId(5));
  offer("t", {0, 0}, OriginId(6));
  auto first = act(0ms);
  EXPECT_THAT(sequences(first.at(0)), ElementsAre(1, 2));
  EXPECT_EQ(first[0].batch.origin, OriginId(5));
  done(first[0]);
  auto second = act(0ms);
  EXPECT_THAT(sequences(second.at(0)), ElementsAre(3, 4));
  EXPECT_EQ(second[0].batch.origin, OriginId(6));
}

TEST_F(PlanTest, Checkpoint_IsTheLowestUnsettledRecord) {
  offer("t", {0, 1, 0});
  auto sends = act(0ms);
  EXPECT_EQ(plan().checkpoint(), Sequence(1));
  done(sends[1]);
  EXPECT_EQ(plan().checkpoint(), Sequence(1));
  done(sends[0]);
  EXPECT_EQ(plan().checkpoint(), Sequence(4));
  EXPECT_EQ(plan().stats().committed, 3u);
}

TEST_F(PlanTest, NothingToDo_SetsNoTimer) {
  offer("t", {0, 1, 2});
  for (const Send& send : act(0ms)) done(send);
  EXPECT_THAT(act(1ms), IsEmpty());
  EXPECT_FALSE(plan().wake_at());
}

TEST_F(PlanTest, FailedBatch_IsTriedAgainAfterASecondWithOneRecordThenInFull) {
  routes.partitions = 1;
  offer("t", {0, 0, 0});
  done(act(0ms).at(0), BatchResult::failed);
  EXPECT_THAT(act(999ms), IsEmpty());
  EXPECT_EQ(plan().wake_at(), Nanos(1s));
  auto probe = act(1000ms);
  EXPECT_THAT(sequences(probe.at(0)), ElementsAre(1));
  done(probe[0]);
  EXPECT_THAT(sequences(act(1000ms).at(0)), ElementsAre(2, 3));
}

TEST_F(PlanTest, FailingDestination_IsNewsFromItsSecondFailureOn) {
  routes.partitions = 1;
  offer("t", {0});
  done(act(0ms).at(0), BatchResult::failed);
  EXPECT_EQ(last_turn, Turn::none);
  done(act(1s).at(0), BatchResult::failed);
  EXPECT_EQ(last_turn, Turn::began_failing);
  done(act(2s).at(0), BatchResult::failed);
  EXPECT_EQ(last_turn, Turn::none) << "told once";
  done(act(3s).at(0));
  EXPECT_EQ(last_turn, Turn::recovered);
  offer("t", {0});
  done(act(3s).at(0), BatchResult::failed);
  done(act(4s).at(0));
  EXPECT_EQ(last_turn, Turn::none) << "of that nobody was told";
}

TEST_F(PlanTest, HangingDestination_IsNewsAtOnce) {
  routes.partitions = 1;
  offer("t", {0});
  const auto send = act(0ms);
  act(10s);
  done(send.at(0), BatchResult::failed);
  EXPECT_EQ(last_turn, Turn::began_failing);
}

// A freeze lasts, another assignment follows, whose owner has not heard of it yet: a clean move.
TEST_F(PlanTest, FrozenDestination_IsNoNewsUntilItFailsForAnotherReason) {
  routes.partitions = 1;
  offer("t", {0});
  for (Nanos t{0}; t < 25s; t += 1s) {
    done(act(t).at(0), BatchResult::held_up);
    EXPECT_EQ(last_turn, Turn::none);
  }
  routes.index = RaftIndex(2);
  plan().on_routing_changed();
  done(act(25s + 500ms).at(0), BatchResult::failed);
  EXPECT_EQ(last_turn, Turn::none);
  done(act(26s + 500ms).at(0), BatchResult::failed);
  EXPECT_EQ(last_turn, Turn::began_failing);
}

TEST_F(PlanTest, Trap45_FailingPartition_SlowsNoNeighbour) {
  offer("t", {0, 1});
  auto sends = act(0ms);
  done(sends[0], BatchResult::failed);
  done(sends[1]);
  for (int i = 0; i < 50; ++i) {
    offer("t", {1});
    auto more = act(Nanos(i * 1ms));
    ASSERT_EQ(more.size(), 1u);
    EXPECT_EQ(to_string(more[0].to), "t/1");
    done(more[0]);
  }
}

TEST_F(PlanTest, HangingDestination_IsAskedLessOften) {
  routes.partitions = 1;
  offer("t", {0});
  auto send = act(0ms);
  act(10s);
  done(send[0], BatchResult::failed);
  EXPECT_THAT(act(29s), IsEmpty());
  EXPECT_EQ(act(30s).size(), 1u);
}

TEST_F(PlanTest, NewAssignment_IsTriedAtOnceAndInFull) {
  offer("t", {0, 0});
  done(act(0ms).at(0), BatchResult::failed);
  EXPECT_THAT(act(10ms), IsEmpty());
  routes.index = RaftIndex(2);
  plan().on_routing_changed();
  auto sends = act(20ms);
  EXPECT_THAT(sequences(sends.at(0)), ElementsAre(1, 2));
  EXPECT_EQ(sends[0].batch.assignment_index, RaftIndex(2));
}

// The owner refuses while it is frozen; then the flip gives the partition to another one.
TEST_F(PlanTest, CLI_3_FrozenPartition_IsTriedEachSecondAndGoesToItsNewOwner) {
  offer("t", {0, 0});
  done(act(0ms).at(0), BatchResult::failed);
  for (const Nanos at : {Nanos(1s), Nanos(2s)}) {
    EXPECT_THAT(act(at - 1ms), IsEmpty());
    auto probe = act(at);
    ASSERT_EQ(probe.size(), 1u);
    EXPECT_EQ(to_string(probe[0].to), "t/0");
    done(probe[0], BatchResult::failed);
  }
  routes.index = RaftIndex(2);
  plan().on_routing_changed();
  auto sends = act(2100ms);
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(to_string(sends[0].to), "t/0");
  EXPECT_FALSE(sends[0].batch.rerouted);
  EXPECT_THAT(sequences(sends[0]), ElementsAre(1, 2));
  done(sends[0]);
  EXPECT_EQ(plan().checkpoint(), Sequence(3));
}

TEST_F(PlanTest, CLI_4_HomeFailingForTheGrace_ReroutesToTheNextPartition) {
  offer("t", {2, 2});
  keep_failing(0ms, 3s);
  std::vector<Send> sends;
  for (Nanos t = 3s; t < 4s && sends.empty(); t += 10ms) {
    for (Send& s : act(t)) {
      if (s.batch.rerouted) {
        sends.push_back(std::move(s));
      } else {
        done(s, BatchResult::failed);
      }
    }
  }
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(to_string(sends[0].to), "t/0");  // in a circle
  EXPECT_THAT(sequences(sends[0]), ElementsAre(1, 2));
  done(sends[0]);
  EXPECT_EQ(plan().checkpoint(), Sequence(3));
  EXPECT_EQ(plan().stats().rerouted, 2u);
}

TEST_F(PlanTest, RerouteOut_HomeGetsNothingUntilItIsDecided) {
  routes.owners[{"t", PartitionId(0)}] = OwnerState::dead;
  offer("t", {0});
  auto reroute = act(0ms);
  ASSERT_TRUE(reroute.at(0).batch.rerouted);
  routes.owners.clear();
  plan().on_routing_changed();
  offer("t", {0, 0});
  EXPECT_THAT(act(5s), IsEmpty());
  done(reroute[0], BatchResult::failed);
  auto home = act(5s);
  EXPECT_FALSE(home.at(0).batch.rerouted);
  EXPECT_THAT(sequences(home[0]), ElementsAre(1, 2, 3));
}

TEST_F(PlanTest, DeadOwner_ReroutesAtOnceAndReturnsWhenItLives) {
  routes.owners[{"t", PartitionId(1)}] = OwnerState::dead;
  offer("t", {1});
  auto sends = act(0ms);
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_TRUE(sends[0].batch.rerouted);
  EXPECT_EQ(to_string(sends[0].to), "t/2");
  done(sends[0]);
  routes.owners.clear();
  offer("t", {1});
  auto home = act(1ms);
  EXPECT_FALSE(home.at(0).batch.rerouted);
}

TEST_F(PlanTest, UnassignedPartition_WaitsForTheGrace) {
  routes.owners[{"t", PartitionId(1)}] = OwnerState::unassigned;
  offer("t", {1});
  EXPECT_THAT(act(0ms), IsEmpty());
  EXPECT_THAT(act(2999ms), IsEmpty());
  EXPECT_TRUE(act(3000ms).at(0).batch.rerouted);
}

TEST_F(PlanTest, NoSiblingAlive_PinsTheCheckpointWhileOthersFlow) {
  routes.partitions = 1;
  routes.owners[{"t", PartitionId(0)}] = OwnerState::dead;
  offer("t", {0});
  offer("u", {0});
  auto sends = act(0ms);
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].to.topic, "u");
  done(sends[0]);
  EXPECT_THAT(act(10s), IsEmpty());
  EXPECT_EQ(plan().checkpoint(), Sequence(1));
  EXPECT_THAT(plan().trouble(10s), testing::HasSubstr("t/0"));
}

TEST_F(PlanTest, FailingSibling_IsPassedOver) {
  routes.owners[{"t", PartitionId(0)}] = OwnerState::dead;
  offer("t", {1});
  done(act(0ms).at(0), BatchResult::failed);  // partition 1 fails on its own account
  offer("t", {0});
  auto sends = act(10ms);
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(to_string(sends[0].to), "t/2");
}

TEST_F(PlanTest, BusySibling_IsWaitedForAndShared) {
  routes.partitions = 2;
  routes.owners[{"t", PartitionId(0)}] = OwnerState::dead;
  offer("t", {1});
  auto own = act(0ms);
  offer("t", {0, 1});
  EXPECT_THAT(act(0ms), IsEmpty());  // one batch in flight to each partition
  done(own[0]);
  auto next = act(0ms);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_TRUE(next[0].batch.rerouted);  // those who waited come first
  done(next[0]);
  auto last = act(0ms);
  EXPECT_THAT(sequences(last.at(0)), ElementsAre(3));
}

TEST_F(PlanTest, UnknownTopic_IsKeptUntilTheLeaderConfirms) {
  routes.gone.insert("t");
  offer("t", {0, 1});
  offer("u", {0});
  auto sends = act(0ms);
  ASSERT_EQ(sends.size(), 1u);
  ASSERT_EQ(confirms.size(), 1u);  // once, not for each partition
  EXPECT_EQ(confirms[0].topic, "t");
  done(sends[0]);
  plan().on_gone("t", kLife, GoneAnswer::unknown, 0ms);
  EXPECT_EQ(plan().checkpoint(), Sequence(1));
  act(1s);
  ASSERT_EQ(confirms.size(), 1u);
  plan().on_gone("t", kLife, GoneAnswer::alive, 1s);
  EXPECT_EQ(plan().checkpoint(), Sequence(1));
  act(2s);
  ASSERT_EQ(confirms.size(), 1u);
  plan().on_gone("t", kLife, GoneAnswer::gone, 2s);
  plan().check_invariants();
  EXPECT_EQ(plan().checkpoint(), Sequence(4));
  EXPECT_EQ(plan().stats().discarded, 2u);
}

TEST_F(PlanTest, GoneConfirmedWhileABatchIsOut_DiscardsItOnlyAfterItsResult) {
  offer("t", {0});
  auto sends = act(0ms);
  routes.gone.insert("t");
  offer("t", {1});
  act(0ms);
  plan().on_gone("t", kLife, GoneAnswer::gone, 0ms);
  EXPECT_EQ(plan().checkpoint(), Sequence(1));
  done(sends[0], BatchResult::failed);
  act(1ms);
  ASSERT_EQ(confirms.size(), 1u);
  plan().on_gone("t", kLife, GoneAnswer::gone, 1ms);
  EXPECT_EQ(plan().checkpoint(), Sequence(3));
}

TEST_F(PlanTest, TopicThatIsBack_IsServedWithoutDiscard) {
  routes.gone.insert("t");
  offer("t", {0});
  EXPECT_THAT(act(0ms), IsEmpty());
  routes.gone.clear();
  plan().on_routing_changed();
  EXPECT_EQ(act(1ms).size(), 1u);
}

TEST_F(PlanTest, StuckHome_GivesUpItsMessagesAndReadsThemAgain) {
  options.loaded_bytes_max = 10'000;
  routes.partitions = 1;
  routes.owners[{"t", PartitionId(0)}] = OwnerState::dead;
  for (int i = 0; i < 40; ++i) {
    offer("t", {0}, OriginId(1), 1000);
    act(0ms);
    offer("u", {0}, OriginId(1), 10);
    auto sends = act(0ms);
    ASSERT_EQ(sends.size(), 1u) << i;  // the others flow, whatever the stuck one holds
    done(sends[0]);
    EXPECT_LE(plan().stats().loaded_bytes, 12'000u);
  }
  routes.owners.clear();
  plan().on_routing_changed();
  std::vector<std::uint64_t> got;
  for (int i = 0; i < 200 && plan().stats().unsettled > 0; ++i) {
    for (const Send& send : act(Nanos(i * 1s))) {
      for (std::uint64_t s : sequences(send)) got.push_back(s);
      done(send);
    }
    if (plan().read_next() && plan().read_next()->from < plan().stats().next) read_again();
  }
  ASSERT_EQ(got.size(), 40u);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], 2 * i + 1);
  EXPECT_EQ(plan().checkpoint(), Sequence(81));
}

TEST_F(PlanTest, LimitsReached_AskForNothingMore) {
  options.unsettled_max = 2;
  offer("t", {0, 0, 0});
  EXPECT_EQ(plan().stats().next, Sequence(3));  // the third is read again later
  EXPECT_FALSE(plan().read_next());
  done(act(0ms).at(0));
  ASSERT_TRUE(plan().read_next());
  EXPECT_EQ(plan().read_next()->from, Sequence(3));
}

TEST_F(PlanTest, InFlightLimit_ServesTheOthersInTurn) {
  options.in_flight_max = 1;
  offer("t", {0, 1, 2});
  for (int i = 0; i < 3; ++i) {
    auto sends = act(0ms);
    ASSERT_EQ(sends.size(), 1u);
    EXPECT_EQ(sends[0].to.partition, PartitionId(static_cast<std::uint32_t>(i)));
    done(sends[0]);
  }
}

TEST_F(PlanTest, FailingAndIdle_IsForgottenInTheEnd) {
  routes.partitions = 2;
  routes.owners[{"t", PartitionId(0)}] = OwnerState::dead;
  offer("t", {0});
  done(act(0ms).at(0), BatchResult::failed);  // the sibling fails
  EXPECT_EQ(plan().stats().failing, 1u);
  routes.owners.clear();
  plan().on_routing_changed();
  done(act(1ms).at(0));
  act(62s);
  EXPECT_EQ(plan().stats().failing, 0u);
  EXPECT_FALSE(plan().wake_at());
}

}  // namespace
}  // namespace narad::dispatch
