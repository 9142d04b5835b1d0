#include "internal/metastore/metastore.h"

#include <gtest/gtest.h>

#include "internal/metastore/outcome.h"
#include "internal/metastore/storage.h"
#include "internal/metastore/topics.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::metastore {
namespace {

constexpr const char* kDirectory = "/data/metastore";

// One machine, and the tasks of a test on it.
struct World {
  sim::Solo solo;
  Env& env = solo.env();
  sim::SimFs& disk = solo.machine.disk();

  template <class T>
  T run(Task<T> task) {
    return solo.run([task = std::move(task)](Env&) mutable { return std::move(task); });
  }
  // Until everything that can happen now has happened.
  void settle() { solo.sim.run_for(std::chrono::seconds(1)); }
};

MetastoreOptions alone() {
  MetastoreOptions options;
  options.node_id = "n1";
  return options;
}

std::unique_ptr<Metastore> open(World& world) {
  auto opened = world.run(Metastore::open(world.env, kDirectory, alone()));
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
  World world;
  {
    auto store = open(world);
    EXPECT_EQ(store->view()->applied, RaftIndex(1)) << "the entry that begins the term";
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
  EXPECT_EQ(store->view()->applied, RaftIndex(3));
  EXPECT_TRUE(store->leader().is_self);
  EXPECT_EQ(store->leader().node, "n1");
  EXPECT_EQ(store->leader().term, 2u);
  world.run(store->close());
}

TEST(Metastore, ConcurrentProposals_ShareOneSync) {
  World world;
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
  world.settle();
  ASSERT_EQ(outcomes.size(), 200u);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "done"), 150);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "exists"), 50);
  EXPECT_EQ(store->view()->applied, RaftIndex(201));
  EXPECT_LE(world.disk.calls(sim::FsCall::sync) - syncs_before, 6u);
  world.run(tasks.stop());
  world.run(store->close());
}

TEST(Metastore, Change_IsNotifiedAfterTheViewIsThere) {
  World world;
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
  World world;
  auto store = open(world);
  world.disk.fail_call(sim::FsCall::pwrite, 1, /*persistent=*/true, 28 /* ENOSPC */);
  auto refused = world.run(store->propose(registration()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::unavailable);
  EXPECT_TRUE(refused.error().text().starts_with("the metastore cannot write: "));
  EXPECT_FALSE(store->view()->members.contains("n1"));
  world.disk.clear_failures();
  auto accepted = world.run(store->propose(registration()));
  ASSERT_TRUE(accepted) << accepted.error().text();
  // What was refused is nowhere; the entry between begins the new term.
  EXPECT_EQ(store->view()->applied, RaftIndex(3));
  world.run(store->close());
}

// A metastore that dies with its node.
struct Node {
  explicit Node(Env& env) : tasks(env) { tasks.spawn("start", start(env, *this)); }
  static Task<void> start(Env& env, Node& node) {
    auto opened = co_await Metastore::open(env, kDirectory, alone());
    NARAD_ASSERT(opened.has_value(), "open");
    node.store = std::move(opened.value());
  }
  TaskGroup tasks;
  std::unique_ptr<Metastore> store;
};

TEST(Metastore, FailedSync_EndsTheProcessWithoutAnAnswer) {
  sim::Solo solo;
  solo.machine.boot([](Env& env) { return std::make_shared<Node>(env); });
  solo.sim.run_for(std::chrono::seconds(1));
  std::vector<std::string> outcomes;
  {
    Node& node = solo.machine.component<Node>();
    solo.machine.disk().fail_call(sim::FsCall::sync, 1);
    node.tasks.spawn("proposer", record(*node.store, registration(), outcomes));
  }
  solo.sim.run_for(std::chrono::seconds(1));
  ASSERT_FALSE(solo.machine.up());
  ASSERT_TRUE(solo.machine.last_exit());
  EXPECT_EQ(solo.machine.last_exit()->code, kExitSyncFailed);
  EXPECT_TRUE(outcomes.empty());
  // The next start copies what it finds before it believes it.
  solo.machine.boot();
  solo.sim.run_for(std::chrono::seconds(1));
  ASSERT_TRUE(solo.machine.up());
  EXPECT_NE(solo.machine.component<Node>().store, nullptr);
}

// traps.md 31: without an applied index a restart showed a past world.
TEST(Metastore, Trap31_KilledWhileProposing_KeepsEveryAnsweredEntry) {
  std::size_t kills = 0, answers = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    sim::Solo solo(seed);
    solo.machine.boot([](Env& env) { return std::make_shared<Node>(env); });
    solo.sim.run_for(std::chrono::seconds(1));
    std::vector<std::string> outcomes;
    Node& node = solo.machine.component<Node>();
    for (int i = 0; i < 20; ++i) {
      CreateTopic c;
      c.name = cat("t", i);
      c.incarnation = Incarnation(1000 + static_cast<std::uint64_t>(i));
      c.partitions = 1;
      c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1;
      node.tasks.spawn("proposer", record(*node.store, c, outcomes));
    }
    solo.machine.kill_at_disk_call(1 + seed / 2);
    solo.sim.run_for(std::chrono::seconds(1));
    if (!solo.machine.up()) ++kills;
    const std::size_t answered = outcomes.size();
    answers += answered;
    if (!solo.machine.up()) solo.machine.boot();
    solo.sim.run_for(std::chrono::seconds(1));
    const ViewPtr view = solo.machine.component<Node>().store->view();
    EXPECT_GE(view->topics.size(), answered) << "seed " << seed;
    // All twenty share one transaction: all or none of them are there.
    EXPECT_TRUE(view->topics.size() == 0 || view->topics.size() == 20) << view->topics.size();
  }
  EXPECT_GT(kills, 10u);
  EXPECT_GT(answers, 0u);
}

