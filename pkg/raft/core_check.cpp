// What a message must look like before it is believed. Nothing that a peer sends may trip an
// assert.
#include <algorithm>

#include "pkg/base/text.h"
#include "pkg/raft/core.h"

namespace narad::raft {

namespace {

Error malformed(const Message& m, std::string_view what) {
  return Error(Errc::invalid_argument, cat("a Raft message (", to_string(m.kind), ") from replica ",
                                           m.from, " is malformed: ", what));
}

Result<> check_entries(const Message& m, std::uint64_t entry_bytes_max) {
  Index expected = m.index;
  Term term = m.log_term;
  if (term > m.term) return malformed(m, "it builds on a later term than its own");
  for (const Entry& e : m.entries) {
    expected = expected.next();
    if (e.index != expected) return malformed(m, "its entries are not in a row");
    if (e.term < term || e.term > m.term) return malformed(m, "the terms of its entries are wrong");
    if (e.term == Term()) return malformed(m, "an entry without a term");
    if (!e.payload) return malformed(m, "an entry without a payload");
    if (e.payload->size() > std::max<std::uint64_t>(entry_bytes_max, kMembersMax * 512)) {
      return malformed(m, "an entry is over the limit");
    }
    if (e.kind > EntryKind::configuration) return malformed(m, "an entry of unknown kind");
    term = e.term;
    if (e.kind != EntryKind::configuration) continue;
    Result<Configuration> c = Configuration::decode(*e.payload);
    if (!c) return malformed(m, c.error().text());
  }
  return ok();
}

Result<> check_chunk(const Message& m) {
  if (!m.snapshot || !m.chunk) return malformed(m, "no snapshot named, or no bytes");
  const SnapshotMeta& s = *m.snapshot;
  if (s.index == Index() || s.term == Term() || s.term > m.term || s.configuration.empty()) {
    return malformed(m, "its snapshot makes no sense");
  }
  if (m.chunk->size() != m.length) return malformed(m, "its length is not that of its bytes");
  if (m.offset > s.size_bytes || m.length > s.size_bytes - m.offset) {
    return malformed(m, "the chunk lies outside of the snapshot");
  }
  if (m.length == 0 && m.offset != s.size_bytes) return malformed(m, "an empty chunk");
  return ok();
}

}  // namespace

Result<> Core::check_message(const Message& m) const {
  if (m.to != self()) {
    return Error(Errc::conflict,
                 cat("a Raft message for replica ", m.to, " came to replica ", self(), " of node ",
                     options_.node, ": its disk was emptied, or an address is wrong"));
  }
  if (m.from == ReplicaId() || m.from == self()) return malformed(m, "its sender is wrong");
  // Only a replica that has never voted is at term 0, and it may be asked whether it would.
  if (m.term == Term() && m.kind != MessageKind::pre_vote_reply) {
    return malformed(m, "it has no term");
  }
  if (m.kind < MessageKind::pre_vote || m.kind > MessageKind::read_reply) {
    return malformed(m, "its kind is unknown");
  }
  if (m.kind == MessageKind::append) return check_entries(m, options_.entry_bytes_max);
  if (m.kind == MessageKind::snapshot_chunk) return check_chunk(m);
  return ok();
}

}  // namespace narad::raft
