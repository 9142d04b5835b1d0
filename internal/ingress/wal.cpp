#include "internal/ingress/wal.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/base/two_slot.h"

namespace narad::ingress {

// ---- WalWriter ------------------------------------------------------------------------------

WalWriter::WalWriter(FileSystem& fs, WalOptions options, OriginId origin)
    : fs_(fs), options_(std::move(options)), origin_(origin) {}

Result<std::unique_ptr<WalWriter>> WalWriter::create(FileSystem& fs, WalOptions options,
                                                     OriginId origin, Sequence first) {
  NARAD_ASSERT(origin.value() != 0);
  NARAD_ASSERT(first.value() != 0);
  std::unique_ptr<WalWriter> writer(new WalWriter(fs, std::move(options), origin));
  NARAD_TRY(writer->begin(first));
  return writer;
}

// The name appears only once the header is durable, so a header that does not verify is damage.
Result<void> WalWriter::begin(Sequence first) {
  const std::string path = segment_path(options_.directory, first);
  const std::string temporary = path + ".tmp";
  NARAD_TRY(bool taken, exists(fs_, path));
  if (taken) return Error(Errc::internal, cat(path, " exists already; it is left alone"));
  // Proof: it was never renamed, so nothing in it was acknowledged.
  if (auto r = fs_.remove(temporary); !r && r.error().code() != Errc::not_found) return r.error();
  NARAD_TRY(auto file, fs_.open(temporary, OpenMode::create_new));
  const auto header = encode_header(SegmentHeader{origin_, first});
  NARAD_TRY(write_all(*file, header, 0));
  if (auto r = file->datasync(); !r) return sync_failed(r.error(), temporary);
  NARAD_TRY(fs_.rename(temporary, path));
  if (auto r = fs_.sync_dir(options_.directory); !r) return sync_failed(r.error(), path);
  file_ = std::move(file);
  path_ = path;
  first_ = next_ = first;
  end_ = reserved_ = kSegmentHeaderBytes;
  return ok();
}

Result<void> WalWriter::sync_failed(const Error& error, std::string_view what) {
  health_ = Health::sync_failed;
  return Error(Errc::internal, cat("sync of ", what, " failed: ", error.text()), error.os_errno());
}

Result<void> WalWriter::reserve(std::uint64_t end) {
  if (end <= reserved_) return ok();
  const std::uint64_t step = std::max<std::uint64_t>(options_.preallocate_bytes, 1);
  const std::uint64_t size = (end + step - 1) / step * step;
  NARAD_TRY(DiskSpace space, fs_.space(options_.directory));
  const std::uint64_t keep_free = space.total / 100 * options_.disk_reserve_percent;
  if (space.available < keep_free + (size - reserved_)) {
    return Error(Errc::unavailable, cat("the disk of ", options_.directory,
                                        " is nearly full: ", format_bytes(space.available),
                                        " left of ", format_bytes(space.total), ", and the last ",
                                        options_.disk_reserve_percent, " % are kept free"));
  }
  NARAD_TRY(file_->allocate(size));
  reserved_ = size;
  return ok();
}

// Takes back what was written behind the durable frames, and makes that durable: otherwise frames
// of a refused group could lie, whole, behind those of a later one with the same sequences.
Result<void> WalWriter::cut() {
  if (auto r = file_->truncate(end_); !r) {
    health_ = Health::torn;
    return r.error();
  }
  reserved_ = end_;
  if (auto r = file_->datasync(); !r) return sync_failed(r.error(), path_);
  health_ = Health::good;
  return ok();
}

Result<Sequence> WalWriter::append(std::span<std::byte> frames, std::uint64_t count) {
  NARAD_ASSERT(count > 0);
  if (health_ == Health::sync_failed) {
    return Error(Errc::internal, cat("an earlier sync of ", path_, " failed"));
  }
  if (health_ == Health::torn) {
    NARAD_TRY(cut());
  }
  if (end_ > kSegmentHeaderBytes && end_ + frames.size() > options_.segment_bytes_max) {
    NARAD_TRY(roll());
  }
  wanted_ = frames.size();
  NARAD_TRY(reserve(end_ + frames.size()));
  seal_frames(frames, count, origin_, next_, Sequence(next_.value() - 1));
  if (auto r = write_all(*file_, frames, end_); !r) {
    if (auto undone = cut(); !undone) {
      if (health_ == Health::sync_failed) return undone.error();
      return Error(Errc::unknown_outcome,
                   cat("write ", path_, " failed (", r.error().text(),
                       ") and could not be taken back: ", undone.error().text()),
                   r.error().os_errno());
    }
    return Error(Errc::unavailable, cat("write ", path_, " failed: ", r.error().text()),
                 r.error().os_errno());
  }
  if (auto r = file_->datasync(); !r) return sync_failed(r.error(), path_).error();
  end_ += frames.size();
  next_ = next_.plus(count);
  return Sequence(next_.value() - count);
}

Result<void> WalWriter::repair() {
  if (health_ == Health::sync_failed) {
    return Error(Errc::internal, cat("an earlier sync of ", path_, " failed"));
  }
  if (health_ == Health::torn) {
    NARAD_TRY(cut());
  }
  return reserve(end_ + wanted_);
}

Result<void> WalWriter::roll() {
  if (health_ != Health::good) {
    return Error(Errc::unavailable, cat(path_, " must be repaired first"));
  }
  if (first_ == next_) return ok();
  if (reserved_ != end_) {
    NARAD_TRY(cut());
  }
  const SegmentInfo sealed = segment();
  NARAD_TRY(begin(next_));
  sealed_.push_back(sealed);
  return ok();
}

Result<void> WalWriter::close() {
  if (health_ == Health::sync_failed) {
    return Error(Errc::internal, cat("an earlier sync of ", path_, " failed"));
  }
  return cut();
}

SegmentInfo WalWriter::segment() const { return {origin_, first_, next_, reserved_}; }

// ---- CheckpointFile -------------------------------------------------------------------------

CheckpointFile::CheckpointFile(FileSystem& fs, const std::string& directory, std::uint64_t slot)
    : fs_(fs), path_(join_path(directory, "checkpoint")), slot_(slot) {}

Result<void> CheckpointFile::store(const Checkpoint& checkpoint) {
  const std::uint64_t slot = slot_ + 1;
  const auto encoded =
      two_slot::encode(kCheckpointMagic, kCheckpointSeed, slot, encode_checkpoint(checkpoint));
  if (!broken_) {
    if (!file_) {
      NARAD_TRY(file_, fs_.open(path_, OpenMode::read_write));
    }
    broken_ = true;  // until this has worked
    NARAD_TRY(write_all(*file_, encoded, two_slot::slot_offset(slot)));
    NARAD_TRY(file_->datasync());
  } else {
    file_.reset();
    Bytes whole(two_slot::kFileBytes);
    std::copy(encoded.begin(), encoded.end(),
              whole.begin() + static_cast<std::ptrdiff_t>(two_slot::slot_offset(slot)));
    NARAD_TRY(replace_file(fs_, path_, whole));
  }
  broken_ = false;
  slot_ = slot;
  return ok();
}

// ---- reading and deleting -------------------------------------------------------------------

namespace {

// A window of a file that slides forward.
class Window {
 public:
  explicit Window(File& file) : file_(file) {}
  // The bytes at `at`: at least `n` unless the file ends first.
  Result<ByteView> bytes(std::uint64_t at, std::size_t n) {
    if (at < begin_ || at + n > begin_ + buffer_.size()) {
      buffer_.resize(std::max(n, kStep));
      begin_ = at;
      NARAD_TRY(std::size_t got, read_up_to(file_, buffer_, at));
      buffer_.resize(got);
    }
    return ByteView(buffer_).subspan(static_cast<std::size_t>(at - begin_));
  }

