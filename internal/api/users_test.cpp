// Users (http-api 1.12).
#include <gtest/gtest.h>

#include "internal/api/test_api.h"
#include "internal/api/user_json.h"

namespace narad::api {
namespace {

// Root "admin", "deputy" with an admin grant, and "svc" without a grant.
struct Users : SecuredFixture {
  Users() {
    add("deputy", {{GrantAction::admin, {}}});
    add("svc", {});
    as("admin");
  }
  const User* row(const std::string& name) { return broker.view()->users.find(name); }
  bool logs_in(const std::string& user, const std::string& password) {
    const auto before = headers;
    as(user, password);
    const bool in = get("/v1/topics").status == 200;
    headers = before;
    return in;
  }
};

TEST(CreateUser, AnswersTheUserAndNeverAnythingOfThePassword) {
  Users f;
  const auto response = f.post(
      "/v1/users",
      R"({"username":"new","password":"s3cret","grants":[{"action":"consume","patterns":["orders-*","x"]}]})");
  ASSERT_EQ(response.status, 201) << response.body;
  const std::string now = to_string(f.row("new")->created_at);
  EXPECT_EQ(response.body,
            cat(R"({"username":"new","grants":[{"action":"consume","patterns":["orders-*","x"]}],)",
                R"("created_at_ms":)", now, R"(,"updated_at_ms":)", now, "}\n"));
  EXPECT_TRUE(f.logs_in("new", "s3cret"));
  EXPECT_TRUE(f.row("new")->password_hash.starts_with("$2b$10$"));
}

TEST(CreateUser, WithoutGrants_HasNoSuchField) {
  Users f;
  for (const char* grants : {"", R"(,"grants":null)", R"(,"grants":[])"}) {
    const auto response =
        f.post("/v1/users", cat(R"({"username":"new","password":"pw")", grants, "}"));
    ASSERT_EQ(response.status, 201) << response.body;
    EXPECT_EQ(response.body.find("grants"), std::string::npos);
    EXPECT_EQ(f.remove("/v1/users/new").status, 204);
  }
}

TEST(CreateUser, BadBodies_Are400AndChangeNothing) {
  Users f;
  const std::string long_name(65, 'a');
  const std::size_t before = f.broker.view()->users.size();
  for (
      const std::string& body :
      {std::string(""),
       std::string("[]"),
       std::string("{}"),
       std::string(R"({"username":"new"})"),
       std::string(R"({"username":"new","password":""})"),
       std::string(R"({"username":"","password":"pw"})"),
       std::string(R"({"username":"a b","password":"pw"})"),
       std::string(R"({"username":"a:b","password":"pw"})"),
       cat(R"({"username":")", long_name, R"(","password":"pw"})"),
       std::string(R"({"username":"new","password":5})"),
       std::string(R"({"username":"new","password":"a\nb"})"),
       std::string(R"({"username":"new","password":"a\u0000b"})"),
       std::string(R"({"username":"new","password":"pw","root":true})"),
       std::string(R"({"username":"new","password":"pw","grants":{}})"),
       std::string(R"({"username":"new","password":"pw","grants":["admin"]})"),
       std::string(R"({"username":"new","password":"pw","grants":[{}]})"),
       std::string(R"({"username":"new","password":"pw","grants":[{"action":"fly"}]})"),
       std::string(R"({"username":"new","password":"pw","grants":[{"action":"produce"}]})"),
       std::string(
           R"({"username":"new","password":"pw","grants":[{"action":"produce","patterns":[]}]})"),
       std::string(
           R"({"username":"new","password":"pw","grants":[{"action":"create","patterns":[""]}]})"),
       std::string(
           R"({"username":"new","password":"pw","grants":[{"action":"create","patterns":["a*b"]}]})"),
       std::string(
           R"({"username":"new","password":"pw","grants":[{"action":"create","patterns":[null]}]})"),
       std::string(
           R"({"username":"new","password":"pw","grants":[{"action":"admin","patterns":["*"]}]})"),
       std::string(
           R"({"username":"new","password":"pw","grants":[{"action":"admin","more":1}]})")}) {
    const auto response = f.post("/v1/users", body);
    EXPECT_EQ(response.status, 400) << body << response.body;
  }
  EXPECT_EQ(f.broker.view()->users.size(), before);
}

TEST(CreateUser, TakenName_Is409) {
  Users f;
  const auto response = f.post("/v1/users", R"({"username":"svc","password":"other"})");
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(f.error(response), "user already exists");
  EXPECT_TRUE(f.logs_in("svc", "pw"));
}

TEST(CreateUser, PasswordOver72Bytes_Is500) {
  Users f;
  const auto response =
      f.post("/v1/users", cat(R"({"username":"new","password":")", std::string(73, 'x'), "\"}"));
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(f.error(response), "create user failed");
  EXPECT_EQ(
      f.post("/v1/users", cat(R"({"username":"new","password":")", std::string(72, 'x'), "\"}"))
          .status,
      201);
}

