// Whole data directories, sound and damaged.
#include "internal/fsck/check.h"

#include <gmock/gmock.h>

#include "internal/fsck/read_only_fs.h"
#include "internal/fsck/store_testing.h"
#include "pkg/json/document.h"
#include "pkg/sim/rng.h"

namespace narad::fsck {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kData;
using testing::kPartition;
using testing::sound_store;
using testing::texts;

Report quick(FileSystem& fs, const CheckOptions& options = {}) {
  Report report;
  check_quick(fs, kData, report, options);
  return report;
}

TEST(CheckQuick, SoundDataDirectory_IsCleanAndNothingIsTouched) {
  auto fs = sound_store();
  const std::uint64_t digest = fs->digest();
  const std::uint64_t ops = fs->ops();
  for (bool payloads : {false, true}) {
    CheckOptions options;
    options.payloads = payloads;
    const Report report = quick(*fs, options);
    EXPECT_EQ(report.result(), kClean) << report.text();
    EXPECT_THAT(report.findings(), IsEmpty()) << report.text();
    EXPECT_EQ(report.counters.partitions, 1u);
    EXPECT_EQ(report.counters.segments, 3u);
    EXPECT_EQ(report.counters.wal_records, 30u);
    EXPECT_EQ(report.counters.wal_records_pending, 26u);
  }
  EXPECT_EQ(fs->digest(), digest);
  EXPECT_EQ(fs->ops(), ops) << "not even tried";
}

TEST(CheckQuick, NotADataDirectory_IsNotClean) {
  sim::SimFs fs(1);
  ASSERT_TRUE(fs.mkdir("/data"));
  EXPECT_EQ(quick(fs).result(), kUnchecked);
  Report report;
  check_quick(fs, "/nowhere", report);
  EXPECT_EQ(report.result(), kUnchecked) << report.text();
}

TEST(CheckQuick, DirectoryInUse_IsRefusedUnlessAllowed) {
  auto fs = sound_store();
  auto lock = fs->open("/data/LOCK", OpenMode::read_write).value();
  ASSERT_TRUE(lock->try_lock().value());
  Report report = quick(*fs);
  EXPECT_EQ(report.result(), kUnchecked);
  EXPECT_THAT(texts(report, Kind::unchecked), ElementsAre("/data: is in use by pid 42 on host a"));
  EXPECT_EQ(report.counters.partitions, 0u);
  CheckOptions live;
  live.allow_live = true;
  report = quick(*fs, live);
  EXPECT_EQ(report.result(), kClean);
  EXPECT_EQ(report.counters.partitions, 1u);
}

TEST(CheckQuick, EveryReadError_IsSaidAndNeverClean) {
  auto sound = sound_store();
  for (sim::FsCall call : {sim::FsCall::pread, sim::FsCall::open, sim::FsCall::list,
                           sim::FsCall::stat, sim::FsCall::size}) {
    for (std::uint64_t n = 1;; ++n) {
      auto fs = sound->clone();
      fs->fail_call(call, n);
      const Report report = quick(*fs);
      if (!fs->failure_fired()) break;
      ASSERT_NE(report.result() & kUnchecked, 0) << to_string(call) << " " << n << "\n"
                                                 << report.text();
      ASSERT_EQ(report.result() & kProblems, 0) << to_string(call) << " " << n << "\n"
                                                << report.text();
    }
  }
}

TEST(CheckQuick, IdentityFiles_AreHeldAgainstEachOther) {
  struct Case {
    std::string path, content, expected;
  };
  for (const Case& c :
       {Case{"/data/node.json", "{}", "/data/node.json: is damaged: no format version"},
        Case{"/data/node.json", "{\"format\":", "/data/node.json: is damaged: not a JSON object"},
        Case{"/data/node.json", R"({"format":1,"node_id":"n1","cluster_id":"1","disks":[]})",
             "/data/node.json: is damaged: no cluster_id of 16 hex digits"},
        Case{"/data/disk.id", "what\n", "/data/disk.id: is damaged: 16 hex digits expected"},
        Case{"/data/disk.id", "00000000000000d2\n",
             "/data/disk.id: names disk 00000000000000d2, which node.json does not list"},
        Case{"/data/topics/orders/topic.incarnation", "\n",
             "/data/topics/orders/topic.incarnation: is damaged: 16 hex digits expected"},
        Case{"/data/metastore/CURRENT", "narad-generations 1\n",
             "/data/metastore/CURRENT: is damaged, so which databases are live is unknown"}}) {
    auto fs = sound_store();
    testing::put(*fs, c.path, c.content);
    const Report report = quick(*fs);
    EXPECT_THAT(texts(report, Kind::problem), Contains(c.expected)) << report.text();
    EXPECT_EQ(report.result(), kProblems);
  }
}

TEST(CheckQuick, NewerFormats_AreUncheckedNotDamaged) {
  auto fs = sound_store();
  testing::put(*fs, "/data/node.json", R"({"format":2})");
  EXPECT_EQ(quick(*fs).result(), kUnchecked);
}

TEST(CheckQuick, MissingFiles_AreProblems) {
  for (const char* path : {"/data/node.json", "/data/disk.id", "/data/metastore/CURRENT",
                           "/data/metastore/state.1.db", "/data/topics/orders/topic.incarnation"}) {
    auto fs = sound_store();
    ASSERT_TRUE(fs->remove(path)) << path;
    EXPECT_EQ(quick(*fs).result(), kProblems) << path;
  }
}

TEST(CheckQuick, WalMissingBesidePartitions_IsAProblem) {
  auto fs = sound_store();
  const std::vector<std::string> names = fs->list(testing::kIngress).value();
  for (const std::string& name : names) ASSERT_TRUE(fs->remove(join_path(testing::kIngress, name)));
  EXPECT_THAT(
      texts(quick(*fs), Kind::problem),
      ElementsAre(HasSubstr("messages that were accepted and not yet handed over are lost")));
  ASSERT_TRUE(fs->rmdir(testing::kIngress));
  EXPECT_EQ(quick(*fs).result(), kProblems);
}

TEST(CheckQuick, DamagedDatabase_IsAProblem) {
  auto fs = sound_store();
  ASSERT_TRUE(fs->corrupt("/data/metastore/state.1.db", 4096 + 3, std::byte{0x55}));
  const Report report = quick(*fs);
  EXPECT_EQ(report.result(), kProblems) << report.text();
  EXPECT_THAT(texts(report, Kind::problem).at(0), HasSubstr("state.1.db: is damaged"));
}

TEST(CheckQuick, StrangeAndLeftoverNames_AreNotesOnly) {
  auto fs = sound_store();
  testing::put(*fs, "/data/todo.txt", "x");
  testing::put(*fs, kPartition + "/hwm.tmp", "x");
  testing::must(make_directories(*fs, "/data/topics/orders/p00001.quarantine.2"));
  testing::must(make_directories(*fs, "/data/.quarantine/old@1"));
  const Report report = quick(*fs);
  EXPECT_EQ(report.result(), kClean) << report.text();
  EXPECT_EQ(report.count(Kind::note), 4u) << report.text();
}

TEST(CheckPath, LooksAtWhatLiesThere) {
  auto fs = sound_store();
  Report partition;
  check_path(*fs, kPartition, partition);
  EXPECT_EQ(partition.counters.partitions, 1u);
  EXPECT_EQ(partition.counters.wal_segments, 0u);
  Report wal;
  check_path(*fs, testing::kIngress, wal);
  EXPECT_EQ(wal.counters.wal_records, 30u);
  EXPECT_EQ(wal.counters.partitions, 0u);
  Report all;
  check_path(*fs, kData, all);
  EXPECT_EQ(all.counters.topics, 1u);
}

TEST(ReadOnlyFs, EveryCallThatWrites_IsRefused) {
  auto fs = sound_store();
  const std::uint64_t ops = fs->ops();
  Counters counters;
  ReadOnlyFs readable(*fs, counters);
  EXPECT_FALSE(readable.open("/data/LOCK", OpenMode::read_write));
  EXPECT_FALSE(readable.open("/data/new", OpenMode::create));
  EXPECT_FALSE(readable.remove("/data/LOCK"));
  EXPECT_FALSE(readable.rename("/data/LOCK", "/data/x"));
  EXPECT_FALSE(readable.mkdir("/data/x"));
  EXPECT_FALSE(readable.rmdir("/data/.deleted"));
  EXPECT_FALSE(readable.set_mtime("/data/LOCK", UnixMillis(1)));
  EXPECT_FALSE(readable.sync_dir("/data"));
  auto file = readable.open("/data/LOCK", OpenMode::read).value();
  EXPECT_FALSE(file->pwrite(as_bytes("x"), 0));
  EXPECT_FALSE(file->truncate(0));
  EXPECT_FALSE(file->allocate(100));
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(file->datasync());
  EXPECT_EQ(fs->ops(), ops);
}

TEST(Report, TextAndJson_SayTheSame) {
  Report report;
  Finding& f = report.problem("/data/x", "has bytes that do not verify");
  f.bytes = Span{10, 20};
  f.offsets = Span{5, 6};
  f.remedy = "say \"please\"";
  report.note("/data/y", "is odd");
  report.unchecked("/data/z", Error(Errc::unavailable, "read /data/z: Input/output error"));
  report.counters.partitions = 1;
  EXPECT_EQ(report.result(), kProblems | kUnchecked);
  EXPECT_EQ(report.text(),
            "problem: /data/x: has bytes that do not verify\n"
            "    bytes 10 to 19, offset 5\n"
            "    what to do: say \"please\"\n"
            "note: /data/y: is odd\n"
            "unchecked: /data/z: could not be checked: read /data/z: Input/output error\n"
            "checked: 1 partition with 0 segments, 0 WAL segments; 0 files, 0 B read\n"
            "1 problem; 1 thing could not be checked\n");
  auto parsed = json::Document::parse(report.json(), 8);
  ASSERT_TRUE(parsed) << report.json();
  const json::Value root = parsed.value().root();
  EXPECT_EQ(root.find("result")->as_int64(), 12);
  EXPECT_EQ(root.find("findings")->size(), 3u);
  const json::Value first = root.find("findings")->element(0);
  EXPECT_EQ(first.find("remedy")->as_string(), "say \"please\"");
  EXPECT_EQ(first.find("bytes")->find("to")->as_int64(), 20);
}

}  // namespace
}  // namespace narad::fsck
