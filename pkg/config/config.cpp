#include "pkg/config/config.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "pkg/base/assert.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"

namespace narad {
namespace {

using Problems = std::vector<std::string>;

// One setting, whatever its type: how to take it from text (environment, flags) and from JSON.
struct Setting {
  std::string path;
  std::string env;
  std::string default_value;
  std::function<Result<void>(std::string_view)> from_text;
  std::function<Result<void>(json::Value)> from_json;
  bool given = false;
};

Error wrong(std::string_view expected) {
  return Error(Errc::invalid_argument, cat("expected ", expected));
}

Result<bool> parse_go_bool(std::string_view text) {
  for (std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return false;
  }
  return wrong("true or false");
}

void lower(std::string& text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
}

bool same_name(std::string_view a, std::string_view b) {
  std::string x(a), y(b);
  lower(x);
  lower(y);
  return x == y;
}

std::string trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (auto part = trim(text.substr(0, comma)); !part.empty()) parts.push_back(std::move(part));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

class Schema {
 public:
  explicit Schema(Config& config) {
    auto& c = config;
    text("http.addr", "NARAD_HTTP_ADDR", c.http.addr);
    text("http.pprof_addr", "NARAD_HTTP_PPROF_ADDR", c.http.pprof_addr);
    duration("http.read_timeout", "NARAD_HTTP_READ_TIMEOUT", c.http.read_timeout);
    duration("http.write_timeout", "NARAD_HTTP_WRITE_TIMEOUT", c.http.write_timeout);
    duration("http.idle_timeout", "NARAD_HTTP_IDLE_TIMEOUT", c.http.idle_timeout);
    duration("http.shutdown_grace", "NARAD_HTTP_SHUTDOWN_GRACE", c.http.shutdown_grace);
    duration("http.max_consume_wait", "NARAD_HTTP_MAX_CONSUME_WAIT", c.http.max_consume_wait);
    number("http.max_connections", "NARAD_HTTP_MAX_CONNECTIONS", c.http.max_connections);
    number("http.max_header_bytes", "NARAD_HTTP_MAX_HEADER_BYTES", c.http.max_header_bytes);
    number("http.max_batch_bytes", "NARAD_HTTP_MAX_BATCH_BYTES", c.http.max_batch_bytes);
    text("http.tls_cert_file", "NARAD_HTTP_TLS_CERT_FILE", c.http.tls_cert_file);
    text("http.tls_key_file", "NARAD_HTTP_TLS_KEY_FILE", c.http.tls_key_file);
    text("cluster.addr", "NARAD_CLUSTER_ADDR", c.cluster.addr);
    text("cluster.node_id", "NARAD_NODE_ID", c.cluster.node_id);
    peers("cluster.peers", "NARAD_CLUSTER_PEERS", c.cluster.peers);
    list("cluster.initial_members", "NARAD_CLUSTER_INITIAL_MEMBERS", c.cluster.initial_members);
    text("storage.data_dir", "NARAD_DATA_DIR", c.storage.data_dir);
    list("storage.data_dirs", "NARAD_STORAGE_DATA_DIRS", c.storage.data_dirs);
    text("storage.codec", "", c.storage.codec);
    text("storage.compression_level", "", c.storage.compression_level);
    number("storage.idle_log_eviction_ms", "", c.storage.idle_log_eviction_ms);
    number("ingress.max_backlog_bytes", "NARAD_INGRESS_MAX_BACKLOG_BYTES",
           c.ingress.max_backlog_bytes);
    number("topic.default_partitions", "NARAD_TOPIC_DEFAULT_PARTITIONS",
           c.topic.default_partitions);
    number("topic.max_partitions", "NARAD_TOPIC_MAX_PARTITIONS", c.topic.max_partitions);
    number("topic.default_retention_age_ms", "NARAD_TOPIC_DEFAULT_RETENTION_AGE_MS",
           c.topic.default_retention_age_ms);
    number("topic.default_visibility_timeout_ms", "NARAD_TOPIC_DEFAULT_VISIBILITY_TIMEOUT_MS",
           c.topic.default_visibility_timeout_ms);
    number("topic.default_max_in_flight_per_partition",
           "NARAD_TOPIC_DEFAULT_MAX_IN_FLIGHT_PER_PARTITION",
           c.topic.default_max_in_flight_per_partition);
    number("topic.default_max_acked_ahead_per_partition",
           "NARAD_TOPIC_DEFAULT_MAX_ACKED_AHEAD_PER_PARTITION",
           c.topic.default_max_acked_ahead_per_partition);
    number("fanout.max_batch_records", "NARAD_FANOUT_MAX_BATCH_RECORDS",
           c.fanout.max_batch_records);
    number("fanout.max_batch_bytes", "NARAD_FANOUT_MAX_BATCH_BYTES", c.fanout.max_batch_bytes);
    number("fanout.linger_ms", "NARAD_FANOUT_LINGER_MS", c.fanout.linger_ms);
    number("moves.max_bytes_per_second", "NARAD_MOVES_MAX_BYTES_PER_SECOND",
           c.moves.max_bytes_per_second);
    number("limits.requests_per_second", "NARAD_LIMITS_REQUESTS_PER_SECOND",
           c.limits.requests_per_second);
    number("limits.bytes_per_second", "NARAD_LIMITS_BYTES_PER_SECOND", c.limits.bytes_per_second);
    text("log.level", "NARAD_LOG_LEVEL", c.log.level);
    text("log.format", "NARAD_LOG_FORMAT", c.log.format);
    flag("security.enabled", "NARAD_SECURITY_ENABLED", c.security.enabled);
    text("security.cluster_tls_cert_file", "NARAD_CLUSTER_TLS_CERT_FILE",
         c.security.cluster_tls_cert_file);
    text("security.cluster_tls_key_file", "NARAD_CLUSTER_TLS_KEY_FILE",
         c.security.cluster_tls_key_file);
    text("security.cluster_tls_ca_file", "NARAD_CLUSTER_TLS_CA_FILE",
         c.security.cluster_tls_ca_file);
    text("audit.file", "NARAD_AUDIT_FILE", c.audit.file);
    duration("timing.retention_check", "NARAD_TIMING_RETENTION_CHECK", c.timing.retention_check);
    duration("timing.idle_check", "NARAD_TIMING_IDLE_CHECK", c.timing.idle_check);
    duration("timing.hwm_sync", "NARAD_TIMING_HWM_SYNC", c.timing.hwm_sync);
    duration("timing.dispatch_retry", "NARAD_TIMING_DISPATCH_RETRY", c.timing.dispatch_retry);
    duration("timing.dispatch_grace", "NARAD_TIMING_DISPATCH_GRACE", c.timing.dispatch_grace);
    duration("timing.ingress_retry", "NARAD_TIMING_INGRESS_RETRY", c.timing.ingress_retry);
    duration("timing.raft_tick", "NARAD_TIMING_RAFT_TICK", c.timing.raft_tick);
    duration("timing.heartbeat", "NARAD_TIMING_HEARTBEAT", c.timing.heartbeat);
    duration("timing.dead_after", "NARAD_TIMING_DEAD_AFTER", c.timing.dead_after);
    duration("timing.join_retry", "NARAD_TIMING_JOIN_RETRY", c.timing.join_retry);
    duration("timing.move_tick", "NARAD_TIMING_MOVE_TICK", c.timing.move_tick);
    duration("timing.freeze_ttl", "NARAD_TIMING_FREEZE_TTL", c.timing.freeze_ttl);
    duration("timing.move_hold", "NARAD_TIMING_MOVE_HOLD", c.timing.move_hold);
    text("timing.move_hold_phase", "NARAD_TIMING_MOVE_HOLD_PHASE", c.timing.move_hold_phase);
  }

