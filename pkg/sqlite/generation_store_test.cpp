#include "pkg/sqlite/generation_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "pkg/base/text.h"
#include "pkg/sim/rng.h"
#include "pkg/sim/sim_fs.h"

namespace narad::sqlite {
namespace {

using sim::FsCall;
using sim::SimFs;

constexpr char kDir[] = "/m";

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override { return state_ += 0x9E3779B97F4A7C15; }

 private:
  std::uint64_t state_;
};

Result<GenerationStore> open_store(SimFs& fs) {
  return GenerationStore::open(fs, kDir, {"raft", "state"});
}

std::unique_ptr<SimFs> new_disk(std::uint64_t seed = 1) {
  SeededRandom random(seed);
  reseed_randomness(random);
  auto fs = std::make_unique<SimFs>(seed);
  EXPECT_TRUE(fs->mkdir(kDir));
  EXPECT_TRUE(fs->sync_dir("/"));
  return fs;
}

// What a node does with its metastore, and the promise it relies on: rows come in pairs, and each
// pair whose commit answered ok is there for ever.
Options raft_options(std::uint32_t pages = 8) { return {.checkpoint_pages = pages}; }
Options state_options() { return {.synchronous = Synchronous::normal, .checkpoint_pages = 8}; }

Result<void> make_schema(Database& db) {
  return db.exec("CREATE TABLE log(i INTEGER PRIMARY KEY, pair INTEGER, payload BLOB)");
}

Result<Database> open_or_create(GenerationStore& store, std::string_view name, Options options) {
  if (store.has(name)) return store.open_database(name, options);
  return store.create_database(name, options, make_schema);
}

Result<void> append_pair(Database& db, std::int64_t next) {
  NARAD_TRY(Transaction t, Transaction::begin(db));
  NARAD_TRY(Statement insert, db.prepare("INSERT INTO log VALUES(?1, ?2, randomblob(?3))"));
  NARAD_TRY(insert.run(next, next + 1, 300));
  NARAD_TRY(insert.run(next + 1, next, 1200));
  return t.commit();
}

struct Seen {
  std::int64_t raft = 0;  // highest row
  std::int64_t state = 0;
};

// Opens whatever is there and checks it; every row 1..max in pairs, structure sound.
Result<Seen> inspect(GenerationStore& store, std::uint32_t pages, std::vector<Database>& keep) {
  Seen seen;
  for (const char* name : {"raft", "state"}) {
    const bool is_raft = std::string_view(name) == "raft";
    NARAD_TRY(Database db,
              open_or_create(store, name, is_raft ? raft_options(pages) : state_options()));
    NARAD_TRY(db.quick_check());
    NARAD_TRY(std::int64_t max, db.query_int64("SELECT coalesce(max(i), 0) FROM log"));
    NARAD_TRY(std::int64_t count, db.query_int64("SELECT count(*) FROM log"));
    if (count != max || max % 2 != 0) {
      return Error(Errc::data_loss, cat(name, ": ", count, " rows up to ", max));
    }
    (is_raft ? seen.raft : seen.state) = max;
    keep.push_back(std::move(db));
  }
  return seen;
}

// One life of a process: open, append, close. Keeps `acked` up to date. Ends at the first error, as
// the node does.
struct Life {
  std::uint32_t pages = 8;  // raft's log before it is folded
  std::int64_t acked = 0;

  Result<void> run(SimFs& fs, int pairs, bool close) {
    NARAD_TRY(GenerationStore store, open_store(fs));
    std::vector<Database> dbs;
    NARAD_TRY(Seen seen, inspect(store, pages, dbs));
    if (seen.raft < acked) {
      return Error(Errc::data_loss, cat("row ", acked, " was acknowledged, ", seen.raft, " left"));
    }
    auto r = work(dbs, seen.raft + 1, pairs);
    if (!r) return r.error();
    if (!close) return ok();
    return store.close_clean(std::move(dbs));
  }

