// What a flip says of its move.
#include <gtest/gtest.h>

#include "internal/moves/mover.h"

namespace narad::moves {
namespace {

using namespace std::chrono_literals;

TEST(MoverReceipt, OfTheFlip_CountsTheFreezeUpToTheFlip) {
  Nanos now = 100s;
  Mover m({}, {}, now);
  m.on_frozen(now, 5, true, 30s);
  now += 4ms;
  m.on_verified(now, 0s, "", Offset(1000), Offset(1000));
  const wire::Receipt marked = m.receipt(now);
  EXPECT_EQ(marked.frozen_ms, 4u);
  now += 9ms;
  const wire::Receipt told = m.receipt_of_flip(now, marked);
  EXPECT_EQ(told.frozen_ms, 13u);
  EXPECT_EQ(told.install_ms, 9u);
}

TEST(MoverReceipt, OfACopyMadeByAnEarlierProcess_IsThatOfTheCopy) {
  const Mover m({}, {}, 100s);
  wire::Receipt marked;
  marked.frozen_ms = 7;
  EXPECT_EQ(m.receipt_of_flip(200s, marked), marked);
}

}  // namespace
}  // namespace narad::moves
