// Users, as a person and a client meet them: the first login, wrong passwords, rights, changes that
// count at once, limits, the record, and the user commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <filesystem>
#include <thread>

#include "cmd/narad/e2e/broker.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string login(const std::string& user, const std::string& password) {
  const std::string text = user + ":" + password;
  return "Basic " + to_base64(as_bytes(text));
}

// A client that logs in.
struct User {
  Http http;
  std::string header;
  User(const Broker& broker, const std::string& user, const std::string& password)
      : http(broker.port()), header(login(user, password)) {}
  Answer call(const std::string& method, const std::string& target, const std::string& body = "") {
    auto answer = http.request(method, target, body, {{"Authorization", header}});
    EXPECT_TRUE(answer) << method << " " << target;
    return answer.value_or(Answer{});
  }
  int status(const std::string& method, const std::string& target, const std::string& body = "") {
    return call(method, target, body).status;
  }
};

class Security : public ::testing::Test {
 protected:
  BrokerOptions secured() const {
    BrokerOptions options;
    options.env["NARAD_SECURITY_ENABLED"] = "true";
    options.env["NARAD_ADMIN_PASSWORD"] = "first";
    return options;
  }
  // The first user is made a moment after the node is ready: asks until it may log in.
  static bool await_login(const Broker& broker, const std::string& user,
                          const std::string& password) {
    User client(broker, user, password);
    const auto until = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < until) {
      if (client.status("GET", "/v1/topics") == 200) return true;
      std::this_thread::yield();
    }
    return false;
  }
  void start(Broker& broker) {
    ASSERT_TRUE(broker.start()) << broker.why();
    ASSERT_TRUE(await_login(broker, "admin", "first"));
  }
  ChildOptions cli(const Broker& broker) const {
    ChildOptions o;
    o.env["NARAD_ADDR"] = cat("http://127.0.0.1:", broker.port());
    o.env["NARAD_CONFIG_DIR"] = directory_ / "config";
    return o;
  }
  Ran narad(const Broker& broker, std::vector<std::string> words,
            const std::map<std::string, std::string>& env = {}) const {
    words.insert(words.begin(), narad_binary());
    ChildOptions o = cli(broker);
    for (const auto& [name, value] : env) o.env[name] = value;
    return run(words, o);
  }

  TempDir directory_;
  std::string data_ = directory_ / "data";
};

TEST_F(Security, NothingSaid_IsOn) {
  BrokerOptions options;
  options.wrapper = {"/usr/bin/env", "-u", "NARAD_SECURITY_ENABLED"};
  Broker broker(data_, options);
  ASSERT_TRUE(broker.start()) << broker.why();
  Http stranger(broker.port());
  const auto refused = stranger.get("/v1/topics");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(refused->body, "{\"error\":\"authentication required\"}\n");
  EXPECT_EQ(refused->headers.at("www-authenticate"), "Basic realm=\"narad\"");
  EXPECT_EQ(stranger.get("/v1/no/such/path")->status, 401);
  for (const char* open : {"/healthz", "/readyz", "/metrics"}) {
    EXPECT_EQ(stranger.get(open)->status, 200) << open;
  }
}

TEST_F(Security, FirstStart_ShowsARandomPasswordOnceAndItLetsIn) {
  BrokerOptions options = secured();
  options.env.erase("NARAD_ADMIN_PASSWORD");
  Broker broker(data_, options);
  ASSERT_TRUE(broker.start()) << broker.why();
  std::string text = broker.child().out();
  constexpr const char* kMessage = "first user made; its password is shown this once";
  if (text.find(kMessage) == std::string::npos) {
    ASSERT_TRUE(broker.child().line_with(kMessage, std::chrono::seconds(20)));
    text = broker.child().out();
  }
  const std::size_t at = text.find(kMessage);
  const std::size_t begin = text.rfind('\n', at) + 1;
  const json::object event =
      json::parse(text.substr(begin, text.find('\n', at) - begin)).as_object();
  EXPECT_EQ(event.at("level").as_string(), "WARN");
  const std::string password(event.at("password").as_string());
  EXPECT_EQ(password.size(), 32u);
  User admin(broker, "admin", password);
  EXPECT_EQ(admin.status("GET", "/v1/users"), 200);
  ASSERT_EQ(broker.terminate()->code, 0);

  ASSERT_TRUE(broker.start()) << broker.why();
  User again(broker, "admin", password);
  EXPECT_EQ(again.status("GET", "/v1/users"), 200);
  EXPECT_THAT(broker.child().out(), Not(HasSubstr("first user made")));
  EXPECT_THAT(broker.child().out(), Not(HasSubstr(password)));
}

