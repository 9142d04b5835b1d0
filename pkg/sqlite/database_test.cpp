#include "pkg/sqlite/database.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "pkg/base/text.h"
#include "pkg/sim/sim_fs.h"

namespace narad::sqlite {
namespace {

using sim::FsCall;
using sim::SimFs;

class CountingRandom final : public Random {
 public:
  explicit CountingRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override { return state_ += 0x9E3779B97F4A7C15; }

 private:
  std::uint64_t state_;
};

constexpr char kPath[] = "/d/x.db";

struct DatabaseTest : testing::Test {
  DatabaseTest() {
    CountingRandom random(1);
    reseed_randomness(random);
    EXPECT_TRUE(fs.mkdir("/d"));
    EXPECT_TRUE(fs.sync_dir("/"));
  }
  Database open(Options options = {}) {
    auto r = Database::open(fs, kPath, options);
    EXPECT_TRUE(r) << r.error().text();
    return std::move(r).value();
  }
  static void must(const Result<void>& r) { ASSERT_TRUE(r) << r.error().text(); }

  SimFs fs;
};

TEST_F(DatabaseTest, Values_OfEachKind_ReadBack) {
  Database db = open();
  must(db.exec("CREATE TABLE t(i INTEGER PRIMARY KEY, a, b, c, d, e)"));
  auto insert = db.prepare("INSERT INTO t VALUES(?1,?2,?3,?4,?5,?6)").value();
  const Bytes blob = to_bytes(std::string_view("\0\xff", 2));
  must(insert.run(Offset(7), "text", ByteView(blob), nullptr, std::string_view(), ByteView()));
  must(insert.run(std::int64_t{-1}, ~std::uint64_t{0}, true, std::int32_t{-5},
                  std::string("q'\0x", 4), std::uint32_t{9}));
  EXPECT_EQ(db.changes(), 1);
  auto select = db.prepare("SELECT * FROM t ORDER BY i").value();
  ASSERT_TRUE(select.step().value());
  EXPECT_EQ(select.int64(0), -1);
  EXPECT_EQ(select.uint64(1), ~std::uint64_t{0});
  EXPECT_EQ(select.int64(2), 1);
  EXPECT_EQ(select.text(4), std::string_view("q'\0x", 4));
  ASSERT_TRUE(select.step().value());
  EXPECT_EQ(select.text(1), "text");
  EXPECT_EQ(to_text(select.blob(2)), std::string("\0\xff", 2));
  EXPECT_TRUE(select.is_null(3));
  EXPECT_FALSE(select.is_null(4));
  EXPECT_FALSE(select.is_null(5));
  EXPECT_TRUE(select.blob(5).empty());
  EXPECT_FALSE(select.step().value());
}

TEST_F(DatabaseTest, Statement_OutlivesItsDatabase) {
  auto db = std::make_unique<Database>(open());
  auto statement = db->prepare("SELECT 3").value();
  db.reset();
  ASSERT_TRUE(statement.step().value());
  EXPECT_EQ(statement.int64(0), 3);
}

TEST_F(DatabaseTest, Errors_NameFileStatementAndReason) {
  Database db = open();
  auto syntax = db.exec("SELEC 1");
  ASSERT_FALSE(syntax);
  EXPECT_EQ(syntax.error().code(), Errc::internal);
  EXPECT_EQ(syntax.error().text(), "/d/x.db: SELEC 1: near \"SELEC\": syntax error (SQLite 1)");
  must(db.exec("CREATE TABLE t(i INTEGER PRIMARY KEY); INSERT INTO t VALUES(1)"));
  auto twice = db.exec("INSERT INTO t VALUES(1)");
  EXPECT_EQ(twice.error().code(), Errc::conflict);
  auto bad_bind = db.prepare("SELECT ?1").value().bind(2, "x").step();
  EXPECT_EQ(bad_bind.error().code(), Errc::internal);
  EXPECT_NE(bad_bind.error().text().find("bind a value"), std::string::npos);
}

TEST_F(DatabaseTest, AbsentFile_IsNotFound_UnlessCreated) {
  EXPECT_EQ(Database::open(fs, kPath, {.open_as = OpenAs::existing}).error().code(),
            Errc::not_found);
  EXPECT_EQ(Database::open(fs, kPath, {.open_as = OpenAs::read_only}).error().code(),
            Errc::not_found);
  EXPECT_EQ(Database::open(fs, "/nowhere/x.db", {}).error().code(), Errc::not_found);
  EXPECT_TRUE(Database::open(fs, kPath, {}));
}

TEST_F(DatabaseTest, ForeignOrDamagedFile_IsDataLoss) {
  must(write_all(*fs.open(kPath, OpenMode::create).value(), as_bytes(std::string(8192, 'x')), 0));
  EXPECT_EQ(Database::open(fs, kPath, {}).error().code(), Errc::data_loss);
}

TEST_F(DatabaseTest, FlippedPage_IsFoundByQuickCheck) {
  {
    Database db = open();
    must(db.exec("CREATE TABLE t(i INTEGER PRIMARY KEY, x BLOB)"));
    for (int i = 0; i < 50; ++i) must(db.exec("INSERT INTO t(x) VALUES(randomblob(500))"));
    must(db.quick_check());
    must(db.checkpoint());
  }
  // The header of the table's root page.
  ASSERT_TRUE(fs.corrupt(kPath, 4096 + 3, std::byte{0x7f}));
  Database db = open();
  auto r = db.quick_check();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::data_loss);
  EXPECT_NE(r.error().text().find("/d/x.db"), std::string::npos);
}

TEST_F(DatabaseTest, CommittedRow_SurvivesAPowerCutThatDropsEverythingUnsynced) {
  fs.faults.cut_keep = fs.faults.cut_tear = fs.faults.cut_garbage = 0;
  {
    Database db = open();
    must(db.exec("CREATE TABLE t(i INTEGER PRIMARY KEY); INSERT INTO t VALUES(42)"));
    fs.freeze();
  }
  fs.power_cycle();
  EXPECT_EQ(open({.open_as = OpenAs::existing}).query_int64("SELECT i FROM t").value(), 42);
}

TEST_F(DatabaseTest, UncommittedTransaction_IsRolledBack) {
  Database db = open();
  must(db.exec("CREATE TABLE t(i INTEGER PRIMARY KEY)"));
  {
    Transaction t = Transaction::begin(db).value();
    must(db.exec("INSERT INTO t VALUES(1)"));
  }
  EXPECT_FALSE(db.in_transaction());
  EXPECT_EQ(db.query_int64("SELECT count(*) FROM t").value(), 0);
  Transaction t = Transaction::begin(db).value();
  must(db.exec("INSERT INTO t VALUES(1)"));
  must(t.commit());
  EXPECT_EQ(db.query_int64("SELECT count(*) FROM t").value(), 1);
}

TEST_F(DatabaseTest, FullDisk_IsUnavailableWithErrno_AndHeals) {
  Database db = open();
  must(db.exec("CREATE TABLE t(x BLOB)"));
  fs.faults.capacity_bytes = fs.used_bytes() + 10'000;
  Result<void> r = ok();
  {
    Transaction t = Transaction::begin(db).value();
    r = db.exec("INSERT INTO t VALUES(randomblob(100000))");
    if (r) r = t.commit();
  }
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_EQ(r.error().os_errno(), ENOSPC);
  EXPECT_FALSE(db.sync_failed());
  fs.faults.capacity_bytes = 1 << 30;
  must(db.exec("INSERT INTO t VALUES(randomblob(100000))"));
  EXPECT_EQ(db.query_int64("SELECT count(*) FROM t").value(), 1);
}

TEST_F(DatabaseTest, FailedWrite_IsUnavailable_ButNotASyncFailure) {
  Database db = open();
  must(db.exec("CREATE TABLE t(i)"));
  fs.fail_call(FsCall::pwrite, 1);
  auto r = db.exec("INSERT INTO t VALUES(1)");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_EQ(r.error().os_errno(), EIO);
  EXPECT_NE(r.error().text().find("/d/x.db-wal"), std::string::npos) << r.error().text();
  EXPECT_FALSE(db.sync_failed());
  must(db.exec("INSERT INTO t VALUES(2)"));
}

TEST_F(DatabaseTest, FailedSync_LatchesTheDatabase) {
  Database db = open();
  must(db.exec("CREATE TABLE t(i)"));
  fs.fail_call(FsCall::sync, 1);
  auto r = db.exec("INSERT INTO t VALUES(1)");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_EQ(r.error().os_errno(), EIO);
  EXPECT_TRUE(db.sync_failed());
  const std::uint64_t digest = fs.digest();
  EXPECT_FALSE(db.exec("INSERT INTO t VALUES(2)"));
  EXPECT_FALSE(db.query_int64("SELECT count(*) FROM t"));
  EXPECT_FALSE(db.checkpoint());
  EXPECT_EQ(fs.digest(), digest);
}

TEST_F(DatabaseTest, FailedDirectorySync_LatchesToo) {
  fs.fail_call(FsCall::sync_dir, 1);
  EXPECT_FALSE(Database::open(fs, kPath, {}));
}

TEST_F(DatabaseTest, SyncThatFailsWhileACommitFoldsTheLog_IsReported) {
  Database db = open({.checkpoint_pages = 1});
  must(db.exec("CREATE TABLE t(i)"));
  bool reported = false;
  for (int i = 0; i < 20 && !reported; ++i) {
    const std::uint64_t before = fs.calls(FsCall::sync);
    must(db.exec("INSERT INTO t VALUES(1)"));
    const std::uint64_t syncs = fs.calls(FsCall::sync) - before;
    if (syncs < 2) continue;
    fs.fail_call(FsCall::sync, syncs);  // the last one of the next commit
    auto r = db.exec("INSERT INTO t VALUES(1)");
    ASSERT_TRUE(fs.failure_fired());
    ASSERT_FALSE(r) << "SQLite kept a failed sync to itself";
    EXPECT_NE(r.error().text().find("sync failed"), std::string::npos) << r.error().text();
    reported = true;
  }
  EXPECT_TRUE(reported);
  EXPECT_TRUE(db.sync_failed());
}

TEST_F(DatabaseTest, NormalMode_IsDurableAfterCheckpoint) {
  fs.faults.cut_keep = fs.faults.cut_tear = fs.faults.cut_garbage = 0;
  {
    Database db = open({.synchronous = Synchronous::normal});
    must(db.exec("CREATE TABLE t(i); INSERT INTO t VALUES(1)"));
    must(db.checkpoint());
    must(db.exec("INSERT INTO t VALUES(2)"));
    fs.freeze();
  }
  fs.power_cycle();
  EXPECT_EQ(open().query_int64("SELECT max(i) FROM t").value(), 1);
}

TEST_F(DatabaseTest, ReadOnly_SeesTheLogAndWritesNothing) {
  {
    Database db = open();
    must(db.exec("CREATE TABLE t(i); INSERT INTO t VALUES(1)"));
    must(db.checkpoint());
    must(db.exec("INSERT INTO t VALUES(2)"));
  }
  const std::uint64_t digest = fs.digest(), ops = fs.ops();
  {
    Database db = open({.open_as = OpenAs::read_only});
    EXPECT_EQ(db.query_int64("SELECT sum(i) FROM t").value(), 3);
    must(db.quick_check());
    EXPECT_FALSE(db.exec("INSERT INTO t VALUES(3)"));
    EXPECT_FALSE(db.checkpoint());
  }
  EXPECT_EQ(fs.digest(), digest);
  EXPECT_EQ(fs.ops(), ops);
}

TEST_F(DatabaseTest, ReadOnly_WithoutALog_Opens) {
  {
    Database db = open();
    must(db.exec("CREATE TABLE t(i); INSERT INTO t VALUES(1)"));
    must(db.checkpoint());
  }
  must(fs.remove("/d/x.db-wal"));
  const std::uint64_t ops = fs.ops();
  EXPECT_EQ(open({.open_as = OpenAs::read_only}).query_int64("SELECT i FROM t").value(), 1);
  EXPECT_EQ(fs.ops(), ops);
}

TEST_F(DatabaseTest, TemporaryFiles_StayInTheDirectoryAndGo) {
  Database db = open();
  must(db.exec("PRAGMA temp_store=FILE; CREATE TABLE t(x)"));
  must(db.exec("PRAGMA cache_size=1"));
  must(
      db.exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000)"
              " INSERT INTO t SELECT hex(randomblob(200)) FROM n"));
  const std::uint64_t opens = fs.calls(FsCall::open);
  must(db.exec("CREATE INDEX by_x ON t(x)"));
  EXPECT_GT(fs.calls(FsCall::open), opens) << "the sort was meant to need a file";
  for (const std::string& path : fs.all_paths()) {
    EXPECT_TRUE(path == "/d/" || path.starts_with("/d/x.db")) << path;
  }
}

TEST_F(DatabaseTest, SqlClock_StandsStill) {
  EXPECT_EQ(open().query_text("SELECT datetime('now')").value(), "1970-01-01 00:00:00");
}

// The salts of the log and random() come from SQLite's generator.
std::uint64_t digest_of_run(std::uint64_t seed) {
  CountingRandom random(seed);
  reseed_randomness(random);
  SimFs fs;
  EXPECT_TRUE(fs.mkdir("/d"));
  Database db = Database::open(fs, kPath, {}).value();
  EXPECT_TRUE(db.exec("CREATE TABLE t(x); INSERT INTO t VALUES(randomblob(100))"));
  return fs.digest();
}

TEST(SqliteRandomness, SameSeed_GivesTheSameBytes) {
  EXPECT_EQ(digest_of_run(7), digest_of_run(7));
  EXPECT_NE(digest_of_run(7), digest_of_run(8));
}

}  // namespace
}  // namespace narad::sqlite
