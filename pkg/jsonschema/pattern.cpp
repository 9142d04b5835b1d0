#include "pkg/jsonschema/pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <vector>

#include "pkg/base/text.h"

namespace narad::jsonschema {
namespace {

// Instructions times bytes that the slow path may cost: some 40 ms on the machines of today.
constexpr std::size_t kSlowWorkMax = 8'000'000;
constexpr std::size_t kPatternBytesMax = 16 << 10;
constexpr std::size_t kSizeMax = 100'000;
// The memory that RE2 may use for a pattern: program and cached states, which it wants room for
// some dozens of. A few thousand states fit for an ordinary pattern.
constexpr std::int64_t kMemoryMax = 96 << 20;
std::int64_t memory_for(std::size_t size) {
  return (2 << 20) + static_cast<std::int64_t>(size) * 768;
}
// Several times the states that fit, so that texts which make one per byte are found out.
constexpr std::size_t kSampleBytes = 24 << 10;
// So few instructions have so few states that the cache holds them all.
constexpr std::size_t kSizeWithoutSample = 12;

// What RE2 reports of the search under way on this thread.
struct Search {
  bool cache_reset = false;
  bool slow_path = false;
};
thread_local Search search;

void watch_searches() {
  static const bool kWatching = [] {
    re2::hooks::SetDFAStateCacheResetHook(
        [](const re2::hooks::DFAStateCacheReset&) { search.cache_reset = true; });
    re2::hooks::SetDFASearchFailureHook(
        [](const re2::hooks::DFASearchFailure&) { search.slow_path = true; });
    return true;
  }();
  (void)kWatching;
}

std::optional<std::uint32_t> hex4(std::string_view s) {
  std::uint32_t v = 0;
  if (s.size() < 4) return std::nullopt;
  for (char c : s.substr(0, 4)) {
    const int d = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
    if (d < 0) return std::nullopt;
    v = v * 16 + static_cast<std::uint32_t>(d);
  }
  return v;
}

std::string code_point(std::uint32_t c) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string digits;
  for (int shift = 20; shift >= 0; shift -= 4) digits += kHex[(c >> shift) & 15];
  return cat("\\x{", digits, "}");
}

// At `\u`: appends RE2's spelling and answers how many characters of `s` it stands for; 0 if
// malformed.
std::size_t translate_unicode_escape(std::string& out, std::string_view s) {
  if (s.substr(2).starts_with("{")) {
    const std::size_t close = s.find('}');
    if (close == std::string_view::npos || close == 3) return 0;
    out += cat("\\x", s.substr(2, close - 1));
    return close + 1;
  }
  auto c = hex4(s.substr(2));
  if (!c) return 0;
  std::size_t used = 6;
  if (*c >= 0xD800 && *c < 0xE000) {
    const auto low = s.substr(6).starts_with("\\u") ? hex4(s.substr(8)) : std::nullopt;
    if (*c >= 0xDC00 || !low || *low < 0xDC00 || *low >= 0xE000) return 0;
    *c = 0x10000 + ((*c - 0xD800) << 10) + (*low - 0xDC00);
    used = 12;
  }
  out += code_point(*c);
  return used;
}

Result<std::string> translate(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    if (s.substr(i).starts_with("(?<") && i + 3 < s.size() && s[i + 3] != '=' && s[i + 3] != '!') {
      out += "(?P<";
      i += 3;
    } else if (s[i] != '\\' || i + 1 == s.size()) {
      out += s[i++];
    } else if (s[i + 1] == 'u') {
      const std::size_t used = translate_unicode_escape(out, s.substr(i));
      if (used == 0) return Error(Errc::invalid_argument, "malformed \\u escape");
      i += used;
    } else if (s[i + 1] == 'c' && i + 2 < s.size() && (s[i + 2] & 0x40) != 0) {
      out += code_point(static_cast<std::uint32_t>(s[i + 2] & 31));
      i += 3;
    } else {
      out += s.substr(i, 2);
      i += 2;
    }
  }
  return out;
}

// Always the same numbers: compiling is a pure function.
class Dice {
 public:
  std::size_t below(std::size_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % n;
  }

 private:
  std::uint64_t state_ = 0x9E3779B97F4A7C15;
};

