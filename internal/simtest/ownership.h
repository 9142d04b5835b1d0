#pragma once
// Who owns which log, as the nodes themselves show it: by the newest state that any of them has
// applied. Pure; outlives every crash of the nodes under test.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "internal/metastore/state.h"
#include "internal/simtest/oracle.h"

namespace narad::simtest {

class Ownership {
 public:
  struct Change {
    LogName log;
    std::string from;  // empty: nobody owned it
    std::string to;    // the same: it was elsewhere in between
    metastore::MoveOutcome how = metastore::MoveOutcome::running;  // running: it was assigned anew
    // Of a move: the freeze under which it flipped was armed after this; acks that were known
    // before it are in the copy.
    Nanos armed_after{0};
  };

  // A state that some node shows now. Answers what changed hands since the newest one before it;
  // nothing if it is older.
  std::vector<Change> shown(const metastore::ViewPtr& view);
  // Every node that is up has been asked.
  void asked_all(Nanos now) { asked_all_ = now; }

  // The owner as far as it is known; nothing while nobody is.
  std::optional<std::string> owner(const LogName& log) const;
  // How often anything changed hands so far, and whether that log did after it was that often.
  std::uint64_t changes() const { return changes_; }
  bool changed_since(const LogName& log, std::uint64_t changes) const;
  // The newest state seen; null before the first.
  const metastore::ViewPtr& newest() const { return newest_; }

 private:
  struct Known {
    std::string owner;
    std::uint64_t epoch = 0;  // of the last freeze that was seen
    bool armed = false;
    Nanos armed_after{0};
    RaftIndex owned_by_move{0};
    std::uint64_t changed = 0;  // the count at its last change
  };
  void look_at(const metastore::TopicRow& row, const metastore::State& state,
               std::vector<Change>& out);

  metastore::ViewPtr newest_;
  Nanos asked_all_{0};
  std::uint64_t changes_ = 0;
  std::map<LogName, Known> logs_;
};

}  // namespace narad::simtest
