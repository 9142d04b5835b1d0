#pragma once
// Rules about the source tree that a compiler does not check, as pure functions from files to
// findings. tree_test.cpp runs them over the repository; each rule also has a test with a planted
// violation (docs/CODING.md says why the rules exist).
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace narad::tidy {

struct SourceFile {
  std::string path;  // from the root of the repository, '/' separated
  std::string text;
};
using Tree = std::vector<SourceFile>;

struct Finding {
  std::string path;
  std::size_t line = 0;  // from 1; 0 when the file as a whole is meant
  std::string rule;      // a short fixed name, such as "door"
  std::string text;      // what is wrong and what to do instead
};
using Findings = std::vector<Finding>;
// "path:line: rule: text", one a line.
std::string to_text(const Findings& findings);

// ---- reading C++ ----------------------------------------------------------------------------

// The text with comments and the contents of string and character literals blanked out; every
// newline stays, so lines keep their numbers.
std::string code_only(std::string_view cpp);

struct Token {
  std::string_view text;  // an identifier or number, "::", "->", or one other character
  std::size_t line;
};
// REQUIRES: `code` outlives the tokens. Preprocessor lines are skipped.
std::vector<Token> tokens_of(std::string_view code);

struct Include {
  std::string target;
  bool quoted = false;
  std::size_t line = 0;
};
std::vector<Include> includes_of(std::string_view cpp);

bool is_cpp(std::string_view path);  // .h or .cpp
// x_test.cpp, and the headers that only tests include: test_x.h, x_testing.h, x_for_test.h.
bool is_test(std::string_view path);
std::string_view directory_of(std::string_view path);

// ---- rules ----------------------------------------------------------------------------------

// Only pkg/env/real and cmd/ name the outside world: clocks, sleeps, files, sockets, threads.
Findings check_doors(const Tree& tree);

// What `link_graph.txt` of a build directory says: "dir: deps | test deps", lists split by ';'.
struct LinkGraph {
  struct Directory {
    std::vector<std::string> deps;
    std::vector<std::string> test_deps;
  };
  std::map<std::string, Directory, std::less<>> directories;
};
LinkGraph parse_link_graph(std::string_view text);

// Every include of the project is within its own directory or what that links; pkg never sees
// internal; nobody sees cmd; pkg/sim and pkg/env/real never meet outside cmd and tests.
Findings check_includes(const Tree& tree, const LinkGraph& graph);

// `cores`: one path a line ('*' at the end for a prefix, '#' comments). A core, and everything of
// the project that it includes, includes no Asio, Beast or SQLite and no door that waits or stores.
Findings check_cores(const Tree& tree, std::string_view cores);

// Headers start with #pragma once; files are at most kLinesMax long.
inline constexpr std::size_t kLinesMax = 1000;
Findings check_shape(const Tree& tree);
// Words that mark unfinished work, and paths of somebody's machine.
Findings check_words(const Tree& tree);
// Every directory with sources has a README.md of at most a screen.
Findings check_readmes(const Tree& tree);
// Subject_Situation_Outcome, at most three requirement ids, nothing disabled.
Findings check_test_names(const Tree& tree);

inline constexpr std::size_t kFunctionLinesMax = 70;
// Advice, never binding: functions longer than a screen.
Findings advise_long_functions(const Tree& tree);

// ---- requirements ---------------------------------------------------------------------------

struct Coverage {
  std::vector<std::string> listed;     // ids of the list, in its order
  std::vector<std::string> uncovered;  // those that no test name carries
  Findings findings;                   // ids in test names that the list does not know
};
// `list`: lines "OWN-1 text"; '#' comments. A test name carries an id as OWN_1.
Coverage cover_requirements(const Tree& tree, std::string_view list);

}  // namespace narad::tidy
