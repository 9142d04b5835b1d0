// What is left of a partition on a node that owns it no more: found, reclaimed, set aside, and let
// be wherever something has changed meanwhile.
#include "internal/node/stale_copies.h"

#include <gtest/gtest.h>

#include "internal/delivery/consumer_files.h"
#include "internal/moves/local_copy.h"
#include "internal/node/local_broker.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

constexpr PartitionId kP{0};

// A node "here"; partition orders/0 was written here and then moved to member "there".
struct World {
  explicit World(Env& env) : env(env) {}
  Env& env;
  std::unique_ptr<DataDir> data;
  std::unique_ptr<metastore::Metastore> store;
  std::unique_ptr<Partitions> partitions;
  std::unique_ptr<StaleCopies> copies;
  Topic topic;

  Task<void> propose(metastore::Command command) {
    auto done = co_await store->propose(std::move(command));
    EXPECT_TRUE(done && done.value().done());
  }
  Task<void> open();
  Task<void> create();
  Task<void> commit(PartitionId partition = kP);
  Task<void> ack(std::uint32_t count);
  Task<void> set_target(std::string node);
  Task<void> flip();
  Task<void> close() {
    co_await partitions->close_all();
    co_await store->close();
  }
  const Assignment& row() const { return *store->view()->assignment("orders", kP); }
  Disk disk() const { return data->disks()[0]; }
  std::string directory() const { return partition_path(disk(), {"orders", kP}); }
};