TEST(Metastore, Close_AnswersWhatWasProposedBeforeAndRefusesLaterOnes) {
  World world;
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
  World world;
  {
    auto store = open(world);
    ASSERT_TRUE(world.run(store->propose(registration())));
    world.run(store->close());
  }
  auto file = world.disk.open(join_path(kDirectory, "CURRENT"), OpenMode::read_write);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file.value()->truncate(3));
  auto opened = world.run(Metastore::open(world.env, kDirectory, alone()));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Errc::data_loss) << opened.error().text();
}

TEST(Metastore, HugeCommand_IsRefusedBeforeTheLog) {
  World world;
  auto store = open(world);
  auto result = world.run(store->propose(
      PutSchema{"orders", Incarnation(1), 1, std::string(kCommandBytesMax + 1, 'x')}));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::too_large);
  EXPECT_EQ(store->view()->applied, RaftIndex(1));
  world.run(store->close());
}

TEST(Metastore, OneProposalAfterTheOther_CostsAboutOneSyncEach) {
  World world;
  auto store = open(world);
  ASSERT_TRUE(world.run(store->propose(registration())));
  const auto before = world.disk.calls(sim::FsCall::sync);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(world.run(store->propose(registration())));
  const auto syncs = world.disk.calls(sim::FsCall::sync) - before;
  EXPECT_GE(syncs, 50u) << "each is durable when it answers";
  EXPECT_LE(syncs, 56u);
  world.run(store->close());
}

TEST(Metastore, Alone_LeadsIsCaughtUpAndAnswersBarriersAtOnce) {
  World world;
  auto store = open(world);
  ASSERT_TRUE(world.run(store->barrier(std::chrono::seconds(1))));
  EXPECT_TRUE(store->caught_up()) << "an answered barrier is contact, whoever asked";
  ASSERT_TRUE(world.run(store->propose(registration())));
  auto index = world.run(store->barrier(std::chrono::seconds(1)));
  ASSERT_TRUE(index) << index.error().text();
  EXPECT_EQ(index.value(), store->view()->applied);
  const raftnode::Status status = store->raft_status();
  EXPECT_EQ(status.standing, raft::Standing::voter);
  EXPECT_TRUE(status.leads_own_term);
  EXPECT_EQ(status.leader_node, "n1");
  // Nothing lapses, and nothing ticks: an idle node sleeps.
  const auto handlers = world.solo.sim.handlers();
  world.solo.sim.run_for(std::chrono::minutes(10));
  EXPECT_TRUE(store->caught_up());
  EXPECT_LE(world.solo.sim.handlers() - handlers, 10u);
  world.run(store->close());
}

std::size_t snapshots_in(sim::SimFs& disk) {
  const auto names = disk.list(kDirectory).value();
  return static_cast<std::size_t>(std::count_if(
      names.begin(), names.end(), [](const auto& n) { return n.starts_with("snapshot."); }));
}

TEST(Metastore, LongLog_IsCompactedAndTheRestartShowsTheSame) {
  World world;
  MetastoreOptions options = alone();
  options.raft.snapshot_entries = 20;
  options.raft.keep_entries = 5;
  auto opened = world.run(Metastore::open(world.env, kDirectory, options));
  ASSERT_TRUE(opened);
  for (int i = 0; i < 100; ++i) {
    RegisterMember m{cat("n", i % 7), "h:1", "c:1", "b", {"d1"}, UnixMillis(i)};
    ASSERT_TRUE(world.run(opened.value()->propose(m)));
  }
  world.settle();
  const std::uint64_t sum = digest(*opened.value()->view());
  EXPECT_EQ(snapshots_in(world.disk), 1u);
  world.run(opened.value()->close());
  auto storage = open_storage(world.disk, kDirectory, {"n1", raft::ReplicaId(1), true});
  ASSERT_TRUE(storage) << storage.error().text();
  EXPECT_LE(storage.value().start.entries.size(), 40u);
  EXPECT_GT(storage.value().start.snapshot.index, RaftIndex(60));
  EXPECT_EQ(digest(storage.value().state), sum);
  ASSERT_TRUE(close_storage(storage.value()));
  auto store = open(world);
  EXPECT_EQ(store->view()->members.size(), 7u);
  world.run(store->close());
}

