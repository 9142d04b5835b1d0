#pragma once
// The plain values of the Raft core: what it stores, what it sends and what it hands out.
// Everything here is a value; payloads are shared and immutable, so that copying an entry costs a
// reference.
//
// A replica is one life of one disk: its id is drawn at random when the disk is first written, and
// messages and configurations name replicas, never nodes. A node whose disk was emptied is
// therefore a stranger to its old votes.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/bytes.h"
#include "pkg/base/ids.h"
#include "pkg/raft/configuration.h"

namespace narad::raft {

using Index = RaftIndex;  // position in the log, from 1; 0 is before the first entry
using Term = StrongNumber<struct RaftTermTag>;
using Payload = std::shared_ptr<const Bytes>;  // never null in an entry

// REQUIRES: index > 0.
inline Index before(Index index) { return Index(index.value() - 1); }
Payload payload_of(std::string_view text);

enum class EntryKind : std::uint8_t { noop = 0, command = 1, configuration = 2 };

struct Entry {
  Index index;
  Term term;
  EntryKind kind = EntryKind::noop;
  Payload payload;

  std::uint64_t bytes() const { return payload->size() + 32; }  // its weight in flow control
};

// What must be durable besides entries. `commit` is advice for the next start: it may be stored
// lazily.
struct HardState {
  Term term;
  ReplicaId vote;  // 0: none in this term
  Index commit;
  friend bool operator==(const HardState&, const HardState&) = default;
};

// Names one immutable snapshot of the applied state. Two snapshots are the same only if all of
// index, term, size and checksum agree; then they have the same bytes.
struct SnapshotMeta {
  Index index;
  Term term;
  Configuration configuration;  // in force at `index`
  std::uint64_t size_bytes = 0;
  std::uint64_t checksum = 0;  // over all its bytes, as the storage computes it

  bool same_as(const SnapshotMeta& other) const {
    return index == other.index && term == other.term && size_bytes == other.size_bytes &&
           checksum == other.checksum;
  }
};

enum class MessageKind : std::uint8_t {
  pre_vote = 1,
  pre_vote_reply,
  vote,
  vote_reply,
  append,
  append_reply,
  heartbeat,
  heartbeat_reply,
  snapshot_chunk,
  snapshot_reply,
  timeout_now,
  read_request,
  read_reply,
};
std::string_view to_string(MessageKind kind);

// One struct for all kinds; which fields a kind uses:
//   pre_vote, vote     index, log_term = last entry of the candidate; force (transfer)
//   *vote_reply        reject
//   append             index, log_term = entry before `entries`; entries; commit
//   append_reply       index = highest entry known to match; or reject with index = the refused
//                      position, hint and hint_term = where to try next
//   heartbeat          commit (at most what the receiver has acknowledged), round
//   heartbeat_reply    round, index = last entry received, stored or not
//   snapshot_chunk     snapshot, offset, length; chunk and chunk_checksum (see fill_chunk)
//   snapshot_reply     snapshot_index, offset = the chunk answered, next_offset; reject = start
//   again read_request       context read_reply         context, index; reject
struct Message {
  MessageKind kind = MessageKind::heartbeat;
  ReplicaId from;
  ReplicaId to;
  Term term;
  Index index;
  Term log_term;
  Index commit;
  bool reject = false;
  bool force = false;
  Index hint;
  Term hint_term;
  std::uint64_t round = 0;
  std::uint64_t context = 0;
  std::vector<Entry> entries;
  std::shared_ptr<const SnapshotMeta> snapshot;
  Index snapshot_index;
  std::uint64_t offset = 0;
  std::uint64_t next_offset = 0;
  std::uint64_t length = 0;
  Payload chunk;
  std::uint64_t chunk_checksum = 0;
};

// The core names the bytes of a snapshot it wants sent; whoever sends the message reads them from
// the snapshot's file and puts them in. REQUIRES: m.kind is snapshot_chunk, bytes.size() ==
// m.length.
void fill_chunk(Message& m, Payload bytes);
std::uint64_t chunk_checksum(ByteView bytes, std::uint64_t offset);

// One line for transcripts and logs.
std::string describe(const Message& m);
std::string describe(const Entry& e);

enum class Role : std::uint8_t { follower, pre_candidate, candidate, leader };
std::string_view to_string(Role role);

// What this replica is by the configuration it goes by.
enum class Standing : std::uint8_t {
  unknown,   // no configuration yet: waiting to be added
  outside,   // not in it: not yet added, or removed
  replaced,  // its node is configured under another replica id: this disk counts for nothing
  learner,
  voter,
};
std::string_view to_string(Standing standing);

struct SoftState {
  Role role = Role::follower;
  Term term;
  ReplicaId leader;  // 0: unknown
  Standing standing = Standing::unknown;
  friend bool operator==(const SoftState&, const SoftState&) = default;
};

struct ProposalId {
  Index index;
  Term term;
  friend auto operator<=>(const ProposalId&, const ProposalId&) = default;
};

// The answer to read_index(context). Without an index the question is lost: ask again.
struct ReadResult {
  std::uint64_t context = 0;
  std::optional<Index> index;
};

// Write `bytes` at `offset` of the staging file of this snapshot (which starts afresh at offset 0).
struct SnapshotWrite {
  std::shared_ptr<const SnapshotMeta> snapshot;
  std::uint64_t offset = 0;
  Payload bytes;
};

// Everything the core wants done since the last Ready. Readies are stored in order of `id`, each as
// one transaction: hard_state, entries (after deleting stored ones at and above the first of them),
// snapshot_writes.
struct Ready {
  std::uint64_t id = 0;
  std::optional<HardState> hard_state;
  std::vector<Entry> entries;
  std::vector<SnapshotWrite> snapshot_writes;
  // False: nothing here needs a sync before `messages` may go.
  bool must_sync = false;
  // May be sent at once.
  std::vector<Message> messages_now;
  // Only after this Ready and all before it are durable.
  std::vector<Message> messages;
  // The staged snapshot is whole. After this Ready is durable and all that was handed out is
  // applied: check its checksum; if it fails call snapshot_done(false) and change nothing; else
  // replace state and *whole* log by it, durably, and call snapshot_done(true). Neither log nor
  // state gets anything new meanwhile.
  std::shared_ptr<const SnapshotMeta> install;
  // In order, each exactly once in a life of the core, all durable in the log; then call applied().
  std::vector<Entry> committed;
  std::vector<ReadResult> reads;
  // Proposals of this replica whose outcome it can no longer tell: neither done nor refused.
  std::vector<ProposalId> unknown;
  std::optional<SoftState> soft_state;  // when changed
};

}  // namespace narad::raft
