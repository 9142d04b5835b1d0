#include <array>
#include <optional>
#include <span>

#include "internal/tidy/tidy.h"
#include "pkg/base/text.h"

namespace narad::tidy {
namespace {

// How a name is recognised.
enum class Match {
  word,    // the identifier anywhere
  scoped,  // only behind std:: or boost:: ... (any scope), since the bare word is common
  call,    // called as a free function, unqualified, or through std:: or the global scope
  global,  // ::name( only: the bare word is a method of ours
  prefix,  // an identifier that begins so
};
struct Forbidden {
  std::string_view name;
  Match match;
  std::string_view instead;
};

constexpr std::string_view kClock = "use Env::clock (pkg/env/clock.h)";
constexpr std::string_view kTimers = "use Env::timers, sleep_for or with_timeout";
constexpr std::string_view kRandom = "use Env::random (pkg/env/random.h)";
constexpr std::string_view kFiles = "use Env::fs (pkg/env/fs.h)";
constexpr std::string_view kNet = "use Env::net (pkg/env/net.h)";
constexpr std::string_view kThreads = "use blocking() or a TaskGroup; objects live on one loop";
constexpr std::string_view kProcess = "use Env::process, or settings passed in by cmd/";
constexpr std::string_view kGroup = "spawn in a TaskGroup";

constexpr Forbidden kForbidden[] = {
    {"system_clock", Match::word, kClock},
    {"steady_clock", Match::word, kClock},
    {"high_resolution_clock", Match::word, kClock},
    {"clock_gettime", Match::word, kClock},
    {"gettimeofday", Match::word, kClock},
    {"time", Match::call, kClock},
    {"clock", Match::global, kClock},
    {"this_thread", Match::word, kTimers},
    {"sleep", Match::call, kTimers},
    {"usleep", Match::word, kTimers},
    {"nanosleep", Match::word, kTimers},
    {"steady_timer", Match::word, kTimers},
    {"system_timer", Match::word, kTimers},
    {"high_resolution_timer", Match::word, kTimers},
    {"deadline_timer", Match::word, kTimers},
    {"basic_waitable_timer", Match::word, kTimers},
    {"tcp_stream", Match::word, kNet},
    {"random_device", Match::word, kRandom},
    {"rand", Match::call, kRandom},
    {"srand", Match::call, kRandom},
    {"getrandom", Match::word, kRandom},
    {"getentropy", Match::word, kRandom},
    {"getenv", Match::word, kProcess},
    {"secure_getenv", Match::word, kProcess},
    {"setenv", Match::word, kProcess},
    {"fork", Match::call, kProcess},
    {"popen", Match::word, kProcess},
    {"execve", Match::word, kProcess},
    {"posix_spawn", Match::word, kProcess},
    {"system", Match::global, kProcess},
    {"exit", Match::call, kProcess},
    {"_exit", Match::word, kProcess},
    {"quick_exit", Match::word, kProcess},
    {"signal_set", Match::word, kProcess},
    {"sigaction", Match::word, kProcess},
    {"getpw", Match::prefix, kProcess},
    {"getgr", Match::prefix, kProcess},
    {"fopen", Match::word, kFiles},
    {"freopen", Match::word, kFiles},
    {"fdopen", Match::word, kFiles},
    {"tmpfile", Match::word, kFiles},
    {"mkstemp", Match::word, kFiles},
    {"mkdtemp", Match::word, kFiles},
    {"opendir", Match::word, kFiles},
    {"fstream", Match::word, kFiles},
    {"ifstream", Match::word, kFiles},
    {"ofstream", Match::word, kFiles},
    {"filesystem", Match::scoped, kFiles},
    {"stream_file", Match::word, kFiles},
    {"random_access_file", Match::word, kFiles},
    {"open", Match::global, kFiles},
    {"openat", Match::call, kFiles},
    {"read", Match::global, kFiles},
    {"write", Match::global, kFiles},
    {"close", Match::global, kFiles},
    {"rename", Match::global, kFiles},
    {"unlink", Match::call, kFiles},
    {"mkdir", Match::global, kFiles},
    {"rmdir", Match::global, kFiles},
    {"stat", Match::global, kFiles},
    {"fsync", Match::call, kFiles},
    {"fdatasync", Match::call, kFiles},
    {"mmap", Match::call, kFiles},
    {"socket", Match::scoped, kNet},
    {"socket", Match::global, kNet},
    {"acceptor", Match::scoped, kNet},
    {"resolver", Match::scoped, kNet},
    {"getaddrinfo", Match::word, kNet},
    {"gethostbyname", Match::word, kNet},
    {"gethostname", Match::word, kNet},
    {"connect", Match::global, kNet},
    {"bind", Match::global, kNet},
    {"listen", Match::global, kNet},
    {"thread", Match::scoped, kThreads},
    {"jthread", Match::word, kThreads},
    {"mutex", Match::scoped, kThreads},
    {"shared_mutex", Match::word, kThreads},
    {"recursive_mutex", Match::word, kThreads},
    {"timed_mutex", Match::word, kThreads},
    {"condition_variable", Match::word, kThreads},
    {"lock_guard", Match::word, kThreads},
    {"unique_lock", Match::word, kThreads},
    {"scoped_lock", Match::word, kThreads},
    {"call_once", Match::word, kThreads},
    {"async", Match::scoped, kThreads},
    {"packaged_task", Match::word, kThreads},
    {"counting_semaphore", Match::word, kThreads},
    {"binary_semaphore", Match::word, kThreads},
    {"latch", Match::scoped, kThreads},
    {"barrier", Match::scoped, kThreads},
    {"thread_pool", Match::word, kThreads},
    {"pthread_", Match::prefix, kThreads},
    {"detached", Match::word, kGroup},
    {"co_spawn", Match::word, kGroup},
};

// Headers that only serve what is forbidden.
constexpr Forbidden kForbiddenHeaders[] = {
    {"fstream", Match::word, kFiles},
    {"filesystem", Match::word, kFiles},
    {"fcntl.h", Match::word, kFiles},
    {"unistd.h", Match::word, kFiles},
    {"dirent.h", Match::word, kFiles},
    {"sys/", Match::prefix, kFiles},
    {"thread", Match::word, kThreads},
    {"mutex", Match::word, kThreads},
    {"shared_mutex", Match::word, kThreads},
    {"condition_variable", Match::word, kThreads},
    {"future", Match::word, kThreads},
    {"semaphore", Match::word, kThreads},
    {"latch", Match::word, kThreads},
    {"barrier", Match::word, kThreads},
    {"pthread.h", Match::word, kThreads},
    {"random", Match::word, kRandom},
    {"ctime", Match::word, kClock},
    {"time.h", Match::word, kClock},
    {"csignal", Match::word, kProcess},
    {"signal.h", Match::word, kProcess},
    {"netdb.h", Match::word, kNet},
    {"pwd.h", Match::word, kProcess},
    {"grp.h", Match::word, kProcess},
    {"netinet/", Match::prefix, kNet},
    {"arpa/", Match::prefix, kNet},
    {"boost/asio/ip/", Match::prefix, kNet},
    {"boost/asio/steady_timer.hpp", Match::word, kTimers},
    {"boost/asio/detached.hpp", Match::word, kGroup},
    {"boost/asio/signal_set.hpp", Match::word, kProcess},
    {"boost/asio/thread_pool.hpp", Match::word, kThreads},
    {"boost/beast/core/tcp_stream.hpp", Match::word, kNet},
    {"boost/beast/core.hpp", Match::word, kNet},
    {"boost/beast.hpp", Match::word, kNet},
    {"boost/asio.hpp", Match::word, kNet},
};

// The few places that may use one forbidden name, each with its reason.
struct Allowed {
  std::string_view path;  // a file, or a directory with '/' at its end
  std::string_view name;
};
constexpr Allowed kAllowed[] = {
    // TaskGroup is what the rest of the code spawns through.
    {"pkg/async/task_group.cpp", "detached"},
    {"pkg/async/task_group.cpp", "co_spawn"},
    {"pkg/async/task_group.cpp", "boost/asio/detached.hpp"},
    // A time-out is a race of two tasks.
    {"pkg/async/timeout.cpp", "co_spawn"},
    // Races two tasks and awaits both: nothing runs on its own.
    {"pkg/http/session.cpp", "co_spawn"},
    // The simulator starts the root task of a node itself.
    {"pkg/sim/", "co_spawn"},
    // The rules read the source tree itself.
    {"internal/tidy/tree_test.cpp", "filesystem"},
    {"internal/tidy/tree_test.cpp", "ifstream"},
    {"internal/tidy/tree_test.cpp", "fstream"},
    {"internal/tidy/tree_test.cpp", "getenv"},
};
// Allowed in every x_test.cpp and x_bench.cpp: reading and rewriting testdata, starting a root
// task.
constexpr std::string_view kAllowedInTests[] = {
    "co_spawn",   "ifstream", "ofstream", "fstream",
    "filesystem", "getenv",   "detached", "boost/asio/detached.hpp"};
constexpr std::string_view kAllowedInBenches[] = {"steady_clock"};

bool is_outside(std::string_view path) {
  return path.starts_with("pkg/env/real/") || path.starts_with("cmd/");
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  for (std::string_view n : names) {
    if (n == name) return true;
  }
  return false;
}

bool is_allowed(std::string_view path, std::string_view name) {
  bool bench = path.ends_with("_bench.cpp");
  if ((is_test(path) || bench) && contains(kAllowedInTests, name)) return true;
  if (bench && contains(kAllowedInBenches, name)) return true;
  for (const Allowed& a : kAllowed) {
    bool here = a.path.ends_with('/') ? path.starts_with(a.path) : path == a.path;
    if (here && a.name == name) return true;
  }
  return false;
}

bool is_identifier(std::string_view token) {
  char c = token.empty() ? ' ' : token[0];
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Words behind which a name begins an expression, not a declaration.
bool begins_expression(std::string_view token) {
  constexpr std::array<std::string_view, 6> kWords = {"return",   "co_return", "co_await",
                                                      "co_yield", "else",      "do"};
  return contains(kWords, token);
}

// Where token `i` stands: what comes before and after it.
struct Place {
  std::string_view before;  // the token before
  std::string_view scope;   // the token before a "::" in front, or empty
  bool global = false;      // a "::" in front with no name before it
  bool called = false;      // "(" follows
};
Place place_of(const std::vector<Token>& tokens, std::size_t i) {
  Place p;
  p.before = i > 0 ? tokens[i - 1].text : std::string_view();
  if (p.before == "::") {
    std::string_view left = i > 1 ? tokens[i - 2].text : std::string_view();
    p.global = !(is_identifier(left) && !begins_expression(left)) && left != ">";
    if (!p.global) p.scope = left;
  }
  p.called = i + 1 < tokens.size() && tokens[i + 1].text == "(";
  return p;
}

bool matches(const Forbidden& f, std::string_view token, const Place& p) {
  if (f.match == Match::prefix) return token.starts_with(f.name);
  if (token != f.name) return false;
  switch (f.match) {
    case Match::scoped:
      return p.scope == "std" || p.scope == "boost" || p.scope == "tcp" || p.scope == "udp" ||
             p.scope == "asio";
    case Match::global:
      return p.global && p.called;
    case Match::call: {
      if (!p.called) return false;
      if (p.before == "::") return p.global || p.scope == "std";
      bool declared = (is_identifier(p.before) && !begins_expression(p.before)) ||
                      p.before == ">" || p.before == "*" || p.before == "&" || p.before == "~";
      return !declared && p.before != "." && p.before != "->";
    }
    default:
      return true;
  }
}

void check_tokens(const SourceFile& file, Findings& out) {
  std::string code = code_only(file.text);
  std::vector<Token> tokens = tokens_of(code);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!is_identifier(tokens[i].text)) continue;
    Place place = place_of(tokens, i);
    for (const Forbidden& f : kForbidden) {
      if (!matches(f, tokens[i].text, place) || is_allowed(file.path, f.name)) continue;
      out.push_back({file.path, tokens[i].line, "door", cat(tokens[i].text, ": ", f.instead)});
      break;
    }
  }
}

void check_headers(const SourceFile& file, Findings& out) {
  for (const Include& include : includes_of(file.text)) {
    if (include.quoted) continue;
    for (const Forbidden& f : kForbiddenHeaders) {
      bool hit = f.match == Match::prefix ? std::string_view(include.target).starts_with(f.name)
                                          : include.target == f.name;
      if (!hit || is_allowed(file.path, f.name)) continue;
      out.push_back({file.path, include.line, "door", cat("<", include.target, ">: ", f.instead)});
    }
  }
}

}  // namespace

Findings check_doors(const Tree& tree) {
  Findings out;
  for (const SourceFile& file : tree) {
    if (!is_cpp(file.path) || is_outside(file.path)) continue;
    check_headers(file, out);
    check_tokens(file, out);
  }
  return out;
}

}  // namespace narad::tidy
