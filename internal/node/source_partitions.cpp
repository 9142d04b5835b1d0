#include "internal/node/source_partitions.h"

#include <algorithm>
#include <utility>

#include "internal/moves/link_files.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/sums.h"

namespace narad::node {
namespace {

// Nothing that a disk answers here is proof that something is gone.
Error as_unavailable(const Error& e) { return Error(Errc::unavailable, e.text(), e.os_errno()); }

// Frontier and acked-ahead, nothing of it at or above the watermark.
void set_positions(wire::Listing& listing, const delivery::ConsumerPositions& positions) {
  listing.frontier = std::min(positions.frontier, listing.hwm);
  for (const delivery::OffsetRun& run : positions.acked_ahead) {
    if (run.begin >= listing.hwm || listing.acked_ahead.size() == wire::kAckedRunsMax) break;
    listing.acked_ahead.push_back({run.begin, std::min(run.end, listing.hwm)});
  }
}

void set_segments(wire::Listing& listing, const seglog::LogView& view) {
  listing.log = view.log;
  listing.segments.reserve(view.segments());
  for (const seglog::SegmentInfo& segment : *view.sealed) {
    listing.segments.push_back({segment.base, segment.bytes, true, segment.mtime});
  }
  listing.segments.push_back({view.active.base, view.active.bytes, false, std::nullopt});
}

// Null if it is gone.
const seglog::SegmentInfo* find_segment(const seglog::LogView& view, Offset base) {
  if (view.active.base == base) return &view.active;
  const auto at =
      std::lower_bound(view.sealed->begin(), view.sealed->end(), base,
                       [](const seglog::SegmentInfo& s, Offset b) { return s.base < b; });
  return at != view.sealed->end() && at->base == base ? &*at : nullptr;
}

Error segment_gone(const wire::MoveRef& move, Offset base) {
  return Error(Errc::not_found, cat("partition ", to_string(move.partition), " has no segment ",
                                    base, " any more: list again"));
}

}  // namespace

Task<Result<Pin>> SourcePartitions::open(wire::MoveRef move) {
  co_return co_await partitions_.open(std::move(move.partition), move.incarnation, OpenFor::read);
}

Task<Result<wire::Listing>> SourcePartitions::list(wire::MoveRef move, bool settled) {
  wire::Listing listing;
  listing.move_id = move.move_id;
  listing.incarnation = move.incarnation;
  const auto view = metastore_.view();
  const Assignment* row = view->assignment(move.partition.topic, move.partition.partition);
  if (row != nullptr && row->incarnation == move.incarnation && !row->used) {
    listing.listed_at = env_.clock.wall_millis();
    co_return listing;
  }
  NARAD_CO_TRY(Pin pin, co_await open(move));
  if (settled) {
    NARAD_CO_TRY(co_await pin->log->settled_view());
  }
  const auto now = metastore_.view();
  listing.links = moves::links_of(*now, move.partition.topic);
  auto beside = [&fs = env_.fs, directory = pin->directory, incarnation = move.incarnation] {
    return moves::read_link_files(fs, directory, incarnation);
  };
  auto read = co_await blocking(env_, "move: what lies beside the log", std::move(beside));
  if (!read) co_return as_unavailable(read.error());
  moves::LinkFiles found = std::move(read.value());
  listing.cursors = std::move(found.cursors);
  listing.marker = std::move(found.marker);

  // From memory, and in one go: positions, then the watermark, then segments (CON-3, FRZ-14).
  const delivery::ConsumerPositions positions = pin->delivery->positions();
  const seglog::LogViewPtr log = pin->log->view();
  listing.hwm = log->hwm;
  set_positions(listing, positions);
  set_segments(listing, *log);
  listing.bytes_per_second = pin->log->stats().bytes_per_second;
  if (move.move_id != RaftIndex(0)) {
    listing.cursors = moves::with_anchors(std::move(listing.cursors), found.records, listing.links,
                                          move.incarnation, log->oldest(), log->hwm);
  }

  const UnixMillis listed_at = env_.clock.wall_millis();
  listing.listed_at = listed_at;
  if (listing.marker) {
    const std::int64_t age = listed_at.value() - listing.marker->installed_at.value();
    listing.marker_age_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(age, 0));
  }
  auto stat = [&fs = env_.fs,
               path = join_path(pin->directory, seglog::segment_name(log->active.base))] {
    return fs.stat(path);
  };
  auto active = co_await blocking(env_, "move: age of the active segment", std::move(stat));
  if (!active) co_return as_unavailable(active.error());
  listing.segments.back().mtime = active.value().mtime;
  co_return listing;
}

