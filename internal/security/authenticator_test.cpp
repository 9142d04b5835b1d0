#include "internal/security/authenticator.h"

#include <gtest/gtest.h>

#include "internal/security/credentials.h"
#include "internal/security/password.h"
#include "internal/security/test_proposer.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::security {
namespace {

struct World {
  sim::Solo solo;
  TestProposer proposer{solo.env()};
  Authenticator authenticator{solo.env(), proposer};

  World() {
    add("ann", "right", {{GrantAction::produce, {"*"}}});
    add("bob", "other");
  }
  ~World() {
    solo.run([this](Env&) { return authenticator.stop(); });
  }
  static std::string hash_of(const std::string& password) {
    return hash_password(password, Salt{1, 2}).value();
  }
  void add(const std::string& name, const std::string& password, std::vector<Grant> grants = {}) {
    NARAD_ASSERT(
        proposer.apply(metastore::CreateUser{name, hash_of(password), std::move(grants), false, {}})
            .done());
  }
  const User& row(const std::string& name) { return *proposer.view()->users.find(name); }
  Result<metastore::UserPtr> identify(std::string header) {
    return solo.run([&](Env&) { return authenticator.identify(header); });
  }
  Result<metastore::UserPtr> login(const std::string& user, const std::string& password) {
    return identify(basic_header(user, password));
  }
  Errc refusal(const std::string& user, const std::string& password) {
    auto result = login(user, password);
    NARAD_ASSERT(!result);
    return result.error().code();
  }
  bool is_password_of_ann(const std::string& password) {
    auto right = solo.run([&](Env&) {
      return authenticator.is_password_of(proposer.view()->users.get("ann"), password);
    });
    NARAD_ASSERT(right.has_value(), right.error().text());
    return right.value();
  }
  static Task<void> pass(Env& env, Nanos delay) { co_await sleep_for(env, delay); }
  void wait(Nanos delay) {
    solo.run([delay](Env& env) { return pass(env, delay); });
  }
};

TEST(Authenticator, RightPassword_IsHashedOnceAndRecalled) {
  World w;
  const std::string header = basic_header("ann", "right");
  EXPECT_EQ(w.authenticator.recall(header), nullptr);
  const auto who = w.login("ann", "right");
  ASSERT_TRUE(who) << who.error().text();
  EXPECT_EQ(who.value()->username, "ann");
  EXPECT_EQ(w.authenticator.hashed(), 1u);
  EXPECT_EQ(w.authenticator.recall(header), who.value());
  EXPECT_EQ(w.authenticator.recall(basic_header("ann", "wrong")), nullptr);
  EXPECT_EQ(w.authenticator.recall(basic_header("bob", "right")), nullptr);
  EXPECT_TRUE(w.login("ann", "right"));
  EXPECT_EQ(w.authenticator.hashed(), 1u);
}

TEST(Authenticator, EveryKindOfWrong_HasTheSameAnswer) {
  World w;
  const auto wrong = w.login("ann", "wrong");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Errc::unauthenticated);
  EXPECT_EQ(wrong.error().text(), "authentication required");
  for (const std::string& header :
       {std::string(), std::string("Basic ???"), std::string("Bearer x"),
        basic_header("nobody", "right"), basic_header("", ""), basic_header("ann", ""),
        basic_header("ann", std::string(80, 'x'))}) {
    const auto other = w.identify(header);
    ASSERT_FALSE(other) << header;
    EXPECT_EQ(other.error().code(), wrong.error().code()) << header;
    EXPECT_EQ(other.error().text(), wrong.error().text()) << header;
  }
}

TEST(Authenticator, UnknownUser_CostsAHashAsAWrongPasswordDoes) {
  World w;
  EXPECT_EQ(w.refusal("ann", "wrong"), Errc::unauthenticated);
  EXPECT_EQ(w.authenticator.hashed(), 1u);
  EXPECT_EQ(w.refusal("nobody", "wrong"), Errc::unauthenticated);
  EXPECT_EQ(w.authenticator.hashed(), 2u);
  // Repeated, both cost none.
  EXPECT_EQ(w.refusal("ann", "wrong"), Errc::unauthenticated);
  EXPECT_EQ(w.refusal("nobody", "wrong"), Errc::unauthenticated);
  EXPECT_EQ(w.authenticator.hashed(), 2u);
}

