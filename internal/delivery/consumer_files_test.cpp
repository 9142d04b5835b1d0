#include "internal/delivery/consumer_files.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/sim/rng.h"
#include "pkg/sim/sim_fs.h"

namespace narad::delivery {
namespace {

constexpr std::uint64_t kIdentity = 0xfeed;
const std::string kDirectory = "/data/p";
const std::string kSnapshot = kDirectory + "/consumer.offset";
const std::string kJournal = kDirectory + "/consumer.acks";

OffsetRun run(std::uint64_t begin, std::uint64_t end) { return {Offset(begin), Offset(end)}; }

std::unique_ptr<sim::SimFs> disk(std::uint64_t seed = 1) {
  auto fs = std::make_unique<sim::SimFs>(seed);
  EXPECT_TRUE(make_directories(*fs, kDirectory));
  return fs;
}

ConsumerFiles::Opened open(FileSystem& fs, std::uint64_t hwm = 1'000'000) {
  auto opened = ConsumerFiles::open(fs, kDirectory, kIdentity, Offset(hwm));
  EXPECT_TRUE(opened) << opened.error().text();
  return std::move(opened).value();
}

TEST(ConsumerFiles, NothingStored_BeginsAtOffsetZero) {
  auto fs = disk();
  const auto opened = open(*fs);
  EXPECT_EQ(opened.positions, ConsumerPositions{});
  EXPECT_TRUE(opened.report.unreadable.empty());
  EXPECT_TRUE(opened.files->must_snapshot());
  EXPECT_EQ(fs->all_paths(), (std::vector<std::string>{"/data/", "/data/p/"})) << "opens nothing";
}

TEST(ConsumerFiles, SnapshotAndAcks_AreThereAfterAPowerCut) {
  auto fs = disk();
  {
    auto opened = open(*fs);
    ASSERT_TRUE(opened.files->snapshot({Offset(5), {run(8, 9)}}));
    ASSERT_TRUE(opened.files->append({run(5, 7)}));
    ASSERT_TRUE(opened.files->append({run(7, 8), run(20, 30)}));
  }
  fs->power_cycle();
  const auto again = open(*fs);
  EXPECT_EQ(again.positions, (ConsumerPositions{Offset(9), {run(20, 30)}}));
  EXPECT_TRUE(again.report.unreadable.empty());
}

TEST(ConsumerFiles, Append_IsOneWriteAndOneSync) {
  auto fs = disk();
  auto opened = open(*fs);
  ASSERT_TRUE(opened.files->snapshot({Offset(5), {}}));
  ASSERT_TRUE(opened.files->append({run(5, 7)}));
  const std::uint64_t before = fs->ops();
  ASSERT_TRUE(opened.files->append({run(8, 9)}));
  EXPECT_EQ(fs->ops() - before, 2u);
  EXPECT_EQ(fs->unsynced_writes(), 0u);
}

TEST(ConsumerFiles, EntriesOfAnEarlierSnapshot_AreIgnored) {
  auto fs = disk();
  auto opened = open(*fs);
  ASSERT_TRUE(opened.files->snapshot({Offset(5), {}}));
  ASSERT_TRUE(opened.files->append({run(8, 9)}));
  // As after a clamp: the later snapshot no longer holds 8, and the journal is not written yet.
  ASSERT_TRUE(opened.files->snapshot({Offset(5), {}}));
  EXPECT_EQ(open(*fs).positions, (ConsumerPositions{Offset(5), {}}));
}

TEST(ConsumerFiles, PositionsAboveTheHighWatermark_AreClampedAndStoredBeforeOpenAnswers) {
  auto fs = disk();
  {
    auto opened = open(*fs);
    ASSERT_TRUE(opened.files->snapshot({Offset(10), {run(12, 20)}}));
    ASSERT_TRUE(opened.files->append({run(30, 40)}));
  }
  auto report = clamp_consumer_state(*fs, kDirectory, kIdentity, Offset(15));
  ASSERT_TRUE(report);
  EXPECT_TRUE(report.value().clamped);
  EXPECT_EQ(report.value().frontier_before, Offset(10));
  fs->power_cycle();
  // The HWM has risen again, over other records.
  EXPECT_EQ(open(*fs, 100).positions, (ConsumerPositions{Offset(10), {run(12, 15)}}));

  report = clamp_consumer_state(*fs, kDirectory, kIdentity, Offset(7));
  ASSERT_TRUE(report);
  EXPECT_TRUE(report.value().clamped);
  fs->power_cycle();
  EXPECT_EQ(open(*fs, 100).positions, (ConsumerPositions{Offset(7), {}}));
  report = clamp_consumer_state(*fs, kDirectory, kIdentity, Offset(7));
  EXPECT_FALSE(report.value().clamped);
}

TEST(ConsumerFiles, ClampThatCannotBeStored_RefusesTheOpening) {
  auto fs = disk();
  ASSERT_TRUE(open(*fs).files->snapshot({Offset(10), {}}));
  fs->faults.read_only = true;
  auto opened = ConsumerFiles::open(*fs, kDirectory, kIdentity, Offset(5));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Errc::unavailable);
  EXPECT_TRUE(ConsumerFiles::open(*fs, kDirectory, kIdentity, Offset(10))) << "nothing to store";
}

TEST(ConsumerFiles, UnknownVersion_IsRefusedAndNotTouched) {
  for (const std::string& path : {kSnapshot, kJournal}) {
    auto fs = disk();
    auto written = open(*fs);
    ASSERT_TRUE(written.files->snapshot({Offset(10), {}}));
    ASSERT_TRUE(written.files->append({run(10, 11)}));
    written.files.reset();
    // A header of version 2 that verifies.
    Bytes bytes = *fs->seen_bytes(path);
    store_le(bytes.data() + 4, std::uint32_t{2});
    store_le(bytes.data() + 24, xxh3(ByteView(bytes).first(24), 0));
    ASSERT_TRUE(replace_file(*fs, path, bytes));
    const std::uint64_t before = fs->digest();
    auto opened = ConsumerFiles::open(*fs, kDirectory, kIdentity, Offset(3));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Errc::unavailable);
    EXPECT_NE(opened.error().text().find(path + " has version 2"), std::string::npos)
        << opened.error().text();
    EXPECT_EQ(fs->digest(), before);
  }
}