Task<Result<Offset>> SourcePartitions::settled_hwm(wire::MoveRef move) {
  NARAD_CO_TRY(Pin pin, co_await open(std::move(move)));
  NARAD_CO_TRY(auto view, co_await pin->log->settled_view());
  co_return view->hwm;
}

Task<Result<std::string>> SourcePartitions::read(wire::MoveRef move, Offset base,
                                                 std::uint64_t from, std::uint64_t length) {
  NARAD_CO_TRY(Pin pin, co_await open(move));
  const seglog::LogViewPtr view = pin->log->view();
  const seglog::SegmentInfo* segment = find_segment(*view, base);
  if (segment == nullptr) co_return segment_gone(move, base);
  if (from > segment->bytes) {
    co_return Error(
        Errc::invalid_argument,
        cat("byte ", from, " of segment ", base, " of partition ", to_string(move.partition),
            " is beyond the ", segment->bytes, " that are committed"));
  }
  const std::uint64_t size = std::min({length, wire::kChunkBytesMax, segment->bytes - from});
  auto job = [&fs = env_.fs, path = join_path(pin->directory, seglog::segment_name(base)), from,
              size]() -> Result<std::string> {
    std::string out(static_cast<std::size_t>(size), '\0');
    NARAD_TRY(auto file, fs.open(path, OpenMode::read));
    NARAD_TRY(read_exact(*file, std::as_writable_bytes(std::span(out)), from));
    return out;
  };
  auto bytes = co_await blocking(env_, "move: read a segment", std::move(job));
  if (bytes) co_return std::move(bytes.value());
  // Retention may have come first; anything else is the disk's fault.
  const bool gone = find_segment(*pin->log->view(), base) == nullptr;
  co_return gone ? segment_gone(move, base) : as_unavailable(bytes.error());
}

Task<Result<wire::SegmentDigests>> SourcePartitions::digests(wire::MoveRef move, Offset base) {
  NARAD_CO_TRY(Pin pin, co_await open(move));
  NARAD_CO_TRY(auto active, co_await pin->log->active_digests());
  const seglog::SegmentInfo* segment = find_segment(*active.view, base);
  if (segment == nullptr) co_return segment_gone(move, base);
  wire::SegmentDigests out;
  out.segment_bytes = segment->bytes;
  if (segment == &active.view->active && active.blocks) {
    out.blocks.assign(active.blocks->begin(), active.blocks->end());
    co_return out;
  }
  auto job = [&fs = env_.fs, directory = pin->directory, log = active.view->log,
              segment = *segment] { return seglog::read_digests(fs, directory, log, segment); };
  auto read = co_await blocking(env_, "move: digests of a segment", std::move(job));
  if (read) {
    // Asked again under the freeze, they are not read again from the whole file. What fails here
    // shows there.
    if (read.value().digester) {
      (void)co_await pin->log->adopt_digests(base, std::move(*read.value().digester));
    }
    out.blocks = std::move(read.value().blocks);
    co_return out;
  }
  const bool gone = find_segment(*pin->log->view(), base) == nullptr;
  co_return gone ? segment_gone(move, base) : as_unavailable(read.error());
}

Task<void> SourcePartitions::wait_for_leases(TopicPartition partition, Nanos at_most) {
  const auto open = partitions_.find_open(partition);
  if (!open) co_return;
  const auto delivery = open->delivery;
  (void)co_await delivery->wait_for_leases(Deadline::after(env_, at_most));
}

}  // namespace narad::node