TEST(Authenticator, SixthWrongPassword_IsBusyUntilAnAttemptComesBack) {
  World w;
  for (int n = 0; n < 5; ++n) EXPECT_EQ(w.refusal("ann", cat("w", n)), Errc::unauthenticated);
  EXPECT_EQ(w.refusal("ann", "w5"), Errc::busy);
  EXPECT_EQ(w.refusal("ann", "right"), Errc::busy) << "not looked at either";
  EXPECT_EQ(w.refusal("ann", "w0"), Errc::unauthenticated) << "known to be wrong";
  EXPECT_TRUE(w.login("bob", "other")) << "per user";
  w.wait(std::chrono::seconds(12));
  EXPECT_TRUE(w.login("ann", "right"));
  EXPECT_EQ(w.authenticator.failures().attempts_left("ann", w.solo.env().clock.mono()), 1)
      << "given back";
}

TEST(Authenticator, UnknownUser_IsNeverLockedOut) {
  World w;
  for (int n = 0; n < 12; ++n) EXPECT_EQ(w.refusal("nobody", cat(n)), Errc::unauthenticated);
}

TEST(Authenticator, KnownCredentials_StayGoodWhileOthersGuess) {
  World w;
  ASSERT_TRUE(w.login("ann", "right"));
  for (int n = 0; n < 7; ++n) (void)w.login("ann", cat("w", n)).has_value();
  EXPECT_EQ(w.refusal("ann", "more"), Errc::busy);
  EXPECT_TRUE(w.login("ann", "right"));
  EXPECT_NE(w.authenticator.recall(basic_header("ann", "right")), nullptr);
}

TEST(Authenticator, ChangedPassword_CountsWithTheNextRequest) {
  World w;
  ASSERT_TRUE(w.login("ann", "right"));
  EXPECT_EQ(w.refusal("ann", "new"), Errc::unauthenticated);
  w.proposer.apply(
      metastore::SetUserPassword{"ann", w.row("ann").changed_at, World::hash_of("new"), {}});
  EXPECT_EQ(w.authenticator.recall(basic_header("ann", "right")), nullptr);
  EXPECT_EQ(w.refusal("ann", "right"), Errc::unauthenticated);
  EXPECT_TRUE(w.login("ann", "new")) << "remembered as wrong for the old hash only";
}

TEST(Authenticator, ChangedGrants_CountWithoutHashingAgain) {
  World w;
  ASSERT_TRUE(w.login("ann", "right"));
  w.proposer.apply(metastore::SetUserGrants{"ann", w.row("ann").changed_at, {}, {}});
  const auto user = w.authenticator.recall(basic_header("ann", "right"));
  ASSERT_NE(user, nullptr);
  EXPECT_TRUE(user->grants.empty());
  EXPECT_EQ(w.authenticator.hashed(), 1u);
}

TEST(Authenticator, DeletedUser_IsOutAtOnceAndInAgainOnlyWithTheNewPassword) {
  World w;
  ASSERT_TRUE(w.login("ann", "right"));
  w.proposer.apply(metastore::DeleteUser{"ann", w.row("ann").changed_at});
  EXPECT_EQ(w.refusal("ann", "right"), Errc::unauthenticated);
  w.add("ann", "second");
  EXPECT_EQ(w.refusal("ann", "right"), Errc::unauthenticated);
  EXPECT_TRUE(w.login("ann", "second"));
}

