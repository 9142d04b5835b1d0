#include "internal/security/audit.h"

#include "pkg/base/text.h"
#include "pkg/json/writer.h"

namespace narad::security {
namespace {

std::string_view outcome_of(const AuditEvent& e) {
  if (e.unknown) return "unknown";
  if (e.status < 300) return "done";
  return e.status < 500 ? "refused" : "failed";
}

// At the end as it is now: whoever rotates may also have cut the file.
Result<void> append(File& file, const std::string& text) {
  NARAD_TRY(const std::uint64_t end, file.size());
  NARAD_TRY(write_all(file, as_bytes(text), end));
  return file.datasync();
}

}  // namespace

std::string audit_line(const AuditEvent& e) {
  json::Writer w;
  w.begin_object().member("time", format_rfc3339(e.time)).member("user", e.user);
  w.member("remote", e.remote).member("action", e.action).member("target", e.target);
  w.member("outcome", outcome_of(e)).member("status", e.status);
  if (!e.error.empty()) w.member("error", e.error);
  w.end_object();
  return w.take();
}

struct Audit::Line {
  Line(Env& env, std::string t) : text(std::move(t)), done(env) {}
  const std::string text;
  bool written = false;
  Event done;
};

Audit::Audit(Env& env, std::string path)
    : env_(env), path_(std::move(path)), work_(env), idle_(env), tasks_(env) {}
Audit::~Audit() = default;

Task<Result<void>> Audit::open() {
  if (!enabled()) co_return ok();
  auto job = [&fs = env_.fs, path = path_]() -> Result<std::shared_ptr<File>> {
    NARAD_TRY(std::unique_ptr<File> file, fs.open(path, OpenMode::create));
    NARAD_TRY(fs.sync_dir(parent_path(path)));
    return std::shared_ptr<File>(std::move(file));
  };
  auto opened = co_await blocking(env_, "audit open", std::move(job));
  if (!opened) co_return opened.error().with_context("audit.file");
  file_ = std::move(opened.value());
  if (ended_ && !stopping_) {
    ended_ = false;
    tasks_.spawn("audit writer", write_loop());
  }
  co_return ok();
}

Task<void> Audit::write_loop() {
  for (;;) {
    if (!waiting_.empty()) {
      co_await write_batch(std::exchange(waiting_, {}));
    } else if (stopping_) {
      break;
    } else {
      co_await work_.wait();
    }
  }
  ended_ = true;
  idle_.notify_all();
}

Task<void> Audit::write_batch(std::vector<std::shared_ptr<Line>> batch) {
  std::string text;
  for (const auto& line : batch) text += cat(line->text, '\n');
  auto job = [file = file_, text = std::move(text)] { return append(*file, text); };
  const Result<void> written = co_await blocking(env_, "audit", std::move(job));
  for (const auto& line : batch) {
    if (!written) {
      NARAD_LOG_ERROR(env_.log, "an audit line could not be written", {"file", path_},
                      {"error", written.error()}, {"line", line->text});
    }
    line->written = true;
    line->done.notify_all();
  }
}

Task<void> Audit::record(AuditEvent event) {
  if (!enabled()) co_return;
  auto line = std::make_shared<Line>(env_, audit_line(event));
  if (ended_) {  // not open, or not any more
    NARAD_LOG_ERROR(env_.log, "an audit line could not be written", {"file", path_},
                    {"error", "the file is not open"}, {"line", line->text});
    co_return;
  }
  waiting_.push_back(line);
  work_.notify_all();
  while (!line->written) co_await line->done.wait();
}

Task<void> Audit::stop() {
  stopping_ = true;
  work_.notify_all();
  while (!ended_) co_await idle_.wait();
  co_await tasks_.stop();
  if (file_ == nullptr) co_return;
  auto job = [file = std::exchange(file_, nullptr)]() mutable -> Result<void> {
    file.reset();
    return ok();
  };
  (void)(co_await blocking(env_, "audit close", std::move(job))).has_value();
}

}  // namespace narad::security