TEST(ConsumerFiles, StateOfAnotherLife_IsNotTakenOver) {
  auto fs = disk();
  {
    auto opened = ConsumerFiles::open(*fs, kDirectory, kIdentity + 1, Offset(100));
    ASSERT_TRUE(opened.value().files->snapshot({Offset(10), {}}));
    ASSERT_TRUE(opened.value().files->append({run(10, 20)}));
  }
  auto opened = open(*fs);
  EXPECT_EQ(opened.positions, ConsumerPositions{});
  EXPECT_EQ(opened.report.unreadable.size(), 2u);
  ASSERT_TRUE(opened.files->snapshot({Offset(1), {}}));
  ASSERT_TRUE(opened.files->append({run(1, 2)}));
  EXPECT_EQ(open(*fs).positions, (ConsumerPositions{Offset(2), {}}));
}

TEST(ConsumerFiles, SnapshotDamaged_DeliversAgainAndIsKeptForTheCurious) {
  auto fs = disk();
  {
    auto opened = open(*fs);
    ASSERT_TRUE(opened.files->snapshot({Offset(10), {}}));
    ASSERT_TRUE(opened.files->append({run(10, 20)}));
  }
  ASSERT_TRUE(fs->corrupt(kSnapshot, 33, std::byte{1}));
  const Bytes damaged = *fs->seen_bytes(kSnapshot);
  auto opened = open(*fs);
  EXPECT_EQ(opened.positions, ConsumerPositions{}) << "the journal follows nothing that is known";
  ASSERT_EQ(opened.report.unreadable.size(), 1u);
  EXPECT_NE(opened.report.unreadable[0].find(kSnapshot), std::string::npos);
  EXPECT_EQ(fs->seen_bytes(kSnapshot), damaged) << "reading changes nothing";
  ASSERT_TRUE(opened.files->snapshot({Offset(1), {}}));
  EXPECT_EQ(fs->seen_bytes(kDirectory + "/" + kUnreadableSnapshotFileName), damaged);
  EXPECT_EQ(open(*fs).positions, (ConsumerPositions{Offset(1), {}}))
      << "entries of the lost snapshot do not follow the new one";
}

