#pragma once
// The replicated state: what every node of the cluster agrees on (topics, their schemas and
// assignments, members, users). Pure values: no clock, no file, no loop. It changes only through
// apply() (apply.h); a copy shares its rows, so each applied state can be published whole, and a
// reader keeps the one it took for as long as it likes.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "internal/metastore/row_map.h"
#include "internal/model/topic.h"
#include "internal/model/user.h"

namespace narad::metastore {

struct SchemaVersion {
  std::uint32_t version = 0;  // 1, 2, …
  std::string text;           // the JSON Schema document as it was given
  RaftIndex index{0};         // of the entry that added it
  friend bool operator==(const SchemaVersion&, const SchemaVersion&) = default;
};

// One topic with everything that lives and dies with it.
struct TopicRow {
  Topic topic;
  std::vector<Assignment> assignments;  // by partition; owner_node empty: not assigned yet
  std::vector<std::shared_ptr<const SchemaVersion>> schemas;  // versions 1 to n
  RaftIndex changed_at{0};  // entry that last changed the topic, an assignment or a schema

  std::string_view key() const { return topic.name; }
  // The newest schema, or null: the topic takes any payload.
  const SchemaVersion* schema() const { return schemas.empty() ? nullptr : schemas.back().get(); }
  friend bool operator==(const TopicRow& a, const TopicRow& b);
};
using TopicRowPtr = std::shared_ptr<const TopicRow>;

enum class MemberStatus : std::uint8_t { alive, dead };
std::string_view to_string(MemberStatus status);

struct Member {
  std::string id;                  // node id, from node.json
  std::string http_addr;           // advertised, host:port
  std::string cluster_addr;        // host:port
  std::string boot_id;             // new at every start of the process
  std::vector<std::string> disks;  // disk ids that may hold partitions, in configuration order
  MemberStatus status = MemberStatus::alive;
  UnixMillis last_seen{0};  // by the clock of the leader that stamped it
  RaftIndex stamp{0};       // entry that last stamped it; mark_dead names the one it judged
  RaftIndex dead_mark{0};   // entry that marked it dead; 0 while alive
  bool draining = false;
  RaftIndex drain_id{0};      // entry that began the drain; 0 if none
  bool leaving = false;       // empty and about to be removed: the drain cannot be cancelled
  RaftIndex changed_at{0};    // entry that last changed anything but the stamp
  bool wal_lost = false;      // dead and draining: its ingress WAL was given up by an operator
  bool moves_paused = false;  // what moves from or to it is to wait

  std::string_view key() const { return id; }
  friend bool operator==(const Member&, const Member&) = default;
};

// Left by a removed member, so that its id never comes back by itself.
struct Tombstone {
  std::string id;
  RaftIndex removed_at{0};   // entry that removed it
  UnixMillis removed_ms{0};  // by the clock of the leader then: for people
  std::string_view key() const { return id; }
  friend bool operator==(const Tombstone&, const Tombstone&) = default;
};

// Left by a deleted topic: the only proof that this life of the name has ended. That a state lacks
// a topic proves nothing, since the state may be older than the topic (a restored backup).
struct DeletedTopic {
  std::string id;  // name and incarnation, by deleted_id()
  RaftIndex deleted_at{0};
  std::string_view key() const { return id; }
  friend bool operator==(const DeletedTopic&, const DeletedTopic&) = default;
};

std::string deleted_id(std::string_view topic, Incarnation incarnation);  // orders@16 hex digits
std::optional<std::pair<std::string, Incarnation>> parse_deleted_id(std::string_view id);

// What became of a move.
enum class MoveOutcome : std::uint8_t {
  running,
  moved,          // the target took over under the owner's freeze
  promoted,       // without the owner, which was dead
  given,          // the partition was never used: there was nothing to copy
  cleared,        // its target was taken back; `why` says for what reason
  replaced,       // by a later move of the partition
  topic_deleted,  // with its topic
};
std::string_view to_string(MoveOutcome outcome);

// The history of a move: what an operator asks for later. Nothing is decided by it.
struct MoveRecord {
  std::string id;  // move_key()
  RaftIndex move_id{0};
  std::string topic;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string from_node;
  std::string from_disk;
  std::string to_node;
  std::string to_disk;
  std::string reason;  // as SetTarget gave it
  MoveOutcome outcome = MoveOutcome::running;
  std::string why;        // of a promotion or a clearing, as its proposer gave it
  RaftIndex ended_at{0};  // entry; 0: running
  UnixMillis started{0};  // by the proposer's clock; 0: an older release
  UnixMillis ended{0};
  std::string receipt;  // JSON, as the destination gave it
  std::string_view key() const { return id; }
  friend bool operator==(const MoveRecord&, const MoveRecord&) = default;
};
std::string move_key(RaftIndex move_id);  // in the order of the log

// The least that moves can be held to, in bytes per second: with less they would never end.
inline constexpr std::uint64_t kMoveRateMin = 1024;
inline constexpr std::uint64_t kMoveRateMax = std::uint64_t{1} << 50;

inline constexpr std::size_t kMovesKept = 10'000;
inline constexpr std::size_t kReceiptBytesMax = 4096;

// The latest ones are kept. Data of a topic that was deleted before them, on a node that was away
// all that time, stays until somebody removes it.
inline constexpr std::size_t kDeletedTopicsKept = 65'536;
using UserPtr = std::shared_ptr<const User>;

// Index of the last entry that changed something in each domain. A reader that caches what it
// derived from a domain compares the number.
struct Versions {
  RaftIndex topics{0};
  RaftIndex schemas{0};
  RaftIndex assignments{0};
  RaftIndex members{0};  // not for stamps: address, disks, status, draining
  RaftIndex users{0};
  friend bool operator==(const Versions&, const Versions&) = default;
};

struct State {
  std::string cluster_id;  // empty until the founding entry
  RaftIndex applied{0};    // last entry applied
  Versions versions;
  std::uint64_t placed = 0;  // partitions placed since the founding: where round-robin goes on
  // Bytes per second that each node may receive by moves; 0: no limit. Nothing: each node goes by
  // its own configuration.
  std::optional<std::uint64_t> move_rate;
  bool moves_paused = false;  // all of them are to wait
  RowMap<TopicRow> topics;
  RowMap<Member> members;
  RowMap<Tombstone> tombstones;
  RowMap<DeletedTopic> deleted;
  RowMap<MoveRecord> moves;  // the latest ones, running and ended
  RowMap<User> users;

  // The first partition, in order of topics, that names the member as owner or target; nothing if
  // none does.
  std::optional<TopicPartition> partition_naming(std::string_view member) const;
  // Nothing if the topic, or the partition within it, does not exist.
  const Assignment* assignment(std::string_view topic, PartitionId partition) const;
  // The move of that row is to wait: by itself, or with all of a node or of the cluster.
  bool paused(const Assignment& move) const;
  // Nobody owns it, or its owner has lost the disk on which it was to be made: nothing was ever
  // written to it, so it may be given to anybody.
  bool needs_home(const Assignment& assignment) const;
  // The entry that deleted this life of a topic is known: it will never come back.
  bool was_deleted(std::string_view topic, Incarnation incarnation) const;
};

// A state as readers see it: never changes once published. Null never occurs.
using ViewPtr = std::shared_ptr<const State>;

// A checksum over all of it, equal on two nodes exactly if their states are.
std::uint64_t digest(const State& state);

// Aborts if the state contradicts itself. For tests and simulation, after each apply.
void check_invariants(const State& state);

}  // namespace narad::metastore
