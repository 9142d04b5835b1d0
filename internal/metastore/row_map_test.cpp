#include "internal/metastore/row_map.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace narad::metastore {
namespace {

struct Entry {
  std::string name;
  int value = 0;
  std::string_view key() const { return name; }
};
using Map = RowMap<Entry>;

std::shared_ptr<const Entry> entry(std::string name, int value) {
  return std::make_shared<const Entry>(Entry{std::move(name), value});
}

// A small generator of our own: the same numbers on every platform.
struct Numbers {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
};

TEST(RowMap, RandomChanges_MatchAnOrderedMap) {
  Numbers numbers{7};
  Map map;
  std::map<std::string, int> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::string name = "t" + std::to_string(numbers.below(700));
    if (numbers.below(5) < 3) {
      map.put(entry(name, step));
      model[name] = step;
    } else {
      EXPECT_EQ(map.erase(name), model.erase(name) == 1);
    }
    if (step % 500 == 0) map.check_invariants();
  }
  map.check_invariants();
  ASSERT_EQ(map.size(), model.size());
  auto expected = model.begin();
  map.for_each([&](const auto& row) {
    EXPECT_EQ(row->name, expected->first);
    EXPECT_EQ(row->value, expected->second);
    ++expected;
  });
  for (const auto& [name, value] : model) {
    ASSERT_NE(map.find(name), nullptr) << name;
    EXPECT_EQ(map.find(name)->value, value);
  }
  EXPECT_EQ(map.find("u"), nullptr);
  EXPECT_EQ(map.find(""), nullptr);
}

TEST(RowMap, Copy_KeepsItsRowsWhileTheOriginalChanges) {
  Map map;
  for (int i = 0; i < 300; ++i) map.put(entry("k" + std::to_string(1000 + i), i));
  const Map before = map;
  for (int i = 0; i < 300; i += 2) map.erase("k" + std::to_string(1000 + i));
  for (int i = 1; i < 300; i += 2) map.put(entry("k" + std::to_string(1000 + i), -1));
  EXPECT_EQ(map.size(), 150u);
  ASSERT_EQ(before.size(), 300u);
  int i = 0;
  before.for_each([&](const auto& row) { EXPECT_EQ(row->value, i++); });
  before.check_invariants();
}

TEST(RowMap, After_ListsStrictlyGreaterKeysInOrder) {
  Map map;
  for (int i = 0; i < 200; ++i) map.put(entry("k" + std::to_string(1000 + i), i));
  auto page = map.after("", 3);
  ASSERT_EQ(page.size(), 3u);
  EXPECT_EQ(page[0]->name, "k1000");
  page = map.after("k1002", 70);
  ASSERT_EQ(page.size(), 70u);
  EXPECT_EQ(page.front()->name, "k1003");
  EXPECT_EQ(page.back()->name, "k1072");
  // A token whose row is gone still says where to go on.
  map.erase("k1050");
  EXPECT_EQ(map.after("k1050", 1).at(0)->name, "k1051");
  EXPECT_EQ(map.after("k1199", 10).size(), 0u);
  EXPECT_EQ(map.after("zzz", 10).size(), 0u);
  EXPECT_TRUE(Map{}.after("", 10).empty());
}

TEST(RowMap, Diff_NamesExactlyWhatChanged) {
  Numbers numbers{11};
  Map before;
  for (int i = 0; i < 500; ++i) before.put(entry("k" + std::to_string(i), i));
  Map after = before;
  std::map<std::string, int> changed;  // -1: removed
  for (int i = 0; i < 120; ++i) {
    const std::string name = "k" + std::to_string(numbers.below(600));
    if (numbers.below(2) == 0) {
      after.put(entry(name, 10'000 + i));
      changed[name] = 10'000 + i;
    } else if (after.erase(name)) {
      changed[name] = -1;
    }
  }
  // A row that came and went within is no change.
  std::map<std::string, int> seen;
  before.diff(after, [&](const Entry* old_row, const Entry* new_row) {
    ASSERT_TRUE(old_row != nullptr || new_row != nullptr);
    const std::string name = old_row != nullptr ? old_row->name : new_row->name;
    EXPECT_FALSE(seen.contains(name)) << name;
    seen[name] = new_row != nullptr ? new_row->value : -1;
  });
  for (auto it = changed.begin(); it != changed.end();) {
    it = it->second == -1 && before.find(it->first) == nullptr ? changed.erase(it) : std::next(it);
  }
  EXPECT_EQ(seen, changed);
  before.diff(before, [](const Entry*, const Entry*) { FAIL() << "nothing changed"; });
}

}  // namespace
}  // namespace narad::metastore
