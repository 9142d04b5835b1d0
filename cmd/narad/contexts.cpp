#include "cmd/narad/contexts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "cmd/narad/file.h"
#include "cmd/narad/terminal.h"
#include "pkg/base/text.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"
#include "pkg/json/writer.h"

namespace narad::cli {
namespace {

constexpr std::size_t kStoreBytesMax = 1 << 20;
constexpr std::string_view kDefaultServer = "http://127.0.0.1:7942";

Result<void> write_private(const std::string& path, std::string_view text) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Error::system(errno, cat("create ", path));
  ::fchmod(fd, 0600);
  int failed = 0;
  while (!text.empty() && failed == 0) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n > 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      failed = errno == 0 ? EIO : errno;
    }
  }
  if (failed == 0 && ::fsync(fd) != 0) failed = errno;
  ::close(fd);
  if (failed != 0) return Error::system(failed, cat("write ", path));
  return ok();
}

std::string text_member(json::Value object, std::string_view name) {
  if (!object.is(json::Kind::object)) return {};
  auto v = object.find(name);
  return v && v->is(json::Kind::string) ? std::string(v->as_string()) : std::string();
}

}  // namespace

Result<std::string> context_path() {
  if (std::string own = environment("NARAD_CONFIG_DIR"); !own.empty()) {
    return cat(own, "/contexts.json");
  }
  if (std::string xdg = environment("XDG_CONFIG_HOME"); !xdg.empty()) {
    return cat(xdg, "/narad/contexts.json");
  }
  if (std::string home = environment("HOME"); !home.empty()) {
    return cat(home, "/.config/narad/contexts.json");
  }
  return Error(Errc::invalid_argument,
               "no place for contexts: set NARAD_CONFIG_DIR, XDG_CONFIG_HOME or HOME");
}

std::string encode_contexts(const ContextStore& store) {
  json::Writer w;
  w.begin_object();
  if (!store.current.empty()) w.member("current", store.current);
  w.key("contexts").begin_object();
  for (const auto& [name, c] : store.contexts) {
    w.key(name).begin_object().member("server", c.server);
    if (!c.user.empty()) w.member("user", c.user);
    if (!c.password.empty()) w.member("password", c.password);
    w.end_object();
  }
  w.end_object().end_object();
  return cat(json::pretty(w.take()).value_or("{}"), "\n");
}

Result<ContextStore> decode_contexts(std::string text) {
  NARAD_TRY(auto document, json::Document::parse(std::move(text), json::kBodyDepthMax));
  json::Value root = document.root();
  if (!root.is(json::Kind::object)) return Error(Errc::invalid_argument, "expected an object");
  ContextStore store;
  store.current = text_member(root, "current");
  auto contexts = root.find("contexts");
  if (!contexts || contexts->is(json::Kind::null)) return store;
  if (!contexts->is(json::Kind::object)) {
    return Error(Errc::invalid_argument, "contexts is no object");
  }
  for (std::size_t i = 0; i < contexts->unique_size(); ++i) {
    json::Member m = contexts->unique_member(i);
    store.contexts[std::string(m.name)] = {text_member(m.value, "server"),
                                           text_member(m.value, "user"),
                                           text_member(m.value, "password")};
  }
  return store;
}

Result<ContextStore> load_contexts(const std::string& path) {
  auto text = read_whole(path, kStoreBytesMax);
  if (!text) {
    int why = text.error().os_errno();
    if (why == ENOENT || why == ENOTDIR) return ContextStore{};
    return text.error();
  }
  auto store = decode_contexts(std::move(text).value());
  if (!store) return store.error().with_context(path);
  return store;
}

Result<void> save_contexts(const std::string& path, const ContextStore& store) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code ec;
  bool made = std::filesystem::create_directories(directory, ec);
  if (ec) return Error::system(ec.value(), cat("create ", directory.string()));
  if (made) ::chmod(directory.c_str(), 0700);
  std::string fresh = cat(path, ".tmp");
  NARAD_TRY(write_private(fresh, encode_contexts(store)));
  if (std::rename(fresh.c_str(), path.c_str()) != 0) {
    return Error::system(errno, cat("rename ", fresh, " to ", path));
  }
  return ok();
}

Connection resolve_connection(const Arguments& args) {
  Connection stored;
  if (auto path = context_path()) {
    if (auto store = load_contexts(path.value())) {
      auto at = store.value().contexts.find(store.value().current);
      if (at != store.value().contexts.end()) stored = at->second;
    }
  }
  auto pick = [](std::string flag, const char* variable, std::string context,
                 std::string_view otherwise) {
    if (!flag.empty()) return flag;
    if (std::string v = environment(variable); !v.empty()) return v;
    return context.empty() ? std::string(otherwise) : context;
  };
  Connection c;
  c.server = pick(args.text("server"), "NARAD_ADDR", stored.server, kDefaultServer);
  c.user = pick(args.text("user"), "NARAD_USER", stored.user, "");
  c.password = pick(args.text("password"), "NARAD_PASS", stored.password, "");
  return c;
}

}  // namespace narad::cli