TEST(CreateUser, AdminGrant_IsHandedOutByRootOnly) {
  Users f;
  const char* admin = R"({"username":"new","password":"pw","grants":[{"action":"admin"}]})";
  const char* scoped =
      R"({"username":"new","password":"pw","grants":[{"action":"create","patterns":["*"]}]})";
  f.as("deputy");
  EXPECT_EQ(f.post("/v1/users", admin).status, 403);
  EXPECT_EQ(f.post("/v1/users", scoped).status, 201);
  EXPECT_EQ(f.put("/v1/users/new/grants", R"({"grants":[{"action":"admin"}]})").status, 403);
  f.as("admin");
  EXPECT_EQ(
      f.put("/v1/users/new/grants", R"({"grants":[{"action":"admin","patterns":[]}]})").status,
      200);
}

TEST(ListUsers, AreAscendingAndAnArray) {
  Users f;
  const auto response = f.get("/v1/users");
  EXPECT_EQ(response.status, 200);
  const std::string times = R"("created_at_ms":1783615000123,"updated_at_ms":1783615000123})";
  EXPECT_EQ(response.body, cat(R"([{"username":"admin","root":true,)", times,
                               R"(,{"username":"deputy","grants":[{"action":"admin"}],)", times,
                               R"(,{"username":"svc",)", times, "]\n"));
  Fixture none;
  EXPECT_EQ(none.get("/v1/users").body, "[]\n");
}

TEST(GetUser, UnknownName_Is404) {
  Users f;
  EXPECT_EQ(f.get("/v1/users/svc").status, 200);
  const auto response = f.get("/v1/users/nobody");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(f.error(response), "user not found");
}

TEST(DeleteUser, TakesEffectAtOnce_AndRepeatedIs404) {
  Users f;
  EXPECT_TRUE(f.logs_in("svc", "pw"));
  EXPECT_EQ(f.remove("/v1/users/svc").status, 204);
  EXPECT_FALSE(f.logs_in("svc", "pw"));
  EXPECT_EQ(f.remove("/v1/users/svc").status, 404);
}

TEST(DeleteUser, RootAndOneself_Are403) {
  Users f;
  f.as("deputy");
  EXPECT_EQ(f.remove("/v1/users/admin").status, 403);
  EXPECT_EQ(f.remove("/v1/users/deputy").status, 403);
  f.as("admin");
  EXPECT_EQ(f.remove("/v1/users/admin").status, 403);
  EXPECT_EQ(f.broker.view()->users.size(), 3u);
}

TEST(SetGrants, ReplacesAllAndMayClear) {
  Users f;
  const auto response =
      f.put("/v1/users/svc/grants", R"({"grants":[{"action":"produce","patterns":["a"]}]})");
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.body.find(R"("grants":[{"action":"produce","patterns":["a"]}])"),
            std::string::npos);
  for (const char* body : {"{}", R"({"grants":null})", R"({"grants":[]})", "null"}) {
    EXPECT_EQ(f.put("/v1/users/svc/grants", body).status, 200) << body;
    EXPECT_TRUE(f.row("svc")->grants.empty());
  }
}

TEST(SetGrants, Refusals_AreInTheOrderOfTheContract) {
  Users f;
  f.as("svc");
  EXPECT_EQ(f.put("/v1/users/svc/grants", "{").status, 403) << "admin first";
  f.as("deputy");
  EXPECT_EQ(f.put("/v1/users/deputy/grants", "{").status, 400) << "then the body";
  EXPECT_EQ(f.put("/v1/users/deputy/grants", "{}").status, 403) << "then the own account";
  EXPECT_EQ(f.put("/v1/users/nobody/grants", R"({"grants":[{"action":"admin"}]})").status, 403)
      << "then delegation";
  EXPECT_EQ(f.put("/v1/users/nobody/grants", "{}").status, 404);
  EXPECT_EQ(f.put("/v1/users/admin/grants", "{}").status, 403) << "root last";
}