TEST(ConsumerFiles, SnapshotGoneBesideItsJournal_IsSaid) {
  auto fs = disk();
  {
    auto opened = open(*fs);
    ASSERT_TRUE(opened.files->snapshot({Offset(10), {}}));
    EXPECT_TRUE(open(*fs).report.unreadable.empty());
    ASSERT_TRUE(opened.files->append({run(10, 20)}));
  }
  ASSERT_TRUE(fs->remove(kSnapshot));
  auto opened = open(*fs);
  EXPECT_EQ(opened.positions, ConsumerPositions{});
  ASSERT_EQ(opened.report.unreadable.size(), 1u);
  EXPECT_EQ(opened.report.unreadable[0],
            cat(kSnapshot,
                " is missing, though consumer.acks continues it; all records that are "
                "still there are delivered again"));
}

// What is wrong with the journal costs nothing that the snapshot has: the words must not say so.
TEST(ConsumerFiles, JournalNotWhole_IsToldFromATornEnd) {
  auto fs = disk();
  std::vector<std::size_t> ends;
  {
    auto opened = open(*fs);
    ASSERT_TRUE(opened.files->snapshot({Offset(10), {}}));
    for (std::uint64_t n = 0; n < 3; ++n) {
      ASSERT_TRUE(opened.files->append({run(10 + n, 11 + n)}));
      ends.push_back(fs->seen_bytes(kJournal)->size());
    }
  }
  auto torn = fs->clone();
  ASSERT_TRUE(torn->corrupt(kJournal, ends[1] + 3, std::byte{1}));
  auto opened = open(*torn);
  EXPECT_EQ(opened.positions.frontier, Offset(12));
  EXPECT_TRUE(opened.report.unreadable.empty());
  EXPECT_NE(opened.report.torn.find("acks of the last tenth of a second"), std::string::npos);

  auto middle = fs->clone();
  ASSERT_TRUE(middle->corrupt(kJournal, ends[0] + 3, std::byte{1}));
  opened = open(*middle);
  EXPECT_EQ(opened.positions.frontier, Offset(11));
  EXPECT_TRUE(opened.report.torn.empty());
  ASSERT_EQ(opened.report.unreadable.size(), 1u);
  EXPECT_NE(opened.report.unreadable[0].find("acks that are not in consumer.offset"),
            std::string::npos);

  auto garbage = fs->clone();
  ASSERT_TRUE(replace_file(*garbage, kJournal, as_bytes(std::string_view("what is this?"))));
  opened = open(*garbage);
  EXPECT_EQ(opened.positions.frontier, Offset(10)) << "the snapshot holds";
  ASSERT_EQ(opened.report.unreadable.size(), 1u);
  EXPECT_NE(opened.report.unreadable[0].find("acks that are not in consumer.offset"),
            std::string::npos);
}

TEST(AckedEnd, IsAboveEveryAckAndChangesNothing) {
  auto fs = disk();
  EXPECT_EQ(acked_end(*fs, kDirectory, kIdentity).value(), Offset(0));
  {
    auto opened = open(*fs);
    ASSERT_TRUE(opened.files->snapshot({Offset(10), {run(20, 22)}}));
    EXPECT_EQ(acked_end(*fs, kDirectory, kIdentity).value(), Offset(22));
    ASSERT_TRUE(opened.files->append({run(30, 31)}));
  }
  const auto before = fs->digest();
  EXPECT_EQ(acked_end(*fs, kDirectory, kIdentity).value(), Offset(31));
  EXPECT_EQ(acked_end(*fs, kDirectory, kIdentity + 1).value(), Offset(0)) << "another life";
  EXPECT_EQ(fs->digest(), before);
}