// Tasks of their own, as connections are.
struct Logins {
  std::vector<std::optional<Errc>> answers;  // nullopt: let in
  std::size_t done = 0;
};
Task<void> login_task(Authenticator& a, std::string header, std::shared_ptr<Logins> out,
                      std::size_t slot) {
  auto who = co_await a.identify(std::move(header));
  if (!who) out->answers[slot] = who.error().code();
  ++out->done;
}
Task<void> all_done(Env& env, std::shared_ptr<Logins> logins) {
  while (logins->done < logins->answers.size())
    co_await sleep_for(env, std::chrono::milliseconds(1));
}

TEST(Authenticator, SamePasswordManyTimesAtOnce_IsHashedOnce) {
  World w;
  auto logins = std::make_shared<Logins>();
  logins->answers.resize(40);
  TaskGroup group(w.solo.env());
  for (std::size_t i = 0; i < 20; ++i) {
    group.spawn("login", login_task(w.authenticator, basic_header("ann", "right"), logins, i));
    group.spawn("login", login_task(w.authenticator, basic_header("bob", "wrong"), logins, 20 + i));
  }
  w.solo.run([&](Env& env) { return all_done(env, logins); });
  w.solo.run([&](Env&) { return group.stop(); });
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(logins->answers[i], std::nullopt);
    EXPECT_EQ(logins->answers[20 + i], Errc::unauthenticated);
  }
  EXPECT_EQ(w.authenticator.hashed(), 2u);
  EXPECT_EQ(w.authenticator.failures().attempts_left("bob", w.solo.env().clock.mono()), 4);
}

TEST(Authenticator, MoreChecksThanMayWait_AreTurnedAway) {
  World w;
  auto logins = std::make_shared<Logins>();
  logins->answers.resize(Authenticator::kWaitingMax + 5);
  TaskGroup group(w.solo.env());
  const std::string hash = World::hash_of("pw");
  for (std::size_t i = 0; i < logins->answers.size(); ++i) {
    // A user each: nothing but the bound stops them. Cut off before they are hashed, all but the
    // first.
    const std::string name = cat("user-", i);
    w.proposer.apply(metastore::CreateUser{name, hash, {}, false, {}});
    group.spawn("login", login_task(w.authenticator, basic_header(name, "x"), logins, i));
  }
  w.wait(Nanos(1));
  std::size_t turned_away = 0;
  for (const auto& answer : logins->answers) turned_away += answer == Errc::unavailable;
  EXPECT_EQ(turned_away, 5u);
  w.solo.run([&](Env&) { return group.stop(); });
}

TEST(Authenticator, FloodOfInventedNames_KeepsNobodyOutAndCostsFewHashes) {
  World w;
  constexpr std::size_t kFlood = 2 * Authenticator::kWaitingMax;
  auto logins = std::make_shared<Logins>();
  logins->answers.resize(kFlood + 1);
  TaskGroup group(w.solo.env());
  for (std::size_t i = 0; i < kFlood; ++i) {
    group.spawn("login",
                login_task(w.authenticator, basic_header(cat("nobody-", i), "x"), logins, i));
  }
  group.spawn("login", login_task(w.authenticator, basic_header("ann", "right"), logins, kFlood));
  w.wait(Nanos(1));
  EXPECT_EQ(logins->done, 0u) << "none is refused faster than a hash takes";
  w.solo.run([&](Env& env) { return all_done(env, logins); });
  w.solo.run([&](Env&) { return group.stop(); });
  EXPECT_EQ(logins->answers.back(), std::nullopt);
  logins->answers.pop_back();
  for (const auto& answer : logins->answers) EXPECT_EQ(answer, Errc::unauthenticated);
  EXPECT_EQ(w.authenticator.hashed(), Authenticator::kStrangersMax + 1);
}

