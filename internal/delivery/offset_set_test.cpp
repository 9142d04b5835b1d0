#include "internal/delivery/offset_set.h"

#include <gtest/gtest.h>

#include <set>

#include "pkg/sim/rng.h"

namespace narad::delivery {
namespace {

OffsetRun run(std::uint64_t begin, std::uint64_t end) { return {Offset(begin), Offset(end)}; }

TEST(OffsetSet, TouchingRuns_BecomeOne) {
  OffsetSet set;
  EXPECT_EQ(set.insert(run(1, 3)), 2u);
  EXPECT_EQ(set.insert(run(5, 7)), 2u);
  EXPECT_EQ(set.run_count(), 2u);
  EXPECT_EQ(set.insert(run(3, 5)), 2u);
  EXPECT_EQ(set.runs(), std::vector{run(1, 7)});
}

TEST(OffsetSet, RangeOverSeveralRuns_CountsOnlyWhatIsNew) {
  OffsetSet set;
  set.insert(run(2, 4));
  set.insert(run(6, 8));
  EXPECT_EQ(set.insert(run(0, 10)), 6u);
  EXPECT_EQ(set.size(), 10u);
  EXPECT_EQ(set.insert(run(3, 9)), 0u);
}

TEST(OffsetSet, EraseInTheMiddle_LeavesBothEnds) {
  OffsetSet set;
  set.insert(run(0, 10));
  EXPECT_EQ(set.erase(run(3, 5)), 2u);
  EXPECT_EQ(set.runs(), (std::vector{run(0, 3), run(5, 10)}));
  EXPECT_EQ(set.pop_first(), Offset(0));
  EXPECT_EQ(set.first_run(), run(1, 3));
}

// Every operation against a plain set of numbers.
TEST(OffsetSet, RandomOperations_AgreeWithASetOfNumbers) {
  sim::Rng random(7);
  OffsetSet set;
  std::set<std::uint64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t begin = random.next() % 60;
    const std::uint64_t end = begin + 1 + random.next() % (random.next() % 8 == 0 ? 30 : 4);
    std::uint64_t changed = 0;
    std::uint64_t inside = 0;
    for (std::uint64_t at = begin; at < end; ++at) inside += model.count(at);
    ASSERT_EQ(set.count_in(run(begin, end)), inside);
    if (random.next() % 2 == 0) {
      for (std::uint64_t at = begin; at < end; ++at) changed += model.insert(at).second ? 1 : 0;
      ASSERT_EQ(set.insert(run(begin, end)), changed);
    } else {
      for (std::uint64_t at = begin; at < end; ++at) changed += model.erase(at);
      ASSERT_EQ(set.erase(run(begin, end)), changed);
    }
    ASSERT_TRUE(set.invariants_hold());
    ASSERT_EQ(set.size(), model.size());
    const std::uint64_t probe = random.next() % 70;
    ASSERT_EQ(set.contains(Offset(probe)), model.contains(probe));
    std::uint64_t past = probe;
    while (model.contains(past)) ++past;
    ASSERT_EQ(set.run_end(Offset(probe)), Offset(past));
    if (!model.empty()) {
      ASSERT_EQ(set.first(), Offset(*model.begin()));
      ASSERT_EQ(set.last(), Offset(*model.rbegin()));
    }
  }
}

}  // namespace
}  // namespace narad::delivery
