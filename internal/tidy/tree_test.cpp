// The rules over this repository. Tests run in the root of the source tree, with NARAD_BUILD_DIR in
// their environment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "internal/tidy/tidy.h"

namespace narad::tidy {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool is_text(const fs::path& path) {
  constexpr std::string_view kEndings[] = {".h",  ".cpp",  ".txt", ".md",
                                           ".sh", ".json", ".in",  ".service"};
  std::string name = path.filename().string();
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view e) { return name.ends_with(e); }) ||
         name == "dev" || path.parent_path().filename() == ".ci";
}

const Tree& tree() {
  static const Tree kTree = [] {
    Tree files;
    for (const char* top : {"pkg", "internal", "cmd", "docs", "packaging", "man", ".ci"}) {
      if (!fs::exists(top)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(top)) {
        if (entry.is_regular_file() && is_text(entry.path())) {
          files.push_back({entry.path().generic_string(), slurp(entry.path())});
        }
      }
    }
    for (const char* top : {"README.md", "CMakeLists.txt", "dev"})
      files.push_back({top, slurp(top)});
    std::sort(files.begin(), files.end(),
              [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
    return files;
  }();
  return kTree;
}

TEST(Repository, Tree_IsReadWhole) {
  // A walk that finds nothing would make every other test here pass.
  auto has = [](std::string_view path) {
    return std::any_of(tree().begin(), tree().end(),
                       [&](const SourceFile& f) { return f.path == path && !f.text.empty(); });
  };
  EXPECT_GT(tree().size(), 50u);
  EXPECT_TRUE(has("pkg/base/result.h"));
  EXPECT_TRUE(has("internal/tidy/doors.cpp"));
  EXPECT_TRUE(has("dev"));
}

TEST(Repository, Doors_AreTheOnlyWayOut) { EXPECT_EQ(to_text(check_doors(tree())), ""); }

TEST(Repository, Includes_FollowTheLinkGraph) {
  const char* build = std::getenv("NARAD_BUILD_DIR");
  ASSERT_NE(build, nullptr) << "run through ctest";
  LinkGraph graph = parse_link_graph(slurp(fs::path(build) / "link_graph.txt"));
  ASSERT_TRUE(graph.directories.contains("pkg/base"));
  EXPECT_EQ(to_text(check_includes(tree(), graph)), "");
}

TEST(Repository, Cores_NeitherWaitNorStore) {
  EXPECT_EQ(to_text(check_cores(tree(), slurp("internal/tidy/cores.txt"))), "");
}

TEST(Repository, Files_KeepTheirShape) { EXPECT_EQ(to_text(check_shape(tree())), ""); }
TEST(Repository, Words_AreFinished) { EXPECT_EQ(to_text(check_words(tree())), ""); }
TEST(Repository, Directories_HaveReadmes) { EXPECT_EQ(to_text(check_readmes(tree())), ""); }
TEST(Repository, Tests_AreNamedAsSentences) { EXPECT_EQ(to_text(check_test_names(tree())), ""); }

TEST(Repository, Documents_AreInTheIndex) {
  std::string index = slurp("docs/README.md");
  for (const SourceFile& file : tree()) {
    bool page = file.path.starts_with("docs/") && file.path.ends_with(".md");
    if (!page || file.path.ends_with("README.md")) continue;
    EXPECT_THAT(index, ::testing::HasSubstr("(" + file.path.substr(5) + ")"));
  }
}

TEST(Repository, LongFunctions_AreReported) { std::cout << to_text(advise_long_functions(tree())); }

TEST(Repository, Requirements_AreEachCarriedByATestAndNoOthersAre) {
  Coverage coverage = cover_requirements(tree(), slurp("testdata/requirements.txt"));
  EXPECT_GT(coverage.listed.size(), 150u);
  EXPECT_EQ(to_text(coverage.findings), "");
  // Whether those tests passed is seen to where their outcomes are (.ci/requirements).
  EXPECT_THAT(coverage.uncovered, ::testing::IsEmpty());
}

}  // namespace
}  // namespace narad::tidy
