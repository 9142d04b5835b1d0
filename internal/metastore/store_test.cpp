#include "internal/metastore/store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "internal/metastore/apply.h"
#include "pkg/base/text.h"
#include "pkg/sim/sim_fs.h"
#include "pkg/sqlite/generation_store.h"

namespace narad::metastore {
namespace {

constexpr const char* kDirectory = "/data/metastore";
constexpr const char* kHash = "$2b$10$abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUVWXYZ01234";

RegisterMember member(std::string id) {
  return {std::move(id), "127.0.0.1:7942", "127.0.0.1:7943", "boot", {"d1"}, UnixMillis(1000)};
}
CreateTopic creation(std::string name, std::uint64_t life) {
  CreateTopic c;
  c.name = std::move(name);
  c.incarnation = Incarnation(life);
  c.partitions = 3;
  c.visibility_timeout_ms = 30'000;
  c.max_in_flight_per_partition = 1024;
  c.max_acked_ahead_per_partition = 1024;
  c.schema = "true";
  return c;
}

// A store with the state it is to hold.
struct Fixture {
  std::unique_ptr<Store> store;
  State state;

  std::shared_ptr<sqlite::GenerationStore> generations;
  bool has_old_log = false;

  // As open_storage() does it: a directory without a state gets an empty one.
  static Result<Fixture> open(FileSystem& fs) {
    NARAD_TRY(make_directories(fs, kDirectory));
    NARAD_TRY(auto g, sqlite::GenerationStore::open(fs, kDirectory, {"raft", "state"}));
    Fixture f;
    f.generations = std::make_shared<sqlite::GenerationStore>(std::move(g));
    if (!f.generations->has(kStateName)) {
      NARAD_TRY(f.store, Store::create(f.generations, State{}));
      return f;
    }
    NARAD_TRY(auto opened, Store::open(f.generations));
    f.store = std::move(opened.store);
    f.state = std::move(opened.state);
    f.has_old_log = opened.has_old_log;
    return f;
  }
  Result<void> close() {
    std::vector<sqlite::Database> all;
    all.push_back(store->release());
    return generations->close_clean(std::move(all));
  }
  Result<void> commit(const std::vector<Command>& commands) {
    State after = state;
    for (const Command& c : commands) {
      const RaftIndex index = after.applied.next();
      apply(after, index, c);
    }
    NARAD_TRY(store->commit(state, after));
    state = std::move(after);
    check_invariants(state);
    return ok();
  }
};

// A history in which every table gains, changes and loses rows. Step n is the same in every run.
std::vector<Command> step_of_history(std::uint64_t n) {
  const std::string name = cat("topic-", n % 4);
  switch (n % 6) {
    case 0:
      return {member(cat("n", n % 3)),
              CreateUser{"svc", kHash, {}, false, UnixMillis(static_cast<std::int64_t>(n))},
              CreateUser{cat("guest-", n), kHash, {{GrantAction::consume, {"*"}}}, false, {}}};
    case 1:
    case 2:
      return {creation(name, n + 1)};
    case 3: {
      UpdateTopic u;
      u.name = cat("topic-", (n - 1) % 4);
      u.incarnation = Incarnation(n);
      u.partitions = static_cast<std::uint32_t>(4 + n % 3);
      return {u, PutSchema{u.name, u.incarnation, 2, "{}"}};
    }
    case 4:
      return {MarkUsed{cat("topic-", (n - 2) % 4), Incarnation(n - 1), PartitionId(0), "n0", "d1"},
              Heartbeats{{"n0", "n1"}, UnixMillis(static_cast<std::int64_t>(n))}};
    default:
      // Deleted and created again within one transaction: nothing of the old life may stay.
      return {DeleteTopic{cat("topic-", (n - 3) % 4), Incarnation(n - 2)},
              creation(cat("topic-", (n - 3) % 4), 1000 + n)};
  }
}

State state_of_steps(std::uint64_t steps) {
  State state;
  for (std::uint64_t n = 0; n < steps; ++n) {
    for (const Command& c : step_of_history(n)) apply(state, state.applied.next(), c);
  }
  return state;
}

TEST(Store, FirstOpen_HoldsTheEmptyState) {
  sim::SimFs fs;
  auto f = Fixture::open(fs);
  ASSERT_TRUE(f) << f.error().text();
  EXPECT_EQ(digest(f.value().state), digest(State{}));
  EXPECT_TRUE(f.value().close());
}

TEST(Store, Reopened_HoldsExactlyWhatWasCommitted) {
  sim::SimFs fs;
  for (std::uint64_t n = 0; n < 40; ++n) {
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f) << f.error().text();
    ASSERT_TRUE(f.value().commit(step_of_history(n)));
    const std::uint64_t sum = digest(f.value().state);
    if (n % 2 == 0) {
      ASSERT_TRUE(f.value().close());
    }
    f.value().store.reset();
    auto again = Fixture::open(fs);
    ASSERT_TRUE(again) << again.error().text();
    ASSERT_EQ(digest(again.value().state), sum) << "after step " << n;
    check_invariants(again.value().state);
    ASSERT_TRUE(again.value().close());
  }
}

TEST(Store, Users_ComeChangeAndGo) {
  sim::SimFs fs;
  const std::string other_hash = std::string(kHash).replace(59, 1, "z");
  const std::vector<std::vector<Command>> steps{
      {CreateUser{"admin", kHash, {}, true, UnixMillis(5)}},
      {CreateUser{"svc", kHash, {{GrantAction::produce, {"a*", "b"}}}, false, UnixMillis(6)}},
      {SetUserGrants{"svc", RaftIndex(2), {{GrantAction::consume, {"*"}}}, UnixMillis(7)},
       SetUserPassword{"admin", RaftIndex(1), other_hash, UnixMillis(8)}},
      {DeleteUser{"svc", RaftIndex(3)}}};
  for (const auto& step : steps) {
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f) << f.error().text();
    ASSERT_TRUE(f.value().commit(step));
    const std::uint64_t sum = digest(f.value().state);
    f.value().store.reset();
    auto again = Fixture::open(fs);
    ASSERT_TRUE(again) << again.error().text();
    ASSERT_EQ(digest(again.value().state), sum);
    ASSERT_TRUE(again.value().close());
  }
  auto f = Fixture::open(fs);
  ASSERT_TRUE(f);
  EXPECT_EQ(f.value().state.users.size(), 1u);
  EXPECT_EQ(f.value().state.users.find("admin")->password_hash, other_hash);
  EXPECT_EQ(f.value().state.versions.users, RaftIndex(5));
}

