#include "pkg/seglog/origin_table.h"

#include <algorithm>
#include <tuple>

#include "pkg/base/assert.h"

namespace narad::seglog {

void OriginTable::reset(const std::vector<OriginEntry>& entries) {
  entries_.clear();
  tick_ = 0;
  // Recency across a restart is by commit time; of equal ones the smaller origin goes first.
  std::vector<OriginEntry> by_time = entries;
  std::sort(by_time.begin(), by_time.end(), [](const OriginEntry& a, const OriginEntry& b) {
    return std::tie(a.last_commit, a.origin) < std::tie(b.last_commit, b.origin);
  });
  for (const OriginEntry& e : by_time) {
    entries_[e.origin] = Entry{e.last_sequence, e.last_commit, ++tick_};
    newest_ = std::max(newest_, e.last_commit);
  }
}

bool OriginTable::known(OriginId origin, Sequence sequence) const {
  if (origin == OriginId(0)) return false;
  const auto it = entries_.find(origin);
  return it != entries_.end() && sequence <= it->second.last_sequence;
}

void OriginTable::touch(OriginId origin) {
  if (const auto it = entries_.find(origin); it != entries_.end()) it->second.used = ++tick_;
}

void OriginTable::advance(OriginId origin, Sequence last_sequence, UnixMillis commit_time) {
  newest_ = std::max(newest_, commit_time);
  if (origin == OriginId(0)) return;
  const bool fresh = !entries_.contains(origin);
  Entry& entry = entries_[origin];
  entry.last_sequence = std::max(entry.last_sequence, last_sequence);
  entry.last_commit = std::max(entry.last_commit, commit_time);
  entry.used = ++tick_;
  if (fresh) prune(origin);
}

void OriginTable::advance(const FrameHeader& header) {
  if (header.is_control()) return;
  advance(header.is_rerouted() ? OriginId(0) : header.origin, header.last_sequence,
          header.commit_time);
}

void OriginTable::prune(OriginId keep) {
  const std::size_t before = entries_.size();
  std::erase_if(entries_, [&](const auto& e) {
    return e.first != keep && newest_.value() - e.second.last_commit.value() > kOriginMillisMax;
  });
  while (entries_.size() > kOriginsMax) {
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  dropped_ += before - entries_.size();
}

std::vector<OriginEntry> OriginTable::entries() const {
  std::vector<OriginEntry> out;
  out.reserve(entries_.size());
  for (const auto& [origin, e] : entries_) out.push_back({origin, e.last_sequence, e.last_commit});
  return out;
}

void OriginTable::check_invariants() const {
  NARAD_ASSERT(entries_.size() <= kOriginsMax);
  NARAD_ASSERT(!entries_.contains(OriginId(0)));
  for (const auto& [origin, e] : entries_) {
    NARAD_ASSERT(e.used <= tick_);
    NARAD_ASSERT(e.last_commit <= newest_);
  }
}

}  // namespace narad::seglog