Task<void> World::open() {
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
  metastore::Command here =
      metastore::RegisterMember{"here", "h:1", "c:1", "boot", {disk().id}, UnixMillis(1)};
  co_await propose(std::move(here));
  PartitionsOptions how;
  how.node_id = "here";
  partitions = std::make_unique<Partitions>(env, std::move(how), *data, *store);
  copies =
      std::make_unique<StaleCopies>(env, "here", *data, *partitions, *store, [] { return true; });
  co_await create();
  metastore::Command there =
      metastore::RegisterMember{"there", "h:2", "c:2", "boot", {"d2"}, UnixMillis(1)};
  co_await propose(std::move(there));
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

Task<void> World::commit(PartitionId partition) {
  auto message = std::make_shared<Message>();
  message->incarnation = topic.incarnation;
  message->topic = "orders";
  message->payload = "x";
  CommitBatch batch;
  batch.incarnation = topic.incarnation;
  batch.records.push_back({Sequence(0), std::move(message)});
  LocalBroker broker(env, "here", *store, *partitions);
  auto done = co_await broker.commit({"orders", partition}, std::move(batch));
  EXPECT_TRUE(done) << done.error().text();
}

Task<void> World::ack(std::uint32_t count) {
  LocalBroker broker(env, "here", *store, *partitions);
  auto leased = co_await broker.consume("orders", topic.incarnation, kP, count);
  EXPECT_TRUE(leased) << leased.error().text();
  std::vector<ReceiptHandle> handles;
  for (const auto& message : leased.value()) handles.push_back(message.handle);
  EXPECT_EQ(handles.size(), count);
  auto settled =
      co_await broker.settle("orders", topic.incarnation, std::move(handles), SettleMode::ack);
  for (const auto& outcome : settled) EXPECT_TRUE(outcome);
}

Task<void> World::set_target(std::string node) {
  metastore::Command entry = metastore::SetTarget{
      "orders", topic.incarnation, kP, row().owner_node, row().move_id, node, "d2", "operator"};
  co_await propose(std::move(entry));
}

Task<void> World::flip() {
  co_await set_target("there");
  metastore::Command arm =
      metastore::ArmFreeze{"orders", topic.incarnation, kP, "here", row().move_id};
  co_await propose(std::move(arm));
  metastore::Command complete = metastore::CompleteMove{
      "orders", topic.incarnation, kP, "here", row().move_id, row().freeze_epoch};
  co_await propose(std::move(complete));
  EXPECT_EQ(row().owner_node, "there");
}

template <class Body>
Task<void> with_world(Env& env, Body body) {
  World world(env);
  co_await world.open();
  co_await body(world);
  co_await world.close();
}
template <class Body>
void in_world(Body body) {
  sim::Solo solo;
  solo.run([body](Env& env) { return with_world(env, body); });
}

Task<void> find(World& w) {
  co_await w.commit();
  auto none = co_await w.copies->stale_copies();
  EXPECT_TRUE(none.value().empty()) << "it is the owner";
  co_await w.flip();
  auto found = co_await w.copies->stale_copies();
  EXPECT_EQ(found.value().size(), 1u);
  EXPECT_EQ(found.value().front().owner, "there");
  EXPECT_EQ(found.value().front().directory, w.directory());
  auto seen = co_await w.copies->inspect(found.value().front());
  EXPECT_EQ(seen.value().end, Offset(1));
}
TEST(StaleCopies, CopyOfAPartitionThatMoved_IsFoundAndRead) { in_world(find); }

// It is open with a consumer state when the reclaim comes.
Task<void> reclaim(World& w) {
  co_await w.commit();
  co_await w.flip();
  EXPECT_EQ(w.partitions->open_now().size(), 1u);
  auto found = co_await w.copies->stale_copies();
  auto copy = found.value().front();
  auto seen = co_await w.copies->inspect(copy);
  auto gone = co_await w.copies->reclaim(copy, seen.value());
  EXPECT_TRUE(gone) << gone.error().text();
  EXPECT_TRUE(w.partitions->open_now().empty());
  EXPECT_FALSE(exists(w.env.fs, w.directory()).value());
  EXPECT_TRUE(w.env.fs.list(join_path(w.disk().path, ".deleted")).value().empty());
  auto none = co_await w.copies->stale_copies();
  EXPECT_TRUE(none.value().empty());
}
TEST(StaleCopies, SWP_10_SWP_11_ReclaimClosesTheLogFirst) { in_world(reclaim); }

Task<void> set_aside(World& w) {
  co_await w.commit();
  co_await w.flip();
  auto found = co_await w.copies->stale_copies();
  auto copy = found.value().front();
  auto first = co_await w.copies->set_aside(copy, "the owner has less");
  EXPECT_EQ(first.value(), cat(w.directory(), ".quarantine"));
  EXPECT_TRUE(exists(w.env.fs, join_path(first.value(), "hwm")).value());
  auto none = co_await w.copies->stale_copies();
  EXPECT_TRUE(none.value().empty()) << "a quarantined copy is no partition";
  // Another one at the same place: neither replaces the other.
  EXPECT_TRUE(make_directories(w.env.fs, w.directory()));
  auto second = co_await w.copies->set_aside(copy, "the owner has less");
  EXPECT_EQ(second.value(), cat(w.directory(), ".quarantine.1"));
  EXPECT_TRUE(exists(w.env.fs, first.value()).value());
}
TEST(StaleCopies, QUA_1_QUA_2_SetAsideKeepsEveryCopyUnderItsOwnName) { in_world(set_aside); }

// This node was called dead and went on; "there" was promoted at the first record.
Task<void> cut_off(World& w) {
  for (int i = 0; i < 3; ++i) co_await w.commit();
  co_await w.ack(2);
  co_await w.set_target("there");
  const auto member = [&w] { return *w.store->view()->members.find("here"); };
  metastore::Command dead = metastore::MarkDead{"here", member().stamp};
  co_await w.propose(std::move(dead));
  metastore::Command promote =
      metastore::ForcePromote{"orders",        w.topic.incarnation, kP,           "here",
                              w.row().move_id, member().dead_mark,  "source dead"};
  co_await w.propose(std::move(promote));
  EXPECT_EQ(w.row().owner_node, "there");
  auto found = co_await w.copies->stale_copies();
  auto copy = found.value().front();
  auto seen = co_await w.copies->inspect(copy);
  EXPECT_EQ(seen.value().end, Offset(3));
  wire::Listing owner;
  owner.incarnation = w.topic.incarnation;
  owner.log = seen.value().log.value_or(LogId(0));
  owner.hwm = Offset(9);
  for (const auto& s : seen.value().segments) {
    owner.segments.push_back({s.base, s.bytes, s.sealed, s.mtime});
  }
  owner.marker.emplace();
  owner.marker->source = "here";
  owner.marker->incarnation = w.topic.incarnation;
  owner.marker->promoted_hwm = Offset(1);
  owner.marker->force_promoted = true;
  owner.marker->durable_at = UnixMillis(1);
  moves::SweepTerms terms;
  terms.self = "here";
  EXPECT_EQ(moves::judge_stale_copy(seen.value(), owner, terms).verdict,
            moves::SweepVerdict::quarantine);
  auto aside = co_await w.copies->set_aside(copy, "the owner has less");
  EXPECT_TRUE(aside) << aside.error().text();
  EXPECT_EQ(moves::read_local_copy(w.env.fs, aside.value()).value().end, Offset(3));
  auto acks = delivery::ConsumerFiles::open(w.env.fs, aside.value(), w.topic.incarnation.value(),
                                            Offset(3));
  EXPECT_EQ(acks.value().positions.frontier, Offset(2));
}
TEST(StaleCopies, SRC_15_SRC_16_CopyOfACutOffSource_IsKeptWithWhatItTookAndItsAcks) {
  in_world(cut_off);
}

Task<void> changed_copy(World& w) {
  co_await w.commit();
  co_await w.flip();
  auto found = co_await w.copies->stale_copies();
  auto copy = found.value().front();
  auto seen = co_await w.copies->inspect(copy);
  moves::LocalCopy shorter = seen.value();
  shorter.end = Offset(0);
  auto gone = co_await w.copies->reclaim(copy, shorter);
  EXPECT_EQ(gone.error().code(), Errc::conflict);
  EXPECT_TRUE(exists(w.env.fs, w.directory()).value());
}
TEST(StaleCopies, CopyThatIsNotWhatWasJudged_Stays) { in_world(changed_copy); }

// The topic was deleted and created again after the copy was found; this node serves its successor.
Task<void> recreated(World& w) {
  co_await w.commit();
  co_await w.flip();
  auto found = co_await w.copies->stale_copies();
  auto copy = found.value().front();
  auto seen = co_await w.copies->inspect(copy);
  const Incarnation old = w.topic.incarnation;
  auto deleted = co_await metastore::delete_topic(*w.store, "orders");
  EXPECT_TRUE(deleted);
  auto removed = co_await w.partitions->remove_topic("orders", old);
  EXPECT_TRUE(removed);
  co_await w.create();
  if (w.row().owner_node == "here") co_await w.commit();
  auto gone = co_await w.copies->reclaim(copy, seen.value());
  EXPECT_EQ(gone.error().code(), Errc::conflict);
  auto aside = co_await w.copies->set_aside(copy, "the owner has less");
  EXPECT_EQ(aside.error().code(), Errc::conflict);
}
TEST(StaleCopies, SWP_12_SWP_13_RecreatedTopicRefusesTheReclaim) { in_world(recreated); }

Task<void> other_life(World& w) {
  co_await w.commit();
  co_await w.flip();
  auto found = co_await w.copies->stale_copies();
  auto copy = found.value().front();
  // The directory says another life than the metastore.
  const std::string file = join_path(topic_path(w.disk(), "orders"), "topic.incarnation");
  EXPECT_TRUE(replace_file(w.env.fs, file, as_bytes(std::string("00000000000000aa\n"))));
  auto none = co_await w.copies->stale_copies();
  EXPECT_TRUE(none.value().empty());
  auto aside = co_await w.copies->set_aside(copy, "the owner has less");
  EXPECT_EQ(aside.error().code(), Errc::conflict);
  EXPECT_TRUE(exists(w.env.fs, w.directory()).value());
}
TEST(StaleCopies, SWP_14_SWP_15_AnotherLifesDirectoryIsNotTouched) { in_world(other_life); }

// It is on its way back.
Task<void> coming_back(World& w) {
  co_await w.commit();
  co_await w.flip();
  auto found = co_await w.copies->stale_copies();
  auto copy = found.value().front();
  metastore::Command back = metastore::SetTarget{
      "orders", w.topic.incarnation, kP, "there", w.row().move_id, "here", w.disk().id, "operator"};
  co_await w.propose(std::move(back));
  auto none = co_await w.copies->stale_copies();
  EXPECT_TRUE(none.value().empty());
  auto aside = co_await w.copies->set_aside(copy, "the owner has less");
  EXPECT_EQ(aside.error().code(), Errc::conflict);
  EXPECT_TRUE(exists(w.env.fs, w.directory()).value());
}
TEST(StaleCopies, SWP_16_TargetBackHereIsSkipped) { in_world(coming_back); }

// A first record made the directory, its MarkUsed came to nothing, and the partition was given
// away.
Task<void> never_used(World& w) {
  EXPECT_TRUE(make_topic_directory(w.env.fs, w.disk(), "orders", w.topic.incarnation));
  EXPECT_TRUE(make_directories(w.env.fs, w.directory()));
  co_await w.set_target("there");
  EXPECT_EQ(w.row().owner_node, "there") << "given at once: there is nothing to copy";
  auto found = co_await w.copies->stale_copies();
  EXPECT_EQ(found.value().size(), 1u);
  auto copy = found.value().front();
  EXPECT_FALSE(copy.used);
  auto seen = co_await w.copies->inspect(copy);
  auto other = copy;
  other.used = true;
  auto refused = co_await w.copies->reclaim(other, seen.value());
  EXPECT_EQ(refused.error().code(), Errc::conflict) << "judged by another state";
  auto gone = co_await w.copies->reclaim(copy, seen.value());
  EXPECT_TRUE(gone) << gone.error().text();
  EXPECT_FALSE(exists(w.env.fs, w.directory()).value());
}
TEST(StaleCopies, DirectoryOfAPartitionNeverUsed_GoesWithoutAskingTheOwner) {
  in_world(never_used);
}

// ---- whole topics

Task<void> unknown_topics(World& w) {
  const Disk disk = w.disk();
  FileSystem& fs = w.env.fs;
  const auto is_there = [&](const char* topic) {
    return exists(fs, topic_path(disk, topic)).value();
  };
  EXPECT_TRUE(make_topic_directory(fs, disk, "orders", w.topic.incarnation));
  EXPECT_TRUE(make_topic_directory(fs, disk, "younger", Incarnation(0xaa)));
  EXPECT_TRUE(make_directories(fs, topic_path(disk, "bare")));
  auto shown = co_await w.partitions->sweep_directory(disk, "orders");
  EXPECT_EQ(shown.value(), "");
  EXPECT_TRUE(is_there("orders"));
  auto deleted = co_await metastore::delete_topic(*w.store, "orders");
  EXPECT_TRUE(deleted);
  auto gone = co_await w.partitions->sweep_directory(disk, "orders");
  EXPECT_EQ(gone.value(), "");
  EXPECT_FALSE(is_there("orders"));
  // That the metastore does not show them proves nothing.
  auto younger = co_await w.partitions->sweep_directory(disk, "younger");
  EXPECT_EQ(younger.value(), "/data/.quarantine/younger@00000000000000aa");
  EXPECT_TRUE(exists(fs, join_path(younger.value(), "topic.incarnation")).value());
  auto bare = co_await w.partitions->sweep_directory(disk, "bare");
  EXPECT_EQ(bare.value(), "/data/.quarantine/bare@unknown");
  EXPECT_TRUE(exists(fs, bare.value()).value());
}
TEST(TopicDirectories, SWP_18_OnlyTheDeletionOfThatLife_RemovesOne) { in_world(unknown_topics); }

// Deleted, created again and served here before the sweep comes to it.
Task<void> served_again(World& w) {
  const Disk disk = w.disk();
  const Incarnation old = w.topic.incarnation;
  EXPECT_TRUE(make_topic_directory(w.env.fs, disk, "orders", old));
  metastore::Command drain = metastore::SetDraining{"there", true};  // so that it is created here
  co_await w.propose(std::move(drain));
  auto deleted = co_await metastore::delete_topic(*w.store, "orders");
  EXPECT_TRUE(deleted);
  co_await w.create();
  EXPECT_EQ(w.row().owner_node, "here");
  co_await w.commit();
  auto swept = co_await w.partitions->sweep_directory(disk, "orders");
  EXPECT_EQ(swept.value(), "");
  auto removed = co_await w.partitions->remove_topic("orders", old);
  EXPECT_TRUE(removed);
  EXPECT_EQ(read_topic_incarnation(w.env.fs, topic_path(disk, "orders")).value(),
            w.topic.incarnation);
  EXPECT_EQ(w.partitions->open_now().size(), 1u);
  EXPECT_TRUE(exists(w.env.fs, w.directory()).value());
}
TEST(TopicDirectories, SWP_19_TopicThatIsServedAgain_Survives) { in_world(served_again); }

// The successor has fewer partitions, and is used before the deletion was carried out: one of the
// former life is still open, under a directory that the successor needs.
Task<void> used_before_the_purge(World& w) {
  metastore::Command drain = metastore::SetDraining{"there", true};
  co_await w.propose(std::move(drain));
  metastore::TopicPatch wider;
  wider.partitions = 2;
  auto altered = co_await metastore::alter_topic(*w.store, "orders", std::move(wider));
  EXPECT_TRUE(altered);
  co_await w.commit(PartitionId(1));
  auto deleted = co_await metastore::delete_topic(*w.store, "orders");
  EXPECT_TRUE(deleted);
  co_await w.create();
  co_await w.commit();
  const auto open = w.partitions->open_now();
  EXPECT_EQ(open.size(), 1u);
  EXPECT_EQ(open.front()->incarnation, w.topic.incarnation);
  EXPECT_EQ(list_partition_directories(w.env.fs, w.disk(), "orders").value(),
            std::vector<PartitionId>{kP});
  EXPECT_TRUE(w.env.fs.list("/data/.quarantine").value().empty()) << "its deletion is known";
}
TEST(TopicDirectories, SuccessorUsedBeforeThePurge_FindsNothingOfTheFormerLifeOpen) {
  in_world(used_before_the_purge);
}

// The metastore does not know how the life that lies there ended.
Task<void> unknown_life(World& w) {
  EXPECT_TRUE(make_topic_directory(w.env.fs, w.disk(), "orders", Incarnation(0xaa)));
  co_await w.commit();
  EXPECT_TRUE(exists(w.env.fs, "/data/.quarantine/orders@00000000000000aa").value());
}
TEST(TopicDirectories, LifeThatNobodyDeleted_IsSetAsideWhenAnotherIsUsed) {
  in_world(unknown_life);
}

}  // namespace
}  // namespace narad::node
