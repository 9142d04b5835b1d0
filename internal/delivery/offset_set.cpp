#include "internal/delivery/offset_set.h"

#include <iterator>

#include "pkg/base/assert.h"

namespace narad::delivery {

Offset OffsetSet::run_end(Offset at) const {
  auto it = runs_.upper_bound(at);
  if (it == runs_.begin()) return at;
  --it;
  return it->second > at ? it->second : at;
}

std::uint64_t OffsetSet::count_in(OffsetRun range) const {
  std::uint64_t count = 0;
  auto it = runs_.upper_bound(range.begin);
  if (it != runs_.begin()) --it;
  for (; it != runs_.end() && it->first < range.end; ++it) {
    const Offset begin = std::max(it->first, range.begin);
    const Offset end = std::min(it->second, range.end);
    if (begin < end) count += end.minus(begin);
  }
  return count;
}

std::uint64_t OffsetSet::insert(OffsetRun range) {
  NARAD_ASSERT(range.begin < range.end);
  auto next = runs_.upper_bound(range.begin);
  std::uint64_t held = 0;  // offsets of the merged run that were in the set before
  auto at = next;
  if (next != runs_.begin()) {
    auto before = std::prev(next);
    if (before->second >= range.end) return 0;
    if (before->second >= range.begin) {  // overlaps or touches: grow it
      held = before->second.minus(before->first);
      before->second = range.end;
      at = before;
    } else {
      at = runs_.emplace_hint(next, range.begin, range.end);
    }
  } else {
    at = runs_.emplace_hint(next, range.begin, range.end);
  }
  while (next != runs_.end() && next->first <= at->second) {
    held += next->second.minus(next->first);
    at->second = std::max(at->second, next->second);
    next = runs_.erase(next);
  }
  const std::uint64_t added = at->second.minus(at->first) - held;
  size_ += added;
  return added;
}

std::uint64_t OffsetSet::erase(OffsetRun range) {
  if (range.begin >= range.end) return 0;
  std::uint64_t removed = 0;
  auto it = runs_.upper_bound(range.begin);
  if (it != runs_.begin()) --it;
  while (it != runs_.end() && it->first < range.end) {
    const OffsetRun run = run_at(it);
    if (run.end <= range.begin) {
      ++it;
      continue;
    }
    removed += std::min(run.end, range.end).minus(std::max(run.begin, range.begin));
    const bool keeps_head = run.begin < range.begin;
    const bool keeps_tail = run.end > range.end;
    if (keeps_head) {
      it->second = range.begin;
      ++it;
      if (keeps_tail) it = runs_.emplace_hint(it, range.end, run.end);
    } else if (keeps_tail) {
      auto node = runs_.extract(it++);  // keeps its memory: erasing from the front is the hot case
      node.key() = range.end;
      runs_.insert(it, std::move(node));
    } else {
      it = runs_.erase(it);
    }
    if (keeps_tail) break;
  }
  size_ -= removed;
  return removed;
}

Offset OffsetSet::pop_first() {
  NARAD_ASSERT(!runs_.empty());
  const Offset at = runs_.begin()->first;
  erase(at);
  return at;
}

std::vector<OffsetRun> OffsetSet::runs() const {
  std::vector<OffsetRun> out;
  out.reserve(runs_.size());
  for (auto it = runs_.begin(); it != runs_.end(); ++it) out.push_back(run_at(it));
  return out;
}

bool OffsetSet::invariants_hold() const {
  std::uint64_t count = 0;
  bool first = true;
  Offset last_end{0};
  for (const auto& [begin, end] : runs_) {
    if (begin >= end) return false;
    if (!first && begin <= last_end) return false;  // touching runs must have merged
    first = false;
    last_end = end;
    count += end.minus(begin);
  }
  return count == size_;
}

}  // namespace narad::delivery
