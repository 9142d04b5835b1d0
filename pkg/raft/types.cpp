#include "pkg/raft/types.h"

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad::raft {

Payload payload_of(std::string_view text) { return std::make_shared<const Bytes>(to_bytes(text)); }

std::uint64_t chunk_checksum(ByteView bytes, std::uint64_t offset) { return xxh3(bytes, offset); }

void fill_chunk(Message& m, Payload bytes) {
  NARAD_ASSERT(m.kind == MessageKind::snapshot_chunk, "only a snapshot chunk takes bytes");
  NARAD_ASSERT(bytes->size() == m.length, "the bytes asked for, no more and no fewer");
  m.chunk_checksum = chunk_checksum(*bytes, m.offset);
  m.chunk = std::move(bytes);
}

std::string_view to_string(MessageKind kind) {
  switch (kind) {
    case MessageKind::pre_vote:
      return "pre-vote";
    case MessageKind::pre_vote_reply:
      return "pre-vote-reply";
    case MessageKind::vote:
      return "vote";
    case MessageKind::vote_reply:
      return "vote-reply";
    case MessageKind::append:
      return "append";
    case MessageKind::append_reply:
      return "append-reply";
    case MessageKind::heartbeat:
      return "heartbeat";
    case MessageKind::heartbeat_reply:
      return "heartbeat-reply";
    case MessageKind::snapshot_chunk:
      return "snapshot-chunk";
    case MessageKind::snapshot_reply:
      return "snapshot-reply";
    case MessageKind::timeout_now:
      return "timeout-now";
    case MessageKind::read_request:
      return "read-request";
    case MessageKind::read_reply:
      return "read-reply";
  }
  return "unknown";
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::follower:
      return "follower";
    case Role::pre_candidate:
      return "pre-candidate";
    case Role::candidate:
      return "candidate";
    case Role::leader:
      return "leader";
  }
  return "unknown";
}

std::string_view to_string(Standing standing) {
  switch (standing) {
    case Standing::unknown:
      return "unknown";
    case Standing::outside:
      return "outside";
    case Standing::replaced:
      return "replaced";
    case Standing::learner:
      return "learner";
    case Standing::voter:
      return "voter";
  }
  return "unknown";
}

std::string describe(const Entry& e) {
  std::string head = cat(e.term.value(), "/", e.index.value());
  if (e.kind == EntryKind::noop) return cat(head, " noop");
  if (e.kind == EntryKind::command) {
    bool short_text = e.payload->size() <= 32;
    return short_text ? cat(head, " '", as_chars(*e.payload), "'")
                      : cat(head, " ", e.payload->size(), " bytes");
  }
  Result<Configuration> c = Configuration::decode(*e.payload);
  return cat(head, " members ", c ? describe(c.value()) : "damaged");
}

namespace {
std::string details(const Message& m) {
  std::string reject = m.reject ? " reject" : "";
  switch (m.kind) {
    case MessageKind::pre_vote:
    case MessageKind::vote:
      return cat(" last ", m.log_term.value(), "/", m.index.value(), m.force ? " force" : "");
    case MessageKind::pre_vote_reply:
    case MessageKind::vote_reply:
      return m.reject ? " reject" : " grant";
    case MessageKind::append: {
      std::string out =
          cat(" after ", m.log_term.value(), "/", m.index.value(), " commit ", m.commit.value());
      for (const Entry& e : m.entries) out += cat(" [", describe(e), "]");
      return out;
    }
    case MessageKind::append_reply:
      return m.reject ? cat(" reject ", m.index.value(), " hint ", m.hint_term.value(), "/",
                            m.hint.value())
                      : cat(" match ", m.index.value());
    case MessageKind::heartbeat:
      return cat(" commit ", m.commit.value(), " round ", m.round);
    case MessageKind::heartbeat_reply:
      return cat(" last ", m.index.value(), " round ", m.round);
    case MessageKind::snapshot_chunk:
      return cat(" of ", m.snapshot->term.value(), "/", m.snapshot->index.value(), " bytes ",
                 m.offset, "+", m.length, " of ", m.snapshot->size_bytes);
    case MessageKind::snapshot_reply:
      return cat(reject, " of ", m.snapshot_index.value(), " chunk ", m.offset, " next ",
                 m.next_offset);
    case MessageKind::timeout_now:
      return "";
    case MessageKind::read_request:
      return cat(" context ", m.context);
    case MessageKind::read_reply:
      return cat(reject, " context ", m.context, " index ", m.index.value());
  }
  return "";
}
}  // namespace

std::string describe(const Message& m) {
  return cat(m.from.value(), "->", m.to.value(), " ", to_string(m.kind), " term ", m.term.value(),
             details(m));
}

}  // namespace narad::raft