TEST(ConsumerFiles, AnyByteFlipped_NeverSettlesMoreThanWasAcked) {
  auto fs = disk();
  {
    auto opened = open(*fs);
    ASSERT_TRUE(opened.files->snapshot({Offset(10), {run(20, 22)}}));
    ASSERT_TRUE(opened.files->append({run(10, 12)}));
    ASSERT_TRUE(opened.files->append({run(15, 16)}));
  }
  std::set<std::uint64_t> acked{10, 11, 15, 20, 21};
  for (std::uint64_t at = 0; at < 10; ++at) acked.insert(at);
  for (const std::string& path : {kSnapshot, kJournal}) {
    const std::size_t size = fs->seen_bytes(path)->size();
    for (std::size_t at = 0; at < size; ++at) {
      auto copy = fs->clone();
      ASSERT_TRUE(copy->corrupt(path, at, std::byte{0x10}));
      const auto opened = open(*copy);
      ASSERT_FALSE(opened.report.unreadable.empty() && opened.report.torn.empty())
          << path << " byte " << at;
      for (std::uint64_t offset = 0; offset < opened.positions.frontier.value(); ++offset) {
        ASSERT_TRUE(acked.contains(offset)) << path << " byte " << at;
      }
      for (const OffsetRun& ahead : opened.positions.acked_ahead) {
        for (Offset offset = ahead.begin; offset < ahead.end; offset = offset.next()) {
          ASSERT_TRUE(acked.contains(offset.value())) << path << " byte " << at;
        }
      }
    }
  }
}

TEST(ConsumerFiles, ReadError_IsNotDamage) {
  for (const std::string& path : {kSnapshot, kJournal}) {
    auto fs = disk();
    {
      auto opened = open(*fs);
      ASSERT_TRUE(opened.files->snapshot({Offset(10), {}}));
      ASSERT_TRUE(opened.files->append({run(10, 12)}));
    }
    fs->fail_call(sim::FsCall::pread, 1, false, 5, path);
    auto opened = ConsumerFiles::open(*fs, kDirectory, kIdentity, Offset(100));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Errc::unavailable);
    EXPECT_EQ(open(*fs).positions, (ConsumerPositions{Offset(12), {}})) << "later it is read";
  }
}

TEST(ConsumerFiles, TemporaryFilesOfACrash_AreRemoved) {
  auto fs = disk();
  ASSERT_TRUE(fs->open(kSnapshot + ".tmp", OpenMode::create));
  ASSERT_TRUE(fs->open(kJournal + ".tmp", OpenMode::create));
  (void)open(*fs);
  EXPECT_EQ(fs->all_paths(), (std::vector<std::string>{"/data/", "/data/p/"}));
}

TEST(ConsumerFiles, FailedAppend_AsksForASnapshotWhichStoresEverything) {
  for (sim::FsCall call : {sim::FsCall::pwrite, sim::FsCall::sync}) {
    auto fs = disk();
    auto opened = open(*fs);
    ASSERT_TRUE(opened.files->snapshot({Offset(0), {}}));
    ASSERT_TRUE(opened.files->append({run(0, 1)}));
    fs->fail_call(call, 1);
    ASSERT_FALSE(opened.files->append({run(1, 2)}));
    EXPECT_TRUE(opened.files->must_snapshot());
    ASSERT_TRUE(opened.files->snapshot({Offset(2), {}}));
    EXPECT_FALSE(opened.files->must_snapshot());
    ASSERT_TRUE(opened.files->append({run(2, 3)}));
    opened.files.reset();
    fs->power_cycle();
    EXPECT_EQ(open(*fs).positions, (ConsumerPositions{Offset(3), {}}));
  }
}

// ---- crash sweep --------------------------------------------------------------------------

// What a mutant does wrong.
struct Mutant {
  // What the mutant believes to be stored, given the disk.
  std::function<ConsumerPositions(sim::SimFs&, ConsumerPositions)> load;
  // What the mutant stores as a snapshot.
  std::function<ConsumerPositions(ConsumerPositions)> store;
};

// Acks in random order, a snapshot now and then, crashes and restarts, an HWM that goes back and
// rises again. Holds the state after each crash against what was acked: every offset whose write
// had been answered is settled, and none is settled that was not acked. The first sentence that
// does not hold is the result.
class CrashRun {
 public:
  CrashRun(std::uint64_t seed, const Mutant& mutant)
      : random_(seed), fs_(disk(seed)), mutant_(mutant) {}

