// Recovery: what a WAL directory holds (reading only), and making what is kept durable.
#include <algorithm>

#include "internal/ingress/ingress.h"
#include "internal/ingress/wal.h"
#include "pkg/base/text.h"
#include "pkg/base/two_slot.h"

namespace narad::ingress {
namespace {

constexpr std::uint64_t kSegmentFileBytesMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kCheckpointFileBytesMax = 1u << 20;
constexpr std::string_view kCheckpointName = "checkpoint";
constexpr std::string_view kTemporaryEnd = ".tmp";

Error damaged(const std::string& directory, std::string_view what) {
  return Error(
      Errc::data_loss,
      cat("ingress WAL ", directory, ": ", what,
          ". Acknowledged records are affected, so the node does not start and nothing was "
          "changed. Run `narad fsck wal ",
          directory, "` to see what can be saved"));
}

Error later_release(const std::string& path) {
  return Error(Errc::invalid_argument,
               cat(path,
                   " has a format version that this release does not know; nothing was "
                   "changed. Start the release that wrote it"));
}

struct Named {
  Sequence first;
  std::string name;
};

class Inspector {
 public:
  Inspector(FileSystem& fs, const std::string& directory) : fs_(fs), directory_(directory) {}

  Result<Inspection> run() {
    NARAD_TRY(list());
    NARAD_TRY(read_checkpoint());
    NARAD_TRY(drop_handed_over());
    for (std::size_t i = 0; i < named_.size(); ++i) {
      NARAD_TRY(read_segment(i));
    }
    NARAD_TRY(finish());
    return std::move(out_);
  }

 private:
  std::string path_of(std::string_view name) const { return join_path(directory_, name); }

  Result<void> list() {
    auto names = fs_.list(directory_);
    if (!names && names.error().code() == Errc::not_found) return ok();
    if (!names) return names.error();
    for (std::string& name : names.value()) {
      if (auto first = parse_segment_name(name)) {
        named_.push_back({*first, std::move(name)});
      } else if (name.ends_with(kTemporaryEnd)) {
        const std::string_view whole =
            std::string_view(name).substr(0, name.size() - kTemporaryEnd.size());
        const bool ours = whole == kCheckpointName || parse_segment_name(whole).has_value();
        if (ours) out_.leftovers.push_back(std::move(name));
      } else if (name != kCheckpointName) {
        out_.remarks.push_back(cat(path_of(name), " is not part of the WAL; it is left alone"));
      }
    }
    return ok();  // 20 digits: the order of names is the order of sequences
  }

  Result<void> read_checkpoint() {
    const std::string path = path_of(kCheckpointName);
    auto file = read_file(fs_, path, kCheckpointFileBytesMax);
    if (!file && file.error().code() != Errc::not_found) return file.error();
    std::optional<Checkpoint> found;
    if (file) {
      if (two_slot::unknown_version(file.value(), kCheckpointMagic)) return later_release(path);
      if (auto slot = two_slot::decode(file.value(), kCheckpointMagic, kCheckpointSeed)) {
        found = decode_checkpoint(slot->value);
        out_.checkpoint_slot = slot->sequence;
      }
    }
    if (found) {
      out_.checkpoint = *found;
      have_checkpoint_ = true;
      return ok();
    }
    // Without a checkpoint everything is handed over once more; the owners recognise it.
    out_.checkpoint.lowest = named_.empty() ? Sequence(1) : named_.front().first;
    if (file || out_.checkpoint.lowest > Sequence(1)) {
      out_.remarks.push_back(cat(path, file ? " is damaged" : " is missing", "; all records from ",
                                 out_.checkpoint.lowest, " on are handed over again"));
    }
    return ok();
  }