// Characters that the pattern tells apart, as far as its text shows them.
std::vector<std::string> characters_of(std::string_view pattern) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view c) {
    for (const auto& have : out) {
      if (have == c) return;
    }
    out.emplace_back(c);
  };
  for (std::size_t i = 0; i < pattern.size();) {
    const auto c = static_cast<unsigned char>(pattern[i]);
    const std::size_t n = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    const std::string_view one = pattern.substr(i, n);
    i += n;
    if (one == "\\" && i < pattern.size()) {
      const char escaped = pattern[i++];
      switch (escaped) {
        case 'd':
          add("0");
          add("7");
          break;
        case 'w':
          add("a");
          add("Z");
          add("_");
          break;
        case 's':
          add(" ");
          add("\t");
          break;
        case 'p':
        case 'P':
          add("\u00e9");
          add("q");
          break;
        default:
          add(std::string(1, escaped));
      }
    } else if (one == "-" && i > 1 && i < pattern.size()) {
      // Perhaps a range: something from its middle.
      const char low = pattern[i - 2], high = pattern[i];
      if (low < high) add(std::string(1, static_cast<char>(low + (high - low) / 2)));
      add("-");
    } else if (one == ".") {
      add("~");
    } else {
      add(one);
    }
    if (out.size() >= 64) break;
  }
  add("a");
  add("0");
  return out;
}

std::vector<std::string> samples_for(std::string_view pattern, std::size_t bytes) {
  const auto all = characters_of(pattern);
  std::vector<std::string> words;
  for (const auto& c : all) {
    const bool word = c.size() > 1 || std::isalnum(static_cast<unsigned char>(c[0])) != 0;
    if (word) words.push_back(c);
  }
  const std::vector<std::string> first_two(words.begin(), words.begin() + 2);
  const std::vector<std::string> last_two(words.end() - 2, words.end());
  Dice dice;
  std::vector<std::string> out;
  for (const auto& from : {all, words, first_two, last_two}) {
    std::string text;
    while (text.size() < bytes) text += from[dice.below(from.size())];
    out.push_back(std::move(text));
  }
  std::string runs;
  while (runs.size() < bytes) {
    const std::string& c = words[dice.below(words.size())];
    for (std::size_t n = 1 + dice.below(100); n > 0; --n) runs += c;
  }
  out.push_back(std::move(runs));
  return out;
}

}  // namespace

struct Pattern::Impl {
  explicit Impl(const std::string& pattern, const RE2::Options& options) : re(pattern, options) {}
  std::size_t program_size() const {
    return static_cast<std::size_t>(std::max({re.ProgramSize(), re.ReverseProgramSize(), 1}));
  }

  RE2 re;
  std::size_t size = 0;
  std::atomic<bool> slow{false};  // seen on the slow path
};

Pattern::Pattern(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;
std::size_t Pattern::memory() const { return static_cast<std::size_t>(memory_for(impl_->size)); }

Result<Pattern> Pattern::compile(std::string_view text) {
  watch_searches();
  if (text.size() > kPatternBytesMax) {
    return Error(Errc::invalid_argument,
                 cat("a pattern of ", text.size(), " bytes; at most ", kPatternBytesMax));
  }
  NARAD_TRY(const std::string spelled, translate(text));
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(kMemoryMax);
  auto impl = std::make_unique<Impl>(spelled, options);
  if (!impl->re.ok()) {
    return Error(Errc::invalid_argument, cat("pattern ", std::string(text.substr(0, 200)),
                                             " is not one RE2 accepts: ", impl->re.error()));
  }
  const std::size_t size = impl->program_size();
  if (size > kSizeMax) {
    return Error(Errc::invalid_argument, cat("pattern ", std::string(text.substr(0, 200)),
                                             " is too large for matching in linear time"));
  }
  options.set_max_mem(memory_for(size));
  impl = std::make_unique<Impl>(spelled, options);
  impl->size = size;
  if (size > kSizeWithoutSample) {
    const std::size_t bytes = std::min(kSampleBytes, kSlowWorkMax / size);
    for (const std::string& sample : samples_for(text, bytes)) {
      search = {};
      (void)RE2::PartialMatch(sample, impl->re);
      if (!search.cache_reset && !search.slow_path) continue;
      return Error(Errc::invalid_argument, cat("pattern ", std::string(text.substr(0, 200)),
                                               " has too many states for matching in linear time"));
    }
  }
  return Pattern(std::move(impl));
}

std::optional<bool> Pattern::found_in(std::string_view text) const {
  Impl& me = *impl_;
  const std::size_t fits = kSlowWorkMax / me.size;
  if (text.size() > fits) {
    if (me.slow.load(std::memory_order_relaxed)) return std::nullopt;
    // A taste of both ends, since RE2 may begin at either, costs little on whichever path.
    search = {};
    (void)RE2::PartialMatch(text.substr(0, fits), me.re);
    (void)RE2::PartialMatch(text.substr(text.size() - fits), me.re);
    if (search.slow_path) {
      me.slow.store(true, std::memory_order_relaxed);
      return std::nullopt;
    }
  }
  search = {};
  const bool found = RE2::PartialMatch(text, me.re);
  if (search.slow_path && text.size() > fits) me.slow.store(true, std::memory_order_relaxed);
  return found;
}

}  // namespace narad::jsonschema
