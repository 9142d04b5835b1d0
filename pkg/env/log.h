#pragma once
// The log door: events with fields, one fact per event, no secrets.
//
//   NARAD_LOG_INFO(sink, "partition opened", {"topic", t}, {"partition", p}, {"hwm", hwm});
//
// Thread-safe. Never blocks the caller on a slow reader of the log: lines may be dropped instead,
// and the number dropped is logged.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "pkg/base/error.h"
#include "pkg/base/ids.h"

namespace narad {

enum class LogLevel : std::uint8_t { debug, info, warn, error };

struct LogField {
  std::string key;
  std::string value;
  bool is_number = false;  // written unquoted in JSON

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, const Error& e) : key(k), value(e.text()) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), is_number(true) {}
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
  LogField(std::string_view k, T v) : key(k), value(std::to_string(v)), is_number(true) {}
  template <class Tag, class Rep>
  LogField(std::string_view k, StrongNumber<Tag, Rep> v)
      : key(k), value(std::to_string(v.value())), is_number(true) {}
};

struct LogRecord {
  LogLevel level;
  std::string_view message;
  std::vector<LogField> fields;
  const char* file;
  int line;
};

class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual bool enabled(LogLevel level) const noexcept = 0;
  virtual void write(const LogRecord& record) = 0;
};

inline void log_event(LogSink& sink, LogLevel level, std::string_view message,
                      std::initializer_list<LogField> fields, const char* file, int line) {
  if (sink.enabled(level)) sink.write(LogRecord{level, message, fields, file, line});
}

}  // namespace narad

// Macros only for the place in the source.
#define NARAD_LOG(sink, level, message, ...) \
  ::narad::log_event((sink), (level), (message), {__VA_ARGS__}, __FILE__, __LINE__)
#define NARAD_LOG_DEBUG(sink, ...) NARAD_LOG(sink, ::narad::LogLevel::debug, __VA_ARGS__)
#define NARAD_LOG_INFO(sink, ...) NARAD_LOG(sink, ::narad::LogLevel::info, __VA_ARGS__)
#define NARAD_LOG_WARN(sink, ...) NARAD_LOG(sink, ::narad::LogLevel::warn, __VA_ARGS__)
#define NARAD_LOG_ERROR(sink, ...) NARAD_LOG(sink, ::narad::LogLevel::error, __VA_ARGS__)
