#include "pkg/env/real/log_writer.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "pkg/base/text.h"
#include "pkg/env/real/thread.h"

namespace narad {
namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "DEBUG";
    case LogLevel::info:
      return "INFO";
    case LogLevel::warn:
      return "WARN";
    case LogLevel::error:
      return "ERROR";
  }
  return "INFO";
}

// The compiler is called from the build directory.
std::string_view source_path(const char* file) {
  std::string_view path = file;
  while (path.starts_with("../")) path.remove_prefix(3);
  return path;
}

// Not every number of C++ is one of JSON: "nan" and "inf" are quoted.
bool is_plain(const LogField& field) {
  if (!field.is_number) return false;
  const std::string& v = field.value;
  if (v == "true" || v == "false") return true;
  const std::size_t digit = !v.empty() && v[0] == '-' ? 1 : 0;
  return v.size() > digit && v[digit] >= '0' && v[digit] <= '9';
}

void append_text_value(std::string& out, std::string_view value) {
  bool quote = value.empty() || !is_utf8(value);
  for (unsigned char c : value) quote = quote || c <= ' ' || c == '"' || c == '=' || c == 0x7f;
  if (quote)
    append_json_string(out, value);
  else
    out += value;
}

std::string format_json(const LogRecord& record, const std::string& time) {
  std::string out;
  out.reserve(160);
  out += "{\"time\":\"";
  out += time;
  out += "\",\"level\":\"";
  out += name_of(record.level);
  out += "\",\"source\":{\"file\":";
  append_json_string(out, source_path(record.file));
  out += ",\"line\":";
  out += std::to_string(record.line);
  out += "},\"msg\":";
  append_json_string(out, record.message);
  for (const LogField& field : record.fields) {
    out += ',';
    append_json_string(out, field.key);
    out += ':';
    if (is_plain(field))
      out += field.value;
    else
      append_json_string(out, field.value);
  }
  out += "}\n";
  return out;
}

std::string format_text(const LogRecord& record, const std::string& time) {
  std::string out = cat("time=", time, " level=", name_of(record.level), " source=");
  append_text_value(out, cat(source_path(record.file), ":", record.line));
  out += " msg=";
  append_text_value(out, record.message);
  for (const LogField& field : record.fields) {
    out += ' ';
    append_text_value(out, field.key);
    out += '=';
    append_text_value(out, field.value);
  }
  out += '\n';
  return out;
}

}  // namespace

std::string format_log_line(const LogRecord& record, LogOptions::Format format, UnixMillis now) {
  const std::string time = format_rfc3339(now);
  return format == LogOptions::Format::json ? format_json(record, time) : format_text(record, time);
}

LogWriter::LogWriter(const LogOptions& options, const Clock& clock)
    : fd_(options.fd),
      format_(options.format),
      queue_bytes_max_(options.queue_bytes_max),
      clock_(clock),
      level_(options.level) {
  thread_ = std::thread([this] { work(); });
}

LogWriter::~LogWriter() {
  flush(std::chrono::seconds(1));
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void LogWriter::write(const LogRecord& record) {
  const std::string line = format_log_line(record, format_, clock_.wall_millis());
  const std::lock_guard lock(mutex_);
  if (queue_.size() + line.size() > queue_bytes_max_) {
    ++dropped_;
    return;
  }
  append_dropped_notice();
  queue_ += line;
  queued_bytes_ += line.size();
  wake_.notify_one();
}

void LogWriter::append_dropped_notice() {
  if (dropped_ == reported_) return;
  const LogRecord notice{LogLevel::warn,
                         "log lines dropped: the reader of the log is too slow",
                         {{"count", dropped_ - reported_}},
                         __FILE__,
                         __LINE__};
  const std::string line = format_log_line(notice, format_, clock_.wall_millis());
  reported_ = dropped_;
  queue_ += line;
  queued_bytes_ += line.size();
}

bool LogWriter::flush(Nanos limit) {
  std::unique_lock lock(mutex_);
  const std::uint64_t target = queued_bytes_;
  return written_.wait_for(lock, limit, [&] { return written_bytes_ >= target; });
}

std::uint64_t LogWriter::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

// All of `text`, or as much as the descriptor takes before it fails or the writer is to stop. Polls
// first and writes no more than a pipe then takes at once: a blocking write to a reader that has
// stopped could not be given up.
void LogWriter::write_out(std::string_view text) {
  constexpr std::size_t kChunk = PIPE_BUF;
  constexpr int kPollMs = 100;
  while (!text.empty()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, kPollMs) == 0) {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      continue;
    }
    const ssize_t n = ::write(fd_, text.data(), std::min(text.size(), kChunk));
    if (n > 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (n < 0 && errno != EINTR && errno != EAGAIN)
      return;  // the reader is gone: there is nobody left to tell
  }
}

void LogWriter::work() {
  prepare_thread("narad-log");
  std::string batch;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;  // flush() came before
    batch.clear();
    batch.swap(queue_);
    lock.unlock();
    write_out(batch);
    lock.lock();
    written_bytes_ += batch.size();
    if (queue_.empty()) append_dropped_notice();  // nobody may write for a long time
    written_.notify_all();
  }
}

}  // namespace narad
