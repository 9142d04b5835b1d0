#include "cmd/narad/format.h"

#include <cstdio>
#include <ctime>

#include "pkg/base/text.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"

namespace narad::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::int64_t kDayS = 86'400;

std::string two(std::int64_t n) { return n < 10 ? cat('0', n) : cat(n); }

std::string time_of_day(std::int64_t unix_s) {
  std::int64_t s = ((unix_s % kDayS) + kDayS) % kDayS;
  return cat(two(s / 3600), ':', two(s / 60 % 60), ':', two(s % 60), ".000");
}

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

}  // namespace

std::string left(std::string_view text, std::size_t width) {
  std::string out(text);
  if (out.size() < width) out.resize(width, ' ');
  return out;
}
std::string right(std::string_view text, std::size_t width) {
  std::size_t pad = text.size() < width ? width - text.size() : 0;
  return std::string(pad, ' ') + std::string(text);
}

std::string hex_dump(std::string_view bytes) {
  constexpr std::size_t kRow = 16;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += kRow) {
    std::string_view row = bytes.substr(at, kRow);
    char offset[16];
    std::snprintf(offset, sizeof offset, "%08zx", at);
    out += offset;
    for (std::size_t i = 0; i < kRow; ++i) {
      if (i % 8 == 0) out += ' ';
      out += i < row.size() ? cat(' ', to_hex(as_bytes(row.substr(i, 1)))) : std::string("   ");
    }
    out += "  |";
    for (char c : row) out += c >= 0x20 && c < 0x7f ? c : '.';
    out += "|\n";
  }
  return out;
}

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  const bool utf8 = is_utf8(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    bool line = keep_lines && (byte == '\n' || byte == '\t');
    bool c1 = utf8 && byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) {
      out += cat("\\u00", to_hex(as_bytes(text.substr(++i, 1))));
    } else if ((byte < 0x20 && !line) || byte == 0x7f || (byte >= 0x80 && !utf8)) {
      out += cat("\\x", to_hex(as_bytes(text.substr(i, 1))));
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string message_line(const client::Received& m, std::int64_t utc_offset_s, bool for_terminal) {
  auto shown = [&](std::string_view text, bool keep_lines) {
    return for_terminal ? printable(text, keep_lines) : std::string(text);
  };
  std::string line = cat("[p", m.partition, " @", m.offset, "]");
  if (!m.key.empty()) line += cat(" key=", shown(m.key, false));
  if (m.timestamp_s != 0) line += cat(' ', time_of_day(m.timestamp_s + utc_offset_s));
  if (!is_utf8(m.payload)) {
    return cat(line, " (binary, ", m.payload.size(), " bytes)\n", hex_dump(m.payload));
  }
  line += ' ';
  auto document = json::Document::parse(m.payload, json::kPayloadDepthMax);
  bool quoted = document && document.value().root().is(json::Kind::string);
  std::string_view text =
      quoted ? document.value().root().as_string() : std::string_view(m.payload);
  return cat(line, shown(text, true), "\n");
}

std::string raw_line(const client::Received& m, bool for_terminal) {
  bool text = is_utf8(m.payload) && !json::is_payload(m.payload);
  std::string line = text ? json::quote(m.payload) : m.payload;
  return cat(for_terminal ? printable(line, true) : line, "\n");
}

std::string short_duration(nanoseconds d) {
  if (d >= milliseconds(1)) return format_duration(std::chrono::round<milliseconds>(d));
  return format_duration(std::chrono::round<microseconds>(d));
}

std::string rate_text(std::uint64_t count, nanoseconds d) {
  if (d.count() <= 0) return "0";
  return fixed(static_cast<double>(count) / (static_cast<double>(d.count()) / 1e9), 0);
}

std::string short_bytes(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGTPE";
  if (bytes < 1024) return cat(bytes, 'B');
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return cat(fixed(value, 1), kUnits[unit], "iB");
}

std::int64_t local_utc_offset_s() {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return local.tm_gmtoff;
}

}  // namespace narad::cli
