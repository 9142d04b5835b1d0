#include "cmd/narad/ledger.h"

#include <gtest/gtest.h>

#include "cmd/narad/histogram.h"

namespace narad::cli {
namespace {

TEST(Ledger, EveryFate_IsCounted) {
  Ledger l(7, 64);
  for (std::uint64_t i = 0; i < 4; ++i) l.sent(i, Sent::accepted);
  l.sent(4, Sent::unknown);
  l.sent(5, Sent::unknown);
  l.came_back(l.payload(0));
  l.came_back(l.payload(0));
  l.came_back(l.payload(1));
  EXPECT_TRUE(l.came_back(l.payload(4)));
  EXPECT_FALSE(l.came_back("{\"bench\":\"another run\"}"));
  std::string bent = l.payload(2);
  bent.back() = '!';
  l.came_back(bent);
  EXPECT_FALSE(l.complete());
  Tally t = l.tally();
  EXPECT_EQ(t.accepted, 4u);
  EXPECT_EQ(t.unknown, 2u);
  EXPECT_EQ(t.delivered, 3u);
  EXPECT_EQ(t.unknown_delivered, 1u);
  EXPECT_EQ(t.lost, 2u);
  EXPECT_EQ(t.duplicated, 1u);
  EXPECT_EQ(t.damaged, 1u);
  EXPECT_EQ(t.foreign, 1u);
  l.came_back(l.payload(2));
  l.came_back(l.payload(3));
  EXPECT_TRUE(l.complete());
}

TEST(Ledger, MessageBackBeforeItsAnswer_IsNotMissing) {
  Ledger l(7, 10);
  l.came_back(l.payload(0));
  l.sent(0, Sent::accepted);
  EXPECT_TRUE(l.complete());
  EXPECT_EQ(l.tally().lost, 0u);
}

TEST(Ledger, Payloads_HaveTheSizeAskedForWhenItIsEnough) {
  Ledger l(7, 100);
  EXPECT_EQ(l.payload(12).size(), 100u);
  EXPECT_NE(l.payload(12), l.payload(13));
}

TEST(Histogram, Percentiles_AreWithinOnePercent) {
  Histogram h;
  for (int i = 1; i <= 100'000; ++i) h.record(std::chrono::nanoseconds(i * 1000));
  for (double p : {0.01, 0.5, 0.95, 0.99, 0.999}) {
    double exact = p * 100'000 * 1000;
    EXPECT_NEAR(static_cast<double>(h.percentile(p).count()), exact, exact * 0.01) << p;
  }
  EXPECT_EQ(h.percentile(1).count(), 100'000'000);
  EXPECT_EQ(h.max().count(), 100'000'000);
  EXPECT_NEAR(static_cast<double>(h.mean().count()), 50'000'500, 1000);
}

TEST(Histogram, EmptyAndExtremeValues_AreHarmless) {
  Histogram h;
  EXPECT_EQ(h.percentile(0.5).count(), 0);
  h.record(std::chrono::nanoseconds(-5));
  h.record(std::chrono::nanoseconds::max());
  EXPECT_EQ(h.percentile(0.5).count(), 0);
  EXPECT_EQ(h.percentile(0.99), std::chrono::nanoseconds::max());
}

}  // namespace
}  // namespace narad::cli
