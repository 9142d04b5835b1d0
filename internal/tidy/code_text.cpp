#include <algorithm>
#include <cctype>

#include "internal/tidy/tidy.h"
#include "pkg/base/text.h"

namespace narad::tidy {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Walks C++ text and blanks what is not code. One function per kind of span, each of which leaves
// `at_` behind the span.
class Blanker {
 public:
  explicit Blanker(std::string_view cpp) : in_(cpp), out_(cpp) {}

  std::string run() {
    while (at_ < in_.size()) {
      if (starts("//")) {
        line_comment();
      } else if (starts("/*")) {
        block_comment();
      } else if (in_[at_] == '"') {
        string_literal();
      } else if (in_[at_] == '\'' && (at_ == 0 || !is_word(in_[at_ - 1]))) {
        quoted('\'');  // not a digit separator
      } else {
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  bool starts(std::string_view s) const { return in_.substr(at_).starts_with(s); }
  void blank(std::size_t end) {
    for (; at_ < end; ++at_) {
      if (out_[at_] != '\n') out_[at_] = ' ';
    }
  }
  void line_comment() { blank(std::min(in_.find('\n', at_), in_.size())); }
  void block_comment() {
    std::size_t end = in_.find("*/", at_ + 2);
    blank(end == std::string_view::npos ? in_.size() : end + 2);
  }
  void string_literal() {
    bool raw = at_ > 0 && in_[at_ - 1] == 'R' && (at_ < 2 || !is_word(in_[at_ - 2]));
    if (!raw) return quoted('"');
    std::size_t open = in_.find('(', at_);
    if (open == std::string_view::npos) return blank(in_.size());
    std::string close = cat(")", std::string(in_.substr(at_ + 1, open - at_ - 1)), "\"");
    std::size_t end = in_.find(close, open);
    blank(end == std::string_view::npos ? in_.size() : end + close.size());
  }
  // Keeps the quotes, so that a token stands where the literal was.
  void quoted(char quote) {
    std::size_t end = at_ + 1;
    while (end < in_.size() && in_[end] != quote && in_[end] != '\n') {
      end += in_[end] == '\\' ? 2 : 1;
    }
    ++at_;
    blank(std::min(end, in_.size()));
    if (at_ < in_.size()) ++at_;
  }

  std::string_view in_;
  std::string out_;
  std::size_t at_ = 0;
};

std::string_view line_at(std::string_view text, std::size_t at) {
  return text.substr(at, std::min(text.find('\n', at), text.size()) - at);
}

}  // namespace

std::string code_only(std::string_view cpp) { return Blanker(cpp).run(); }

std::vector<Token> tokens_of(std::string_view code) {
  std::vector<Token> tokens;
  std::size_t line = 1;
  bool line_start = true;
  for (std::size_t at = 0; at < code.size();) {
    char c = code[at];
    if (c == '\n') {
      ++line;
      line_start = true;
      ++at;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
    } else if (c == '#' && line_start) {
      at += line_at(code, at).size();
    } else {
      line_start = false;
      std::size_t size = 1;
      if (is_word(c)) {
        while (at + size < code.size() && is_word(code[at + size])) ++size;
      } else if (code.substr(at, 2) == "::" || code.substr(at, 2) == "->") {
        size = 2;
      }
      tokens.push_back({code.substr(at, size), line});
      at += size;
    }
  }
  return tokens;
}

std::vector<Include> includes_of(std::string_view cpp) {
  std::vector<Include> includes;
  std::size_t number = 0;
  for (std::size_t at = 0; at < cpp.size();) {
    std::string_view line = line_at(cpp, at);
    at += line.size() + 1;
    ++number;
    std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string_view::npos || line[hash] != '#') continue;
    std::size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string_view::npos || !line.substr(word).starts_with("include")) continue;
    std::size_t open = line.find_first_of("<\"", word);
    if (open == std::string_view::npos) continue;
    std::size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    if (close == std::string_view::npos) continue;
    includes.push_back(
        {std::string(line.substr(open + 1, close - open - 1)), line[open] == '"', number});
  }
  return includes;
}

bool is_cpp(std::string_view path) { return path.ends_with(".h") || path.ends_with(".cpp"); }
bool is_test(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  bool support =
      name.starts_with("test_") || name.ends_with("_testing.h") || name.ends_with("_for_test.h");
  return name.ends_with("_test.cpp") || (support && name.ends_with(".h"));
}
std::string_view directory_of(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string to_text(const Findings& findings) {
  std::string out;
  for (const Finding& f : findings) {
    out += cat(f.path, ":", f.line, ": ", f.rule, ": ", f.text, "\n");
  }
  return out;
}

}  // namespace narad::tidy
