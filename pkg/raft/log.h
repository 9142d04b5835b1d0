#pragma once
// The replica's log in memory: everything after a base position that compaction has moved up.
// Metadata logs are small; the owner bounds this one by compacting (Core::compact).
//
// `stable` is the highest entry known durable; the core raises it, truncation lowers it.
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "pkg/raft/types.h"

namespace narad::raft {

class Log {
 public:
  Log(Index base, Term base_term) : base_(base), base_term_(base_term), stable_(base) {}

  Index base() const { return base_; }
  Term base_term() const { return base_term_; }
  Index first() const { return base_.next(); }
  Index last() const { return base_.plus(entries_.size()); }
  Term last_term() const { return entries_.empty() ? base_term_ : entries_.back().term; }
  Index stable() const { return stable_; }
  std::uint64_t bytes() const { return bytes_; }

  // The term at `index`, known from base() to last().
  std::optional<Term> term_at(Index index) const;
  bool matches(Index index, Term term) const { return term_at(index) == term; }
  // A log ending in (term, index) holds at least what this one holds (Raft paper 5.4.1).
  bool is_up_to_date(Index index, Term term) const;
  // The highest position at or below `index` whose term is at most `term`: where two logs may first
  // agree. base() if there is none above it.
  Index last_at_or_below(Index index, Term term) const;

  // REQUIRES: first() <= index <= last().
  const Entry& at(Index index) const;
  // Entries from `from` on to at most `through`: as many as fit in `bytes_max`, at least one.
  std::vector<Entry> slice(Index from, Index through, std::uint64_t bytes_max) const;

  // REQUIRES: entry.index == last() + 1, its term not below last_term().
  void append(Entry entry);
  // Removes entries at and above `from`. REQUIRES: from > base().
  void truncate_from(Index from);
  void set_stable(Index index);
  // Forgets entries at and below `index`. REQUIRES: index <= stable().
  void compact(Index index);
  // Starts afresh after (index, term), as after a snapshot.
  void reset(Index index, Term term);

 private:
  std::deque<Entry> entries_;
  Index base_;
  Term base_term_;
  Index stable_;
  std::uint64_t bytes_ = 0;
};

}  // namespace narad::raft