  std::vector<Setting>& all() { return settings_; }
  // Names match without regard to case, as they did in release 2.x.
  Setting* find(std::string_view path) {
    for (Setting& s : settings_) {
      if (same_name(s.path, path)) return &s;
    }
    return nullptr;
  }
  bool is_section(std::string_view path) const {
    return std::any_of(settings_.begin(), settings_.end(), [&](const Setting& s) {
      return s.path.size() > path.size() && s.path[path.size()] == '.' &&
             same_name(std::string_view(s.path).substr(0, path.size()), path);
    });
  }

 private:
  Setting& add(std::string_view path, std::string_view env, std::string default_value) {
    settings_.push_back(
        Setting{std::string(path), std::string(env), std::move(default_value), {}, {}, false});
    return settings_.back();
  }

  void text(std::string_view path, std::string_view env, std::string& out) {
    Setting& s = add(path, env, out);
    s.from_text = [&out](std::string_view v) -> Result<void> {
      out = v;
      return ok();
    };
    s.from_json = [&out](json::Value v) -> Result<void> {
      if (!v.is(json::Kind::string)) return wrong("a string");
      out = v.as_string();
      return ok();
    };
  }
  void flag(std::string_view path, std::string_view env, bool& out) {
    Setting& s = add(path, env, out ? "true" : "false");
    s.from_text = [&out](std::string_view v) -> Result<void> {
      NARAD_TRY(out, parse_go_bool(v));
      return ok();
    };
    s.from_json = [&out](json::Value v) -> Result<void> {
      if (!v.is(json::Kind::boolean)) return wrong("true or false");
      out = v.as_bool();
      return ok();
    };
  }
  template <class T>
  static Result<T> narrow(std::optional<std::int64_t> wide) {
    const auto low =
        std::is_signed_v<T> ? static_cast<std::int64_t>(std::numeric_limits<T>::min()) : 0;
    if (!wide || *wide < low || std::cmp_greater(*wide, std::numeric_limits<T>::max())) {
      return wrong(cat("a whole number from ", low, " to ",
                       std::min<std::uint64_t>(
                           static_cast<std::uint64_t>(std::numeric_limits<T>::max()),
                           static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))));
    }
    return static_cast<T>(*wide);
  }
  template <class T>
  void number(std::string_view path, std::string_view env, T& out) {
    Setting& s = add(path, env, std::to_string(out));
    s.from_text = [&out](std::string_view v) -> Result<void> {
      NARAD_TRY(out, narrow<T>(parse_number<std::int64_t>(v)));
      return ok();
    };
    s.from_json = [&out](json::Value v) -> Result<void> {
      if (!v.is(json::Kind::number)) return wrong("a whole number");
      NARAD_TRY(out, narrow<T>(v.as_int64()));
      return ok();
    };
  }
  void duration(std::string_view path, std::string_view env, Nanos& out) {
    Setting& s = add(path, env, format_duration(out));
    s.from_text = [&out](std::string_view v) -> Result<void> {
      NARAD_TRY(out, parse_duration(v));
      return ok();
    };
    s.from_json = [&out](json::Value v) -> Result<void> {
      if (v.is(json::Kind::string)) {
        NARAD_TRY(out, parse_duration(v.as_string()));
        return ok();
      }
      const auto nanos = v.is(json::Kind::number) ? v.as_int64() : std::nullopt;
      if (!nanos) return wrong("a duration like \"10s\", or whole nanoseconds");
      out = Nanos(*nanos);
      return ok();
    };
  }
  void list(std::string_view path, std::string_view env, std::vector<std::string>& out) {
    Setting& s = add(path, env, "");
    s.from_text = [&out](std::string_view v) -> Result<void> {
      out = split_list(v);
      return ok();
    };
    s.from_json = [&out](json::Value v) -> Result<void> {
      if (!v.is(json::Kind::array)) return wrong("an array of strings");
      std::vector<std::string> items;
      for (std::size_t i = 0; i < v.size(); ++i) {
        if (!v.element(i).is(json::Kind::string)) return wrong("an array of strings");
        items.emplace_back(v.element(i).as_string());
      }
      out = std::move(items);
      return ok();
    };
  }
  void peers(std::string_view path, std::string_view env, std::vector<ClusterPeer>& out) {
    Setting& s = add(path, env, "");
    s.from_text = [&out](std::string_view v) -> Result<void> {
      std::vector<ClusterPeer> items;
      for (const std::string& part : split_list(v)) {
        const std::size_t at = part.find('@');
        if (at == std::string::npos) return wrong("id@host:port,…");
        items.push_back({trim(part.substr(0, at)), trim(part.substr(at + 1))});
      }
      out = std::move(items);
      return ok();
    };
    s.from_json = [&out](json::Value v) -> Result<void> {
      if (!v.is(json::Kind::array)) return wrong("an array of {\"id\", \"addr\"}");
      std::vector<ClusterPeer> items;
      for (std::size_t i = 0; i < v.size(); ++i) {
        auto peer = peer_from(v.element(i));
        if (!peer) return peer.error().with_context(cat("entry ", i));
        items.push_back(std::move(peer).value());
      }
      out = std::move(items);
      return ok();
    };
  }
  static Result<ClusterPeer> peer_from(json::Value item) {
    if (!item.is(json::Kind::object)) return wrong("{\"id\", \"addr\"}");
    ClusterPeer peer;
    for (std::size_t k = 0; k < item.size(); ++k) {
      const json::Member member = item.member(k);
      std::string* field = same_name(member.name, "id")     ? &peer.id
                           : same_name(member.name, "addr") ? &peer.addr
                                                            : nullptr;
      if (field == nullptr) {
        return Error(Errc::invalid_argument, cat("unknown key ", json::quote(member.name)));
      }
      if (member.value.is(json::Kind::null)) continue;
      if (!member.value.is(json::Kind::string)) return wrong(cat(member.name, " to be a string"));
      *field = member.value.as_string();
    }
    return peer;
  }

