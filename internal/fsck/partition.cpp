// One partition directory: the segments of its log against each other, against the high watermark
// and against what a start would decide (pkg/seglog/recovery.h).
#include <algorithm>
#include <map>

#include "internal/delivery/consumer_files.h"
#include "internal/fsck/parts.h"
#include "pkg/base/text.h"
#include "pkg/seglog/control.h"
#include "pkg/seglog/file_source.h"
#include "pkg/seglog/hwm.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/recovery.h"
#include "pkg/seglog/scan.h"

namespace narad::fsck {
namespace {

constexpr std::size_t kScanWindow = 1u << 20;
constexpr std::size_t kControlBytesMax = seglog::kHeaderBytes + 12 + 24 * seglog::kOriginsMax;
constexpr const char* kDamageRemedy =
    "restore the file from a backup, or go on: consumers pass over these records, which are "
    "counted "
    "as lost";

constexpr const char* kNothingLost =
    "none needed for the records; but the disk has changed bytes, so look after it";

struct Segment {
  Offset base{0};
  std::string path;
  std::uint64_t bytes = 0;
};

class PartitionCheck {
 public:
  PartitionCheck(Context& in, const std::string& directory, std::optional<Incarnation> incarnation)
      : in_(in), directory_(directory), incarnation_(incarnation) {}

  void run() {
    if (!list()) return;
    ++in_.report.counters.partitions;
    in_.report.counters.segments += segments_.size();
    read_hwm();
    if (segments_.empty()) {
      if (hwm_file_) {
        in_.report.problem(directory_, "has a high watermark but no segment: the log is missing")
            .remedy = "see that the right disk is mounted; restore the files from a backup";
      } else {
        in_.report.note(directory_, "holds no log");
      }
      return;
    }
    if (!identify()) return;
    drop_strays();
    read_acked_end();
    for (std::size_t n = 0; n + 1 < segments_.size(); ++n) {
      scan_sealed(segments_[n], segments_[n + 1].base);
    }
    scan_active(segments_.back());
    // A log that could not be read to its end says nothing about what lies above.
    if (end_known_) check_consumer_state(in_, directory_, incarnation_, hwm_value());
  }

 private:
  Offset hwm_value() const { return hwm_ ? std::max(hwm_->hwm, hwm_found_) : hwm_found_; }

  bool list() {
    const auto names = names_in(in_, directory_);
    if (!names) return false;
    std::vector<std::pair<Offset, std::string>> attached;
    for (const std::string& name : *names) {
      const std::string path = join_path(directory_, name);
      if (const auto base = seglog::parse_log_file_name(name, seglog::kSegmentSuffix)) {
        auto stat = in_.fs.stat(path);
        if (!stat) {
          in_.report.unchecked(path, stat.error());
          return false;
        }
        segments_.push_back({*base, path, stat.value().size});
      } else if (const auto sum = seglog::parse_log_file_name(name, seglog::kSumSuffix)) {
        attached.push_back({*sum, path});
      } else if (seglog::parse_log_file_name(name, seglog::kCutSuffix)) {
        in_.report.note(path, "holds bytes that a start has cut off the log and set aside");
      } else if (seglog::parse_log_file_name(name, seglog::kFreshSuffix)) {
        in_.report.note(path, "is a copy that was not finished; the next start removes it");
      } else if (name.find(cat(seglog::kSegmentSuffix, seglog::kStraySuffix)) != name.npos) {
        in_.report.note(path, "was named like a segment and was none; a start has set it aside");
      } else if (name == delivery::kUnreadableSnapshotFileName) {
        in_.report.note(path, "is consumer state that could not be read and was set aside");
      } else if (name != seglog::kHwmName && name != delivery::kSnapshotFileName &&
                 name != delivery::kJournalFileName) {
        report_stray_name(in_, directory_, name);
      }
    }
    for (const auto& [base, path] : attached) {
      const bool has_segment = std::any_of(segments_.begin(), segments_.end(),
                                           [&](const Segment& s) { return s.base == base; });
      if (!has_segment) in_.report.note(path, "holds digests of a segment that is gone");
    }
    return true;
  }

  void read_hwm() {
    const std::string path = join_path(directory_, seglog::kHwmName);
    const SmallFile file = small_file(in_, path, 64 * 1024);
    if (file.missing && !segments_.empty()) {
      in_.report.note(path, "is missing; the next start takes the end of the last intact frame");
    }
    hwm_file_ = !file.missing;
    if (!file.bytes) return;
    const seglog::HwmState state = seglog::decode_hwm_file(*file.bytes);
    if (state.unsupported) {
      in_.report.unchecked(path, "was written by a newer release").remedy =
          "check it with the release that wrote it";
      return;
    }
    if (!state.value) {
      in_.report.problem(path, "has no slot that verifies").remedy =
          "none needed: the next start takes the end of the last intact frame";
      return;
    }
    hwm_ = state.value;
  }

