// What a node does about partitions that live elsewhere: nothing, and it says so.
#include "internal/node/local_broker.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

// A node "here" whose metastore knows of a member "there"; topic "orders" has a partition on each.
struct World {
  std::unique_ptr<DataDir> data;
  std::unique_ptr<metastore::Metastore> store;
  std::unique_ptr<Partitions> partitions;
  std::unique_ptr<LocalBroker> broker;
  Topic topic;
  PartitionId here{0}, there{0};
};

Task<void> join(World& w, std::string id) {
  metastore::Command command =
      metastore::RegisterMember{id, "h:1", "c:1", "boot", {w.data->disks()[0].id}, UnixMillis(1)};
  auto joined = co_await w.store->propose(std::move(command));
  EXPECT_TRUE(joined && joined.value().done());
}

Task<void> open(Env& env, World& w) {
  DataDirOptions where;
  where.data_dir = "/data";
  where.default_node_id = "here";
  where.holder = "a test";
  auto dir = [&env, where] { return DataDir::open(env.fs, env.random, UnixMillis(1), where); };
  auto data = co_await blocking(env, "data", std::move(dir));
  w.data = std::move(data.value());
  metastore::MetastoreOptions options;
  options.node_id = "here";
  auto store = co_await metastore::Metastore::open(env, w.data->metastore_path(), options);
  w.store = std::move(store.value());
  co_await join(w, "here");
  co_await join(w, "there");
  PartitionsOptions how;
  how.node_id = "here";
  w.partitions = std::make_unique<Partitions>(env, std::move(how), *w.data, *w.store);
  w.broker = std::make_unique<LocalBroker>(env, "here", *w.store, *w.partitions);
  metastore::TopicSpec spec;
  spec.name = "orders";
  spec.partitions = 2;
  spec.visibility_timeout_ms = 30'000;
  spec.max_in_flight_per_partition = 10;
  spec.max_acked_ahead_per_partition = 10;
  auto created = co_await metastore::create_topic(env, *w.store, spec);
  w.topic = created.value();
  const auto view = w.store->view();
  for (std::uint32_t p = 0; p < 2; ++p) {
    const bool ours = view->assignment("orders", PartitionId(p))->owner_node == "here";
    (ours ? w.here : w.there) = PartitionId(p);
  }
  EXPECT_NE(w.here, w.there);
  metastore::Command used =
      metastore::MarkUsed{"orders", w.topic.incarnation, w.there, "there", w.data->disks()[0].id};
  auto marked = co_await w.store->propose(std::move(used));
  EXPECT_TRUE(marked && marked.value().done());
}

CommitBatch batch(const World& w, PartitionId partition) {
  auto message = std::make_shared<Message>();
  message->incarnation = w.topic.incarnation;
  message->topic = "orders";
  message->partition = partition;
  message->key = "k";
  message->payload = "x";
  CommitBatch b;
  b.incarnation = w.topic.incarnation;
  b.origin = OriginId(1);
  b.records.push_back({Sequence(1), std::move(message)});
  return b;
}

template <class T>
void expect_not_owner(const Result<T>& result) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::not_owner) << result.error().text();
}

Task<void> check(Env& env) {
  World w;
  co_await open(env, w);
  const Incarnation life = w.topic.incarnation;
  // Ours: committed, leased, acked.
  auto committed = co_await w.broker->commit({"orders", w.here}, batch(w, w.here));
  EXPECT_TRUE(committed);
  auto got = co_await w.broker->consume("orders", life, w.here, 1);
  EXPECT_TRUE(got && got.value().size() == 1);
  std::vector<ReceiptHandle> ours{got.value().front().handle};
  auto acked = co_await w.broker->settle("orders", life, ours, SettleMode::ack);
  EXPECT_TRUE(acked.front());
  // Not ours: whatever is asked is refused as such, an ack above all: it would be lost.
  std::vector<ReceiptHandle> theirs{ReceiptHandle{w.there, Offset(0), 7}};
  auto settled = co_await w.broker->settle("orders", life, theirs, SettleMode::ack);
  expect_not_owner(settled.front());
  auto elsewhere = co_await w.broker->commit({"orders", w.there}, batch(w, w.there));
  expect_not_owner(elsewhere);
  auto leased = co_await w.broker->consume("orders", life, w.there, 1);
  expect_not_owner(leased);
  auto read = co_await w.broker->replay({"orders", w.there}, life, Offset(0));
  expect_not_owner(read);
  co_await w.partitions->close_all();
  co_await w.store->close();
}

// Names come and go; what is noted of one in use must stay.
Task<void> meet_many_topics(Env& env) {
  World w;
  co_await open(env, w);
  const auto held = w.partitions->topic_waiters("held");
  w.partitions->topic_waiters("watched")->set_watched(true);
  auto committed = co_await w.broker->commit({"orders", w.here}, batch(w, w.here));
  EXPECT_TRUE(committed);
  const auto* orders = w.partitions->topic_waiters("orders").get();
  for (std::size_t n = 0; n < 5 * Partitions::kTopicsKept; ++n) {
    (void)w.partitions->topic_waiters(cat("gone-", n));
  }
  EXPECT_LE(w.partitions->topics_kept(), 2 * Partitions::kTopicsKept);
  EXPECT_EQ(w.partitions->topic_waiters("held"), held);
  EXPECT_TRUE(w.partitions->topic_waiters("watched")->wanted());
  EXPECT_EQ(w.partitions->topic_waiters("orders").get(), orders) << "an open partition wakes them";
  co_await w.partitions->close_all();
  co_await w.store->close();
}

TEST(Partitions, TopicsNoLongerInUse_AreForgotten) {
  sim::Solo solo;
  solo.run([](Env& env) { return meet_many_topics(env); });
}

TEST(LocalBroker, Trap52_AckOfAPartitionThatLivesElsewhere_IsRefusedNotLost) {
  sim::Solo solo;
  solo.run([](Env& env) { return check(env); });
}

}  // namespace
}  // namespace narad::node