  sim::SimFs& fs() { return *fs_; }
  bool cut_fired() const { return fs_->frozen(); }

  std::string run(int steps) {
    reopen();
    for (int step = 0; step < steps && problem_.empty(); ++step) {
      if (fs_->frozen()) crash(true);
      switch (random_.next() % 10) {
        case 0:
          save_snapshot();
          break;
        case 1:
          if (random_.next() % 3 == 0) crash(random_.next() % 2 == 0);
          break;
        case 2:
          hwm_ += random_.next() % 6;
          break;
        default:
          ack_some();
          break;
      }
    }
    if (problem_.empty()) crash(true);
    return problem_;
  }

 private:
  using Offsets = std::set<std::uint64_t>;

  static Offsets settled(const ConsumerPositions& positions) {
    Offsets out;
    for (std::uint64_t at = 0; at < positions.frontier.value(); ++at) out.insert(at);
    for (const OffsetRun& run : positions.acked_ahead) {
      for (Offset at = run.begin; at < run.end; at = at.next()) out.insert(at.value());
    }
    return out;
  }
  ConsumerPositions positions() const {
    OffsetSet set;
    for (std::uint64_t at : current_) set.insert(Offset(at));
    ConsumerPositions out;
    out.frontier = set.run_end(Offset(0));
    set.erase({Offset(0), out.frontier});
    out.acked_ahead = set.runs();
    return out;
  }

  void crash(bool power) {
    files_.reset();
    fs_->cancel_cut();
    if (power) {
      fs_->power_cycle();
    } else {
      fs_->process_restart();
    }
    // Now and then records above some offset turn out to be gone.
    if (random_.next() % 4 == 0) hwm_ -= std::min<std::uint64_t>(hwm_, random_.next() % 4);
    for (Offsets* set : {&acked_, &current_, &stored_})
      set->erase(set->lower_bound(hwm_), set->end());
    reopen();
    if (power) stored_ = current_;  // it came from the disk, not from a page cache
  }

  void reopen() {
    while (problem_.empty()) {
      auto opened = ConsumerFiles::open(*fs_, kDirectory, kIdentity, Offset(hwm_));
      if (fs_->frozen()) {  // the cut came while we opened
        fs_->power_cycle();
        continue;
      }
      if (!opened) continue;  // a fault; they end
      files_ = std::move(opened.value().files);
      ConsumerPositions found = opened.value().positions;
      if (mutant_.load) found = mutant_.load(*fs_, found);
      Offsets now = settled(found);
      if (mutant_.load) now.erase(now.lower_bound(hwm_), now.end());  // it would clamp, too
      for (std::uint64_t at : stored_) {
        if (!now.contains(at)) problem_ = cat("offset ", at, " was stored as acked and is not");
      }
      for (std::uint64_t at : now) {
        if (!acked_.contains(at)) problem_ = cat("offset ", at, " is settled and was never acked");
      }
      current_ = std::move(now);
      return;
    }
  }

  void ack_some() {
    std::vector<OffsetRun> runs;
    OffsetSet acks;
    for (std::uint64_t n = 1 + random_.next() % 4; n > 0 && hwm_ > 0; --n) {
      const std::uint64_t low = positions().frontier.value();
      const std::uint64_t at = std::min(hwm_ - 1, low + random_.next() % 5);
      if (!current_.contains(at)) acks.insert(Offset(at));
    }
    if (acks.empty()) return;
    for (const OffsetRun& run : acks.runs()) {
      for (Offset at = run.begin; at < run.end; at = at.next()) {
        acked_.insert(at.value());
        current_.insert(at.value());
      }
    }
    if (files_->must_snapshot()) return save_snapshot();
    if (files_->append(acks.runs()) && !fs_->frozen()) {
      for (const OffsetRun& run : acks.runs()) {
        for (Offset at = run.begin; at < run.end; at = at.next()) stored_.insert(at.value());
      }
    }
  }
  void save_snapshot() {
    ConsumerPositions now = positions();
    if (mutant_.store) now = mutant_.store(now);
    if (files_->snapshot(now) && !fs_->frozen()) stored_ = current_;
  }

