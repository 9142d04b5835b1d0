#include "internal/security/failures.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"

namespace narad::security {
namespace {

using std::chrono::seconds;
using Verdict = Failures::Verdict;

Fingerprint guess(std::uint64_t n) { return {n, 77}; }

TEST(Failures, FiveWrongPasswords_LockOutForTwelveSecondsEach) {
  Failures f;
  Nanos now = seconds(1000);
  for (std::uint64_t n = 0; n < 5; ++n) {
    ASSERT_EQ(f.admit("u", "h", guess(n), now), Verdict::check);
    f.wrong("u", "h", guess(n), now);
    EXPECT_EQ(f.attempts_left("u", now), 4 - static_cast<int>(n));
  }
  EXPECT_EQ(f.admit("u", "h", guess(9), now), Verdict::locked_out);
  EXPECT_EQ(f.admit("other", "h", guess(9), now), Verdict::check) << "per user";
  EXPECT_EQ(f.admit("u", "h", guess(9), now + seconds(12) - Nanos(1)), Verdict::locked_out);
  EXPECT_EQ(f.admit("u", "h", guess(9), now + seconds(12)), Verdict::check);
  EXPECT_EQ(f.admit("u", "h", guess(10), now + seconds(12)), Verdict::locked_out);
  EXPECT_EQ(f.attempts_left("u", now + seconds(12 + 60)), 5);
}

TEST(Failures, RightPassword_GetsItsAttemptBack) {
  Failures f;
  const Nanos now = seconds(1000);
  for (int n = 0; n < 50; ++n) {
    ASSERT_EQ(f.admit("u", "h", guess(1), now), Verdict::check);
    f.right("u", now);
    f.check_invariants(now);
  }
  EXPECT_EQ(f.attempts_left("u", now), 5);
}

TEST(Failures, SameWrongPassword_CostsOneAttemptInSixtySeconds) {
  Failures f;
  const Nanos now = seconds(1000);
  ASSERT_EQ(f.admit("u", "h", guess(1), now), Verdict::check);
  f.wrong("u", "h", guess(1), now);
  EXPECT_EQ(f.admit("u", "h", guess(1), now + seconds(60) - Nanos(1)), Verdict::wrong);
  EXPECT_EQ(f.attempts_left("u", now), 4);
  EXPECT_EQ(f.admit("u", "h", guess(1), now + seconds(60)), Verdict::check);
  // Also while locked out: it is still known to be wrong.
  Failures g;
  for (std::uint64_t n = 0; n < 5; ++n) {
    g.admit("u", "h", guess(n), now);
    g.wrong("u", "h", guess(n), now);
  }
  EXPECT_EQ(g.admit("u", "h", guess(0), now), Verdict::wrong);
  EXPECT_EQ(g.admit("u", "h", guess(5), now), Verdict::locked_out);
}

TEST(Failures, ChangedPassword_ForgetsWhatWasWrong) {
  Failures f;
  const Nanos now = seconds(1000);
  f.admit("u", "h", guess(1), now);
  f.wrong("u", "h", guess(1), now);
  EXPECT_EQ(f.admit("u", "new", guess(1), now), Verdict::check);
  EXPECT_EQ(f.attempts_left("u", now), 3) << "attempts are not forgotten";
}

TEST(Failures, Memory_KeepsTheLatestSixteen) {
  Failures f;
  Nanos now = seconds(1000);
  for (std::uint64_t n = 0; n < 20; ++n) {
    // As if the attempts had been there: what is tested is the memory.
    f.wrong("u", "h", guess(n), now);
  }
  int known = 0;
  for (std::uint64_t n = 0; n < 20; ++n) {
    if (f.admit("u", "h", guess(n), now) == Verdict::wrong) ++known;
  }
  EXPECT_EQ(known, 16);
  EXPECT_EQ(f.admit("u", "h", guess(19), now), Verdict::wrong);
  f.check_invariants(now);
}

TEST(Failures, UnknownUsers_AreNeverLockedOutAndRememberedWithinABound) {
  Failures f;
  const Nanos now = seconds(1000);
  for (std::uint64_t n = 0; n < 6000; ++n) {
    ASSERT_EQ(f.admit_unknown(guess(n), now), Verdict::check);
    f.wrong_unknown(guess(n), now);
    ASSERT_EQ(f.admit_unknown(guess(n), now), Verdict::wrong);
  }
  EXPECT_EQ(f.size(), Failures::kUnknownMax);
  EXPECT_EQ(f.admit_unknown(guess(0), now), Verdict::check) << "the oldest went";
  EXPECT_EQ(f.admit_unknown(guess(5999), now + Failures::kRememberFor), Verdict::check);
  f.check_invariants(now);
}

TEST(Failures, IdleUsers_AreForgotten) {
  Failures f;
  Nanos now = seconds(1000);
  for (int n = 0; n < 10'000; ++n) {
    f.admit(cat("user-", n), "h", guess(1), now);
    now += seconds(1);
  }
  EXPECT_LT(f.size(), 200u);
  f.check_invariants(now);
}

// Against the plain rule: five, one back every twelve seconds, taken and given back.
TEST(Failures, RandomHistories_AgreeWithTheRule) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::uint64_t x = seed * 0x9E3779B97F4A7C15u;
    const auto below = [&x](std::uint64_t n) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      return x % n;
    };
    Failures f;
    Nanos now = seconds(1000);
    Nanos owed(0);  // until the bucket is full
    std::uint64_t fresh = 0;
    for (int step = 0; step < 300; ++step) {
      const Nanos passed = std::chrono::milliseconds(below(9000));
      now += passed;
      owed = std::max(Nanos(0), owed - passed);
      const bool free = owed <= seconds(48);
      const auto verdict = f.admit("u", "h", guess(++fresh), now);
      ASSERT_EQ(verdict, free ? Verdict::check : Verdict::locked_out) << seed << " " << step;
      if (!free) continue;
      owed += seconds(12);
      if (below(3) == 0) {
        f.right("u", now);
        owed -= seconds(12);
      } else {
        f.wrong("u", "h", guess(fresh), now);
      }
      f.check_invariants(now);
    }
  }
}

}  // namespace
}  // namespace narad::security
