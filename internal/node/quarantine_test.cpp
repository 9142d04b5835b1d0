#include "internal/node/quarantine.h"

#include <gtest/gtest.h>

#include "internal/node/node.h"
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
  const std::vector<QuarantinedCopy> expected{{"/d/.moves/orders-4.quarantine", 7},
                                              {"/d/.quarantine/gone@00000000000000aa", 3},
                                              {"/d/topics/orders/p00003.quarantine", 30},
                                              {"/d/topics/orders/p00003.quarantine.2", 5}};
  EXPECT_EQ(found.value(), expected);
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