  // The log id, without which no frame can be told from noise.
  bool identify() {
    std::optional<LogId> found;
    if (hwm_) found = hwm_->log;
    for (std::size_t n = segments_.size(); n-- > 0;) {
      const Segment& segment = segments_[n];
      Bytes head(kControlBytesMax);
      auto file = in_.fs.open(segment.path, OpenMode::read);
      auto got = file ? read_up_to(*file.value(), head, 0) : Result<std::size_t>(file.error());
      if (!got) {
        in_.report.unchecked(segment.path, got.error());
        continue;
      }
      const auto check = seglog::decode_control_frame(ByteView(head).first(got.value()));
      if (check.status == seglog::HeaderStatus::unsupported) {
        in_.report.unchecked(segment.path, "was written by a newer release").remedy =
            "check it with the release that wrote it";
        return false;
      }
      if (check.status != seglog::HeaderStatus::good) continue;  // the scan says where and what
      if (found && *found != check.control.log) {
        in_.report
            .problem(segment.path,
                     cat("belongs to log ", to_hex16(check.control.log.value()),
                         ", the rest of the directory to log ", to_hex16(found->value())))
            .remedy = "move the files of the other log out of the directory";
        return false;
      }
      found = check.control.log;
    }
    if (!found) {
      in_.report
          .problem(
              directory_,
              "has no control frame and no high watermark that verify, so nothing in it can be "
              "verified")
          .remedy = "restore the directory from a backup";
      return false;
    }
    log_ = *found;
    return true;
  }

