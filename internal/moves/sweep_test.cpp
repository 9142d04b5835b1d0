#include "internal/moves/sweep.h"

#include <gtest/gtest.h>

#include "internal/metastore/apply.h"
#include "internal/moves/local_copy.h"
#include "pkg/base/text.h"
#include "pkg/seglog/log.h"
#include "pkg/sim/solo.h"

namespace narad::moves {
namespace {

constexpr LogId kLog{7};
constexpr Incarnation kLife{5};

// A log of `records` records, of which some lie in sealed segments.
void write_log(FileSystem& fs, const std::string& directory, int records) {
  ASSERT_TRUE(make_directories(fs, directory));
  seglog::SegmentedLog::OpenOptions options;
  options.directory = directory;
  options.create_if_missing = true;
  options.fresh_id = kLog;
  options.knobs.segment_bytes = 2'000;
  auto log = seglog::SegmentedLog::open(fs, options);
  ASSERT_TRUE(log) << log.error().text();
  for (int i = 0; i < records; ++i) {
    const std::string payload = cat("record ", i, std::string(100, '.'));
    seglog::AppendBatch batch;
    batch.records.push_back({Sequence(0), {"", payload}});
    ASSERT_TRUE(log.value()->stage({batch}, UnixMillis(1'000'000 + i)));
    log.value()->publish();
  }
  ASSERT_TRUE(log.value()->close());
}

TEST(LocalCopy, ReadsIdentitySegmentsAndEndWithoutChangingAnything) {
  sim::Solo solo;
  FileSystem& fs = solo.machine.disk();
  write_log(fs, "/d/p", 50);
  const auto before = fs.list("/d/p").value();
  auto copy = read_local_copy(fs, "/d/p");
  ASSERT_TRUE(copy) << copy.error().text();
  EXPECT_EQ(copy.value().log, kLog);
  EXPECT_EQ(copy.value().end, Offset(50));
  EXPECT_GT(copy.value().segments.size(), 2u);
  EXPECT_FALSE(copy.value().segments.back().sealed);
  EXPECT_TRUE(copy.value().segments.front().sealed);
  EXPECT_EQ(fs.list("/d/p").value(), before);
  // The same from frames alone, as after a crash that lost the watermark.
  ASSERT_TRUE(fs.remove("/d/p/hwm"));
  auto unmarked = read_local_copy(fs, "/d/p");
  ASSERT_TRUE(unmarked);
  EXPECT_EQ(unmarked.value().end, Offset(50));
  EXPECT_EQ(unmarked.value().log, kLog);
}

// It came here by a move itself, and its marker has survived that the partition moved on.
TEST(LocalCopy, MRK_8_ItsOwnMarker_VouchesForNothing) {
  sim::Solo solo;
  FileSystem& fs = solo.machine.disk();
  write_log(fs, "/d/p", 50);
  wire::MoveMarker marker;
  marker.source = "old";
  marker.self = "old";
  marker.incarnation = kLife;
  marker.promoted_hwm = Offset(50);
  marker.durable_at = UnixMillis(1);
  const std::string text = wire::encode_marker_file(marker);
  ASSERT_TRUE(replace_file(fs, join_path("/d/p", wire::kMoveMarkerFileName), as_bytes(text)));
  auto copy = read_local_copy(fs, "/d/p");
  ASSERT_TRUE(copy) << copy.error().text();
  wire::Listing owner;
  owner.incarnation = kLife;
  owner.log = kLog;
  owner.hwm = Offset(60);
  for (const LocalSegment& s : copy.value().segments) {
    owner.segments.push_back({s.base, s.bytes, s.sealed, s.mtime});
  }
  SweepTerms terms;
  terms.self = "old";
  const auto verdict = [&] { return judge_stale_copy(copy.value(), owner, terms).verdict; };
  EXPECT_EQ(verdict(), SweepVerdict::quarantine) << "the owner has none";
  owner.marker = marker;
  owner.marker->promoted_hwm = Offset(40);
  EXPECT_EQ(verdict(), SweepVerdict::quarantine) << "the owner's says less";
  owner.marker->promoted_hwm = Offset(50);
  EXPECT_EQ(verdict(), SweepVerdict::reclaim);
}

TEST(LocalCopy, EmptyDirectoryAndNoDirectory_AreToldApart) {
  sim::Solo solo;
  FileSystem& fs = solo.machine.disk();
  ASSERT_TRUE(make_directories(fs, "/d/p"));
  EXPECT_TRUE(read_local_copy(fs, "/d/p").value().empty_directory);
  EXPECT_EQ(read_local_copy(fs, "/d/q").error().code(), Errc::not_found);
}

// One topic with one partition, owned by "new".
class FakeMetastore final : public metastore::Proposer {
 public:
  explicit FakeMetastore(Env& env) : changed_(env) {}
  Task<Result<metastore::CommandResult>> propose(metastore::Command) override {
    co_return Error(Errc::unavailable, "not asked for here");
  }
  metastore::ViewPtr view() const override { return state; }
  Event& changed() override { return changed_; }
  Task<Result<RaftIndex>> barrier(Nanos) override {
    ++barriers;
    if (!leader_there) co_return Error(Errc::unavailable, "no leader");
    co_return RaftIndex(1);
  }
  metastore::LeaderView leader() const override { return {}; }
  bool caught_up() const override { return true; }

