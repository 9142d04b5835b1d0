#include "cmd/narad/spec.h"

#include "cmd/narad/commands.h"
#include "pkg/base/text.h"
#include "pkg/client/types.h"

namespace narad::cli {
namespace {

using enum FlagKind;
constexpr std::size_t kAny = 1'000'000;
constexpr std::int64_t kCountMax = 1'000'000'000'000;
constexpr std::int64_t kRateMax = 1'000'000'000;
// -1: not given, as release 2.x writes it.
constexpr std::int64_t kNone = -1;
constexpr std::int64_t kPartitionMax = INT32_MAX;
constexpr std::int64_t kSizeMax = 1 << 30;
constexpr std::int64_t kMovesMax = 1000;  // of one answer

CommandSpec topic_group() {
  FlagSpec retention = {"retention", 0,
                        duration,    "0",
                        "DURATION",  "how long records are kept (168h; 0 = the server's default)"};
  FlagSpec visibility = {
      "visibility", 0,          duration,
      "0",          "DURATION", "how long a consumer has to ack (30s; 0 = the server's default)"};
  FlagSpec partitions = {"partitions",           0, integer,      "0", "N",
                         "number of partitions", 0, kPartitionMax};
  FlagSpec more_partitions = partitions;
  more_partitions.min = 1;
  more_partitions.help = "number of partitions; only more than there are";
  FlagSpec delay = {"delay", 0, duration, "0", "DURATION", "hold records back in the child"};
  CommandSpec group = {
      .name = "topic", .alias = "topics", .summary = "Create, list and change topics"};
  group.children = {
      {.name = "add",
       .operands = "NAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Create a topic",
       .flags = {partitions,
                 retention,
                 visibility,
                 {"parent", 0, text, "", "TOPIC", "attach to this topic as a fan-out child"},
                 delay,
                 {"max-in-flight", 0, integer, "0", "N", "leases a partition gives out at once"},
                 {"max-acked-ahead", 0, integer, "0", "N", "acks parked out of order"}},
       .connects = true,
       .run = topic_add},
      {.name = "ls",
       .summary = "List topics",
       .flags = {{"json", 0, boolean, "false", "", "one line of JSON"}},
       .connects = true,
       .run = topic_ls},
      {.name = "info",
       .operands = "NAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Show a topic and its partitions",
       .connects = true,
       .run = topic_info},
      {.name = "edit",
       .operands = "NAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Change a topic",
       .flags = {retention, visibility, more_partitions},
       .connects = true,
       .run = topic_edit},
      {.name = "rm",
       .operands = "NAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Delete a topic and its records",
       .flags = {{"force", 'f', boolean, "false", "", "do not ask"}},
       .connects = true,
       .run = topic_rm},
      {.name = "attach",
       .operands = "PARENT CHILD",
       .operands_min = 2,
       .operands_max = 2,
       .summary = "Copy what a topic gets into another",
       .flags = {delay},
       .connects = true,
       .run = topic_attach},
      {.name = "detach",
       .operands = "PARENT CHILD",
       .operands_min = 2,
       .operands_max = 2,
       .summary = "End a fan-out",
       .connects = true,
       .run = topic_detach},
      {.name = "children",
       .operands = "PARENT",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Show the children of a topic and their lag",
       .connects = true,
       .run = topic_children},
  };
  return group;
}

CommandSpec pub_command() {
  return {.name = "pub",
          .operands = "TOPIC [MESSAGE]",
          .operands_min = 1,
          .operands_max = 2,
          .summary = "Produce a message",
          .details =
              "The message is the file named with --file, else MESSAGE, else (or for \"-\") all "
              "of standard input. It is durable on the broker when the command says accepted.",
          .flags = {{"key", 'k', text, "", "KEY", "messages of one key keep their order"},
                    {"partition", 0, integer, "-1", "N", "produce to this partition", kNone,
                     kPartitionMax},
                    {"file", 'f', text, "", "PATH", "send this file"},
                    {"count", 0, integer, "1", "N", "send it so many times", 1, kCountMax},
                    {"rate", 0, integer, "0", "N", "messages a second, with --count", 0, kRateMax}},
          .connects = true,
          .run = pub};
}

CommandSpec sub_command() {
  return {
      .name = "sub",
      .operands = "TOPIC",
      .operands_min = 1,
      .operands_max = 1,
      .summary = "Consume messages until interrupted",
      .details =
          "Each message is printed, then acked. With --peek nothing is leased or acked: "
          "records are read as they arrive.",
      .flags = {{"peek", 0, boolean, "false", "", "look without consuming"},
                {"partition", 0, integer, "-1", "N", "this partition only", kNone, kPartitionMax},
                {"from", 0, integer, "-1", "OFFSET", "where --peek starts (needs --partition)",
                 kNone},
                {"raw", 0, boolean, "false", "", "payloads only"},
                {"no-ack", 0, boolean, "false", "", "let leases run out"}},
      .connects = true,
      .run = sub};
}

CommandSpec replay_command() {
  return {.name = "replay",
          .operands = "TOPIC",
          .operands_min = 1,
          .operands_max = 1,
          .summary = "Read a range of a partition again",
          .flags = {{"partition", 0, integer, "-1", "N", "the partition (required)", kNone,
                     kPartitionMax},
                    {"from", 0, integer, "-1", "OFFSET", "first offset (-1 = the oldest)", kNone},
                    {"to", 0, integer, "-1", "OFFSET", "end, exclusive (-1 = what is there now)",
                     kNone},
                    {"raw", 0, boolean, "false", "", "payloads only"}},
          .connects = true,
          .run = replay};
}

CommandSpec bench_command() {
  return {
      .name = "bench",
      .operands = "TOPIC",
      .operands_min = 1,
      .operands_max = 1,
      .summary = "Measure produce and consume",
      .details =
          "Closed loop by default: each worker sends its next request when the last one is "
          "answered. "
          "With --rate requests are due on a fixed schedule, and latency counts from when a "
          "request "
          "was due, so that a stalled broker cannot hide. With --verify every message carries an "
          "identity of its own, all are consumed and acked, and each is accounted for: the status "
          "is "
          "1 if one is lost, or if none was accepted; it wants a topic with nothing left to "
          "consume. "
          "Without --verify the status is 0 whatever fails, as in release 2.x.",
      .flags = {{"count", 0, integer, "10000", "N", "messages to produce", 1, kCountMax},
                {"size", 0, integer, "256", "BYTES", "size of a message", 1, kSizeMax},
                {"workers", 0, integer, "8", "N", "concurrent requests", 1, kBenchWorkersMax},
                {"consume", 0, boolean, "false", "", "then consume and ack"},
                {"batch", 0, integer, "1", "N", "messages a request", 1, client::kConsumeMax},
                {"duration", 0, duration, "0", "DURATION",
                 "stop producing after this time; what --rate had due by then is still sent"},
                {"rate", 0, integer, "0", "N", "messages a second (0 = as fast as answered)", 0,
                 kRateMax},
                {"verify", 0, boolean, "false", "", "account for every message"},
                {"output", 'o', choice, "text", "text|json", "how to print"}},
      .connects = true,
      .run = bench};
}

CommandSpec user_group() {
  FlagSpec grant = {"grant",
                    0,
                    list,
                    "",
                    "ACTION[:PATTERN,...]",
                    "produce, consume, create or admin; may be given again"};
  CommandSpec group = {.name = "user", .summary = "Manage users"};
  group.children = {
      {.name = "add",
       .operands = "USERNAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Create a user",
       .flags = {{"user-password", 0, text, "", "PASSWORD", "the new user's password (required)"},
                 grant},
       .connects = true,
       .run = user_add},
      {.name = "grant",
       .operands = "USERNAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Replace a user's grants (none given: clear them)",
       .flags = {grant},
       .connects = true,
       .run = user_grant},
      {.name = "ls", .summary = "List users", .connects = true, .run = user_ls},
      {.name = "rm",
       .operands = "USERNAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Delete a user",
       .connects = true,
       .run = user_rm},
  };
  return group;
}

CommandSpec ctx_group() {
  CommandSpec group = {.name = "ctx", .summary = "Remember connections under names"};
  group.children = {
      {.name = "add",
       .operands = "NAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Save a connection",
       .flags = {{"server", 0, text, "", "URL", "address of the broker (required)"},
                 {"user", 0, text, "", "NAME", "username"},
                 {"password", 0, text, "", "PASSWORD", "password"}},
       .run = ctx_add},
      {.name = "select",
       .operands = "NAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Use a saved connection from now on",
       .run = ctx_select},
      {.name = "ls", .summary = "List saved connections", .run = ctx_ls},
      {.name = "rm",
       .operands = "NAME",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Forget a saved connection",
       .run = ctx_rm},
  };
  return group;
}

std::vector<FlagSpec> pause_flags(const FlagSpec& output) {
  return {{"all", 0, boolean, "false", "", "all moves"},
          {"node", 0, text, "", "NODE", "all moves from or to this node"},
          output};
}

CommandSpec moves_group(const FlagSpec& output) {
  CommandSpec group = {
      .name = "moves",
      .summary = "Show partitions on their way to another node",
      .details =
          "One line per move: what its destination has copied and how fast, how long it will take "
          "yet (stalled: no byte has arrived for 30 s), how long the freeze of the partition was, "
          "and what holds the move up. --watch draws them anew every second on a terminal, and "
          "prints a line per change elsewhere (with -o json, the list whenever it changed); "
          "interrupting it stops nothing but the watching, and answers 130.",
      .flags = {{"watch", 'w', boolean, "false", "", "go on showing them"},
                {"detail", 0, boolean, "false", "", "everything the destinations say"},
                {"history", 0, boolean, "false", "", "those that have ended, the newest first"},
                {"limit", 0, integer, "20", "N", "so many of --history", 1, kMovesMax},
                {"node", 0, text, "", "NODE", "only from or to this node"},
                {"topic", 0, text, "", "TOPIC", "only of this topic"},
                output},
      .connects = true,
      .manners = Manners::operators,
      .run = cluster_moves};
  group.children = {
      {.name = "show",
       .operands = "ID",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Show one move, under way or ended, with all that is known of it",
       .flags = {output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_moves_show},
      {.name = "start",
       .operands = "TOPIC PARTITION",
       .operands_min = 2,
       .operands_max = 2,
       .summary = "Move a partition to a node",
       .details =
           "Answers as soon as the move is ordered, and 0 if the partition is there, or on its "
           "way there, already. Replaces a move to another place. Until it is over the "
           "partition stays where it is.",
       .flags = {{"to", 0, text, "", "NODE", "where it is to move (needed)"},
                 {"disk", 0, text, "", "DISK", "to this disk of the node (else its emptiest)"},
                 {"max-rate", 0, text, "", "RATE",
                  "no faster than that, such as 5MB/s; beside cluster throttle"},
                 output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_moves_start},
      {.name = "abort",
       .operands = "[TOPIC PARTITION]",
       .operands_max = 2,
       .summary = "Give up on the move of a partition, or on many",
       .details =
           "Safe at any time: the partition stays on its owner. 0: it was aborted; 1: it was "
           "not, and the answer says where the partition is and goes; 3: that could not be "
           "found out. With --all or --node those that are under way now are shown, and each "
           "is aborted by itself once you have agreed; what has ended by then stays as it is, "
           "and is said to be so: 0 if all were aborted or there are none, 1 if one was not or "
           "you did not agree.",
       .flags = {{"target", 0, text, "", "NODE", "only if it moves to this node"},
                 {"all", 0, boolean, "false", "", "every move that is under way"},
                 {"node", 0, text, "", "NODE", "every move from or to this node"},
                 {"yes", 'y', boolean, "false", "", "do not ask"},
                 output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_moves_abort},
      {.name = "pause",
       .operands = "[TOPIC PARTITION]",
       .operands_max = 2,
       .summary = "Let the move of a partition wait, or many",
       .details =
           "What is copied stays. A partition that is frozen is let go first; one whose new owner "
           "is being entered comes to its end before. --node and --all count for moves that begin "
           "later, too, until they are resumed. Answers 0 also if it was so before, and says so.",
       .flags = pause_flags(output),
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_moves_pause},
      {.name = "resume",
       .operands = "[TOPIC PARTITION]",
       .operands_max = 2,
       .summary = "Let what was paused go on",
       .details =
           "Takes back the pause that was given with the same words. A move that something else "
           "makes wait goes on waiting, and it is said what.",
       .flags = pause_flags(output),
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_moves_resume},
  };
  return group;
}

CommandSpec decommission_command() {
  return {
      .name = "decommission",
      .operands = "NODE",
      .operands_min = 1,
      .operands_max = 1,
      .summary = "Move everything off a node, then drop it from the cluster",
      .details =
          "Answers as soon as it is ordered, 0 also if it was before, and goes on by itself: "
          "the node takes no more messages and partitions, and leaves once it owns nothing "
          "and has handed over what it took. 1: refused, and every reason is named; the "
          "same with --dry-run if it would be. --wait shows what is left and what is waited "
          "for until the node has left; interrupting it ends nothing but the waiting, and "
          "answers 130.",
      .flags = {{"dry-run", 0, boolean, "false", "", "only say what would come of it"},
                {"wait", 0, boolean, "false", "", "watch until the node has left"},
                {"cancel", 0, boolean, "false", "", "take it back, with the moves that it began"},
                {"wal-lost", 0, boolean, "false", "",
                 "the node is dead, and messages that it took and did not hand over are given up"},
                {"output", 'o', choice, "", "text|json",
                 "how to print a dry run (json when not on a terminal)"}},
      .connects = true,
      .manners = Manners::operators,
      .run = cluster_decommission};
}

CommandSpec cluster_group() {
  FlagSpec output = {"output", 'o',         choice,
                     "",       "text|json", "how to print (json when not on a terminal)"};
  CommandSpec group = {.name = "cluster",
                       .summary = "Look at and change the cluster",
                       .manners = Manners::operators};
  group.children = {
      {.name = "members",
       .summary = "Show the nodes, and what those wait for that are to leave",
       .flags = {output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_members},
      moves_group(output),
      decommission_command(),
      {.name = "safe-to-stop",
       .operands = "NODE",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Say whether a node may be stopped for a while, and all that speaks against it",
       .details =
           "0: nothing does; 1: something does (partitions that nobody else has, moves from or to "
           "it, messages that it has not handed over, its vote); 3: that could not be found out. "
           "It is how things stand at the moment, and nothing is held as it is.",
       .flags = {output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_safe_to_stop},
      {.name = "throttle",
       .operands = "[RATE]",
       .operands_max = 1,
       .summary = "Show or set how fast partitions may move",
       .details =
           "RATE is what each node may receive by moves, all of them together, and what it may "
           "send: 50MB/s, 8MiB, or off for no limit. It counts at once, for moves under way too, "
           "and in place of "
           "moves.max_bytes_per_second of every node's configuration; clear lets that count again. "
           "Answers 0 also if it was so before, and says so.",
       .flags = {output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_throttle},
      {.name = "rebalance",
       .summary = "Plan moves now, so that every node has its share of the partitions",
       .details = "The leader does so by itself every few seconds and when nodes come or go.",
       .flags = {{"dry-run", 0, boolean, "false", "", "only say what would move"}, output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_rebalance},
      {.name = "quarantine",
       .summary = "List copies that nodes keep aside instead of deleting them",
       .details =
           "Narad never removes them: look with narad fsck at what is in one, bring back what is "
           "wanted, then remove it. 3 if a node did not say what it has.",
       .flags = {{"node", 0, text, "", "NODE", "only of this node"}, output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_quarantine},
      {.name = "explain",
       .operands = "TOPIC PARTITION",
       .operands_min = 2,
       .operands_max = 2,
       .summary = "Say why a partition is where it is, and where it would go",
       .flags = {output},
       .connects = true,
       .manners = Manners::operators,
       .run = cluster_explain},
  };
  return group;
}

CommandSpec server_group() {
  CommandSpec group = {.name = "server", .summary = "Start a broker; summarise one"};
  group.children = {
      {.name = "start",
       .summary = "Start a broker in the foreground",
       .details = "--dev listens on loopback without authentication and keeps its data in "
                  "~/.narad/data. Without it the settings are those of narad serve.",
       .flags = {{"dev", 0, boolean, "false", "", "loopback, no authentication"},
                 {"port", 0, integer, "7942", "N", "port to listen on (0 = any)", 0, kPortMax},
                 {"data-dir", 0, text, "", "DIR", "where data is kept"}},
       .run = server_start},
      {.name = "report",
       .summary = "Messages and bytes of every topic",
       .connects = true,
       .run = server_report},
  };
  return group;
}

CommandSpec serve_command() {
  return {.name = "serve",
          .operands_max = kAny,
          .summary = "Run the broker",
          .details =
              "Settings come from defaults, then --config, then NARAD_* variables, then flags. "
              "SIGTERM and SIGINT end it in order; SIGHUP reloads what can be reloaded.",
          .flags = {{"config", 0, text, "", "PATH", "JSON file with settings"},
                    {"port", 0, integer, "0", "N", "http.addr = :N", 0, kPortMax},
                    {"addr", 0, text, "", "HOST:PORT", "http.addr (wins over --port)"},
                    {"cluster-port", 0, integer, "0", "N", "cluster.addr = :N", 0, kPortMax},
                    {"node-id", 0, text, "", "ID", "cluster.node_id"},
                    {"data-dir", 0, text, "", "DIR", "storage.data_dir"},
                    {"log-level", 0, text, "", "LEVEL", "debug, info, warn or error"},
                    {"log-format", 0, text, "", "FORMAT", "json or text"},
                    {"bootstrap", 0, boolean, "false", "",
                     "found a cluster without waiting for peers that are silent (on one node, if "
                     "their disks are gone for good)"},
                    {"pprof-addr", 0, text, "", "ADDR", "accepted for compatibility; ignored"}},
          .manners = Manners::operators,
          .run = serve};
}

CommandSpec fsck_group() {
  FlagSpec live = {
      "allow-live", 0,  boolean,
      "false",      "", "go on although a node has it open (what it writes may look like damage)"};
  FlagSpec quick = {"quick", 0, boolean, "false", "", "headers only, no payloads of partitions"};
  FlagSpec output = {"output", 'o', choice, "text", "text|json", "how to print"};
  CommandSpec group = {
      .name = "fsck",
      .operands = "PATH...",
      .operands_min = 1,
      .operands_max = kAny,
      .summary = "Check data on disk, offline",
      .details =
          "PATH is a data directory, a partition directory or an ingress WAL. Reads only. The "
          "status is a sum: 0 clean, 4 problems found, 8 something could not be checked, 16 "
          "usage, 32 interrupted.",
      .flags = {quick, live, output},
      .manners = Manners::fsck,
      .run = fsck};
  group.children = {{.name = "wal",
                     .operands = "DIR",
                     .operands_min = 1,
                     .operands_max = 1,
                     .summary = "Check an ingress WAL, all of it",
                     .flags = {quick, live, output},
                     .manners = Manners::fsck,
                     .run = fsck_wal}};
  return group;
}

CommandSpec make_root() {
  CommandSpec root = {.name = "narad",
                      .summary = "A message broker in one binary, and its command line"};
  root.children = {
      serve_command(),
      server_group(),
      topic_group(),
      pub_command(),
      sub_command(),
      replay_command(),
      bench_command(),
      user_group(),
      ctx_group(),
      cluster_group(),
      fsck_group(),
      {.name = "version", .summary = "Print the version", .run = version},
      {.name = "completion",
       .operands = "bash|zsh|fish",
       .operands_min = 1,
       .operands_max = 1,
       .summary = "Print a completion script for a shell",
       .run = completion},
      {.name = "help",
       .operands = "[COMMAND...]",
       .operands_max = kAny,
       .summary = "Explain a command",
       .run = help},
      {.name = "man", .summary = "Print the manual page (roff)", .run = man},
  };
  return root;
}

}  // namespace

const CommandSpec& root_command() {
  static const CommandSpec kRoot = make_root();
  return kRoot;
}

const std::vector<FlagSpec>& connection_flags() {
  static const std::vector<FlagSpec> kFlags = {
      {"server", 's', text, "", "URL",
       "address of the broker (else NARAD_ADDR, the context, http://127.0.0.1:7942)"},
      {"user", 'u', text, "", "NAME", "username (else NARAD_USER, the context)"},
      {"password", 'p', text, "", "PASSWORD", "password (else NARAD_PASS, the context)"}};
  return kFlags;
}

const CommandSpec* find_child(const CommandSpec& group, std::string_view name) {
  for (const CommandSpec& child : group.children) {
    if (child.name == name || (!child.alias.empty() && child.alias == name)) return &child;
  }
  return nullptr;
}

std::string CommandPath::text() const {
  std::string out;
  for (const CommandSpec* step : steps) {
    if (!out.empty()) out += ' ';
    out += step->name;
  }
  return out;
}

}  // namespace narad::cli
