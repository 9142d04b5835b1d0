#include "internal/security/rights.h"

#include <gtest/gtest.h>

namespace narad::security {
namespace {

Caller user_with(std::vector<Grant> grants, bool root = false) {
  User user;
  user.username = "svc";
  user.grants = std::move(grants);
  user.root = root;
  return std::make_shared<const User>(std::move(user));
}

// Every set of at most two grants over a few patterns, against every action and topic.
TEST(Rights, EveryPairOfGrants_AllowsExactlyWhatOneOfThemDoes) {
  std::vector<Grant> grants;
  for (const GrantAction action : kGrantActions) {
    if (action == GrantAction::admin) continue;
    for (const char* pattern : {"a", "a*", "*", "ab", "b*"}) grants.push_back({action, {pattern}});
  }
  std::size_t allowed = 0, refused = 0;
  for (const Grant& first : grants) {
    for (const Grant& second : grants) {
      const Caller caller = user_with({first, second});
      for (const GrantAction action :
           {GrantAction::produce, GrantAction::consume, GrantAction::create}) {
        for (const char* topic : {"a", "ab", "b", "abc", "A"}) {
          const auto one_allows = [&](const Grant& g) {
            return g.action == action && pattern_matches(g.patterns[0], topic);
          };
          const bool expected = one_allows(first) || one_allows(second);
          ASSERT_EQ(may(caller, action, topic), expected);
          ++(expected ? allowed : refused);
        }
      }
      ASSERT_FALSE(is_admin(caller));
      ASSERT_FALSE(is_root(caller));
    }
  }
  EXPECT_GT(allowed, 500u);
  EXPECT_GT(refused, 500u);
}

TEST(Rights, GrantWithSeveralPatterns_AllowsEachOfThem) {
  const Caller caller = user_with({{GrantAction::produce, {"x", "orders-*"}}});
  EXPECT_TRUE(may(caller, GrantAction::produce, "x"));
  EXPECT_TRUE(may(caller, GrantAction::produce, "orders-1"));
  EXPECT_FALSE(may(caller, GrantAction::produce, "orders"));
  EXPECT_FALSE(may(caller, GrantAction::consume, "x"));
}

TEST(Rights, AdminRootAndNobody_MayEverything) {
  for (const Caller& caller :
       {user_with({{GrantAction::admin, {}}}), user_with({}, true), Caller()}) {
    EXPECT_TRUE(is_admin(caller));
    for (const GrantAction action : kGrantActions) EXPECT_TRUE(may(caller, action, "any"));
    Topic topic;
    topic.owner = "somebody";
    EXPECT_TRUE(may_manage(caller, &topic));
    EXPECT_TRUE(may_hand_out(caller, {{GrantAction::produce, {"*"}}}));
  }
}

TEST(Rights, Owner_ManagesHisTopicOnly) {
  const Caller caller = user_with({{GrantAction::produce, {"*"}}, {GrantAction::create, {"*"}}});
  Topic topic;
  EXPECT_FALSE(may_manage(caller, &topic)) << "nobody's topic";
  topic.owner = "other";
  EXPECT_FALSE(may_manage(caller, &topic));
  topic.owner = "svc";
  EXPECT_TRUE(may_manage(caller, &topic));
  EXPECT_TRUE(may_manage(caller, nullptr)) << "the 404 is to show";
}

TEST(Rights, AdminGrants_AreHandedOutByRootOnly) {
  const std::vector<Grant> scoped{{GrantAction::create, {"*"}}};
  const std::vector<Grant> admin{{GrantAction::create, {"*"}}, {GrantAction::admin, {}}};
  EXPECT_TRUE(may_hand_out(user_with({}, true), admin));
  EXPECT_TRUE(may_hand_out(Caller(), admin));
  EXPECT_TRUE(may_hand_out(user_with({{GrantAction::admin, {}}}), scoped));
  EXPECT_TRUE(may_hand_out(user_with({{GrantAction::admin, {}}}), {}));
  EXPECT_FALSE(may_hand_out(user_with({{GrantAction::admin, {}}}), admin));
  EXPECT_FALSE(may_hand_out(user_with({{GrantAction::create, {"*"}}}), {}));
}

TEST(Rights, Name_IsEmptyForNobody) {
  EXPECT_EQ(name_of(Caller()), "");
  EXPECT_EQ(name_of(user_with({})), "svc");
}

}  // namespace
}  // namespace narad::security