  std::vector<Setting> settings_;
};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row[b.size()];
}

std::string suggestion(Schema& schema, std::string_view unknown) {
  std::string best;
  std::size_t best_distance = 4;  // further off is no typing mistake
  for (const Setting& s : schema.all()) {
    const std::size_t d = edit_distance(s.path, unknown.substr(0, 80));
    if (d < best_distance) {
      best_distance = d;
      best = s.path;
    }
  }
  return best.empty() ? "" : cat(" (did you mean \"", best, "\"?)");
}

void apply_object(Schema& schema, json::Value object, const std::string& prefix,
                  Problems& problems) {
  for (std::size_t i = 0; i < object.size(); ++i) {
    const json::Member member = object.member(i);
    const std::string path =
        prefix.empty() ? std::string(member.name) : cat(prefix, ".", member.name);
    if (Setting* setting = schema.find(path)) {
      if (member.value.is(json::Kind::null)) continue;  // as if it were not there
      // So is an empty data directory, in the file only (contract).
      if (setting->path == "storage.data_dir" && member.value.is(json::Kind::string) &&
          member.value.as_string().empty()) {
        continue;
      }
      setting->given = true;
      if (auto r = setting->from_json(member.value); !r) {
        problems.push_back(cat(setting->path, ": ", r.error().text()));
      }
    } else if (schema.is_section(path)) {
      if (member.value.is(json::Kind::object)) {
        apply_object(schema, member.value, path, problems);
      } else if (!member.value.is(json::Kind::null)) {
        problems.push_back(cat(path, ": expected an object"));
      }
    } else {
      problems.push_back(cat("unknown key ", json::quote(path), suggestion(schema, path)));
    }
  }
}

