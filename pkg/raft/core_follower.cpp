// The follower: appends and heartbeats from the leader of its term (Raft paper 5.3).
#include <algorithm>

#include "pkg/base/text.h"
#include "pkg/raft/core.h"

namespace narad::raft {

Message Core::reply_to(const Message& m, MessageKind kind) const {
  Message reply;
  reply.kind = kind;
  reply.to = m.from;
  reply.term = term_;
  return reply;
}

void Core::on_append(const Message& m) {
  if (installing()) return;  // log and state are being replaced; the leader asks again
  if (contradicts_committed(m)) return;
  Message reply = reply_to(m, MessageKind::append_reply);
  // What is committed matches any leader's log, compacted here or not.
  if (m.index >= commit_ && !log_.matches(m.index, m.log_term)) {
    reply.reject = true;
    reply.index = m.index;
    reply.hint = log_.last_at_or_below(m.index, m.log_term);
    reply.hint_term = *log_.term_at(reply.hint);
  } else {
    take_entries(m);
    reply.index = std::max(commit_, m.index.plus(m.entries.size()));
    // Beyond the last entry sent, this log may still hold what the leader does not.
    commit_to(std::min(m.commit, reply.index));
  }
  send(std::move(reply));
}

// A leader whose log differs from what is committed here: a disk has forgotten what it promised.
bool Core::contradicts_committed(const Message& m) {
  auto differs = [this](Index index, Term term) {
    if (index > commit_) return false;
    std::optional<Term> own = log_.term_at(index);
    return own && *own != term;
  };
  auto complain = [&](Index index) {
    stop(cat("leader ", m.from, " of term ", m.term, " would replace entry ", index,
             ", which is committed here; some disk has lost what it had acknowledged. Nothing was "
             "changed"));
    return true;
  };
  if (differs(m.index, m.log_term)) return complain(m.index);
  for (const Entry& e : m.entries) {
    if (differs(e.index, e.term)) return complain(e.index);
    bool next = e.index == commit_.next();
    if (next && e.term < *log_.term_at(commit_)) return complain(commit_);
  }
  return false;
}

// Keeps what matches, and truncates only at a real conflict: an old message must not cut off what a
// newer one has brought.
void Core::take_entries(const Message& m) {
  for (const Entry& e : m.entries) {
    if (e.index <= commit_ || log_.matches(e.index, e.term)) continue;
    if (e.index <= log_.last()) truncate_log(e.index);
    log_.append(e);
    if (e.kind == EntryKind::configuration) {
      members_.append(e.index, Configuration::decode(*e.payload).value());
    }
  }
}

void Core::on_heartbeat(const Message& m) {
  if (m.commit > log_.last()) {
    // The leader names at most what this replica has acknowledged in this term.
    stop(cat("it has acknowledged entry ", m.commit, " to leader ", m.from, " but its log ends at ",
             log_.last(), "; its disk has lost entries. Nothing was changed"));
    return;
  }
  if (!installing()) commit_to(m.commit);
  Message reply = reply_to(m, MessageKind::heartbeat_reply);
  reply.round = m.round;
  reply.index = log_.last();
  send(std::move(reply));
}

}  // namespace narad::raft