TEST(Store, WhatHoldsMovesBack_IsThereAfterARestart) {
  sim::SimFs fs(1);
  auto f = Fixture::open(fs);
  ASSERT_TRUE(f) << f.error().text();
  ASSERT_TRUE(f.value().commit({SetMoveRate{50'000'000}, PauseMoves{"", true}}));
  f.value().store.reset();
  auto again = Fixture::open(fs);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again.value().state.move_rate, 50'000'000u);
  EXPECT_TRUE(again.value().state.moves_paused);
  ASSERT_TRUE(again.value().close());
}

// Fails the n-th call of the disk for n = 1, 2, …; with power cuts, at the n-th change of it.
TEST(Store, PowerCutAtAnyPoint_ShowsAPastStateNotBeforeTheLastCheckpoint) {
  std::size_t cut_runs = 0, fell_behind = 0;
  for (std::uint64_t op = 1;; op += 3) {
    sim::SimFs fs(op);
    std::uint64_t answered = 0;       // steps whose commit answered ok
    std::vector<std::uint64_t> sums;  // of the state after so many steps
    std::size_t durable = 0;          // steps before the last checkpoint
    fs.cut_power_at(op);
    {
      auto f = Fixture::open(fs);
      if (f) {
        sums.push_back(digest(f.value().state));
        while (answered < 12 && f.value().commit(step_of_history(answered))) {
          ++answered;
          sums.push_back(digest(f.value().state));
          if (answered % 5 == 0 && f.value().store->checkpoint()) durable = answered;
        }
        if (answered == 12) (void)f.value().close().has_value();
      }
    }
    const bool was_cut = fs.frozen();
    fs.power_cycle();
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f) << "cut at " << op << ": " << f.error().text();
    const std::uint64_t found = digest(f.value().state);
    // The transaction in flight may have become durable before its answer.
    State next;
    for (std::uint64_t n = 0; n <= answered; ++n) {
      for (const Command& c : step_of_history(n)) apply(next, next.applied.next(), c);
    }
    if (sums.empty()) sums.push_back(digest(State{}));
    sums.push_back(digest(next));
    ASSERT_TRUE(std::find(sums.begin() + static_cast<std::ptrdiff_t>(durable), sums.end(), found) !=
                sums.end())
        << "cut at " << op << " after " << answered << " answers, " << durable << " durable";
    if (found != sums[sums.size() - 2]) ++fell_behind;
    check_invariants(f.value().state);
    ASSERT_TRUE(f.value().commit(step_of_history(50))) << "cut at " << op;
    if (!was_cut) break;
    ++cut_runs;
  }
  EXPECT_GT(cut_runs, 30u);
  EXPECT_GT(fell_behind, 3u);
}

