#include "pkg/seglog/retention.h"

#include <algorithm>

#include "pkg/seglog/names.h"

namespace narad::seglog {
namespace {

Result<void> remove_if_there(FileSystem& fs, const std::string& path) {
  auto r = fs.remove(path);
  if (!r && r.error().code() != Errc::not_found) return r.error();
  return ok();
}

bool has_expired(UnixMillis mtime, const RetentionRule& rule) {
  // A time in the future is no age.
  return mtime <= rule.now && rule.now.value() - mtime.value() > rule.retention_ms;
}

}  // namespace

Result<void> remove_expired(FileSystem& fs, const std::string& directory,
                            const std::vector<SegmentInfo>& sealed, const RetentionRule& rule,
                            RetentionOutcome& outcome) {
  if (rule.retention_ms <= 0 || !rule.trusted) return ok();
  for (const SegmentInfo& segment : sealed) {
    const std::string path = join_path(directory, segment_name(segment.base));
    NARAD_TRY(FileStat stat, fs.stat(path));
    if (!has_expired(stat.mtime, rule)) return ok();
    // Proof that it may go: it is sealed, the oldest that is left, and by a clock that the cluster
    // agrees on it has not been written to for longer than the topic asks to keep records.
    NARAD_TRY(remove_if_there(fs, path));
    ++outcome.segments;
    outcome.bytes += stat.size;
    outcome.oldest = segment.end;
    // What belonged to that segment alone.
    for (const std::string_view suffix : {kSumSuffix, kCutSuffix}) {
      NARAD_TRY(remove_if_there(fs, join_path(directory, log_file_name(segment.base, suffix))));
    }
    NARAD_TRY(fs.sync_dir(directory));
  }
  return ok();
}

Result<RetentionOutcome> retain_cold(FileSystem& fs, const std::string& directory,
                                     const RetentionRule& rule) {
  NARAD_TRY(std::vector<std::string> names, fs.list(directory));
  std::vector<SegmentInfo> segments;
  for (const std::string& name : names) {
    const auto base = parse_log_file_name(name, kSegmentSuffix);
    if (!base) continue;
    if (!segments.empty()) segments.back().end = *base;  // names are sorted, and so are bases
    SegmentInfo segment;
    segment.base = *base;
    segments.push_back(segment);
  }
  RetentionOutcome outcome;
  if (segments.empty()) return outcome;
  outcome.oldest = segments.front().base;
  segments.pop_back();  // the active one
  NARAD_TRY(remove_expired(fs, directory, segments, rule, outcome));
  return outcome;
}

}  // namespace narad::seglog
