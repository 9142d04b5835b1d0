// Every crash point of the WAL: the power goes before or during each disk call of a workload, each
// call fails once, syncs fail and the page cache lies afterwards. After every start: what was
// acknowledged and not handed over is there, whole, in order; nothing that was certainly refused
// is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "internal/ingress/wal.h"
#include "pkg/base/text.h"
#include "pkg/sim/sim_fs.h"

namespace narad::ingress {
namespace {

const std::string kDir = "/data/ingress";

// A node without its loop: opens the WAL, appends groups, hands over, and knows what must be true.
class Driver {
 public:
  Driver(sim::SimFs& fs, std::uint64_t seed) : fs_(fs), rng_(sim::derive(seed, "driver")) {}

  bool trust_page_cache = false;  // a planted fault: nothing is copied fresh

  // Starts and checks what is there. False if the disk failed it (or the power went).
  bool start() {
    writer_.reset();
    checkpoint_.reset();
    auto inspection = inspect_wal(fs_, kDir);
    if (!inspection) {
      // The disk may keep the WAL from opening, but no crash may ever look like damage.
      if (inspection.error().os_errno() == 0) fail(inspection.error().text());
      return false;
    }
    Inspection& found = inspection.value();
    if (trust_page_cache) found.clean = true;
    if (!recover_wal(fs_, options_, found)) return false;
    origin_ = OriginId(rng_.next() | 1);
    auto writer = WalWriter::create(fs_, options_, origin_, found.next);
    if (!writer) return false;
    writer_ = std::move(writer.value());
    checkpoint_ = std::make_unique<CheckpointFile>(fs_, kDir, found.checkpoint_slot + 1);
    sealed_ = found.segments;
    next_ = found.next;
    check(found);
    return true;
  }

  // A random workload of `steps`; false once the process would have ended.
  bool work(int steps) {
    for (int i = 0; i < steps && !dead(); ++i) {
      const std::uint64_t what = rng_.below(10);
      if (what < 6) {
        group();
      } else if (what < 8) {
        hand_over();
      } else if (what < 9) {
        (void)writer_->roll();
        take_sealed();
      } else if (writer_->health() == WalWriter::Health::torn) {
        (void)writer_->repair();
      }
    }
    return !dead();
  }

  bool stop_cleanly() {
    if (!writer_->close()) return false;
    return checkpoint_->store({settled_, next_}).has_value();
  }

  void fail(const std::string& text) {
    if (violation.empty()) violation = text;
  }
  std::string violation;
  std::uint64_t acknowledged = 0, kept_extra = 0, refused = 0, starts = 0;

 private:
  using Key = std::pair<Sequence, OriginId>;

  bool dead() const { return fs_.frozen() || writer_->health() == WalWriter::Health::sync_failed; }

  void group() {
    const std::uint64_t count = rng_.range(1, 4);
    Bytes frames;
    std::vector<std::string> payloads;
    for (std::uint64_t i = 0; i < count; ++i) {
      payloads.push_back(cat(++last_id_, std::string(rng_.below(600), 'x')));
      const Message m{Incarnation(7), "t", PartitionId(0), "k", UnixMillis(5), payloads.back()};
      const std::size_t size = frame_bytes(m).value();
      frames.resize(frames.size() + size);
      encode_frame(frames.data() + frames.size() - size, size, m);
    }
    const bool torn_before = writer_->health() == WalWriter::Health::torn;
    auto first = writer_->append(frames, count);
    take_sealed();
    for (std::uint64_t i = 0; i < count; ++i) {
      const Sequence sequence = next_.plus(i);
      if (first) {
        acked_[sequence] = {origin_, payloads[i]};
        written_[{sequence, origin_}] = payloads[i];
        ++acknowledged;
      } else if (dead() || first.error().code() == Errc::unknown_outcome) {
        written_[{sequence, origin_}] = payloads[i];  // may or may not survive
      } else {
        // Certainly not in the file; what an earlier torn group left may be, until it is repaired.
        if (!torn_before) written_.erase({sequence, origin_});
        ++refused;
      }
    }
    if (!first) return;
    if (first.value() != next_) fail("sequences are not dense");
    next_ = next_.plus(count);
  }

  void hand_over() {
    settled_ = Sequence(rng_.range(settled_.value(), next_.value()));
    if (!checkpoint_->store({settled_, Sequence(0)})) return;
    std::vector<Sequence> gone;
    for (const SegmentInfo& s : sealed_) {
      if (s.end <= settled_) gone.push_back(s.first);
    }
    if (!remove_segments(fs_, kDir, gone)) return;
    std::erase_if(sealed_, [&](const SegmentInfo& s) { return s.end <= settled_; });
  }

  void take_sealed() {
    for (const SegmentInfo& s : writer_->take_sealed()) sealed_.push_back(s);
  }

