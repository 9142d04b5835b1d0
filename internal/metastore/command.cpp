#include "internal/metastore/command.h"

#include <type_traits>

#include "internal/metastore/fields.h"
#include "pkg/base/assert.h"

namespace narad::metastore {
namespace {

inline constexpr std::int64_t kCommandVersion = 1;

template <class T>
constexpr std::string_view kOp{};
template <>
constexpr std::string_view kOp<FoundCluster> = "found_cluster";
template <>
constexpr std::string_view kOp<CreateTopic> = "create_topic";
template <>
constexpr std::string_view kOp<UpdateTopic> = "update_topic";
template <>
constexpr std::string_view kOp<DeleteTopic> = "delete_topic";
template <>
constexpr std::string_view kOp<PutSchema> = "put_schema";
template <>
constexpr std::string_view kOp<AssignPartition> = "assign_partition";
template <>
constexpr std::string_view kOp<MarkUsed> = "mark_used";
template <>
constexpr std::string_view kOp<RegisterMember> = "register_member";
template <>
constexpr std::string_view kOp<Heartbeats> = "heartbeats";
template <>
constexpr std::string_view kOp<MarkDead> = "mark_dead";
template <>
constexpr std::string_view kOp<SetDraining> = "set_draining";
template <>
constexpr std::string_view kOp<Leaving> = "leaving";
template <>
constexpr std::string_view kOp<RemoveMember> = "remove_member";
template <>
constexpr std::string_view kOp<CreateUser> = "create_user";
template <>
constexpr std::string_view kOp<SetUserGrants> = "set_user_grants";
template <>
constexpr std::string_view kOp<SetUserPassword> = "set_user_password";
template <>
constexpr std::string_view kOp<DeleteUser> = "delete_user";

template <>
constexpr std::string_view kOp<SetTarget> = "set_target";
template <>
constexpr std::string_view kOp<ArmFreeze> = "arm_freeze";
template <>
constexpr std::string_view kOp<VoidFreeze> = "void_freeze";
template <>
constexpr std::string_view kOp<CompleteMove> = "complete_move";
template <>
constexpr std::string_view kOp<ForcePromote> = "force_promote";
template <>
constexpr std::string_view kOp<ClearTarget> = "clear_target";

template <>
constexpr std::string_view kOp<SetMoveRate> = "set_move_rate";

template <>
constexpr std::string_view kOp<PauseMove> = "pause_move";
template <>
constexpr std::string_view kOp<PauseMoves> = "pause_moves";

// The partition that a command about a move is about.
template <class C, class F>
void describe_place(C& c, F& f) {
  f("name", c.name);
  f.hex("incarnation", c.incarnation);
  f("partition", c.partition);
}

template <Described<SetTarget> C, class F>
void describe(C& c, F& f) {
  describe_place(c, f);
  f("owner_node", c.owner_node);
  f("move_id", c.move_id);
  f("target_node", c.target_node);
  f("target_disk", c.target_disk);
  f("reason", c.reason);
  f.later("now_ms", c.now);
  f.later("max_bytes_per_second", c.max_bytes_per_second);
}

template <Described<ArmFreeze> C, class F>
void describe(C& c, F& f) {
  describe_place(c, f);
  f("owner_node", c.owner_node);
  f("move_id", c.move_id);
}

template <Described<VoidFreeze> C, class F>
void describe(C& c, F& f) {
  describe_place(c, f);
  f("owner_node", c.owner_node);
  f.hex("epoch", c.epoch);
}

template <Described<CompleteMove> C, class F>
void describe(C& c, F& f) {
  describe_place(c, f);
  f("source_node", c.source_node);
  f("move_id", c.move_id);
  f.hex("epoch", c.epoch);
  f.later("now_ms", c.now);
  f.later("receipt", c.receipt);
}

template <Described<ForcePromote> C, class F>
void describe(C& c, F& f) {
  describe_place(c, f);
  f("source_node", c.source_node);
  f("move_id", c.move_id);
  f("dead_mark", c.dead_mark);
  f("reason", c.reason);
  f.later("now_ms", c.now);
  f.later("receipt", c.receipt);
}

template <Described<ClearTarget> C, class F>
void describe(C& c, F& f) {
  describe_place(c, f);
  f("target_node", c.target_node);
  f("move_id", c.move_id);
  f("reason", c.reason);
  f.later("now_ms", c.now);
}

template <Described<SetMoveRate> C, class F>
void describe(C& c, F& f) {
  f("bytes_per_second", c.bytes_per_second);
}

template <Described<PauseMove> C, class F>
void describe(C& c, F& f) {
  describe_place(c, f);
  f("move_id", c.move_id);
  f("paused", c.paused);
}

template <Described<PauseMoves> C, class F>
void describe(C& c, F& f) {
  f("node", c.node);
  f("paused", c.paused);
}

template <Described<FoundCluster> C, class F>
void describe(C& c, F& f) {
  f("cluster_id", c.cluster_id);
}

template <Described<CreateTopic> C, class F>
void describe(C& c, F& f) {
  f("name", c.name);
  f.hex("incarnation", c.incarnation);
  f("partitions", c.partitions);
  f("retention_ms", c.retention_ms);
  f("visibility_timeout_ms", c.visibility_timeout_ms);
  f("max_in_flight_per_partition", c.max_in_flight_per_partition);
  f("max_acked_ahead_per_partition", c.max_acked_ahead_per_partition);
  f("created_at", c.created_at_s);
  f("owner", c.owner);
  f("schema", c.schema);
}

template <Described<UpdateTopic> C, class F>
void describe(C& c, F& f) {
  f("name", c.name);
  f.hex("incarnation", c.incarnation);
  f("retention_ms", c.retention_ms);
  f("visibility_timeout_ms", c.visibility_timeout_ms);
  f("max_in_flight_per_partition", c.max_in_flight_per_partition);
  f("max_acked_ahead_per_partition", c.max_acked_ahead_per_partition);
  f("partitions", c.partitions);
}

template <Described<DeleteTopic> C, class F>
void describe(C& c, F& f) {
  f("name", c.name);
  f.hex("incarnation", c.incarnation);
}

template <Described<PutSchema> C, class F>
void describe(C& c, F& f) {
  f("name", c.name);
  f.hex("incarnation", c.incarnation);
  f("version", c.version);
  f("schema", c.schema);
}

template <Described<AssignPartition> C, class F>
void describe(C& c, F& f) {
  f("name", c.name);
  f.hex("incarnation", c.incarnation);
  f("partition", c.partition);
  f("node", c.node);
  f("disk", c.disk);
}

template <Described<MarkUsed> C, class F>
void describe(C& c, F& f) {
  f("name", c.name);
  f.hex("incarnation", c.incarnation);
  f("partition", c.partition);
  f("node", c.node);
  f("disk", c.disk);
}

template <Described<RegisterMember> C, class F>
void describe(C& c, F& f) {
  f("id", c.id);
  f("http_addr", c.http_addr);
  f("cluster_addr", c.cluster_addr);
  f("boot_id", c.boot_id);
  f("disks", c.disks);
  f("now_ms", c.now);
}

template <Described<Heartbeats> C, class F>
void describe(C& c, F& f) {
  f("ids", c.ids);
  f("now_ms", c.now);
}

template <Described<MarkDead> C, class F>
void describe(C& c, F& f) {
  f("id", c.id);
  f("stamp", c.stamp);
}

template <Described<SetDraining> C, class F>
void describe(C& c, F& f) {
  f("id", c.id);
  f("draining", c.draining);
  f.later("wal_lost", c.wal_lost);
}

template <Described<Leaving> C, class F>
void describe(C& c, F& f) {
  f("id", c.id);
  f("drain_id", c.drain_id);
  f.later("dead_mark", c.dead_mark);
}

template <Described<RemoveMember> C, class F>
void describe(C& c, F& f) {
  f("id", c.id);
  f("drain_id", c.drain_id);
  f("now_ms", c.now);
}

template <Described<CreateUser> C, class F>
void describe(C& c, F& f) {
  f("username", c.username);
  f("password_hash", c.password_hash);
  f("grants", c.grants);
  f("root", c.root);
  f("now_ms", c.now);
}

template <Described<SetUserGrants> C, class F>
void describe(C& c, F& f) {
  f("username", c.username);
  f("version", c.version);
  f("grants", c.grants);
  f("now_ms", c.now);
}

template <Described<SetUserPassword> C, class F>
void describe(C& c, F& f) {
  f("username", c.username);
  f("version", c.version);
  f("password_hash", c.password_hash);
  f("now_ms", c.now);
}

template <Described<DeleteUser> C, class F>
void describe(C& c, F& f) {
  f("username", c.username);
  f("version", c.version);
}

// Reads the command if `op` is the one of T. `v` and `op` themselves are fields too.
template <class T>
bool decode_as(json::Value object, std::string_view op, Command& out) {
  if constexpr (std::is_same_v<T, Unsupported>) {
    return false;
  } else {
    if (op != kOp<T>) return false;
    std::int64_t version = 0;
    std::string name;
    T command;
    FieldReader f(object);
    f("v", version);
    f("op", name);
    describe(command, f);
    if (f.finish()) out = std::move(command);
    return true;
  }
}

template <class... T>
void decode_any(json::Value object, std::string_view op, std::variant<T...>& out) {
  (void)(decode_as<T>(object, op, out) || ...);
}

}  // namespace

std::string encode(const Command& command) {
  json::Writer writer;
  writer.begin_object().member("v", kCommandVersion).member("op", op_name(command));
  FieldWriter f(writer);
  std::visit(
      [&](const auto& c) {
        if constexpr (std::is_same_v<std::decay_t<decltype(c)>, Unsupported>) {
          NARAD_ASSERT(false, "an unsupported command has no encoding");
        } else {
          describe(c, f);
        }
      },
      command);
  writer.end_object();
  return writer.take();
}

Command decode_command(std::string_view bytes) {
  Unsupported unknown;
  auto document = json::Document::parse(std::string(bytes), json::kBodyDepthMax);
  if (!document) return unknown;
  const json::Value object = document.value().root();
  if (!object.is(json::Kind::object)) return unknown;
  if (auto op = object.find("op"); op && op->is(json::Kind::string)) unknown.op = op->as_string();
  if (auto v = object.find("v"); v && v->is(json::Kind::number)) {
    unknown.version = v->as_int64().value_or(0);
  }
  const std::string op = unknown.op;
  const bool version_fits = unknown.version == kCommandVersion;
  Command command = std::move(unknown);
  if (version_fits) decode_any(object, op, command);
  return command;
}

std::string_view op_name(const Command& command) {
  return std::visit(
      [](const auto& c) -> std::string_view {
        if constexpr (std::is_same_v<std::decay_t<decltype(c)>, Unsupported>) {
          return c.op;
        } else {
          return kOp<std::decay_t<decltype(c)>>;
        }
      },
      command);
}

std::string_view to_string(ResultCode code) {
  switch (code) {
    case ResultCode::done:
      return "done";
    case ResultCode::invalid:
      return "invalid";
    case ResultCode::not_found:
      return "not_found";
    case ResultCode::exists:
      return "exists";
    case ResultCode::conflict:
      return "conflict";
    case ResultCode::unsupported:
      return "unsupported";
  }
  NARAD_ASSERT(false, "unknown result code");
}

Error to_error(const CommandResult& result) {
  switch (result.code) {
    case ResultCode::done:
      break;
    case ResultCode::invalid:
      return Error(Errc::invalid_argument, result.text);
    case ResultCode::not_found:
      return Error(Errc::not_found, result.text);
    case ResultCode::exists:
      return Error(Errc::exists, result.text);
    case ResultCode::conflict:
      return Error(Errc::conflict, result.text);
    case ResultCode::unsupported:
      return Error(Errc::internal, result.text);
  }
  NARAD_ASSERT(false, "a done result is no error");
}

}  // namespace narad::metastore
