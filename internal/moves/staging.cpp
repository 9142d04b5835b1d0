// Staging: what is there, what a listing changes of it, and bytes that arrive.
#include "internal/moves/staging.h"

#include <algorithm>
#include <cerrno>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/seglog/control.h"
#include "pkg/seglog/format.h"
#include "pkg/seglog/names.h"

namespace narad::moves {
namespace {

constexpr std::uint64_t kReadBytes = 256u << 10;
// What a restart may have to fetch again although it was on the disk.
constexpr std::uint64_t kRecordEveryBytes = 256u << 20;

Result<void> remove_if_there(FileSystem& fs, const std::string& path) {
  auto removed = fs.remove(path);
  if (!removed && removed.error().code() != Errc::not_found) return removed.error();
  return ok();
}

// Whether both lists name the same bytes (times aside).
bool same_bytes(const wire::Listing& a, const wire::Listing& b) {
  const auto equal = [](const wire::ListedSegment& x, const wire::ListedSegment& y) {
    return x.base == y.base && x.bytes == y.bytes && x.sealed == y.sealed;
  };
  return a.hwm == b.hwm && a.log == b.log &&
         std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                    equal);
}

}  // namespace

Staging::Staging(FileSystem& fs, std::string directory, StagingOwner owner)
    : fs_(fs), directory_(std::move(directory)), owner_(std::move(owner)) {
  record_.partition = owner_.partition;
  record_.incarnation = owner_.incarnation;
  record_.move_id = owner_.move_id;
  record_.source = owner_.source;
}

std::string Staging::path(Offset base) const {
  return join_path(directory_, seglog::segment_name(base));
}

Result<std::unique_ptr<Staging>> Staging::open(FileSystem& fs, std::string directory,
                                               StagingOwner owner) {
  std::unique_ptr<Staging> staging(new Staging(fs, std::move(directory), std::move(owner)));
  NARAD_TRY(staging->load());
  return staging;
}

Result<void> Staging::load() {
  NARAD_TRY(make_directories(fs_, directory_));
  NARAD_TRY(std::vector<std::string> names, fs_.list(directory_));
  const std::string record_path = join_path(directory_, kStagingRecordName);
  auto file = read_file(fs_, record_path, kStagingRecordBytesMax);
  if (!file && file.error().code() != Errc::not_found) return file.error();
  if (!file) {
    const std::string unfinished = cat(kStagingRecordName, ".tmp");
    const bool empty = std::all_of(names.begin(), names.end(),
                                   [&](const std::string& name) { return name == unfinished; });
    if (empty) return ok();
  }
  auto record = file ? decode_staging_record(as_chars(file.value())) : std::nullopt;
  const bool ours = record && record->partition == owner_.partition &&
                    record->incarnation == owner_.incarnation &&
                    record->move_id == owner_.move_id && record->source == owner_.source;
  if (!ours) {
    return Error(Errc::conflict, cat(directory_, " holds what was staged by another move"));
  }
  record_ = std::move(*record);
  if (reached_source()) log_ = newest().listing.log;
  return load_segments(names);
}

Result<void> Staging::load_segments(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto base = seglog::parse_log_file_name(name, seglog::kSegmentSuffix);
    if (!base) continue;
    const auto& synced = record_.synced;
    const auto known = std::find_if(synced.begin(), synced.end(),
                                    [&](const SyncedSegment& s) { return s.base == *base; });
    NARAD_TRY(FileStat stat, fs_.stat(path(*base)));
    if (known == synced.end() || stat.size < known->bytes) {
      // Proof: the record does not say that it is on the disk, so nothing relies on it, and the
      // source still has what it is a copy of.
      NARAD_TRY(fs_.remove(path(*base)));
      continue;
    }
    Segment segment;
    segment.bytes = segment.synced = known->bytes;
    segment.read_back = false;
    if (stat.size > known->bytes) {
      // Proof: as above, for the bytes behind.
      NARAD_TRY(auto file, fs_.open(path(*base), OpenMode::read_write));
      NARAD_TRY(file->truncate(known->bytes));
      segment.dirty = true;
    }
    segments_.emplace(*base, std::move(segment));
  }
  return ok();
}

