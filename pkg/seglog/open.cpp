// Opening a log: what is there, whose it is, what of it may be trusted, and what must be copied,
// set aside or sealed before anything of it is shown.
#include <algorithm>
#include <cerrno>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/seglog/file_source.h"
#include "pkg/seglog/fresh_copy.h"
#include "pkg/seglog/log.h"
#include "pkg/seglog/names.h"

namespace narad::seglog {
namespace {

constexpr std::size_t kScanWindow = 256u << 10;
// The smallest and the largest control frame there can be.
constexpr std::size_t kControlBytesMin = kHeaderBytes + 12;
constexpr std::size_t kControlBytesMax = kHeaderBytes + 12 + 24 * kOriginsMax;

Result<ControlCheck> read_control(FileSystem& fs, const std::string& path) {
  NARAD_TRY(auto file, fs.open(path, OpenMode::read));
  Bytes head(kControlBytesMax);
  NARAD_TRY(std::size_t n, read_up_to(*file, head, 0));
  return decode_control_frame(ByteView(head).first(n));
}

}  // namespace

class SegmentedLog::Opener {
 public:
  Opener(FileSystem& fs, OpenOptions options)
      : fs_(fs), options_(std::move(options)), log_(new SegmentedLog(fs, options_)) {}

  Result<std::unique_ptr<SegmentedLog>> run() {
    NARAD_TRY(list());
    NARAD_TRY(read_hwm());
    if (segments_.empty()) {
      NARAD_TRY(create());
    } else {
      NARAD_TRY(identify());
      NARAD_TRY(set_strays_aside());
      NARAD_TRY(tidy());
      NARAD_TRY(recover());
    }
    log_->remake_view();
    log_->check_invariants();
    return std::move(log_);
  }

 private:
  std::string path_of(Offset base, std::string_view suffix = kSegmentSuffix) const {
    return log_->path(base, suffix);
  }
  Error refuse(Errc code, std::string_view what) const {
    return Error(code, cat(log_->directory_, ": ", what));
  }

  Result<void> list() {
    NARAD_TRY(std::vector<std::string> names, fs_.list(log_->directory_));
    for (const std::string& name : names) {
      if (const auto base = parse_log_file_name(name, kSegmentSuffix)) {
        NARAD_TRY(FileStat stat, fs_.stat(join_path(log_->directory_, name)));
        SegmentInfo segment;
        segment.base = *base;
        segment.bytes = stat.size;
        segment.mtime = stat.mtime;
        if (!segments_.empty()) segments_.back().end = *base;  // names are sorted
        segments_.push_back(segment);
      } else if (parse_log_file_name(name, kFreshSuffix) || name == cat(kHwmName, ".tmp")) {
        leftovers_.push_back(name);
      } else if (const auto sum = parse_log_file_name(name, kSumSuffix)) {
        attached_.push_back({*sum, name});
      } else if (const auto cut = parse_log_file_name(name, kCutSuffix)) {
        attached_.push_back({*cut, name});
      }
    }
    return ok();
  }

  Result<void> read_hwm() {
    const std::string path = join_path(log_->directory_, kHwmName);
    auto file = fs_.open(path, OpenMode::read);
    if (!file && file.error().code() != Errc::not_found) return file.error();
    Bytes bytes(two_slot::kFileBytes);
    if (file) {
      NARAD_TRY(std::size_t n, read_up_to(*file.value(), bytes, 0));
      bytes.resize(n);
      hwm_file_ = true;
    } else {
      bytes.clear();
    }
    const HwmState state = decode_hwm_file(bytes);
    if (state.unsupported) {
      return refuse(
          Errc::unavailable,
          "`hwm` was written by a newer release; upgrade this node (nothing was changed)");
    }
    hwm_ = state.value;
    log_->hwm_sequence_ = state.sequence;
    log_->open_report_.hwm_missing = !hwm_;
    return ok();
  }