 private:
  static constexpr std::size_t kStep = 256u << 10;
  File& file_;
  std::uint64_t begin_ = 0;
  Bytes buffer_;
};

}  // namespace

Result<ReadResult> read_records(FileSystem& fs, const std::string& directory,
                                const SegmentInfo& segment, Sequence from, Sequence end,
                                std::size_t records_max, std::uint64_t bytes_max,
                                const ReadPosition& position) {
  NARAD_ASSERT(segment.first <= from);
  NARAD_ASSERT(from < end);
  NARAD_ASSERT(end <= segment.end);
  const std::string path = segment_path(directory, segment.first);
  ReadResult out;
  out.next = ReadPosition{segment.first, segment.first, kSegmentHeaderBytes};
  if (position.segment == segment.first && position.sequence <= from) out.next = position;
  NARAD_TRY(auto file, fs.open(path, OpenMode::read));
  Window window(*file);
  std::uint64_t bytes = 0;
  while (out.next.sequence < end) {
    if (!out.records.empty() && (out.records.size() >= records_max || bytes >= bytes_max)) break;
    NARAD_TRY(ByteView head, window.bytes(out.next.at, kFrameHeaderBytes));
    std::size_t size = kFrameHeaderBytes;
    if (head.size() >= kFrameHeaderBytes) {
      const auto length = load_le<std::uint32_t>(head.data());
      if (length <= kFramePayloadBytesMax) size += length;
    }
    NARAD_TRY(ByteView whole, window.bytes(out.next.at, size));
    auto frame = decode_frame(whole, segment.origin);
    if (!frame || frame->sequence != out.next.sequence) {
      return Error(Errc::data_loss,
                   cat("record ", out.next.sequence, " at byte ", out.next.at, " of ", path,
                       " is damaged; it was acknowledged, and nothing behind it is handed over. "
                       "Stop the node and run `narad fsck wal ",
                       directory, "`"));
    }
    if (frame->sequence >= from) {
      out.records.push_back({segment.origin, frame->sequence, to_message(frame->message)});
      bytes += frame->bytes;
    }
    out.next.at += frame->bytes;
    out.next.sequence = out.next.sequence.next();
  }
  return out;
}

Result<void> remove_segments(FileSystem& fs, const std::string& directory,
                             const std::vector<Sequence>& names) {
  if (names.empty()) return ok();
  // Oldest first: whatever a crash leaves is still without a gap. The caller has the proof.
  for (Sequence first : names) {
    if (auto r = fs.remove(segment_path(directory, first));
        !r && r.error().code() != Errc::not_found) {
      return r.error();
    }
  }
  return fs.sync_dir(directory);
}

}  // namespace narad::ingress