 private:
  Result<void> work(std::vector<Database>& dbs, std::int64_t next, int pairs) {
    NARAD_TRY(std::int64_t state_next, dbs[1].query_int64("SELECT coalesce(max(i),0)+1 FROM log"));
    for (int i = 0; i < pairs; ++i, next += 2, state_next += 2) {
      NARAD_TRY(append_pair(dbs[0], next));
      acked = next + 1;
      NARAD_TRY(append_pair(dbs[1], state_next));
    }
    return ok();
  }
};

TEST(GenerationStore, FirstStart_CreatesGenerationOne) {
  auto fs = new_disk();
  GenerationStore store = open_store(*fs).value();
  EXPECT_FALSE(store.has("raft"));
  EXPECT_FALSE(store.unclean());
  Database db = store.create_database("raft", {}, make_schema).value();
  EXPECT_EQ(db.path(), "/m/raft.1.db");
  EXPECT_EQ(store.path("raft"), "/m/raft.1.db");
  EXPECT_FALSE(store.has("state"));
}

TEST(GenerationStore, CleanStop_OpensInPlace_UncleanStopCopies) {
  auto fs = new_disk();
  Life life;
  ASSERT_TRUE(life.run(*fs, 3, true));
  ASSERT_TRUE(exists(*fs, "/m/CLEAN").value());
  {
    GenerationStore store = open_store(*fs).value();
    EXPECT_FALSE(store.unclean());
    Database db = store.open_database("raft", raft_options()).value();
    EXPECT_EQ(store.generation("raft"), 1u);
    EXPECT_FALSE(exists(*fs, "/m/CLEAN").value()) << "gone before the first write";
  }
  fs->process_restart();
  GenerationStore store = open_store(*fs).value();
  EXPECT_TRUE(store.unclean());
  Database db = store.open_database("raft", raft_options()).value();
  EXPECT_EQ(store.generation("raft"), 2u);
  EXPECT_EQ(db.path(), "/m/raft.2.db");
  EXPECT_EQ(db.query_int64("SELECT max(i) FROM log").value(), 6);
  const auto files = fs->list(kDir).value();
  EXPECT_EQ(std::count(files.begin(), files.end(), "raft.1.db"), 0);
  EXPECT_EQ(std::count(files.begin(), files.end(), "raft.1.db-wal"), 0);
}

TEST(GenerationStore, MissingCurrentBesideDatabases_IsRefusedAndNothingChanges) {
  auto fs = new_disk();
  ASSERT_TRUE(Life().run(*fs, 1, true));
  ASSERT_TRUE(fs->remove("/m/CURRENT"));
  const std::uint64_t digest = fs->digest();
  auto store = open_store(*fs);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), Errc::data_loss);
  EXPECT_NE(store.error().text().find("narad fsck"), std::string::npos);
  EXPECT_EQ(fs->digest(), digest);
}

TEST(GenerationStore, DamagedCurrent_IsRefused_WhicheverByte) {
  auto fs = new_disk();
  ASSERT_TRUE(Life().run(*fs, 1, true));
  const std::size_t size = fs->seen_bytes("/m/CURRENT")->size();
  for (std::size_t i = 0; i < size; ++i) {
    auto copy = fs->clone();
    ASSERT_TRUE(copy->corrupt("/m/CURRENT", i, std::byte{0x04}));
    auto store = open_store(*copy);
    ASSERT_FALSE(store) << i;
    EXPECT_EQ(store.error().code(), Errc::data_loss);
  }
  for (std::size_t n = 0; n < size; ++n) {
    auto copy = fs->clone();
    ASSERT_TRUE(copy->open("/m/CURRENT", OpenMode::read_write).value()->truncate(n));
    EXPECT_FALSE(open_store(*copy)) << n;
  }
}

TEST(GenerationStore, MissingLiveDatabase_IsDataLoss_NeverAnEmptyOne) {
  auto fs = new_disk();
  ASSERT_TRUE(Life().run(*fs, 1, true));
  ASSERT_TRUE(fs->remove("/m/raft.1.db"));
  GenerationStore store = open_store(*fs).value();
  EXPECT_EQ(store.open_database("raft", {}).error().code(), Errc::data_loss);
  EXPECT_FALSE(exists(*fs, "/m/raft.1.db").value());
}

TEST(GenerationStore, ForeignFiles_AreLeftAlone_LeftoversGo) {
  auto fs = new_disk();
  ASSERT_TRUE(Life().run(*fs, 1, true));
  for (const char* name : {"raft.7.db", "raft.7.db-wal", "raft.1.db.kept", "notes", "raft.x.db",
                           "state.0.db-journal", "sqlite.tmp-9", "other.3.db"}) {
    ASSERT_TRUE(fs->open(cat("/m/", name), OpenMode::create_new));
  }
  ASSERT_TRUE(open_store(*fs));
  EXPECT_EQ(fs->list(kDir).value(),
            (std::vector<std::string>{"CLEAN", "CURRENT", "notes", "other.3.db", "raft.1.db",
                                      "raft.1.db-wal", "raft.1.db.kept", "raft.x.db", "state.1.db",
                                      "state.1.db-wal"}));
}

