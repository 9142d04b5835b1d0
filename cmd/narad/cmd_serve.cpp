// `narad serve` and `narad server start`: settings in, a node that runs until it is told to stop.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/narad/commands.h"
#include "cmd/narad/file.h"
#include "cmd/narad/session.h"
#include "internal/node/node.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/config/config.h"
#include "pkg/env/real/runtime.h"
#include "pkg/env/real/tls.h"

extern char** environ;

namespace narad::cli {
namespace {

constexpr std::size_t kConfigBytesMax = 1 << 20;

LogLevel level_of(std::string_view name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "warn") return LogLevel::warn;
  if (name == "error") return LogLevel::error;
  return LogLevel::info;
}

std::map<std::string, std::string> narad_variables() {
  std::map<std::string, std::string> variables;
  for (char** v = environ; v != nullptr && *v != nullptr; ++v) {
    std::string_view text = *v;
    std::size_t equals = text.find('=');
    if (!text.starts_with("NARAD_") || equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

// The layers that do not change while the process runs; the file is read again on SIGHUP.
struct Layers {
  std::string config_path;
  ConfigInput input;

  Result<Config> load() const {
    ConfigInput all = input;
    if (!config_path.empty()) {
      auto text = read_whole(config_path, kConfigBytesMax);
      if (!text) return text.error().with_context("config");
      all.file_text = std::move(text).value();
      all.file_name = config_path;
    }
    return load_config(all);
  }
};

Layers layers_of(const Arguments& args) {
  Layers layers;
  layers.config_path = args.text("config");
  layers.input.env = narad_variables();
  auto& flags = layers.input.flags;
  auto take = [&](std::string_view flag, std::string_view path, std::string_view before = "") {
    std::string value = args.text(flag);
    if (!value.empty() && value != "0") flags.emplace_back(path, cat(before, value));
  };
  if (args.text("addr").empty()) take("port", "http.addr", ":");
  take("addr", "http.addr");
  take("cluster-port", "cluster.addr", ":");
  take("node-id", "cluster.node_id");
  take("data-dir", "storage.data_dir");
  take("log-level", "log.level");
  take("log-format", "log.format");
  take("pprof-addr", "http.pprof_addr");
  layers.input.bootstrap = args.flag("bootstrap");
  return layers;
}

// As many open files as the system grants: every partition and every connection holds some.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// A parent may have left them blocked, which an exec keeps.
void unblock_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "narad";
  return name;
}

TlsFiles http_files(const Config& config) {
  return TlsFiles{config.http.tls_cert_file, config.http.tls_key_file, ""};
}
TlsFiles cluster_files(const Config& config) {
  const auto& s = config.security;
  return TlsFiles{s.cluster_tls_cert_file, s.cluster_tls_key_file, s.cluster_tls_ca_file};
}

// A network with TLS, and the doors with it, if certificates are configured.
class TlsDoors {
 public:
  // Reads the files (blocks).
  Result<void> open(Env& env, const TlsFiles& files) {
    if (files.cert_file.empty()) return ok();
    NARAD_TRY(auto context, TlsContext::load(files));
    net_ = std::make_unique<TlsNet>(env.net, env.executor, std::move(context));
    env_.emplace(with_net(env, *net_));
    return ok();
  }
  // Null without certificates.
  Env* env() { return env_ ? &*env_ : nullptr; }
  // Certificates that were renewed, for connections from now on. Whether there is TLS at all, and
  // on which side, stays as at start.
  static Task<Result<void>> renew(Env& env, TlsDoors* doors, TlsFiles files) {
    if (!doors->net_ || files.cert_file.empty()) co_return ok();
    auto job = [files = std::move(files)] { return TlsContext::load(files); };
    NARAD_CO_TRY(auto context, co_await blocking(env, "tls files", std::move(job)));
    doors->net_->replace(std::move(context));
    co_return ok();
  }

 private:
  std::unique_ptr<TlsNet> net_;
  std::optional<Env> env_;
};

struct Certificates {
  TlsDoors http, cluster;
};

// What is said once the node listens; empty: nothing.
struct Greeting {
  Terminal* terminal = nullptr;
  std::string data_dir;
  void say(const Endpoint& at) const {
    if (terminal == nullptr) return;
    terminal->err(cat("narad: development broker on http://", to_string(at), ", data in ", data_dir,
                      ", no authentication\n"));
  }
};

// One run of a node. Lives in serve_until_told()'s frame, which waits for its tasks.
struct Serving {
  Serving(Runtime& r, Certificates& c, Layers l, Greeting g, Config config,
          node::NodeOptions options)
      : runtime(r),
        env(r.env()),
        certificates(c),
        layers(std::move(l)),
        greeting(std::move(g)),
        node(env, std::move(config), std::move(options)),
        ended(env),
        tasks(env) {}
  Runtime& runtime;
  Env& env;
  Certificates& certificates;
  Layers layers;
  Greeting greeting;
  node::Node node;
  bool stopping = false;
  bool stopped = false;
  Event ended;
  TaskGroup tasks;
};

Task<void> stop_node(Serving& s) {
  co_await s.node.stop();
  s.stopped = true;
  s.ended.notify_all();
}

Task<void> reload(Serving& s) {
  auto fresh = s.layers.load();
  if (!fresh) {
    NARAD_LOG_ERROR(s.env.log, "reload refused; the settings in force stay",
                    {"error", fresh.error()});
    co_return;
  }
  s.runtime.set_log_level(level_of(fresh.value().log.level));
  auto http = co_await TlsDoors::renew(s.env, &s.certificates.http, http_files(fresh.value()));
  auto cluster =
      co_await TlsDoors::renew(s.env, &s.certificates.cluster, cluster_files(fresh.value()));
  for (const auto& renewed : {http, cluster}) {
    if (!renewed)
      NARAD_LOG_ERROR(s.env.log, "the certificates in force stay", {"error", renewed.error()});
  }
  if (auto reloaded = co_await s.node.reload(); !reloaded) {
    NARAD_LOG_ERROR(s.env.log, "reload was not complete", {"error", reloaded.error()});
  }
  NARAD_LOG_INFO(s.env.log, "settings reloaded", {"log_level", fresh.value().log.level});
}

// The first request to end stops the node in order, the second ends the process.
Task<void> watch_signals(Serving& s) {
  for (;;) {
    Signal signal = co_await next_signal(s.env);
    if (signal == Signal::reload) {
      co_await reload(s);
    } else if (!s.stopping) {
      s.stopping = true;
      NARAD_LOG_INFO(s.env.log, "stopping; a second signal ends at once");
      s.tasks.spawn("stop", stop_node(s));
    } else {
      s.env.process.exit(kExitFailure, "asked to end twice");
    }
  }
}

Task<int> serve_until_told(Serving& s) {
  s.tasks.spawn("signals", watch_signals(s));
  auto started = co_await s.node.start();
  if (started && !s.node.http_endpoints().empty()) s.greeting.say(s.node.http_endpoints().front());
  if (started || s.stopping) {
    while (!s.stopped) co_await s.ended.wait();
  } else {
    NARAD_LOG_ERROR(s.env.log, "start failed", {"error", started.error()});
  }
  co_await s.tasks.stop();
  co_return started || s.stopping ? kExitOk : kExitFailure;
}

int run_node(Layers layers, Terminal& terminal, Greeting greeting = {}) {
  auto config = layers.load();
  if (!config) {
    terminal.err(cat(config.error().text(), "\n"));
    return kExitFailure;
  }
  raise_file_limit();
  unblock_signals();
  RuntimeOptions options;
  options.handle_signals = true;
  options.log.level = level_of(config.value().log.level);
  options.log.format =
      config.value().log.format == "text" ? LogOptions::Format::text : LogOptions::Format::json;
  Runtime runtime(options);
  node::NodeOptions node_options;
  node_options.version = version_text();
  node_options.default_node_id = host_name();
  node_options.started_at = runtime.env().clock.mono();
  Certificates certificates;
  for (auto opened : {certificates.http.open(runtime.env(), http_files(config.value())),
                      certificates.cluster.open(runtime.env(), cluster_files(config.value()))}) {
    if (opened) continue;
    terminal.err(cat("narad: ", opened.error().text(), "\n"));
    return kExitFailure;
  }
  node_options.http_env = certificates.http.env();
  node_options.cluster_env = certificates.cluster.env();
  Serving serving(runtime, certificates, std::move(layers), std::move(greeting), config.value(),
                  std::move(node_options));
  return runtime.run(serve_until_told(serving));
}

}  // namespace

int serve(const Arguments& args, Terminal& terminal) { return run_node(layers_of(args), terminal); }

int server_start(const Arguments& args, Terminal& terminal) {
  Layers layers;
  Greeting greeting;
  layers.input.env = narad_variables();
  auto& flags = layers.input.flags;
  std::int64_t port = args.integer("port");
  std::string data_dir = args.text("data-dir");
  if (args.flag("dev")) {
    if (data_dir.empty()) data_dir = cat(environment("HOME"), "/.narad/data");
    layers.input.dev = true;
    layers.input.env["NARAD_SECURITY_ENABLED"] = "false";
    std::int64_t cluster_port = port == 0 || port == kPortMax ? 0 : port + 1;
    layers.input.env.try_emplace("NARAD_CLUSTER_ADDR", cat("127.0.0.1:", cluster_port));
    flags.emplace_back("http.addr", cat("127.0.0.1:", port));
    flags.emplace_back("log.format", "text");
    greeting = {&terminal, data_dir};
  } else if (port != 7942) {
    flags.emplace_back("http.addr", cat(":", port));
  }
  if (!data_dir.empty()) flags.emplace_back("storage.data_dir", data_dir);
  int status = run_node(std::move(layers), terminal, std::move(greeting));
  if (status != kExitOk && !args.flag("dev")) {
    terminal.err(
        "narad: for a broker of your own, on loopback and without users: narad server start "
        "--dev\n");
  }
  return status;
}

}  // namespace narad::cli
