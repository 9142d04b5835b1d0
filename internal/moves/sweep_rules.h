#pragma once
// What becomes of a copy of a partition on a node that does not own it (SWP-2 to SWP-9, G49, G50;
// moves.md, "Sweep, quarantine, salvage"). Pure.
//
// A copy is deleted only if the owner, asked after this node lost the partition, shows that it has
// everything of it that is still wanted: it took its records from this very node in its last move,
// and neither has anything gone missing there since, nor does the copy go on past what was handed
// over. In every other case it is kept, in quarantine.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "internal/wire/move_messages.h"

namespace narad::moves {

struct LocalSegment {
  Offset base{0};
  std::uint64_t bytes = 0;
  bool sealed = false;
  UnixMillis mtime{0};
  friend bool operator==(const LocalSegment&, const LocalSegment&) = default;
};

// A partition directory, read without changing it (local_copy.h).
struct LocalCopy {
  std::optional<LogId> log;            // nothing: no file of it says which log it is
  std::vector<LocalSegment> segments;  // ascending base, the last one is not sealed
  Offset end{0};                       // what recovery would go on from
  bool empty_directory = false;        // not a single file in it
};

struct SweepTerms {
  std::string self;
  UnixMillis now{0};
  std::int64_t retention_ms = 0;  // of the topic; 0: for ever
  bool clock_trusted = false;     // if not, nothing counts as expired
};

enum class SweepVerdict : std::uint8_t {
  reclaim,     // proven: everything in it that is wanted is at the owner
  quarantine,  // kept aside, for an operator
  defer,       // cannot be told now: ask again later
};
struct Judgement {
  SweepVerdict verdict = SweepVerdict::defer;
  std::string why;
  friend bool operator==(const Judgement&, const Judgement&) = default;
};

// `owner` is what the present owner has listed. REQUIRES: it is of the same incarnation.
Judgement judge_stale_copy(const LocalCopy& copy, const wire::Listing& owner,
                           const SweepTerms& terms);

// Of a partition that nobody has used yet, as the metastore has it: no record of it was ever
// acknowledged, so there is no owner to ask. What holds no record goes, anything else is kept.
Judgement judge_unused_copy(const LocalCopy& copy);

// Whether it holds a record that retention keeps.
bool holds_wanted_records(const LocalCopy& copy, const SweepTerms& terms);

}  // namespace narad::moves
