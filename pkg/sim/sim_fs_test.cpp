#include "pkg/sim/sim_fs.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace narad::sim {
namespace {

void put(SimFs& fs, const std::string& path, std::string_view text, bool sync = true) {
  auto file = fs.open(path, OpenMode::create);
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_TRUE(write_all(*file.value(), as_bytes(text), 0));
  if (sync) {
    ASSERT_TRUE(file.value()->sync());
  }
}

std::string seen(const SimFs& fs, const std::string& path) {
  auto bytes = fs.seen_bytes(path);
  return bytes ? to_text(*bytes) : "(absent)";
}

TEST(SimFs, SyncedFileWithSyncedName_PowerCycle_IsThere) {
  SimFs fs(1);
  put(fs, "/a", "hello");
  ASSERT_TRUE(fs.sync_dir("/"));
  fs.power_cycle();
  EXPECT_EQ(seen(fs, "/a"), "hello");
}

}  // namespace
}  // namespace narad::sim
