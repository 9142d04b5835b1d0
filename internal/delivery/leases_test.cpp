#include "internal/delivery/leases.h"

#include <gtest/gtest.h>

#include <array>

#include "pkg/sim/rng.h"

namespace narad::delivery {
namespace {

using std::chrono::seconds;

constexpr Nanos kVisibility = seconds(30);

// A table over the log [oldest, hwm), with a clock of its own.
struct Bench {
  explicit Bench(std::uint64_t hwm, ConsumerPositions start = {}) : table(start, LeaseNonce(1000)) {
    bounds.hwm = Offset(hwm);
  }
  LeaseTable table;
  LogBounds bounds;
  LeaseCaps caps;
  Nanos now{0};
  ReserveOutcome last = ReserveOutcome::leased;

  std::vector<Lease> take(std::size_t count, Nanos visibility = kVisibility) {
    std::vector<Lease> out;
    last = table.reserve(now, bounds, caps, visibility, count, out);
    table.check_invariants();
    EXPECT_EQ(out.empty(), last != ReserveOutcome::leased);
    return out;
  }
  Lease one() {
    auto out = take(1);
    EXPECT_EQ(out.size(), 1u) << to_string(last);
    return out.empty() ? Lease{} : out.front();
  }
  std::vector<std::uint64_t> offsets(std::size_t count) {
    std::vector<std::uint64_t> out;
    for (const Lease& lease : take(count)) out.push_back(lease.offset.value());
    return out;
  }
  SettleStatus ack(Lease lease) {
    const SettleStatus status = table.ack(now, lease, caps);
    table.check_invariants();
    return status;
  }
};

using Offsets = std::vector<std::uint64_t>;

TEST(LeaseTable, Reserve_HandsOutTheLowestFreeOffsetUnderAFreshNonce) {
  Bench b(10);
  const auto leases = b.take(3);
  EXPECT_EQ(leases, (std::vector<Lease>{{Offset(0), LeaseNonce(1000)},
                                        {Offset(1), LeaseNonce(1001)},
                                        {Offset(2), LeaseNonce(1002)}}));
  EXPECT_EQ(b.one().offset, Offset(3));
  EXPECT_EQ(b.table.in_flight(), 4u);
}

TEST(LeaseTable, Reserve_StopsAtTheHighWatermark) {
  Bench b(2);
  EXPECT_EQ(b.offsets(5), (Offsets{0, 1}));
  EXPECT_TRUE(b.take(1).empty());
  EXPECT_EQ(b.last, ReserveOutcome::all_reserved);
  b.bounds.hwm = Offset(3);
  EXPECT_EQ(b.offsets(5), (Offsets{2}));
}

TEST(LeaseTable, Reserve_EverythingAcked_IsEmpty) {
  Bench b(1);
  EXPECT_EQ(b.ack(b.one()), SettleStatus::done);
  EXPECT_TRUE(b.take(1).empty());
  EXPECT_EQ(b.last, ReserveOutcome::empty);
}

TEST(LeaseTable, Reserve_AtTheInFlightCap_HandsOutNothing) {
  Bench b(10);
  b.caps.in_flight_max = 3;
  EXPECT_EQ(b.offsets(5), (Offsets{0, 1, 2}));
  EXPECT_TRUE(b.take(1).empty());
  EXPECT_EQ(b.last, ReserveOutcome::cap);
}

TEST(LeaseTable, Reserve_CapIsCheckedBeforeEmpty) {
  Bench b(1);
  b.caps.in_flight_max = 1;
  (void)b.one();
  EXPECT_TRUE(b.take(1).empty());
  EXPECT_EQ(b.last, ReserveOutcome::cap);
}

TEST(LeaseTable, Ack_FreesASlot) {
  Bench b(10);
  b.caps.in_flight_max = 2;
  const auto leases = b.take(2);
  EXPECT_EQ(b.ack(leases[1]), SettleStatus::done);
  EXPECT_EQ(b.one().offset, Offset(2));
}

TEST(LeaseTable, Reserve_ExpiredLease_HoldsNoSlot) {
  Bench b(10);
  b.caps.in_flight_max = 1;
  const Lease old = b.one();
  b.now = kVisibility;
  const Lease again = b.one();
  EXPECT_EQ(again.offset, old.offset);
  EXPECT_GT(again.nonce, old.nonce);
  EXPECT_EQ(b.ack(old), SettleStatus::stale);
  EXPECT_EQ(b.ack(again), SettleStatus::done);
}

TEST(LeaseTable, Expiry_IsAtTheDeadlineNotBefore) {
  Bench b(10);
  const Lease lease = b.one();
  EXPECT_EQ(b.table.next_expiry(), kVisibility);
  EXPECT_EQ(b.table.expire(kVisibility - Nanos(1)), 0u);
  EXPECT_TRUE(b.table.is_live(kVisibility - Nanos(1), lease));
  EXPECT_EQ(b.table.expire(kVisibility), 1u);
  EXPECT_FALSE(b.table.is_live(kVisibility, lease));
  EXPECT_EQ(b.table.next_expiry(), std::nullopt);
}

TEST(LeaseTable, Expiry_LowestExpiredOffsetGoesOutFirst) {
  Bench b(10);
  const auto leases = b.take(5);
  ASSERT_EQ(b.table.nack(b.now, leases[4]), SettleStatus::done);
  b.now = kVisibility;
  EXPECT_EQ(b.offsets(3), (Offsets{0, 1, 2}));
}

TEST(LeaseTable, Ack_InOrder_AdvancesTheFrontier) {
  Bench b(10);
  for (std::uint64_t n = 0; n < 4; ++n) {
    EXPECT_EQ(b.ack(b.one()), SettleStatus::done);
    EXPECT_EQ(b.table.frontier(), Offset(n + 1));
  }
}

TEST(LeaseTable, Ack_OutOfOrder_HoldsTheFrontierUntilTheHoleIsFilled) {
  Bench b(10);
  const auto leases = b.take(4);
  EXPECT_EQ(b.ack(leases[3]), SettleStatus::done);
  EXPECT_EQ(b.ack(leases[1]), SettleStatus::done);
  EXPECT_EQ(b.table.frontier(), Offset(0));
  EXPECT_EQ(b.table.acked_ahead(), 2u);
  EXPECT_EQ(b.ack(leases[0]), SettleStatus::done);
  EXPECT_EQ(b.table.frontier(), Offset(2));
  EXPECT_EQ(b.ack(leases[2]), SettleStatus::done);
  EXPECT_EQ(b.table.frontier(), Offset(4));
  EXPECT_EQ(b.table.acked_ahead(), 0u);
}

TEST(LeaseTable, Ack_Twice_IsStale) {
  Bench b(10);
  const auto leases = b.take(2);
  EXPECT_EQ(b.ack(leases[1]), SettleStatus::done);
  EXPECT_EQ(b.ack(leases[1]), SettleStatus::stale);
  EXPECT_EQ(b.ack(leases[0]), SettleStatus::done);
  EXPECT_EQ(b.ack(leases[0]), SettleStatus::stale);
}

TEST(LeaseTable, Ack_NeverLeasedOrWrongNonce_IsStaleAndChangesNothing) {
  Bench b(10);
  const Lease lease = b.one();
  EXPECT_EQ(b.ack({Offset(5), LeaseNonce(1000)}), SettleStatus::stale);
  EXPECT_EQ(b.ack({Offset(0), LeaseNonce(999)}), SettleStatus::stale);
  EXPECT_EQ(b.table.frontier(), Offset(0));
  EXPECT_EQ(b.ack(lease), SettleStatus::done);
}

TEST(LeaseTable, Ack_AheadFull_IsRefusedAndKeepsTheLease) {
  Bench b(10);
  b.caps.acked_ahead_max = 2;
  const auto leases = b.take(5);
  EXPECT_EQ(b.ack(leases[1]), SettleStatus::done);
  EXPECT_EQ(b.ack(leases[2]), SettleStatus::done);
  EXPECT_EQ(b.ack(leases[4]), SettleStatus::ahead_full);
  EXPECT_EQ(b.table.acked_ahead(), 2u);
  EXPECT_EQ(b.table.in_flight(), 3u);
  EXPECT_EQ(b.ack(leases[0]), SettleStatus::done) << "the frontier itself is always taken";
  EXPECT_EQ(b.table.frontier(), Offset(3));
  EXPECT_EQ(b.ack(leases[4]), SettleStatus::done) << "the same lease, later";
}

TEST(LeaseTable, Reserve_AheadFull_HandsOutTheFrontierOnly) {
  Bench b(10);
  b.caps.acked_ahead_max = 2;
  const auto leases = b.take(3);
  ASSERT_EQ(b.ack(leases[1]), SettleStatus::done);
  ASSERT_EQ(b.ack(leases[2]), SettleStatus::done);
  EXPECT_TRUE(b.take(5).empty());
  EXPECT_EQ(b.last, ReserveOutcome::ahead_full);
  ASSERT_EQ(b.table.nack(b.now, leases[0]), SettleStatus::done);
  EXPECT_EQ(b.offsets(5), (Offsets{0})) << "one, though five were wanted";
  EXPECT_TRUE(b.take(5).empty());
  EXPECT_EQ(b.last, ReserveOutcome::ahead_full);
}

TEST(LeaseTable, Extend_SurvivesTheOldDeadlineUnderTheSameNonce) {
  Bench b(10);
  const Lease lease = b.one();
  b.now = seconds(20);
  EXPECT_EQ(b.table.extend(b.now, lease, kVisibility), SettleStatus::done);
  EXPECT_EQ(b.table.next_expiry(), seconds(50));
  b.now = seconds(49);
  EXPECT_EQ(b.table.extend(b.now, lease, kVisibility), SettleStatus::done);
  b.now = seconds(78);
  EXPECT_EQ(b.ack(lease), SettleStatus::done);
}

TEST(LeaseTable, Extend_Shorter_EndsEarlier) {
  Bench b(10);
  const Lease lease = b.one();
  EXPECT_EQ(b.table.extend(b.now, lease, seconds(1)), SettleStatus::done);
  EXPECT_EQ(b.table.next_expiry(), seconds(1));
  EXPECT_EQ(b.table.expire(seconds(1)), 1u);
}

TEST(LeaseTable, Extend_AfterExpiry_IsStale) {
  Bench b(10);
  const Lease lease = b.one();
  EXPECT_EQ(b.table.extend(kVisibility, lease, kVisibility), SettleStatus::stale);
}

TEST(LeaseTable, Extend_OverAndOver_KeepsTheHeapSmall) {
  Bench b(10);
  const Lease lease = b.one();
  for (int n = 0; n < 1000; ++n) {
    b.now += Nanos(1);
    ASSERT_EQ(b.table.extend(b.now, lease, n % 2 == 0 ? kVisibility : seconds(5)),
              SettleStatus::done);
    b.table.check_invariants();  // bounds the heap
  }
}

TEST(LeaseTable, Nack_GivesTheRecordBackUnderANewNonce) {
  Bench b(10);
  const auto leases = b.take(2);
  EXPECT_EQ(b.table.nack(b.now, leases[0]), SettleStatus::done);
  EXPECT_EQ(b.table.nack(b.now, leases[0]), SettleStatus::stale);
  const Lease again = b.one();
  EXPECT_EQ(again.offset, Offset(0));
  EXPECT_NE(again.nonce, leases[0].nonce);
  EXPECT_EQ(b.ack(leases[0]), SettleStatus::stale);
}

TEST(LeaseTable, Lose_NeedsTheLiveNonce) {
  Bench b(10);
  const auto leases = b.take(2);
  EXPECT_FALSE(b.table.lose(b.now, {Offset(1), LeaseNonce(7)}));
  EXPECT_TRUE(b.table.lose(b.now, leases[1]));
  EXPECT_EQ(b.table.lost_ahead(), 1u);
  EXPECT_EQ(b.ack(leases[1]), SettleStatus::stale);
  EXPECT_EQ(b.ack(leases[0]), SettleStatus::done);
  EXPECT_EQ(b.table.frontier(), Offset(2)) << "past the lost one";
}

TEST(LeaseTable, MarkLost_AtTheFrontier_MovesItPastTheWholeRun) {
  Bench b(2'000'000);
  EXPECT_EQ(b.table.mark_lost({Offset(0), Offset(1'000'000)}, b.bounds.hwm), 1'000'000u);
  EXPECT_EQ(b.table.frontier(), Offset(1'000'000));
  EXPECT_EQ(b.one().offset, Offset(1'000'000));
}

TEST(LeaseTable, MarkLost_LeavesLeasedAndAckedRecordsAlone) {
  Bench b(20);
  const auto leases = b.take(6);
  ASSERT_EQ(b.ack(leases[3]), SettleStatus::done);
  ASSERT_EQ(b.table.nack(b.now, leases[4]), SettleStatus::done);
  // 1, 2, 5 leased; 3 acked; 4 given back; 6 to 9 fresh.
  EXPECT_EQ(b.table.mark_lost({Offset(1), Offset(10)}, b.bounds.hwm), 5u);
  b.table.check_invariants();
  EXPECT_EQ(b.ack(leases[2]), SettleStatus::done);
  EXPECT_EQ(b.offsets(3), (Offsets{10, 11, 12}));
  EXPECT_EQ(b.ack(leases[0]), SettleStatus::done);
  EXPECT_EQ(b.ack(leases[1]), SettleStatus::done);
  EXPECT_EQ(b.ack(leases[5]), SettleStatus::done);
  EXPECT_EQ(b.table.frontier(), Offset(10));
}

TEST(LeaseTable, MarkLost_CountsTowardsTheAheadCapOnceARun) {
  Bench b(100);
  b.caps.acked_ahead_max = 2;
  const auto leases = b.take(3);
  EXPECT_EQ(b.table.mark_lost({Offset(10), Offset(90)}, b.bounds.hwm), 80u);
  EXPECT_EQ(b.ack(leases[1]), SettleStatus::done) << "a long hole is one entry, not eighty";
  EXPECT_EQ(b.ack(leases[2]), SettleStatus::ahead_full);
}

TEST(LeaseTable, MarkLost_NothingAtOrAboveTheHighWatermark) {
  Bench b(5);
  EXPECT_EQ(b.table.mark_lost({Offset(3), Offset(9)}, b.bounds.hwm), 2u);
  b.bounds.hwm = Offset(9);
  EXPECT_EQ(b.offsets(9), (Offsets{0, 1, 2, 5, 6, 7, 8}));
}

TEST(LeaseTable, AdvanceTo_JumpsAndCountsOnlyWhatWasNotSettled) {
  Bench b(1'000'000'000'000);
  const auto leases = b.take(5);
  ASSERT_EQ(b.ack(leases[2]), SettleStatus::done);
  ASSERT_TRUE(b.table.lose(b.now, leases[3]));
  b.bounds.oldest = Offset(900'000'000'000);  // one step, not one offset at a time
  EXPECT_EQ(b.one().offset, b.bounds.oldest);
  EXPECT_EQ(b.table.dropped_total(), 900'000'000'000u - 2);
  EXPECT_EQ(b.table.in_flight(), 1u);
  EXPECT_EQ(b.ack(leases[0]), SettleStatus::stale) << "the record is gone";
}

TEST(LeaseTable, AdvanceTo_KeepsWhatIsAckedBeyond) {
  Bench b(20);
  const auto leases = b.take(10);
  ASSERT_EQ(b.ack(leases[5]), SettleStatus::done);
  ASSERT_EQ(b.ack(leases[9]), SettleStatus::done);
  EXPECT_EQ(b.table.advance_to(Offset(5)), 5u);
  EXPECT_EQ(b.table.frontier(), Offset(6)) << "5 was acked";
  EXPECT_EQ(b.ack(leases[6]), SettleStatus::done);
  EXPECT_EQ(b.table.advance_to(Offset(3)), 0u) << "never back";
  b.table.check_invariants();
}

TEST(LeaseTable, Clamp_ForgetsEverythingAtOrAboveTheHighWatermark) {
  Bench b(20);
  const auto leases = b.take(10);
  for (std::size_t n : {0, 1, 2, 7, 9}) ASSERT_EQ(b.ack(leases[n]), SettleStatus::done);
  ASSERT_EQ(b.table.nack(b.now, leases[5]), SettleStatus::done);
  EXPECT_TRUE(b.table.clamp(Offset(6)));
  b.table.check_invariants();
  EXPECT_EQ(b.table.position_end(), Offset(6));
  EXPECT_EQ(b.ack(leases[8]), SettleStatus::stale);
  b.bounds.hwm = Offset(9);
  EXPECT_EQ(b.offsets(9), (Offsets{5, 6, 7, 8}));
}

TEST(LeaseTable, Clamp_FrontierAboveTheHighWatermark_GoesBack) {
  Bench b(3, {Offset(10), {{Offset(12), Offset(14)}}});
  EXPECT_EQ(b.table.position_end(), Offset(14));
  EXPECT_TRUE(b.table.clamp(Offset(3)));
  EXPECT_EQ(b.table.positions(), (ConsumerPositions{Offset(3), {}}));
  b.bounds.hwm = Offset(6);
  EXPECT_EQ(b.offsets(9), (Offsets{3, 4, 5})) << "new records under old offsets are delivered";
}

TEST(LeaseTable, Clamp_NothingAbove_ForgetsNothing) {
  Bench b(10, {Offset(3), {{Offset(5), Offset(10)}}});
  EXPECT_FALSE(b.table.clamp(Offset(10)));
  EXPECT_EQ(b.offsets(9), (Offsets{3, 4}));
}

TEST(LeaseTable, Start_RunsThatTouchTheFrontier_AreTakenIn) {
  Bench b(20, {Offset(4), {{Offset(2), Offset(6)}, {Offset(8), Offset(9)}}});
  EXPECT_EQ(b.table.frontier(), Offset(6));
  EXPECT_EQ(b.offsets(3), (Offsets{6, 7, 9}));
}

TEST(LeaseTable, FirstNonce_IsAtLeastOneAndLeavesRoomToCount) {
  EXPECT_EQ(first_nonce(0), LeaseNonce(1));
  EXPECT_EQ(first_nonce(~std::uint64_t{0}), LeaseNonce(std::uint64_t{1} << 62));
}

TEST(LeaseTable, LargeCaps_SettleOutOfOrderAndExpireAtOnce) {
  Bench b(4'000'000);
  b.caps = {200'000, 200'000};
  std::vector<Lease> leases;
  ASSERT_EQ(b.table.reserve(b.now, b.bounds, b.caps, kVisibility, 200'000, leases),
            ReserveOutcome::leased);
  ASSERT_EQ(leases.size(), 200'000u);
  // Every other one out of order, then all expire at once, then the rest.
  for (std::size_t n = 1; n < leases.size(); n += 2) {
    ASSERT_EQ(b.table.ack(b.now, leases[n], b.caps), SettleStatus::done);
  }
  EXPECT_EQ(b.table.acked_ahead(), 100'000u);
  b.now = kVisibility;
  EXPECT_EQ(b.table.expire(b.now), 100'000u);
  leases.clear();
  ASSERT_EQ(b.table.reserve(b.now, b.bounds, b.caps, kVisibility, 100'000, leases),
            ReserveOutcome::leased);
  for (const Lease& lease : leases) {
    ASSERT_EQ(b.table.ack(b.now, lease, b.caps), SettleStatus::done);
  }
  EXPECT_EQ(b.table.frontier(), Offset(200'000));
  b.table.check_invariants();
}

// ---- against a naive reference ------------------------------------------------------------

// One word per offset, every rule as a loop over all of them.
struct Naive {
  enum class State { free, leased, acked, lost };
  struct Cell {
    State state = State::free;
    std::uint64_t nonce = 0;
    Nanos expiry{0};
  };
  std::vector<Cell> cells{512};
  std::uint64_t frontier = 0;
  std::uint64_t nonce = 0;
  std::uint64_t dropped = 0;

  void expire(Nanos now) {
    for (Cell& cell : cells) {
      if (cell.state == State::leased && cell.expiry <= now) cell.state = State::free;
    }
  }
  std::uint64_t count(State state) const {
    std::uint64_t n = 0;
    for (std::uint64_t at = frontier; at < cells.size(); ++at) n += cells[at].state == state;
    return n;
  }
  std::uint64_t ahead() const {  // a run of lost records counts once
    std::uint64_t n = count(State::acked);
    for (std::uint64_t at = frontier; at < cells.size(); ++at) {
      n += cells[at].state == State::lost && (at == 0 || cells[at - 1].state != State::lost);
    }
    return n;
  }
  void absorb() {
    while (frontier < cells.size() &&
           (cells[frontier].state == State::acked || cells[frontier].state == State::lost)) {
      ++frontier;
    }
  }
  void advance(std::uint64_t oldest) {
    for (; frontier < oldest; ++frontier) {
      const State state = cells[frontier].state;
      if (state == State::free || state == State::leased) ++dropped;
      cells[frontier].state = State::acked;
    }
    absorb();
  }
  bool live(Lease lease) const {
    const Cell& cell = cells[lease.offset.value()];
    return lease.offset.value() >= frontier && cell.state == State::leased &&
           cell.nonce == lease.nonce.value();
  }
  ReserveOutcome reserve(Nanos now, std::uint64_t oldest, std::uint64_t hwm, LeaseCaps caps,
                         Nanos visibility, std::vector<Lease>& out) {
    expire(now);
    advance(std::min(oldest, hwm));
    if (count(State::leased) >= caps.in_flight_max) return ReserveOutcome::cap;
    if (frontier >= hwm) return ReserveOutcome::empty;
    const bool full = ahead() >= caps.acked_ahead_max;
    for (std::uint64_t at = frontier; at < (full ? frontier + 1 : hwm); ++at) {
      if (cells[at].state != State::free) continue;
      cells[at] = {State::leased, nonce, now + visibility};
      out.push_back({Offset(at), LeaseNonce(nonce++)});
      return ReserveOutcome::leased;
    }
    return full ? ReserveOutcome::ahead_full : ReserveOutcome::all_reserved;
  }
  SettleStatus ack(Nanos now, Lease lease, LeaseCaps caps) {
    expire(now);
    if (!live(lease)) return SettleStatus::stale;
    if (lease.offset.value() != frontier && ahead() >= caps.acked_ahead_max) {
      return SettleStatus::ahead_full;
    }
    cells[lease.offset.value()].state = State::acked;
    absorb();
    return SettleStatus::done;
  }
};

using Reached = std::array<std::uint64_t, 12>;

void run_against_naive(std::uint64_t seed, int steps, Reached& reached) {
  sim::Rng random(seed);
  LeaseTable table({}, LeaseNonce(1));
  Naive naive;
  naive.nonce = 1;
  std::uint64_t hwm = 0;
  std::uint64_t oldest = 0;
  Nanos now{0};
  LeaseCaps caps{8, 8};
  std::vector<Lease> given;
  for (int step = 0; step < steps; ++step) {
    now += Nanos(random.next() % 3);
    const std::uint64_t limit = naive.cells.size() - 1;
    const Nanos visibility(1 + static_cast<std::int64_t>(random.next() % 40));
    const Lease lease = given.empty() ? Lease{} : given[random.next() % given.size()];
    const std::uint64_t what = random.next() % 100;
    if (what < 12) {
      hwm = std::min(limit, hwm + random.next() % 5);
    } else if (what < 45) {
      const std::size_t count = 1 + random.next() % (random.next() % 4 == 0 ? 6 : 1);
      std::vector<Lease> mine;
      std::vector<Lease> theirs;
      const ReserveOutcome outcome =
          table.reserve(now, {Offset(oldest), Offset(hwm)}, caps, visibility, count, mine);
      ReserveOutcome expected = ReserveOutcome::leased;
      for (std::size_t n = 0; n < count; ++n) {
        const ReserveOutcome each = naive.reserve(now, oldest, hwm, caps, visibility, theirs);
        if (n == 0) expected = each;
        if (each != ReserveOutcome::leased) break;
      }
      ASSERT_EQ(mine, theirs) << "step " << step;
      ASSERT_EQ(outcome, expected) << "step " << step;
      ++reached[static_cast<std::size_t>(outcome)];
      given.insert(given.end(), mine.begin(), mine.end());
      if (given.size() > 24) given.erase(given.begin(), given.begin() + 6);
    } else if (what < 70 && !given.empty()) {
      const SettleStatus status = table.ack(now, lease, caps);
      ASSERT_EQ(status, naive.ack(now, lease, caps)) << "step " << step;
      ++reached[5 + static_cast<std::size_t>(status)];
    } else if (what < 78 && !given.empty()) {
      naive.expire(now);
      const bool live = naive.live(lease);
      if (live) naive.cells[lease.offset.value()].expiry = now + visibility;
      ASSERT_EQ(table.extend(now, lease, visibility) == SettleStatus::done, live);
    } else if (what < 86 && !given.empty()) {
      naive.expire(now);
      const bool live = naive.live(lease);
      if (live) naive.cells[lease.offset.value()].state = Naive::State::free;
      ASSERT_EQ(table.nack(now, lease) == SettleStatus::done, live);
    } else if (what < 89 && !given.empty()) {
      naive.expire(now);
      const bool live = naive.live(lease);
      if (live) naive.cells[lease.offset.value()].state = Naive::State::lost;
      naive.absorb();
      ASSERT_EQ(table.lose(now, lease), live);
    } else if (what < 92) {
      const std::uint64_t begin = naive.frontier + random.next() % 12;
      const std::uint64_t end = begin + 1 + random.next() % 6;
      std::uint64_t expected = 0;
      for (std::uint64_t at = begin; at < std::min(end, hwm); ++at) {
        if (naive.cells[at].state != Naive::State::free) continue;
        naive.cells[at].state = Naive::State::lost;
        ++expected;
      }
      naive.absorb();
      // Leases that ran out but were not taken back yet count as leased on either side.
      ASSERT_EQ(table.mark_lost({Offset(begin), Offset(end)}, Offset(hwm)), expected);
      reached[8] += expected > 0;
    } else if (what < 94) {
      oldest = std::min(hwm, std::max(oldest, naive.frontier + random.next() % 8));
      reached[9] += oldest > naive.frontier;
    } else if (what < 96) {
      caps = {random.next() % 12, random.next() % 12};
    } else if (what < 97) {
      now += Nanos(20);
    } else if (what < 98 && random.next() % 4 == 0) {
      const std::uint64_t to = hwm - std::min<std::uint64_t>(hwm, random.next() % 6);
      bool forgot = naive.frontier > to;
      for (std::uint64_t at = to; at < naive.cells.size(); ++at) {
        forgot |= at >= naive.frontier && naive.cells[at].state == Naive::State::acked;
        naive.cells[at].state = Naive::State::free;
      }
      naive.frontier = std::min(naive.frontier, to);
      oldest = std::min(oldest, to);
      hwm = to;
      ASSERT_EQ(table.clamp(Offset(to)), forgot);
      reached[10] += forgot;
    } else if (hwm == limit || random.next() % 64 == 0) {  // start over where we are: a restart
      const ConsumerPositions positions = table.positions();
      naive.expire(now + std::chrono::hours(1));
      std::uint64_t shift = naive.frontier;
      if (hwm == limit) {  // and slide the window back to the beginning
        Naive fresh;
        fresh.nonce = naive.nonce;
        fresh.dropped = naive.dropped;
        naive = fresh;
        table = LeaseTable({}, LeaseNonce(naive.nonce));
        hwm = oldest = 0;
        naive.dropped = 0;
      } else {
        for (std::uint64_t at = shift; at < naive.cells.size(); ++at) {
          if (naive.cells[at].state == Naive::State::lost) {
            naive.cells[at].state = Naive::State::free;  // lost ones ahead are found again
          }
        }
        table = LeaseTable(positions, LeaseNonce(naive.nonce));
        naive.dropped = 0;
      }
      given.clear();
      ++reached[11];
    }
    table.check_invariants();
    ASSERT_EQ(table.frontier(), Offset(naive.frontier)) << "step " << step;
    ASSERT_EQ(table.dropped_total(), naive.dropped) << "step " << step;
    ASSERT_EQ(table.acked_ahead(), naive.count(Naive::State::acked)) << "step " << step;
    ASSERT_EQ(table.lost_ahead(), naive.count(Naive::State::lost)) << "step " << step;
    ASSERT_EQ(table.in_flight(), naive.count(Naive::State::leased)) << "step " << step;
  }
}

TEST(LeaseTable, RandomSteps_AgreeWithANaiveReference) {
  Reached reached{};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    run_against_naive(seed, 20'000, reached);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
  for (std::size_t n = 0; n < reached.size(); ++n) {
    EXPECT_GT(reached[n], 0u) << "case " << n << " was never reached";
  }
}

}  // namespace
}  // namespace narad::delivery
