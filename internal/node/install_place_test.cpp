// Putting an arrived copy to its place and taking it off again: what lies there is set aside, and
// another life of the topic is never touched.
#include "internal/node/install_place.h"

#include <gtest/gtest.h>

#include "internal/moves/source_for_test.h"
#include "internal/node/local_broker.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

constexpr PartitionId kP{0};
const TopicPartition kOrders{"orders", kP};
constexpr RaftIndex kMove{900};

// A node "here"; partition orders/0 is "there" and on its way here.
struct World {
  explicit World(Env& env) : env(env) {}
  Env& env;
  std::unique_ptr<DataDir> data;
  std::unique_ptr<metastore::Metastore> store;
  std::unique_ptr<Partitions> partitions;
  std::unique_ptr<CopyPlace> place;
  Topic topic;

  Task<void> propose(metastore::Command command) {
    auto done = co_await store->propose(std::move(command));
    EXPECT_TRUE(done && done.value().done());
  }
  Task<void> open(std::string owner);
  Task<void> create();
  Task<void> remove_and_create_again();
  Task<void> commit(std::string payload);
  Task<void> give_to(std::string node, std::string disk);
  Task<void> stage(RaftIndex move = kMove, std::uint64_t records = 30);
  Task<void> close() {
    co_await partitions->close_all();
    co_await store->close();
  }
  const Assignment& row() const { return *store->view()->assignment("orders", kP); }
  Disk disk() const { return data->disks()[0]; }
  std::string path() const { return partition_path(disk(), kOrders); }
  std::string staged() const {
    return join_path(join_path(disk().path, ".moves"), moves::staging_name(kOrders));
  }
  Result<bool> there(const std::string& p) { return exists(env.fs, p); }
};

Task<void> World::open(std::string owner) {
  DataDirOptions where;
  where.data_dir = "/data";
  where.default_node_id = "here";
  where.holder = "a test";
  auto dir = [this, where] { return DataDir::open(env.fs, env.random, UnixMillis(1), where); };
  auto opened = co_await blocking(env, "data", std::move(dir));
  data = std::move(opened.value());
  metastore::MetastoreOptions options;
  options.node_id = "here";
  auto metastore = co_await metastore::Metastore::open(env, data->metastore_path(), options);
  store = std::move(metastore.value());
  PartitionsOptions how;
  how.node_id = "here";
  partitions = std::make_unique<Partitions>(env, std::move(how), *data, *store);
  place = std::make_unique<CopyPlace>(env, "here", *data, *partitions, *store);
  metastore::Command here =
      metastore::RegisterMember{"here", "h:1", "c:1", "boot", {disk().id}, UnixMillis(1)};
  metastore::Command there =
      metastore::RegisterMember{"there", "h:2", "c:2", "boot", {"d2"}, UnixMillis(1)};
  co_await propose(owner == "here" ? here : there);
  co_await create();
  co_await propose(owner == "here" ? there : here);
}

Task<void> World::create() {
  metastore::TopicSpec spec;
  spec.name = "orders";
  spec.partitions = 1;
  spec.visibility_timeout_ms = 30'000;
  spec.max_in_flight_per_partition = 10;
  spec.max_acked_ahead_per_partition = 10;
  auto created = co_await metastore::create_topic(env, *store, spec);
  EXPECT_TRUE(created);
  topic = created.value();
}

Task<void> World::remove_and_create_again() {
  auto removed = co_await metastore::delete_topic(*store, "orders");
  EXPECT_TRUE(removed);
  co_await create();
}

Task<void> World::commit(std::string payload) {
  auto message = std::make_shared<Message>();
  message->incarnation = topic.incarnation;
  message->topic = "orders";
  message->payload = std::move(payload);
  CommitBatch batch;
  batch.incarnation = topic.incarnation;
  batch.records.push_back({Sequence(0), std::move(message)});
  LocalBroker broker(env, "here", *store, *partitions);
  auto done = co_await broker.commit(kOrders, std::move(batch));
  EXPECT_TRUE(done) << done.error().text();
}

Task<void> World::give_to(std::string node, std::string disk) {
  const std::string owner = row().owner_node;
  metastore::Command target = metastore::SetTarget{
      "orders", topic.incarnation, kP, owner, row().move_id, node, disk, "operator"};
  co_await propose(std::move(target));
  if (row().owner_node == node) co_return;
  metastore::Command arm =
      metastore::ArmFreeze{"orders", topic.incarnation, kP, owner, row().move_id};
  co_await propose(std::move(arm));
  metastore::Command complete = metastore::CompleteMove{"orders",      topic.incarnation, kP, owner,
                                                        row().move_id, row().freeze_epoch};
  co_await propose(std::move(complete));
}

