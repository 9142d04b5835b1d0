// Section 4 of the contract, row by row: names, defaults, and where validation begins.
#include <gtest/gtest.h>

#include <map>

#include "pkg/config/config.h"

namespace narad {
namespace {

struct Row {
  const char* path;
  const char* env;
  const char* default_value;
};
constexpr Row kRows[] = {
    {"http.addr", "NARAD_HTTP_ADDR", ":7942"},
    {"http.pprof_addr", "NARAD_HTTP_PPROF_ADDR", ""},
    {"http.read_timeout", "NARAD_HTTP_READ_TIMEOUT", "10s"},
    {"http.write_timeout", "NARAD_HTTP_WRITE_TIMEOUT", "30s"},
    {"http.idle_timeout", "NARAD_HTTP_IDLE_TIMEOUT", "1m0s"},
    {"http.shutdown_grace", "NARAD_HTTP_SHUTDOWN_GRACE", "10s"},
    {"http.max_consume_wait", "NARAD_HTTP_MAX_CONSUME_WAIT", "10s"},
    {"http.max_connections", "NARAD_HTTP_MAX_CONNECTIONS", "10000"},
    {"http.max_header_bytes", "NARAD_HTTP_MAX_HEADER_BYTES", "65536"},
    {"http.max_batch_bytes", "NARAD_HTTP_MAX_BATCH_BYTES", "16777216"},
    {"http.tls_cert_file", "NARAD_HTTP_TLS_CERT_FILE", ""},
    {"http.tls_key_file", "NARAD_HTTP_TLS_KEY_FILE", ""},
    {"cluster.addr", "NARAD_CLUSTER_ADDR", ":7943"},
    {"cluster.node_id", "NARAD_NODE_ID", ""},
    {"cluster.peers", "NARAD_CLUSTER_PEERS", ""},
    {"cluster.initial_members", "NARAD_CLUSTER_INITIAL_MEMBERS", ""},
    {"storage.data_dir", "NARAD_DATA_DIR", "data"},
    {"storage.data_dirs", "NARAD_STORAGE_DATA_DIRS", ""},
    {"storage.codec", "", "none"},
    {"storage.compression_level", "", "fastest"},
    {"storage.idle_log_eviction_ms", "", "1800000"},
    {"ingress.max_backlog_bytes", "NARAD_INGRESS_MAX_BACKLOG_BYTES", "10737418240"},
    {"topic.default_partitions", "NARAD_TOPIC_DEFAULT_PARTITIONS", "3"},
    {"topic.max_partitions", "NARAD_TOPIC_MAX_PARTITIONS", "108"},
    {"topic.default_retention_age_ms", "NARAD_TOPIC_DEFAULT_RETENTION_AGE_MS", "604800000"},
    {"topic.default_visibility_timeout_ms", "NARAD_TOPIC_DEFAULT_VISIBILITY_TIMEOUT_MS", "30000"},
    {"topic.default_max_in_flight_per_partition", "NARAD_TOPIC_DEFAULT_MAX_IN_FLIGHT_PER_PARTITION",
     "1024"},
    {"topic.default_max_acked_ahead_per_partition",
     "NARAD_TOPIC_DEFAULT_MAX_ACKED_AHEAD_PER_PARTITION", "1024"},
    {"fanout.max_batch_records", "NARAD_FANOUT_MAX_BATCH_RECORDS", "4096"},
    {"fanout.max_batch_bytes", "NARAD_FANOUT_MAX_BATCH_BYTES", "4194304"},
    {"fanout.linger_ms", "NARAD_FANOUT_LINGER_MS", "25"},
    {"moves.max_bytes_per_second", "NARAD_MOVES_MAX_BYTES_PER_SECOND", "0"},
    {"limits.requests_per_second", "NARAD_LIMITS_REQUESTS_PER_SECOND", "0"},
    {"limits.bytes_per_second", "NARAD_LIMITS_BYTES_PER_SECOND", "0"},
    {"log.level", "NARAD_LOG_LEVEL", "info"},
    {"log.format", "NARAD_LOG_FORMAT", "json"},
    {"security.enabled", "NARAD_SECURITY_ENABLED", "true"},
    {"security.cluster_tls_cert_file", "NARAD_CLUSTER_TLS_CERT_FILE", ""},
    {"security.cluster_tls_key_file", "NARAD_CLUSTER_TLS_KEY_FILE", ""},
    {"security.cluster_tls_ca_file", "NARAD_CLUSTER_TLS_CA_FILE", ""},
    {"audit.file", "NARAD_AUDIT_FILE", ""},
};

TEST(ConfigContract, EveryRow_HasItsVariableAndDefault) {
  std::map<std::string, SettingInfo> infos;
  for (const SettingInfo& info : describe_settings()) {
    // Time constants are no part of the contract.
    if (!info.path.starts_with("timing.")) infos[info.path] = info;
  }
  for (const Row& row : kRows) {
    ASSERT_TRUE(infos.contains(row.path)) << row.path;
    EXPECT_EQ(infos[row.path].env, row.env) << row.path;
    EXPECT_EQ(infos[row.path].default_value, row.default_value) << row.path;
    infos.erase(row.path);
  }
  for (const auto& [path, info] : infos) ADD_FAILURE() << path << " is in no row";
}

// The problems of one setting given as a flag; "" if there are none.
std::string verdict(const std::string& path, const std::string& value) {
  ConfigInput input;
  input.flags.emplace_back(path, value);
  auto r = load_config(input);
  return r ? "" : r.error().text();
}

struct Bound {
  const char* path;
  std::vector<const char*> good;
  std::vector<const char*> bad;
};
const std::vector<Bound> kBounds = {
    {"http.addr", {":1", "0.0.0.0:7942"}, {"", " ", ":7943"}},
    {"http.pprof_addr", {"", ":6060"}, {}},
    {"http.read_timeout", {"1ns", "1h"}, {"0", "0s", "-1s", "10", "x", ""}},
    {"http.write_timeout", {"10001ms"}, {"10s", "0s", "-1s"}},
    {"http.idle_timeout", {"1s"}, {"0s", "-5m"}},
    {"http.shutdown_grace", {"10s"}, {"9999ms", "0s"}},
    {"http.max_consume_wait", {"0", "10s"}, {"-1ns", "10001ms", "30s"}},
    {"http.max_connections", {"1"}, {"0", "-1", "4294967296", "1.5", "1e3", " 1", ""}},
    {"http.max_header_bytes", {"1024"}, {"1023"}},
    {"http.max_batch_bytes", {"1048576", "1073741824"}, {"1048575", "1073741825"}},
    {"http.tls_cert_file", {""}, {"cert.pem"}},
    {"cluster.addr", {":1"}, {"", "\t"}},
    {"cluster.peers", {"", " , "}, {"a", "a@h:1", "a@h:1,b@i:1", "@h:1,b@i:1,c@j:1"}},
    {"storage.data_dir", {"/x"}, {"", " "}},
    {"storage.codec", {"none", "ZSTD"}, {"", "lz4"}},
    {"storage.compression_level", {"fastest", "default", "better", "best"}, {"Best", "9", ""}},
    {"storage.idle_log_eviction_ms", {"0", "60000"}, {"59999", "-1"}},
    {"ingress.max_backlog_bytes", {"67108864"}, {"67108863"}},
    {"topic.default_partitions", {"1", "108"}, {"0", "109"}},
    {"topic.max_partitions", {"3", "1000"}, {"0", "2"}},
    {"topic.default_retention_age_ms", {"0", "3600000"}, {"3599999", "-1"}},
    {"topic.default_visibility_timeout_ms", {"0"}, {"-1"}},
    {"topic.default_max_in_flight_per_partition", {"1"}, {"0", "-1"}},
    {"topic.default_max_acked_ahead_per_partition", {"1"}, {"0", "9223372036854775808"}},
    {"fanout.max_batch_records", {"1"}, {"0"}},
    {"fanout.max_batch_bytes", {"1"}, {"0"}},
    {"fanout.linger_ms", {"0"}, {"-1"}},
    {"log.level", {"debug", "INFO", "Warn", "error"}, {"", "trace", "warning"}},
    {"log.format", {"json", "text"}, {"xml", ""}},
    {"security.enabled",
     {"1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"},
     {"", "yes", "no", "tRUE", "2"}},
    {"security.cluster_tls_cert_file", {""}, {"cert.pem"}},
};

TEST(ConfigContract, EveryRule_BeginsWhereItSays) {
  for (const Bound& bound : kBounds) {
    for (const char* value : bound.good) {
      EXPECT_EQ(verdict(bound.path, value), "") << bound.path << " = " << value;
    }
    for (const char* value : bound.bad) {
      const std::string text = verdict(bound.path, value);
      EXPECT_TRUE(text.starts_with("config: ")) << bound.path << " = " << value;
      // Whatever is wrong is named by its path or that of what it collides with.
      EXPECT_NE(text.find(std::string(bound.path).substr(0, 6)), std::string::npos) << text;
    }
  }
}

TEST(ConfigContract, EveryVariable_ReachesItsSetting) {
  for (const SettingInfo& info : describe_settings()) {
    if (info.env.empty() || info.default_value.empty()) continue;
    ConfigInput input;
    input.dev = true;
    input.env[info.env] = "no number, word or duration";
    auto r = load_config(input);
    // Free texts take anything; all others complain by the variable's name or the path.
    if (info.path == "http.addr" || info.path == "cluster.addr" ||
        info.path == "storage.data_dir") {
      EXPECT_TRUE(r) << info.path;
      continue;
    }
    ASSERT_FALSE(r) << info.path;
    const std::string& text = r.error().text();
    EXPECT_TRUE(text.find(info.env) != std::string::npos ||
                text.find(info.path) != std::string::npos)
        << text;
  }
}

TEST(ConfigContract, SecretAndPassword_ComeFromTheEnvironmentOnly) {
  ConfigInput input;
  input.env["NARAD_CLUSTER_SECRET"] = "s";
  input.env["NARAD_ADMIN_PASSWORD"] = "p";
  const Config config = load_config(input).value();
  EXPECT_EQ(config.cluster.secret, "s");
  EXPECT_EQ(config.security.admin_password, "p");
  for (const char* text :
       {R"({"cluster":{"secret":"s"}})", R"({"security":{"admin_password":"p"}})"}) {
    ConfigInput file;
    file.file_text = text;
    file.file_name = "narad.json";
    EXPECT_FALSE(load_config(file)) << text;
  }
}

TEST(ConfigContract, Peers_NeedASecretUnlessSecurityIsOff) {
  ConfigInput input;
  input.env["NARAD_CLUSTER_PEERS"] = "a@h1:7943, b@h2:7943 ,c@h3:7943";
  input.env["NARAD_NODE_ID"] = "a";
  EXPECT_EQ(load_config(input).error().text(),
            "config: NARAD_CLUSTER_SECRET: required when cluster.peers is set and security is "
            "enabled");
  input.env["NARAD_SECURITY_ENABLED"] = "false";
  const Config config = load_config(input).value();
  EXPECT_EQ(config.cluster.peers[2], (ClusterPeer{"c", "h3:7943"}));
  EXPECT_FALSE(config.security.enabled);
  input.env["NARAD_CLUSTER_PEERS"] = "a@h1:7944,b@h2:7943,c@h3:7943";
  EXPECT_EQ(load_config(input).error().text(),
            "config: cluster.peers: this node is \"a\" at h1:7944, but cluster.addr is :7943");
  input.env["NARAD_CLUSTER_PEERS"] = "a@h1:7943,a@h1:7943,c@h3:7943";
  const std::string text = load_config(input).error().text();
  EXPECT_NE(text.find("id \"a\" twice"), std::string::npos) << text;
  EXPECT_NE(text.find("addr \"h1:7943\" twice"), std::string::npos) << text;
}

ConfigInput file(std::string text) {
  ConfigInput input;
  input.file_text = std::move(text);
  input.file_name = "narad.json";
  return input;
}

TEST(ConfigContract, FileNames_MatchWithoutCase_NullIsAbsent) {
  const Config config =
      load_config(file(R"({"HTTP":{"Addr":"127.0.0.1:9","read_timeout":null},"log":null,
                           "cluster":{"peers":null}})"))
          .value();
  EXPECT_EQ(config.http.addr, "127.0.0.1:9");
  EXPECT_EQ(config.http.read_timeout, std::chrono::seconds(10));
}

TEST(ConfigContract, UnknownKeys_AreRefusedAtEveryLevel) {
  EXPECT_EQ(load_config(file(R"({"htpp":{}})")).error().text(), "config: unknown key \"htpp\"");
  EXPECT_EQ(load_config(file(R"({"http":{"adr":""}})")).error().text(),
            "config: unknown key \"http.adr\" (did you mean \"http.addr\"?)");
  EXPECT_EQ(load_config(file(R"({"cluster":{"peers":[{"id":"a","adr":"x"}]}})")).error().text(),
            "config: cluster.peers: entry 0: unknown key \"adr\"");
  EXPECT_EQ(load_config(file(R"({"storage":{"segment_bytes":1}})")).error().text(),
            "config: unknown key \"storage.segment_bytes\"");
  EXPECT_EQ(load_config(file(R"({"http":3})")).error().text(), "config: http: expected an object");
}

TEST(ConfigContract, FileValues_AreStrictlyTyped) {
  for (const char* text :
       {R"({"http":{"addr":1}})", R"({"http":{"read_timeout":"10"}})",
        R"({"http":{"read_timeout":1.5}})", R"({"http":{"max_connections":"5"}})",
        R"({"http":{"max_connections":5.0}})", R"({"security":{"enabled":"true"}})",
        R"({"cluster":{"peers":{}}})", R"({"cluster":{"peers":[1]}})",
        R"({"cluster":{"peers":[{"id":1}]}})", R"({"cluster":{"initial_members":"a"}})",
        R"({"cluster":{"initial_members":[1]}})", R"({"storage":{"data_dirs":[null]}})"}) {
    EXPECT_FALSE(load_config(file(text))) << text;
  }
}

TEST(ConfigContract, CompressionLevels_AreThoseOfZstd) {
  const std::pair<const char*, int> kLevels[] = {
      {"fastest", 1}, {"default", 3}, {"better", 7}, {"best", 11}};
  for (const auto& [name, level] : kLevels) {
    ConfigInput input;
    input.flags.emplace_back("storage.compression_level", name);
    EXPECT_EQ(compression_level_of(load_config(input).value().storage), level);
  }
}

TEST(ConfigContractDeathTest, FlagThatDoesNotExist_IsABug) {
  EXPECT_DEATH((void)verdict("http.adr", "x"), "http.adr");
}

}  // namespace
}  // namespace narad
