#include "cmd/narad/contexts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace narad::cli {
namespace {

// A directory of its own, and no NARAD_* variable from outside.
class Contexts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "narad-contexts-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    for (const char* name : {"NARAD_ADDR", "NARAD_USER", "NARAD_PASS"}) ::unsetenv(name);
    ::setenv("NARAD_CONFIG_DIR", (directory_ + "/deep/er").c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  static Connection resolve(std::vector<std::string> words) {
    words.insert(words.begin(), {"topic", "ls"});
    Parsed p = parse(words);
    return resolve_connection(*p.arguments);
  }
  std::string directory_;
};

TEST_F(Contexts, SavedStore_ReadsBackAndIsPrivate) {
  std::string path = context_path().value();
  ContextStore store;
  store.current = "staging";
  store.contexts["staging"] = {"http://s", "admin", "p\"w"};
  store.contexts["open"] = {"http://o", "", ""};
  ASSERT_TRUE(save_contexts(path, store));
  struct stat st{};
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((directory_ + "/deep/er").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
  auto back = load_contexts(path);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back.value().current, "staging");
  EXPECT_EQ(back.value().contexts.at("staging").password, "p\"w");
}

TEST_F(Contexts, Encoding_IsIndentedWithoutEmptyMembers) {
  ContextStore store;
  store.contexts["a"] = {"http://a", "", ""};
  EXPECT_EQ(encode_contexts(store),
            "{\n  \"contexts\": {\n    \"a\": {\n      \"server\": \"http://a\"\n    }\n  }\n}\n");
}

TEST_F(Contexts, AbsentFile_IsAnEmptyStoreAndADamagedOneAnError) {
  std::string path = context_path().value();
  ASSERT_TRUE(load_contexts(path));
  EXPECT_TRUE(load_contexts(path).value().contexts.empty());
  std::filesystem::create_directories(directory_ + "/deep/er");
  std::ofstream(path) << "{";
  EXPECT_FALSE(load_contexts(path));
  EXPECT_EQ(resolve({}).server, "http://127.0.0.1:7942");
}

TEST_F(Contexts, EachField_ComesFromTheHighestSource) {
  ContextStore store;
  store.current = "c";
  store.contexts["c"] = {"http://context", "context-user", "context-password"};
  ASSERT_TRUE(save_contexts(context_path().value(), store));
  EXPECT_EQ(resolve({}).server, "http://context");
  ::setenv("NARAD_ADDR", "http://variable", 1);
  ::setenv("NARAD_USER", "", 1);
  Connection c = resolve({"-p", "flag-password"});
  EXPECT_EQ(c.server, "http://variable");
  EXPECT_EQ(c.user, "context-user");
  EXPECT_EQ(c.password, "flag-password");
  EXPECT_EQ(resolve({"--server", "http://flag"}).server, "http://flag");
}

}  // namespace
}  // namespace narad::cli