// A finished copy of a source's log.
Task<void> World::stage(RaftIndex move, std::uint64_t records) {
  moves::testing::SourceLog source;
  source.append(records);
  auto work = [&, this]() -> Result<void> {
    moves::StagingOwner owner{kOrders, topic.incarnation, move, "there"};
    NARAD_TRY(auto staging, moves::Staging::open(env.fs, staged(), owner));
    wire::Listing listing = source.listing();
    listing.incarnation = topic.incarnation;
    NARAD_TRY(staging->accept(listing, UnixMillis(5)));
    for (const auto& r : staging->missing(1 << 20)) {
      NARAD_TRY(auto bytes, source.chunk(r.base, r.from, r.bytes));
      NARAD_TRY(staging->append(r, bytes));
    }
    moves::Staging::FinishPlan plan;
    plan.self = "here";
    plan.epoch = 1;
    NARAD_TRY(staging->finish(plan));
    return ok();
  };
  auto staged = co_await blocking(env, "stage", std::move(work));
  EXPECT_TRUE(staged) << staged.error().text();
}

using Check = Task<void> (*)(World&);
void run_owned_by(const char* owner, Check check) {
  sim::Solo solo;
  solo.run([&](Env& env) -> Task<void> {
    struct Run {
      static Task<void> run(Env& env, std::string owner, Check check) {
        World world(env);
        co_await world.open(owner);
        co_await check(world);
        co_await world.close();
      }
    };
    return Run::run(env, owner, check);
  });
}

Task<void> installs(World& w) {
  co_await w.stage();
  auto prepared = co_await w.place->prepare(kOrders, w.topic.incarnation, w.disk().id);
  EXPECT_TRUE(prepared) << prepared.error().text();
  EXPECT_EQ(read_topic_incarnation(w.env.fs, topic_path(w.disk(), "orders")).value(),
            w.topic.incarnation);
  auto put = co_await w.place->install(kOrders, w.topic.incarnation, w.disk().id, w.staged());
  EXPECT_TRUE(put) << put.error().text();
  EXPECT_EQ(put.value(), "");
  EXPECT_TRUE(w.there(w.path()).value());
  EXPECT_FALSE(w.there(w.staged()).value());
  EXPECT_EQ(moves::read_marker(w.env.fs, w.path()).value()->move_id, kMove);
  // And off again, twice.
  for (int i = 0; i < 2; ++i) {
    auto off =
        co_await w.place->take_off(kOrders, w.topic.incarnation, w.disk().id, w.staged(), kMove);
    EXPECT_TRUE(off) << off.error().text();
    EXPECT_FALSE(w.there(w.path()).value());
    EXPECT_TRUE(w.there(w.staged()).value());
  }
}
TEST(CopyPlace, INS_1_FLP_15_MRK_1_CopyIsRenamedToItsPlace_AndBack) {
  run_owned_by("there", installs);
}

Task<void> sets_aside(World& w) {
  co_await w.commit("kept");
  const std::string there = "d2";
  co_await w.give_to("there", there);
  co_await w.stage();
  EXPECT_TRUE(w.there(w.path()).value());
  auto put = co_await w.place->install(kOrders, w.topic.incarnation, w.disk().id, w.staged());
  EXPECT_TRUE(put) << put.error().text();
  EXPECT_EQ(put.value(), w.path() + ".quarantine");
  const auto aside = moves::inspect_staging(w.env.fs, put.value()).value();
  EXPECT_TRUE(aside.holds_records);
  EXPECT_EQ(aside.end, Offset(1));
  EXPECT_EQ(moves::inspect_staging(w.env.fs, w.path()).value().end, Offset(30));
  // It is no partition for anybody who looks for some.
  EXPECT_EQ(list_partition_directories(w.env.fs, w.disk(), "orders").value(),
            std::vector<PartitionId>{kP});
}
TEST(CopyPlace, INS_2_INS_3_QUA_3_CopyOfAnEarlierOwnership_IsSetAside) {
  run_owned_by("here", sets_aside);
}

Task<void> replaces_empty(World& w) {
  co_await w.stage(RaftIndex(1), 0);  // a log without a record
  auto prepared = co_await w.place->prepare(kOrders, w.topic.incarnation, w.disk().id);
  auto first = co_await w.place->install(kOrders, w.topic.incarnation, w.disk().id, w.staged());
  EXPECT_TRUE(first);
  co_await w.stage();
  auto put = co_await w.place->install(kOrders, w.topic.incarnation, w.disk().id, w.staged());
  EXPECT_TRUE(put) << put.error().text();
  EXPECT_EQ(put.value(), "");
  EXPECT_EQ(moves::read_marker(w.env.fs, w.path()).value()->move_id, kMove);
  EXPECT_FALSE(w.there(w.path() + ".quarantine").value());
}
TEST(CopyPlace, INS_2_EmptyCopyAtThePath_IsReplaced) { run_owned_by("there", replaces_empty); }

