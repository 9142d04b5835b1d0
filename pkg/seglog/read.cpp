#include "pkg/seglog/read.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/seglog/file_source.h"
#include "pkg/seglog/names.h"

namespace narad::seglog {
namespace {

constexpr std::uint64_t kAnchorBytes = 32u << 10;
constexpr std::size_t kReadWindow = 128u << 10;
constexpr std::size_t kIndexWindow = 64u << 10;

// The anchor that `offset` lies behind. REQUIRES: at least one anchor, the first at the base.
const SegmentIndex::Anchor& anchor_for(const SegmentIndex& index, Offset offset) {
  auto after = std::upper_bound(index.anchors.begin(), index.anchors.end(), offset,
                                [](Offset o, const SegmentIndex::Anchor& a) { return o < a.base; });
  NARAD_ASSERT(after != index.anchors.begin());
  return *std::prev(after);
}

class Reader {
 public:
  Reader(FileSystem& fs, const std::string& directory, const LogView& view,
         const ReadRequest& request, const RecordSink& sink)
      : fs_(fs), directory_(directory), view_(view), request_(request), sink_(sink) {
    outcome_.next = request.from;
  }

  Result<ReadOutcome> run() {
    while (outcome_.next < view_.hwm && !full()) {
      NARAD_TRY(read_segment(segment_of(view_, outcome_.next)));
    }
    return std::move(outcome_);
  }

 private:
  bool full() const {
    if (outcome_.next == request_.from) return false;
    return records_ >= request_.records_soft_max || bytes_ >= request_.bytes_soft_max;
  }

  ScanOptions options_for(const SegmentInfo& segment) const {
    ScanOptions options;
    options.log = view_.log;
    options.expected = segment.base;
    options.bytes = segment.bytes;
    options.end = segment.end;
    options.verify_from = outcome_.next;
    options.name = segment_name(segment.base);
    return options;
  }

  // Where to start scanning for outcome_.next.
  Result<void> seek(File& file, const SegmentInfo& segment, ScanOptions& options) {
    if (outcome_.next == segment.base) return ok();
    const auto& position = request_.position;
    if (position && position->offset == outcome_.next && position->segment == segment.base &&
        position->generation == segment.generation && position->at <= segment.bytes) {
      options.at = position->at;
      options.expected = position->expected;
      return ok();
    }
    NARAD_TRY(SegmentIndexPtr index, index_for(file, segment));
    const SegmentIndex::Anchor& anchor = anchor_for(*index, outcome_.next);
    options.at = anchor.at;
    options.expected = anchor.base;
    return ok();
  }

  // An index that covers outcome_.next: the caller's if it does, else built from where that ends.
  Result<SegmentIndexPtr> index_for(File& file, const SegmentInfo& segment) {
    const auto& given = request_.index;
    const bool fits = given && given->segment == segment.base &&
                      given->generation == segment.generation &&
                      given->covered_bytes <= segment.bytes;
    if (fits && (given->covered_end > outcome_.next || given->covered_bytes == segment.bytes)) {
      return given;
    }
    auto index = std::make_shared<SegmentIndex>();
    ScanOptions options = options_for(segment);
    options.verify_from = kNoOffset;
    if (fits) {
      *index = *given;
      options.at = given->covered_bytes;
      options.expected = given->covered_end;
    } else {
      index->segment = segment.base;
      index->generation = segment.generation;
      index->anchors.push_back({0, segment.base});
    }
    FileSource source(file, kIndexWindow, segment.bytes);
    SegmentScanner scanner(source, options);
    while (true) {
      const std::uint64_t at = scanner.position();
      const Offset base = scanner.expected();
      if (at >= index->anchors.back().at + kAnchorBytes) index->anchors.push_back({at, base});
      NARAD_TRY(bool more, scanner.next());
      if (!more) break;
      index->covered_bytes = scanner.position();
      index->covered_end = scanner.expected();
    }
    outcome_.index = index;
    return SegmentIndexPtr(std::move(index));
  }

  Result<void> read_segment(const SegmentInfo& segment) {
    const std::string path = join_path(directory_, segment_name(segment.base));
    NARAD_TRY(auto file, fs_.open(path, OpenMode::read));
    ScanOptions options = options_for(segment);
    NARAD_TRY(seek(*file, segment, options));
    FileSource source(*file, kReadWindow, segment.bytes);
    SegmentScanner scanner(source, options);
    while (!full()) {
      NARAD_TRY(bool more, scanner.next());
      if (!more) break;
      const ScanItem& item = scanner.item();
      if (item.to <= outcome_.next) continue;
      if (item.kind == ScanItem::Kind::damage) {
        lose(std::max(item.from, outcome_.next), item.to);
      } else {
        NARAD_TRY(deliver(item, path));
      }
      outcome_.next = item.to;
    }
    // The scan accounts for every offset below the segment's end, one way or another.
    NARAD_ASSERT(full() || outcome_.next >= segment.end);
    outcome_.position = ReadPosition{outcome_.next, segment.base, segment.generation,
                                     scanner.position(), scanner.expected()};
    return ok();
  }

  // Hands over the records of a verified frame. One that cannot be decoded all the same was written
  // so: its records are lost, and the reader goes on behind it.
  Result<void> deliver(const ScanItem& item, const std::string& path) {
    auto decoded = decode(item);
    if (decoded) return ok();
    if (decoded.error().code() != Errc::data_loss) {
      return decoded.error().with_context(cat(path, ", byte ", item.at));
    }
    lose(outcome_.next, item.to);
    return ok();
  }

  Result<void> decode(const ScanItem& item) {
    NARAD_TRY(ByteView raw, raw_payload(item.header, item.stored, scratch_));
    RecordReader reader(raw);
    for (Offset offset = item.from; offset < item.to; offset = offset.next()) {
      NARAD_TRY(std::optional<RecordView> record, reader.next());
      if (!record) {
        return Error(Errc::data_loss, "a verified frame holds fewer records than it promises");
      }
      if (offset < outcome_.next) continue;
      sink_(offset, item.header.commit_time, *record);
      outcome_.next = offset.next();
      ++records_;
      bytes_ += record->key.size() + record->payload.size();
    }
    return ok();
  }

  void lose(Offset from, Offset to) {
    if (!outcome_.lost.empty() && outcome_.lost.back().to == from) {
      outcome_.lost.back().to = to;
    } else {
      outcome_.lost.push_back({from, to});
    }
  }

  FileSystem& fs_;
  const std::string& directory_;
  const LogView& view_;
  const ReadRequest& request_;
  const RecordSink& sink_;
  ReadOutcome outcome_;
  std::size_t records_ = 0;
  std::size_t bytes_ = 0;
  Bytes scratch_;
};

}  // namespace

const SegmentInfo& segment_of(const LogView& view, Offset offset) {
  if (offset >= view.active.base) return view.active;
  auto after = std::upper_bound(view.sealed->begin(), view.sealed->end(), offset,
                                [](Offset o, const SegmentInfo& s) { return o < s.base; });
  NARAD_ASSERT(after != view.sealed->begin());
  return *std::prev(after);
}

Result<ReadOutcome> read_records(FileSystem& fs, const std::string& directory, const LogView& view,
                                 const ReadRequest& request, const RecordSink& sink) {
  if (request.from < view.oldest()) {
    return Error(Errc::gone,
                 cat("offset ", request.from, " has expired; the oldest is ", view.oldest()));
  }
  return Reader(fs, directory, view, request, sink).run();
}

}  // namespace narad::seglog
