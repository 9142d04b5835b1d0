#include "internal/dispatch/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/dispatch/world_for_test.h"
#include "pkg/sim/solo.h"

namespace narad::dispatch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class MemorySource final : public RecordSource {
 public:
  explicit MemorySource(Env& env) : changed_(env) {}
  bool is_open() const override { return open; }
  Sequence checkpoint() const override { return checkpoint_; }
  Sequence durable_end() const override { return Sequence(records_.size() + 1); }
  Event& changed() override { return changed_; }
  Task<Result<std::vector<DurableRecord>>> read(Sequence from, std::size_t records_max,
                                                std::uint64_t bytes_max) override {
    ++reads;
    if (!error.empty()) co_return Error(Errc::data_loss, error);
    std::vector<DurableRecord> out;
    for (auto s = from; s < durable_end() && out.size() < records_max; s = s.next()) {
      out.push_back(records_[s.value() - 1]);
    }
    co_return out;
  }
  void advance_checkpoint(Sequence checkpoint) override { checkpoint_ = checkpoint; }

  void add(std::uint32_t partition, std::uint64_t count = 1) {
    for (; count > 0; --count) {
      const Sequence s(records_.size() + 1);
      records_.push_back(
          {OriginId(9), s,
           std::make_shared<const Message>(Message{Incarnation(1), "t", PartitionId(partition), "k",
                                                   UnixMillis(0), cat("p", s)})});
    }
    changed_.notify_all();
  }

  bool open = true;
  std::string error;
  std::uint64_t reads = 0;

 private:
  std::vector<DurableRecord> records_;
  Sequence checkpoint_{1};
  Event changed_;
};

// Everything on the node, destroyed after its frames.
struct Node {
  Node(Env& env, sim::Sim& sim, TestWorld& world, Options options)
      : env(env),
        world(world),
        source(env),
        target(env, sim, world),
        dispatcher(env, options, source, target) {}
  Env& env;
  TestWorld& world;
  MemorySource source;
  TestTarget target;
  Dispatcher dispatcher;

  bool settled() const { return source.checkpoint() == source.durable_end(); }
  std::size_t stored(std::size_t partition) const { return world.partitions[partition].log.size(); }
};

class DispatcherTest : public testing::Test {
 protected:
  using Check = Task<void> (*)(Env&, Node&);
  void run(Check check) {
    Env& env = solo.env();
    node = std::make_unique<Node>(env, solo.sim, world, options);
    solo.run([this, check](Env&) { return body(check); });
    node.reset();
  }
  Task<void> body(Check check) {
    node->dispatcher.start();
    co_await check(node->env, *node);
    co_await node->dispatcher.stop();
    EXPECT_EQ(node->dispatcher.stats().checkpoint, node->source.checkpoint());
  }
  sim::Solo solo;
  TestWorld world{3};
  Options options;
  std::unique_ptr<Node> node;
};

Task<void> check_flow(Env& env, Node& node) {
  for (int i = 0; i < 20; ++i) {
    node.source.add(0, 3);
    node.source.add(1, 2);
    co_await sleep_for(env, 10ms);
    EXPECT_TRUE(node.settled());
  }
  EXPECT_EQ(node.stored(0), 60u);
  EXPECT_EQ(node.stored(1), 40u);
  Sequence last{0};
  for (const auto& stored : node.world.partitions[0].log) {
    EXPECT_GT(stored.sequence, last);
    last = stored.sequence;
  }
  EXPECT_EQ(node.dispatcher.trouble(), "");
}

TEST_F(DispatcherTest, Records_AreHandedOverAsTheyComeInOrder) { run(check_flow); }

Task<void> check_idle(Env& env, Node& node) {
  node.source.add(0);
  co_await sleep_for(env, 1s);
  EXPECT_TRUE(node.settled());
  const auto reads = node.source.reads;
  co_await sleep_for(env, 30min);
  EXPECT_EQ(node.source.reads, reads);
}

TEST_F(DispatcherTest, Idle_PollsNothing) { run(check_idle); }

Task<void> check_hang(Env& env, Node& node) {
  node.world.partitions[0].silent = true;
  node.source.add(0);
  co_await sleep_for(env, 100ms);
  for (int i = 0; i < 20; ++i) {
    node.source.add(1);
    co_await sleep_for(env, 10ms);
    EXPECT_EQ(node.stored(1), static_cast<std::size_t>(i + 1));
  }
}

TEST_F(DispatcherTest, PartitionThatHangs_SlowsNoOther) { run(check_hang); }

Task<void> check_late(Env& env, Node& node) {
  node.world.partitions[0].silent = true;
  node.source.add(0, 5);
  co_await sleep_for(env, 9s);
  EXPECT_EQ(node.target.calls, 1u);
  node.world.partitions[0].silent = false;
  co_await sleep_for(env, 2s);  // no answer in 10 s: tried again, at home or with a sibling
  EXPECT_FALSE(node.settled() && node.target.calls == 1);
  co_await sleep_for(env, 60s);
  EXPECT_TRUE(node.settled());
  EXPECT_GE(node.target.calls, 2u);
}

