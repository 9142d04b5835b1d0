#include "internal/node/data_dir.h"

#include <gtest/gtest.h>

#include "internal/node/trusted_clock.h"
#include "pkg/sim/sim_fs.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

class DataDirTest : public testing::Test {
 protected:
  DataDirOptions options(std::string node_id = "") {
    DataDirOptions o;
    o.data_dir = "/data";
    o.node_id = std::move(node_id);
    o.default_node_id = "host";
    o.holder = "pid 1 on host";
    return o;
  }
  Result<std::unique_ptr<DataDir>> open(const DataDirOptions& o) {
    return DataDir::open(fs, random, UnixMillis(1000), o);
  }
  void write(const std::string& path, std::string_view text) {
    ASSERT_TRUE(replace_file(fs, path, as_bytes(text)));
  }
  sim::SimFs fs{1};
  sim::Rng random{1};
};

TEST_F(DataDirTest, FirstStart_MakesAnIdentityThatStays) {
  Identity first;
  {
    auto dir = open(options());
    ASSERT_TRUE(dir) << dir.error().text();
    first = dir.value()->identity();
  }
  EXPECT_EQ(first.node_id, "host");
  EXPECT_EQ(first.cluster_id, 0u) << "it belongs to no cluster before it founds or joins one";
  fs.freeze();
  fs.power_cycle();
  auto again = open(options());
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again.value()->identity().node_id, "host");
  EXPECT_EQ(again.value()->identity().cluster_id, first.cluster_id);
  EXPECT_EQ(again.value()->disks()[0].id, first.disk_ids[0]);
}

TEST_F(DataDirTest, AdoptedCluster_StaysAndIsNeverAnother) {
  const std::vector<raft::Member> founding{
      {raft::ReplicaId(7), "host", raft::MemberRole::voter},
      {raft::ReplicaId(9), "other", raft::MemberRole::learner}};
  {
    auto dir = open(options());
    ASSERT_TRUE(dir);
    const Identity none = dir.value()->identity();
    ASSERT_EQ(DataDir::adopt_cluster(fs, "/data", none, {0, false, founding}).error().code(),
              Errc::invalid_argument);
    auto adopted = DataDir::adopt_cluster(fs, "/data", none, {0xc1, false, founding});
    ASSERT_TRUE(adopted) << adopted.error().text();
    EXPECT_EQ(adopted.value().cluster_id, 0xc1u);
    EXPECT_FALSE(adopted.value().joined);
  }
  fs.freeze();
  fs.power_cycle();
  auto again = open(options());
  ASSERT_TRUE(again) << again.error().text();
  const Identity identity = again.value()->identity();
  EXPECT_EQ(identity.cluster_id, 0xc1u);
  EXPECT_EQ(identity.founding, founding);
  auto other = DataDir::adopt_cluster(fs, "/data", identity, {0xc2, true, {}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Errc::conflict);
  EXPECT_TRUE(DataDir::adopt_cluster(fs, "/data", identity, {0xc1, false, founding}));
}

TEST_F(DataDirTest, JoinedCluster_IsRemembered) {
  {
    auto dir = open(options());
    ASSERT_TRUE(dir);
    ASSERT_TRUE(DataDir::adopt_cluster(fs, "/data", dir.value()->identity(), {0xc1, true, {}}));
  }
  auto again = open(options());
  ASSERT_TRUE(again);
  EXPECT_TRUE(again.value()->identity().joined);
  EXPECT_TRUE(again.value()->identity().founding.empty());
}

TEST_F(DataDirTest, CutWhileAdopting_LeavesItOrNone) {
  for (std::uint64_t call = 1;; ++call) {
    sim::SimFs disk(call);
    sim::Rng numbers(call);
    const auto open_on = [&] { return DataDir::open(disk, numbers, UnixMillis(1), options()); };
    Identity none;
    {
      auto dir = open_on();
      ASSERT_TRUE(dir);
      none = dir.value()->identity();
      bool cut = false;
      disk.cut_power_at(call, [&] { cut = true; });
      (void)DataDir::adopt_cluster(disk, "/data", none, {0xc1, false, {}});
      if (!cut) {
        EXPECT_GT(call, 3u);
        return;
      }
    }
    disk.power_cycle();
    auto dir = open_on();
    ASSERT_TRUE(dir) << "call " << call << ": " << dir.error().text();
    const Identity now = dir.value()->identity();
    EXPECT_EQ(now.node_id, none.node_id);
    EXPECT_EQ(now.disk_ids, none.disk_ids);
    EXPECT_TRUE(now.cluster_id == 0 || now.cluster_id == 0xc1) << "call " << call;
  }
}

TEST_F(DataDirTest, OldIdentityFile_KeepsItsCluster) {
  ASSERT_TRUE(open(options("n1")));
  write(
      "/data/node.json",
      R"({"format":1,"node_id":"n1","cluster_id":"00000000000000c1","created_at_ms":1,"disks":[]})");
  ASSERT_TRUE(fs.remove("/data/disk.id"));
  auto dir = open(options("n1"));
  ASSERT_TRUE(dir) << dir.error().text();
  EXPECT_EQ(dir.value()->identity().cluster_id, 0xc1u);
  EXPECT_FALSE(dir.value()->identity().joined);
}

TEST_F(DataDirTest, HeldByAnother_NamesTheHolder) {
  auto first = open(options());
  ASSERT_TRUE(first);
  auto second = open(options());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::unavailable);
  EXPECT_NE(second.error().text().find("in use by pid 1 on host"), std::string::npos);
}

