#pragma once
// For tests of the mover: rows as they are seen, and a mover that is led from step to step.
#include <gtest/gtest.h>

#include <algorithm>

#include "internal/moves/mover.h"

namespace narad::moves::testing {

using namespace std::chrono_literals;

inline constexpr std::uint64_t kMiB = 1u << 20;
inline const MoveKey kKey{
    {"orders", PartitionId(3)}, Incarnation(7), RaftIndex(40), "s", "d", "d1"};

inline RowSeen running(std::uint64_t epoch = 0, bool armed = false) {
  RowSeen seen;
  Assignment a;
  a.incarnation = kKey.incarnation;
  a.owner_node = "s";
  a.owner_disk = "d0";
  a.used = true;
  a.target_node = "d";
  a.target_disk = "d1";
  a.move_id = kKey.move_id;
  a.freeze_epoch = epoch;
  a.freeze_armed = armed;
  a.owned_by_move = RaftIndex(12);
  seen.row = a;
  seen.source_is_member = true;
  return seen;
}
inline RowSeen flipped() {
  RowSeen seen = running();
  seen.row->owner_node = "d";
  seen.row->owned_by_move = kKey.move_id;
  seen.row->move_id = RaftIndex(0);
  seen.row->target_node.clear();
  return seen;
}
inline RowSeen aborted() {
  RowSeen seen = running(6, false);
  seen.row->move_id = RaftIndex(0);
  seen.row->target_node.clear();
  return seen;
}
inline RowSeen dead(std::uint64_t mark, RowSeen seen = running()) {
  seen.source_dead = true;
  seen.dead_mark = RaftIndex(mark);
  return seen;
}

inline RowSeen paused(RowSeen seen = running()) {
  seen.paused = true;
  return seen;
}

class MoverTest : public ::testing::Test {
 protected:
  MoverTest() { m.on_view(now, running()); }

  Step step() { return m.next(now); }
  Do what() { return step().what; }
  // Lets time pass until it no longer waits.
  Do after_wait() {
    Step s = step();
    for (int i = 0; s.what == Do::wait && s.until != Nanos::max() && i < 100; ++i) {
      now = std::max(now, s.until);
      s = step();
    }
    return s.what;
  }
  bool noted(Note n) {
    const auto fresh = m.take_notes();
    notes.insert(notes.end(), fresh.begin(), fresh.end());
    return std::count(notes.begin(), notes.end(), n) > 0;
  }
  std::size_t times(Note n) {
    (void)noted(n);
    return static_cast<std::size_t>(std::count(notes.begin(), notes.end(), n));
  }
  void nothing_installed() {
    ASSERT_EQ(after_wait(), Do::look);
    m.on_looked(now, std::nullopt);
  }
  void converge() {
    nothing_installed();
    for (std::uint64_t bytes : {100 * kMiB, kMiB}) {
      ASSERT_EQ(after_wait(), Do::pass);
      m.on_pass(now, bytes, Offset(900));
    }
  }
  void freeze(std::uint64_t epoch = 5, bool token = true) {
    ASSERT_EQ(after_wait(), Do::prepare);
    m.on_prepared(now);
    ASSERT_EQ(what(), Do::freeze);
    m.on_frozen(now, epoch, token, 30s);
  }
  void drain(Offset hwm = Offset(1000)) {
    for (int i = 0; i < 10 && what() == Do::pass; ++i) m.on_pass(now, i == 0 ? 5000 : 0, hwm);
    ASSERT_EQ(what(), Do::verify);
  }
  void verify_and_finish() {
    m.on_verified(now, 0s, "", Offset(1000), Offset(1000));
    ASSERT_EQ(what(), Do::finish);
    m.on_finished(now);
  }
  void fail_verify() {
    m.on_verified(now, 0s, "the copy ends at 990", Offset(990), Offset(1000));
    ASSERT_EQ(what(), Do::fence) << "did the freeze hold?";
  }
  // Two verifies that fail under freezes that held.
  void fail_twice() {
    for (std::uint64_t epoch : {5, 6}) {
      converge();
      freeze(epoch);
      drain();
      fail_verify();
      m.on_fenced(now);
      ASSERT_EQ(what(), Do::let_go);
      m.on_let_go(now);
      if (what() == Do::start_over) m.on_started_over(now);
    }
  }
  void install() {
    ASSERT_EQ(what(), Do::fence);
    m.on_fenced(now);
    ASSERT_EQ(what(), Do::install);
    m.on_installed(now);
    ASSERT_EQ(what(), Do::flip);
  }
  // Up to the proposal of the first flip.
  void to_flip(std::uint64_t epoch = 5) {
    converge();
    freeze(epoch);
    drain();
    verify_and_finish();
    install();
  }
  void expect_rest() {
    ASSERT_EQ(what(), Do::wait);
    EXPECT_EQ(step().until, Nanos::max()) << "nothing but the end of the pause ends it";
    EXPECT_TRUE(m.rests());
    EXPECT_EQ(m.phase(), "paused");
    EXPECT_EQ(m.keep(now).what, Mover::Keep::nothing) << "no freeze is held";
    now += 1h;
    EXPECT_EQ(what(), Do::wait);
  }
  // To an attempt without the source.
  void to_promotion(std::uint64_t mark = 60) {
    m.on_view(now, dead(mark));
    now += 121s;
    m.on_view(now, dead(mark));
    ASSERT_EQ(after_wait(), Do::look);
    m.on_looked(now, std::nullopt);
    ASSERT_EQ(what(), Do::silence);
  }

  Nanos now{1000s};
  Mover m{RunnerTiming{}, kKey, now};
  std::vector<Note> notes;
};

}  // namespace narad::moves::testing