TEST_F(DispatcherTest, NoAnswerWithinTheDeadline_IsUnknownAndSentAgain) { run(check_late); }

Task<void> check_refusal(Env& env, Node& node) {
  node.world.partitions[0].refuses = true;
  node.source.add(0, 4);
  co_await sleep_for(env, 2500ms);
  EXPECT_EQ(node.target.calls, 3u);  // at 0, 1 and 2 s
  EXPECT_EQ(node.stored(1), 0u);
  co_await sleep_for(env, 2s);
  EXPECT_TRUE(node.settled());
  EXPECT_EQ(node.stored(1), 4u);  // the sibling, after the grace
  EXPECT_EQ(node.dispatcher.stats().rerouted, 4u);
  node.world.partitions[0].refuses = false;
  co_await sleep_for(env, 2s);
  node.source.add(0);
  co_await sleep_for(env, 2s);
  EXPECT_EQ(node.stored(0), 1u);
}

TEST_F(DispatcherTest, CLI_4_RefusingPartition_IsTriedEachSecondThenItsRecordsAreRerouted) {
  run(check_refusal);
}

Task<void> check_no_sibling(Env& env, Node& node) {
  for (TestPartition& p : node.world.partitions) p.owner = OwnerState::dead;
  node.source.add(0);
  co_await sleep_for(env, 60s);
  EXPECT_EQ(node.target.calls, 0u);
  EXPECT_THAT(node.dispatcher.trouble(), HasSubstr("t/0"));
  node.world.partitions[0].owner = OwnerState::alive;
  node.target.routing_changed().notify_all();
  co_await sleep_for(env, 10ms);  // at once, not with the next second
  EXPECT_TRUE(node.settled());
  EXPECT_EQ(node.dispatcher.trouble(), "");
}

TEST_F(DispatcherTest, ChangeOfRouting_WakesIt) { run(check_no_sibling); }

Task<void> check_gone(Env& env, Node& node) {
  node.world.topic_gone = true;
  node.target.leader = false;
  node.source.add(0);
  node.source.add(1);
  co_await sleep_for(env, 10500ms);
  EXPECT_EQ(node.source.checkpoint(), Sequence(1));  // could not ask: kept
  EXPECT_EQ(node.target.questions, 11u);             // about once a second, one for the topic
  node.target.leader = true;
  co_await sleep_for(env, 2s);
  EXPECT_TRUE(node.settled());
  EXPECT_EQ(node.dispatcher.stats().discarded, 2u);
}

TEST_F(DispatcherTest, DeletedTopic_IsDiscardedOnlyOnTheLeadersWord) { run(check_gone); }

Task<void> check_read_error(Env& env, Node& node) {
  node.source.error = "record 1 is damaged";
  node.source.add(0);
  co_await sleep_for(env, 5500ms);
  EXPECT_THAT(node.dispatcher.trouble(), HasSubstr("record 1 is damaged"));
  EXPECT_LE(node.source.reads, 7u);
  node.source.error.clear();
  co_await sleep_for(env, 2s);
  EXPECT_TRUE(node.settled());
  EXPECT_EQ(node.dispatcher.trouble(), "");
}

TEST_F(DispatcherTest, RecordThatCannotBeRead_IsTriedAgainAndReported) { run(check_read_error); }

Task<void> check_late_source(Env& env, Node& node) {
  node.source.open = false;
  node.source.add(0);
  co_await sleep_for(env, 5s);
  EXPECT_EQ(node.target.calls, 0u);
  node.source.open = true;
  node.source.changed().notify_all();
  co_await sleep_for(env, 10ms);
  EXPECT_TRUE(node.settled());
}

TEST_F(DispatcherTest, SourceThatOpensLate_IsWaitedFor) {
  Env& env = solo.env();
  node = std::make_unique<Node>(env, solo.sim, world, options);
  node->source.open = false;
  solo.run([this](Env&) { return body(check_late_source); });
  node.reset();
}

Task<void> check_stop(Env& env, Node& node) {
  node.world.partitions[0].latency = 1s;
  node.source.add(0, 3);
  co_await sleep_for(env, 1ms);
  EXPECT_EQ(node.dispatcher.stats().in_flight, 1u);
  co_await node.dispatcher.stop();
  EXPECT_TRUE(node.settled());  // what was in flight was waited for, and counted
}

TEST_F(DispatcherTest, Stop_LetsBatchesInFlightFinish) { run(check_stop); }

Task<void> check_stop_hanging(Env& env, Node& node) {
  node.world.partitions[0].silent = true;
  node.source.add(0, 3);
  co_await sleep_for(env, 1ms);
  const Nanos before = env.clock.mono();
  co_await node.dispatcher.stop();
  EXPECT_LE(env.clock.mono() - before, 2100ms);
  EXPECT_EQ(node.source.checkpoint(), Sequence(1));
}

TEST_F(DispatcherTest, StopWithAHangingBatch_EndsAfterTheGrace) { run(check_stop_hanging); }

}  // namespace
}  // namespace narad::dispatch