TEST_F(DataDirTest, AnotherNodesDirectory_IsRefused) {
  ASSERT_TRUE(open(options("a")));
  auto other = open(options("b"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Errc::conflict);
  EXPECT_TRUE(open(options("a")));
}

TEST_F(DataDirTest, DamagedIdentity_IsRefusedAndUntouched) {
  ASSERT_TRUE(open(options()));
  for (std::string_view text :
       {"", "{", "[]", "{\"format\":1}", "{\"format\":1,\"node_id\":\"\"}",
        "{\"format\":1,\"node_id\":\"a\",\"cluster_id\":\"xyz\"}",
        R"({"format":1,"node_id":"a","cluster_id":"","joined":1,"disks":[]})",
        R"({"format":1,"node_id":"a","cluster_id":"","founding":[{}],"disks":[]})"}) {
    write("/data/node.json", text);
    auto dir = open(options());
    ASSERT_FALSE(dir) << text;
    EXPECT_EQ(dir.error().code(), Errc::data_loss) << text;
    EXPECT_EQ(to_text(*fs.seen_bytes("/data/node.json")), text);
  }
}

TEST_F(DataDirTest, NewerFormat_IsRefused) {
  ASSERT_TRUE(open(options()));
  write("/data/node.json", "{\"format\":2}");
  auto dir = open(options());
  ASSERT_FALSE(dir);
  EXPECT_NE(dir.error().text().find("format version 2"), std::string::npos);
}

TEST_F(DataDirTest, MissingIdentityBesideData_IsNotGuessed) {
  ASSERT_TRUE(open(options()));
  ASSERT_TRUE(fs.mkdir("/data/topics/orders"));
  ASSERT_TRUE(fs.remove("/data/node.json"));
  auto dir = open(options());
  ASSERT_FALSE(dir);
  EXPECT_EQ(dir.error().code(), Errc::data_loss);
}

TEST_F(DataDirTest, EmptiedMetastoreBesideData_IsRefused) {
  ASSERT_TRUE(open(options()));
  EXPECT_TRUE(open(options())) << "nothing is stored yet: an empty metastore is the first start";
  for (const char* data : {"/data/topics/orders", "/data/ingress/00000000000000000001.wal"}) {
    ASSERT_TRUE(fs.mkdir(data));
    auto dir = open(options());
    ASSERT_FALSE(dir) << data;
    EXPECT_EQ(dir.error().code(), Errc::data_loss);
    EXPECT_NE(dir.error().text().find(data), std::string::npos) << dir.error().text();
    ASSERT_TRUE(fs.rmdir(data));
  }
  write("/data/metastore/CURRENT", "something");
  ASSERT_TRUE(fs.mkdir("/data/topics/orders"));
  EXPECT_TRUE(open(options()));
}

TEST_F(DataDirTest, SecondDiskOfAnotherNode_IsReportedMissing) {
  auto o = options();
  o.more_dirs = {"/disk2"};
  std::string id;
  {
    auto dir = open(o);
    ASSERT_TRUE(dir) << dir.error().text();
    ASSERT_EQ(dir.value()->disks().size(), 2u);
    EXPECT_EQ(dir.value()->disks()[1].missing, "");
    id = dir.value()->disks()[1].id;
  }
  write("/disk2/disk.id", "00000000000000ff\n");
  {
    auto dir = open(o);
    ASSERT_TRUE(dir) << "the node starts without that disk";
    EXPECT_NE(dir.value()->disks()[1].missing.find("belongs to another node"), std::string::npos);
  }
  // An unmounted volume: the mount point is empty, or gone.
  ASSERT_TRUE(fs.remove("/disk2/disk.id"));
  ASSERT_TRUE(fs.mkdir("/disk2/topics/left"));
  auto dir = open(o);
  ASSERT_TRUE(dir);
  EXPECT_NE(dir.value()->disks()[1].missing.find("no disk.id"), std::string::npos);
}

TEST_F(DataDirTest, EveryCrashPointOfTheFirstStart_LeadsToAStart) {
  for (std::uint64_t call = 1; call < 60; ++call) {
    for (auto how : {sim::SimFs::Cut::before_call, sim::SimFs::Cut::during_call}) {
      sim::SimFs disk(call);
      auto o = options();
      o.more_dirs = {"/disk2"};
      disk.cut_power_at(call, {}, how);
      bool whole = false;
      {
        sim::Rng r(call);
        auto dir = DataDir::open(disk, r, UnixMillis(1), o);
        whole = dir.has_value();
      }
      if (!disk.frozen()) disk.freeze();
      disk.power_cycle();
      sim::Rng r(call + 1000);
      auto dir = DataDir::open(disk, r, UnixMillis(1), o);
      ASSERT_TRUE(dir) << "crash at call " << call << ": " << dir.error().text();
      for (const Disk& d : dir.value()->disks())
        EXPECT_EQ(d.missing, "") << "crash at call " << call;
      if (whole) {
        EXPECT_GT(call, 5u);
      }
    }
  }
}

TEST_F(DataDirTest, TopicOfAnotherLife_IsSetAsideNotRemoved) {
  auto dir = open(options());
  ASSERT_TRUE(dir);
  const Disk disk = dir.value()->disks()[0];
  ASSERT_TRUE(make_topic_directory(fs, disk, "t", Incarnation(1)));
  write(topic_path(disk, "t") + "/kept", "data");
  EXPECT_EQ(make_topic_directory(fs, disk, "t", Incarnation(2)).error().code(), Errc::conflict);
  EXPECT_TRUE(delete_topic_data(fs, disk, "t", Incarnation(2)));  // not that life: nothing happens
  EXPECT_TRUE(fs.seen_bytes(topic_path(disk, "t") + "/kept"));
  auto aside = set_aside_topic(fs, disk, "t");
  ASSERT_TRUE(aside) << aside.error().text();
  EXPECT_EQ(aside.value(), "/data/.quarantine/t@0000000000000001");
  EXPECT_TRUE(fs.seen_bytes(aside.value() + "/kept"));
  EXPECT_TRUE(make_topic_directory(fs, disk, "t", Incarnation(2)));
}

TEST_F(DataDirTest, DeletedTopic_IsGoneAlsoAfterACrashHalfWay) {
  auto dir = open(options());
  ASSERT_TRUE(dir);
  const Disk disk = dir.value()->disks()[0];
  for (std::uint64_t call = 1; call < 25; ++call) {
    ASSERT_TRUE(make_topic_directory(fs, disk, "t", Incarnation(call)));
    write(topic_path(disk, "t") + "/a", "data");
    fs.fail_call(sim::FsCall::remove, call);
    fs.fail_call(sim::FsCall::rmdir, call);
    (void)delete_topic_data(fs, disk, "t", Incarnation(call)).has_value();
    fs.clear_failures();
    ASSERT_TRUE(finish_deletes(fs, disk));
    EXPECT_EQ(fs.list("/data/.deleted").value().size(), 0u);
    EXPECT_EQ(fs.list("/data/topics").value().size(), 0u);
  }
}

TEST(TrustedClock, StepOfTheWallClock_IsDistrustedUntilAgreed) {
  TrustedClock clock(100s, 1'000'000s);
  EXPECT_TRUE(clock.observe(200s, 1'000'100s));
  EXPECT_TRUE(clock.observe(300s, 1'000'200s + 4min));  // slewing within the limit
  EXPECT_FALSE(clock.observe(400s, 1'000'300s + 10min));
  EXPECT_FALSE(clock.observe(500s, 1'000'400s)) << "stepping back does not make it right again";
  clock.agree(500s, 1'000'400s);
  EXPECT_TRUE(clock.observe(600s, 1'000'500s));
  EXPECT_FALSE(clock.observe(700s, 1'000'600s - 10min)) << "backwards counts too";
}

}  // namespace
}  // namespace narad::node