TEST_F(Security, Users_SurviveAKillAndTheGivenPasswordIsForTheFirstStartOnly) {
  Broker broker(data_, secured());
  start(broker);
  EXPECT_EQ(User(broker, "admin", "first")
                .status("POST", "/v1/users", R"({"username":"svc","password":"pw"})"),
            201);
  EXPECT_EQ(User(broker, "admin", "first")
                .status("PUT", "/v1/users/admin/password", R"({"new_password":"second"})"),
            204);
  broker.kill9();
  ASSERT_TRUE(broker.start()) << broker.why();
  EXPECT_EQ(User(broker, "admin", "second").status("GET", "/v1/topics"), 200);
  EXPECT_EQ(User(broker, "admin", "first").status("GET", "/v1/topics"), 401);
  EXPECT_EQ(User(broker, "svc", "pw").status("GET", "/v1/topics"), 200);
}

TEST_F(Security, Grants_DecideWhatAUserMayDo) {
  Broker broker(data_, secured());
  start(broker);
  User admin(broker, "admin", "first");
  ASSERT_EQ(admin.status("POST", "/v1/topics", R"({"name":"orders"})"), 201);
  ASSERT_EQ(admin.status("POST", "/v1/users",
                         R"({"username":"svc","password":"pw",)"
                         R"("grants":[{"action":"produce","patterns":["ord*"]}]})"),
            201);
  User svc(broker, "svc", "pw");
  EXPECT_EQ(svc.status("POST", "/v1/topics/orders/produce", "x"), 202);
  EXPECT_EQ(svc.status("POST", "/v1/topics/bills/produce", "x"), 403);
  const Answer refused = svc.call("GET", "/v1/topics/orders/consume");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body,
            "{\"error\":\"forbidden: user svc has no consume grant that matches orders\"}\n");
  EXPECT_EQ(svc.status("DELETE", "/v1/topics/orders"), 403);
  EXPECT_EQ(svc.status("GET", "/v1/users"), 403);
  // Changed grants, a changed password and a deletion count with the next request.
  EXPECT_EQ(admin.status("PUT", "/v1/users/svc/grants",
                         R"({"grants":[{"action":"consume","patterns":["orders"]}]})"),
            200);
  EXPECT_EQ(svc.status("POST", "/v1/topics/orders/produce", "x"), 403);
  EXPECT_EQ(svc.status("GET", "/v1/topics/orders/consume?wait=10s"), 200);
  EXPECT_EQ(svc.status("PUT", "/v1/users/svc/password",
                       R"({"new_password":"next","current_password":"pw"})"),
            204);
  EXPECT_EQ(svc.status("GET", "/v1/topics"), 401);
  User changed(broker, "svc", "next");
  EXPECT_EQ(changed.status("GET", "/v1/topics"), 200);
  EXPECT_EQ(admin.status("DELETE", "/v1/users/svc"), 204);
  EXPECT_EQ(changed.status("GET", "/v1/topics"), 401);
}

TEST_F(Security, WrongPasswords_LockOutThatUserOnly) {
  Broker broker(data_, secured());
  start(broker);
  User admin(broker, "admin", "first");
  ASSERT_EQ(admin.status("POST", "/v1/users", R"({"username":"svc","password":"pw"})"), 201);
  for (int n = 0; n < 5; ++n) {
    EXPECT_EQ(User(broker, "svc", cat("wrong", n)).status("GET", "/v1/topics"), 401);
  }
  const Answer locked = User(broker, "svc", "wrong5").call("GET", "/v1/topics");
  EXPECT_EQ(locked.status, 429);
  EXPECT_EQ(User(broker, "svc", "pw").status("GET", "/v1/topics"), 429);
  EXPECT_EQ(User(broker, "svc", "wrong0").status("GET", "/v1/topics"), 401) << "remembered";
  EXPECT_EQ(User(broker, "nobody", "wrong5").status("GET", "/v1/topics"), 401);
  EXPECT_EQ(admin.status("GET", "/v1/topics"), 200);
}

