#pragma once
// For tests: the owner of a partition as a destination sees it, over a real SegmentedLog on a
// simulated disk of its own. Synchronous.
#include <string>
#include <vector>

#include "internal/moves/staging.h"
#include "pkg/base/assert.h"
#include "pkg/seglog/log.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/read.h"
#include "pkg/seglog/sums.h"
#include "pkg/sim/sim_fs.h"

namespace narad::moves::testing {

inline const TopicPartition kPartition{"orders", PartitionId(3)};
inline constexpr Incarnation kLife{7};
inline constexpr LogId kLog{0x5ea1a11c0ffee123};
inline constexpr UnixMillis kNow{1'700'000'000'000};

inline seglog::Knobs small_segments() {
  seglog::Knobs knobs;
  knobs.segment_bytes = 4096;
  knobs.frame_raw_bytes = 400;
  return knobs;
}

// A log with everything a listing says of it.
class SourceLog {
 public:
  static constexpr const char* kDir = "/s";

  explicit SourceLog(seglog::Knobs knobs = small_segments(), std::uint64_t seed = 1)
      : knobs_(knobs), disk(seed) {
    NARAD_ASSERT(disk.mkdir(kDir).has_value() && disk.sync_dir("/").has_value());
    open();
  }

  void open() {
    log.reset();
    seglog::SegmentedLog::OpenOptions o;
    o.directory = kDir;
    o.knobs = knobs_;
    o.create_if_missing = true;
    o.fresh_id = kLog;
    auto opened = seglog::SegmentedLog::open(disk, std::move(o));
    NARAD_ASSERT(opened.has_value(), opened.error().text());
    log = std::move(opened.value());
  }

  // Commits `count` records of one origin, in batches of five.
  void append(std::uint64_t count, std::size_t bytes = 60, std::uint64_t origin = 9) {
    while (count > 0) {
      const std::uint64_t n = std::min<std::uint64_t>(count, 5);
      std::vector<std::string> texts;
      seglog::AppendBatch batch;
      batch.origin = OriginId(origin);
      for (std::uint64_t i = 0; i < n; ++i) {
        texts.push_back(cat("record ", next_, " "));
        texts.back().resize(std::max(bytes, texts.back().size()), 'x');
        ++next_;
      }
      for (std::uint64_t i = 0; i < n; ++i) {
        batch.records.push_back({Sequence(next_ - n + i), {"key", texts[i]}});
      }
      auto staged = log->stage({batch}, kNow);
      NARAD_ASSERT(staged.has_value(), staged.error().text());
      log->publish();
      count -= n;
    }
  }

  wire::Listing listing() const {
    wire::Listing l;
    l.incarnation = kLife;
    l.log = log->id();
    l.listed_at = listed_at;
    l.frontier = frontier;
    l.acked_ahead = acked_ahead;
    l.links = links;
    l.cursors = cursors;
    const seglog::LogViewPtr view = log->view();
    l.hwm = view->hwm;
    for (const seglog::SegmentInfo& s : *view->sealed) {
      l.segments.push_back({s.base, s.bytes, true, s.mtime});
    }
    l.segments.push_back({view->active.base, view->active.bytes, false, kNow});
    return l;
  }

  Result<std::string> chunk(Offset base, std::uint64_t from, std::uint64_t bytes) {
    auto file = disk.open(join_path(kDir, seglog::segment_name(base)), OpenMode::read);
    if (!file) return file.error();
    Bytes out(static_cast<std::size_t>(bytes));
    NARAD_TRY(std::size_t n, read_up_to(*file.value(), out, from));
    out.resize(n);
    return to_text(out);
  }

  wire::SegmentDigests digests(Offset base) {
    wire::SegmentDigests out;
    const seglog::LogViewPtr view = log->view();
    const seglog::SegmentInfo& segment = seglog::segment_of(*view, base);
    out.segment_bytes = segment.bytes;
    if (base == view->active.base && log->active_digests()) {
      const auto known = *log->active_digests();
      out.blocks.assign(known.begin(), known.end());
      return out;
    }
    auto read = seglog::block_digests(disk, kDir, log->id(), segment);
    NARAD_ASSERT(read.has_value(), read.error().text());
    out.blocks = std::move(read.value());
    return out;
  }

  // Everything visible, as text.
  static std::vector<std::string> records(FileSystem& fs, const std::string& directory,
                                          const seglog::LogView& view) {
    std::vector<std::string> out;
    Offset next = view.oldest();
    while (next < view.hwm) {
      seglog::ReadRequest request;
      request.from = next;
      const auto sink = [&](Offset offset, UnixMillis at, const seglog::RecordView& r) {
        out.push_back(cat(offset, " ", at, " ", r.key, " ", r.payload));
      };
      auto read = seglog::read_records(fs, directory, view, request, sink);
      NARAD_ASSERT(read.has_value(), read.error().text());
      for (const auto& lost : read.value().lost)
        out.push_back(cat("lost ", lost.from, " ", lost.to));
      next = read.value().next;
    }
    return out;
  }
  std::vector<std::string> records() { return records(disk, kDir, *log->view()); }

 private:
  seglog::Knobs knobs_;
  std::uint64_t next_ = 1;

 public:
  sim::SimFs disk;
  std::unique_ptr<seglog::SegmentedLog> log;
  UnixMillis listed_at = kNow;
  Offset frontier{0};
  std::vector<wire::AckedRun> acked_ahead;
  std::vector<wire::ChildLink> links;
  std::vector<wire::Sidecar> cursors;
};

}  // namespace narad::moves::testing