bool blank(std::string_view text) { return trim(text).empty(); }

template <std::size_t N>
bool one_of(std::string_view value, const std::string_view (&allowed)[N]) {
  return std::find(std::begin(allowed), std::end(allowed), value) != std::end(allowed);
}

void validate_peers(const Config& c, Problems& problems) {
  const auto& peers = c.cluster.peers;
  if (peers.empty()) return;
  if (peers.size() < 3) problems.push_back("cluster.peers: give none, or at least 3");
  if (blank(c.cluster.node_id))
    problems.push_back("cluster.node_id: required when cluster.peers is set");
  std::set<std::string> ids, addrs;
  bool self_by_id = false;
  for (const ClusterPeer& peer : peers) {
    if (blank(peer.id) || blank(peer.addr))
      problems.push_back("cluster.peers: an id or addr is blank");
    if (!ids.insert(peer.id).second)
      problems.push_back(cat("cluster.peers: id \"", peer.id, "\" twice"));
    if (!addrs.insert(peer.addr).second) {
      problems.push_back(cat("cluster.peers: addr \"", peer.addr, "\" twice"));
    }
    if (peer.id != c.cluster.node_id) continue;
    self_by_id = true;
    const std::string& own = c.cluster.addr;
    const bool same = own.starts_with(":") ? peer.addr.ends_with(own) : peer.addr == own;
    if (!same) {
      problems.push_back(cat("cluster.peers: this node is \"", peer.id, "\" at ", peer.addr,
                             ", but cluster.addr is ", own));
    }
  }
  if (!self_by_id) {
    problems.push_back(cat("cluster.peers: no entry for this node (\"", c.cluster.node_id, "\")"));
  }
}