  metastore::ViewPtr state = std::make_shared<const metastore::State>();
  bool leader_there = true;
  int barriers = 0;

 private:
  Event changed_;
};

class FakeOwner final : public SourceCalls {
 public:
  Task<Result<wire::Listing>> listing(std::string node, wire::MoveRef move) override {
    asked.push_back(node);
    EXPECT_EQ(move.move_id, RaftIndex(0));
    if (error) co_return *error;
    co_return answer;
  }
  Task<Result<std::string>> chunk(std::string, wire::MoveRef, Offset, std::uint64_t,
                                  std::uint64_t) override {
    co_return Error(Errc::internal, "not asked for here");
  }
  Task<Result<wire::SegmentDigests>> digests(std::string, wire::MoveRef, Offset) override {
    co_return Error(Errc::internal, "not asked for here");
  }
  Task<Result<wire::FreezeAnswer>> freeze(std::string, wire::FreezeRequest) override {
    co_return Error(Errc::internal, "not asked for here");
  }
  wire::Listing answer;
  std::optional<Error> error;
  std::vector<std::string> asked;
};

class FakePlace final : public SweepPlace {
 public:
  Task<Result<std::vector<StaleCopy>>> stale_copies() override {
    co_return std::vector<StaleCopy>{
        {{"orders", PartitionId(3)}, kLife, "disk", "/d/orders/3", "new", used}};
  }
  Task<Result<LocalCopy>> inspect(StaleCopy) override {
    events.emplace_back("inspect");
    if (unreadable) co_return *unreadable;
    co_return copy;
  }
  Task<Result<void>> reclaim(StaleCopy, LocalCopy seen) override {
    EXPECT_EQ(seen.end, copy.end);
    events.emplace_back("reclaim");
    if (refuse) co_return *refuse;
    co_return ok();
  }
  Task<Result<std::string>> set_aside(StaleCopy, std::string) override {
    events.emplace_back("set aside");
    if (refuse) co_return *refuse;
    co_return std::string("/d/orders/3.quarantine");
  }
  bool clock_trusted() const override { return true; }

  LocalCopy copy;
  bool used = true;
  std::optional<Error> unreadable, refuse;
  std::vector<std::string> events;
};

struct World {
  sim::Solo solo;
  FakeMetastore metastore{solo.env()};
  FakeOwner owner;
  FakePlace place;
  Sweep sweep{solo.env(), "old", metastore, owner, place};