TEST(GenerationStore, ReplacedDatabase_StartsFromWhatFillWrote) {
  auto fs = new_disk();
  ASSERT_TRUE(Life().run(*fs, 2, true));
  GenerationStore store = open_store(*fs).value();
  auto failed = store.create_database(
      "state", {}, [](Database&) -> Result<void> { return Error(Errc::unavailable, "not today"); });
  EXPECT_EQ(failed.error().text(), "not today");
  EXPECT_EQ(store.generation("state"), 1u);
  Database db = store.create_database("state", {}, make_schema).value();
  EXPECT_EQ(store.generation("state"), 2u);
  EXPECT_EQ(db.query_int64("SELECT count(*) FROM log").value(), 0);
  EXPECT_FALSE(exists(*fs, "/m/state.1.db").value());
}

TEST(GenerationStore, Copy_KeepsUserVersionAndQuotesItsPath) {
  SimFs fs;
  ASSERT_TRUE(fs.mkdir("/it's"));
  GenerationStore store = GenerationStore::open(fs, "/it's", {"raft"}).value();
  Database db = store
                    .create_database("raft", {},
                                     [](Database& d) {
                                       return d.exec(
                                           "PRAGMA user_version=7; PRAGMA "
                                           "application_id=99; CREATE TABLE t(i)");
                                     })
                    .value();
  Database copy = store.copy_database("raft", std::move(db), {}).value();
  EXPECT_EQ(copy.path(), "/it's/raft.2.db");
  EXPECT_EQ(copy.query_int64("PRAGMA user_version").value(), 7);
  EXPECT_EQ(copy.query_int64("PRAGMA application_id").value(), 99);
}

TEST(GenerationStore, DamagedSource_IsNotCopied) {
  auto fs = new_disk();
  ASSERT_TRUE(Life().run(*fs, 40, true));
  ASSERT_TRUE(fs->remove("/m/CLEAN"));
  const std::uint64_t size = fs->seen_bytes("/m/raft.1.db")->size();
  for (std::uint64_t page = 1; page < size / 4096; ++page) {
    ASSERT_TRUE(fs->corrupt("/m/raft.1.db", page * 4096, std::byte{0xff}));
  }
  GenerationStore store = open_store(*fs).value();
  auto db = store.open_database("raft", raft_options());
  ASSERT_FALSE(db);
  EXPECT_EQ(db.error().code(), Errc::data_loss);
  EXPECT_EQ(store.generation("raft"), 1u);
  EXPECT_TRUE(exists(*fs, "/m/raft.1.db").value());
}

// ---- sweeps
// --------------------------------------------------------------------------------------

struct Totals {
  std::uint64_t runs = 0, cuts = 0, lost = 0, damaged = 0;
  SimFs::Stats stats;
};

// Three lives (the first ends clean, so the second opens in place; the third copies), the power cut
// at the `cut`-th mutating call, and then a check without faults.
void cut_and_check(std::uint64_t seed, std::uint64_t cut, SimFs::Cut how, Totals& totals,
                   bool* reached) {
  SCOPED_TRACE(cat("seed ", seed, " cut at ", cut, how == SimFs::Cut::during_call ? " torn" : ""));
  auto fs = new_disk(seed);
  const std::uint64_t start = fs->ops();
  fs->cut_power_at(start + cut, {}, how);
  Life life;
  for (int i = 0; i < 3 && !fs->frozen(); ++i) {
    auto r = life.run(*fs, 3, i == 0);
    if (!fs->frozen()) {
      ASSERT_TRUE(r) << r.error().text();
      fs->process_restart();
    }
  }
  *reached = fs->frozen();
  fs->power_cycle();
  ++totals.runs;
  totals.cuts += *reached ? 1 : 0;
  auto r = life.run(*fs, 1, true);
  ASSERT_TRUE(r) << r.error().text();
  totals.stats += fs->stats;
}

TEST(GenerationStoreCrash, PowerCutAtEveryDiskOperation_LosesNoAcknowledgedRow) {
  Totals totals;
  for (SimFs::Cut how : {SimFs::Cut::before_call, SimFs::Cut::during_call}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      bool reached = true;
      for (std::uint64_t cut = 1; reached; ++cut) {
        cut_and_check(seed, cut, how, totals, &reached);
        ASSERT_FALSE(HasFatalFailure());
        ASSERT_LT(cut, 5000u) << "the workload never ends";
      }
    }
  }
  std::cout << totals.runs << " runs, " << totals.cuts << " power cuts; unsynced writes "
            << totals.stats.kept << " kept, " << totals.stats.dropped << " dropped, "
            << totals.stats.torn << " torn, " << totals.stats.garbage << " garbage; names "
            << totals.stats.names_kept << " kept, " << totals.stats.names_lost << " lost\n";
  EXPECT_GT(totals.cuts, 1000u);
  EXPECT_GT(totals.stats.torn, 100u);
  EXPECT_GT(totals.stats.garbage, 100u);
  EXPECT_GT(totals.stats.names_lost, 20u);
}