std::string names_of_phases() {
  std::string names;
  for (const std::string_view phase : kMovePhases) names += cat(names.empty() ? "" : ", ", phase);
  return names;
}

void validate(Config& c, Problems& problems) {
  const auto require = [&](bool holds, std::string problem) {
    if (!holds) problems.push_back(std::move(problem));
  };
  const Nanos zero{0};
  require(!blank(c.http.addr), "http.addr: must not be blank");
  // Port 0 is another one each time.
  require(c.http.addr != c.cluster.addr || c.http.addr.ends_with(":0"),
          "http.addr: must differ from cluster.addr");
  require(c.http.read_timeout > zero, "http.read_timeout: must be above 0");
  require(c.http.write_timeout > zero, "http.write_timeout: must be above 0");
  require(c.http.write_timeout > c.http.max_consume_wait,
          "http.write_timeout: must be longer than http.max_consume_wait");
  require(c.http.idle_timeout > zero, "http.idle_timeout: must be above 0");
  require(c.http.shutdown_grace > zero && c.http.shutdown_grace >= c.http.max_consume_wait,
          "http.shutdown_grace: must be above 0 and at least http.max_consume_wait");
  require(c.http.max_consume_wait >= zero, "http.max_consume_wait: must not be negative");
  require(c.http.max_connections > 0, "http.max_connections: must be above 0");
  require(c.http.max_header_bytes >= 1024, "http.max_header_bytes: must be at least 1024");
  require(c.http.max_batch_bytes >= 1u << 20 && c.http.max_batch_bytes <= 1u << 30,
          "http.max_batch_bytes: must be from 1 MiB to 1 GiB");
  require(c.http.tls_cert_file.empty() == c.http.tls_key_file.empty(),
          "http.tls_cert_file and http.tls_key_file: give both or none");
  require(!blank(c.cluster.addr), "cluster.addr: must not be blank");
  validate_peers(c, problems);
  if (!c.cluster.peers.empty() && c.security.enabled) {
    require(!c.cluster.secret.empty(),
            "NARAD_CLUSTER_SECRET: required when cluster.peers is set and security is enabled");
  }
  require(!blank(c.storage.data_dir), "storage.data_dir: must not be blank");
  lower(c.storage.codec);
  require(one_of(c.storage.codec, {"none", "zstd"}), "storage.codec: use none or zstd");
  require(one_of(c.storage.compression_level, {"fastest", "default", "better", "best"}),
          "storage.compression_level: use fastest, default, better or best");
  require(c.storage.idle_log_eviction_ms == 0 || c.storage.idle_log_eviction_ms >= 60'000,
          "storage.idle_log_eviction_ms: use 0 (off) or at least 60000");
  require(c.ingress.max_backlog_bytes >= 64u << 20, "ingress.max_backlog_bytes: at least 64 MiB");
  require(c.topic.max_partitions > 0, "topic.max_partitions: must be above 0");
  require(c.topic.default_partitions >= 1 && c.topic.default_partitions <= c.topic.max_partitions,
          "topic.default_partitions: must be from 1 to topic.max_partitions");
  require(c.topic.default_retention_age_ms == 0 || c.topic.default_retention_age_ms >= 3'600'000,
          "topic.default_retention_age_ms: use 0 (for ever) or at least 3600000");
  require(c.topic.default_visibility_timeout_ms >= 0,
          "topic.default_visibility_timeout_ms: must not be negative");
  require(c.topic.default_max_in_flight_per_partition > 0,
          "topic.default_max_in_flight_per_partition: must be above 0");
  require(c.topic.default_max_acked_ahead_per_partition > 0,
          "topic.default_max_acked_ahead_per_partition: must be above 0");
  require(c.fanout.max_batch_records > 0, "fanout.max_batch_records: must be above 0");
  require(c.fanout.max_batch_bytes > 0, "fanout.max_batch_bytes: must be above 0");
  lower(c.log.level);
  require(one_of(c.log.level, {"debug", "info", "warn", "error"}),
          "log.level: use debug, info, warn or error");
  require(one_of(c.log.format, {"json", "text"}), "log.format: use json or text");
  const int tls = static_cast<int>(!c.security.cluster_tls_cert_file.empty()) +
                  static_cast<int>(!c.security.cluster_tls_key_file.empty()) +
                  static_cast<int>(!c.security.cluster_tls_ca_file.empty());
  require(tls == 0 || tls == 3,
          "security.cluster_tls_cert_file, _key_file, _ca_file: give all three or none");
  for (Nanos t :
       {c.timing.retention_check, c.timing.idle_check, c.timing.hwm_sync, c.timing.dispatch_retry,
        c.timing.dispatch_grace, c.timing.ingress_retry, c.timing.raft_tick, c.timing.heartbeat,
        c.timing.dead_after, c.timing.join_retry, c.timing.move_tick, c.timing.freeze_ttl}) {
    require(t > zero, "timing: every duration must be above 0");
  }
  require(c.timing.move_hold >= zero, "timing.move_hold: must not be negative");
  const std::string& phase = c.timing.move_hold_phase;
  const bool known = std::find(kMovePhases.begin(), kMovePhases.end(), phase) != kMovePhases.end();
  require(phase.empty() || known, cat("timing.move_hold_phase: \"", phase,
                                      "\" is no phase of a move: use ", names_of_phases()));
  require(c.timing.move_hold == zero || !phase.empty(),
          "timing.move_hold: say which phase with timing.move_hold_phase");
}

}  // namespace

