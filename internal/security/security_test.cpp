#include "internal/security/security.h"

#include <gtest/gtest.h>

#include "internal/security/credentials.h"
#include "internal/security/password.h"
#include "internal/security/test_proposer.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::security {
namespace {

Task<void> pass(Env& env, Nanos delay) { co_await sleep_for(env, delay); }

struct World {
  sim::Solo solo;
  TestProposer proposer{solo.env()};
  std::unique_ptr<Security> security;

  ~World() {
    if (security) solo.run([this](Env&) { return security->stop(); });
  }
  Result<void> start(Options options = {}) {
    security = std::make_unique<Security>(solo.env(), proposer, std::move(options));
    return solo.run([this](Env&) { return security->start(); });
  }
  void wait(Nanos delay) {
    solo.run([delay](Env& env) { return pass(env, delay); });
  }
  const User* root() { return proposer.view()->users.find("admin"); }
};

Options with_password(std::string password) {
  Options options;
  options.admin_password = std::move(password);
  return options;
}

TEST(Seeding, NoUser_MakesRootWithTheGivenPassword) {
  World w;
  ASSERT_TRUE(w.start(with_password("given")));
  w.wait(std::chrono::seconds(1));
  ASSERT_NE(w.root(), nullptr);
  EXPECT_TRUE(w.root()->root);
  EXPECT_TRUE(verify_password("given", w.root()->password_hash).value());
  EXPECT_EQ(w.solo.machine.log().count("first user made; its password is shown this once"), 0u);
  EXPECT_EQ(w.proposer.proposals, 1u);
}

TEST(Seeding, NoPasswordGiven_ShowsARandomOneOnce) {
  World w;
  ASSERT_TRUE(w.start());
  w.wait(std::chrono::seconds(10));
  ASSERT_NE(w.root(), nullptr);
  const char* message = "first user made; its password is shown this once";
  EXPECT_EQ(w.solo.machine.log().count(message), 1u);
  // 24 bytes in the URL-safe alphabet, and the one that lets in.
  const std::string& text = w.solo.machine.log().last(message)->text;
  const std::string password = text.substr(text.find("password=") + 9);
  EXPECT_EQ(password.size(), 32u);
  EXPECT_EQ(password.find_first_not_of(
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
            std::string::npos);
  EXPECT_TRUE(verify_password(password, w.root()->password_hash).value());
}

TEST(Seeding, UsersExist_ChangesNothing) {
  World w;
  w.proposer.apply(metastore::CreateUser{
      "ann", std::string(kNobodysHash), {{GrantAction::admin, {}}}, false, {}});
  ASSERT_TRUE(w.start(with_password("given")));
  w.wait(std::chrono::seconds(10));
  EXPECT_EQ(w.root(), nullptr);
  EXPECT_EQ(w.proposer.proposals, 0u);
}

TEST(Seeding, NobodyMayAdminister_SaysTheWayOut) {
  World w;
  w.proposer.apply(metastore::CreateUser{"ann", std::string(kNobodysHash), {}, false, {}});
  ASSERT_TRUE(w.start());
  w.wait(std::chrono::seconds(1));
  EXPECT_EQ(w.solo.machine.log().count(
                "no user may administer: start once with security.enabled=false on loopback and "
                "give one of them the admin grant"),
            1u);
}

TEST(Seeding, OnlyTheLeaderSeeds_AndTriesAgainEveryTwoSeconds) {
  World w;
  w.proposer.leads = false;
  ASSERT_TRUE(w.start(with_password("given")));
  w.wait(std::chrono::seconds(10));
  EXPECT_EQ(w.proposer.proposals, 0u);
  w.proposer.leads = true;
  w.proposer.refuse = Error(Errc::unavailable, "no leader");
  w.wait(std::chrono::seconds(9));
  EXPECT_GE(w.proposer.proposals, 3u);
  EXPECT_LE(w.proposer.proposals, 5u);
  w.proposer.refuse.reset();
  w.wait(std::chrono::seconds(3));
  EXPECT_NE(w.root(), nullptr);
}

TEST(Seeding, AnotherNodeWasFaster_ItsUserStays) {
  World w;
  w.proposer.before_apply = [&w] {
    w.proposer.apply(metastore::CreateUser{"admin", std::string(kNobodysHash), {}, true, {}});
  };
  ASSERT_TRUE(w.start(with_password("given")));
  w.wait(std::chrono::seconds(5));
  EXPECT_EQ(w.root()->password_hash, kNobodysHash);
}

TEST(Seeding, SecurityOff_MakesNobody) {
  World w;
  Options options;
  options.enabled = false;
  ASSERT_TRUE(w.start(options));
  w.wait(std::chrono::seconds(10));
  EXPECT_EQ(w.root(), nullptr);
}

TEST(Start, PasswordThatBcryptCannotTake_IsRefused) {
  World w;
  const auto started = w.start(with_password(std::string(73, 'x')));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().text(), "NARAD_ADMIN_PASSWORD: password must have at most 72 bytes");
}

TEST(Start, PasswordThatNoLoginCanSend_IsRefused) {
  for (const std::string& password : {std::string("secret\n"), std::string("a\tb"),
                                      std::string("a\x7f"), std::string("caf\xe9")}) {
    World w;
    const auto started = w.start(with_password(password));
    ASSERT_FALSE(started) << password;
    EXPECT_EQ(started.error().code(), Errc::invalid_argument);
    EXPECT_EQ(started.error().text(),
              "NARAD_ADMIN_PASSWORD: HTTP Basic cannot carry this password back: it must be UTF-8 "
              "without control characters (a line break at its end is one)");
  }
  World w;
  ASSERT_TRUE(w.start(with_password("caf\xc3\xa9: 100 %")));
  w.wait(std::chrono::seconds(1));
  EXPECT_TRUE(w.solo.run([&](Env&) {
    return w.security->authenticator().identify(basic_header("admin", "caf\xc3\xa9: 100 %"));
  }));
}

TEST(Users, AreMadeChangedAndDeleted) {
  World w;
  ASSERT_TRUE(w.start(with_password("given")));
  w.wait(std::chrono::seconds(1));
  const auto get = [&] { return w.proposer.view()->users.get("ann"); };
  auto made = w.solo.run([&](Env&) {
    return w.security->create_user({"ann", "pw", {{GrantAction::produce, {"*"}}}});
  });
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_TRUE(w.solo.run(
      [&](Env&) { return w.security->authenticator().identify(basic_header("ann", "pw")); }));
  const auto again = w.solo.run([&](Env&) { return w.security->create_user({"ann", "pw", {}}); });
  EXPECT_EQ(again.error().code(), Errc::exists);
  const metastore::UserPtr before = get();
  ASSERT_TRUE(w.solo.run([&](Env&) { return w.security->set_password(before, "next"); }));
  EXPECT_TRUE(verify_password("next", get()->password_hash).value());
  const auto late = w.solo.run([&](Env&) { return w.security->set_grants(before, {}); });
  EXPECT_EQ(late.error().code(), Errc::conflict);
  ASSERT_TRUE(w.solo.run([&](Env&) { return w.security->set_grants(get(), {}); }));
  EXPECT_TRUE(get()->grants.empty());
  ASSERT_TRUE(w.solo.run([&](Env&) { return w.security->delete_user(get()); }));
  EXPECT_EQ(get(), nullptr);
}

TEST(Users, PasswordThatBcryptCannotTake_IsInternal) {
  World w;
  ASSERT_TRUE(w.start(with_password("given")));
  const auto made =
      w.solo.run([&](Env&) { return w.security->create_user({"ann", std::string(73, 'x'), {}}); });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::internal);
}

}  // namespace
}  // namespace narad::security