TEST(Authenticator, NameTakenWhileItStoodInvented_IsLookedAtAgain) {
  World w;
  auto logins = std::make_shared<Logins>();
  logins->answers.resize(Authenticator::kStrangersMax + 1);
  TaskGroup group(w.solo.env());
  for (std::size_t i = 0; i < logins->answers.size(); ++i) {
    group.spawn("login",
                login_task(w.authenticator, basic_header(cat("new-", i), "pw"), logins, i));
  }
  w.wait(Nanos(1));
  w.add(cat("new-", Authenticator::kStrangersMax), "pw");
  w.solo.run([&](Env& env) { return all_done(env, logins); });
  w.solo.run([&](Env&) { return group.stop(); });
  EXPECT_EQ(logins->answers.back(), std::nullopt) << "the one that had no place of its own";
  EXPECT_EQ(logins->answers.front(), Errc::unauthenticated);
}

TEST(Authenticator, CallerThatGoesAway_LeavesTheCheckToOthers) {
  World w;
  auto logins = std::make_shared<Logins>();
  logins->answers.resize(1);
  TaskGroup group(w.solo.env());
  group.spawn("login", login_task(w.authenticator, basic_header("ann", "right"), logins, 0));
  w.wait(Nanos(1));
  w.solo.run([&](Env&) { return group.stop(); });
  w.wait(std::chrono::seconds(1));
  EXPECT_EQ(logins->done, 0u);
  EXPECT_NE(w.authenticator.recall(basic_header("ann", "right")), nullptr);
  EXPECT_EQ(w.authenticator.hashed(), 1u);
}

TEST(Authenticator, PasswordChangedWhileItIsChecked_IsCheckedAgain) {
  World w;
  auto logins = std::make_shared<Logins>();
  logins->answers.resize(2);
  TaskGroup group(w.solo.env());
  const std::string header = basic_header("ann", "right");
  group.spawn("login", login_task(w.authenticator, header, logins, 0));
  group.spawn("login", login_task(w.authenticator, basic_header("ann", "new"), logins, 1));
  w.wait(Nanos(1));
  w.proposer.apply(
      metastore::SetUserPassword{"ann", w.row("ann").changed_at, World::hash_of("new"), {}});
  w.solo.run([&](Env& env) { return all_done(env, logins); });
  w.solo.run([&](Env&) { return group.stop(); });
  EXPECT_EQ(logins->answers[0], Errc::unauthenticated);
  EXPECT_EQ(logins->answers[1], std::nullopt);
}

TEST(Authenticator, IsPasswordOf_CountsNoFailure) {
  World w;
  for (int n = 0; n < 7; ++n) EXPECT_FALSE(w.is_password_of_ann(cat("w", n)));
  EXPECT_TRUE(w.is_password_of_ann("right"));
  EXPECT_TRUE(w.login("ann", "right"));
}

TEST(Authenticator, IsPasswordOfOneWhoHasLoggedIn_CostsNoHash) {
  World w;
  ASSERT_TRUE(w.login("ann", "right"));
  EXPECT_TRUE(w.is_password_of_ann("right"));
  EXPECT_FALSE(w.is_password_of_ann("wrong"));
  EXPECT_FALSE(w.is_password_of_ann(""));
  EXPECT_EQ(w.authenticator.hashed(), 1u);
  // What is known counts for the hash that it was found with.
  w.proposer.apply(
      metastore::SetUserPassword{"ann", w.row("ann").changed_at, World::hash_of("new"), {}});
  EXPECT_FALSE(w.is_password_of_ann("right"));
  EXPECT_TRUE(w.is_password_of_ann("new"));
  EXPECT_EQ(w.authenticator.hashed(), 3u);
}

TEST(Authenticator, StoredHashThatCannotBeChecked_IsUnavailableAndCostsNothing) {
  World w;
  // Of a kind that has the form but that the library refuses: cost 99.
  w.proposer.apply(metastore::SetUserPassword{
      "ann", w.row("ann").changed_at, "$2b$99$" + std::string(53, 'a'), {}});
  for (int n = 0; n < 7; ++n) {
    const auto who = w.login("ann", cat(n));
    ASSERT_FALSE(who);
    EXPECT_EQ(who.error().code(), Errc::internal);
    EXPECT_EQ(who.error().text(), "authentication unavailable");
  }
}

}  // namespace
}  // namespace narad::security
