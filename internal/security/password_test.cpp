#include "internal/security/password.h"

#include <gtest/gtest.h>

#include "internal/model/user.h"

namespace narad::security {
namespace {

TEST(Password, Hash_IsBcryptOfCostTenAndChecks) {
  const auto hash = hash_password("s3cret \xC3\xA9", Salt{1, 2});
  ASSERT_TRUE(hash) << hash.error().text();
  EXPECT_TRUE(is_password_hash(hash.value()));
  EXPECT_TRUE(hash.value().starts_with("$2b$10$"));
  EXPECT_TRUE(verify_password("s3cret \xC3\xA9", hash.value()).value());
  EXPECT_FALSE(verify_password("s3cret", hash.value()).value());
  EXPECT_FALSE(verify_password("", hash.value()).value());
}

TEST(Password, Salt_MakesEveryHashDifferent) {
  const auto a = hash_password("same", Salt{1, 2});
  const auto b = hash_password("same", Salt{1, 3});
  ASSERT_TRUE(a && b);
  EXPECT_NE(a.value(), b.value());
  EXPECT_EQ(a.value(), hash_password("same", Salt{1, 2}).value());
}

// Published vectors of another implementation.
TEST(Password, HashesOfAnotherImplementation_Check) {
  const std::string first = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
  const std::string second = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK";
  EXPECT_TRUE(verify_password("U*U", first).value());
  EXPECT_TRUE(verify_password("U*U*", second).value());
  EXPECT_FALSE(verify_password("U*U", second).value());
}

TEST(Password, WhatBcryptWouldCutOff_IsWrongAndNotTaken) {
  const std::string longest(72, 'x');
  const auto hash = hash_password(longest, Salt{1, 2});
  ASSERT_TRUE(hash);
  EXPECT_TRUE(verify_password(longest, hash.value()).value());
  EXPECT_FALSE(verify_password(longest + "y", hash.value()).value());
  EXPECT_EQ(hash_password(longest + "y", Salt{1, 2}).error().code(), Errc::invalid_argument);
  const auto shorter = hash_password("ab", Salt{1, 2});
  EXPECT_FALSE(verify_password(std::string_view("ab\0c", 4), shorter.value()).value());
  EXPECT_FALSE(hash_password(std::string_view("ab\0c", 4), Salt{1, 2}));
  EXPECT_FALSE(hash_password("", Salt{1, 2}));
}

TEST(Password, NobodysHash_IsCheckedLikeAnyOtherAndIsNobodys) {
  ASSERT_TRUE(is_password_hash(kNobodysHash));
  for (const char* password : {"", "a", "admin", "secret"}) {
    const auto right = verify_password(password, std::string(kNobodysHash));
    ASSERT_TRUE(right) << right.error().text();
    EXPECT_FALSE(right.value());
  }
}

TEST(Password, HashThatIsNone_IsAnError) {
  EXPECT_EQ(verify_password("a", "plain").error().code(), Errc::internal);
}

}  // namespace
}  // namespace narad::security
