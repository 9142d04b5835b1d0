// Staging: whether what arrived is what the source wrote, and all that it listed.
#include <algorithm>

#include "internal/moves/staging.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/seglog/control.h"
#include "pkg/seglog/file_source.h"
#include "pkg/seglog/format.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/scan.h"

namespace narad::moves {
namespace {

constexpr std::size_t kScanWindow = 256u << 10;
constexpr std::size_t kHeadBytes = 64u << 10;  // more than the largest control frame

std::uint64_t block_bytes(std::uint64_t segment_bytes, std::size_t block) {
  const std::uint64_t begin = block * seglog::kBlockBytes;
  return begin >= segment_bytes ? 0 : std::min(seglog::kBlockBytes, segment_bytes - begin);
}

// A file, with one range of it read otherwise.
class OverlaidSource final : public seglog::ByteSource {
 public:
  OverlaidSource(File& file, std::uint64_t end, std::uint64_t from, const std::string& bytes)
      : file_(file, kScanWindow, end), from_(from), bytes_(bytes) {}

  Result<ByteView> at(std::uint64_t at, std::size_t want, bool sequential) override {
    NARAD_TRY(ByteView view, file_.at(at, want, sequential));
    buffer_.assign(view.begin(), view.end());
    const std::uint64_t end = at + buffer_.size();
    for (std::uint64_t p = std::max(at, from_); p < std::min(end, from_ + bytes_.size()); ++p) {
      buffer_[static_cast<std::size_t>(p - at)] =
          static_cast<std::byte>(bytes_[static_cast<std::size_t>(p - from_)]);
    }
    return ByteView(buffer_);
  }