TEST(Store, Replaced_HoldsTheNewStateOrTheOldOneWhole) {
  State old_state = state_of_steps(8), new_state = state_of_steps(20);
  std::size_t kept = 0, replaced = 0;
  for (std::uint64_t op = 1;; ++op) {
    sim::SimFs fs(op);
    {
      auto f = Fixture::open(fs);
      ASSERT_TRUE(f);
      ASSERT_TRUE(f.value().store->commit(State{}, old_state));
      ASSERT_TRUE(f.value().store->checkpoint());
      fs.cut_power_at(fs.ops() + op);
      const bool answered = f.value().store->replace(new_state).has_value();
      if (answered && f.value().store->commit(new_state, new_state)) {
        // It goes on with the new database.
      }
      if (!fs.frozen()) {
        ASSERT_TRUE(answered);
      }
    }
    const bool was_cut = fs.frozen();
    fs.power_cycle();
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f) << "cut at " << op << ": " << f.error().text();
    const std::uint64_t found = digest(f.value().state);
    ASSERT_TRUE(found == digest(old_state) || found == digest(new_state)) << "cut at " << op;
    ++(found == digest(old_state) ? kept : replaced);
    if (!was_cut) break;
  }
  EXPECT_GT(kept, 10u);
  EXPECT_GT(replaced, 3u);
}

TEST(Store, AnyFailingWrite_IsRefusedAndLeavesTheOldState) {
  std::size_t failed_runs = 0;
  for (std::uint64_t n = 1; n < 200; ++n) {
    sim::SimFs fs(n);
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f);
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(f.value().commit(step_of_history(i)));
    const std::uint64_t before = digest(f.value().state);
    fs.fail_call(sim::FsCall::pwrite, n, /*persistent=*/false, 28 /* ENOSPC */);
    auto result = f.value().commit(step_of_history(5));
    if (result) break;  // fewer writes than n: every one was tried
    ++failed_runs;
    EXPECT_EQ(result.error().code(), Errc::unavailable) << result.error().text();
    EXPECT_FALSE(f.value().store->sync_failed());
    EXPECT_EQ(digest(f.value().state), before);
    // It recovers without a restart.
    fs.clear_failures();
    ASSERT_TRUE(f.value().commit(step_of_history(5)));
    const std::uint64_t after = digest(f.value().state);
    f.value().store.reset();
    auto again = Fixture::open(fs);
    ASSERT_TRUE(again);
    EXPECT_EQ(digest(again.value().state), after);
  }
  EXPECT_GT(failed_runs, 0u);
}

