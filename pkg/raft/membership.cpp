#include "pkg/raft/membership.h"

#include "pkg/base/assert.h"

namespace narad::raft {

const Configuration& Membership::at(Index index) const {
  for (std::size_t i = history_.size(); i-- > 0;) {
    if (history_[i].index <= index) return history_[i].configuration;
  }
  NARAD_ASSERT(false, "the configuration at that index is remembered");
  return history_.front().configuration;
}

void Membership::append(Index index, Configuration c) {
  NARAD_ASSERT(index > current_index(), "configurations follow the log");
  history_.push_back({index, std::move(c)});
  refresh();
}

bool Membership::truncate_from(Index index) {
  bool changed = false;
  while (history_.size() > 1 && history_.back().index >= index) {
    history_.pop_back();
    changed = true;
  }
  NARAD_ASSERT(history_.back().index < index, "a committed configuration is never truncated");
  if (changed) refresh();
  return changed;
}

void Membership::forget_below(Index index) {
  while (history_.size() > 1 && history_[1].index <= index) history_.erase(history_.begin());
}

void Membership::reset(Index index, Configuration c) {
  history_.clear();
  history_.push_back({index, std::move(c)});
  refresh();
}

Standing Membership::standing_of(ReplicaId self, std::string_view node) const {
  const Configuration& c = current();
  if (c.empty()) return Standing::unknown;
  if (const Member* m = c.find(self); m != nullptr) {
    return m->role == MemberRole::voter ? Standing::voter : Standing::learner;
  }
  return c.find_node(node) != nullptr ? Standing::replaced : Standing::outside;
}

void Membership::refresh() { voters_ = current().voters(); }

}  // namespace narad::raft
