#include "pkg/env/real/log_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <limits>

#include <gtest/gtest.h>
#include "pkg/env/real/system.h"

namespace narad {
namespace {

using Format = LogOptions::Format;
constexpr UnixMillis kTime{1'767'323'045'678};

LogRecord record(LogLevel level, std::string_view message, std::vector<LogField> fields) {
  return LogRecord{level, message, std::move(fields), "../../pkg/x.cpp", 7};
}

TEST(LogLine, Json_HasTimeLevelSourceMessageAndFields) {
  const auto r = record(LogLevel::warn, "disk \"nearly\" full",
                        {{"path", "/a\nb"}, {"percent", 97}, {"fast", true}, {"bad", "\xff"}});
  EXPECT_EQ(format_log_line(r, Format::json, kTime),
            "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"WARN\",\"source\":{\"file\":"
            "\"pkg/x.cpp\",\"line\":7},\"msg\":\"disk \\\"nearly\\\" full\",\"path\":\"/a\\nb\","
            "\"percent\":97,\"fast\":true,\"bad\":\"\xef\xbf\xbd\"}\n");
}

TEST(LogLine, Text_QuotesWhatNeedsIt) {
  const auto r = record(LogLevel::info, "partition opened",
                        {{"topic", "orders"}, {"empty", ""}, {"eq", "a=b"}, {"n", -3}});
  EXPECT_EQ(format_log_line(r, Format::text, kTime),
            "time=2026-01-02T03:04:05.678Z level=INFO source=pkg/x.cpp:7 msg=\"partition opened\" "
            "topic=orders empty=\"\" eq=\"a=b\" n=-3\n");
}

TEST(LogLine, NumbersThatJsonLacks_AreQuoted) {
  const auto r = record(LogLevel::info, "m",
                        {{"nan", std::numeric_limits<double>::quiet_NaN()},
                         {"inf", -std::numeric_limits<double>::infinity()},
                         {"half", 0.5}});
  const auto line = format_log_line(r, Format::json, kTime);
  EXPECT_NE(line.find("\"half\":0.5"), std::string::npos) << line;
  EXPECT_NE(line.find("\"inf\":\"-inf\""), std::string::npos) << line;
  EXPECT_EQ(line.find(":nan"), std::string::npos) << line;
  EXPECT_EQ(line.find(":-nan"), std::string::npos) << line;
}

class Pipe {
 public:
  Pipe() {
    if (::pipe2(fds_, O_CLOEXEC) != 0) std::abort();
  }
  ~Pipe() {
    close_read();
    ::close(fds_[1]);
  }
  int write_end() const { return fds_[1]; }
  void close_read() {
    if (fds_[0] >= 0) ::close(fds_[0]);
    fds_[0] = -1;
  }
  // All there is until `marker` has been read.
  std::string read_until(std::string_view marker) {
    std::string out;
    char buffer[65536];
    while (out.find(marker) == std::string::npos) {
      const auto n = ::read(fds_[0], buffer, sizeof buffer);
      if (n <= 0) break;
      out.append(buffer, static_cast<std::size_t>(n));
    }
    return out;
  }

 private:
  int fds_[2];
};

TEST(LogWriter, Lines_AppearInOrderAboveTheLevel) {
  Pipe pipe;
  RealClock clock;
  LogOptions options;
  options.fd = pipe.write_end();
  LogWriter writer(options, clock);
  NARAD_LOG_DEBUG(writer, "hidden");
  for (int i = 0; i < 100; ++i) NARAD_LOG_INFO(writer, "line", {"n", i});
  writer.set_level(LogLevel::debug);
  NARAD_LOG_DEBUG(writer, "last");
  EXPECT_TRUE(writer.flush(std::chrono::seconds(10)));
  const std::string out = pipe.read_until("last");
  EXPECT_EQ(out.find("hidden"), std::string::npos);
  std::size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    at = out.find("\"n\":" + std::to_string(i) + "}", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_EQ(writer.dropped(), 0u);
}

TEST(LogWriter, ReaderThatStops_CostsLinesNotTime) {
  Pipe pipe;
  RealClock clock;
  LogOptions options;
  options.fd = pipe.write_end();
  options.queue_bytes_max = 64 * 1024;
  LogWriter writer(options, clock);
  const std::string filler(1000, 'x');
  // Until the pipe is full: nobody reads it, so a flush gets stuck sooner or later.
  do {
    for (int i = 0; i < 40; ++i) NARAD_LOG_INFO(writer, "line", {"filler", filler});
  } while (writer.flush(std::chrono::milliseconds(20)));
  // Now the queue holds 64 KiB and the rest cannot go anywhere; still no call waits for the reader.
  for (int i = 0; i < 1000; ++i) NARAD_LOG_INFO(writer, "line", {"filler", filler});
  EXPECT_GT(writer.dropped(), 500u);
  // The reader is back: it learns how many it missed, without another line being logged.
  std::string out;
  std::uint64_t missed = 0;
  while (missed < writer.dropped()) {
    const std::string some = pipe.read_until("}\n");
    ASSERT_FALSE(some.empty());
    out += some;
    missed = 0;
    for (std::size_t at = 0; (at = out.find("\"count\":", at)) != std::string::npos; at += 8)
      missed += std::stoull(out.substr(at + 8));
  }
  EXPECT_EQ(missed, writer.dropped());
}

TEST(LogWriter, ReaderThatNeverComesBack_DoesNotHoldUpTheEnd) {
  Pipe pipe;
  RealClock clock;
  LogOptions options;
  options.fd = pipe.write_end();
  const std::string filler(1000, 'x');
  {
    LogWriter writer(options, clock);
    for (int i = 0; i < 200; ++i) NARAD_LOG_INFO(writer, "line", {"filler", filler});
  }
  EXPECT_FALSE(pipe.read_until("}\n").empty());
}

TEST(LogWriter, ReaderThatIsGone_DoesNotEndTheProcess) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  RealClock clock;
  LogOptions options;
  options.fd = pipe.write_end();
  LogWriter writer(options, clock);
  pipe.close_read();
  NARAD_LOG_INFO(writer, "to nobody");
  EXPECT_TRUE(writer.flush(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace narad
