#pragma once
// What a check found, for people and for programs. Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/error.h"

namespace narad::fsck {

// Result bits, as fsck(8) has them: the exit status of `narad fsck` is these ORed.
inline constexpr int kClean = 0;
inline constexpr int kProblems = 4;   // left on the disk
inline constexpr int kUnchecked = 8;  // something could not be checked: never "clean"
inline constexpr int kUsage = 16;

// [from, to).
struct Span {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

enum class Kind : std::uint8_t {
  note,       // worth knowing, nothing is wrong (a tail that the next start cuts off)
  problem,    // damaged, missing or contradictory
  unchecked,  // could not be looked at, so nothing is known about it
};
std::string_view to_string(Kind kind);

struct Finding {
  Finding(Kind k, std::string w, std::string t)
      : kind(k), where(std::move(w)), what(std::move(t)) {}

  Kind kind;
  std::string where;              // a path
  std::string what;               // a sentence without its full stop
  std::string remedy;             // what can be done; may be empty
  std::optional<Span> bytes;      // of the file `where`
  std::optional<Span> offsets;    // of the partition
  std::optional<Span> sequences;  // of the ingress WAL
};

struct Counters {
  std::uint64_t files = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t topics = 0;
  std::uint64_t partitions = 0;
  std::uint64_t segments = 0;  // of partitions
  std::uint64_t wal_segments = 0;
  std::uint64_t wal_records = 0;          // intact
  std::uint64_t wal_records_pending = 0;  // of those, not handed over yet
};

class Report {
 public:
  // Answers the finding, to add spans and a remedy to; valid until the next is added.
  Finding& note(std::string where, std::string what);
  Finding& problem(std::string where, std::string what);
  // `where` could not be checked because of `error`.
  Finding& unchecked(std::string where, std::string what);
  Finding& unchecked(std::string where, const Error& error);

  Counters counters;
  const std::vector<Finding>& findings() const { return findings_; }
  std::size_t count(Kind kind) const;
  // The bits above.
  int result() const;

  // One paragraph a finding, in the order found, and a summary that ends with the verdict.
  std::string text() const;
  // One document on one line (no line break behind it), version 1 (docs: cli-and-operators):
  // {"version", "result", "clean", "findings":
  // [{"kind", "where", "what", "remedy"?, "bytes"?, "offsets"?, "sequences"?}], "checked": {…}};
  // spans are {"from", "to"}, the end not included.
  std::string json() const;

 private:
  Finding& add(Kind kind, std::string where, std::string what);
  std::vector<Finding> findings_;
};

}  // namespace narad::fsck