TEST(Metastore, WaitingForAGroup_RefusesUntilFoundedAndCannotBeFoundedTwice) {
  World world;
  MetastoreOptions options = alone();
  options.found_alone = false;
  auto opened = world.run(Metastore::open(world.env, kDirectory, options));
  ASSERT_TRUE(opened) << opened.error().text();
  Metastore& store = *opened.value();
  EXPECT_TRUE(store.empty());
  EXPECT_FALSE(store.caught_up());
  EXPECT_EQ(store.leader().node, "");
  auto refused = world.run(store.propose(registration()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::unavailable);
  EXPECT_NE(refused.error().text().find("no leader of the metadata is known"), std::string::npos);
  EXPECT_FALSE(world.run(store.barrier(std::chrono::seconds(1))));

  const auto group_of = [](raft::ReplicaId id) {
    return raft::Configuration::make({{id, "n1", raft::MemberRole::voter}}).value();
  };
  auto strange = world.run(store.found(group_of(raft::ReplicaId(5))));
  ASSERT_FALSE(strange);
  EXPECT_EQ(strange.error().code(), Errc::invalid_argument);
  ASSERT_TRUE(world.run(store.found(group_of(store.replica()))));
  ASSERT_TRUE(world.run(store.propose(registration())));
  EXPECT_FALSE(store.empty());
  auto twice = world.run(store.found(group_of(store.replica())));
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code(), Errc::exists);
  world.run(store.close());
  // It belongs to its group for ever.
  auto again = world.run(Metastore::open(world.env, kDirectory, options));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again.value()->leader().is_self);
  EXPECT_TRUE(again.value()->view()->members.contains("n1"));
  world.run(again.value()->close());
}

TEST(Metastore, ForwardedProposals_AreServedWhateverTheySay) {
  World world;
  auto store = open(world);
  const auto serve = [&](std::string body) {
    return decode_outcome(world.run(store->serve_forwarded(body, std::chrono::seconds(1))));
  };
  auto done = serve(encode(registration()));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(done.value().result.done());
  EXPECT_EQ(done.value().index, store->view()->applied);
  auto refused = serve(encode(DeleteTopic{"nothing", Incarnation(1)}));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused.value().result.code, ResultCode::not_found);
  const RaftIndex before = store->view()->applied;
  auto nonsense = serve("what?");
  ASSERT_TRUE(nonsense);
  EXPECT_EQ(nonsense.value().result.code, ResultCode::unsupported);
  auto huge = serve(encode(PutSchema{"t", Incarnation(1), 1, std::string(5 << 20, 'x')}));
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code(), Errc::too_large);
  EXPECT_EQ(store->view()->applied, before);
  world.run(store->close());
  auto late = serve(encode(registration()));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::unavailable);
}

TEST(Metastore, FailingDisk_AnswersAtOnceEachTimeAndGoesOnWhenItCan) {
  World world;
  auto store = open(world);
  world.disk.fail_call(sim::FsCall::pwrite, 1, /*persistent=*/true, 28 /* ENOSPC */);
  for (int i = 0; i < 3; ++i) {
    const Nanos asked = world.env.clock.mono();
    auto refused = world.run(store->propose(registration()));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::unavailable) << refused.error().text();
    EXPECT_LT(world.env.clock.mono() - asked, std::chrono::seconds(1));
  }
  EXPECT_NE(store->raft_status().trouble, "");
  world.disk.clear_failures();
  world.solo.sim.run_for(std::chrono::seconds(3));
  EXPECT_EQ(store->raft_status().trouble, "") << "it tries by itself";
  EXPECT_TRUE(store->leader().is_self);
  ASSERT_TRUE(world.run(store->propose(registration())));
  world.run(store->close());
}

TEST(Topics, CreateAlterDelete_GoThroughTheProposer) {
  World world;
  auto store = open(world);
  ASSERT_TRUE(world.run(store->propose(registration())));
  auto created = world.run(create_topic(world.env, *store, spec("orders")));
  ASSERT_TRUE(created) << created.error().text();
  EXPECT_EQ(created.value().created_at_s, world.env.clock.wall_millis().value() / 1000);
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
