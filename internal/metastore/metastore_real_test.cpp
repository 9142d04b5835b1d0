// The metastore on the real doors: its log, its state and its snapshots are written by other
// threads here, side by side, so this is what the thread sanitizer has to see.
#include <gtest/gtest.h>

#include <filesystem>

#include "internal/metastore/metastore.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"

namespace narad::metastore {
namespace {

using namespace std::chrono_literals;

constexpr int kProposers = 8;
constexpr int kEach = 60;

Task<void> propose_many(Metastore& store, int proposer, std::uint64_t& done) {
  for (int i = 0; i < kEach; ++i) {
    RegisterMember m{cat("n", proposer), cat("h:", i), "c:1", "b", {"d1"}, UnixMillis(i)};
    auto r = co_await store.propose(std::move(m));
    EXPECT_TRUE(r) << r.error().text();
    if (r && r.value().done()) ++done;
    // What was answered is visible.
    EXPECT_EQ(store.view()->members.find(cat("n", proposer))->http_addr, cat("h:", i));
  }
}

Task<int> run(Env& env, std::string directory) {
  std::uint64_t sum = 0;
  for (int life = 0; life < 3; ++life) {
    MetastoreOptions options;
    options.node_id = "n1";
    options.raft.snapshot_entries = 40;  // written while proposals go on
    options.raft.keep_entries = 10;
    auto opened = co_await Metastore::open(env, directory, std::move(options));
    EXPECT_TRUE(opened) << opened.error().text();
    if (!opened) co_return 1;
    Metastore& store = *opened.value();
    if (life > 0) {
      EXPECT_EQ(store.view()->members.size(), std::size_t{kProposers});
      EXPECT_EQ(store.view()->members.find("n3")->http_addr, cat("h:", kEach - 1));
    }
    std::uint64_t done = 0;
    TaskGroup proposers(env);
    for (int p = 0; p < kProposers; ++p) {
      proposers.spawn("propose", propose_many(store, p, done));
    }
    while (proposers.size() > 0) co_await sleep_for(env, 1ms);
    co_await proposers.stop();
    EXPECT_EQ(done, std::uint64_t{kProposers * kEach});
    auto barrier = co_await store.barrier(5s);
    EXPECT_TRUE(barrier);
    EXPECT_TRUE(store.caught_up());
    sum += done;
    co_await store.close();
  }
  EXPECT_EQ(sum, std::uint64_t{3 * kProposers * kEach});
  co_return 0;
}

TEST(MetastoreOnTheRealDoors, ConcurrentProposalsAndSnapshots_LoseNothingOverRestarts) {
  RuntimeOptions runtime_options;
  runtime_options.log.level = LogLevel::error;
  Runtime runtime(runtime_options);
  const auto root = std::filesystem::temp_directory_path() /
                    cat("narad-metastore-", to_hex16(runtime.env().random.next()));
  EXPECT_EQ(runtime.run(run(runtime.env(), root / "metastore")), 0);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace narad::metastore
