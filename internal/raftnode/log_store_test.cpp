#include "internal/raftnode/log_store.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"
#include "pkg/sim/sim_fs.h"
#include "pkg/sqlite/generation_store.h"

namespace narad::raftnode {
namespace {

using raft::Entry;
using raft::EntryKind;
using raft::HardState;
using raft::Index;
using raft::ReplicaId;
using raft::SnapshotMeta;
using raft::Term;

constexpr const char* kDirectory = "/data/metastore";

raft::Configuration pair_of_nodes() {
  return raft::Configuration::make({{ReplicaId(7), "n1", raft::MemberRole::voter},
                                    {ReplicaId(9), "n2", raft::MemberRole::voter}})
      .value();
}

Result<std::shared_ptr<LogStore>> open_store(FileSystem& fs, std::string node = "n1") {
  NARAD_TRY(make_directories(fs, kDirectory));
  NARAD_TRY(auto g, sqlite::GenerationStore::open(fs, kDirectory, {"raft", "state"}));
  auto generations = std::make_shared<sqlite::GenerationStore>(std::move(g));
  if (generations->has(kLogName)) return LogStore::open(fs, kDirectory, generations, node);
  LogStore::Birth birth;
  birth.replica = ReplicaId(7);
  birth.node = node;
  birth.snapshot.configuration = pair_of_nodes();
  return LogStore::create(fs, kDirectory, generations, std::move(birth));
}

Entry entry(std::uint64_t index, std::uint64_t term, std::string text = "x") {
  return {Index(index), Term(term), EntryKind::command, raft::payload_of(text)};
}
raft::Ready ready(std::vector<Entry> entries, std::optional<HardState> hard = std::nullopt) {
  raft::Ready r;
  r.entries = std::move(entries);
  r.hard_state = hard;
  return r;
}
std::string text_of(const raft::StartState& s) {
  std::string out =
      cat("term ", s.hard_state.term, " vote ", s.hard_state.vote, " commit ", s.hard_state.commit,
          " snapshot ", s.snapshot.index, " base ", s.log_base, "/", s.log_base_term, ":");
  for (const Entry& e : s.entries) {
    out += cat(" ", e.index, "/", e.term, "=", as_chars(*e.payload));
  }
  return out;
}
std::string stored(LogStore& store, std::uint64_t applied = 0) {
  auto s = store.recover(Index(applied));
  return s ? text_of(s.value()) : s.error().text();
}

TEST(LogStore, Reopened_HoldsWhatWasWritten) {
  sim::SimFs fs;
  {
    auto store = open_store(fs);
    ASSERT_TRUE(store) << store.error().text();
    EXPECT_EQ(store.value()->replica(), ReplicaId(7));
    EXPECT_EQ(stored(*store.value()), "term 0 vote 0 commit 0 snapshot 0 base 0/0:");
    const raft::Ready first = ready({entry(1, 1, "a"), entry(2, 1, "b"), entry(3, 1, "c")},
                                    HardState{Term(1), ReplicaId(7), Index(0)});
    // A later leader's entries replace those at and above the first of them.
    const raft::Ready second =
        ready({entry(2, 2, "B")}, HardState{Term(2), ReplicaId(9), Index(1)});
    ASSERT_TRUE(store.value()->write({&first, &second}));
  }
  auto store = open_store(fs);
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_EQ(store.value()->replica(), ReplicaId(7));
  EXPECT_EQ(stored(*store.value()), "term 2 vote 9 commit 1 snapshot 0 base 0/0: 1/1=a 2/2=B");
  EXPECT_EQ(store.value()->recover(Index(0)).value().snapshot.configuration, pair_of_nodes());
}

TEST(LogStore, OfAnotherNode_IsRefused) {
  sim::SimFs fs;
  ASSERT_TRUE(open_store(fs));
  auto other = open_store(fs, "n2");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Errc::conflict);
  EXPECT_NE(other.error().text().find("belongs to node n1, this is node n2"), std::string::npos);
}

// What was answered is there after a power cut, whole transactions only.
TEST(LogStore, PowerCutAtAnyPoint_KeepsEveryAnsweredTransaction) {
  std::size_t cuts = 0;
  for (std::uint64_t op = 1;; ++op) {
    sim::SimFs fs(op);
    std::uint64_t answered = 0;
    fs.cut_power_at(op);
    if (auto store = open_store(fs)) {
      while (answered < 8) {
        const std::uint64_t n = answered + 1;
        const raft::Ready r = ready({entry(2 * n - 1, n), entry(2 * n, n)},
                                    HardState{Term(n), ReplicaId(7), Index(0)});
        if (!store.value()->write({&r})) break;
        answered = n;
      }
    }
    const bool cut = fs.frozen();
    fs.power_cycle();
    auto store = open_store(fs);
    ASSERT_TRUE(store) << "cut at " << op << ": " << store.error().text();
    auto s = store.value()->recover(Index(0));
    ASSERT_TRUE(s) << s.error().text();
    const std::uint64_t term = s.value().hard_state.term.value();
    ASSERT_TRUE(term == answered || term == answered + 1) << "cut at " << op;
    ASSERT_EQ(s.value().entries.size(), 2 * term) << "cut at " << op;
    const raft::Ready more =
        ready({entry(2 * term + 1, 20)}, HardState{Term(20), ReplicaId(7), Index(0)});
    ASSERT_TRUE(store.value()->write({&more}));
    if (!cut) break;
    ++cuts;
  }
  EXPECT_GT(cuts, 60u);
}

TEST(LogStore, FailedWrite_LeavesWhatWasThere) {
  sim::SimFs fs;
  auto store = open_store(fs);
  ASSERT_TRUE(store);
  const raft::Ready first = ready({entry(1, 1)}, HardState{Term(1), ReplicaId(7), Index(0)});
  ASSERT_TRUE(store.value()->write({&first}));
  fs.fail_call(sim::FsCall::pwrite, 1, true, 28 /* ENOSPC */);
  const raft::Ready second = ready({entry(2, 1)});
  auto failed = store.value()->write({&second});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  EXPECT_FALSE(store.value()->sync_failed());
  fs.clear_failures();
  EXPECT_EQ(stored(*store.value()), "term 1 vote 7 commit 0 snapshot 0 base 0/0: 1/1=x");
  ASSERT_TRUE(store.value()->write({&second}));
  fs.fail_call(sim::FsCall::sync, 1);
  const raft::Ready third = ready({entry(3, 1)});
  ASSERT_FALSE(store.value()->write({&third}));
  EXPECT_TRUE(store.value()->sync_failed());
}

SnapshotWriter writes(std::string text) {
  return [text](const SnapshotSink& sink) -> Result<void> {
    // In odd pieces: the checksum knows only the whole.
    for (std::size_t at = 0; at < text.size(); at += 1000) {
      NARAD_TRY(sink(as_bytes(std::string_view(text).substr(at, 1000))));
    }
    return ok();
  };
}
SnapshotMeta meta_at(std::uint64_t index, std::uint64_t term) {
  SnapshotMeta meta;
  meta.index = Index(index);
  meta.term = Term(term);
  meta.configuration = pair_of_nodes();
  return meta;
}

TEST(LogStore, Compaction_KeepsTheSnapshotAndTheLogAboveItsBase) {
  sim::SimFs fs;
  const std::string text(600'000, 's');
  SnapshotMeta old_meta, meta;
  {
    auto store = open_store(fs);
    ASSERT_TRUE(store);
    std::vector<Entry> entries;
    for (std::uint64_t i = 1; i <= 10; ++i) entries.push_back(entry(i, 1));
    const raft::Ready r = ready(entries, HardState{Term(1), ReplicaId(7), Index(10)});
    ASSERT_TRUE(store.value()->write({&r}));
    old_meta = store.value()->write_snapshot(meta_at(2, 1), writes("old")).value();
    meta = store.value()->write_snapshot(meta_at(8, 1), writes(text)).value();
    EXPECT_EQ(meta.size_bytes, text.size());
    ASSERT_TRUE(store.value()->compact(meta, {Index(5), Term(1)}));
    ASSERT_TRUE(store.value()->remove_snapshots_but({meta}));
    EXPECT_FALSE(exists(fs, store.value()->path_of(old_meta)).value());
  }
  fs.power_cycle();
  auto store = open_store(fs);
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_EQ(stored(*store.value(), 9),
            "term 1 vote 7 commit 10 snapshot 8 base 5/1: 6/1=x 7/1=x 8/1=x 9/1=x 10/1=x");
  EXPECT_TRUE(store.value()->recover(Index(9)).value().snapshot.same_as(meta));
  EXPECT_TRUE(store.value()->verify_snapshot(meta));
  auto chunk = store.value()->read_chunk(meta, 599'990, 10);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(as_chars(chunk.value()), "ssssssssss");
  EXPECT_FALSE(store.value()->read_chunk(meta, 599'995, 10)) << "past its end";
  ASSERT_TRUE(fs.corrupt(store.value()->path_of(meta), 300'000, std::byte{1}));
  auto damaged = store.value()->verify_snapshot(meta);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code(), Errc::data_loss);
}

// Receives `text` in three pieces.
Result<void> stage(LogStore& store, const SnapshotMeta& meta, std::string_view text) {
  raft::Ready r;
  auto shared = std::make_shared<const SnapshotMeta>(meta);
  for (std::size_t at = 0; at < text.size(); at += text.size() / 3 + 1) {
    r.snapshot_writes.push_back(
        {shared, at, raft::payload_of(text.substr(at, text.size() / 3 + 1))});
  }
  return store.write({&r});
}

TEST(LogStore, StagedSnapshot_IsAcceptedOnlyIfItIsTheOneNamed) {
  sim::SimFs fs;
  auto store = open_store(fs);
  ASSERT_TRUE(store);
  const SnapshotMeta meta =
      store.value()->write_snapshot(meta_at(8, 3), writes("the state")).value();
  ASSERT_TRUE(stage(*store.value(), meta, "the stale"));
  auto refused = store.value()->accept_staged(meta);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::data_loss);
  ASSERT_TRUE(stage(*store.value(), meta, "the longer state"));
  EXPECT_FALSE(store.value()->accept_staged(meta));
  ASSERT_TRUE(stage(*store.value(), meta, "the state")) << "from the start again";
  EXPECT_TRUE(store.value()->accept_staged(meta));
  EXPECT_TRUE(store.value()->verify_snapshot(meta));
}

// The log and the applied state change one after the other: whatever the cut leaves, they agree.
TEST(LogStore, InstallCutAtAnyPoint_IsFinishedOrForgotten) {
  std::size_t forgotten = 0, finished = 0;
  for (std::uint64_t op = 1;; ++op) {
    sim::SimFs fs(op);
    std::uint64_t applied = 3;  // what the other database holds, durably
    {
      auto store = open_store(fs);
      ASSERT_TRUE(store);
      const raft::Ready r = ready({entry(1, 1), entry(2, 1), entry(3, 1), entry(4, 1)},
                                  HardState{Term(2), ReplicaId(9), Index(3)});
      ASSERT_TRUE(store.value()->write({&r}));
      const SnapshotMeta meta = store.value()->write_snapshot(meta_at(8, 2), writes("s")).value();
      ASSERT_TRUE(stage(*store.value(), meta, "s"));
      fs.cut_power_at(fs.ops() + op);
      if (store.value()->accept_staged(meta) && store.value()->begin_install(meta)) {
        applied = op % 2 == 0 ? 8 : 3;  // the state got there, or not
        if (applied == 8) (void)store.value()->finish_install(meta).has_value();
        if (applied == 3) (void)store.value()->cancel_install().has_value();
      }
    }
    const bool cut = fs.frozen();
    fs.power_cycle();
    auto store = open_store(fs);
    ASSERT_TRUE(store) << store.error().text();
    const std::string found = stored(*store.value(), applied);
    if (applied == 8) {
      ASSERT_EQ(found, "term 2 vote 9 commit 8 snapshot 8 base 8/2:") << "cut at " << op;
      ++finished;
    } else {
      ASSERT_EQ(found, "term 2 vote 9 commit 3 snapshot 0 base 0/0: 1/1=x 2/1=x 3/1=x 4/1=x")
          << "cut at " << op;
      ++forgotten;
    }
    if (!cut) break;
  }
  EXPECT_GT(finished, 3u);
  EXPECT_GT(forgotten, 5u);
}

std::string live_database(FileSystem& fs) {
  const auto listed = fs.list(kDirectory).value();
  for (const std::string& name : listed) {
    if (name.starts_with("raft.") && name.ends_with(".db")) return join_path(kDirectory, name);
  }
  return {};
}

TEST(LogStore, DamageOfAnyKind_RefusesTheStartAndNamesTheWayOut) {
  struct Case {
    std::string_view sql, why;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"DELETE FROM replica", "the replica id is missing"},
           {"DELETE FROM hard_state", "term and vote are missing"},
           {"UPDATE hard_state SET vote = 8", "term and vote are damaged"},
           {"DELETE FROM snapshot", "what the latest snapshot is, is missing"},
           {"UPDATE snapshot SET idx = 1", "the row of the snapshot is damaged"},
           {"DELETE FROM log_base", "where the log begins is missing"},
           {"UPDATE log SET payload = 'y' WHERE idx = 2", "entry 2 is damaged"},
           {"UPDATE log SET term = 2 WHERE idx = 3", "entry 3 is damaged"},
           {"UPDATE log SET kind = 9 WHERE idx = 1", "entry 1 is of unknown kind"}}) {
    sim::SimFs fs;
    {
      auto store = open_store(fs);
      ASSERT_TRUE(store);
      const raft::Ready r = ready({entry(1, 1), entry(2, 1), entry(3, 1)},
                                  HardState{Term(1), ReplicaId(7), Index(1)});
      ASSERT_TRUE(store.value()->write({&r}));
      sqlite::Database db = store.value()->release();
      ASSERT_TRUE(db.exec(std::string(c.sql)));
      ASSERT_TRUE(db.checkpoint());
    }
    auto store = open_store(fs);
    auto found = store ? store.value()->recover(Index(0)) : store.error();
    ASSERT_FALSE(found) << c.sql;
    EXPECT_EQ(found.error().code(), Errc::data_loss);
    EXPECT_NE(found.error().text().find(c.why), std::string::npos) << found.error().text();
    EXPECT_NE(found.error().text().find("narad fsck --quick /data."), std::string::npos);
    EXPECT_NE(found.error().text().find("move /data/metastore away"), std::string::npos);
  }
}

TEST(LogStore, DamagedPages_RefuseTheStart) {
  sim::SimFs fs;
  {
    auto store = open_store(fs);
    ASSERT_TRUE(store);
    const raft::Ready r =
        ready({entry(1, 1, std::string(20'000, 'x'))}, HardState{Term(1), ReplicaId(7), Index(1)});
    ASSERT_TRUE(store.value()->write({&r}));
    ASSERT_TRUE(store.value()->release().checkpoint());
  }
  ASSERT_TRUE(fs.corrupt(live_database(fs), 4096, std::byte{0xff}));
  auto store = open_store(fs);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), Errc::data_loss) << store.error().text();
}

}  // namespace
}  // namespace narad::raftnode
