#pragma once
// Regular expressions in linear time: RE2's syntax, and of ECMA-262 what RE2 lacks and can express
// (\uXXXX, \u{…}, \cX, (?<name>…)). Look-around and back-references are refused, as is a pattern
// whose automaton outgrows its cache on a sample of texts made for it: matching would fall back to
// a slow path. A pattern that slips through is found out when it does, and from then on answers
// only for texts short enough for that path.
//
// Thread-safe. pattern.cpp is the only file that includes RE2.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/result.h"

namespace narad::jsonschema {

class Pattern {
 public:
  static Result<Pattern> compile(std::string_view text);
  Pattern(Pattern&&) noexcept;
  ~Pattern();

  // Whether the pattern occurs anywhere in the UTF-8 `text`; nothing if that would take too long.
  std::optional<bool> found_in(std::string_view text) const;
  // Bytes that it may come to use, for limits on the sum.
  std::size_t memory() const;

 private:
  struct Impl;
  explicit Pattern(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::jsonschema
