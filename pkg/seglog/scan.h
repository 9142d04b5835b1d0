#pragma once
// SegmentScanner: walks the bytes of one segment frame by frame, and says exactly what cannot be
// trusted. Everything that reads segments (recovery, reads, indexes, digests, fsck) goes through
// it. Pure: bytes come from a ByteSource.
//
// After damage it looks for the next frame that verifies under the log id (header and payload) and
// whose base offset is possible: not below the expected one, and no further above it than the bytes
// between could hold.
#include <limits>
#include <memory>
#include <string>

#include "pkg/seglog/frame.h"

namespace narad::seglog {

// Bytes by position. The view stays valid until the next call.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At least `want` bytes from `at`, or all up to the end if there are fewer; perhaps more. A hint:
  // `sequential` says that what follows will be wanted too.
  virtual Result<ByteView> at(std::uint64_t at, std::size_t want, bool sequential) = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(ByteView bytes) : bytes_(bytes) {}
  Result<ByteView> at(std::uint64_t at, std::size_t, bool) override {
    return at >= bytes_.size() ? ByteView{} : bytes_.subspan(static_cast<std::size_t>(at));
  }

 private:
  ByteView bytes_;
};

inline constexpr Offset kNoOffset{std::numeric_limits<std::uint64_t>::max()};

struct ScanOptions {
  LogId log{0};
  std::uint64_t at = 0;     // where to begin: a frame boundary
  Offset expected{0};       // the base offset of the frame there
  std::uint64_t bytes = 0;  // no byte at or past it is part of the segment
  Offset end = kNoOffset;   // nor any frame at or past it (the next segment's base, or the HWM)
  Offset verify_from{0};    // payloads of frames that end at or below are neither read nor verified
  std::string name;         // the file, for error texts
};

struct ScanItem {
  enum class Kind : std::uint8_t {
    frame,
    damage,  // bytes that are no frame of the log; offsets [from, to) are lost
  };
  Kind kind = Kind::frame;
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;  // 0 for offsets that are missing without a byte to show for them
  Offset from{0};
  Offset to{0};
  // Damage that reaches the end of the segment while ScanOptions::end is unknown: how many offsets
  // are lost cannot be told (`to` is a lower bound).
  bool open_ended = false;
  // Of a frame; of damage if `has_header`: the header verifies, the payload does not.
  FrameHeader header;
  bool has_header = false;
  bool verified = false;
  ByteView stored;  // the payload, if verified; valid until next()
};

class SegmentScanner {
 public:
  SegmentScanner(ByteSource& source, ScanOptions options);

  // Moves to the next item; false at the end. Errors: what the source answered, and unavailable if
  // a newer release wrote the frame.
  Result<bool> next();
  const ScanItem& item() const { return item_; }

  // Where the next item begins.
  std::uint64_t position() const { return at_; }
  Offset expected() const { return expected_; }

 private:
  Result<bool> frame_at(const FrameHeader& header);
  Result<bool> damage(std::uint64_t to_at, Offset to, bool open_ended,
                      const FrameHeader* header = nullptr);
  Result<bool> resynchronise();
  Result<bool> finish();
  Error unsupported(std::uint64_t at) const;

  ByteSource& source_;
  ScanOptions options_;
  std::uint64_t at_;
  Offset expected_;
  ScanItem item_;
  bool done_ = false;
};

// How many records at most `bytes` bytes of frames can hold.
std::uint64_t records_max_in(std::uint64_t bytes);

}  // namespace narad::seglog