TEST(SetPassword, ByTheUser_NeedsTheCurrentOne) {
  Users f;
  f.as("svc");
  EXPECT_EQ(f.put("/v1/users/svc/password", R"({"new_password":"next"})").status, 403);
  EXPECT_EQ(f.put("/v1/users/svc/password", R"({"new_password":"next","current_password":"wrong"})")
                .status,
            403);
  EXPECT_EQ(
      f.put("/v1/users/svc/password", R"({"new_password":"next","current_password":"pw"})").status,
      204);
  EXPECT_FALSE(f.logs_in("svc", "pw"));
  EXPECT_TRUE(f.logs_in("svc", "next"));
}

TEST(SetPassword, ByAnAdmin_NeedsNone) {
  Users f;
  f.as("deputy");
  EXPECT_EQ(f.put("/v1/users/svc/password", R"({"new_password":"next"})").status, 204);
  EXPECT_TRUE(f.logs_in("svc", "next"));
  EXPECT_EQ(f.put("/v1/users/deputy/password", R"({"new_password":"next"})").status, 204);
  f.as("deputy", "next");
  EXPECT_EQ(f.put("/v1/users/admin/password", R"({"new_password":"next"})").status, 403);
  EXPECT_EQ(f.put("/v1/users/nobody/password", R"({"new_password":"next"})").status, 404);
  EXPECT_EQ(f.put("/v1/users/svc/password", R"({"new_password":""})").status, 400);
  EXPECT_EQ(f.put("/v1/users/svc/password", R"({"new_password":"a","x":1})").status, 400);
  EXPECT_EQ(
      f.put("/v1/users/svc/password", cat(R"({"new_password":")", std::string(73, 'x'), "\"}"))
          .status,
      500);
  f.as("admin");
  EXPECT_EQ(f.put("/v1/users/admin/password", R"({"new_password":"root-next"})").status, 204);
  EXPECT_TRUE(f.logs_in("admin", "root-next"));
}

TEST(SetPassword, OfAnother_Is403) {
  Users f;
  f.as("svc");
  EXPECT_EQ(f.put("/v1/users/deputy/password", R"({"new_password":"next","current_password":"pw"})")
                .status,
            403);
}

TEST(Users, RivalThatIsFaster_IsJudgedAgain) {
  Users f;
  f.proposer.before_apply = [&f] {
    f.broker.apply(metastore::SetUserPassword{"svc", f.row("svc")->changed_at, kHashOfPw, {}});
  };
  EXPECT_EQ(f.put("/v1/users/svc/grants", R"({"grants":[{"action":"admin"}]})").status, 200);
  f.proposer.before_apply = [&f] {
    f.broker.apply(metastore::DeleteUser{"svc", f.row("svc")->changed_at});
  };
  EXPECT_EQ(f.put("/v1/users/svc/password", R"({"new_password":"x"})").status, 404);
}

TEST(Users, NoLeader_Is503WithTheContractsSentence) {
  Users f;
  f.broker.refuse_write = Error(Errc::unavailable, "no leader");
  const auto response = f.put("/v1/users/svc/grants", "{}");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(f.error(response), "control plane temporarily unavailable: no leader");
  EXPECT_EQ(f.remove("/v1/users/svc").status, 503);
  EXPECT_EQ(f.post("/v1/users", R"({"username":"new","password":"pw"})").status, 503);
  EXPECT_EQ(f.put("/v1/users/svc/password", R"({"new_password":"x"})").status, 503);
}

TEST(Users, SecurityOff_CountsAsRoot) {
  Fixture f;
  EXPECT_EQ(f.post("/v1/users", R"({"username":"a","password":"pw","grants":[{"action":"admin"}]})")
                .status,
            201);
  f.broker.apply(metastore::CreateUser{"b", kHashOfPw, {}, false, {}});
  EXPECT_EQ(f.put("/v1/users/a/password", R"({"new_password":"x"})").status, 204);
  EXPECT_EQ(f.remove("/v1/users/a").status, 204);
}

}  // namespace
}  // namespace narad::api
