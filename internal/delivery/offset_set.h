#pragma once
// A set of offsets kept as disjoint, non-touching runs: what is acked ahead, lost, or given back.
// Neighbours merge, so a long run costs one node however many offsets it holds. Pure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "pkg/base/ids.h"

namespace narad::delivery {

// [begin, end). REQUIRES: begin < end wherever a run is handed over.
struct OffsetRun {
  Offset begin{0};
  Offset end{0};
  std::uint64_t count() const { return end.minus(begin); }
  friend bool operator==(const OffsetRun&, const OffsetRun&) = default;
};

class OffsetSet {
 public:
  bool empty() const { return runs_.empty(); }
  // Offsets and runs in the set.
  std::uint64_t size() const { return size_; }
  std::size_t run_count() const { return runs_.size(); }
  // REQUIRES: not empty.
  OffsetRun first_run() const { return run_at(runs_.begin()); }
  Offset first() const { return runs_.begin()->first; }
  Offset last() const { return Offset(runs_.rbegin()->second.value() - 1); }

  bool contains(Offset at) const { return run_end(at) != at; }
  // The end of the run that holds `at`, or `at` itself if none does.
  Offset run_end(Offset at) const;
  // Where the first run at or past `at` begins; nothing if there is none.
  std::optional<Offset> next_begin(Offset at) const {
    auto it = runs_.lower_bound(at);
    return it == runs_.end() ? std::nullopt : std::optional(it->first);
  }
  // How many offsets of `range` are in the set.
  std::uint64_t count_in(OffsetRun range) const;

  // How many offsets were new / were removed. Cost: the logarithm of the runs, plus the runs that
  // `range` touches.
  std::uint64_t insert(OffsetRun range);
  std::uint64_t insert(Offset at) { return insert({at, at.next()}); }
  std::uint64_t erase(OffsetRun range);
  std::uint64_t erase(Offset at) { return erase({at, at.next()}); }
  // Removes and answers the lowest offset. REQUIRES: not empty.
  Offset pop_first();

  std::vector<OffsetRun> runs() const;
  bool invariants_hold() const;

 private:
  using Map = std::map<Offset, Offset>;  // begin -> end
  static OffsetRun run_at(Map::const_iterator it) { return {it->first, it->second}; }

  Map runs_;
  std::uint64_t size_ = 0;
};

}  // namespace narad::delivery