  Result<void> create() {
    if (hwm_file_) {
      return refuse(Errc::data_loss,
                    "there is a high watermark but no segment: the files of this log are missing "
                    "(is the right disk mounted?); nothing was changed");
    }
    if (!options_.create_if_missing) return refuse(Errc::not_found, "there is no log here");
    NARAD_TRY(tidy());
    NARAD_ASSERT(options_.fresh_id != LogId(0), "a new log needs an id");
    log_->id_ = options_.fresh_id;
    log_->open_report_.created = true;
    log_->open_report_.hwm_missing = false;
    NARAD_TRY(log_->begin_segment(Offset(0)));
    log_->hwm_rewrite_ = true;  // there is no file to write into
    return log_->write_hwm(false);
  }

  // The log id: from the active segment's control frame, else from `hwm`, else from any other
  // segment. Without it no frame can be told from noise.
  Result<void> identify() {
    std::optional<LogId> found;
    for (std::size_t i = segments_.size(); i-- > 0 && !found;) {
      NARAD_TRY(ControlCheck check, read_control(fs_, path_of(segments_[i].base)));
      if (check.status == HeaderStatus::unsupported) {
        return refuse(Errc::unavailable, cat(segment_name(segments_[i].base),
                                             " was written by a newer release; upgrade this node "
                                             "(nothing was changed)"));
      }
      if (check.status == HeaderStatus::good) found = check.control.log;
      if (!found && hwm_) found = hwm_->log;
    }
    if (!found) {
      return refuse(Errc::data_loss,
                    "no control frame and no high watermark can be read, so the frames of this log "
                    "cannot be verified; nothing was changed");
    }
    if (hwm_ && hwm_->log != *found) {
      return refuse(Errc::data_loss, cat("`hwm` belongs to log ", to_hex16(hwm_->log.value()),
                                         ", the segments to log ", to_hex16(found->value()),
                                         "; nothing was changed"));
    }
    log_->id_ = *found;
    return ok();
  }

  // A segment gets its name with an intact control frame in it, once the one before has taken its
  // last frame. So a file without one, where the segment before goes on past its base, is no part
  // of this log, and would hide good records: it is set aside. (Of files in the middle only those
  // too short for a control frame are looked at: an open does not read them all.)
  Result<void> set_strays_aside() {
    for (std::size_t i = 1; i < segments_.size();) {
      NARAD_TRY(bool stray, is_stray(i));
      if (!stray) {
        ++i;
        continue;
      }
      const std::string path = path_of(segments_[i].base);
      NARAD_TRY(std::string aside, free_name(cat(path, kStraySuffix)));
      NARAD_TRY(fs_.rename(path, aside));
      NARAD_TRY(fs_.sync_dir(log_->directory_));
      log_->open_report_.strays.push_back(aside);
      segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
      segments_[i - 1].end = i < segments_.size() ? segments_[i].base : Offset(0);
    }
    return ok();
  }

  Result<bool> is_stray(std::size_t i) {
    const SegmentInfo& segment = segments_[i];
    const bool last = i + 1 == segments_.size();
    if (!last && segment.bytes >= kControlBytesMin) return false;
    NARAD_TRY(ControlCheck check, read_control(fs_, path_of(segment.base)));
    if (check.status == HeaderStatus::good && check.control.log == log_->id_) return false;
    SegmentInfo before = segments_[i - 1];
    before.end = kNoOffset;
    NARAD_TRY(auto file, fs_.open(path_of(before.base), OpenMode::read));
    FileSource source(*file, kScanWindow, before.bytes);
    SegmentScanner scanner(source, scan_options(before, segment.base));
    while (true) {
      NARAD_TRY(bool more, scanner.next());
      if (!more) return false;
      const ScanItem& item = scanner.item();
      if (item.kind == ScanItem::Kind::frame && item.to > segment.base) return true;
    }
  }

  Result<std::string> free_name(const std::string& wanted) {
    for (int n = 0;; ++n) {
      std::string name = n == 0 ? wanted : cat(wanted, '.', n);
      auto stat = fs_.stat(name);
      if (!stat && stat.error().code() == Errc::not_found) return name;
      if (!stat) return stat.error();
    }
  }

