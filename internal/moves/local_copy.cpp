#include "internal/moves/local_copy.h"

#include <algorithm>

#include "pkg/base/text.h"
#include "pkg/seglog/control.h"
#include "pkg/seglog/file_source.h"
#include "pkg/seglog/hwm.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/origin_table.h"

namespace narad::moves {
namespace {

constexpr std::size_t kScanWindow = 1u << 20;
constexpr std::size_t kControlBytesMax = seglog::kHeaderBytes + 12 + 24 * seglog::kOriginsMax;

Result<void> find_segments(FileSystem& fs, const std::string& directory, LocalCopy& copy) {
  NARAD_TRY(auto names, fs.list(directory));
  copy.empty_directory = names.empty();
  for (const std::string& name : names) {  // sorted, and so are the bases
    const auto base = seglog::parse_log_file_name(name, seglog::kSegmentSuffix);
    if (!base) continue;
    NARAD_TRY(FileStat stat, fs.stat(join_path(directory, name)));
    copy.segments.push_back({*base, stat.size, true, stat.mtime});
  }
  if (!copy.segments.empty()) copy.segments.back().sealed = false;
  return ok();
}

Result<void> read_hwm(FileSystem& fs, const std::string& directory, LocalCopy& copy) {
  auto bytes = read_file(fs, join_path(directory, seglog::kHwmName), two_slot::kFileBytes);
  if (!bytes && bytes.error().code() == Errc::not_found) return ok();
  if (!bytes) return bytes.error();
  const seglog::HwmState state = seglog::decode_hwm_file(bytes.value());
  if (state.unsupported) {
    return Error(Errc::unavailable,
                 cat(directory, ": `hwm` was written by a newer release; upgrade this node"));
  }
  if (!state.value) return ok();
  copy.log = state.value->log;
  copy.end = std::max(copy.end, state.value->hwm);
  return ok();
}

Result<void> identify(FileSystem& fs, const std::string& directory, LocalCopy& copy) {
  for (std::size_t i = copy.segments.size(); i-- > 0 && !copy.log;) {
    const std::string path = join_path(directory, seglog::segment_name(copy.segments[i].base));
    NARAD_TRY(auto file, fs.open(path, OpenMode::read));
    Bytes head(kControlBytesMax);
    NARAD_TRY(std::size_t n, read_up_to(*file, head, 0));
    const auto check = seglog::decode_control_frame(ByteView(head).first(n));
    if (check.status == seglog::HeaderStatus::unsupported) {
      return Error(Errc::unavailable, cat(path, " was written by a newer release; upgrade"));
    }
    if (check.status == seglog::HeaderStatus::good) copy.log = check.control.log;
  }
  return ok();
}

Result<void> find_end(FileSystem& fs, const std::string& directory, LocalCopy& copy) {
  const LocalSegment& last = copy.segments.back();
  copy.end = std::max(copy.end, last.base);
  if (!copy.log) return ok();
  const std::string path = join_path(directory, seglog::segment_name(last.base));
  NARAD_TRY(auto file, fs.open(path, OpenMode::read));
  seglog::ScanOptions options;
  options.log = *copy.log;
  options.expected = last.base;
  options.bytes = last.bytes;
  options.name = path;
  seglog::FileSource source(*file, kScanWindow, last.bytes);
  seglog::SegmentScanner scanner(source, options);
  while (true) {
    NARAD_TRY(bool more, scanner.next());
    if (!more) return ok();
    const seglog::ScanItem& item = scanner.item();
    if (item.kind == seglog::ScanItem::Kind::frame) copy.end = std::max(copy.end, item.to);
  }
}

}  // namespace

Result<LocalCopy> read_local_copy(FileSystem& fs, const std::string& directory) {
  LocalCopy copy;
  NARAD_TRY(find_segments(fs, directory, copy));
  NARAD_TRY(read_hwm(fs, directory, copy));
  if (copy.segments.empty()) return copy;
  NARAD_TRY(identify(fs, directory, copy));
  NARAD_TRY(find_end(fs, directory, copy));
  return copy;
}

}  // namespace narad::moves
