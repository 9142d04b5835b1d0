#pragma once
// The settings of a node: defaults, then the JSON file, then the environment, then flags; each
// layer overrides the one before, and then everything is validated together (http-api section 4).
// Pure: the file's text, the environment and the flags are passed in.
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/result.h"
#include "pkg/base/text.h"

namespace narad {

// Phases of a move that timing.move_hold can hold open, in their order.
inline constexpr std::array<std::string_view, 7> kMovePhases = {
    "queued", "copying", "freezing", "draining", "fencing", "installing", "flipping"};

struct ClusterPeer {
  std::string id;
  std::string addr;  // host:port
  friend bool operator==(const ClusterPeer&, const ClusterPeer&) = default;
};

// Field comments: meaning where the name does not say it. Defaults are those of the contract.
struct Config {
  struct Http {
    std::string addr = ":7942";
    std::string pprof_addr;  // accepted, ignored, warned about once
    Nanos read_timeout = std::chrono::seconds(10);
    Nanos write_timeout = std::chrono::seconds(30);
    Nanos idle_timeout = std::chrono::seconds(60);
    Nanos shutdown_grace = std::chrono::seconds(10);
    Nanos max_consume_wait = std::chrono::seconds(10);  // 0: a ceiling of 30 s
    std::uint32_t max_connections = 10'000;
    std::uint64_t max_header_bytes = 65'536;
    std::uint64_t max_batch_bytes = 16u << 20;
    std::string tls_cert_file;
    std::string tls_key_file;
  } http;
  struct Cluster {
    std::string addr = ":7943";
    std::string node_id;  // empty: node.json, or the host name
    std::vector<ClusterPeer> peers;
    std::vector<std::string> initial_members;
    std::string secret;  // NARAD_CLUSTER_SECRET only
    // --bootstrap only: found a cluster without waiting for peers that are silent.
    bool bootstrap = false;
  } cluster;
  struct Storage {
    std::string data_dir = "data";
    std::vector<std::string> data_dirs;  // further disks for partitions
    std::string codec = "none";          // none, zstd
    std::string compression_level = "fastest";
    std::int64_t idle_log_eviction_ms = 1'800'000;  // 0: off
  } storage;
  struct Ingress {
    std::uint64_t max_backlog_bytes = 10ull << 30;
  } ingress;
  struct Topics {
    std::uint32_t default_partitions = 3;
    std::uint32_t max_partitions = 108;
    std::int64_t default_retention_age_ms = 604'800'000;
    std::int64_t default_visibility_timeout_ms = 30'000;
    std::int64_t default_max_in_flight_per_partition = 1024;
    std::int64_t default_max_acked_ahead_per_partition = 1024;
  } topic;
  struct Fanout {
    std::uint32_t max_batch_records = 4096;
    std::uint64_t max_batch_bytes = 4u << 20;
    std::uint32_t linger_ms = 25;
  } fanout;
  struct Moves {
    std::uint64_t max_bytes_per_second = 0;  // 0: no limit
  } moves;
  struct Limits {
    std::uint64_t requests_per_second = 0;  // per user; 0: no limit
    std::uint64_t bytes_per_second = 0;
  } limits;
  struct Log {
    std::string level = "info";   // debug, info, warn, error
    std::string format = "json";  // json, text
  } log;
  struct Security {
    bool enabled = true;
    std::string cluster_tls_cert_file;
    std::string cluster_tls_key_file;
    std::string cluster_tls_ca_file;
    std::string admin_password;  // NARAD_ADMIN_PASSWORD only
  } security;
  struct Audit {
    std::string file;
  } audit;
  // Time constants, for tests only: refused unless `--dev` or NARAD_TESTING=1.
  struct Timing {
    Nanos retention_check = std::chrono::seconds(60);
    Nanos idle_check = std::chrono::seconds(60);
    Nanos hwm_sync = std::chrono::seconds(5);
    Nanos dispatch_retry = std::chrono::seconds(1);
    Nanos dispatch_grace = std::chrono::seconds(3);
    Nanos ingress_retry = std::chrono::seconds(1);
    Nanos raft_tick = std::chrono::milliseconds(50);  // heartbeats; elections take 10 to 20
    Nanos heartbeat = std::chrono::seconds(5);        // of members to the leader
    Nanos dead_after = std::chrono::seconds(30);      // of their silence
    Nanos join_retry = std::chrono::seconds(2);       // asking peers, while not a member
    Nanos move_tick = std::chrono::seconds(1);        // looking for moves to this node
    Nanos freeze_ttl = std::chrono::seconds(30);      // of a partition whose tail is copied
    Nanos move_hold{0};           // a move to this node stays that long in that phase; 0: off
    std::string move_hold_phase;  // one of kMovePhases, or empty
  } timing;
};

struct ConfigInput {
  std::optional<std::string> file_text;    // content of --config
  std::string file_name;                   // for messages
  std::map<std::string, std::string> env;  // a variable that is set but empty counts
  std::vector<std::pair<std::string, std::string>>
      flags;               // (JSON path, value as in the environment)
  bool dev = false;        // --dev: `timing.*` is allowed
  bool bootstrap = false;  // --bootstrap
};

// All problems together, one a line, each beginning with "config: "; invalid_argument. REQUIRES:
// flags name settings that exist.
Result<Config> load_config(const ConfigInput& input);

// zstd level of storage.compression_level: fastest 1, default 3, better 7, best 11.
int compression_level_of(const Config::Storage& storage);

// Every setting: JSON path, environment variable (empty if none) and default, for `--help`, the
// manual page and the test that holds documentation and code together.
struct SettingInfo {
  std::string path;
  std::string env;
  std::string default_value;
};
std::vector<SettingInfo> describe_settings();

}  // namespace narad