Result<Config> load_config(const ConfigInput& input) {
  Config config;
  Schema schema(config);
  Problems problems;
  if (input.file_text) {
    auto document = json::Document::parse(*input.file_text, json::kBodyDepthMax);
    if (!document) {
      problems.push_back(cat(input.file_name, ": ", document.error().text()));
    } else if (!document.value().root().is(json::Kind::object)) {
      problems.push_back(cat(input.file_name, ": expected a JSON object"));
    } else {
      apply_object(schema, document.value().root(), "", problems);
    }
  }
  const auto take_text = [&](Setting& setting, std::string_view value, std::string_view from) {
    setting.given = true;
    if (auto r = setting.from_text(value); !r) {
      problems.push_back(cat(from, "=\"", value, "\" (", setting.path, "): ", r.error().text()));
    }
  };
  for (Setting& setting : schema.all()) {
    if (setting.env.empty()) continue;
    if (auto it = input.env.find(setting.env); it != input.env.end()) {
      take_text(setting, it->second, setting.env);
    }
  }
  const auto secret_of = [&](const char* name) {
    auto it = input.env.find(name);
    return it == input.env.end() ? std::string() : it->second;
  };
  config.cluster.secret = secret_of("NARAD_CLUSTER_SECRET");
  config.security.admin_password = secret_of("NARAD_ADMIN_PASSWORD");
  config.cluster.bootstrap = input.bootstrap;
  for (const auto& [path, value] : input.flags) {
    Setting* setting = schema.find(path);
    NARAD_ASSERT(setting != nullptr, path);
    take_text(*setting, value, "flag");
  }
  const bool testing = secret_of("NARAD_TESTING") == "1";
  for (const Setting& setting : schema.all()) {
    if (setting.given && setting.path.starts_with("timing.") && !input.dev && !testing) {
      problems.push_back(
          cat(setting.path, ": time constants are for tests; allowed with NARAD_TESTING=1"));
    }
  }
  validate(config, problems);
  if (problems.empty()) return config;
  std::string text;
  for (const std::string& problem : problems) {
    if (!text.empty()) text += '\n';
    text += cat("config: ", problem);
  }
  return Error(Errc::invalid_argument, text);
}

int compression_level_of(const Config::Storage& storage) {
  if (storage.compression_level == "best") return 11;
  if (storage.compression_level == "better") return 7;
  if (storage.compression_level == "default") return 3;
  return 1;
}

std::vector<SettingInfo> describe_settings() {
  Config config;
  Schema schema(config);
  std::vector<SettingInfo> infos;
  for (const Setting& s : schema.all()) infos.push_back({s.path, s.env, s.default_value});
  return infos;
}

}  // namespace narad
