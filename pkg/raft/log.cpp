#include "pkg/raft/log.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad::raft {

std::optional<Term> Log::term_at(Index index) const {
  if (index < base_ || index > last()) return std::nullopt;
  if (index == base_) return base_term_;
  return entries_[index.minus(base_) - 1].term;
}

bool Log::is_up_to_date(Index index, Term term) const {
  return term > last_term() || (term == last_term() && index >= last());
}

Index Log::last_at_or_below(Index index, Term term) const {
  Index at = std::min(index, last());
  while (at > base_ && *term_at(at) > term) at = before(at);
  return std::max(at, base_);
}

const Entry& Log::at(Index index) const {
  NARAD_ASSERT(index > base_ && index <= last(), "the log holds the entry");
  return entries_[index.minus(base_) - 1];
}

std::vector<Entry> Log::slice(Index from, Index through, std::uint64_t bytes_max) const {
  std::vector<Entry> out;
  std::uint64_t bytes = 0;
  for (Index i = from; i <= std::min(through, last()); i = i.next()) {
    const Entry& e = at(i);
    bytes += e.bytes();
    if (!out.empty() && bytes > bytes_max) break;
    out.push_back(e);
  }
  return out;
}

void Log::append(Entry entry) {
  NARAD_ASSERT(entry.index == last().next(), "the log has no holes");
  NARAD_ASSERT(entry.term >= last_term(), "terms never fall along the log");
  bytes_ += entry.bytes();
  entries_.push_back(std::move(entry));
}

void Log::truncate_from(Index from) {
  NARAD_ASSERT(from > base_, "what is compacted cannot be truncated");
  while (last() >= from) {
    bytes_ -= entries_.back().bytes();
    entries_.pop_back();
  }
  stable_ = std::min(stable_, last());
}

void Log::set_stable(Index index) {
  NARAD_ASSERT(index <= last(), "only what the log holds is stable");
  stable_ = std::max(stable_, index);
}

void Log::compact(Index index) {
  if (index <= base_) return;
  NARAD_ASSERT(index <= stable_, "only durable entries are compacted");
  Term term = *term_at(index);
  while (base_ < index) {
    bytes_ -= entries_.front().bytes();
    entries_.pop_front();
    base_ = base_.next();
  }
  base_term_ = term;
}

void Log::reset(Index index, Term term) {
  entries_.clear();
  bytes_ = 0;
  base_ = index;
  base_term_ = term;
  stable_ = index;
}

}  // namespace narad::raft
