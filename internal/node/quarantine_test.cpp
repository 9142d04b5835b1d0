#include "internal/node/quarantine.h"

#include <gtest/gtest.h>

#include "internal/moves/staging.h"
#include "internal/node/node.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

void put(FileSystem& fs, const std::string& path, std::size_t bytes) {
  ASSERT_TRUE(make_directories(fs, parent_path(path)));
  ASSERT_TRUE(replace_file(fs, path, as_bytes(std::string(bytes, 'x'))));
}

TEST(Quarantine, QUA_7_EveryCopyThatIsKeptAside_IsCountedWithItsBytes) {
  sim::Solo solo;
  FileSystem& fs = solo.machine.disk();
  put(fs, "/d/topics/orders/p00003/hwm", 1000);
  put(fs, "/d/topics/orders/p00003.quarantine/hwm", 10);
  put(fs, "/d/topics/orders/p00003.quarantine/00.log", 20);
  put(fs, "/d/topics/orders/p00003.quarantine.2/hwm", 5);
  put(fs, "/d/topics/odd.quarantine/p00001/hwm", 1000);
  put(fs, "/d/.moves/orders-4/0.log", 1000);
  put(fs, "/d/.moves/odd.quarantine-1/0.log", 1000);
  put(fs, "/d/.moves/orders-4.quarantine/0.log", 7);
  put(fs, "/d/.quarantine/gone@00000000000000aa/p00000/hwm", 3);
  const std::vector<Disk> disks{
      {"1", "/d", ""}, {"2", "/absent", "not mounted"}, {"3", "/new", ""}};
  auto found = find_quarantined(fs, disks);
  ASSERT_TRUE(found) << found.error().text();
  const auto copy = [](SetAsideKind kind, std::string topic, std::optional<PartitionId> p,
                       std::string path, std::uint64_t bytes) {
    return SetAsideCopy{kind, std::move(topic), p, "1", std::move(path), bytes, "", UnixMillis(0)};
  };
  const std::vector<SetAsideCopy> expected{
      copy(SetAsideKind::staged, "orders", PartitionId(4), "/d/.moves/orders-4.quarantine", 7),
      copy(SetAsideKind::topic, "gone", {}, "/d/.quarantine/gone@00000000000000aa", 3),
      copy(SetAsideKind::partition, "orders", PartitionId(3), "/d/topics/orders/p00003.quarantine",
           30),
      copy(SetAsideKind::partition, "orders", PartitionId(3),
           "/d/topics/orders/p00003.quarantine.2", 5)};
  EXPECT_EQ(found.value(), expected);
}

// Each of the ways in which a copy is set aside says in it why, and since when that is so.
TEST(Quarantine, EveryCopy_SaysWhyAndSinceWhen) {
  sim::Solo solo;
  FileSystem& fs = solo.machine.disk();
  const Disk disk{"1", "/d", ""};
  put(fs, "/d/topics/orders/p00003/hwm", 10);
  put(fs, "/d/topics/gone/p00000/hwm", 10);
  put(fs, "/d/.moves/bills-2/0.log", 10);
  ASSERT_TRUE(make_directories(fs, "/d/.quarantine"));
  const UnixMillis before = solo.env().clock.wall_millis();
  ASSERT_TRUE(set_aside_partition(fs, disk, {"orders", PartitionId(3)}, "the owner has less"));
  ASSERT_TRUE(set_aside_topic(fs, disk, "gone"));
  ASSERT_TRUE(moves::set_aside_staging(fs, "/d/.moves/bills-2"));
  auto found = find_quarantined(fs, {disk});
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_EQ(found.value().size(), 3u);
  for (const SetAsideCopy& copy : found.value()) {
    EXPECT_FALSE(copy.why.empty()) << copy.path;
    EXPECT_EQ(copy.why.find('\n'), std::string::npos) << copy.path;
    EXPECT_GE(copy.since, before) << copy.path;
  }
  EXPECT_EQ(found.value()[2].why, "the owner has less");
}

// A disk on which nothing can be written any more keeps nobody from setting a copy aside.
TEST(Quarantine, WithoutRoomForItsReason_ACopyIsSetAsideAllTheSame) {
  sim::Solo solo;
  sim::SimFs& fs = solo.machine.disk();
  const Disk disk{"1", "/d", ""};
  put(fs, "/d/topics/orders/p00003/hwm", 10);
  fs.fail_call(sim::FsCall::pwrite, 1);
  const auto to = set_aside_partition(fs, disk, {"orders", PartitionId(3)}, "the owner has less");
  fs.clear_failures();
  ASSERT_TRUE(to) << to.error().text();
  EXPECT_TRUE(exists(fs, join_path(to.value(), "hwm")).value());
  const auto found = find_quarantined(fs, {disk});
  ASSERT_EQ(found.value().size(), 1u);
  EXPECT_EQ(found.value()[0].why, "");
}

TEST(Quarantine, MoreCopiesThanAnAnswerTakes_AreCounted) {
  sim::Solo solo;
  FileSystem& fs = solo.machine.disk();
  for (std::size_t i = 0; i < wire::kSetAsideMax + 3; ++i) {
    ASSERT_TRUE(make_directories(fs, cat("/d/.quarantine/t@", i)));
  }
  const auto listed =
      solo.run([](Env& env) { return list_quarantined(env, {Disk{"1", "/d", ""}}); });
  ASSERT_TRUE(listed) << listed.error().text();
  EXPECT_EQ(listed.value().copies.size(), wire::kSetAsideMax);
  EXPECT_EQ(listed.value().left_out, 3u);
}

TEST(Quarantine, NamesOfCopies_AreToldFromTopicsThatAreCalledSo) {
  for (const char* name : {"p00003.quarantine", "p00003.quarantine.1", "orders-3.quarantine",
                           "a.quarantine-3.quarantine.12"}) {
    EXPECT_TRUE(is_quarantine_name(name)) << name;
  }
  for (const char* name : {"p00003", "orders-3", "a.quarantine-3", ".quarantine",
                           "p00003.quarantined", "topic.incarnation"}) {
    EXPECT_FALSE(is_quarantine_name(name)) << name;
  }
}

Task<void> one_life(Env& env, double* copies, double* bytes) {
  Config config;
  config.storage.data_dir = "/data";
  NodeOptions options;
  options.serve_http = false;
  Node node(env, config, std::move(options));
  auto started = co_await node.start();
  EXPECT_TRUE(started) << started.error().text();
  if (!started) co_return;
  co_await sleep_for(env, std::chrono::seconds(1));
  *copies = node.metrics().gauge("narad_quarantined_copies").value();
  *bytes = node.metrics().gauge("narad_quarantined_bytes").value();
  co_await node.stop();
}

TEST(Quarantine, QUA_8_OBS_6_TheStartNamesEachCopyAndTheMetricsCountThem) {
  sim::Solo solo;
  double copies = -1, bytes = -1;
  const auto live = [&] { solo.run([&](Env& env) { return one_life(env, &copies, &bytes); }); };
  live();
  EXPECT_EQ(solo.machine.log().count(LogLevel::error), 0u);
  EXPECT_EQ(copies, 0);
  put(solo.machine.disk(), "/data/.quarantine/orders@00000000000000aa/p00000/hwm", 12);
  put(solo.machine.disk(), "/data/.quarantine/orders@00000000000000ab/p00000/hwm", 30);
  live();
  EXPECT_EQ(solo.machine.log().count(LogLevel::error), 2u);
  EXPECT_EQ(copies, 2);
  EXPECT_EQ(bytes, 42);
}

}  // namespace
}  // namespace narad::node