  void check(const Inspection& found) {
    ++starts;
    if (found.checkpoint.lowest > settled_) fail("the checkpoint passes an unsettled record");
    Sequence due = found.checkpoint.lowest;
    for (const SegmentInfo& segment : found.segments) {
      ReadPosition position;
      Sequence from = std::max(segment.first, due);
      while (from < segment.end) {
        auto r = read_records(fs_, kDir, segment, from, segment.end, 100, 1 << 20, position);
        if (!r) {
          if (r.error().os_errno() == 0) fail(r.error().text());
          return;
        }
        for (const DurableRecord& record : r.value().records) check(record, due);
        position = r.value().next;
        from = position.sequence;
      }
    }
    for (auto it = acked_.lower_bound(due); it != acked_.end(); ++it) {
      fail(cat("acknowledged record ", it->first, " is lost"));
    }
    // From now on what was kept is durable, whatever it was before.
  }

  void check(const DurableRecord& record, Sequence& due) {
    if (record.sequence != due) fail(cat("record ", record.sequence, " where ", due, " is due"));
    due = due.next();
    auto written = written_.find({record.sequence, record.origin});
    if (written == written_.end() || written->second != record.message->payload) {
      fail(cat("record ", record.sequence, " was refused or never written, and is there"));
      return;
    }
    auto acked = acked_.find(record.sequence);
    if (acked == acked_.end()) {
      ++kept_extra;
      acked_[record.sequence] = {record.origin, record.message->payload};
    } else if (acked->second != std::pair(record.origin, record.message->payload)) {
      fail(cat("record ", record.sequence, " is another one than was acknowledged"));
    }
  }

  sim::SimFs& fs_;
  sim::Rng rng_;
  const WalOptions options_{kDir, 2000, 512, 0};
  std::unique_ptr<WalWriter> writer_;
  std::unique_ptr<CheckpointFile> checkpoint_;
  std::vector<SegmentInfo> sealed_;
  OriginId origin_{0};
  Sequence next_{1};
  Sequence settled_{1};
  std::uint64_t last_id_ = 0;
  std::map<Sequence, std::pair<OriginId, std::string>> acked_;
  std::map<Key, std::string> written_;
};

constexpr int kSteps = 25;

struct Totals {
  std::uint64_t points = 0, acknowledged = 0, kept_extra = 0, refused = 0, torn = 0, dropped = 0,
                garbage = 0, eio = 0;
  void add(const Driver& driver, const sim::SimFs& fs) {
    ++points;
    acknowledged += driver.acknowledged;
    kept_extra += driver.kept_extra;
    refused += driver.refused;
    torn += fs.stats.torn;
    dropped += fs.stats.dropped;
    garbage += fs.stats.garbage;
    eio += fs.stats.eio + fs.stats.scripted;
  }
  void print() const {
    std::cout << points << " points, acknowledged " << acknowledged << ", kept beyond that "
              << kept_extra << ", refused " << refused << ", torn writes " << torn << ", dropped "
              << dropped << ", garbage " << garbage << ", failed calls " << eio << "\n";
  }
};

// Starts until the disk lets it.
void start_in_the_end(Driver& driver, sim::SimFs& fs) {
  for (int i = 0; i < 10 && driver.violation.empty(); ++i) {
    if (driver.start()) return;
    fs.process_restart();
  }
  driver.fail("never starts again");
}

void crash_at_every_call(sim::SimFs::Cut how, std::uint64_t seeds, Totals& totals) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (std::uint64_t point = 1;; ++point) {
      sim::SimFs fs(sim::derive(seed, "disk", point));
      Driver driver(fs, seed);
      fs.cut_power_at(fs.ops() + point, {}, how);
      const bool survived = driver.start() && driver.work(kSteps) && driver.stop_cleanly();
      fs.power_cycle();
      // The next start is cut, too, somewhere: recovery must bear that.
      fs.cut_power_at(fs.ops() + 1 + point % 17, {}, how);
      if (driver.start()) driver.work(3);
      fs.power_cycle();
      start_in_the_end(driver, fs);
      driver.work(kSteps);
      fs.power_cycle();
      start_in_the_end(driver, fs);
      totals.add(driver, fs);
      ASSERT_EQ(driver.violation, "") << "seed " << seed << " point " << point;
      if (survived) break;
    }
  }
}

TEST(WalCrash, PowerCutBeforeEveryDiskCall_LosesNothingAcknowledged) {
  Totals totals;
  crash_at_every_call(sim::SimFs::Cut::before_call, 4, totals);
  totals.print();
  EXPECT_GT(totals.points, 500u);
  EXPECT_GT(totals.kept_extra, 0u);
}

TEST(WalCrash, PowerCutDuringEveryDiskCall_LosesNothingAcknowledged) {
  Totals totals;
  crash_at_every_call(sim::SimFs::Cut::during_call, 4, totals);
  totals.print();
  EXPECT_GT(totals.torn, 50u);
  EXPECT_GT(totals.garbage, 20u);
}

