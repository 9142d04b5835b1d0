#include "pkg/seglog/log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/seglog/fresh_copy.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/sums.h"

namespace narad::seglog {
namespace {

constexpr std::size_t kBufferBytesKept = 1u << 20;
constexpr std::uint64_t kAdoptWindow = 256u << 10;

void shrink(Bytes& buffer) {
  if (buffer.capacity() > kBufferBytesKept) {
    Bytes().swap(buffer);
  } else {
    buffer.clear();
  }
}

}  // namespace

Result<void> validate(const AppendBatch& batch) {
  const bool ordered = batch.origin != OriginId(0) && !batch.rerouted;
  for (std::size_t i = 0; i < batch.records.size(); ++i) {
    const AppendRecord& r = batch.records[i];
    if (ordered && i > 0 && r.sequence <= batch.records[i - 1].sequence) {
      return Error(Errc::invalid_argument, cat("sequences must ascend within a batch: ", r.sequence,
                                               " comes after ", batch.records[i - 1].sequence));
    }
    if (record_bytes(r.record) > kRecordBytesMax) {
      return Error(Errc::too_large, cat("a record takes ", record_bytes(r.record),
                                        " bytes; the log takes at most ", kRecordBytesMax));
    }
  }
  return ok();
}

SegmentedLog::SegmentedLog(FileSystem& fs, OpenOptions options)
    : fs_(fs),
      directory_(std::move(options.directory)),
      knobs_(options.knobs),
      sealed_(std::make_shared<const std::vector<SegmentInfo>>()) {}

SegmentedLog::~SegmentedLog() = default;

std::string SegmentedLog::path(Offset base, std::string_view suffix) const {
  return join_path(directory_, log_file_name(base, suffix));
}

// ---- appending ---------------------------------------------------------------------------------

Result<std::vector<AppendOutcome>> SegmentedLog::stage(const std::vector<AppendBatch>& batches,
                                                       UnixMillis now) {
  NARAD_ASSERT(!staged_);
  if (closed_) return Error(Errc::unavailable, "the log is closed");
  if (latched_) return *latched_;
  for (const AppendBatch& batch : batches) {
    NARAD_TRY(validate(batch));
  }
  staged_.emplace();
  staged_->commit_time = std::max(now, last_commit_);
  std::vector<AppendOutcome> outcomes = encode(batches);
  auto written = buffer_.empty() ? Result<void>(ok()) : write_staged();
  if (!written) {
    ++stats_.failed_commits;
    staged_.reset();
    shrink(buffer_);
    return written.error();
  }
  return outcomes;
}

// Turns what is not known yet into frames in buffer_.
std::vector<AppendOutcome> SegmentedLog::encode(const std::vector<AppendBatch>& batches) {
  buffer_.clear();
  FrameWriter writer(buffer_, id_, knobs_.compression);
  std::vector<AppendOutcome> outcomes;
  outcomes.reserve(batches.size());
  std::vector<std::pair<OriginId, Sequence>> pending;  // what this very stage appends
  Offset next = hwm_;
  for (const AppendBatch& batch : batches) {
    AppendOutcome& outcome = outcomes.emplace_back();
    outcome.first = next;
    outcome.kept.reserve(batch.records.size());
    const bool checked = batch.origin != OriginId(0) && !batch.rerouted;
    const auto is_known = [&](Sequence s) {
      if (!checked) return false;
      for (const auto& [origin, last] : pending) {
        if (origin == batch.origin && s <= last) return true;
      }
      return table_.known(batch.origin, s);
    };
    FrameHeader header;
    header.origin = batch.origin;
    header.commit_time = staged_->commit_time;
    if (batch.rerouted) header.flags |= kFlagRerouted;
    bool open = false;
    const auto end_frame = [&] {
      header.base = next;
      const std::uint16_t head = staged_->frames.empty() ? kFlagSyncHead : 0;
      FrameHeader framed = header;
      framed.flags = static_cast<std::uint16_t>(framed.flags | head);
      staged_->frames.push_back(writer.end(framed));
      next = next.plus(staged_->frames.back().records);
      open = false;
    };
    for (const AppendRecord& r : batch.records) {
      const bool known = is_known(r.sequence);
      outcome.kept.push_back(!known);
      if (known) {
        ++outcome.known;
        continue;
      }
      const std::size_t bytes = record_bytes(r.record);
      if (open && writer.raw_bytes() + bytes > knobs_.frame_raw_bytes) end_frame();
      if (!open) {
        writer.begin();
        open = true;
      }
      writer.add(r.record);
      header.last_sequence = std::max(header.last_sequence, r.sequence);
      ++outcome.appended;
      staged_->record_bytes += r.record.key.size() + r.record.payload.size();
    }
    if (open) end_frame();
    staged_->records += outcome.appended;
    if (outcome.known > 0) table_.touch(batch.origin);
    if (checked && outcome.appended > 0) pending.emplace_back(batch.origin, header.last_sequence);
  }
  staged_->bytes = buffer_.size();
  return outcomes;
}

Result<void> SegmentedLog::write_staged() {
  if (clean_on_disk_) {
    // Withdrawn before the first write, or a crash would leave it over what it does not cover.
    NARAD_TRY(write_hwm(false));
  }
  const bool full = active_.bytes + buffer_.size() > knobs_.segment_bytes && hwm_ > active_.base;
  if (rolling_ || full) {
    NARAD_TRY(roll());
  }
  if (auto r = write_all(*file_, buffer_, active_.bytes); !r) {
    take_back(false);
    return r.error();
  }
  if (auto r = file_->datasync(); !r) {
    latch(r.error(), "a sync failed");
    take_back(false);
    return r.error();
  }
  if (auto r = verify_staged(); !r) {
    take_back(true);
    return r.error();
  }
  truncated_ = false;
  if (digester_) {
    staged_->digest_mark = digester_->mark();
    digester_->update(buffer_);
  }
  return ok();
}

// Reads back what was written. It comes from the page cache: it proves the write path, not the
// platter.
Result<void> SegmentedLog::verify_staged() {
  read_back_.resize(buffer_.size());
  auto read = read_exact(*file_, read_back_, active_.bytes);
  const bool same = read && std::memcmp(read_back_.data(), buffer_.data(), buffer_.size()) == 0;
  shrink(read_back_);
  if (!read && read.error().code() != Errc::data_loss) return read.error();
  if (same) return ok();
  ++stats_.read_back_mismatches;
  return Error(Errc::unavailable,
               cat(path(active_.base, kSegmentSuffix),
                   ": what was read back is not what was written; the disk or the memory of this "
                   "node is failing"));
}

void SegmentedLog::publish() {
  NARAD_ASSERT(staged_);
  if (staged_->bytes > 0) {
    for (const FrameHeader& frame : staged_->frames) {
      NARAD_ASSERT(frame.base == hwm_);
      table_.advance(frame);
      hwm_ = frame.end();
    }
    last_commit_ = staged_->commit_time;
    active_.bytes += staged_->bytes;
    active_.end = hwm_;
    ++stats_.commits;
    stats_.frames += staged_->frames.size();
    stats_.records += staged_->records;
    stats_.record_bytes += staged_->record_bytes;
    remake_view();
  }
  staged_.reset();
  shrink(buffer_);
}

void SegmentedLog::abandon() {
  NARAD_ASSERT(staged_);
  if (staged_->bytes > 0) {
    ++stats_.failed_commits;
    if (digester_) digester_->rewind(staged_->digest_mark);
    take_back(true);
  }
  staged_.reset();
  shrink(buffer_);
}

UnixMillis SegmentedLog::staged_commit_time() const {
  NARAD_ASSERT(staged_);
  return staged_->commit_time;
}

// Proof that these bytes may go: no watermark covers them and nobody was told of them.
void SegmentedLog::take_back(bool durably) {
  ++stats_.truncations;
  truncated_ = true;
  auto cut = file_->truncate(active_.bytes);
  if (cut && durably && !latched_) {
    cut = file_->datasync();
    if (cut) truncated_ = false;
  }
  if (!cut) latch(cut.error(), "taking back a failed commit failed");
}

void SegmentedLog::latch(const Error& why, std::string_view what) {
  if (latched_) return;
  ++stats_.latches;
  latched_ = Error(Errc::unavailable,
                   cat("commits are refused until the active segment has been copied to a fresh "
                       "file: ",
                       what, ": ", why.text()),
                   why.os_errno());
}

// ---- segments
// ------------------------------------------------------------------------------------

Result<void> SegmentedLog::roll() {
  rolling_ = true;
  // The old segment, any truncation included, is durable before the new one's first byte.
  if (auto r = file_->datasync(); !r) {
    latch(r.error(), "a sync failed");
    return r.error();
  }
  truncated_ = false;
  NARAD_TRY(write_hwm(false));
  write_sum();
  SegmentInfo old = active_;
  NARAD_TRY(begin_segment(hwm_));
  if (auto stat = fs_.stat(path(old.base, kSegmentSuffix))) old.mtime = stat.value().mtime;
  add_sealed(old);
  rolling_ = false;
  ++stats_.rolls;
  remake_view();
  return ok();
}

// Makes an active segment that holds nothing but its control frame, in a new file: after a failed
// attempt nothing of that attempt is relied on.
Result<void> SegmentedLog::begin_segment(Offset base) {
  Control control;
  control.log = id_;
  control.base = base;
  control.commit_time = last_commit_;
  control.sync_head = true;
  control.origins = table_.entries();
  Bytes frame;
  append_control_frame(frame, control);
  const std::string name = path(base, kSegmentSuffix);
  NARAD_TRY(create_fresh(fs_, frame, path(base, kFreshSuffix), name));
  NARAD_TRY(file_, fs_.open(name, OpenMode::read_write));
  active_ = SegmentInfo{};
  active_.base = active_.end = base;
  active_.bytes = frame.size();
  active_.generation = ++generations_;
  truncated_ = false;
  digester_.emplace(id_);
  digester_->update(frame);
  return ok();
}

void SegmentedLog::add_sealed(const SegmentInfo& segment) {
  auto list = std::make_shared<std::vector<SegmentInfo>>();
  list->reserve(sealed_->size() + 1);
  *list = *sealed_;
  list->push_back(segment);
  sealed_bytes_ += segment.bytes;
  sealed_ = std::move(list);
}

// A digest that is missing is recomputed by whoever needs it, so failures are no matter.
void SegmentedLog::write_sum() {
  Sum sum;
  sum.segment_bytes = active_.bytes;
  if (digester_) {
    NARAD_ASSERT(digester_->bytes() == active_.bytes);
    sum.digests = digester_->digests();
  } else {
    auto digests = block_digests(fs_, directory_, id_, active_);
    if (!digests) return;
    for (const auto& digest : digests.value()) {
      if (!digest) return;
      sum.digests.push_back(*digest);
    }
  }
  (void)write_sum_file(fs_, directory_, id_, active_.base, sum);
}

Result<void> SegmentedLog::repair() {
  NARAD_ASSERT(!staged_);
  if (!latched_) return ok();
  if (closed_) return Error(Errc::unavailable, "the log is closed");
  const std::string name = path(active_.base, kSegmentSuffix);
  NARAD_TRY(FileStat stat, fs_.stat(name));
  NARAD_TRY(BlockDigester digester,
            copy_fresh(fs_, *file_, 0, active_.bytes, path(active_.base, kFreshSuffix), name,
                       stat.mtime, id_));
  NARAD_TRY(file_, fs_.open(name, OpenMode::read_write));
  digester_ = std::move(digester);
  active_.generation = ++generations_;
  truncated_ = false;
  latched_.reset();
  ++stats_.fresh_copies;
  remake_view();
  return ok();
}

Result<RetentionOutcome> SegmentedLog::retain(const RetentionRule& rule) {
  NARAD_ASSERT(!staged_);
  RetentionOutcome outcome;
  outcome.oldest = view_->oldest();
  auto removed = remove_expired(fs_, directory_, *sealed_, rule, outcome);
  if (outcome.segments > 0) {
    auto list = std::make_shared<std::vector<SegmentInfo>>(sealed_->begin() + outcome.segments,
                                                           sealed_->end());
    sealed_ = std::move(list);
    sealed_bytes_ = 0;
    for (const SegmentInfo& s : *sealed_) sealed_bytes_ += s.bytes;
    remake_view();
  }
  if (!removed) return removed.error();
  return outcome;
}

// ---- the watermark's file
// ------------------------------------------------------------------------

Result<void> SegmentedLog::write_hwm(bool clean) {
  HwmValue value;
  value.hwm = hwm_;
  value.log = id_;
  value.clean = clean;
  const std::string name = join_path(directory_, kHwmName);
  ++hwm_sequence_;
  const auto in_place = [&]() -> Result<void> {
    NARAD_TRY(auto file, fs_.open(name, OpenMode::read_write));
    const auto slot = encode_hwm_slot(hwm_sequence_, value);
    NARAD_TRY(write_all(*file, slot, two_slot::slot_offset(hwm_sequence_)));
    return file->datasync();
  };
  auto written = hwm_rewrite_ ? Result<void>(Error(Errc::unavailable, "")) : in_place();
  if (!written) {
    // After a failed sync of it nothing in the old file is relied on: a small file is made anew.
    hwm_rewrite_ = true;
    ++hwm_sequence_;
    written = replace_file(fs_, name, encode_hwm_file(hwm_sequence_, value));
  }
  if (!written) {
    ++stats_.hwm_write_failures;
    return written.error().with_context(cat("writing ", name));
  }
  hwm_rewrite_ = false;
  ++stats_.hwm_writes;
  hwm_on_disk_ = hwm_;
  clean_on_disk_ = clean;
  return ok();
}

Result<void> SegmentedLog::persist_hwm() {
  NARAD_ASSERT(!staged_);
  if (closed_ || hwm_persisted()) return ok();
  return write_hwm(false);
}

Result<void> SegmentedLog::close() {
  NARAD_ASSERT(!staged_);
  if (closed_) return ok();
  closed_ = true;
  if (latched_) {
    (void)write_hwm(false);  // helps the next open to judge damage; it copies anyway
    return *latched_;
  }
  if (clean_on_disk_ && hwm_persisted()) return ok();  // nothing was written since
  if (rolling_) {
    // The next segment may have its name without the name being durable: the next open must not
    // take it as it is.
    NARAD_TRY(write_hwm(false));
    return Error(Errc::unavailable,
                 cat(directory_, ": closed in the middle of a roll that failed"));
  }
  NARAD_TRY(file_->datasync());
  return write_hwm(true);
}

// ---- looking
// --------------------------------------------------------------------------------------

void SegmentedLog::remake_view() {
  auto view = std::make_shared<LogView>();
  view->log = id_;
  view->sealed = sealed_;
  view->active = active_;
  view->hwm = hwm_;
  view_ = std::move(view);
}

LogStats SegmentedLog::stats() const {
  LogStats s = stats_;
  s.segments = view_->segments();
  s.bytes = sealed_bytes_ + active_.bytes;
  s.oldest = view_->oldest();
  s.hwm = hwm_;
  s.oldest_mtime = sealed_->empty() ? UnixMillis(0) : sealed_->front().mtime;
  s.last_commit = last_commit_;
  s.origins = table_.size();
  s.origins_dropped = table_.dropped() - dropped_at_open_;
  return s;
}

std::optional<std::vector<std::uint64_t>> SegmentedLog::active_digests() const {
  if (!digester_ || staged_) return std::nullopt;
  return digester_->digests();
}

Result<void> SegmentedLog::adopt_digests(Offset base, BlockDigester digester) {
  if (digester_ || staged_ || closed_ || latched_ || base != active_.base) return ok();
  if (digester.bytes() > active_.bytes) return ok();
  Bytes chunk(static_cast<std::size_t>(
      std::min<std::uint64_t>(kAdoptWindow, active_.bytes - digester.bytes())));
  while (digester.bytes() < active_.bytes) {
    const auto n = static_cast<std::size_t>(
        std::min<std::uint64_t>(chunk.size(), active_.bytes - digester.bytes()));
    NARAD_TRY(read_exact(*file_, std::span(chunk).first(n), digester.bytes()));
    digester.update(ByteView(chunk).first(n));
  }
  digester_ = std::move(digester);
  return ok();
}

void SegmentedLog::check_invariants() const {
  NARAD_ASSERT(active_.base <= hwm_);
  NARAD_ASSERT(active_.end == hwm_);
  NARAD_ASSERT(!hwm_on_disk_ || *hwm_on_disk_ <= hwm_);
  NARAD_ASSERT(sealed_->empty() || sealed_->back().end == active_.base);
  for (std::size_t i = 1; i < sealed_->size(); ++i) {
    NARAD_ASSERT((*sealed_)[i - 1].end == (*sealed_)[i].base);
  }
  NARAD_ASSERT(view_->hwm == hwm_ && view_->active.bytes == active_.bytes);
  NARAD_ASSERT(!digester_ || staged_ || digester_->bytes() == active_.bytes);
  table_.check_invariants();
}

}  // namespace narad::seglog
