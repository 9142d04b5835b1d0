// Power cuts, kills and failing syncs at every point of scripted and random workloads, against a
// model that knows what was published.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "pkg/seglog/test_log.h"

namespace narad::seglog {
namespace {

using namespace testing;
using sim::FsCall;
using sim::SimFs;

// Raise them for a long run; these take a few seconds.
constexpr std::uint64_t kCutSeeds = 3;
constexpr std::uint64_t kHistorySeeds = 200;

Knobs knobs_for(std::uint64_t seed) {
  sim::Rng rng(sim::derive(seed, "knobs"));
  Knobs knobs;
  knobs.segment_bytes = rng.range(400, 3000);
  knobs.frame_raw_bytes = rng.range(60, 400);
  if (rng.below(4) == 0) knobs.compression = {Codec::zstd, 1};
  return knobs;
}

// What must be in the log, and what may be.
class Model {
 public:
  explicit Model(SimFs& fs, Knobs knobs) : fs_(fs), knobs_(knobs) {}

  bool is_open() const { return log_ != nullptr; }
  SegmentedLog& log() { return *log_; }
  const std::vector<Rec>& published() const { return published_; }

  // Opens, and compares with what must be there. False if the disk would not let it.
  bool open() {
    auto log = SegmentedLog::open(fs_, options(knobs_));
    if (!log) {
      EXPECT_NE(log.error().code(), Errc::data_loss) << log.error().text();
      error_ = log.error().text();
      return false;
    }
    log_ = std::move(log.value());
    log_->check_invariants();
    compare();
    maybe_.clear();  // what was not shown now is gone for good
    return true;
  }

  // One stage() of several batches and its publish (or abandon).
  bool commit(const std::vector<std::vector<Rec>>& batches, bool abandon = false) {
    std::vector<AppendBatch> views;
    for (const auto& b : batches) views.push_back(batch_of(b));
    std::vector<Rec> attempt;  // what would be appended
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen = known_;
    for (const auto& b : batches) {
      for (const Rec& r : b) {
        const bool checked = r.origin != 0 && !r.rerouted;
        if (checked && !seen.insert({r.origin, r.sequence}).second) continue;
        attempt.push_back(r);
      }
    }
    maybe_.push_back(attempt);
    auto outcomes = log_->stage(views, UnixMillis(1'700'000'000'000));
    if (!outcomes) {
      error_ = outcomes.error().text();
      return false;
    }
    if (abandon) {
      log_->abandon();
      if (!log_->latched()) maybe_.clear();
      return false;
    }
    log_->publish();
    log_->check_invariants();
    std::size_t appended = 0;
    for (const AppendOutcome& o : outcomes.value()) appended += o.appended;
    EXPECT_EQ(appended, attempt.size());
    take(attempt);
    return true;
  }
  void repaired() { maybe_.clear(); }
  void retained() { oldest_ = log_->view()->oldest().value(); }
  void drop() { log_.reset(); }

  // Everything readable, at its offset, nothing lost, nothing more; on a log just opened perhaps
  // the first part of an attempt whose outcome was never told.
  void compare() {
    const Offset from = log_->view()->oldest();
    EXPECT_GE(from.value(), oldest_);
    auto content = read_all(fs_, *log_->view(), from, 1000);
    if (!content) {  // a read fault; the power may have gone
      error_ = content.error().text();
      return;
    }
    ASSERT_TRUE(content.value().lost.empty()) << dump(content.value().lost);
    ASSERT_TRUE(log_->open_report().lost.empty());
    const auto& records = content.value().records;
    const std::uint64_t hwm = log_->hwm().value();
    ASSERT_GE(hwm, published_.size()) << "published records are gone";
    for (std::uint64_t i = from.value(); i < published_.size(); ++i) {
      ASSERT_TRUE(records.contains(i)) << i;
      ASSERT_EQ(records.at(i).first, published_[i].key) << i;
      ASSERT_EQ(records.at(i).second, published_[i].payload) << i;
    }
    const std::uint64_t more = hwm - published_.size();
    if (more == 0) return;
    for (const std::vector<Rec>& attempt : maybe_) {
      if (attempt.size() < more) continue;
      bool same = true;
      for (std::uint64_t i = 0; i < more; ++i) {
        const auto it = records.find(published_.size() + i);
        same = same && it != records.end() && it->second.second == attempt[i].payload &&
               it->second.first == attempt[i].key;
      }
      if (!same) continue;
      take({attempt.begin(), attempt.begin() + static_cast<std::ptrdiff_t>(more)});
      return;
    }
    FAIL() << more << " records above " << published_.size() << " that nobody appended";
  }