TEST(Store, FailedSync_IsToldApart) {
  sim::SimFs fs;
  auto f = Fixture::open(fs);
  ASSERT_TRUE(f);
  fs.fail_call(sim::FsCall::sync, 1);
  auto result = f.value().commit(step_of_history(0));
  ASSERT_FALSE(result);
  EXPECT_TRUE(f.value().store->sync_failed());
  EXPECT_FALSE(f.value().commit(step_of_history(1)));
}

std::string live_database(FileSystem& fs) {
  auto names = fs.list(kDirectory);
  for (const std::string& name : names.value()) {
    if (name.starts_with("state.") && name.ends_with(".db")) return join_path(kDirectory, name);
  }
  return {};
}

// Changes the database behind the store's back, as only damage (or a person) would.
void tamper(FileSystem& fs, const std::string& sql) {
  auto db = sqlite::Database::open(fs, live_database(fs), {sqlite::OpenAs::existing});
  ASSERT_TRUE(db) << db.error().text();
  ASSERT_TRUE(db.value().exec(sql));
  ASSERT_TRUE(db.value().checkpoint());
}

TEST(Store, RowsThatContradictEachOther_RefuseTheStartAndNameTheWayOut) {
  struct Case {
    std::string_view sql, why;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"DELETE FROM summary", "the summary row is missing"},
           {"UPDATE summary SET doc = '{'", "stored summary cannot be read"},
           {"DELETE FROM assignment WHERE partition = 1",
            "topic orders has 3 partitions, but assignments for the first 1"},
           {"DELETE FROM topic", "there are assignments or schemas without their topic"},
           {"DELETE FROM topic_schema WHERE version = 1", "lacks a schema version before 2"},
           {"UPDATE member SET doc = replace(doc, 'alive', 'asleep')", "has the unknown value"},
           {"UPDATE topic SET name = 'other'", "topic other holds the row of orders"},
           {"UPDATE user SET name = 'other'", "user other holds the row of svc"},
           {"UPDATE user SET doc = replace(doc, 'produce', 'fly')", "has the unknown value"}}) {
    sim::SimFs fs;
    {
      auto f = Fixture::open(fs);
      ASSERT_TRUE(f);
      CreateTopic orders = creation("orders", 7);
      ASSERT_TRUE(
          f.value().commit({member("n1"), orders, PutSchema{"orders", Incarnation(7), 2, "{}"},
                            CreateUser{"svc", kHash, {{GrantAction::produce, {"*"}}}, false, {}}}));
      ASSERT_TRUE(f.value().close());
    }
    tamper(fs, std::string(c.sql));
    auto f = Fixture::open(fs);
    ASSERT_FALSE(f) << c.sql;
    EXPECT_EQ(f.error().code(), Errc::data_loss) << f.error().text();
    EXPECT_NE(f.error().text().find(c.why), std::string::npos) << f.error().text();
    EXPECT_NE(f.error().text().find("narad fsck --quick /data."), std::string::npos)
        << f.error().text();
  }
}

TEST(Store, DamagedPages_RefuseTheStart) {
  sim::SimFs fs;
  {
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f);
    for (std::uint64_t n = 0; n < 30; ++n) ASSERT_TRUE(f.value().commit(step_of_history(n)));
    ASSERT_TRUE(f.value().close());
  }
  // The root page of the second table: its b-tree header becomes nonsense.
  ASSERT_TRUE(fs.corrupt(live_database(fs), 4096, std::byte{0xff}));
  auto f = Fixture::open(fs);
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code(), Errc::data_loss) << f.error().text();
}

