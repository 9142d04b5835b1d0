#include "internal/security/rates.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"

namespace narad::security {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Rates, NoLimit_LetsEverythingIn) {
  Rates r(0, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(r.admit("u", Nanos(1)), std::nullopt);
  r.charge("u", 1 << 30, Nanos(1));
  EXPECT_EQ(r.admit("u", Nanos(1)), std::nullopt);
  EXPECT_EQ(r.size(), 0u);
}

TEST(Rates, Requests_BurstOfOneSecondThenOneByOne) {
  Rates r(4, 0);
  const Nanos now = seconds(100);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(r.admit("u", now), std::nullopt) << i;
  EXPECT_EQ(r.admit("u", now), milliseconds(250));
  EXPECT_EQ(r.admit("other", now), std::nullopt);
  EXPECT_EQ(r.admit("u", now + milliseconds(249)), milliseconds(1));
  EXPECT_EQ(r.admit("u", now + milliseconds(250)), std::nullopt);
  EXPECT_EQ(r.admit("u", now + milliseconds(250)), milliseconds(250));
  r.check_invariants(now + milliseconds(250));
}

TEST(Rates, Refused_CostsNothing) {
  Rates r(1, 0);
  const Nanos now = seconds(100);
  EXPECT_EQ(r.admit("u", now), std::nullopt);
  for (int i = 0; i < 100; ++i) EXPECT_NE(r.admit("u", now), std::nullopt);
  EXPECT_EQ(r.admit("u", now + seconds(1)), std::nullopt);
}

TEST(Rates, Bytes_MayBeOwedAndAreWaitedFor) {
  Rates r(0, 1000);
  const Nanos now = seconds(100);
  EXPECT_EQ(r.admit("u", now), std::nullopt);
  r.charge("u", 5000, now);
  EXPECT_EQ(r.admit("u", now), seconds(4));
  EXPECT_EQ(r.admit("u", now + seconds(4)), std::nullopt);
  r.charge("u", 1, now + seconds(4));
  EXPECT_EQ(r.admit("u", now + seconds(4)), milliseconds(1));
}

TEST(Rates, HugeCharge_DoesNotOverflow) {
  Rates r(0, 1);
  r.charge("u", ~std::uint64_t{0}, seconds(1));
  EXPECT_GT(*r.admit("u", seconds(1)), seconds(1'000'000));
}

// Over a long time exactly the rate gets through, whatever the pattern of tries.
TEST(Rates, LongRun_LetsTheRateThrough) {
  for (std::uint64_t rate : {1u, 3u, 7u, 1000u, 33'333u}) {
    Rates r(rate, 0);
    Nanos now = seconds(1);
    std::uint64_t admitted = 0;
    const Nanos step = Nanos(1'000'000'000 / static_cast<std::int64_t>(rate) / 3 + 1);
    const Nanos end = now + seconds(20);
    for (; now < end; now += step) {
      if (!r.admit("u", now)) ++admitted;
    }
    EXPECT_GE(admitted, rate * 20) << rate;
    EXPECT_LE(admitted, rate * 21 + rate / 1000 + 2) << rate;  // whole nanoseconds
  }
}

TEST(Rates, IdleUsers_AreForgotten) {
  Rates r(10, 10);
  for (int n = 0; n < 10'000; ++n) (void)r.admit(cat("user-", n), seconds(n));
  EXPECT_LT(r.size(), 200u);
}

}  // namespace
}  // namespace narad::security
