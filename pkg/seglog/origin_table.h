#pragma once
// The origin table of one partition: per ingress WAL epoch, the highest sequence whose record is
// committed here (docs/internals/partition-log.md, "Opening"). Pure.
//
// It is a function of the log: control frames set it, later frames advance it. It advances together
// with the high watermark and never before. Rerouted frames and origin 0 never touch it.
#include <map>
#include <vector>

#include "pkg/seglog/control.h"

namespace narad::seglog {

class OriginTable {
 public:
  OriginTable() = default;
  explicit OriginTable(const std::vector<OriginEntry>& entries) { reset(entries); }
  void reset(const std::vector<OriginEntry>& entries);

  // Whether the record (origin, sequence) is committed. Never for origin 0.
  bool known(OriginId origin, Sequence sequence) const;
  // Counts as a use of the entry: it is dropped later than the ones that nobody asks about.
  void touch(OriginId origin);

  // A frame became part of the log. A new origin drops the entries that are 7 days older than the
  // newest commit, and those past the 1,024 most recently used.
  void advance(OriginId origin, Sequence last_sequence, UnixMillis commit_time);
  // The same from a frame's header; frames that do not count are ignored.
  void advance(const FrameHeader& header);

  std::size_t size() const { return entries_.size(); }
  std::vector<OriginEntry> entries() const;  // by ascending origin
  std::uint64_t dropped() const { return dropped_; }
  void check_invariants() const;

 private:
  struct Entry {
    Sequence last_sequence{0};
    UnixMillis last_commit{0};
    std::uint64_t used = 0;  // tick of the last use
  };
  void prune(OriginId keep);
  std::map<OriginId, Entry> entries_;
  UnixMillis newest_{0};
  std::uint64_t tick_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace narad::seglog
