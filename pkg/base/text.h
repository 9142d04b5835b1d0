#pragma once
// Small pure text helpers: concatenation, hex, base64, UTF-8, sizes, and the Go duration grammar of
// the wire contract (http-api 1.10).
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "pkg/base/bytes.h"
#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad {

namespace detail {
inline void append_part(std::string& out, std::string_view s) { out += s; }
inline void append_part(std::string& out, char c) { out += c; }
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, char> && !std::is_same_v<T, bool>)
void append_part(std::string& out, T n) {
  out += std::to_string(n);
}
template <class Tag, class Rep>
void append_part(std::string& out, StrongNumber<Tag, Rep> n) {
  out += std::to_string(n.value());
}
}  // namespace detail

// Joins strings, characters, integers and strong numbers: cat("p", partition, " at ", offset).
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (detail::append_part(out, parts), ...);
  return out;
}

// Lower-case hex, two digits a byte.
std::string to_hex(ByteView bytes);
// Exactly 16 hex digits (either case), or nothing.
std::optional<std::uint64_t> parse_hex16(std::string_view text);

// Standard padded base64 (RFC 4648, section 4). Decoding is strict: padding required, no spaces.
std::string to_base64(ByteView bytes);
std::optional<Bytes> parse_base64(std::string_view text);

// Well-formed UTF-8 as Unicode defines it (no surrogates, no overlong forms, at most U+10FFFF).
bool is_utf8(std::string_view text);

// Appends `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// A decimal integer that is the whole text; sign allowed for signed types only.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

using Nanos = std::chrono::nanoseconds;

// Go's time.ParseDuration: optional sign, then decimal-number-with-unit groups ("1h30m", "1.5s",
// "-2us"), units ns us µs ms s m h; plain "0" allowed. invalid_argument otherwise or on overflow.
Result<Nanos> parse_duration(std::string_view text);
// Go's Duration.String: "168h0m0s", "1.5s", "0s".
std::string format_duration(Nanos duration);
// "512 B", "1.5 KiB", "64.0 MiB".
std::string format_bytes(std::uint64_t bytes);
// A byte size: digits with an optional unit (B, KB/KiB, MB/MiB, GB/GiB, TB/TiB; decimal K = 1000).
Result<std::uint64_t> parse_bytes(std::string_view text);
// "2026-01-02T03:04:05.678Z".
std::string format_rfc3339(UnixMillis time);

}  // namespace narad
