#include "internal/metastore/metastore.h"

#include <gtest/gtest.h>

#include "internal/metastore/test_env.h"
#include "internal/metastore/topics.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

using test::TestWorld;
constexpr const char* kDirectory = "/data/metastore";

std::unique_ptr<Metastore> open(TestWorld& world) {
  auto opened = world.run(Metastore::open(world.env, kDirectory));
  NARAD_ASSERT(opened.has_value(), opened.error().text());
  return std::move(opened.value());
}
Command registration() {
  return RegisterMember{"n1", "127.0.0.1:7942", "c", "b", {"d1"}, UnixMillis(1)};
}
TopicSpec spec(std::string name) {
  TopicSpec s;
  s.name = std::move(name);
  s.partitions = 3;
  s.visibility_timeout_ms = 30'000;
  s.max_in_flight_per_partition = 1024;
  s.max_acked_ahead_per_partition = 1024;
  return s;
}
// Writes down what came of a proposal.
Task<void> record(Proposer& proposer, Command command, std::vector<std::string>& out) {
  auto result = co_await proposer.propose(std::move(command));
  if (!result) {
    out.push_back(std::string(to_string(result.error().code())));
  } else {
    out.push_back(std::string(to_string(result.value().code)));
  }
}

TEST(Metastore, Proposal_IsVisibleWhenItAnswersAndAfterARestart) {
  TestWorld world;
  {
    auto store = open(world);
    EXPECT_EQ(store->view()->applied, RaftIndex(0));
    const ViewPtr before = store->view();
    auto result = world.run(store->propose(registration()));
    ASSERT_TRUE(result);
    ASSERT_TRUE(result.value().done());
    EXPECT_TRUE(store->view()->members.contains("n1"));
    EXPECT_FALSE(before->members.contains("n1"));
    world.run(store->close());
  }
  auto store = open(world);
  EXPECT_TRUE(store->view()->members.contains("n1"));
  EXPECT_EQ(store->view()->applied, RaftIndex(1));
  world.run(store->close());
  EXPECT_TRUE(world.log.empty()) << world.log.front();
}

TEST(Metastore, ConcurrentProposals_ShareOneSync) {
  TestWorld world;
  auto store = open(world);
  std::vector<std::string> outcomes;
  TaskGroup tasks(world.env);
  const auto syncs_before = world.disk.calls(sim::FsCall::sync);
  for (int i = 0; i < 200; ++i) {
    CreateTopic c;
    c.name = cat("t", i % 150);
    c.incarnation = Incarnation(1000 + static_cast<std::uint64_t>(i));
    c.partitions = 1;
    c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1;
    tasks.spawn("proposer", record(*store, c, outcomes));
  }
  world.run_until([&] { return outcomes.size() == 200; });
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "done"), 150);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "exists"), 50);
  EXPECT_EQ(store->view()->applied, RaftIndex(200));
  EXPECT_LE(world.disk.calls(sim::FsCall::sync) - syncs_before, 6u);
  world.run(tasks.stop());
  world.run(store->close());
}

TEST(Metastore, Change_IsNotifiedAfterTheViewIsThere) {
  TestWorld world;
  auto store = open(world);
  bool seen = false;
  struct Watch {
    static Task<void> run(Metastore& store, bool& seen) {
      while (!store.view()->members.contains("n1")) co_await store.changed().wait();
      seen = true;
    }
  };
  TaskGroup tasks(world.env);
  tasks.spawn("watch", Watch::run(*store, seen));
  world.settle();
  EXPECT_FALSE(seen);
  ASSERT_TRUE(world.run(store->propose(registration())));
  world.settle();
  EXPECT_TRUE(seen);
  world.run(tasks.stop());
  world.run(store->close());
}