  sim::Rng random_;
  std::unique_ptr<sim::SimFs> fs_;
  const Mutant& mutant_;
  std::unique_ptr<ConsumerFiles> files_;
  std::uint64_t hwm_ = 8;
  Offsets acked_;    // ever, unless voided by an HWM that went back
  Offsets current_;  // what this opening knows of
  Offsets stored_;   // what a write was answered for
  std::string problem_;
};

struct SweepResult {
  std::string problem;  // empty: none
  std::uint64_t cuts = 0;
  std::uint64_t runs = 0;
};

// A cut at the first call that changes something, at the second, and so on until the run ends
// without one; then failing syncs and writes instead of cuts.
SweepResult sweep(const Mutant& mutant) {
  SweepResult out;
  const auto note = [&](CrashRun& run, const std::string& what) {
    ++out.runs;
    const std::string problem = run.run(60);
    out.cuts += run.fs().stats.cuts;
    if (!problem.empty() && out.problem.empty()) out.problem = cat(what, ": ", problem);
    return out.problem.empty();
  };
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    for (auto how : {sim::SimFs::Cut::before_call, sim::SimFs::Cut::during_call}) {
      std::uint64_t ops = ~std::uint64_t{0};
      for (std::uint64_t k = 1; k < ops; ++k) {
        CrashRun run(seed, mutant);
        run.fs().cut_power_at(run.fs().ops() + k, {}, how);
        if (!note(run, cat("seed ", seed, ", cut ", k))) return out;
        ops = run.fs().ops();
      }
    }
  }
  for (std::uint64_t seed = 100; seed < 400; ++seed) {
    CrashRun run(seed, mutant);
    run.fs().faults.eio_sync = 100'000;
    run.fs().faults.eio_write = 50'000;
    run.fs().faults.short_write = 200'000;
    run.fs().faults.short_read = 200'000;
    if (!note(run, cat("seed ", seed))) return out;
  }
  return out;
}

TEST(ConsumerFilesSweep, PowerCutsRestartsAndFailingSyncs_LoseNoStoredAckAndInventNone) {
  const SweepResult result = sweep({});
  EXPECT_EQ(result.problem, "");
  EXPECT_GT(result.cuts, 1000u);
}

// The sweep must see each of these.
TEST(ConsumerFilesSweep, FrontierPastAHole_IsCaught) {
  Mutant mutant;
  mutant.store = [](ConsumerPositions positions) {
    if (!positions.acked_ahead.empty()) positions.frontier = positions.acked_ahead.back().end;
    return ConsumerPositions{positions.frontier, {}};
  };
  EXPECT_NE(sweep(mutant).problem.find("was never acked"), std::string::npos);
}

TEST(ConsumerFilesSweep, JournalIgnored_IsCaught) {
  Mutant mutant;
  mutant.load = [](sim::SimFs& fs, ConsumerPositions) {
    const auto bytes = fs.seen_bytes(kSnapshot);
    return bytes ? decode_snapshot(*bytes).positions : ConsumerPositions{};
  };
  EXPECT_NE(sweep(mutant).problem.find("was stored as acked and is not"), std::string::npos);
}

TEST(ConsumerFilesSweep, SnapshotSequenceIgnored_IsCaught) {
  Mutant mutant;
  mutant.load = [](sim::SimFs& fs, ConsumerPositions good) {
    OffsetSet acked;
    if (good.frontier > Offset(0)) acked.insert({Offset(0), good.frontier});
    for (const OffsetRun& run : good.acked_ahead) acked.insert(run);
    if (const auto bytes = fs.seen_bytes(kJournal)) {
      for (const JournalEntry& entry : decode_journal(*bytes).entries) {
        for (const OffsetRun& run : entry.runs) acked.insert(run);
      }
    }
    ConsumerPositions out;
    out.frontier = acked.run_end(Offset(0));
    acked.erase({Offset(0), out.frontier});
    out.acked_ahead = acked.runs();
    return out;
  };
  EXPECT_NE(sweep(mutant).problem.find("was never acked"), std::string::npos);
}

}  // namespace
}  // namespace narad::delivery