  // Segments behind which another begins at or below the checkpoint hold nothing of interest.
  Result<void> drop_handed_over() {
    std::size_t n = 0;
    while (n + 1 < named_.size() && named_[n + 1].first <= out_.checkpoint.lowest) {
      out_.handed_over.push_back(named_[n++].first);
    }
    named_.erase(named_.begin(), named_.begin() + static_cast<std::ptrdiff_t>(n));
    if (!named_.empty() && have_checkpoint_ && named_.front().first > out_.checkpoint.lowest) {
      return damaged(directory_, cat("records ", out_.checkpoint.lowest, " to ",
                                     named_.front().first.value() - 1,
                                     " are missing: the first segment is ", named_.front().name));
    }
    if (!named_.empty()) next_ = named_.front().first;
    return ok();
  }

  Result<void> read_segment(std::size_t i) {
    const Named& named = named_[i];
    const bool last = i + 1 == named_.size();
    const std::string path = path_of(named.name);
    NARAD_TRY(Bytes bytes, read_file(fs_, path, kSegmentFileBytesMax));
    const SegmentScan scan = scan_segment(bytes);
    if (scan.header.state == HeaderState::unknown_version) {
      return later_release(path);
    }
    if (scan.header.state == HeaderState::damaged) {
      if (last && scan.zeros_behind) {  // nothing was ever written behind the header
        out_.empty = named.first;
        return ok();
      }
      return damaged(directory_,
                     cat("the header of ", named.name, " (bytes 0 to ", kSegmentHeaderBytes - 1,
                         ", before record ", named.first, ") is damaged"));
    }
    const SegmentHeader& header = scan.header.header;
    out_.origins.push_back(header.origin);
    if (header.first != named.first) {
      return damaged(directory_, cat(named.name, " says in its header that it begins with record ",
                                     header.first));
    }
    if (header.first != next_) {
      return damaged(directory_, cat(named.name, " begins with record ", header.first,
                                     " where record ", next_, " is due"));
    }
    next_ = scan.end;
    if (last) {
      NARAD_TRY(judge_tail(path, bytes, scan));
    } else {
      NARAD_TRY(judge_middle(named_[i + 1], named, scan));
    }
    if (scan.frames == 0) {
      if (last) out_.empty = named.first;
      return ok();
    }
    if (scan.end <= out_.checkpoint.lowest) {
      out_.handed_over.push_back(named.first);
      return ok();
    }
    out_.segments.push_back({header.origin, header.first, scan.end, bytes.size()});
    if (last) {
      bytes.resize(static_cast<std::size_t>(scan.end_at));
      out_.last = std::move(bytes);
    }
    return ok();
  }

  // Behind the last segment there is nothing, so what does not verify may be a sync that never
  // completed: the ordinary picture after a power cut.
  Result<void> judge_tail(const std::string& path, const Bytes& bytes, const SegmentScan& scan) {
    if (scan.zeros_behind) return ok();
    auto witness = find_witness(bytes, scan.end_at, scan.header.header.origin, scan.end);
    if (witness && !witness->certain) {
      return damaged(directory_, cat("record ", scan.end, " at byte ", scan.end_at, " of ", path,
                                     " is damaged, and what follows looks too much like records to "
                                     "be told apart"));
    }
    if (witness) {
      return damaged(directory_, cat("record ", scan.end, " at byte ", scan.end_at, " of ", path,
                                     " is damaged, and record ", witness->sequence, " at byte ",
                                     witness->at, " proves that all records up to ",
                                     witness->synced, " had been stored durably"));
    }
    const auto end =
        std::find_if(bytes.rbegin(), bytes.rend(), [](std::byte b) { return b != std::byte{0}; });
    const auto used = static_cast<std::uint64_t>(bytes.rend() - end);
    out_.cut = Inspection::Cut{path, scan.end_at, used - scan.end_at, scan.end};
    return ok();
  }