 private:
  seglog::FileSource file_;
  std::uint64_t from_;
  const std::string& bytes_;
  Bytes buffer_;
};

}  // namespace

bool Staging::wants_digests(Offset base, bool all) const {
  const auto at = segments_.find(base);
  if (at == segments_.end()) return false;
  const Segment& segment = at->second;
  const bool whole = all || complete(base, segment);
  for (std::size_t b = 0; b < segment.blocks.size(); ++b) {
    const std::uint64_t size = block_bytes(segment.bytes, b);
    if (size < seglog::kBlockBytes && !whole) continue;
    const Block& block = segment.blocks[b];
    const bool settled = block.bytes == size && block.state != Block::State::open &&
                         block.state != Block::State::differs;
    if (!settled) return true;
  }
  return false;
}

std::vector<Offset> Staging::undigested(bool all) const {
  std::vector<Offset> out;
  for (const auto& [base, segment] : segments_) {
    if (wants_digests(base, all)) out.push_back(base);
  }
  return out;
}

std::vector<SegmentRange> Staging::compare(Offset base, const wire::SegmentDigests& digests) {
  std::vector<SegmentRange> again;
  const auto at = segments_.find(base);
  if (at == segments_.end()) return again;
  Segment& segment = at->second;
  NARAD_ASSERT(segment.read_back);
  for (std::size_t b = 0; b < segment.blocks.size(); ++b) {
    Block& block = segment.blocks[b];
    const std::uint64_t size = block_bytes(segment.bytes, b);
    if (block_bytes(digests.segment_bytes, b) != size || b >= digests.blocks.size()) continue;
    // One that was held against what the source wrote is not judged again: a source that started
    // anew reads its digests off its disk.
    const bool settled = block.bytes == size && block.state != Block::State::open &&
                         block.state != Block::State::differs;
    if (settled) continue;
    block.bytes = static_cast<std::uint32_t>(size);
    const auto& theirs = digests.blocks[b];
    const std::uint64_t ours =
        b < segment.digests.size() ? segment.digests[b] : segment.tail->digests().front();
    if (!theirs) {
      block.state = Block::State::unknown;
    } else if (*theirs == ours) {
      block.state = Block::State::confirmed;
    } else {
      block.state = Block::State::differs;
      block.expected = *theirs;
      again.push_back({base, b * seglog::kBlockBytes, size});
    }
  }
  return again;
}

// How many bytes of the segment are no frames of the log, if `block` reads so.
Result<std::uint64_t> Staging::damage_with(Offset base, SegmentRange block,
                                           const std::string& bytes) const {
  const Segment& segment = segments_.at(base);
  NARAD_TRY(auto file, fs_.open(path(base), OpenMode::read));
  OverlaidSource source(*file, segment.bytes, block.from, bytes);
  seglog::ScanOptions options;
  options.log = log_;
  options.expected = base;
  options.bytes = segment.bytes;
  options.name = path(base);
  seglog::SegmentScanner scanner(source, options);
  std::uint64_t damaged = 0;
  while (true) {
    NARAD_TRY(bool more, scanner.next());
    if (!more) return damaged;
    if (scanner.item().kind == seglog::ScanItem::Kind::damage) damaged += scanner.item().bytes;
  }
}

Result<void> Staging::replace(SegmentRange range, const std::string& bytes) {
  const auto at = segments_.find(range.base);
  const std::size_t b = static_cast<std::size_t>(range.from / seglog::kBlockBytes);
  if (at == segments_.end() || b >= at->second.blocks.size()) return ok();  // dropped meanwhile
  Segment& segment = at->second;
  Block& block = segment.blocks[b];
  if (block.state != Block::State::differs || block.bytes != range.bytes) return ok();
  if (bytes.size() != range.bytes) {
    return Error(Errc::unavailable,
                 cat("the source answered ", bytes.size(), " bytes of block ", range.from,
                     " of segment ", range.base, ", not ", range.bytes));
  }
  seglog::BlockDigester second(log_);
  second.update(as_bytes(bytes));
  const bool good = second.digests().front() == block.expected;
  bool take = good;
  if (!good) {
    NARAD_TRY(std::uint64_t damage_first, damage_with(range.base, range, std::string()));
    NARAD_TRY(std::uint64_t damage_second, damage_with(range.base, range, bytes));
    take = damage_second < damage_first;
  }
  if (take) {
    segment.walked = 0;
    segment.synced = std::min(segment.synced, range.from);
    segment.dirty = true;
    segment.summed = false;
    NARAD_TRY(write_record());
    NARAD_TRY(auto file, fs_.open(path(range.base), OpenMode::read_write));
    if (auto written = write_all(*file, as_bytes(bytes), range.from); !written) {
      const Error error = written.error();
      NARAD_TRY(drop({range.base}));  // neither reading is there whole
      return error;
    }
    if (b < segment.digests.size()) {
      segment.digests[b] = second.digests().front();
    } else {
      segment.tail = std::move(second);
    }
  }
  block.state = good ? Block::State::confirmed : Block::State::damaged;
  return ok();
}

std::uint64_t Staging::damaged_blocks() const {
  std::uint64_t n = 0;
  for (const auto& [base, segment] : segments_) {
    for (const Block& block : segment.blocks) n += block.state == Block::State::damaged ? 1 : 0;
  }
  return n;
}

// The end of the last intact header, or the base, of the last segment; `*at`: the first byte of a
// frame with records at or past `cut_at`, or the end of the file.
Result<Offset> Staging::walk_last(std::optional<Offset> cut_at, std::uint64_t* at) const {
  if (segments_.empty()) return Offset(0);
  const auto& [base, segment] = *segments_.rbegin();
  if (at != nullptr) *at = segment.bytes;
  NARAD_TRY(seglog::ScanOptions options, scan_of(base, segment));
  // Not past what is looked for.
  if (segment.walked > 0 && (!cut_at || segment.walked_end <= *cut_at)) {
    options.at = segment.walked;
    options.expected = segment.walked_end;
  }
  NARAD_TRY(auto file, fs_.open(path(base), OpenMode::read));
  seglog::FileSource source(*file, kScanWindow, segment.bytes);
  seglog::SegmentScanner scanner(source, options);
  Offset end = options.expected;
  bool cut = false;
  while (true) {
    NARAD_TRY(bool more, scanner.next());
    if (!more) return end;
    const seglog::ScanItem& item = scanner.item();
    if (item.kind != seglog::ScanItem::Kind::frame) continue;
    end = item.to;
    if (at != nullptr && !cut && cut_at && !item.header.is_control() && item.from >= *cut_at) {
      *at = item.at;
      cut = true;
    }
  }
}

// Of the headers of a segment, from its beginning.
Result<seglog::ScanOptions> Staging::scan_of(Offset base, const Segment& segment) const {
  seglog::ScanOptions options;
  NARAD_TRY(options.log, known_log());
  options.expected = base;
  options.bytes = segment.bytes;
  options.verify_from = seglog::kNoOffset;  // headers prove themselves
  options.name = path(base);
  return options;
}

Result<void> Staging::walk_ahead() {
  if (segments_.empty()) return ok();
  auto& [base, segment] = *segments_.rbegin();
  NARAD_TRY(seglog::ScanOptions options, scan_of(base, segment));
  if (segment.walked > 0) {
    options.at = segment.walked;
    options.expected = segment.walked_end;
  }
  NARAD_TRY(auto file, fs_.open(path(base), OpenMode::read));
  seglog::FileSource source(*file, kScanWindow, segment.bytes);
  seglog::SegmentScanner scanner(source, options);
  while (true) {
    const auto more = scanner.next();
    // What is no frame, perhaps the beginning of one, is looked at again when it counts.
    if (!more || !more.value()) return ok();
    if (scanner.item().kind != seglog::ScanItem::Kind::frame) return ok();
    segment.walked = scanner.position();
    segment.walked_end = scanner.expected();
  }
}

// An older source does not name its log: its control frames do.
Result<LogId> Staging::known_log() const {
  if (log_ != LogId(0)) return log_;
  for (auto s = segments_.rbegin(); s != segments_.rend(); ++s) {
    NARAD_TRY(auto file, fs_.open(path(s->first), OpenMode::read));
    Bytes head(kHeadBytes);
    NARAD_TRY(std::size_t n, read_up_to(*file, head, 0));
    const auto check = seglog::decode_control_frame(ByteView(head).first(n));
    if (check.status == seglog::HeaderStatus::good) return check.control.log;
  }
  return LogId(0);
}

Result<Offset> Staging::end() const { return walk_last(std::nullopt, nullptr); }

Result<void> Staging::cut_to_hwm() {
  NARAD_ASSERT(reached_source());
  const Offset hwm = newest().listing.hwm;
  std::uint64_t at = 0;
  NARAD_TRY(Offset end, walk_last(hwm, &at));
  if (end <= hwm || segments_.empty() || at == segments_.rbegin()->second.bytes) return ok();
  const Offset base = segments_.rbegin()->first;
  NARAD_TRY(cut(base, at));
  Segment& segment = segments_.at(base);
  segment.cut_to_hwm = true;
  // An older source has no digests to hold it against, and none fits what was cut.
  for (std::size_t b = 0; b < segment.blocks.size(); ++b) {
    segment.blocks[b].state = Block::State::unknown;
    segment.blocks[b].bytes = static_cast<std::uint32_t>(block_bytes(segment.bytes, b));
  }
  return ok();
}

Result<Staging::Verdict> Staging::verify(bool digests) const {
  NARAD_ASSERT(reached_source());
  Verdict verdict;
  const wire::Listing& listing = newest().listing;
  const auto wrong = [&](std::string why) {
    verdict.problem = std::move(why);
    return verdict;
  };
  NARAD_TRY(verdict.end, end());
  for (const auto& [base, segment] : segments_) {
    if (listed(base) == nullptr) return wrong(cat("segment ", base, " is not listed"));
  }
  for (const wire::ListedSegment& s : listing.segments) {
    const auto staged = segments_.find(s.base);
    if (staged == segments_.end()) return wrong(cat("segment ", s.base, " is missing"));
    NARAD_TRY(FileStat stat, fs_.stat(path(s.base)));
    const bool cut = staged->second.cut_to_hwm && staged->second.bytes <= s.bytes;
    if (stat.size != staged->second.bytes || (stat.size != s.bytes && !cut)) {
      return wrong(cat("segment ", s.base, " has ", stat.size, " bytes, not ", s.bytes));
    }
    if (digests && wants_digests(s.base, true)) {
      return wrong(cat("segment ", s.base, " was not held against the source's digests"));
    }
  }
  if (verdict.end < listing.hwm) {
    return wrong(
        cat("the copy ends at ", verdict.end, ", before the high watermark ", listing.hwm));
  }
  if (verdict.end > listing.hwm) {
    return wrong(cat("the copy ends at ", verdict.end, ", past the high watermark ", listing.hwm));
  }
  return verdict;
}

}  // namespace narad::moves