  // As a start does it (pkg/seglog/open.cpp).
  void drop_strays() {
    for (std::size_t i = 1; i < segments_.size();) {
      if (!is_stray(i)) {
        ++i;
        continue;
      }
      Finding& f = in_.report.problem(
          segments_[i].path,
          "is named like a segment and is none: the segment before goes on past its base");
      f.remedy = "none needed: the next start sets it aside, and the records behind it stay";
      segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  bool is_stray(std::size_t i) {
    const Segment& segment = segments_[i];
    const bool last = i + 1 == segments_.size();
    if (!last && segment.bytes >= seglog::kHeaderBytes + 12) return false;
    Bytes head(kControlBytesMax);
    auto file = in_.fs.open(segment.path, OpenMode::read);
    auto got = file ? read_up_to(*file.value(), head, 0) : Result<std::size_t>(file.error());
    if (!got) {
      in_.report.unchecked(segment.path, got.error());
      return false;
    }
    const auto check = seglog::decode_control_frame(ByteView(head).first(got.value()));
    if (check.status == seglog::HeaderStatus::good) return false;
    const Segment& before = segments_[i - 1];
    auto source_file = in_.fs.open(before.path, OpenMode::read);
    if (!source_file) {
      in_.report.unchecked(before.path, source_file.error());
      return false;
    }
    seglog::FileSource source(*source_file.value(), kScanWindow, before.bytes);
    seglog::ScanOptions options = scan_options(before);
    options.verify_from = segment.base;
    seglog::SegmentScanner scanner(source, std::move(options));
    for (;;) {
      auto more = scanner.next();
      if (!more) in_.report.unchecked(before.path, more.error());
      if (!more || !more.value()) return false;
      const seglog::ScanItem& item = scanner.item();
      if (item.kind == seglog::ScanItem::Kind::frame && item.to > segment.base) return true;
    }
  }

  // What consumers have acked was committed.
  void read_acked_end() {
    if (!incarnation_) return;
    auto end = delivery::acked_end(in_.fs, directory_, incarnation_->value());
    if (end) acked_end_ = end.value();
    if (!end) in_.report.unchecked(directory_, end.error());
  }

  seglog::ScanOptions scan_options(const Segment& segment) const {
    seglog::ScanOptions options;
    options.log = log_;
    options.expected = segment.base;
    options.bytes = segment.bytes;
    options.name = segment.path;
    return options;
  }

  // Every item of a segment; false if it could not be read to its end.
  template <class Take>
  bool scan(const Segment& segment, seglog::ScanOptions options, Take take) {
    auto file = in_.fs.open(segment.path, OpenMode::read);
    if (!file) {
      in_.report.unchecked(segment.path, file.error());
      return false;
    }
    seglog::FileSource source(*file.value(), kScanWindow, segment.bytes);
    seglog::SegmentScanner scanner(source, std::move(options));
    for (;;) {
      auto more = scanner.next();
      if (!more) {
        in_.report.unchecked(segment.path, more.error());
        return false;
      }
      if (!more.value()) return true;
      const seglog::ScanItem& item = scanner.item();
      if (item.kind == seglog::ScanItem::Kind::frame) check_time(segment, item);
      if (auto taken = take(item); !taken) {
        in_.report.problem(segment.path, taken.error().text()).bytes =
            Span{item.at, item.at + item.bytes};
      }
    }
  }

  void check_time(const Segment& segment, const seglog::ScanItem& item) {
    if (item.header.commit_time < last_commit_) {
      Finding& f = in_.report.problem(segment.path, cat("has a commit time that goes back: ",
                                                        format_rfc3339(item.header.commit_time),
                                                        " after ", format_rfc3339(last_commit_)));
      f.bytes = Span{item.at, item.at + item.bytes};
      f.offsets = Span{item.from.value(), item.to.value()};
    }
    last_commit_ = std::max(last_commit_, item.header.commit_time);
  }

  void scan_sealed(const Segment& segment, Offset end) {
    seglog::ScanOptions options = scan_options(segment);
    options.end = end;
    if (!in_.options.payloads) options.verify_from = seglog::kNoOffset;
    scan(segment, std::move(options), [&](const seglog::ScanItem& item) -> Result<void> {
      if (item.kind == seglog::ScanItem::Kind::damage) damage(segment, item);
      return ok();
    });
  }

  void damage(const Segment& segment, const seglog::ScanItem& item) {
    if (item.bytes == 0) {
      Finding& f = in_.report.problem(segment.path, "ends before the next segment begins");
      f.offsets = Span{item.from.value(), item.to.value()};
      f.remedy = kDamageRemedy;
      return;
    }
    if (item.from == item.to && item.at + item.bytes == segment.bytes) {
      // A write that failed as the segment was left: they were never part of the log.
      in_.report.note(segment.path, "has bytes behind its last frame; no record is missing there")
          .bytes = Span{item.at, item.at + item.bytes};
      return;
    }
    if (item.from == item.to) {
      Finding& f = in_.report.problem(segment.path,
                                      "has bytes that do not verify; no record is missing there");
      f.bytes = Span{item.at, item.at + item.bytes};
      f.remedy = kNothingLost;
      return;
    }
    Finding& f = in_.report.problem(segment.path, "has bytes that do not verify");
    f.bytes = Span{item.at, item.at + item.bytes};
    f.offsets = Span{item.from.value(), item.to.value()};
    f.remedy = kDamageRemedy;
  }

  // The active segment, judged as a start would.
  void scan_active(const Segment& segment) {
    const Offset known = std::max(segment.base, hwm_ ? hwm_->hwm : Offset(0));
    const Offset persisted = std::max(known, acked_end_);
    seglog::ScanOptions options = scan_options(segment);
    options.verify_from = in_.options.payloads ? Offset(0) : persisted;
    seglog::Recovery recovery(segment.base, persisted, seglog::OriginTable(), UnixMillis(0));
    std::vector<Finding> found;
    const bool whole =
        scan(segment, std::move(options), [&](const seglog::ScanItem& item) -> Result<void> {
          if (item.kind == seglog::ScanItem::Kind::damage) {
            Finding& f =
                found.emplace_back(Kind::problem, segment.path,
                                   "has bytes that do not verify, though they were durable");
            f.bytes = Span{item.at, item.at + item.bytes};
            f.remedy = kDamageRemedy;
            if (item.from < item.to) {
              if (!item.open_ended) f.offsets = Span{item.from.value(), item.to.value()};
            } else if (!item.open_ended) {
              f.what += "; no record is missing there";
              f.remedy = kNothingLost;
            }
          }
          return recovery.feed(item, log_);
        });
    if (!whole) return;
    const seglog::RecoveryPlan plan = recovery.finish(segment.bytes);
    for (Finding& finding : found) {
      if (plan.cut_at && finding.bytes->from >= *plan.cut_at) continue;
      if (!plan.damaged) continue;
      in_.report.problem(finding.where, finding.what) = finding;
    }
    if (plan.cut_at) {
      in_.report
          .note(segment.path,
                "ends with a write that never completed (the ordinary picture after a power cut); "
                "nothing in it was acknowledged, and the next start sets it aside")
          .bytes = Span{*plan.cut_at, segment.bytes};
    }
    if (hwm_ && hwm_->hwm > plan.end && found.empty()) {
      Finding& f = in_.report.problem(segment.path, cat("ends at offset ", plan.end,
                                                        ", but the high watermark is ", hwm_->hwm));
      f.offsets = Span{plan.end.value(), hwm_->hwm.value()};
      f.remedy = kDamageRemedy;
    }
    if (acked_end_ > known && plan.end < acked_end_) {
      Finding& f = in_.report.problem(
          segment.path,
          cat("ends at offset ", plan.end, ", but consumers have acked records below ", acked_end_,
              ": they were committed, and the disk has lost them"));
      f.offsets = Span{plan.end.value(), acked_end_.value()};
      f.remedy =
          "restore the file from a backup, or go on: the next start counts them as lost and does "
          "not give their offsets again";
    }
    hwm_found_ = plan.hwm;
    end_known_ = true;
  }

  Context& in_;
  const std::string directory_;
  const std::optional<Incarnation> incarnation_;
  std::vector<Segment> segments_;  // ascending base
  bool hwm_file_ = false;
  std::optional<seglog::HwmValue> hwm_;
  LogId log_{0};
  UnixMillis last_commit_{0};
  Offset hwm_found_{0};
  Offset acked_end_{0};
  bool end_known_ = false;
};

}  // namespace

void check_partition_files(Context& in, const std::string& directory,
                           std::optional<Incarnation> incarnation) {
  PartitionCheck(in, directory, incarnation).run();
}

}  // namespace narad::fsck