// A state with something in every field that this release can set.
std::vector<Command> golden_history() {
  CreateTopic orders = creation("orders", 0xfedcba9876543210u);
  orders.owner = "admin";
  orders.retention_ms = 604'800'000;
  orders.created_at_s = 1'783'615'000;
  CreateTopic plain = creation("Plain.topic_1", 2);
  plain.schema.reset();
  return {FoundCluster{"00000000000000ab"},
          RegisterMember{"n1",
                         "127.0.0.1:7942",
                         "127.0.0.1:7943",
                         "boot-1",
                         {"d1", "d2"},
                         UnixMillis(1'783'615'000'123)},
          RegisterMember{"n2", "[::1]:7942", "[::1]:7943", "boot-2", {"d3"}, UnixMillis(5)},
          orders,
          PutSchema{"orders", orders.incarnation, 2, "{\"title\":\"\xC3\xA9\"}"},
          SetDraining{"n2", true},
          plain,
          MarkDead{"n2", RaftIndex(3)},
          MarkUsed{"orders", orders.incarnation, PartitionId(0), "n1", "d1"}};
}

// With users, whose table came later.
std::vector<Command> golden_history_with_users() {
  std::vector<Command> history = golden_history();
  history.push_back(CreateUser{"admin", kHash, {}, true, UnixMillis(1'783'615'000'123)});
  history.push_back(
      CreateUser{"svc",
                 kHash,
                 {{GrantAction::produce, {"orders-*", "x"}}, {GrantAction::admin, {}}},
                 false,
                 UnixMillis(1'783'615'000'124)});
  return history;
}

void copy_in(FileSystem& fs, const std::filesystem::path& golden) {
  ASSERT_TRUE(make_directories(fs, kDirectory));
  ASSERT_TRUE(std::filesystem::is_directory(golden)) << "run in the source root";
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::string path = join_path(kDirectory, entry.path().filename().string());
    ASSERT_TRUE(replace_file(fs, path, as_bytes(bytes)));
  }
}

State state_of(const std::vector<Command>& history) {
  State state;
  for (const Command& c : history) {
    EXPECT_TRUE(apply(state, state.applied.next(), c).done());
  }
  return state;
}

// Each directory in testdata/golden/metastore was written by an earlier release; it and its digest
// below never change. What comes later gets a directory of its own beside them.
TEST(Store, GoldenDirectories_AreReadAsTheyWereWritten) {
  struct Case {
    const char* directory;
    std::vector<Command> history;
    const char* digest;
  };
  for (const Case& c : {Case{"v1", golden_history(), "f2fc3dc4d1f32ee3"},
                        Case{"v1_users", golden_history_with_users(), "729012ea5a97d30d"}}) {
    sim::SimFs fs;
    copy_in(fs, std::filesystem::path("testdata/golden/metastore") / c.directory);
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f) << f.error().text();
    check_invariants(f.value().state);
    const State expected = state_of(c.history);
    EXPECT_EQ(digest(f.value().state), digest(expected));
    EXPECT_EQ(to_hex16(digest(expected)), c.digest);
    EXPECT_TRUE(f.value().has_old_log);
  }
}

TEST(Store, PowerCutWhileTablesAreAdded_LosesNothing) {
  const State expected = state_of(golden_history());
  bool cut = true;
  for (std::uint64_t op = 1; cut; ++op) {
    sim::SimFs fs(op);
    copy_in(fs, "testdata/golden/metastore/v1");
    fs.cut_power_at(op);
    (void)Fixture::open(fs).has_value();
    cut = fs.frozen();
    fs.power_cycle();
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f) << "cut at " << op << ": " << f.error().text();
    ASSERT_EQ(digest(f.value().state), digest(expected));
    ASSERT_TRUE(f.value().commit({CreateUser{"admin", kHash, {}, true, UnixMillis(5)}}));
  }
}

TEST(Store, FormatOfAnotherRelease_IsRefusedUnchanged) {
  sim::SimFs fs;
  {
    auto f = Fixture::open(fs);
    ASSERT_TRUE(f);
    ASSERT_TRUE(f.value().close());
  }
  tamper(fs, "PRAGMA user_version = 9");
  auto f = Fixture::open(fs);
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code(), Errc::internal);
  EXPECT_NE(f.error().text().find("has format 9; this release reads 2"), std::string::npos);
}

}  // namespace
}  // namespace narad::metastore