Result<bool> Staging::read_back_one() {
  for (auto& [base, segment] : segments_) {
    if (segment.read_back) continue;
    NARAD_TRY(read_digests(base, segment));
    return true;
  }
  return false;
}

Result<void> Staging::read_digests(Offset base, Segment& segment) {
  NARAD_TRY(auto file, fs_.open(path(base), OpenMode::read));
  Segment fresh = segment;
  fresh.digests.clear();
  fresh.tail.reset();
  fresh.blocks.clear();
  Bytes chunk(static_cast<std::size_t>(std::min<std::uint64_t>(kReadBytes, segment.bytes)));
  for (std::uint64_t at = 0; at < segment.bytes;) {
    const auto n =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), segment.bytes - at));
    NARAD_TRY(read_exact(*file, std::span(chunk).first(n), at));
    add_digests(fresh, ByteView(chunk).first(n));
    at += n;
  }
  fresh.read_back = true;
  segment = std::move(fresh);
  return ok();
}

void Staging::add_digests(Segment& segment, ByteView bytes) {
  while (!bytes.empty()) {
    if (!segment.tail) segment.tail.emplace(log_);
    const std::uint64_t room = seglog::kBlockBytes - segment.tail->bytes();
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size()));
    segment.tail->update(bytes.first(n));
    bytes = bytes.subspan(n);
    if (segment.tail->bytes() == seglog::kBlockBytes) {
      segment.digests.push_back(segment.tail->digests().front());
      segment.tail.reset();
    }
  }
  segment.blocks.resize(segment.digests.size() + (segment.tail ? 1 : 0));
}

Result<void> Staging::look_again() {
  std::vector<Offset> changed;
  for (const auto& [base, segment] : segments_) {
    auto stat = fs_.stat(path(base));
    if (!stat && stat.error().code() != Errc::not_found) return stat.error();
    if (!stat || stat.value().size != segment.bytes) changed.push_back(base);
  }
  return changed.empty() ? Result<void>(ok()) : drop(changed);
}

Result<void> Staging::write_record() {
  record_.synced.clear();
  for (const auto& [base, segment] : segments_) {
    if (segment.synced > 0 || (segment.bytes == 0 && !segment.dirty)) {
      record_.synced.push_back({base, segment.synced});
    }
  }
  const std::string text = encode_staging_record(record_);
  NARAD_TRY(replace_file(fs_, join_path(directory_, kStagingRecordName), as_bytes(text)));
  unrecorded_ = 0;
  record_stale_ = false;
  return ok();
}

// The record forgets them first: it must not vouch for the files that come in their place.
Result<void> Staging::drop(const std::vector<Offset>& bases) {
  for (const Offset base : bases) segments_.erase(base);
  NARAD_TRY(write_record());
  for (const Offset base : bases) {
    // Proof: it is fetched again from the source, which has it (or has let retention take it).
    NARAD_TRY(remove_if_there(fs_, path(base)));
    const std::string sum = seglog::log_file_name(base, seglog::kSumSuffix);
    NARAD_TRY(remove_if_there(fs_, join_path(directory_, sum)));
  }
  return ok();
}

Result<void> Staging::cut(Offset base, std::uint64_t to) {
  Segment& segment = segments_.at(base);
  NARAD_ASSERT(to <= segment.bytes);
  segment.synced = std::min(segment.synced, to);
  segment.dirty = true;
  segment.summed = false;
  segment.walked = 0;
  NARAD_TRY(write_record());
  // Proof: the source does not list these bytes as committed (any more).
  NARAD_TRY(auto file, fs_.open(path(base), OpenMode::read_write));
  NARAD_TRY(file->truncate(to));
  segment.bytes = to;
  return read_digests(base, segment);
}

