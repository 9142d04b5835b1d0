#pragma once
// Bytes, views of bytes, and bounded little-endian reading and writing of them.
//
// ByteReader never reads past its view: after the first short read it stays failed, answers zeros,
// and `ok()` is false; parsers check once at the end (or before using a length as a size).
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace narad {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}
inline std::string_view as_chars(ByteView b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}
inline std::string to_text(ByteView b) { return std::string(as_chars(b)); }
inline Bytes to_bytes(std::string_view s) {
  ByteView b = as_bytes(s);
  return Bytes(b.begin(), b.end());
}

// REQUIRES: sizeof(T) bytes at `from` / `to`. The hosts Narad runs on are little-endian.
template <class T>
T load_le(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store_le(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

class ByteReader {
 public:
  explicit ByteReader(ByteView view) : view_(view) {}

  bool ok() const { return ok_; }
  std::size_t position() const { return at_; }
  std::size_t remaining() const { return view_.size() - at_; }

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  // Unsigned LEB128 of at most 10 bytes; a longer or overflowing one fails.
  std::uint64_t varint();
  // The next `n` bytes, or an empty view and failure if fewer remain.
  ByteView bytes(std::uint64_t n);
  void fail() { ok_ = false; }

 private:
  template <class T>
  T number() {
    if (!ok_ || remaining() < sizeof(T)) {
      ok_ = false;
      return 0;
    }
    T v = load_le<T>(view_.data() + at_);
    at_ += sizeof(T);
    return v;
  }
  ByteView view_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}
  void u8(std::uint8_t v) { number(v); }
  void u16(std::uint16_t v) { number(v); }
  void u32(std::uint32_t v) { number(v); }
  void u64(std::uint64_t v) { number(v); }
  void varint(std::uint64_t v);
  void bytes(ByteView b) { out_.insert(out_.end(), b.begin(), b.end()); }

 private:
  template <class T>
  void number(T v) {
    std::size_t at = out_.size();
    out_.resize(at + sizeof(T));
    store_le(out_.data() + at, v);
  }
  Bytes& out_;
};

// How many bytes `v` takes as LEB128 (1 to 10).
std::size_t varint_size(std::uint64_t v);

}  // namespace narad
