// What a person meets when something is wrong: each of these is tried on the real binary, ends with
// the right exit code, and says what failed, why, and what to do.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cmd/narad/e2e/broker.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

struct Refusal {
  int code = 0;
  std::string text;
};

Refusal refusal(std::vector<std::string> args, std::map<std::string, std::string> env = {},
                unsigned run_as = 0) {
  std::vector<std::string> argv{narad_binary()};
  argv.insert(argv.end(), args.begin(), args.end());
  ChildOptions options;
  options.env = std::move(env);
  options.run_as = run_as;
  Ran ran = run(std::move(argv), std::move(options), std::chrono::seconds(30));
  EXPECT_EQ(ran.exit.signal, 0) << ran.err << ran.out;
  return {ran.exit.code, ran.err + ran.out};
}

void expect_says(const Refusal& r, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    EXPECT_NE(r.text.find(part), std::string::npos) << "missing \"" << part << "\" in:\n" << r.text;
}

class Errors : public testing::Test {
 protected:
  std::vector<std::string> serve(std::vector<std::string> more = {}) {
    std::vector<std::string> args{"serve", "--addr", "127.0.0.1:0", "--data-dir", dir / "data"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  void make_data() {
    Broker broker(dir / "data");
    ASSERT_TRUE(broker.start()) << broker.why();
    broker.create_topic("t", 1);
    ASSERT_EQ(Http(broker.port()).post("/v1/topics/t/produce", "kept")->status, 202);
    ASSERT_TRUE(await_records(broker.port(), "t", 1, std::chrono::seconds(10)));
    ASSERT_EQ(broker.terminate()->code, 0);
  }
  TempDir dir;
};

TEST_F(Errors, PortInUse_NamesTheAddress) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  socklen_t size = sizeof at;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  const std::string address = cat("127.0.0.1:", ntohs(at.sin_port));
  auto r = refusal({"serve", "--addr", address, "--data-dir", dir / "data"});
  ::close(fd);
  EXPECT_EQ(r.code, 1);
  expect_says(r, {address, "in use"});
}

// Nothing is said to run that does not.
TEST_F(Errors, DevelopmentBrokerThatCannotStart_DoesNotGreet) {
  Broker first(dir / "data");
  ASSERT_TRUE(first.start()) << first.why();
  for (std::vector<std::string> args :
       {std::vector<std::string>{"--port", cat(first.port()), "--data-dir", dir / "other"},
        {"--port", "0", "--data-dir", dir / "data"}}) {
    args.insert(args.begin(), {"server", "start", "--dev"});
    auto r = refusal(args);
    EXPECT_EQ(r.code, 1);
    expect_says(r, {"in use"});
    EXPECT_EQ(r.text.find("development broker on"), std::string::npos) << r.text;
  }
}

TEST_F(Errors, ServerStartWithoutDev_SaysThatThereIsDev) {
  write_text(dir / "data", "a file");
  auto r = refusal({"server", "start", "--data-dir", dir / "data"});
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"narad server start --dev"});
}

TEST_F(Errors, DirectoryInUse_NamesTheHolder) {
  Broker first(dir / "data");
  ASSERT_TRUE(first.start()) << first.why();
  auto r = refusal(serve());
  EXPECT_EQ(r.code, 1);
  expect_says(r, {dir / "data", "in use by", std::to_string(first.child().pid())});
  EXPECT_TRUE(first.child().running());
}

TEST_F(Errors, NoPermission_NamesTheDirectory) {
  ASSERT_EQ(::mkdir((dir / "closed").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  auto r = refusal({"serve", "--addr", "127.0.0.1:0", "--data-dir", (dir / "closed") + "/data"}, {},
                   65534);
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"closed", "Permission denied"});
}

TEST_F(Errors, WrongFlag_IsAUsageErrorOfServe) {
  auto r = refusal({"serve", "--no-such-flag"});
  EXPECT_EQ(r.code, 2);
  expect_says(r, {"no-such-flag"});
}

TEST_F(Errors, WrongFlagOfAClientCommand_ExitsOne) {
  auto r = refusal({"topic", "ls", "--no-such-flag"});
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"narad: ", "no-such-flag"});
}

TEST_F(Errors, UnknownConfigKey_IsNamedWithASuggestion) {
  write_text(dir / "narad.json", R"({"http":{"adr":"127.0.0.1:0"}})");
  auto r = refusal({"serve", "--config", dir / "narad.json", "--data-dir", dir / "data"});
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"config: unknown key \"http.adr\"", "http.addr"});
  EXPECT_FALSE(std::filesystem::exists(dir / "data")) << "a refused start makes nothing";
}

TEST_F(Errors, MissingConfigFile_IsNamed) {
  auto r = refusal({"serve", "--config", dir / "absent.json"});
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"absent.json", "No such file"});
}

TEST_F(Errors, DamagedIdentity_IsRefusedAndUntouched) {
  make_data();
  write_text(dir / "data/node.json", "{\"format\":1,");
  auto r = refusal(serve());
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"node.json", "damaged"});
  EXPECT_EQ(read_text(dir / "data/node.json"), "{\"format\":1,");
}

TEST_F(Errors, OtherNodesDirectory_IsRefused) {
  make_data();
  auto r = refusal(serve({"--node-id", "somebody-else"}));
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"belongs to node", "somebody-else"});
}

TEST_F(Errors, DamagedMetastore_SaysTheWayOut) {
  make_data();
  for (const auto& entry : std::filesystem::directory_iterator(dir / "data/metastore")) {
    if (entry.path().extension() == ".db") {
      std::string content = read_text(entry.path());
      for (std::size_t i = 100; i < content.size(); i += 97)
        content[i] = static_cast<char>(content[i] ^ 0x5a);
      write_text(entry.path(), content);
    }
  }
  auto r = refusal(serve());
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"metastore"});
}

TEST_F(Errors, UnreachableServer_ExitsOneWithTransport) {
  auto r = refusal({"topic", "ls", "--server", "http://127.0.0.1:1"});
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"narad: ", "transport: "});
}

TEST_F(Errors, UnknownTopLevelCommand_ExitsOne) {
  auto r = refusal({"frobnicate"});
  EXPECT_EQ(r.code, 1);
  expect_says(r, {"frobnicate"});
}

}  // namespace
}  // namespace narad::e2e