const wire::ListedSegment* Staging::listed(Offset base) const {
  if (!reached_source()) return nullptr;
  const auto& all = newest().listing.segments;
  const auto at =
      std::lower_bound(all.begin(), all.end(), base,
                       [](const wire::ListedSegment& s, Offset wanted) { return s.base < wanted; });
  return at != all.end() && at->base == base ? &*at : nullptr;
}

Result<void> Staging::accept(wire::Listing listing, UnixMillis arrived_at, Recorded recorded,
                             bool plant_believes_less) {
  const TakenListing* before = reached_source() ? &newest() : nullptr;
  const std::string why = went_back(before, record_.highest_hwm, listing);
  if (!why.empty() && !plant_believes_less) return Error(Errc::conflict, why);

  if (listing.log != log_) {
    for (auto& [base, segment] : segments_) segment.read_back = false;
    log_ = listing.log;
  }
  const Offset first = listing.segments.empty() ? Offset(0) : listing.segments.front().base;
  std::vector<Offset> gone;
  for (const auto& [base, segment] : segments_) {
    if (base < first) gone.push_back(base);
  }
  const bool news = before == nullptr || !same_bytes(before->listing, listing);
  record_.highest_hwm = listing.hwm;
  record_.newest = TakenListing{std::move(listing), arrived_at};
  record_stale_ = record_stale_ || news;
  if (record_stale_ && recorded == Recorded::now) {
    NARAD_TRY(write_record());
  }
  if (!gone.empty()) {
    // Proof: retention took them at the source, whose log is the partition (G14).
    NARAD_TRY(drop(gone));
  }
  for (const wire::ListedSegment& s : newest().listing.segments) {
    auto staged = segments_.find(s.base);
    if (staged == segments_.end()) {
      if (s.bytes > 0) continue;  // made with its first bytes
      NARAD_TRY(auto file, new_file(s.base));
      segments_[s.base].dirty = true;
    } else if (staged->second.bytes > s.bytes) {
      NARAD_TRY(cut(s.base, s.bytes));
    }
  }
  return ok();
}

std::vector<SegmentRange> Staging::missing(std::uint64_t range_bytes) const {
  std::vector<SegmentRange> out;
  if (!reached_source()) return out;
  for (const wire::ListedSegment& s : newest().listing.segments) {
    const auto staged = segments_.find(s.base);
    std::uint64_t from = staged == segments_.end() ? 0 : staged->second.bytes;
    while (from < s.bytes) {
      const std::uint64_t n = std::min(range_bytes, s.bytes - from);
      out.push_back({s.base, from, n});
      from += n;
    }
  }
  return out;
}

std::uint64_t Staging::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [base, segment] : segments_) sum += segment.bytes;
  return sum;
}

std::uint64_t Staging::listed_bytes() const {
  std::uint64_t sum = 0;
  if (!reached_source()) return sum;
  for (const wire::ListedSegment& s : newest().listing.segments) sum += s.bytes;
  return sum;
}

Result<std::unique_ptr<File>> Staging::new_file(Offset base) {
  auto file = fs_.open(path(base), OpenMode::create_new);
  if (file || file.error().code() != Errc::exists) return file;
  // Proof: it is none of the staged segments, so the record does not vouch for it: what an attempt
  // left whose file could not be removed.
  NARAD_TRY(fs_.remove(path(base)));
  return fs_.open(path(base), OpenMode::create_new);
}

Result<void> Staging::append(SegmentRange range, const std::string& bytes) {
  const wire::ListedSegment* s = listed(range.base);
  const auto staged = segments_.find(range.base);
  const bool is_new = staged == segments_.end();
  NARAD_ASSERT(s != nullptr && range.from + range.bytes <= s->bytes);
  NARAD_ASSERT(bytes.size() <= range.bytes && !bytes.empty());
  NARAD_ASSERT(range.from == (is_new ? 0 : staged->second.bytes));
  NARAD_TRY(auto file,
            is_new ? new_file(range.base) : fs_.open(path(range.base), OpenMode::read_write));
  Segment& segment = segments_[range.base];
  segment.dirty = true;
  segment.summed = false;
  segment.cut_to_hwm = false;
  if (auto written = write_all(*file, as_bytes(bytes), range.from); !written) {
    const Error error = written.error();
    auto back = file->truncate(range.from);
    if (!back) {
      NARAD_TRY(drop({range.base}));
    }
    return error;
  }
  add_digests(segment, as_bytes(bytes));
  segment.bytes += bytes.size();
  return ok();
}

