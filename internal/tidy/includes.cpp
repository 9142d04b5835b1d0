#include <algorithm>
#include <set>

#include "internal/tidy/tidy.h"
#include "pkg/base/text.h"

namespace narad::tidy {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\r')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(by), text.size());
    std::string_view part = trim(text.substr(0, end));
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

using Names = std::set<std::string, std::less<>>;

// `start` and all that they link in turn: links are public.
Names reachable(const LinkGraph& graph, std::vector<std::string> start) {
  Names seen;
  while (!start.empty()) {
    std::string name = std::move(start.back());
    start.pop_back();
    if (!seen.insert(name).second) continue;
    auto at = graph.directories.find(name);
    if (at == graph.directories.end()) continue;
    start.insert(start.end(), at->second.deps.begin(), at->second.deps.end());
  }
  return seen;
}

bool is_project(std::string_view target) {
  return target.starts_with("pkg/") || target.starts_with("internal/") ||
         target.starts_with("cmd/");
}
bool is_extra(std::string_view path) {  // linked with the test dependencies as well
  return is_test(path) || path.ends_with("_fuzz.cpp") || path.ends_with("_bench.cpp");
}

// What no link graph can allow.
std::string_view forbidden_pair(std::string_view path, std::string_view target) {
  bool from_cmd = path.starts_with("cmd/");
  if (target.starts_with("cmd/") && !from_cmd) return "nothing includes cmd/";
  if (path.starts_with("pkg/") && target.starts_with("internal/")) {
    return "pkg/ knows nothing of the broker";
  }
  if (is_test(target) && !is_extra(path)) return "only tests include that";
  if (from_cmd || is_test(path)) return {};
  bool sim_sees_real = path.starts_with("pkg/sim/") && target.starts_with("pkg/env/real/");
  bool real_sees_sim = path.starts_with("pkg/env/real/") && target.starts_with("pkg/sim/");
  if (sim_sees_real || real_sees_sim) return "pkg/sim and pkg/env/real meet only in cmd/ and tests";
  return {};
}

// A core may not include these, directly or through a header of the project.
constexpr std::string_view kNotInCores[] = {
    "boost/asio",         "boost/beast",     "sqlite3.h",       "pkg/async/",
    "pkg/sqlite/",        "pkg/env/env.h",   "pkg/env/fs.h",    "pkg/env/net.h",
    "pkg/env/timers.h",   "pkg/env/real/",   "pkg/env/clock.h", "pkg/env/blocking.h",
    "pkg/env/handlers.h", "pkg/env/random.h"};

using Index = std::map<std::string, const SourceFile*, std::less<>>;

class CoreWalk {
 public:
  CoreWalk(const Index& index, const SourceFile& core, Findings& out)
      : index_(index), core_(core), out_(out) {}
  // Looks at `file`, reached over the include on `line` of the core.
  void visit(const SourceFile& file, std::size_t line) {
    if (!seen_.insert(file.path).second) return;
    for (const Include& include : includes_of(file.text)) {
      std::size_t at = &file == &core_ ? include.line : line;
      for (std::string_view bad : kNotInCores) {
        if (!include.target.starts_with(bad)) continue;
        out_.push_back({core_.path, at, "core",
                        cat("a core includes ", include.target,
                            &file == &core_ ? "" : cat(" through ", file.path),
                            "; cores decide, runners wait and store")});
      }
      auto next = index_.find(include.target);
      if (include.quoted && next != index_.end()) visit(*next->second, at);
    }
  }

 private:
  const Index& index_;
  const SourceFile& core_;
  Findings& out_;
  Names seen_;
};

}  // namespace

LinkGraph parse_link_graph(std::string_view text) {
  LinkGraph graph;
  for (const std::string& line : split(text, '\n')) {
    std::size_t colon = line.find(':');
    std::size_t bar = line.find('|');
    if (colon == std::string::npos || bar == std::string::npos || bar < colon) continue;
    std::string_view view = line;
    graph.directories[line.substr(0, colon)] = {split(view.substr(colon + 1, bar - colon - 1), ';'),
                                                split(view.substr(bar + 1), ';')};
  }
  return graph;
}

Findings check_includes(const Tree& tree, const LinkGraph& graph) {
  Findings out;
  for (const SourceFile& file : tree) {
    if (!is_cpp(file.path)) continue;
    std::string own(directory_of(file.path));
    auto at = graph.directories.find(own);
    if (at == graph.directories.end()) continue;  // not part of the build
    std::vector<std::string> start = {own};
    if (is_extra(file.path)) {
      start.insert(start.end(), at->second.test_deps.begin(), at->second.test_deps.end());
    }
    Names linked = reachable(graph, start);
    for (const Include& include : includes_of(file.text)) {
      if (!include.quoted) {
        if (is_project(include.target)) {
          out.push_back({file.path, include.line, "include", "project files go in quotes"});
        }
        continue;
      }
      if (include.target.starts_with("gtest/") || include.target.starts_with("gmock/")) continue;
      if (!is_project(include.target)) {
        out.push_back({file.path, include.line, "include",
                       cat(include.target, ": name files from the root of the repository")});
        continue;
      }
      std::string_view pair = forbidden_pair(file.path, include.target);
      if (!pair.empty()) {
        out.push_back({file.path, include.line, "include", cat(include.target, ": ", pair)});
      } else if (std::string to(directory_of(include.target)); !linked.contains(to)) {
        out.push_back({file.path, include.line, "include",
                       cat(include.target, ": ", own, " does not link ", to,
                           " (DEPS of its CMakeLists.txt)")});
      }
    }
  }
  return out;
}

Findings check_cores(const Tree& tree, std::string_view cores) {
  Findings out;
  Index index;
  for (const SourceFile& file : tree) index.emplace(file.path, &file);
  for (const std::string& line : split(cores, '\n')) {
    if (line.starts_with('#')) continue;
    bool prefix = line.ends_with('*');
    std::string_view name = std::string_view(line).substr(0, line.size() - (prefix ? 1 : 0));
    bool found = false;
    for (const SourceFile& file : tree) {
      bool hit = prefix ? file.path.starts_with(name) : file.path == name;
      if (!hit || !is_cpp(file.path)) continue;
      found = true;
      if (is_extra(file.path)) continue;
      CoreWalk(index, file, out).visit(file, 0);
    }
    if (!found) out.push_back({line, 0, "core", "listed as a core, but there is no such file"});
  }
  return out;
}

}  // namespace narad::tidy
