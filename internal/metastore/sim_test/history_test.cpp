#include "internal/metastore/sim_test/history.h"

#include <gtest/gtest.h>

namespace narad::metastore::simtest {
namespace {

using Kind = Operation::Kind;

Operation of(Kind kind) {
  Operation op;
  op.kind = kind;
  return op;
}
Operation write_of(std::int64_t value) {
  Operation op = of(Kind::write);
  op.value = value;
  return op;
}
Operation raise_to(std::uint32_t count) {
  Operation op = of(Kind::raise);
  op.count = count;
  return op;
}
Operation a_read() { return of(Kind::read); }

TEST(History, OneAfterTheOther_IsExplainedByThatOrderOnly) {
  History good, stale;
  for (History* h : {&good, &stale}) {
    h->done(h->call(write_of(1)));
    h->done(h->call(write_of(2)));
    h->read(h->call(a_read()), {h == &good ? 2 : 1, 0});
  }
  EXPECT_EQ(good.violation(), std::nullopt);
  ASSERT_TRUE(stale.violation());
  EXPECT_NE(stale.violation()->find("read -> 1 #0"), std::string::npos);
}

TEST(History, AtTheSameTime_MayBeEitherOrder) {
  for (std::int64_t seen : {1, 2, 0, 3}) {
    History h;
    const auto a = h.call(write_of(1)), b = h.call(write_of(2));
    h.done(a);
    h.done(b);
    h.read(h.call(a_read()), {seen, 0});
    EXPECT_EQ(h.violation().has_value(), seen == 0 || seen == 3) << seen;
  }
}

TEST(History, TwoReads_NeverGoBackInTime) {
  History h;
  const auto w = h.call(write_of(1));
  h.read(h.call(a_read()), {1, 0});
  h.read(h.call(a_read()), {0, 0});
  h.done(w);
  EXPECT_TRUE(h.violation());
}

TEST(History, Unknown_MayHaveHappenedAtAnyLaterTimeOrNever) {
  for (std::int64_t seen : {1, 7}) {
    History h;
    h.done(h.call(write_of(1)));
    h.unknown(h.call(write_of(7)));
    h.read(h.call(a_read()), {1, 0});
    h.read(h.call(a_read()), {seen, 0});
    h.read(h.call(a_read()), {seen, 0});
    EXPECT_EQ(h.violation(), std::nullopt);
    EXPECT_EQ(h.unknowns(), 1u);
  }
  History twice;  // but only once
  twice.done(twice.call(write_of(1)));
  twice.unknown(twice.call(write_of(7)));
  twice.read(twice.call(a_read()), {7, 0});
  twice.done(twice.call(write_of(2)));
  twice.read(twice.call(a_read()), {7, 0});
  EXPECT_TRUE(twice.violation());
  History early;  // and not before it was called
  early.read(early.call(a_read()), {7, 0});
  early.unknown(early.call(write_of(7)));
  EXPECT_TRUE(early.violation());
}

TEST(History, Raise_SucceedsForOneOfTwo) {
  History one, both, none;
  one.done(one.call(raise_to(1)));
  one.refused(one.call(raise_to(1)));
  one.read(one.call(a_read()), {0, 1});
  EXPECT_EQ(one.violation(), std::nullopt);
  both.done(both.call(raise_to(1)));
  both.done(both.call(raise_to(1)));
  EXPECT_TRUE(both.violation());
  none.refused(none.call(raise_to(1)));
  EXPECT_TRUE(none.violation());
  History lost;  // an unknown one that did happen
  lost.unknown(lost.call(raise_to(1)));
  lost.refused(lost.call(raise_to(1)));
  lost.done(lost.call(raise_to(2)));
  EXPECT_EQ(lost.violation(), std::nullopt);
}

TEST(History, Keys_AreJudgedApartAndReadsWithoutAnswerAreNothing) {
  History h;
  Operation other = write_of(5);
  other.key = 1;
  h.done(h.call(other));
  h.read(h.call(a_read()), {0, 0});
  h.unknown(h.call(a_read()));
  h.forget(h.call(write_of(9)));
  EXPECT_EQ(h.violation(), std::nullopt);
  EXPECT_EQ(h.size(), 2u);
}

TEST(History, ManyAtOnce_AreJudgedInReasonableTime) {
  History h;
  for (int round = 0; round < 30; ++round) {
    std::vector<std::size_t> open;
    for (int c = 0; c < 6; ++c) open.push_back(h.call(write_of(round * 10 + c)));
    h.unknown(open.back());
    open.pop_back();
    for (std::size_t id : open) h.done(id);
    h.read(h.call(a_read()), {round * 10 + (round % 2 == 0 ? 5 : 2), 0});
  }
  EXPECT_EQ(h.violation(), std::nullopt);
  EXPECT_EQ(h.unknowns(), 30u);
}

}  // namespace
}  // namespace narad::metastore::simtest
