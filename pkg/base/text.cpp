#include "pkg/base/text.h"

#include <array>
#include <cstdio>
#include <limits>

namespace narad {
namespace {
constexpr char kHex[] = "0123456789abcdef";
constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}
}  // namespace

std::string to_hex16(std::uint64_t value) {
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) out[i] = kHex[value & 15];
  return out;
}

std::string to_hex(ByteView bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    out += kHex[static_cast<unsigned>(b) >> 4];
    out += kHex[static_cast<unsigned>(b) & 15];
  }
  return out;
}

std::optional<std::uint64_t> parse_hex16(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  std::uint64_t value = 0;
  for (char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  return value;
}

std::string to_base64(ByteView bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t v = 0;
    for (std::size_t k = 0; k < 3; ++k)
      v = v << 8 | (k < n ? static_cast<std::uint32_t>(bytes[i + k]) : 0);
    out += kBase64[v >> 18];
    out += kBase64[v >> 12 & 63];
    out += n > 1 ? kBase64[v >> 6 & 63] : '=';
    out += n > 2 ? kBase64[v & 63] : '=';
  }
  return out;
}

std::optional<Bytes> parse_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  Bytes out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    std::size_t pad = 0;
    if (last && text[i + 3] == '=') pad = text[i + 2] == '=' ? 2 : 1;
    std::uint32_t v = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      int digit = k >= 4 - pad ? 0 : base64_digit(text[i + k]);
      if (digit < 0) return std::nullopt;
      v = v << 6 | static_cast<std::uint32_t>(digit);
    }
    if (pad == 1 && (v & 0xff) != 0) return std::nullopt;
    if (pad == 2 && (v & 0xffff) != 0) return std::nullopt;
    out.push_back(static_cast<std::byte>(v >> 16));
    if (pad < 2) out.push_back(static_cast<std::byte>(v >> 8));
    if (pad < 1) out.push_back(static_cast<std::byte>(v));
  }
  return out;
}

namespace {
// The length of the well-formed sequence at `p`, or 0.
std::size_t utf8_sequence(const unsigned char* p, const unsigned char* end) {
  const unsigned c = *p;
  if (c < 0x80) return 1;
  std::size_t extra = 0;
  std::uint32_t value = 0, least = 0;
  if ((c & 0xe0) == 0xc0) {
    extra = 1, value = c & 0x1f, least = 0x80;
  } else if ((c & 0xf0) == 0xe0) {
    extra = 2, value = c & 0x0f, least = 0x800;
  } else if ((c & 0xf8) == 0xf0) {
    extra = 3, value = c & 0x07, least = 0x10000;
  } else {
    return 0;
  }
  if (static_cast<std::size_t>(end - p) <= extra) return 0;
  for (std::size_t i = 1; i <= extra; ++i) {
    if ((p[i] & 0xc0) != 0x80) return 0;
    value = value << 6 | (p[i] & 0x3fu);
  }
  if (value < least || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  return extra + 1;
}
}  // namespace

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  while (p < end) {
    const std::size_t n = utf8_sequence(p, end);
    if (n == 0) return false;
    p += n;
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  out += '"';
  while (p < end) {
    const auto* run = p;  // bytes that go out as they are
    std::size_t n = 0;
    while (p < end && *p >= 0x20 && *p != '"' && *p != '\\' && (n = utf8_sequence(p, end)) != 0) {
      p += n;
    }
    out.append(reinterpret_cast<const char*>(run), static_cast<std::size_t>(p - run));
    if (p == end) break;
    const unsigned c = *p++;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c < 0x20) {
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        } else {
          out += "\xef\xbf\xbd";  // U+FFFD
        }
    }
  }
  out += '"';
}

