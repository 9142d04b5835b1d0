// A message or a page that sends somebody to a command names one that exists.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "cmd/narad/spec.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// Every "narad WORD [WORD]" that `pattern` finds: its first two groups are the words.
std::vector<std::string> named_in(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    names.push_back(cat((*it)[1].str(), ' ', (*it)[2].str()));
  }
  return names;
}

// Empty if the table has it; else what is wrong.
std::string problem_with(const std::string& name) {
  std::string first = name.substr(0, name.find(' '));
  std::string second = name.substr(name.find(' ') + 1);
  const CommandSpec* top = find_child(root_command(), first);
  if (top == nullptr) return cat("narad ", first, " does not exist");
  if (top->run != nullptr || second.empty()) return {};
  if (find_child(*top, second) == nullptr) return cat("narad ", name, " does not exist");
  return {};
}

std::string problems_in(const fs::path& path, std::size_t& named) {
  // In sources a command stands in a string literal, in pages in code: a span or a line of a block.
  static const std::regex kInLiteral(R"re((?:"|[ '`(])narad ([a-z]+)(?: ([a-z]+))?(?=[^"\n]*"))re");
  static const std::regex kInPage(R"re((?:`|\n(?:\$ )?)narad ([a-z]+)(?: ([a-z]+))?)re");
  bool page = path.extension() == ".md";
  std::string out;
  for (const std::string& name : named_in(slurp(path), page ? kInPage : kInLiteral)) {
    ++named;
    if (std::string problem = problem_with(name); !problem.empty()) {
      out += cat(path.string(), ": ", problem, "\n");
    }
  }
  return out;
}

TEST(NamedCommands, InMessagesAndPages_Exist) {
  std::string problems;
  std::size_t named = 0;
  for (const char* root : {"pkg", "internal", "cmd/narad", "docs", "README.md"}) {
    std::vector<fs::path> paths;
    if (fs::is_regular_file(root)) {
      paths.emplace_back(root);
    } else {
      for (const auto& e : fs::recursive_directory_iterator(root)) paths.push_back(e.path());
    }
    for (const fs::path& path : paths) {
      std::string name = path.filename().string();
      bool source = path.extension() == ".cpp" && !name.ends_with("_test.cpp");
      if (!source && path.extension() != ".md") continue;
      problems += problems_in(path, named);
    }
  }
  EXPECT_GT(named, 10u);
  EXPECT_EQ(problems, "");
}

TEST(NamedCommands, OneThatIsMissing_IsNoticed) {
  EXPECT_EQ(problem_with("topic ls"), "");
  EXPECT_EQ(problem_with("pub orders"), "");
  EXPECT_NE(problem_with("topic explode"), "");
  EXPECT_NE(problem_with("frobnicate "), "");
}

}  // namespace
}  // namespace narad::cli
