#pragma once
// Frames and records to bytes and back. Pure; every length is checked before it is used. Nothing
// here ever trusts a byte that a checksum under the right log id has not vouched for.
#include <optional>
#include <string_view>

#include "pkg/base/bytes.h"
#include "pkg/base/ids.h"
#include "pkg/base/result.h"
#include "pkg/seglog/format.h"

namespace narad::seglog {

struct FrameHeader {
  Codec codec = Codec::none;
  std::uint16_t flags = 0;
  Offset base{0};
  std::uint32_t records = 0;
  std::uint32_t stored_bytes = 0;  // payload as it lies in the file
  std::uint32_t raw_bytes = 0;     // payload before the codec
  UnixMillis commit_time{0};
  OriginId origin{0};
  Sequence last_sequence{0};
  std::uint64_t payload_checksum = 0;

  bool is_control() const { return (flags & kFlagControl) != 0; }
  bool is_rerouted() const { return (flags & kFlagRerouted) != 0; }
  bool is_sync_head() const { return (flags & kFlagSyncHead) != 0; }
  Offset end() const { return base.plus(records); }
  std::uint64_t frame_bytes() const { return kHeaderBytes + stored_bytes; }
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

// The 64 bytes. REQUIRES: out.size() >= kHeaderBytes.
void encode_header(const FrameHeader& header, LogId seed, std::span<std::byte> out);

enum class HeaderStatus : std::uint8_t {
  good,
  damaged,      // not a header of this log
  unsupported,  // proves itself, but a newer release wrote it: refuse, never modify
};
struct HeaderCheck {
  HeaderStatus status = HeaderStatus::damaged;
  FrameHeader header;  // meaningful if good
};
HeaderCheck decode_header(ByteView bytes, LogId seed);

// Whether `stored` is the payload that `header` promises.
bool payload_verifies(const FrameHeader& header, ByteView stored, LogId seed);

// One record as the log sees it. Views into the caller's memory or into a frame's raw payload.
struct RecordView {
  std::string_view key;
  std::string_view payload;
};
// What the record adds to a raw payload, its length prefix included.
std::size_t record_bytes(const RecordView& record);

// How payloads are compressed: not at all, or zstd at a level (1 to 19).
struct Compression {
  Codec codec = Codec::none;
  int level = 1;
};

// Appends frames to a buffer. begin(), add() at least once, end(); raw_bytes() tells when to split.
class FrameWriter {
 public:
  FrameWriter(Bytes& out, LogId seed, Compression compression)
      : out_(out), seed_(seed), compression_(compression) {}

  void begin();
  void add(const RecordView& record);
  std::size_t raw_bytes() const { return out_.size() - start_ - kHeaderBytes; }
  std::uint32_t records() const { return records_; }
  // Completes the frame: fills in codec, lengths, record count and checksums of `header`, and
  // answers it. REQUIRES: raw_bytes() <= kFrameBytesMax - kHeaderBytes.
  FrameHeader end(FrameHeader header);

 private:
  Bytes& out_;
  LogId seed_;
  Compression compression_;
  std::size_t start_ = 0;
  std::uint32_t records_ = 0;
};

// The raw payload of a verified frame: a view of `stored` itself, or of `scratch` after unpacking.
// data_loss if it does not unpack to exactly raw_bytes.
Result<ByteView> raw_payload(const FrameHeader& header, ByteView stored, Bytes& scratch);

// Walks the records of a raw payload, in order. Views point into `raw`.
class RecordReader {
 public:
  explicit RecordReader(ByteView raw) : in_(raw) {}
  // The next record, or nothing at the end of the payload. data_loss if the bytes make no sense,
  // unavailable if a newer release wrote the record.
  Result<std::optional<RecordView>> next();

 private:
  ByteReader in_;
};

}  // namespace narad::seglog