Result<Nanos> parse_duration(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Error(Errc::invalid_argument, cat("invalid duration \"", text, "\": ", why));
  };
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return Nanos(0);
  if (rest.empty()) return bad("empty");
  constexpr std::uint64_t kMax =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t total = 0;
  while (!rest.empty()) {
    std::uint64_t whole = 0, fraction = 0, scale = 1;
    bool digits = false, dot = false;
    while (!rest.empty()) {
      const char c = rest[0];
      if (c == '.' && !dot) {
        dot = true;
      } else if (c >= '0' && c <= '9') {
        digits = true;
        const auto d = static_cast<std::uint64_t>(c - '0');
        if (!dot) {
          if (whole > (kMax - d) / 10) return bad("out of range");
          whole = whole * 10 + d;
        } else if (scale < 1'000'000'000'000'000ull) {
          fraction = fraction * 10 + d;
          scale *= 10;
        }
      } else {
        break;
      }
      rest.remove_prefix(1);
    }
    if (!digits) return bad("a number is missing");
    struct Unit {
      std::string_view name;
      std::uint64_t nanos;
    };
    static constexpr std::array<Unit, 8> kUnits{{{"ns", 1},
                                                 {"us", 1'000},
                                                 {"\xC2\xB5s", 1'000},
                                                 {"\xCE\xBCs", 1'000},
                                                 {"ms", 1'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"h", 3'600'000'000'000}}};
    std::string_view name = rest.substr(0, rest.find_first_of("0123456789."));
    std::uint64_t unit = 0;
    for (const Unit& u : kUnits) {
      if (u.name == name) unit = u.nanos;
    }
    if (name.empty()) return bad("a unit is missing (ns, us, ms, s, m, h)");
    if (unit == 0) return bad(cat("unknown unit \"", name, "\""));
    rest.remove_prefix(name.size());
    if (whole > kMax / unit) return bad("out of range");
    std::uint64_t part = whole * unit;
    if (scale > 1) {
      part += static_cast<std::uint64_t>(static_cast<long double>(fraction) *
                                         static_cast<long double>(unit) /
                                         static_cast<long double>(scale));
    }
    if (part > kMax - total) return bad("out of range");
    total += part;
  }
  const auto n = static_cast<std::int64_t>(total);
  return Nanos(negative ? -n : n);
}

namespace {
std::string trim_zeros(std::string s) {
  if (s.find('.') == std::string::npos) return s;
  while (s.back() == '0') s.pop_back();
  if (s.back() == '.') s.pop_back();
  return s;
}
std::string decimal(std::uint64_t value, std::uint64_t unit, int digits) {
  std::string fraction = std::to_string(value % unit);
  fraction.insert(0, static_cast<std::size_t>(digits) - fraction.size(), '0');
  return trim_zeros(std::to_string(value / unit) + "." + fraction);
}
}  // namespace

std::string format_duration(Nanos duration) {
  const std::int64_t n = duration.count();
  if (n == 0) return "0s";
  const std::uint64_t abs =
      n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  std::string out = n < 0 ? "-" : "";
  if (abs < 1'000) return out + std::to_string(abs) + "ns";
  if (abs < 1'000'000) return out + decimal(abs, 1'000, 3) + "\xC2\xB5s";
  if (abs < 1'000'000'000) return out + decimal(abs, 1'000'000, 6) + "ms";
  const std::uint64_t seconds = abs / 1'000'000'000;
  const std::uint64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
  if (hours > 0) out += std::to_string(hours) + "h";
  if (hours > 0 || minutes > 0) out += std::to_string(minutes) + "m";
  return out + decimal(abs % 60'000'000'000, 1'000'000'000, 9) + "s";
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return cat(bytes, " B");
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const Error bad(Errc::invalid_argument,
                  cat("invalid size \"", text, "\": use digits and a unit, like 64MiB or 50MB"));
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto number = parse_number<std::uint64_t>(text.substr(0, digits));
  if (!number) return bad;
  std::string_view unit = text.substr(digits);
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                                {"B", 1},
                                                {"KB", 1'000},
                                                {"KiB", 1ull << 10},
                                                {"MB", 1'000'000},
                                                {"MiB", 1ull << 20},
                                                {"GB", 1'000'000'000},
                                                {"GiB", 1ull << 30},
                                                {"TB", 1'000'000'000'000},
                                                {"TiB", 1ull << 40}}};
  for (const Unit& u : kUnits) {
    if (u.name != unit) continue;
    if (*number > std::numeric_limits<std::uint64_t>::max() / u.bytes) return bad;
    return *number * u.bytes;
  }
  return bad;
}

std::string format_rfc3339(UnixMillis time) {
  const std::int64_t millis = time.value();
  std::int64_t days = millis / 86'400'000, rest = millis % 86'400'000;
  if (rest < 0) {
    rest += 86'400'000;
    --days;
  }
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{days}}};
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(rest / 3'600'000),
                static_cast<int>(rest / 60'000 % 60), static_cast<int>(rest / 1000 % 60),
                static_cast<int>(rest % 1000));
  return text;
}

}  // namespace narad
