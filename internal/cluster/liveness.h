#pragma once
// Who is alive, as the leader judges it. Pure; lives as long as the node, and begins afresh at each
// election.
//
// Silence is counted on the leader's own monotonic clock since it was elected, never from a stamp
// that another node wrote: a new leader declares nobody dead before it has itself waited the whole
// time (traps.md 27). The same holds after the leader itself was stopped for a while: it cannot
// know what it did not listen to. Stamps in the metastore are for people and for tying a dead mark
// to what was judged: it names the stamp, and a fresher one refuses it in apply().
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "internal/metastore/command.h"
#include "internal/metastore/state.h"
#include "pkg/base/text.h"

namespace narad::cluster {

struct LivenessTiming {
  Nanos dead_after = std::chrono::seconds(30);
  Nanos stamp_every = std::chrono::seconds(10);
  // More than this between two looks means that this process did not run: everybody gets the whole
  // time again.
  Nanos absent_after = std::chrono::seconds(15);
};

class Liveness {
 public:
  explicit Liveness(LivenessTiming timing = {}) : timing_(timing) {}

  // This node leads since now.
  void elected(Nanos now);
  // A heartbeat of that member arrived. The member may be dead, or not registered yet.
  void heard(const std::string& id, Nanos now);
  // To be called about every second, at least, while this node leads: notices an absence.
  void awake(Nanos now);

  // Living members that have been silent too long, each with the stamp that was judged. They count
  // as being marked until mark_ended().
  std::vector<metastore::MarkDead> overdue(const metastore::State& state, Nanos now);
  void mark_ended(const std::string& id) { marking_.erase(id); }
  // A proposal to mark it dead is on its way: whether it is alive is not known before it ended.
  bool marking(const std::string& id) const { return marking_.contains(id); }

  // At most once in stamp_every: those heard since the last stamps that are alive. Nothing if there
  // is none.
  std::optional<metastore::Heartbeats> stamps_due(const metastore::State& state, Nanos now,
                                                  UnixMillis wall);

  // Whether a mark would be unjust now.
  bool recently_heard(const std::string& id, Nanos now) const {
    return silence(id, now) < timing_.dead_after;
  }
  // How long ago the member was heard, or this node elected; what force-promote counts (moves.md).
  Nanos silence(const std::string& id, Nanos now) const;

  void check_invariants(Nanos now) const;

 private:
  LivenessTiming timing_;
  Nanos since_{0};  // silence is counted from here at the earliest
  Nanos last_awake_{0};
  Nanos last_stamps_{0};
  std::map<std::string, Nanos> heard_;
  std::set<std::string> to_stamp_;
  std::set<std::string> marking_;
};

}  // namespace narad::cluster
