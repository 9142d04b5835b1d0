// Topic directories that do not say which life of the topic they are of: only a start judges them.
#include <gtest/gtest.h>

#include "internal/node/cluster_for_test.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

constexpr int kUnmarked = 40;

void put_unmarked(FileSystem& fs, int from, int to) {
  for (int i = from; i < to; ++i) {
    const std::string partition = cat("/data/topics/lost-", i, "/p00000");
    ASSERT_TRUE(make_directories(fs, partition));
    ASSERT_TRUE(replace_file(fs, join_path(partition, "hwm"), as_bytes("x")));
  }
}

double orphans(Cluster& c) {
  return c.running(1).node.metrics().gauge("narad_orphan_topic_dirs").value();
}

TEST(OrphanDirectories, SWP_20_OBS_6_AreCountedAndLeftToTheNextStartThatAnswersOnlyBehindIt) {
  Cluster c(5);
  for (int i = 1; i <= 3; ++i) c.boot(i);
  ASSERT_TRUE(c.sim.run_until([&] { return c.all_ready(); }, 2min));
  sim::SimFs& disk = c.machine(1).disk();
  const auto names_in = [&](const char* directory) { return disk.list(directory).value().size(); };
  c.sim.run_for(70s);
  EXPECT_EQ(orphans(c), 0);
  ASSERT_NO_FATAL_FAILURE(put_unmarked(disk, 0, 3));
  c.sim.run_for(70s);  // two sweeps of moves
  EXPECT_EQ(orphans(c), 3);
  EXPECT_EQ(names_in("/data/topics"), 3u);

  // So many on a slow disk that a node which answered meanwhile would be caught.
  ASSERT_NO_FATAL_FAILURE(put_unmarked(disk, 3, kUnmarked));
  c.machine(1).kill(sim::Machine::Kill::process_exit);
  disk.faults.call_latency = 20ms;
  c.boot(1);
  c.sim.run_for(100ms);
  EXPECT_FALSE(c.ready(1));
  ASSERT_TRUE(c.sim.run_until([&] { return c.ready(1); }, 2min));
  EXPECT_EQ(names_in("/data/topics"), 0u);
  EXPECT_EQ(names_in("/data/.quarantine"), static_cast<std::size_t>(kUnmarked));
  c.sim.run_for(70s);
  EXPECT_EQ(orphans(c), 0);
}

}  // namespace
}  // namespace narad::node
