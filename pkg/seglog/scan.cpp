#include "pkg/seglog/scan.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::seglog {
namespace {

constexpr std::size_t kSearchBytes = 64u << 10;
constexpr std::string_view kMagicText = "NRDF";

}  // namespace

std::uint64_t records_max_in(std::uint64_t bytes) {
  // A frame is a header and at least one byte, and a compressed byte may stand for many.
  constexpr std::uint64_t kFrameRecordsMax = kFrameBytesMax / kRecordBytesMin;
  return bytes / (kHeaderBytes + 1) * kFrameRecordsMax;
}

SegmentScanner::SegmentScanner(ByteSource& source, ScanOptions options)
    : source_(source),
      options_(std::move(options)),
      at_(options_.at),
      expected_(options_.expected) {
  NARAD_ASSERT(at_ <= options_.bytes);
}

Result<bool> SegmentScanner::next() {
  if (done_) return false;
  if (expected_ >= options_.end || at_ == options_.bytes) return finish();
  if (options_.bytes - at_ < kHeaderBytes) {
    return damage(options_.bytes, expected_, true);
  }
  NARAD_TRY(ByteView view, source_.at(at_, kHeaderBytes, expected_ >= options_.verify_from));
  if (view.size() < kHeaderBytes) return damage(options_.bytes, expected_, true);
  const HeaderCheck check = decode_header(view, options_.log);
  if (check.status == HeaderStatus::unsupported) return unsupported(at_);
  if (check.status == HeaderStatus::good && check.header.base == expected_) {
    return frame_at(check.header);
  }
  return resynchronise();
}

Result<bool> SegmentScanner::frame_at(const FrameHeader& header) {
  const std::uint64_t total = header.frame_bytes();
  if (total > options_.bytes - at_) return damage(options_.bytes, header.end(), true, &header);
  ByteView stored;
  const bool verify = header.end() > options_.verify_from || header.is_control();
  if (verify) {
    NARAD_TRY(ByteView view, source_.at(at_, static_cast<std::size_t>(total), true));
    if (view.size() < total) return damage(options_.bytes, header.end(), true, &header);
    stored = view.subspan(kHeaderBytes, header.stored_bytes);
    if (!payload_verifies(header, stored, options_.log)) {
      return damage(at_ + total, header.end(), false, &header);
    }
  }
  item_ = ScanItem{};
  item_.kind = ScanItem::Kind::frame;
  item_.has_header = true;
  item_.at = at_;
  item_.bytes = total;
  item_.from = header.base;
  item_.to = std::min(header.end(), options_.end);
  item_.header = header;
  item_.verified = verify;
  item_.stored = stored;
  at_ += total;
  expected_ = item_.to;
  return true;
}

// The bytes up to `to_at` are no frames; at the end of the segment nobody knows what they were,
// except that the segment ends at `end`.
Result<bool> SegmentScanner::damage(std::uint64_t to_at, Offset to, bool at_end,
                                    const FrameHeader* header) {
  item_ = ScanItem{};
  item_.kind = ScanItem::Kind::damage;
  if (header != nullptr) {
    item_.header = *header;
    item_.has_header = true;
  }
  item_.at = at_;
  item_.bytes = to_at - at_;
  item_.from = expected_;
  item_.to = std::min(to, options_.end);
  if (at_end) {
    item_.open_ended = options_.end == kNoOffset;
    if (!item_.open_ended) item_.to = options_.end;
  }
  NARAD_ASSERT(item_.from <= item_.to);
  at_ = to_at;
  expected_ = item_.to;
  return true;
}

// Looks for the next frame of this log behind damage at at_.
Result<bool> SegmentScanner::resynchronise() {
  std::uint64_t q = at_ + 1;
  while (options_.bytes - q >= kHeaderBytes) {
    NARAD_TRY(ByteView view, source_.at(q, kSearchBytes, true));
    if (view.size() > options_.bytes - q) {
      view = view.first(static_cast<std::size_t>(options_.bytes - q));
    }
    if (view.size() < kHeaderBytes) break;
    const std::size_t i = as_chars(view).find(kMagicText);
    if (i == std::string_view::npos) {
      q += view.size() - (kMagicText.size() - 1);
      continue;
    }
    q += i;
    if (view.size() - i < kHeaderBytes) {
      if (i == 0) break;
      continue;  // with the whole header in view
    }
    const HeaderCheck check = decode_header(view.subspan(i), options_.log);
    if (check.status == HeaderStatus::unsupported) return unsupported(q);
    const FrameHeader& h = check.header;
    const bool possible = check.status == HeaderStatus::good && h.base >= expected_ &&
                          h.base.minus(expected_) <= records_max_in(q - at_) &&
                          h.frame_bytes() <= options_.bytes - q;
    if (possible) {
      const auto total = static_cast<std::size_t>(h.frame_bytes());
      NARAD_TRY(ByteView frame, source_.at(q, total, true));
      if (frame.size() >= total &&
          payload_verifies(h, frame.subspan(kHeaderBytes, h.stored_bytes), options_.log)) {
        return damage(q, h.base, false);
      }
    }
    ++q;
  }
  return damage(options_.bytes, expected_, true);
}

// The end; offsets that no byte accounts for are missing.
Result<bool> SegmentScanner::finish() {
  done_ = true;
  if (options_.end == kNoOffset || expected_ >= options_.end) return false;
  return damage(at_, options_.end, false);
}

Error SegmentScanner::unsupported(std::uint64_t at) const {
  return Error(Errc::unavailable,
               cat(options_.name, ": the frame at byte ", at,
                   " was written by a newer release; upgrade this node (nothing was changed)"));
}

}  // namespace narad::seglog
