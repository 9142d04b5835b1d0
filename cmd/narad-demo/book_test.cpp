#include "cmd/narad-demo/book.h"

#include <gtest/gtest.h>

namespace narad::demo {
namespace {

const std::vector<Item> kItems = {{"t", "a", "one"}, {"t", "a", "two"}, {"t", "b", "three"}};

TEST(Book, EveryFate_IsCounted) {
  Book book;
  for (const Item& item : kItems) book.add(item);
  book.sent(0, false);
  book.sent(0, true);
  book.sent(1, true);
  book.sent(2, true);
  book.delivered("t", "a", "one", 0, 5);
  book.delivered("t", "a", "one", 0, 9);  // stored twice
  book.delivered("t", "a", "two", 0, 6);
  book.delivered("t", "a", "two", 0, 6);  // handed out twice
  book.delivered("t", "a", "two", 3, 1);  // and stored twice, though sent once
  book.delivered("t", "b", "thre", 0, 7);
  EXPECT_FALSE(book.all_delivered());
  Totals t = book.totals();
  EXPECT_EQ(t.accepted, 3u);
  EXPECT_EQ(t.resent, 1u);
  EXPECT_EQ(t.delivered, 2u);
  EXPECT_EQ(t.delivered_bytes, 6u);
  EXPECT_EQ(t.lost, 1u);
  EXPECT_EQ(t.damaged, 1u);
  EXPECT_EQ(t.duplicates, 3u);
  EXPECT_EQ(t.duplicates_resent, 1u);
  EXPECT_EQ(t.duplicates_moved, 1u);
  EXPECT_EQ(t.duplicates_unacked, 1u);
  book.delivered("t", "b", "three", 0, 8);
  EXPECT_TRUE(book.all_delivered());
}

TEST(PackageItems, Stanzas_AreKeyedByPackage) {
  auto items = package_items("Package: a\nStatus: ok\n\nVersion: 1\nPackage: b\n\n\n", "t");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].key, "a");
  EXPECT_EQ(items[0].payload, "Package: a\nStatus: ok");
  EXPECT_EQ(items[1].key, "b");
}

}  // namespace
}  // namespace narad::demo