TEST_F(Security, BodyWithoutCredentials_IsRefusedBeforeItIsSent) {
  Broker broker(data_, secured());
  start(broker);
  Http raw(broker.port());
  const std::string answer = raw.raw(
      "POST /v1/topics/orders/produce HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n"
      "Expect: 100-continue\r\n\r\n",
      2000);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 "));
}

TEST_F(Security, RateLimit_Answers429WithRetryAfter) {
  BrokerOptions options = secured();
  options.env["NARAD_LIMITS_REQUESTS_PER_SECOND"] = "5";
  Broker broker(data_, options);
  start(broker);
  User admin(broker, "admin", "first");
  Answer answer;
  for (int n = 0; n < 200 && answer.status != 429; ++n) answer = admin.call("GET", "/v1/topics");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  EXPECT_EQ(Http(broker.port()).get("/readyz")->status, 200);
}

TEST_F(Security, Record_HasALineForEachAdministrativeWriteAndRotates) {
  const std::string file = directory_ / "audit.jsonl";
  BrokerOptions options = secured();
  options.env["NARAD_AUDIT_FILE"] = file;
  Broker broker(data_, options);
  start(broker);
  User admin(broker, "admin", "first");
  ASSERT_EQ(admin.status("POST", "/v1/users", R"({"username":"svc","password":"hidden-pw"})"), 201);
  ASSERT_EQ(User(broker, "svc", "hidden-pw").status("POST", "/v1/topics", R"({"name":"orders"})"),
            403);
  const std::string text = read_text(file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  const json::object line = json::parse(text.substr(0, text.find('\n'))).as_object();
  EXPECT_EQ(line.at("user").as_string(), "admin");
  EXPECT_EQ(line.at("action").as_string(), "create_user");
  EXPECT_EQ(line.at("target").as_string(), "svc");
  EXPECT_EQ(line.at("outcome").as_string(), "done");
  EXPECT_THAT(std::string(line.at("remote").as_string()), StartsWith("127.0.0.1:"));
  EXPECT_THAT(text, HasSubstr(R"("user":"svc")"));
  EXPECT_THAT(text, HasSubstr(R"("outcome":"refused","status":403)"));
  EXPECT_THAT(text, Not(HasSubstr("hidden-pw")));

  std::filesystem::rename(file, file + ".1");
  broker.child().signal(SIGHUP);
  ASSERT_TRUE(broker.child().line_with("settings reloaded", std::chrono::seconds(10)));
  ASSERT_EQ(admin.status("DELETE", "/v1/users/svc"), 204);
  EXPECT_EQ(read_text(file + ".1"), text);
  EXPECT_THAT(read_text(file), HasSubstr(R"("action":"delete_user")"));
}

TEST_F(Security, AuditFileThatCannotBeOpened_RefusesTheStart) {
  BrokerOptions options = secured();
  options.env["NARAD_AUDIT_FILE"] = directory_ / "nowhere/audit";
  Broker broker(data_, options);
  EXPECT_FALSE(broker.start());
  EXPECT_THAT(broker.why(), HasSubstr("audit.file"));
}

TEST_F(Security, OtherMachines_AreServedWithUsersAndWarnedAboutWithout) {
  BrokerOptions options = secured();
  options.args = {"--addr", "0.0.0.0:0"};
  Broker with(data_, options);
  start(with);
  EXPECT_THAT(with.child().out(), Not(HasSubstr("may do everything")));
  ASSERT_EQ(with.terminate()->code, 0);
  options.env["NARAD_SECURITY_ENABLED"] = "false";
  Broker without(directory_ / "open", options);
  ASSERT_TRUE(without.start()) << without.why();
  EXPECT_THAT(without.child().out(), HasSubstr("whoever reaches this address may do everything"));
}

// The way back in for who has lost every password.
TEST_F(Security, LostPassword_IsSetAnewWithSecurityOff) {
  Broker broker(data_, secured());
  start(broker);
  ASSERT_EQ(broker.terminate()->code, 0);
  BrokerOptions off;
  Broker open(data_, off);
  ASSERT_TRUE(open.start()) << open.why();
  EXPECT_EQ(Http(open.port())
                .request("PUT", "/v1/users/admin/password", R"({"new_password":"found"})")
                ->status,
            204);
  ASSERT_EQ(open.terminate()->code, 0);
  ASSERT_TRUE(broker.start()) << broker.why();
  EXPECT_EQ(User(broker, "admin", "found").status("GET", "/v1/users"), 200);
}

TEST_F(Security, UserCommands_PrintWhatReleaseTwoPrints) {
  Broker broker(data_, secured());
  start(broker);
  const std::map<std::string, std::string> root{{"NARAD_USER", "admin"}, {"NARAD_PASS", "first"}};
  Ran ran = narad(broker, {"user", "ls"});
  EXPECT_EQ(ran.exit.code, 1);
  EXPECT_EQ(ran.err, "narad: http 401: authentication required\n");
  ran = narad(broker,
              {"user", "add", "svc", "--user-password", "pw", "--grant", "produce:orders-*,x",
               "--grant", "consume:orders-*"},
              root);
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("{\n"
                                  "  \"username\": \"svc\",\n"
                                  "  \"grants\": [\n"
                                  "    {\n"
                                  "      \"action\": \"produce\",\n"
                                  "      \"patterns\": [\n"
                                  "        \"orders-*\",\n"
                                  "        \"x\"\n"
                                  "      ]\n"
                                  "    },\n"));
  EXPECT_THAT(ran.out, ContainsRegex("  \"created_at_ms\": [0-9]+,\n"
                                     "  \"updated_at_ms\": [0-9]+\n\\}\n$"));
  EXPECT_THAT(ran.out, Not(HasSubstr("pw")));
  ran = narad(broker, {"user", "add", "svc", "--user-password", "pw"}, root);
  EXPECT_EQ(ran.err, "narad: http 409: user already exists\n");
  ran = narad(broker, {"user", "grant", "svc", "--grant", "admin"}, root);
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("      \"action\": \"admin\"\n"));
  ran = narad(broker, {"-u", "admin", "-p", "first", "user", "grant", "svc"});
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("grants")));
  ran = narad(broker, {"user", "ls"}, root);
  EXPECT_THAT(ran.out, StartsWith("[\n  {\n    \"username\": \"admin\",\n    \"root\": true,\n"));
  ran = narad(broker, {"user", "grant", "svc", "--grant", "fly:x"}, root);
  EXPECT_EQ(ran.exit.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("the action must be produce, consume, create or admin"));
  ran = narad(broker, {"user", "rm", "svc"}, root);
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  ran = narad(broker, {"user", "rm", "svc"}, root);
  EXPECT_EQ(ran.err, "narad: http 404: user not found\n");
}