bool Staging::complete(Offset base, const Segment& segment) const {
  const wire::ListedSegment* s = listed(base);
  return s != nullptr && s->sealed && s->bytes == segment.bytes;
}

Result<void> Staging::after_sync(Offset base, bool whole, Result<void> outcome) {
  const auto at = segments_.find(base);
  if (at == segments_.end()) return outcome;  // dropped meanwhile
  if (!outcome) {
    // What a failed sync leaves in the page cache proves nothing: a new file is fetched.
    NARAD_TRY(drop({base}));
    return outcome;
  }
  Segment& segment = at->second;
  if (!whole) return ok();
  NARAD_ASSERT(complete(base, segment));
  if (segment.dirty) count_synced(segment);
  return settle_sealed(base, segment);
}

// Its bytes are durable: its sums, and now and then the record that says so.
Result<void> Staging::settle_sealed(Offset base, Segment& segment) {
  if (!segment.summed) {
    NARAD_TRY(write_sum(base, segment));
  }
  return unrecorded_ < kRecordEveryBytes ? Result<void>(ok()) : write_record();
}

bool Staging::whole(Offset base) const {
  const auto at = segments_.find(base);
  return at != segments_.end() && complete(base, at->second);
}

Result<void> Staging::sync() {
  NARAD_TRY(sync_files());
  return unrecorded_ == 0 && !record_stale_ ? Result<void>(ok()) : write_record();
}

Result<void> Staging::sync_files() {
  std::vector<Offset> failed;
  std::optional<Error> trouble;
  for (auto& [base, segment] : segments_) {
    if (!segment.dirty) continue;
    if (auto synced = sync_segment(base, segment); !synced) {
      trouble = synced.error();
      failed.push_back(base);
    }
  }
  if (!trouble) return ok();
  NARAD_TRY(drop(failed));  // as above
  return *trouble;
}

Result<void> sync_file(FileSystem& fs, const std::string& path) {
  NARAD_TRY(auto file, fs.open(path, OpenMode::read_write));
  return file->sync();
}

Result<void> Staging::sync_segment(Offset base, Segment& segment) {
  NARAD_TRY(sync_file(fs_, path(base)));
  count_synced(segment);
  return ok();
}

void Staging::count_synced(Segment& segment) {
  unrecorded_ += std::max<std::uint64_t>(segment.bytes - segment.synced, 1);
  segment.synced = segment.bytes;
  segment.dirty = false;
}

// Only of what is known to be what the source wrote: a digest of rotten bytes would hide the rot.
Result<void> Staging::write_sum(Offset base, Segment& segment) {
  for (const Block& block : segment.blocks) {
    if (block.state != Block::State::confirmed) return ok();
  }
  seglog::Sum sum;
  sum.segment_bytes = segment.bytes;
  sum.digests = segment.digests;
  if (segment.tail) sum.digests.push_back(segment.tail->digests().front());
  const std::string name = seglog::log_file_name(base, seglog::kSumSuffix);
  NARAD_TRY(replace_file(fs_, join_path(directory_, name), seglog::encode_sum(sum, log_)));
  segment.summed = true;
  return ok();
}

Result<void> Staging::start_over() {
  segments_.clear();
  NARAD_TRY(write_record());
  NARAD_TRY(std::vector<std::string> names, fs_.list(directory_));
  for (const std::string& name : names) {
    if (name == kStagingRecordName) continue;
    // Proof: ours REQUIRES; all of it is fetched again.
    NARAD_TRY(fs_.remove(join_path(directory_, name)));
  }
  return ok();
}

}  // namespace narad::moves
