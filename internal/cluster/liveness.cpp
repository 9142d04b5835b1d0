#include "internal/cluster/liveness.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad::cluster {

void Liveness::elected(Nanos now) {
  since_ = now;
  last_awake_ = now;
  last_stamps_ = now;
  heard_.clear();
  to_stamp_.clear();
  marking_.clear();
}

void Liveness::heard(const std::string& id, Nanos now) {
  awake(now);
  heard_[id] = now;
  to_stamp_.insert(id);
}

void Liveness::awake(Nanos now) {
  NARAD_ASSERT(now >= last_awake_);
  if (now - last_awake_ > timing_.absent_after) since_ = now;
  last_awake_ = now;
}

Nanos Liveness::silence(const std::string& id, Nanos now) const {
  const auto at = heard_.find(id);
  return now - (at == heard_.end() ? since_ : std::max(since_, at->second));
}

std::vector<metastore::MarkDead> Liveness::overdue(const metastore::State& state, Nanos now) {
  awake(now);
  std::vector<metastore::MarkDead> marks;
  state.members.for_each([&](const std::shared_ptr<const metastore::Member>& m) {
    if (m->status != metastore::MemberStatus::alive || marking_.contains(m->id)) return;
    if (silence(m->id, now) < timing_.dead_after) return;
    marks.push_back({m->id, m->stamp});
    marking_.insert(m->id);
  });
  return marks;
}

std::optional<metastore::Heartbeats> Liveness::stamps_due(const metastore::State& state, Nanos now,
                                                          UnixMillis wall) {
  if (now - last_stamps_ < timing_.stamp_every) return std::nullopt;
  last_stamps_ = now;
  metastore::Heartbeats stamps;
  stamps.now = wall;
  for (const std::string& id : to_stamp_) {
    const metastore::Member* m = state.members.find(id);
    if (m != nullptr && m->status == metastore::MemberStatus::alive) stamps.ids.push_back(id);
  }
  to_stamp_.clear();
  // Who is no member is forgotten, so that this does not grow with every name ever heard.
  std::erase_if(heard_, [&](const auto& h) { return !state.members.contains(h.first); });
  if (stamps.ids.empty()) return std::nullopt;
  return stamps;
}

void Liveness::check_invariants(Nanos now) const {
  NARAD_ASSERT(since_ <= now);
  NARAD_ASSERT(last_awake_ <= now);
  NARAD_ASSERT(last_awake_ >= since_);
  for (const auto& [id, at] : heard_) NARAD_ASSERT(at <= now, id);
  for (const std::string& id : to_stamp_) NARAD_ASSERT(heard_.contains(id), id);
}

}  // namespace narad::cluster