TEST(GenerationStoreCrash, ShortReadsAndWrites_ChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto fs = new_disk(seed);
    fs->faults.short_read = fs->faults.short_write = 300'000;
    Life life;
    for (int i = 0; i < 3; ++i) {
      auto r = life.run(*fs, 4, i == 1);
      ASSERT_TRUE(r) << r.error().text();
      fs->process_restart();
    }
    EXPECT_GT(fs->stats.short_writes, 20u);
    EXPECT_GT(fs->stats.short_reads, 20u);
  }
}

// Fails the n-th call of every kind, once and for good; the process ends at its first error and the
// next one, on a healthy disk, must find every acknowledged row.
void fail_sweep(FsCall kind, bool persistent, int os_errno) {
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(
        cat(to_string(kind), " ", n, persistent ? " for good" : " once", ", errno ", os_errno));
    ASSERT_LT(n, 5000u);
    auto fs = new_disk(n);
    Life life;
    ASSERT_TRUE(life.run(*fs, 2, true));
    fs->process_restart();
    fs->fail_call(kind, n, persistent, os_errno);
    Result<void> r = ok();
    for (int i = 0; i < 2 && r; ++i) {
      r = life.run(*fs, 3, i == 1);
      fs->process_restart();
    }
    const bool fired = fs->failure_fired();
    if (!fired) {
      ASSERT_TRUE(r) << r.error().text();
    } else if (!r) {
      // A missing file is what ENOENT says; all else is a disk in trouble.
      EXPECT_EQ(r.error().code(), Errc::unavailable) << r.error().text();
    }
    fs->clear_failures();
    // The machine may lose its power on top of it.
    if (n % 2 == 0) {
      fs->freeze();
      fs->power_cycle();
    }
    auto after = life.run(*fs, 1, true);
    ASSERT_TRUE(after) << after.error().text();
    if (!fired) break;
  }
}

TEST(GenerationStoreCrash, EveryCallFailing_LosesNoAcknowledgedRow) {
  for (FsCall kind :
       {FsCall::open, FsCall::pread, FsCall::pwrite, FsCall::truncate, FsCall::sync, FsCall::remove,
        FsCall::rename, FsCall::sync_dir, FsCall::stat, FsCall::list, FsCall::size}) {
    for (bool persistent : {false, true}) {
      fail_sweep(kind, persistent, EIO);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  fail_sweep(FsCall::pwrite, false, ENOSPC);
  fail_sweep(FsCall::pwrite, true, ENOSPC);
}

// Opens the live database as it stands, without a copy and without a second thought.
Result<void> careless_life(SimFs& fs, std::uint64_t pairs, std::int64_t& acked) {
  NARAD_TRY(Database db, Database::open(fs, "/m/raft.1.db", raft_options(1000)));
  NARAD_TRY(std::int64_t next, db.query_int64("SELECT coalesce(max(i),0)+1 FROM log"));
  for (std::uint64_t k = 0; k < pairs; ++k, next += 2) {
    NARAD_TRY(append_pair(db, next));
    acked = next + 1;
  }
  return ok();
}

// After a failed sync the page cache shows rows that the disk may never hold. `copying` is what the
// store does; without it rows get lost: that is why it exists.
Totals failed_syncs(bool copying) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    auto fs = new_disk(seed);
    sim::Rng rng(seed);
    Life life{.pages = 1000};
    EXPECT_TRUE(life.run(*fs, 2, true));
    for (int i = 0; i < 6; ++i) {
      fs->faults.eio_sync = i < 5 ? 60'000 : 0;
      const std::uint64_t pairs = rng.range(1, 6);
      const auto r = copying ? life.run(*fs, static_cast<int>(pairs), false)
                             : careless_life(*fs, pairs, life.acked);
      if (!r && r.error().code() == Errc::data_loss) ++totals.lost;
      fs->process_restart();
    }
    fs->freeze();
    fs->power_cycle();
    ++totals.cuts;
    const auto r = life.run(*fs, 1, false);
    if (!r) ++(r.error().code() == Errc::data_loss ? totals.lost : totals.damaged);
    totals.stats += fs->stats;
  }
  return totals;
}

TEST(GenerationStoreCrash, FailedSyncs_LoseNothing_SinceTheNextStartCopies) {
  const Totals totals = failed_syncs(true);
  EXPECT_EQ(totals.lost, 0u);
  EXPECT_EQ(totals.damaged, 0u);
  EXPECT_GT(totals.stats.eio, 100u);
}

TEST(GenerationStoreCrash, FailedSyncs_WithoutTheCopy_LoseRows) {
  EXPECT_GT(failed_syncs(false).lost, 0u);
}

}  // namespace
}  // namespace narad::sqlite