  World() {
    place.copy.log = kLog;
    place.copy.segments = {{Offset(0), 100, false, UnixMillis(1)}};
    place.copy.end = Offset(10);
    owner.answer.incarnation = kLife;
    owner.answer.log = kLog;
    owner.answer.hwm = Offset(12);
    owner.answer.segments = {{Offset(0), 120, false, UnixMillis(1)}};
    wire::MoveMarker marker;
    marker.source = "old";
    marker.incarnation = kLife;
    marker.promoted_hwm = Offset(10);
    marker.durable_at = UnixMillis(1);
    owner.answer.marker = marker;
  }
  void run() {
    auto done = solo.run([this](Env&) { return sweep.run(); });
    EXPECT_TRUE(done);
  }
  using Events = std::vector<std::string>;
};

TEST(Sweep, SWP_2_the_owner_is_asked_before_the_copy_is_reclaimed) {
  World world;
  world.run();
  EXPECT_EQ(world.owner.asked, (World::Events{"new"}));
  EXPECT_EQ(world.place.events, (World::Events{"inspect", "reclaim"}));
  EXPECT_EQ(world.metastore.barriers, 1) << "its answer was confirmed behind a barrier";
  EXPECT_EQ(world.sweep.stats().reclaimed, 1u);
}

TEST(Sweep, QUA_3_what_the_owner_cannot_vouch_for_is_set_aside) {
  World world;
  world.place.copy.end = Offset(11);
  world.run();
  EXPECT_EQ(world.place.events, (World::Events{"inspect", "set aside"}));
  EXPECT_EQ(world.sweep.stats().quarantined, 1u);
}

TEST(Sweep, SWP_8_it_waits_while_it_cannot_know) {
  World world;
  world.owner.error = Error(Errc::unreachable, "no answer");
  world.run();
  EXPECT_TRUE(world.place.events.empty());
  world.owner.error.reset();
  world.place.unreadable = Error(Errc::unavailable, "disk");
  world.run();
  EXPECT_EQ(world.place.events, (World::Events{"inspect"}));
  world.place.unreadable.reset();
  world.metastore.leader_there = false;
  world.run();
  EXPECT_EQ(world.place.events, (World::Events{"inspect", "inspect"}));
  world.owner.answer.incarnation = Incarnation(6);
  world.run();
  EXPECT_EQ(world.sweep.stats().deferred, 4u);
  EXPECT_EQ(world.sweep.stats().reclaimed + world.sweep.stats().quarantined, 0u);
}

TEST(Sweep, NeverUsedPartition_NeedsNoOwnerButABarrier) {
  World world;
  world.place.used = false;
  world.owner.error = Error(Errc::unreachable, "no answer");
  world.run();
  EXPECT_EQ(world.place.events, (World::Events{"inspect", "set aside"})) << "it holds records";
  world.place.copy.end = Offset(0);
  world.metastore.leader_there = false;
  world.run();
  EXPECT_EQ(world.sweep.stats().deferred, 1u);
  world.metastore.leader_there = true;
  world.run();
  EXPECT_EQ(world.sweep.stats().reclaimed, 1u);
  EXPECT_TRUE(world.owner.asked.empty());
}

TEST(Sweep, RefusedAct_CountsAsDeferred) {
  World world;
  world.place.refuse = Error(Errc::conflict, "the topic was created again");
  world.run();
  EXPECT_EQ(world.sweep.stats().deferred, 1u);
  EXPECT_EQ(world.sweep.stats().reclaimed, 0u);
}

TEST(Sweep, RUN_8_SWP_1_every_thirtieth_tick) {
  World world;
  int due = 0;
  for (int i = 1; i <= 90; ++i) {
    const bool now = world.sweep.tick();
    EXPECT_EQ(now, i % 30 == 0);
    due += now ? 1 : 0;
  }
  EXPECT_EQ(due, 3);
}

}  // namespace
}  // namespace narad::moves