  const std::string& error() const { return error_; }
  bool knows(std::uint64_t origin, std::uint64_t sequence) const {
    return known_.contains({origin, sequence});
  }

 private:
  void take(std::vector<Rec> records) {
    for (Rec& r : records) {
      if (r.origin != 0 && !r.rerouted) known_.insert({r.origin, r.sequence});
      published_.push_back(std::move(r));
    }
    maybe_.clear();
  }

  SimFs& fs_;
  Knobs knobs_;
  std::unique_ptr<SegmentedLog> log_;
  std::vector<Rec> published_;
  std::vector<std::vector<Rec>> maybe_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> known_;
  std::uint64_t oldest_ = 0;
  std::string error_;
};

// A script that goes through everything a log does. Stops where the disk does.
void script(SimFs& fs, Model& m) {
  std::uint64_t a = 1, b = 1;
  const auto both = [&](std::uint64_t n) {
    const std::vector<std::vector<Rec>> batches{recs(1, a, a + n), recs(2, b, b + 1),
                                                recs(1, a, a + n)};
    if (!m.commit(batches)) return false;
    a += n + 1;
    b += 2;
    return true;
  };
  if (!m.open()) return;
  for (int i = 0; i < 3; ++i) {
    if (!both(4)) return;
  }
  if (!m.log().persist_hwm()) return;
  m.commit({recs(1, a, a + 3)}, true);
  if (m.log().latched() || fs.frozen()) return;
  for (int i = 0; i < 4; ++i) {
    if (!both(9)) return;
  }
  if (!m.log().close()) return;
  m.drop();
  if (!m.open()) return;
  if (!both(2)) return;
  for (const SegmentInfo& s : *m.log().view()->sealed) {
    if (!fs.set_mtime(file_path(s.base), UnixMillis(1))) return;
  }
  const auto retained = m.log().retain({UnixMillis(1'700'000'000'000), 1000, true});
  if (!retained) return;
  m.retained();
  for (int i = 0; i < 3; ++i) {
    if (!both(6)) return;
  }
  if (!m.log().close()) return;
  m.drop();
}

// After a crash: opens, sends again whatever may have been lost, and is exactly once.
void settle(SimFs& fs, Model& m) {
  ASSERT_TRUE(m.open()) << m.error();
  if (::testing::Test::HasFatalFailure()) return;
  for (const std::uint64_t origin : {std::uint64_t{1}, std::uint64_t{2}}) {
    std::uint64_t top = 0;
    while (m.knows(origin, top + 1)) ++top;
    ASSERT_TRUE(m.commit({recs(origin, 1, top + 3)})) << m.error();
    ASSERT_TRUE(m.knows(origin, top + 3));
  }
  ASSERT_TRUE(m.log().close());
  m.drop();
  fs.power_cycle();
  ASSERT_TRUE(m.open()) << m.error();
  EXPECT_TRUE(m.log().open_report().clean);
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> times;
  for (const Rec& r : m.published()) ++times[{r.origin, r.sequence}];
  for (const auto& [id, n] : times) {
    ASSERT_EQ(n, 1) << id.first << "/" << id.second;
  }
}

TEST(PowerCut, AtEveryDiskOperationOfAScript_NothingPublishedIsLostAndNothingIsDoubled) {
  sim::SimFs::Stats total;
  std::uint64_t cuts = 0;
  for (std::uint64_t seed = 1; seed <= kCutSeeds; ++seed) {
    std::uint64_t operations = 0;
    {
      auto fs = new_disk(seed);
      Model m(*fs, knobs_for(seed));
      script(*fs, m);
      ASSERT_FALSE(m.is_open());
      operations = fs->ops();
    }
    for (std::uint64_t k = 1; k <= operations; ++k) {
      for (const auto how : {SimFs::Cut::before_call, SimFs::Cut::during_call}) {
        SCOPED_TRACE(cat("seed ", seed, ", operation ", k, " of ", operations, ", ",
                         how == SimFs::Cut::before_call ? "before" : "during"));
        auto fs = new_disk(seed * 1000 + k);
        Model m(*fs, knobs_for(seed));
        fs->cut_power_at(k, {}, how);
        script(*fs, m);
        m.drop();
        fs->power_cycle();
        settle(*fs, m);
        if (HasFatalFailure()) return;
        total += fs->stats;
        ++cuts;
      }
    }
  }
  EXPECT_GT(cuts, 500u);
  EXPECT_GT(total.torn, 100u);
  EXPECT_GT(total.garbage, 100u);
  EXPECT_GT(total.names_lost, 50u);
}

TEST(PowerCut, AgainAtEveryOperationOfTheRecovery_NothingPublishedIsLost) {
  for (std::uint64_t seed = 11; seed <= 12; ++seed) {
    std::uint64_t operations = 0;
    {
      auto fs = new_disk(seed);
      Model m(*fs, knobs_for(seed));
      script(*fs, m);
      operations = fs->ops();
    }
    for (std::uint64_t k = 3; k <= operations; k += 7) {
      for (std::uint64_t again = 1; again <= 14; ++again) {
        SCOPED_TRACE(cat("seed ", seed, ", operation ", k, ", then ", again));
        auto fs = new_disk(seed * 1000 + k);
        Model m(*fs, knobs_for(seed));
        fs->cut_power_at(k, {}, SimFs::Cut::during_call);
        script(*fs, m);
        m.drop();
        fs->power_cycle();
        fs->cut_power_at(fs->ops() + again, {}, SimFs::Cut::during_call);
        m.open();
        m.drop();
        fs->power_cycle();
        settle(*fs, m);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// fail_call sweep: the n-th call of a kind fails, once or for ever; then the process goes on as far
// as it can, is restarted, and the power goes.
TEST(DiskErrors, AtEveryCallOfEveryKind_NothingPublishedIsLost) {
  struct Case {
    FsCall kind;
    int error;
  };
  const Case cases[] = {{FsCall::pwrite, ENOSPC}, {FsCall::pwrite, EIO},  {FsCall::sync, EIO},
                        {FsCall::sync_dir, EIO},  {FsCall::open, EMFILE}, {FsCall::rename, EIO},
                        {FsCall::truncate, EIO},  {FsCall::pread, EIO},   {FsCall::remove, EROFS},
                        {FsCall::set_mtime, EIO}, {FsCall::stat, EACCES}, {FsCall::list, EIO}};
  std::uint64_t fired = 0;
  for (const Case& c : cases) {
    for (const bool persistent : {false, true}) {
      for (std::uint64_t n = 1; n < 400; ++n) {
        SCOPED_TRACE(cat(sim::to_string(c.kind), " ", n, persistent ? " and all after" : ""));
        auto fs = new_disk(n);
        Model m(*fs, knobs_for(3));
        fs->fail_call(c.kind, n, persistent, c.error);
        script(*fs, m);
        const bool reached = fs->failure_fired();
        fs->clear_failures();
        if (m.is_open() && m.log().latched()) {
          ASSERT_TRUE(m.log().repair());
          m.repaired();
          m.compare();
        }
        m.drop();
        fs->process_restart();
        settle(*fs, m);
        if (HasFatalFailure()) return;
        if (!reached) break;
        ++fired;
      }
    }
  }
  EXPECT_GT(fired, 300u);
}

// Random workloads with everything at once: retries, repeats, failing calls, kills, power cuts.
class History {
 public:
  explicit History(std::uint64_t seed)
      : fs_(new_disk(seed)), rng_(sim::derive(seed, "history")), model_(*fs_, knobs_for(seed)) {}

  void run() {
    ASSERT_TRUE(model_.open());
    for (int i = 0; i < 60; ++i) {
      if (model_.is_open()) {
        step();
      } else if (!model_.open()) {
        crash(rng_.below(2) == 0);
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
    crash(true);
    ASSERT_TRUE(model_.open()) << model_.error();
    if (::testing::Test::HasFatalFailure()) return;
    check();
  }

  struct Counts {
    std::uint64_t crashes = 0, latches = 0, failed = 0, rolls = 0, known = 0;
    Counts& operator+=(const Counts& o) {
      crashes += o.crashes;
      latches += o.latches;
      failed += o.failed;
      rolls += o.rolls;
      known += o.known;
      return *this;
    }
  };
  Counts counts;

 private:
  void crash(bool power) {
    ++counts.crashes;
    model_.drop();
    fs_->clear_failures();
    fs_->faults = sim::FsFaults();
    if (power) {
      fs_->power_cycle();
    } else {
      fs_->process_restart();
    }
  }

  void step() {
    const std::uint64_t what = rng_.below(20);
    if (what < 12) {
      commit();
    } else if (what == 12) {
      (void)model_.log().persist_hwm();
    } else if (what == 13) {
      if (rng_.below(3) == 0) fs_->fail_call(FsCall::sync, 1);
      (void)model_.log().close();
      fs_->clear_failures();
      counts.rolls += model_.log().stats().rolls;
      model_.drop();
    } else if (what == 14) {
      const auto how = rng_.below(2) == 0 ? SimFs::Cut::before_call : SimFs::Cut::during_call;
      fs_->cut_power_at(fs_->ops() + rng_.below(12), {}, how);
    } else if (what <= 16) {
      crash(what == 15);
    } else {
      model_.compare();
    }
    if (fs_->frozen()) {
      crash(true);
    } else if (model_.is_open() && model_.log().latched()) {
      mend();
    }
  }

  // Per origin, the dispatcher's next batch is sent until it is acknowledged; sometimes from
  // further back, as after a restart.
  void commit() {
    std::vector<std::vector<Rec>> batches;
    std::map<std::uint64_t, std::uint64_t> tops;
    for (std::uint64_t n = rng_.range(1, 3); n > 0; --n) {
      const std::uint64_t origin = rng_.range(1, 3);
      const std::uint64_t done = std::max(acknowledged_[origin], tops[origin]);
      const std::uint64_t back = rng_.below(3) == 0 ? rng_.below(done + 1) : 0;
      const std::uint64_t top = done + rng_.below(6);
      if (top < done - back + 1) continue;
      batches.push_back(recs(origin, done - back + 1, top, rng_.below(60)));
      tops[origin] = std::max(tops[origin], top);
      counts.known += back;
    }
    if (rng_.below(6) == 0) {
      auto foreign = recs(3, 1000 + rng_.below(5), 1005);
      for (Rec& r : foreign) r.rerouted = true;
      batches.push_back(foreign);
    }
    if (rng_.below(8) == 0) {
      if (rng_.below(2) == 0) fs_->faults.short_write = sim::kAlways / 2;
      const FsCall kinds[] = {FsCall::pwrite,   FsCall::sync,  FsCall::truncate,
                              FsCall::sync_dir, FsCall::pread, FsCall::rename};
      const FsCall kind = kinds[rng_.below(6)];
      const std::uint64_t nth = rng_.range(1, 3);
      fs_->fail_call(kind, nth, rng_.below(3) == 0);
    }
    if (model_.commit(batches, rng_.below(12) == 0)) {
      for (const auto& [origin, top] : tops) {
        acknowledged_[origin] = std::max(acknowledged_[origin], top);
      }
    } else {
      ++counts.failed;
    }
    fs_->clear_failures();
  }

  void mend() {
    ++counts.latches;
    if (rng_.below(2) == 0 && model_.log().repair()) {
      model_.repaired();
    } else if (rng_.below(2) == 0) {
      crash(rng_.below(2) == 0);
    }
  }

  // Everything acknowledged is there, and what is checked is there once.
  void check() {
    std::map<std::pair<std::uint64_t, std::uint64_t>, int> times;
    for (const Rec& r : model_.published()) {
      if (!r.rerouted) ++times[{r.origin, r.sequence}];
    }
    for (const auto& [id, n] : times) {
      ASSERT_EQ(n, 1) << id.first << "/" << id.second;
    }
    for (const auto& [origin, top] : acknowledged_) {
      for (std::uint64_t s = 1; s <= top; ++s) {
        ASSERT_EQ((times[{origin, s}]), 1) << origin << "/" << s;
      }
    }
  }

  std::unique_ptr<SimFs> fs_;
  sim::Rng rng_;
  Model model_;
  std::map<std::uint64_t, std::uint64_t> acknowledged_;
};

TEST(RandomHistory, OfCommitsFaultsAndCrashes_KeepsEveryPublishedRecordExactlyOnce) {
  History::Counts total;
  for (std::uint64_t seed = 1; seed <= kHistorySeeds; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    History history(seed);
    history.run();
    if (HasFatalFailure()) return;
    total += history.counts;
  }
  EXPECT_GT(total.crashes, 500u);
  EXPECT_GT(total.latches, 30u);
  EXPECT_GT(total.failed, 300u);
  EXPECT_GT(total.rolls, 30u);
  EXPECT_GT(total.known, 300u);
}

}  // namespace
}  // namespace narad::seglog
