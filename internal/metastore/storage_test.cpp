#include "internal/metastore/storage.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "internal/metastore/apply.h"
#include "internal/metastore/snapshot.h"
#include "pkg/base/text.h"
#include "pkg/sim/sim_fs.h"
#include "pkg/sqlite/generation_store.h"

namespace narad::metastore {
namespace {

constexpr const char* kDirectory = "/data/metastore";

Result<Storage> open(FileSystem& fs, bool alone = true, std::uint64_t replica = 77) {
  return open_storage(fs, kDirectory, {"n1", raft::ReplicaId(replica), alone});
}

void copy_in(FileSystem& fs, const std::string& golden) {
  ASSERT_TRUE(make_directories(fs, kDirectory));
  for (const auto& entry :
       std::filesystem::directory_iterator("testdata/golden/metastore/" + golden)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::string path = join_path(kDirectory, entry.path().filename().string());
    ASSERT_TRUE(replace_file(fs, path, as_bytes(bytes)));
  }
}

std::string files_named(FileSystem& fs, std::string_view part) {
  std::string out;
  const auto listed = fs.list(kDirectory).value();
  for (const std::string& name : listed) {
    if (name.find(part) != std::string::npos) out += name + " ";
  }
  return out;
}

TEST(Storage, FirstStart_MakesAGroupOfOneOrWaits) {
  for (bool alone : {true, false}) {
    sim::SimFs fs;
    auto s = open(fs, alone);
    ASSERT_TRUE(s) << s.error().text();
    EXPECT_EQ(s.value().log->replica(), raft::ReplicaId(77));
    EXPECT_EQ(s.value().start.snapshot.configuration.empty(), !alone);
    EXPECT_EQ(s.value().state.applied, RaftIndex(0));
    ASSERT_TRUE(close_storage(s.value()));
    // The replica id is drawn once.
    auto again = open(fs, alone, 78);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(again.value().log->replica(), raft::ReplicaId(77));
    EXPECT_EQ(again.value().start.snapshot.configuration.empty(), !alone);
  }
}

TEST(Storage, FirstStartCutAtAnyPoint_StartsAgain) {
  std::size_t cuts = 0;
  for (std::uint64_t op = 1;; ++op) {
    sim::SimFs fs(op);
    fs.cut_power_at(op);
    (void)open(fs).has_value();
    const bool cut = fs.frozen();
    fs.power_cycle();
    auto s = open(fs);
    ASSERT_TRUE(s) << "cut at " << op << ": " << s.error().text();
    EXPECT_EQ(s.value().start.snapshot.configuration.voter_count(), 1u);
    if (!cut) break;
    ++cuts;
  }
  EXPECT_GT(cuts, 40u);
}

TEST(Storage, DirectoryFromBeforeRaft_BecomesAGroupOfOneWithItsState) {
  for (const char* golden : {"v1", "v1_users"}) {
    sim::SimFs fs;
    copy_in(fs, golden);
    auto s = open(fs);
    ASSERT_TRUE(s) << s.error().text();
    const RaftIndex applied = s.value().state.applied;
    EXPECT_GT(applied, RaftIndex(8));
    EXPECT_EQ(s.value().start.snapshot.index, applied);
    EXPECT_EQ(s.value().start.hard_state.commit, applied);
    EXPECT_EQ(raft::describe(s.value().start.snapshot.configuration), "n1(77)");
    const std::uint64_t sum = digest(s.value().state);
    EXPECT_EQ(to_hex16(sum), std::string(golden) == "v1" ? "f2fc3dc4d1f32ee3" : "729012ea5a97d30d");
    // The first snapshot is that state.
    auto snapshot = read_snapshot_file(fs, s.value().log->path_of(s.value().start.snapshot));
    ASSERT_TRUE(snapshot) << snapshot.error().text();
    EXPECT_EQ(digest(snapshot.value()), sum);
    ASSERT_TRUE(close_storage(s.value()));
    auto again = open(fs);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(digest(again.value().state), sum);
    EXPECT_EQ(again.value().start.snapshot.index, applied);
  }
}

TEST(Storage, MigrationCutAtAnyPoint_LosesNothing) {
  std::size_t cuts = 0;
  for (bool torn : {false, true}) {
    for (std::uint64_t op = 1;; ++op) {
      sim::SimFs fs(op);
      copy_in(fs, "v1_users");
      const auto how = torn ? sim::SimFs::Cut::during_call : sim::SimFs::Cut::before_call;
      fs.cut_power_at(fs.ops() + op, {}, how);
      (void)open(fs).has_value();
      const bool cut = fs.frozen();
      fs.power_cycle();
      auto s = open(fs);
      ASSERT_TRUE(s) << "cut at " << op << ": " << s.error().text();
      ASSERT_EQ(to_hex16(digest(s.value().state)), "729012ea5a97d30d") << "cut at " << op;
      ASSERT_EQ(s.value().start.snapshot.index, s.value().state.applied);
      ASSERT_TRUE(s.value().log->verify_snapshot(s.value().start.snapshot)) << "cut at " << op;
      if (!cut) break;
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 100u);
}

RegisterMember member(std::string id) {
  return {std::move(id), "127.0.0.1:7942", "127.0.0.1:7943", "boot", {"d1"}, UnixMillis(1000)};
}

// Five entries, of which a snapshot holds three, and which are all in the applied state.
struct World {
  sim::SimFs fs;
  State at_snapshot;
  State state;

  void make(bool with_snapshot = true) {
    auto opened = open(fs);
    ASSERT_TRUE(opened) << opened.error().text();
    Storage& s = opened.value();
    raft::Ready r;
    r.hard_state = raft::HardState{raft::Term(1), raft::ReplicaId(77), RaftIndex(5)};
    for (std::uint64_t i = 1; i <= 5; ++i) {
      const Command c = member(cat("m", i));
      apply(state, RaftIndex(i), c);
      r.entries.push_back(
          {RaftIndex(i), raft::Term(1), raft::EntryKind::command, raft::payload_of(encode(c))});
      if (i == 3) at_snapshot = state;
    }
    ASSERT_TRUE(s.log->write({&r}));
    ASSERT_TRUE(s.store->commit(State{}, state));
    ASSERT_TRUE(s.store->checkpoint());
    if (with_snapshot) {
      raft::SnapshotMeta meta = s.start.snapshot;
      meta.index = RaftIndex(3);
      meta.term = raft::Term(1);
      meta = s.log
                 ->write_snapshot(meta,
                                  [this](const raftnode::SnapshotSink& sink) {
                                    return write_snapshot(at_snapshot, sink);
                                  })
                 .value();
      ASSERT_TRUE(s.log->compact(meta, {RaftIndex(3), raft::Term(1)}));
    }
    ASSERT_TRUE(close_storage(s));
  }
  std::string live(std::string_view name) {
    const auto listed = fs.list(kDirectory).value();
    for (const std::string& file : listed) {
      if (file.starts_with(name) && file.ends_with(".db")) return join_path(kDirectory, file);
    }
    return {};
  }
  void damage(std::string_view name) { ASSERT_TRUE(fs.corrupt(live(name), 4096, std::byte{0xff})); }
};

TEST(Storage, DamagedState_IsMadeAnewFromSnapshotAndLogAndKeptAside) {
  for (bool with_snapshot : {true, false}) {
    World w;
    w.make(with_snapshot);
    w.damage("state.");
    auto s = open(w.fs);
    ASSERT_TRUE(s) << s.error().text();
    EXPECT_NE(s.value().repaired.find("damaged"), std::string::npos);
    EXPECT_EQ(digest(s.value().state), digest(with_snapshot ? w.at_snapshot : State{}));
    // Applying the log again gives what was there.
    State again = s.value().state;
    for (const raft::Entry& e : s.value().start.entries) {
      if (e.index > again.applied) apply(again, e.index, decode_command(as_chars(*e.payload)));
    }
    EXPECT_EQ(digest(again), digest(w.state));
    EXPECT_NE(files_named(w.fs, ".damaged"), "");
    ASSERT_TRUE(close_storage(s.value()));
    auto later = open(w.fs);
    ASSERT_TRUE(later) << later.error().text();
    EXPECT_EQ(later.value().repaired, "");
  }
}

// traps.md 35: a damaged snapshot read as an empty state had streams deleted everywhere.
TEST(Storage, Trap35_DamagedStateAndSnapshot_RefuseTheStartAndNameTheWayOut) {
  World w;
  w.make();
  w.damage("state.");
  std::string snapshot;
  const auto listed = w.fs.list(kDirectory).value();
  for (const std::string& name : listed) {
    if (name.starts_with("snapshot.")) snapshot = join_path(kDirectory, name);
  }
  ASSERT_TRUE(w.fs.corrupt(snapshot, 20, std::byte{1}));
  auto s = open(w.fs);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code(), Errc::data_loss);
  EXPECT_NE(s.error().text().find("narad fsck --quick /data."), std::string::npos);
  EXPECT_EQ(files_named(w.fs, ".damaged"), "") << "nothing was changed";
}

TEST(Storage, DamagedLog_RefusesTheStart) {
  World w;
  w.make();
  w.damage("raft.");
  auto s = open(w.fs);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code(), Errc::data_loss);
  EXPECT_NE(s.error().text().find("raft."), std::string::npos) << s.error().text();
}

TEST(Storage, StateWithoutItsLog_RefusesTheStart) {
  sim::SimFs fs;
  ASSERT_TRUE(make_directories(fs, kDirectory));
  {
    auto g = sqlite::GenerationStore::open(fs, kDirectory, {"raft", "state"});
    ASSERT_TRUE(g);
    auto shared = std::make_shared<sqlite::GenerationStore>(std::move(g.value()));
    ASSERT_TRUE(Store::create(shared, State{}));
  }
  auto s = open(fs);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code(), Errc::data_loss);
  EXPECT_NE(s.error().text().find("not the Raft log"), std::string::npos) << s.error().text();
}

TEST(Storage, WaitingStore_MayFoundLater) {
  sim::SimFs fs;
  {
    auto s = open(fs, false);
    ASSERT_TRUE(s);
    ASSERT_TRUE(close_storage(s.value()));
  }
  auto s = open(fs, true);
  ASSERT_TRUE(s);
  EXPECT_EQ(raft::describe(s.value().start.snapshot.configuration), "n1(77)");
}

}  // namespace
}  // namespace narad::metastore
