#pragma once
// Commands: what a Raft entry asks of the state, and what came of it. Pure values.
//
// On the wire and in the log a command is one JSON object {"v":1,"op":"create_topic",…}. A command
// of another version, an op this build does not know, or one with fields it does not know decodes
// to Unsupported, whose result is `unsupported` on every node. Golden files:
// testdata/metastore/commands.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "internal/metastore/state.h"
#include "pkg/base/result.h"

namespace narad::metastore {

// First entry of a cluster. Repeating it with the same id changes nothing; another id is refused.
struct FoundCluster {
  std::string cluster_id;  // 16 hex digits, drawn once
};

// The name is free. Places every partition on the members that are alive and not draining, going
// round; with none of them the partitions stay unassigned.
struct CreateTopic {
  std::string name;
  Incarnation incarnation{0};  // 64 random bits, drawn by the proposer; never 0
  std::uint32_t partitions = 0;
  std::int64_t retention_ms = 0;
  std::int64_t visibility_timeout_ms = 0;
  std::int64_t max_in_flight_per_partition = 0;
  std::int64_t max_acked_ahead_per_partition = 0;
  std::int64_t created_at_s = 0;      // by the proposer's clock
  std::string owner;                  // username or empty
  std::optional<std::string> schema;  // becomes version 1
};

// Changes what is given; partitions may only grow (the new ones are placed as by CreateTopic).
struct UpdateTopic {
  std::string name;
  Incarnation incarnation{0};
  std::optional<std::int64_t> retention_ms;
  std::optional<std::int64_t> visibility_timeout_ms;
  std::optional<std::int64_t> max_in_flight_per_partition;
  std::optional<std::int64_t> max_acked_ahead_per_partition;
  std::optional<std::uint32_t> partitions;
};

struct DeleteTopic {
  std::string name;
  Incarnation incarnation{0};
};

// `version` is one more than the newest (1 for the first); otherwise conflict: somebody was faster.
struct PutSchema {
  std::string name;
  Incarnation incarnation{0};
  std::uint32_t version = 0;
  std::string schema;
};

// The partition is unassigned, or was never used and its owner has lost the disk it was to be on;
// the node is a live member that is neither draining nor leaving and has that disk.
struct AssignPartition {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string node;
  std::string disk;
};

// Before the first frame of a partition is written. Owner as given; repeating it changes nothing.
struct MarkUsed {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string node;
  std::string disk;
};

// A process says that it is here: new, again, or elsewhere (addresses may change at will). Revives
// a dead member, keeps a drain; refused for the id of a removed one.
struct RegisterMember {
  std::string id;
  std::string http_addr;
  std::string cluster_addr;
  std::string boot_id;
  std::vector<std::string> disks;
  UnixMillis now{0};  // the leader's clock
};

// Stamps the live ones among `ids`; dead and unknown ones are left alone.
struct Heartbeats {
  std::vector<std::string> ids;
  UnixMillis now{0};
};

// `stamp` is the entry index of the last stamp that was judged too old; a fresher one refuses.
struct MarkDead {
  std::string id;
  RaftIndex stamp{0};
};

// Begins or cancels a drain. The index of the entry that begins it is the drain's id. Cannot be
// cancelled once the member is leaving. `wal_lost`: an operator says that what the ingress WAL of
// this dead member holds is given up; may be said later of a drain that has begun, and counts until
// the member returns.
struct SetDraining {
  std::string id;
  bool draining = false;
  bool wal_lost = false;
};

// The member is about to be removed: its drain holds, under the id for which its empty ingress WAL
// was judged, and no partition names it as owner or target. No way back from here.
struct Leaving {
  std::string id;
  RaftIndex drain_id{0};
  RaftIndex dead_mark{0};  // as it was judged: one that returned meanwhile has a WAL to hand over
};

// Takes a member that is leaving under that drain out of the cluster, and leaves a tombstone: its
// id is refused from then on. Repeating it changes nothing.
struct RemoveMember {
  std::string id;
  RaftIndex drain_id{0};
  UnixMillis now{0};  // the leader's clock
};

// The name is free. A root user is the first of all: none exists yet.
struct CreateUser {
  std::string username;
  std::string password_hash;  // bcrypt, made by the proposer
  std::vector<Grant> grants;
  bool root = false;
  UnixMillis now{0};  // by the proposer's clock
};

// `version` is User::changed_at as it was judged, here and below: otherwise conflict. Replaces all
// grants; not for root, which may do everything anyway.
struct SetUserGrants {
  std::string username;
  RaftIndex version{0};
  std::vector<Grant> grants;
  UnixMillis now{0};
};

struct SetUserPassword {
  std::string username;
  RaftIndex version{0};
  std::string password_hash;
  UnixMillis now{0};
};

// Not for root.
struct DeleteUser {
  std::string username;
  RaftIndex version{0};
};

// ---- moves (moves.md). Each names what its proposer saw of the assignment; if that no longer
// holds it changes nothing, and the row as it stands is in the answer.

// The partition is to go to another (node, disk). The index of this entry is the move's id. Owner
// and the present move (0: none) are as given; the target is another place than the owner's, on a
// living member that neither drains nor leaves. Replaces a running move, whose freeze it ends. A
// partition that was never used is given to the target at once: it has no bytes to copy.
struct SetTarget {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string owner_node;
  RaftIndex move_id{0};
  std::string target_node;
  std::string target_disk;
  std::string reason;  // joined, draining, operator, plan, disk
  UnixMillis now{0};   // by the proposer's clock, for the history
  std::uint64_t max_bytes_per_second =
      0;  // of this move; at least kMoveRateMin; 0: none of its own
};

// By the source, before it freezes anything: increments the freeze epoch and marks it armed.
struct ArmFreeze {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string owner_node;
  RaftIndex move_id{0};
};

// Ends the freeze of that epoch, for good. With any other epoch nothing is left to do, and the row
// says which is in force.
struct VoidFreeze {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string owner_node;
  std::uint64_t epoch = 0;
};

// The flip: the target becomes the owner. Owner, move and armed epoch are as given, the target is
// still a member. Repeating it after it was applied is done.
struct CompleteMove {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string source_node;
  RaftIndex move_id{0};
  std::uint64_t epoch = 0;
  UnixMillis now{0};
  std::string receipt = {};  // JSON, for the history
};

// The flip without the source, which is dead: its member record is still dead under that mark (0:
// it has no record). Increments the freeze epoch.
struct ForcePromote {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string source_node;
  RaftIndex move_id{0};
  RaftIndex dead_mark{0};
  std::string reason;
  UnixMillis now{0};
  std::string receipt = {};
};

// Ends a move without a flip: aborted by an operator, or its target is gone. Target and move are as
// read. Never endangers data: the owner stays.
struct ClearTarget {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  std::string target_node;
  RaftIndex move_id{0};
  std::string reason;
  UnixMillis now{0};
};

// What each node may receive by moves, in bytes per second: at least kMoveRateMin; 0: no limit;
// nothing: each node goes by its own configuration. Whatever stood before.
struct SetMoveRate {
  std::optional<std::uint64_t> bytes_per_second;
};

// That move is to wait, or to go on. A later move of the partition knows nothing of it.
struct PauseMove {
  std::string name;
  Incarnation incarnation{0};
  PartitionId partition{0};
  RaftIndex move_id{0};
  bool paused = false;
};

// All moves are to wait, or to go on as far as nothing else holds them: those from or to a member,
// or (`node` empty) all there are. Of now and later.
struct PauseMoves {
  std::string node;
  bool paused = false;
};

// Anything this build cannot apply.
struct Unsupported {
  std::string op;  // as far as it could be read
  std::int64_t version = 0;
};

using Command =
    std::variant<FoundCluster, CreateTopic, UpdateTopic, DeleteTopic, PutSchema, AssignPartition,
                 MarkUsed, RegisterMember, Heartbeats, MarkDead, SetDraining, Leaving, RemoveMember,
                 CreateUser, SetUserGrants, SetUserPassword, DeleteUser, SetTarget, ArmFreeze,
                 VoidFreeze, CompleteMove, ForcePromote, ClearTarget, SetMoveRate, PauseMove,
                 PauseMoves, Unsupported>;

// Bounds of what a member says of itself.
inline constexpr std::size_t kMemberIdBytesMax = 255;
inline constexpr std::size_t kMemberAddressBytesMax = 512;
inline constexpr std::size_t kMemberDisksMax = 256;

// Entries larger than this are refused by the proposer (decisions.md).
inline constexpr std::size_t kCommandBytesMax = 4 << 20;

// One line of JSON, keys in a fixed order. REQUIRES: not Unsupported.
std::string encode(const Command& command);
// Total: whatever the bytes are, there is a command.
Command decode_command(std::string_view bytes);
// "create_topic"; for Unsupported the op that was read.
std::string_view op_name(const Command& command);

enum class ResultCode : std::uint8_t {
  done = 0,         // applied, or there was nothing left to do
  invalid = 1,      // the command contradicts the rules: the proposer must not repeat it
  not_found = 2,    // topic, partition, member or user
  exists = 3,       // the name is taken
  conflict = 4,     // a precondition no longer holds: read again, decide again
  unsupported = 5,  // unknown op or version
};
std::string_view to_string(ResultCode code);

// One partition's assignment under its name.
struct AssignmentRow {
  TopicPartition partition;
  Assignment assignment;
  friend bool operator==(const AssignmentRow&, const AssignmentRow&) = default;
};

// What a command did. Equal on every node that applies it. `row` is the row as it stands after a
// done (Topic, AssignmentRow, Member, SchemaVersion, User), or, on a conflict, as it stood in the
// way.
struct CommandResult {
  ResultCode code = ResultCode::done;
  std::string text;  // for people; empty if done
  std::variant<std::monostate, Topic, AssignmentRow, Member, SchemaVersion, User> row;
  bool done() const { return code == ResultCode::done; }
};

// The refusal as an Error (invalid_argument, not_found, exists, conflict, or internal for
// unsupported). REQUIRES: not done.
Error to_error(const CommandResult& result);

}  // namespace narad::metastore
