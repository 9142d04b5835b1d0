#include <algorithm>
#include <cctype>
#include <set>

#include "internal/tidy/tidy.h"
#include "pkg/base/text.h"

namespace narad::tidy {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos;
       at = line.find(word, at + 1)) {
    bool open = at == 0 || !is_word(line[at - 1]);
    bool closed = at + word.size() == line.size() || !is_word(line[at + word.size()]);
    if (open && closed) return true;
  }
  return false;
}

bool is_source_tree(std::string_view path) {
  return path.starts_with("pkg/") || path.starts_with("internal/") || path.starts_with("cmd/");
}

// One TEST macro: its kind, its two arguments and its line.
struct TestCase {
  std::string suite;
  std::string name;
  std::size_t line;
};
std::vector<TestCase> test_cases_of(const SourceFile& file) {
  constexpr std::string_view kMacros[] = {"TEST", "TEST_F", "TEST_P", "TYPED_TEST"};
  std::string code = code_only(file.text);
  std::vector<Token> t = tokens_of(code);
  std::vector<TestCase> cases;
  for (std::size_t i = 0; i + 5 < t.size(); ++i) {
    bool macro = std::find(std::begin(kMacros), std::end(kMacros), t[i].text) != std::end(kMacros);
    if (!macro || t[i + 1].text != "(" || t[i + 3].text != "," || t[i + 5].text != ")") continue;
    cases.push_back({std::string(t[i + 2].text), std::string(t[i + 4].text), t[i].line});
  }
  return cases;
}

// Requirement ids within a test name: three capitals, '_', digits, perhaps one small letter; each
// of them whole between underscores.
std::vector<std::string> ids_in(std::string_view name) {
  std::vector<std::string> parts;
  while (!name.empty()) {
    std::size_t end = std::min(name.find('_'), name.size());
    parts.emplace_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  std::vector<std::string> ids;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const std::string& area = parts[i];
    std::string number = parts[i + 1];
    bool capitals = area.size() == 3 && std::all_of(area.begin(), area.end(),
                                                    [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!capitals || number.empty()) continue;
    std::string digits = number;
    if (digits.size() > 1 && digits.back() >= 'a' && digits.back() <= 'd') digits.pop_back();
    bool numeric =
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (numeric) ids.push_back(cat(area, "-", number));
  }
  return ids;
}

void check_test_name(const SourceFile& file, const TestCase& c, Findings& out) {
  auto complain = [&](std::string_view what) {
    out.push_back({file.path, c.line, "test-name", cat(c.suite, ".", c.name, ": ", what)});
  };
  if (c.suite.starts_with("DISABLED_") || c.name.starts_with("DISABLED_")) {
    complain("a disabled test proves nothing: mend it or delete it");
  }
  // A sentence: parts joined by '_', or at least three capitalised words.
  auto capital = [](char letter) { return letter >= 'A' && letter <= 'Z'; };
  bool parts = c.name.find('_') != std::string::npos;
  bool words = std::count_if(c.name.begin(), c.name.end(), capital) >= 3;
  if (!parts && !words) {
    complain("name it Subject_Situation_Outcome (the suite is the subject)");
  }
  if (ids_in(c.name).size() > 3) complain("at most three requirement ids a test");
}

}  // namespace

Findings check_shape(const Tree& tree) {
  Findings out;
  for (const SourceFile& file : tree) {
    if (!is_cpp(file.path)) continue;
    if (file.path.ends_with(".h") && !file.text.starts_with("#pragma once\n")) {
      out.push_back({file.path, 1, "shape", "a header begins with #pragma once"});
    }
    std::size_t lines = lines_of(file.text).size();
    if (lines > kLinesMax) {
      out.push_back({file.path, lines, "shape",
                     cat(lines, " lines; a file has one subject and at most ", kLinesMax)});
    }
    if (!file.text.empty() && !file.text.ends_with('\n')) {
      out.push_back({file.path, lines, "shape", "a file ends with a newline"});
    }
  }
  return out;
}