TEST(Metastore, FullDisk_RefusesAndRecovers) {
  TestWorld world;
  auto store = open(world);
  world.disk.fail_call(sim::FsCall::pwrite, 1, /*persistent=*/true, 28 /* ENOSPC */);
  auto refused = world.run(store->propose(registration()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::unavailable);
  EXPECT_TRUE(refused.error().text().starts_with("the metastore cannot write: "));
  EXPECT_FALSE(store->view()->members.contains("n1"));
  EXPECT_FALSE(world.exited);
  world.disk.clear_failures();
  auto accepted = world.run(store->propose(registration()));
  ASSERT_TRUE(accepted) << accepted.error().text();
  EXPECT_EQ(store->view()->applied, RaftIndex(1));
  world.run(store->close());
}

TEST(Metastore, FailedSync_EndsTheProcessWithoutAnAnswer) {
  TestWorld world;
  auto store = open(world);
  std::vector<std::string> outcomes;
  TaskGroup tasks(world.env);
  world.disk.fail_call(sim::FsCall::sync, 1);
  tasks.spawn("proposer", record(*store, registration(), outcomes));
  world.run_until([&] { return world.exited.has_value(); });
  world.settle();
  EXPECT_EQ(world.exited, kExitSyncFailed);
  EXPECT_TRUE(outcomes.empty());
  EXPECT_FALSE(store->view()->members.contains("n1"));
  world.kill();
}

TEST(Metastore, Close_AnswersWhatWasProposedBeforeAndRefusesLaterOnes) {
  TestWorld world;
  auto store = open(world);
  std::vector<std::string> outcomes;
  TaskGroup tasks(world.env);
  tasks.spawn("proposer", record(*store, registration(), outcomes));
  tasks.spawn("proposer", record(*store, registration(), outcomes));
  world.settle();
  world.run(store->close());
  world.settle();
  EXPECT_EQ(outcomes, (std::vector<std::string>{"done", "done"}));
  auto late = world.run(store->propose(registration()));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::unavailable);
  world.run(store->close());
  world.run(tasks.stop());
}

TEST(Metastore, DamagedStore_IsNotOpened) {
  TestWorld world;
  {
    auto store = open(world);
    ASSERT_TRUE(world.run(store->propose(registration())));
    world.run(store->close());
  }
  auto file = world.disk.open(join_path(kDirectory, "CURRENT"), OpenMode::read_write);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file.value()->truncate(3));
  auto opened = world.run(Metastore::open(world.env, kDirectory));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Errc::data_loss) << opened.error().text();
}

TEST(Metastore, HugeCommand_IsRefusedBeforeTheLog) {
  TestWorld world;
  auto store = open(world);
  auto result = world.run(store->propose(
      PutSchema{"orders", Incarnation(1), 1, std::string(kCommandBytesMax + 1, 'x')}));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::too_large);
  EXPECT_EQ(store->view()->applied, RaftIndex(0));
  world.run(store->close());
}

TEST(Topics, CreateAlterDelete_GoThroughTheProposer) {
  TestWorld world;
  auto store = open(world);
  ASSERT_TRUE(world.run(store->propose(registration())));
  auto created = world.run(create_topic(world.env, *store, spec("orders")));
  ASSERT_TRUE(created) << created.error().text();
  EXPECT_EQ(created.value().created_at_s, 1'783'615'000);
  EXPECT_NE(created.value().incarnation.value(), 0u);
  auto twice = world.run(create_topic(world.env, *store, spec("orders")));
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code(), Errc::exists);
  EXPECT_EQ(twice.error().text(), "topic already exists");

  TopicPatch patch;
  patch.retention_ms = 3'600'000;
  auto altered = world.run(alter_topic(*store, "orders", patch));
  ASSERT_TRUE(altered);
  EXPECT_EQ(altered.value().retention_ms, 3'600'000);
  TopicPatch shrink;
  shrink.partitions = 2;
  auto refused = world.run(alter_topic(*store, "orders", shrink));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::invalid_argument);

  const Incarnation life = created.value().incarnation;
  EXPECT_TRUE(world.run(put_schema(*store, "orders", life, 1, "true")));
  auto raced = world.run(put_schema(*store, "orders", life, 1, "true"));
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Errc::conflict);

  auto deleted = world.run(delete_topic(*store, "orders"));
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted.value(), life);
  auto again = world.run(delete_topic(*store, "orders"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Errc::not_found);
  EXPECT_EQ(again.error().text(), "topic not found");
  EXPECT_FALSE(world.run(alter_topic(*store, "orders", patch)));
  world.run(store->close());
}

}  // namespace
}  // namespace narad::metastore
