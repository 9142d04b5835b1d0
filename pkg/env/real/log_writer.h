#pragma once
// Log lines to a descriptor, JSON or text, by a thread of its own. The caller formats and queues;
// it never waits for the reader of the log. When the queue is full, lines are dropped and their
// number is logged once there is room. (Own code rather than a logging library's: the queue's
// bound, the count and the flush before an exit are the whole task.)
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "pkg/env/clock.h"
#include "pkg/env/log.h"
#include "pkg/env/real/runtime.h"

namespace narad {

// One line, newline included.
//   {"time":"2026-01-02T03:04:05.678Z","level":"INFO","source":{"file":"pkg/x.cpp","line":7},
//    "msg":"partition opened","topic":"orders","partition":3}
//   time=2026-01-02T03:04:05.678Z level=INFO source=pkg/x.cpp:7 msg="partition opened" topic=orders
std::string format_log_line(const LogRecord& record, LogOptions::Format format, UnixMillis now);

class LogWriter final : public LogSink {
 public:
  LogWriter(const LogOptions& options, const Clock& clock);
  ~LogWriter() override;  // flushes for at most a second

  bool enabled(LogLevel level) const noexcept override {
    return level >= level_.load(std::memory_order_relaxed);
  }
  void write(const LogRecord& record) override;

  void set_level(LogLevel level) { level_.store(level, std::memory_order_relaxed); }
  // Waits until all that was queued before is written, but not longer than `limit`. False if it was
  // not.
  bool flush(Nanos limit);
  std::uint64_t dropped() const;

 private:
  void work();
  void write_out(std::string_view text);
  void append_dropped_notice();  // REQUIRES: mutex_ held

  const int fd_;
  const LogOptions::Format format_;
  const std::size_t queue_bytes_max_;
  const Clock& clock_;
  std::atomic<LogLevel> level_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;     // the thread waits here
  std::condition_variable written_;  // flush() waits here
  std::string queue_;
  std::uint64_t queued_bytes_ = 0;   // since start
  std::uint64_t written_bytes_ = 0;  // of those
  std::uint64_t dropped_ = 0;        // lines, since start
  std::uint64_t reported_ = 0;       // of those
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace narad