Findings check_words(const Tree& tree) {
  // Spelled in two halves, so that this file passes its own rule.
  static const std::string kWords[] = {
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X",
      "HA"
      "CK"};
  static const std::string kPaths[] = {
      "/wo"
      "rk/",
      "/ro"
      "ot/",
      "/ho"
      "me/",
      "/tmp"
      "/w/"};
  Findings out;
  for (const SourceFile& file : tree) {
    std::size_t number = 0;
    for (std::string_view line : lines_of(file.text)) {
      ++number;
      for (const std::string& word : kWords) {
        if (has_word(line, word)) {
          out.push_back({file.path, number, "word", cat(word, ": finish it, or drop it")});
        }
      }
      for (const std::string& path : kPaths) {
        if (line.find(path) != std::string_view::npos) {
          out.push_back({file.path, number, "word", cat(path, ": a path of one machine")});
        }
      }
    }
  }
  return out;
}

Findings check_readmes(const Tree& tree) {
  constexpr std::size_t kScreen = 70;
  std::set<std::string, std::less<>> needed;
  std::set<std::string, std::less<>> present;
  Findings out;
  for (const SourceFile& file : tree) {
    if (!is_source_tree(file.path)) continue;
    std::string directory(directory_of(file.path));
    if (is_cpp(file.path)) needed.insert(directory);
    if (file.path != cat(directory, "/README.md")) continue;
    present.insert(directory);
    std::size_t lines = lines_of(file.text).size();
    if (lines > kScreen) {
      out.push_back({file.path, lines, "readme", cat(lines, " lines; at most a screen")});
    }
  }
  for (const std::string& directory : needed) {
    if (present.contains(directory)) continue;
    out.push_back({directory, 0, "readme",
                   "no README.md: what it promises, its files in reading order, what it includes"});
  }
  return out;
}

Findings check_test_names(const Tree& tree) {
  Findings out;
  for (const SourceFile& file : tree) {
    if (!is_test(file.path)) continue;
    for (const TestCase& c : test_cases_of(file)) check_test_name(file, c, out);
  }
  return out;
}

Findings advise_long_functions(const Tree& tree) {
  Findings out;
  for (const SourceFile& file : tree) {
    if (!is_cpp(file.path)) continue;
    std::size_t number = 0;
    std::size_t begin = 0;
    // Formatted code closes a function of a namespace with a '}' in the first column.
    for (std::string_view line : lines_of(file.text)) {
      ++number;
      bool first_column = !line.empty() && line[0] != ' ' && line[0] != '#' && line[0] != '/';
      if (!first_column) continue;
      if (line.ends_with("{") && line.find('(') != std::string_view::npos) begin = number;
      if (line == "}" && begin != 0) {
        std::size_t length = number - begin + 1;
        if (length > kFunctionLinesMax) {
          out.push_back({file.path, begin, "long-function", cat(length, " lines")});
        }
        begin = 0;
      }
    }
  }
  return out;
}

Coverage cover_requirements(const Tree& tree, std::string_view list) {
  Coverage coverage;
  std::set<std::string, std::less<>> listed;
  for (std::string_view line : lines_of(list)) {
    if (line.empty() || line[0] == '#') continue;
    std::string id(line.substr(0, std::min(line.find(' '), line.size())));
    if (listed.insert(id).second) coverage.listed.push_back(id);
  }
  std::set<std::string, std::less<>> areas;
  for (const std::string& id : listed) areas.insert(id.substr(0, 3));
  std::set<std::string, std::less<>> carried;
  for (const SourceFile& file : tree) {
    if (!is_test(file.path)) continue;
    for (const TestCase& c : test_cases_of(file)) {
      for (const std::string& id : ids_in(c.name)) {
        if (!areas.contains(id.substr(0, 3))) continue;
        carried.insert(id);
        if (listed.contains(id)) continue;
        coverage.findings.push_back({file.path, c.line, "requirement",
                                     cat(c.suite, ".", c.name, " carries ", id,
                                         ", which testdata/requirements.txt does not list")});
      }
    }
  }
  for (const std::string& id : coverage.listed) {
    if (!carried.contains(id)) coverage.uncovered.push_back(id);
  }
  return coverage;
}

}  // namespace narad::tidy