// Each call of each kind fails once, or from then on. A failed sync ends the process; then the
// power goes, before or after the next start: the page cache must not be trusted.
TEST(WalCrash, EveryCallFailsOnceOrForGood_LosesNothingAcknowledged) {
  Totals totals;
  for (bool persistent : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      for (std::uint64_t point = 1;; ++point) {
        sim::SimFs fs(sim::derive(seed, "disk", point));
        Driver driver(fs, seed);
        fs.fail_call(sim::FsCall::any, point, persistent, point % 3 == 0 ? ENOSPC : EIO);
        if (driver.start()) driver.work(kSteps);
        const bool fired = fs.failure_fired();
        fs.clear_failures();
        fs.process_restart();
        if (point % 2 == 0) fs.power_cycle();
        start_in_the_end(driver, fs);
        driver.work(5);
        fs.power_cycle();
        start_in_the_end(driver, fs);
        totals.add(driver, fs);
        ASSERT_EQ(driver.violation, "") << "seed " << seed << " point " << point << persistent;
        if (!fired) break;
      }
    }
  }
  totals.print();
  EXPECT_GT(totals.refused, 100u);
}

std::string failed_syncs(bool trust_page_cache, std::uint64_t seeds, Totals& totals) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    sim::SimFs fs(seed);
    Driver driver(fs, seed);
    driver.trust_page_cache = trust_page_cache;
    for (int life = 0; life < 4; ++life) {
      start_in_the_end(driver, fs);
      fs.faults.eio_sync = 60'000;
      if (driver.violation.empty()) driver.work(kSteps);
      fs.faults.eio_sync = 0;
      // The process ends and is started again; only later does the power go.
      fs.process_restart();
    }
    start_in_the_end(driver, fs);
    fs.power_cycle();
    start_in_the_end(driver, fs);
    totals.add(driver, fs);
    if (!driver.violation.empty()) return cat("seed ", seed, ": ", driver.violation);
  }
  return {};
}

TEST(WalCrash, FailedSyncThenRestartThenPowerCut_LosesNothingAcknowledged) {
  Totals totals;
  EXPECT_EQ(failed_syncs(false, 400, totals), "");
  totals.print();
  EXPECT_GT(totals.eio, 400u);
}

TEST(WalCrash, PageCacheTrustedAfterAFailedSync_IsCaught) {
  Totals totals;
  EXPECT_NE(failed_syncs(true, 400, totals), "");
}

// A disk that says yes to every sync and stores nothing is what answering before the sync is.
TEST(WalCrash, AnswersBeforeTheSync_AreCaught) {
  std::string violation;
  for (std::uint64_t seed = 1; seed <= 50 && violation.empty(); ++seed) {
    sim::SimFs fs(seed);
    Driver driver(fs, seed);
    ASSERT_TRUE(driver.start());
    fs.faults.lying_sync = sim::kAlways;
    driver.work(kSteps);
    fs.faults.lying_sync = 0;
    fs.power_cycle();
    driver.start();
    violation = driver.violation;
  }
  EXPECT_NE(violation, "");
}

TEST(WalCrash, RandomFaultsOverManyLives_LoseNothingAcknowledged) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    sim::SimFs fs(seed);
    sim::Rng rng(sim::derive(seed, "lives"));
    Driver driver(fs, seed);
    for (int life = 0; life < 6; ++life) {
      fs.faults.eio_write = rng.below(3) == 0 ? 30'000 : 0;
      fs.faults.eio_sync = rng.below(3) == 0 ? 20'000 : 0;
      fs.faults.eio_read = rng.below(4) == 0 ? 20'000 : 0;
      fs.faults.short_write = rng.below(2) == 0 ? 200'000 : 0;
      fs.faults.short_read = rng.below(2) == 0 ? 200'000 : 0;
      fs.faults.capacity_bytes = rng.below(4) == 0 ? fs.used_bytes() + 4000 : 1 << 30;
      if (rng.below(2) == 0) {
        fs.cut_power_at(
            fs.ops() + rng.range(1, 80), {},
            rng.below(2) == 0 ? sim::SimFs::Cut::before_call : sim::SimFs::Cut::during_call);
      }
      if (driver.start() && driver.work(kSteps) && rng.below(3) == 0) driver.stop_cleanly();
      if (rng.below(2) == 0 || fs.frozen()) {
        fs.power_cycle();
      } else {
        fs.process_restart();
      }
    }
    fs.faults = {};
    fs.power_cycle();
    start_in_the_end(driver, fs);
    totals.add(driver, fs);
    ASSERT_EQ(driver.violation, "") << "seed " << seed;
  }
  totals.print();
}

}  // namespace
}  // namespace narad::ingress
