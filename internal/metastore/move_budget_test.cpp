#include "internal/metastore/move_budget.h"

#include <gtest/gtest.h>

namespace narad::metastore {
namespace {

Assignment move(const char* from, const char* to) {
  Assignment a;
  a.owner_node = from;
  a.target_node = to;
  return a;
}

TEST(MoveBudget, ANodeThatSendsToSeveral_IsSharedAmongThem) {
  Receivers receivers;
  for (const char* to : {"n2", "n3", "n3", "n4"}) receivers.see(move("n1", to));
  receivers.see(move("n2", "n3"));
  receivers.see(move("n4", "n4"));
  receivers.see(move("n3", ""));
  EXPECT_EQ(receivers.of("n1"), 3u);
  EXPECT_EQ(receivers.of("n2"), 1u);
  EXPECT_EQ(receivers.of("n4"), 1u) << "from disk to disk nothing is sent";
  EXPECT_EQ(receivers.of("n3"), 1u);
  EXPECT_EQ(receivers.of("unknown"), 1u);
}

TEST(MoveBudget, Shares_AddUpToNoMoreThanTheBudget) {
  EXPECT_EQ(sending_share(0, 3), 0u) << "no limit";
  EXPECT_EQ(sending_share(1'000, 1), 1'000u);
  for (std::size_t n = 1; n < 40; ++n) EXPECT_LE(sending_share(1'024, n) * n, 1'024u) << n;
  EXPECT_EQ(sending_share(2, 3), 1u) << "never a stop";
}

TEST(MoveBudget, OfAMove_IsTheLeastOfWhatHoldsIt) {
  State state;
  Receivers receivers;
  for (const char* to : {"n2", "n3"}) receivers.see(move("n1", to));
  Assignment a = move("n1", "n2");
  EXPECT_EQ(budget_of(state, receivers, a), 0u);
  a.move_rate = 5'000;
  EXPECT_EQ(budget_of(state, receivers, a), 5'000u);
  state.move_rate = 8'000;
  EXPECT_EQ(budget_of(state, receivers, a), 4'000u) << "half of what n1 may send";
  a.move_rate = 3'000;
  EXPECT_EQ(budget_of(state, receivers, a), 3'000u);
  a = move("n1", "n1");
  EXPECT_EQ(budget_of(state, receivers, a), 8'000u);
}

}  // namespace
}  // namespace narad::metastore