TEST_F(Security, ClientCommands_LogInWithFlagsEnvironmentAndContext) {
  Broker broker(data_, secured());
  start(broker);
  const std::map<std::string, std::string> root{{"NARAD_USER", "admin"}, {"NARAD_PASS", "first"}};
  ASSERT_EQ(narad(broker, {"topic", "add", "orders"}, root).exit.code, 0);
  ASSERT_EQ(narad(broker, {"pub", "orders", "hello", "--partition", "0"}, root).exit.code, 0);
  const Ran report = narad(broker, {"server", "report"}, root);
  EXPECT_EQ(report.exit.code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("orders"));
  EXPECT_EQ(narad(broker, {"topic", "ls"}).exit.code, 1);
  EXPECT_EQ(narad(broker, {"topic", "ls", "-u", "admin", "-p", "first"}).exit.code, 0);
  EXPECT_EQ(narad(broker, {"topic", "ls", "-p", "wrong"}, root).err,
            "narad: http 401: authentication required\n")
      << "a flag wins over the environment";
  ASSERT_EQ(
      narad(broker, {"ctx", "add", "here", "--server", cat("http://127.0.0.1:", broker.port()),
                     "--user", "admin", "--password", "first"})
          .exit.code,
      0);
  EXPECT_EQ(narad(broker, {"topic", "ls"}).exit.code, 0);
  // A user who may only consume sees what is missing.
  ASSERT_EQ(
      narad(broker, {"user", "add", "reader", "--user-password", "pw", "--grant", "consume:orders"})
          .exit.code,
      0);
  const Ran refused = narad(broker, {"pub", "orders", "x", "-u", "reader", "-p", "pw"});
  EXPECT_EQ(refused.exit.code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("http 403: forbidden: user reader has no produce grant that matches "
                        "orders"));
}

}  // namespace
}  // namespace narad::e2e