// The log of the earlier ownership, and its consumers, are open when the copy comes.
Task<void> closes(World& w) {
  co_await w.commit("one");
  {
    auto pin = co_await w.partitions->open(kOrders, w.topic.incarnation, OpenFor::read);
    EXPECT_TRUE(pin);
  }
  EXPECT_EQ(w.partitions->open_now().size(), 1u);
  const std::string there = "d2";
  co_await w.give_to("there", there);
  co_await w.stage();
  auto put = co_await w.place->install(kOrders, w.topic.incarnation, w.disk().id, w.staged());
  EXPECT_TRUE(put);
  EXPECT_TRUE(w.partitions->open_now().empty());
  const std::string here = w.disk().id;
  co_await w.give_to("here", here);
  auto pin = co_await w.partitions->open(kOrders, w.topic.incarnation, OpenFor::read);
  EXPECT_TRUE(pin) << pin.error().text();
  EXPECT_EQ(pin.value()->log->hwm(), Offset(30)) << "the copy, not what was open";
  EXPECT_EQ(pin.value()->delivery->stats().frontier, Offset(0)) << "nor its consumers";
}
TEST(CopyPlace, INS_4_CON_8_Trap11_OpenLogAndConsumerState_AreClosedFirst) {
  run_owned_by("here", closes);
}

Task<void> another_life(World& w) {
  co_await w.stage();
  const Incarnation old = w.topic.incarnation;
  auto prepared = co_await w.place->prepare(kOrders, old, w.disk().id);
  EXPECT_TRUE(prepared);
  co_await w.remove_and_create_again();
  for (int i = 0; i < 2; ++i) {
    auto again = co_await w.place->prepare(kOrders, old, w.disk().id);
    EXPECT_FALSE(again);
    EXPECT_EQ(again.error().code(), Errc::conflict);
    auto put = co_await w.place->install(kOrders, old, w.disk().id, w.staged());
    EXPECT_FALSE(put);
    EXPECT_EQ(put.error().code(), Errc::conflict);
    EXPECT_TRUE(w.there(w.staged()).value());
    // The second time the directory is the successor's.
    if (i == 0) {
      auto fresh = co_await w.place->prepare(kOrders, w.topic.incarnation, w.disk().id);
      EXPECT_TRUE(fresh) << fresh.error().text();
    }
    EXPECT_EQ(read_topic_incarnation(w.env.fs, topic_path(w.disk(), "orders")).value(),
              w.topic.incarnation);
  }
  // The successor's move does not take over what was staged for another life.
  auto put = co_await w.place->install(kOrders, w.topic.incarnation, w.disk().id, w.staged() + "x");
  EXPECT_FALSE(put);
}
TEST(CopyPlace, INC_1_INC_2_INC_3_AnotherLifeOfTheTopic_IsNeitherSetAsideNorInstalledInto) {
  run_owned_by("there", another_life);
}

Task<void> successor(World& w) {
  co_await w.stage();
  const Incarnation old = w.topic.incarnation;
  auto prepared = co_await w.place->prepare(kOrders, old, w.disk().id);
  auto put = co_await w.place->install(kOrders, old, w.disk().id, w.staged());
  EXPECT_TRUE(put);
  co_await w.remove_and_create_again();
  const std::string here = w.disk().id;
  co_await w.give_to("here", here);
  co_await w.commit("of the successor");
  auto off = co_await w.place->take_off(kOrders, old, w.disk().id, w.staged(), kMove);
  EXPECT_FALSE(off);
  EXPECT_EQ(off.error().code(), Errc::conflict);
  auto pin = co_await w.partitions->open(kOrders, w.topic.incarnation, OpenFor::read);
  EXPECT_TRUE(pin);
  EXPECT_EQ(pin.value()->log->hwm(), Offset(1));
}
TEST(CopyPlace, INC_6_INS_5_INS_8_RecordsOfASuccessor_AreNotTouchedByTheRenameBack) {
  run_owned_by("there", successor);
}

Task<void> other_copy(World& w) {
  co_await w.stage();
  auto prepared = co_await w.place->prepare(kOrders, w.topic.incarnation, w.disk().id);
  auto put = co_await w.place->install(kOrders, w.topic.incarnation, w.disk().id, w.staged());
  EXPECT_TRUE(put);
  auto off = co_await w.place->take_off(kOrders, w.topic.incarnation, w.disk().id, w.staged(),
                                        RaftIndex(901));
  EXPECT_FALSE(off);
  EXPECT_EQ(off.error().code(), Errc::conflict);
  EXPECT_TRUE(w.there(w.path()).value());
  const std::string here = w.disk().id;
  co_await w.give_to("here", here);
  auto owned =
      co_await w.place->take_off(kOrders, w.topic.incarnation, w.disk().id, w.staged(), kMove);
  EXPECT_FALSE(owned) << "it is this node's own by now";
  EXPECT_TRUE(w.there(w.path()).value());
}
TEST(CopyPlace, INS_6_OnlyTheVeryDirectoryOfTheInstall_IsRenamedBack) {
  run_owned_by("there", other_copy);
}

Task<void> no_disk(World& w) {
  EXPECT_FALSE(w.place->disk("ffffffffffffffff").usable);
  EXPECT_TRUE(w.place->disk(w.disk().id).usable);
  auto prepared = co_await w.place->prepare(kOrders, w.topic.incarnation, "ffffffffffffffff");
  EXPECT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code(), Errc::unavailable);
}
TEST(CopyPlace, DiskThatIsNotThere_IsSaidSo) { run_owned_by("there", no_disk); }

}  // namespace
}  // namespace narad::node