  Result<void> tidy() {
    for (const std::string& name : leftovers_) {
      // Proof: such a file never got its final name, so nothing refers to it and the file that it
      // was to replace is still there.
      NARAD_TRY(fs_.remove(join_path(log_->directory_, name)));
    }
    for (const auto& [base, name] : attached_) {
      // Proof: retention takes segments oldest first, each before what is attached to it; this one
      // lies before the oldest segment, so it was on its way out.
      if (segments_.empty() || base >= segments_.front().base) continue;
      NARAD_TRY(fs_.remove(join_path(log_->directory_, name)));
    }
    return ok();
  }

  // The origin table and newest commit time as of the end of the sealed segments: only needed if
  // the active segment's control frame cannot be read.
  Result<void> table_before(OriginTable& table, UnixMillis& last_commit) {
    std::size_t first = segments_.size() - 1;
    while (first > 0) {
      --first;
      NARAD_TRY(ControlCheck check, read_control(fs_, path_of(segments_[first].base)));
      if (check.status == HeaderStatus::good) break;
    }
    for (std::size_t i = first; i + 1 < segments_.size(); ++i) {
      const SegmentInfo& segment = segments_[i];
      NARAD_TRY(auto file, fs_.open(path_of(segment.base), OpenMode::read));
      FileSource source(*file, kScanWindow, segment.bytes);
      SegmentScanner scanner(source, scan_options(segment, kNoOffset));
      Recovery fold(segment.base, segment.end, std::move(table), last_commit);
      while (true) {
        NARAD_TRY(bool more, scanner.next());
        if (!more) break;
        NARAD_TRY(fold.feed(scanner.item(), log_->id_));
      }
      RecoveryPlan plan = fold.finish(segment.bytes);
      table = std::move(plan.table);
      last_commit = plan.last_commit;
    }
    return ok();
  }

  ScanOptions scan_options(const SegmentInfo& segment, Offset verify_from) const {
    ScanOptions options;
    options.log = log_->id_;
    options.expected = segment.base;
    options.bytes = segment.bytes;
    options.end = segment.end;
    options.verify_from = verify_from;
    options.name = path_of(segment.base);
    return options;
  }

  Result<RecoveryPlan> scan_active(File& file, Offset verify_from) {
    const SegmentInfo& active = segments_.back();
    OriginTable table;
    UnixMillis last_commit{0};
    NARAD_TRY(ControlCheck control, read_control(fs_, path_of(active.base)));
    if (control.status != HeaderStatus::good) {
      NARAD_TRY(table_before(table, last_commit));
    }
    FileSource source(file, kScanWindow, active.bytes);
    SegmentScanner scanner(source, scan_options(active, verify_from));
    Recovery recovery(active.base, persisted_, std::move(table), last_commit);
    while (true) {
      NARAD_TRY(bool more, scanner.next());
      if (!more) break;
      NARAD_TRY(recovery.feed(scanner.item(), log_->id_));
    }
    return recovery.finish(active.bytes);
  }

  Result<void> recover() {
    SegmentInfo& active = segments_.back();
    active.end = kNoOffset;
    // What lies in sealed segments was synced before the active one began.
    persisted_ = std::max(hwm_ ? hwm_->hwm : Offset(0), active.base);
    const Offset known = persisted_;
    persisted_ = std::max(persisted_, options_.durable_below);
    NARAD_TRY(log_->file_, fs_.open(path_of(active.base), OpenMode::read_write));
    NARAD_TRY(bool trusted, recover_clean());
    if (!trusted) {
      NARAD_TRY(recover_unclean());
    }
    if (persisted_ > known && end_ < persisted_) log_->open_report_.ended_below = persisted_;
    return ok();
  }

