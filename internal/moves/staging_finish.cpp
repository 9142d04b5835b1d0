// Staging: a partition made of what was copied, and what becomes of staging that nobody wants.
#include <algorithm>

#include "internal/delivery/consumer_state.h"
#include "internal/moves/cursor_rules.h"
#include "internal/moves/quarantine_note.h"
#include "internal/moves/staging.h"
#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/seglog/control.h"
#include "pkg/seglog/file_source.h"
#include "pkg/seglog/hwm.h"
#include "pkg/seglog/log.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/scan.h"

namespace narad::moves {
namespace {

constexpr std::size_t kScanWindow = 256u << 10;
constexpr std::size_t kHeadBytes = 64u << 10;  // more than the largest control frame
constexpr std::uint64_t kReceiptSeed = 0;

Result<std::optional<LogId>> log_of(FileSystem& fs, const std::string& path) {
  NARAD_TRY(auto file, fs.open(path, OpenMode::read));
  Bytes head(kHeadBytes);
  NARAD_TRY(std::size_t n, read_up_to(*file, head, 0));
  const auto check = seglog::decode_control_frame(ByteView(head).first(n));
  if (check.status != seglog::HeaderStatus::good) return std::optional<LogId>();
  return std::optional<LogId>(check.control.log);
}

// What the headers of one segment say.
struct Walked {
  Offset end{0};
  bool records = false;
};
Result<Walked> walk(FileSystem& fs, const std::string& path, Offset base, std::uint64_t bytes,
                    LogId log) {
  NARAD_TRY(auto file, fs.open(path, OpenMode::read));
  seglog::FileSource source(*file, kScanWindow, bytes);
  seglog::ScanOptions options;
  options.log = log;
  options.expected = base;
  options.bytes = bytes;
  options.verify_from = seglog::kNoOffset;
  options.name = path;
  seglog::SegmentScanner scanner(source, options);
  Walked out;
  out.end = base;
  while (true) {
    NARAD_TRY(bool more, scanner.next());
    if (!more) return out;
    if (scanner.item().kind != seglog::ScanItem::Kind::frame) continue;
    out.end = scanner.item().to;
    out.records = out.records || scanner.item().header.records > 0;
  }
}

Result<std::string> free_name(FileSystem& fs, const std::string& wanted) {
  for (int n = 1;; ++n) {
    std::string name = n == 1 ? wanted : cat(wanted, ".", n);
    NARAD_TRY(bool taken, exists(fs, name));
    if (!taken) return name;
  }
}

}  // namespace

Result<StagingFound> inspect_staging(FileSystem& fs, const std::string& directory) {
  StagingFound found;
  auto names = fs.list(directory);
  if (!names && names.error().code() == Errc::not_found) return found;
  if (!names) return names.error();
  found.present = true;
  auto file = read_file(fs, join_path(directory, kStagingRecordName), kStagingRecordBytesMax);
  if (file) {
    found.record = decode_staging_record(as_chars(file.value()));
  } else if (file.error().code() != Errc::not_found) {
    return file.error();
  }
  std::vector<std::pair<Offset, std::uint64_t>> segments;
  for (const std::string& name : names.value()) {
    const auto base = seglog::parse_log_file_name(name, seglog::kSegmentSuffix);
    if (!base) continue;
    NARAD_TRY(FileStat stat, fs.stat(join_path(directory, name)));
    segments.emplace_back(*base, stat.size);
    found.bytes += stat.size;
    if (found.log != LogId(0)) continue;
    NARAD_TRY(auto log, log_of(fs, join_path(directory, name)));
    if (log) found.log = *log;
  }
  if (segments.empty()) return found;
  std::sort(segments.begin(), segments.end());
  found.end = segments.back().first;
  // Without a control frame nobody can tell what the frames are: that is no proof of their absence.
  if (found.log == LogId(0)) found.holds_records = found.bytes > 0;
  if (found.log == LogId(0)) return found;
  for (auto s = segments.rbegin(); s != segments.rend() && !found.holds_records; ++s) {
    const std::string path = join_path(directory, seglog::segment_name(s->first));
    NARAD_TRY(Walked walked, walk(fs, path, s->first, s->second, found.log));
    found.end = std::max(found.end, walked.end);
    found.holds_records = walked.records;
  }
  return found;
}

Result<std::vector<StagingPlace>> find_staging(FileSystem& fs, const std::string& moves_directory) {
  std::vector<StagingPlace> out;
  auto names = fs.list(moves_directory);
  if (!names && names.error().code() == Errc::not_found) return out;
  if (!names) return names.error();
  for (const std::string& name : names.value()) {
    if (name.find(".quarantine") != std::string::npos) continue;
    const std::string directory = join_path(moves_directory, name);
    const auto stat = fs.stat(directory);
    if (!stat) {
      out.push_back({directory, stat.error()});
    } else if (stat.value().is_directory) {
      out.push_back({directory, inspect_staging(fs, directory)});
    }
  }
  return out;
}

Result<std::string> set_aside_staging(FileSystem& fs, const std::string& directory) {
  NARAD_TRY(std::string to, free_name(fs, directory + ".quarantine"));
  NARAD_TRY(fs.rename(directory, to));
  NARAD_TRY(fs.sync_dir(parent_path(directory)));
  note_quarantine(fs, to, "a move ended without it, and what it holds may be nowhere else");
  return to;
}

Result<void> remove_staging(FileSystem& fs, const std::string& directory) {
  NARAD_TRY(bool there, exists(fs, directory));
  if (!there) return ok();
  // Proof: our REQUIRES.
  NARAD_TRY(remove_tree(fs, directory));
  return fs.sync_dir(parent_path(directory));
}

Result<std::optional<wire::MoveMarker>> read_marker(FileSystem& fs, const std::string& directory) {
  auto file =
      read_file(fs, join_path(directory, wire::kMoveMarkerFileName), wire::kMarkerFileBytesMax);
  if (file) return wire::decode_marker_file(as_chars(file.value()));
  if (file.error().code() == Errc::not_found || file.error().code() == Errc::too_large) {
    return std::optional<wire::MoveMarker>();
  }
  return file.error();
}

Result<void> settle_install(FileSystem& fs, const std::string& directory,
                            const std::string& staged) {
  NARAD_TRY(fs.sync_dir(parent_path(directory)));
  return fs.sync_dir(parent_path(staged));
}

Result<void> tidy_install(FileSystem& fs, const std::string& directory) {
  // Proof: the flip was applied; the file said how the copy came about, and nothing reads it now.
  auto removed = fs.remove(join_path(directory, kStagingRecordName));
  if (!removed && removed.error().code() != Errc::not_found) return removed.error();
  return ok();
}

Result<void> Staging::set_ages(UnixMillis now) {
  for (const wire::ListedSegment& s : newest().listing.segments) {
    const auto mtime = copied_mtime(s, newest().listing.listed_at, newest().arrived_at, now);
    if (!mtime) continue;
    NARAD_TRY(fs_.set_mtime(path(s.base), *mtime));
  }
  return ok();
}

// For end_finish() to put in place.
Result<void> Staging::write_beside(const std::string& name, ByteView content) {
  const std::string temporary = join_path(directory_, name) + ".tmp";
  // A temporary that was left was never renamed: nothing relies on it.
  if (auto r = fs_.remove(temporary); !r && r.error().code() != Errc::not_found) return r.error();
  NARAD_TRY(auto file, fs_.open(temporary, OpenMode::create_new));
  NARAD_TRY(write_all(*file, content, 0));
  finishing_->names.push_back(name);
  return ok();
}

// CUR-2, CUR-5, CUR-6.
Result<void> Staging::write_cursors() {
  const Offset hwm = newest().listing.hwm;
  for (const wire::Sidecar& sidecar : newest().listing.cursors) {
    auto cursor = decode_cursor_file(as_bytes(sidecar.bytes), owner_.incarnation);
    if (!cursor || cursor->child != sidecar.child) {
      ++finishing_->out.cursors_dropped;
      continue;
    }
    cursor->next = std::min(cursor->next, hwm);
    const Bytes file = encode_cursor_file(*cursor, owner_.incarnation);
    NARAD_TRY(write_beside(cursor_file_name(sidecar.child), file));
  }
  return ok();
}

// What an earlier finish() wrote and the source does not ship any more: a link without a cursor
// begins at the oldest record (CUR-9), and a stale one might skip.
Result<void> Staging::remove_stale_cursors(const std::vector<std::string>& written) {
  NARAD_TRY(std::vector<std::string> names, fs_.list(directory_));
  for (const std::string& name : names) {
    if (!is_cursor_file_name(name)) continue;
    if (std::find(written.begin(), written.end(), name) != written.end()) continue;
    // Proof: an earlier finish() of this copy made it.
    NARAD_TRY(fs_.remove(join_path(directory_, name)));
  }
  return ok();
}

Result<void> Staging::write_small_files(const FinishPlan& plan) {
  const wire::Listing& listing = newest().listing;
  if (listing.segments.empty()) {
    // Nothing was ever there; whoever owns a used partition must find its log.
    seglog::SegmentedLog::OpenOptions options;
    options.directory = directory_;
    options.create_if_missing = true;
    options.fresh_id = plan.fresh_log;
    NARAD_TRY(auto log, seglog::SegmentedLog::open(fs_, std::move(options)));
    NARAD_TRY(log->close());
  } else {
    // All of it is synced and ends exactly there, as after a clean close.
    NARAD_TRY(const LogId log, known_log());
    const Bytes hwm = seglog::encode_hwm_file(1, {listing.hwm, log, true});
    NARAD_TRY(write_beside(std::string(seglog::kHwmName), hwm));
  }
  const CopiedPositions copied = copied_positions(listing, listing.hwm);
  finishing_->out.frontier_capped = copied.capped;
  finishing_->out.frontier_listed = listing.frontier;
  const delivery::SnapshotId id{owner_.incarnation.value(), 1};
  const Bytes snapshot = delivery::encode_snapshot(id, copied.positions);
  NARAD_TRY(write_beside(delivery::kSnapshotFileName, snapshot));
  return write_cursors();
}

wire::Receipt Staging::receipt(wire::Receipt r) const {
  const wire::Listing& listing = newest().listing;
  r.first = listing.segments.empty() ? Offset(0) : listing.segments.front().base;
  r.end = listing.hwm;
  r.records = r.end > r.first ? r.end.minus(r.first) : 0;
  r.bytes = bytes();
  r.damaged_blocks = damaged_blocks();
  Bytes all;
  ByteWriter w(all);
  for (const auto& [base, segment] : segments_) {
    for (const std::uint64_t digest : segment.digests) w.u64(digest);
    if (segment.tail) w.u64(segment.tail->digests().front());
  }
  r.digest = xxh3(all, kReceiptSeed);
  return r;
}

Result<Staging::Finished> Staging::finish(const FinishPlan& plan) {
  NARAD_TRY(const auto files, begin_finish(plan));
  std::vector<Result<void>> synced;
  for (const std::string& file : files) synced.push_back(sync_file(fs_, file));
  return end_finish(synced);
}

Result<std::vector<std::string>> Staging::begin_finish(const FinishPlan& plan) {
  NARAD_ASSERT(reached_source());
  if (segments_.size() != newest().listing.segments.size()) {
    return Error(Errc::unavailable, cat(directory_, ": a file had to be dropped; copying goes on"));
  }
  finishing_ = std::make_unique<Finishing>();
  NARAD_TRY(set_ages(plan.now));
  NARAD_TRY(write_small_files(plan));

  wire::MoveMarker& marker = finishing_->out.marker;
  marker.move_id = owner_.move_id;
  marker.epoch = plan.epoch;
  marker.source = owner_.source;
  marker.self = plan.self;
  marker.incarnation = owner_.incarnation;
  marker.promoted_hwm = newest().listing.hwm;
  marker.force_promoted = plan.epoch == 0;
  marker.installed_at = plan.now;
  marker.durable_at = plan.now;  // true once end_finish() has returned; before that it is not there
  marker.links = joined_links(newest().listing.links, plan.links);
  marker.receipt = receipt(plan.receipt);
  NARAD_TRY(write_beside(wire::kMoveMarkerFileName, as_bytes(wire::encode_marker_file(marker))));

  StagingRecord record = record_;
  record.synced.clear();
  for (const auto& [base, segment] : segments_) record.synced.push_back({base, segment.bytes});
  NARAD_TRY(write_beside(kStagingRecordName, as_bytes(encode_staging_record(record))));

  std::vector<std::string> files;
  for (const auto& [base, segment] : segments_) {
    if (!segment.dirty) continue;
    finishing_->segments.push_back(base);
    files.push_back(path(base));
  }
  for (const std::string& name : finishing_->names) {
    files.push_back(join_path(directory_, name) + ".tmp");
  }
  return files;
}

Result<Staging::Finished> Staging::end_finish(const std::vector<Result<void>>& synced) {
  NARAD_ASSERT(finishing_ != nullptr);
  const Finishing f = std::move(*finishing_);
  finishing_.reset();
  NARAD_ASSERT(synced.size() == f.segments.size() + f.names.size());
  std::vector<Offset> failed;
  for (std::size_t i = 0; i < f.segments.size(); ++i) {
    if (synced[i]) {
      count_synced(segments_.at(f.segments[i]));
    } else {
      failed.push_back(f.segments[i]);
    }
  }
  if (!failed.empty()) {
    NARAD_TRY(drop(failed));  // as in sync()
  }
  for (const Result<void>& outcome : synced) {
    if (!outcome) return outcome.error();
  }
  for (const std::string& name : f.names) {
    const std::string to = join_path(directory_, name);
    NARAD_TRY(fs_.rename(to + ".tmp", to));
  }
  unrecorded_ = 0;
  record_stale_ = false;
  NARAD_TRY(remove_stale_cursors(f.names));
  // Once for all of them: before it the marker is of no use, since nothing is at the path. The name
  // of this directory was synced when it was made, or renamed back.
  NARAD_TRY(fs_.sync_dir(directory_));
  return f.out;
}

}  // namespace narad::moves