  // A segment is begun only once everything before it is durable, so nothing may be missing here.
  Result<void> judge_middle(const Named& next, const Named& named, const SegmentScan& scan) {
    if (next.first != scan.end) {
      return damaged(directory_, cat("record ", scan.end, " at byte ", scan.end_at, " of ",
                                     named.name, " is damaged or missing, and ", next.name,
                                     " was begun once all before it had been stored durably"));
    }
    if (!scan.zeros_behind) {
      out_.remarks.push_back(cat(named.name, " has stray bytes from byte ", scan.end_at,
                                 " on; no record is missing there"));
    }
    return ok();
  }

  Result<void> finish() {
    Checkpoint& checkpoint = out_.checkpoint;
    if (checkpoint.clean_end.value() != 0 && !named_.empty() && next_ < checkpoint.clean_end) {
      return damaged(directory_,
                     cat("the records end before ", next_,
                         ", but at the last clean stop they ended before ", checkpoint.clean_end));
    }
    const bool unread = named_.empty();
    out_.clean =
        checkpoint.clean_end.value() != 0 && !out_.cut && (unread || next_ == checkpoint.clean_end);
    if (!unread && next_ < checkpoint.lowest) {
      out_.remarks.push_back(cat("the records end before ", next_, ", but all below ",
                                 checkpoint.lowest,
                                 " were handed over: the disk lost bytes that it had confirmed"));
    }
    out_.next = std::max({next_, checkpoint.lowest, checkpoint.clean_end});
    return ok();
  }

  FileSystem& fs_;
  const std::string directory_;
  std::vector<Named> named_;
  bool have_checkpoint_ = false;
  Sequence next_{1};
  Inspection out_;
};

}  // namespace

std::string segment_path(const std::string& directory, Sequence first) {
  return join_path(directory, segment_name(first));
}

Result<bool> has_wal(FileSystem& fs, const std::string& directory) {
  auto names = fs.list(directory);
  if (!names && names.error().code() == Errc::not_found) return false;
  if (!names) return names.error();
  return std::any_of(names.value().begin(), names.value().end(), [](const std::string& name) {
    return name == kCheckpointName || parse_segment_name(name);
  });
}

Result<Inspection> inspect_wal(FileSystem& fs, const std::string& directory) {
  return Inspector(fs, directory).run();
}

Result<void> recover_wal(FileSystem& fs, const WalOptions& options, const Inspection& inspection) {
  const std::string& directory = options.directory;
  NARAD_TRY(make_directories(fs, directory));
  // Proof: a temporary was never renamed, so no record was ever acknowledged on it, and what it was
  // to replace is still there.
  for (const std::string& name : inspection.leftovers) {
    if (auto r = fs.remove(join_path(directory, name)); !r && r.error().code() != Errc::not_found) {
      return r.error();
    }
  }
  if (!inspection.clean && !inspection.segments.empty() && !inspection.last.empty()) {
    // A whole new file in place of the old one: what the page cache showed of that may not be on
    // the disk. Proof that the old one may go: every record of it that is kept is in the new one.
    NARAD_TRY(replace_file(fs, segment_path(directory, inspection.segments.back().first),
                           inspection.last));
  }
  // The checkpoint, too, is written anew before anything is deleted on its word.
  const std::uint64_t slot = inspection.checkpoint_slot + 1;
  const Bytes value = encode_checkpoint(Checkpoint{inspection.checkpoint.lowest, Sequence(0)});
  const auto encoded = two_slot::encode(kCheckpointMagic, kCheckpointSeed, slot, value);
  Bytes file(two_slot::kFileBytes);
  std::copy(encoded.begin(), encoded.end(),
            file.begin() + static_cast<std::ptrdiff_t>(two_slot::slot_offset(slot)));
  NARAD_TRY(replace_file(fs, join_path(directory, kCheckpointName), file));
  // Proof: the durable checkpoint says that all their records were handed over; an empty segment
  // has none (inspection found no intact frame, and no sign that there ever was a durable one).
  std::vector<Sequence> gone = inspection.handed_over;
  if (inspection.empty) gone.push_back(*inspection.empty);
  return remove_segments(fs, directory, gone);
}

}  // namespace narad::ingress