  // After a clean close the files are what was synced; headers are enough. Anything unexpected and
  // the mark is not believed.
  Result<bool> recover_clean() {
    if (!hwm_ || !hwm_->clean) return false;
    NARAD_TRY(RecoveryPlan plan, scan_active(*log_->file_, persisted_));
    if (plan.damaged || plan.cut_at || plan.hwm != persisted_) return false;
    NARAD_ASSERT(plan.keep_bytes == segments_.back().bytes);
    end_ = plan.end;
    adopt(plan);
    activate(segments_.back(), plan);
    log_->clean_on_disk_ = true;
    log_->hwm_on_disk_ = log_->hwm_;
    log_->open_report_.clean = true;
    return true;
  }

  Result<void> recover_unclean() {
    SegmentInfo active = segments_.back();
    NARAD_TRY(RecoveryPlan plan, scan_active(*log_->file_, Offset(0)));
    end_ = plan.end;
    adopt(plan);
    OpenReport& report = log_->open_report_;
    report.lost = plan.holes;
    const std::string fresh = path_of(active.base, kFreshSuffix);
    if (plan.cut_at) {
      report.cut_at = *plan.cut_at;
      report.cut_bytes = active.bytes - *plan.cut_at;
      report.cut_from = plan.hwm;
      report.cut_origins = plan.cut_origins;
      // Kept aside before it goes. An older cut of this segment may be replaced: cuts hold nothing
      // but syncs that never completed, so nobody was ever told of what is in them.
      NARAD_TRY(copy_fresh(fs_, *log_->file_, *plan.cut_at, active.bytes, fresh,
                           path_of(active.base, kCutSuffix), active.mtime, log_->id_));
    }
    if (plan.hwm == active.base) {
      // No record survives here, and none was lost: begin the segment again.
      if (plan.damaged && active.bytes > 0 && !plan.cut_at) {
        NARAD_TRY(copy_fresh(fs_, *log_->file_, 0, active.bytes, fresh,
                             path_of(active.base, kCutSuffix), active.mtime, log_->id_));
      }
      NARAD_TRY(log_->begin_segment(active.base));
      return log_->write_hwm(false);
    }
    NARAD_TRY(BlockDigester digester, copy_fresh(fs_, *log_->file_, 0, plan.keep_bytes, fresh,
                                                 path_of(active.base), active.mtime, log_->id_));
    NARAD_TRY(log_->file_, fs_.open(path_of(active.base), OpenMode::read_write));
    active.bytes = plan.keep_bytes;
    activate(active, plan);
    if (!plan.damaged) log_->digester_ = std::move(digester);
    NARAD_TRY(log_->write_hwm(false));
    if (plan.seal) {
      report.sealed = true;
      active.end = log_->hwm_;
      log_->add_sealed(active);
      NARAD_TRY(log_->begin_segment(log_->hwm_));
    }
    return ok();
  }

  void adopt(RecoveryPlan& plan) {
    log_->table_ = std::move(plan.table);
    log_->dropped_at_open_ = log_->table_.dropped();
    log_->last_commit_ = plan.last_commit;
    log_->hwm_ = plan.hwm;
    for (std::size_t i = 0; i + 1 < segments_.size(); ++i)
      log_->sealed_bytes_ += segments_[i].bytes;
    log_->sealed_ =
        std::make_shared<const std::vector<SegmentInfo>>(segments_.begin(), segments_.end() - 1);
  }

  void activate(const SegmentInfo& segment, const RecoveryPlan& plan) {
    log_->active_ = segment;
    log_->active_.end = plan.hwm;
    log_->active_.generation = ++log_->generations_;
  }

  FileSystem& fs_;
  OpenOptions options_;
  std::unique_ptr<SegmentedLog> log_;
  std::vector<SegmentInfo> segments_;  // ascending
  std::vector<std::string> leftovers_;
  std::vector<std::pair<Offset, std::string>> attached_;  // .sum and .cut
  std::optional<HwmValue> hwm_;
  bool hwm_file_ = false;
  Offset persisted_{0};
  Offset end_{0};  // of the last intact frame that is kept
};

Result<std::unique_ptr<SegmentedLog>> SegmentedLog::open(FileSystem& fs, OpenOptions options) {
  return Opener(fs, std::move(options)).run();
}

}  // namespace narad::seglog
