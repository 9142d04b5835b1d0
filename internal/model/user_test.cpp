#include "internal/model/user.h"

#include <gtest/gtest.h>

#include <set>

#include "internal/model/names.h"

namespace narad {
namespace {

// Every text of at most `length` characters over `alphabet`.
std::vector<std::string> words(std::string_view alphabet, std::size_t length) {
  std::vector<std::string> out{""};
  for (std::size_t begin = 0, n = 0; n < length; ++n) {
    const std::size_t end = out.size();
    for (std::size_t i = begin; i < end; ++i) {
      for (const char c : alphabet) out.push_back(out[i] + c);
    }
    begin = end;
  }
  return out;
}

bool is_valid_pattern(const std::string& pattern) {
  return validate_grant({GrantAction::produce, {pattern}}).has_value();
}

TEST(Pattern, EveryShortText_IsValidExactlyIfTheStarIsLast) {
  std::size_t valid = 0;
  for (const std::string& text : words("a-*/", 4)) {
    const std::size_t star = text.find('*');
    const bool expected = !text.empty() && text.find('/') == std::string::npos &&
                          (star == std::string::npos || star + 1 == text.size());
    EXPECT_EQ(is_valid_pattern(text), expected) << text;
    valid += expected;
  }
  EXPECT_GT(valid, 20u);
}

TEST(Pattern, EveryShortPair_MatchesExactlyTheNamesThatExpandIt) {
  std::size_t matches = 0;
  const auto names = words("ab.", 4);
  for (const std::string& pattern : words("ab*", 4)) {
    if (!is_valid_pattern(pattern)) continue;
    // The definition, spelled out: what the pattern stands for among all the names.
    std::set<std::string> expansions;
    for (const std::string& name : names) {
      if (!pattern.ends_with('*')) {
        if (name == pattern) expansions.insert(name);
        continue;
      }
      const std::string prefix = pattern.substr(0, pattern.size() - 1);
      for (const std::string& rest : names) {
        if (prefix + rest == name) expansions.insert(name);
      }
    }
    for (const std::string& name : names) {
      EXPECT_EQ(pattern_matches(pattern, name), expansions.contains(name))
          << pattern << " " << name;
      matches += expansions.contains(name);
    }
  }
  EXPECT_GT(matches, 200u);
}

TEST(Pattern, EveryCharacter_IsAllowedExactlyIfATopicNameMayHaveIt) {
  for (int c = 0; c < 256; ++c) {
    const std::string text(1, static_cast<char>(c));
    const bool expected = validate_topic_name("x" + text).has_value() || text == "*";
    EXPECT_EQ(is_valid_pattern(text), expected) << c;
    EXPECT_EQ(validate_username(text).has_value(), validate_topic_name("x" + text).has_value())
        << c;
  }
}

TEST(Pattern, Length_IsBoundedBefore_TheStar) {
  const std::string long_prefix(255, 'a');
  EXPECT_TRUE(is_valid_pattern(long_prefix));
  EXPECT_TRUE(is_valid_pattern(long_prefix + "*"));
  EXPECT_FALSE(is_valid_pattern(long_prefix + "a"));
  EXPECT_FALSE(is_valid_pattern(long_prefix + "a*"));
}

TEST(Grant, Refusals_NameActionAndPattern) {
  const auto text = [](Grant g) { return validate_grant(g).error().text(); };
  EXPECT_EQ(text({GrantAction::consume, {}}), "a consume grant needs at least one topic pattern");
  EXPECT_EQ(text({GrantAction::admin, {"*"}}),
            "an admin grant takes no patterns: it allows everything");
  EXPECT_EQ(text({GrantAction::create, {"ok", "a b"}}),
            "invalid pattern \"a b\" in a create grant: use a topic name, or the beginning of one "
            "and a single * at the end");
  EXPECT_TRUE(validate_grant({GrantAction::admin, {}}));
}

TEST(Username, Length_IsOneTo64) {
  EXPECT_TRUE(validate_username(std::string(64, 'a')));
  EXPECT_FALSE(validate_username(std::string(65, 'a')));
  EXPECT_FALSE(validate_username(""));
  EXPECT_EQ(validate_username("a b").error().code(), Errc::invalid_argument);
}

TEST(GrantAction, EveryAction_IsReadAsItIsWritten) {
  for (const GrantAction a : kGrantActions) EXPECT_EQ(parse_grant_action(to_string(a)), a);
  EXPECT_EQ(parse_grant_action("Produce"), std::nullopt);
  EXPECT_EQ(parse_grant_action(""), std::nullopt);
}

TEST(PasswordHash, OnlyTheFormOfBcrypt_IsTaken) {
  const std::string good = "$2b$10$abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUVWXYZ01234";
  EXPECT_TRUE(is_password_hash(good));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = ':';
    EXPECT_FALSE(is_password_hash(bad)) << i;
    EXPECT_FALSE(is_password_hash(good.substr(0, i))) << i;
  }
  EXPECT_FALSE(is_password_hash(good + "a"));
}

}  // namespace
}  // namespace narad
