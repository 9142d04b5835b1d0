#include "pkg/seglog/sums.h"

#include <algorithm>

#include "pkg/base/text.h"
#include "pkg/seglog/file_source.h"
#include "pkg/seglog/names.h"

namespace narad::seglog {
namespace {

constexpr std::size_t kWindow = 256u << 10;

std::string sum_path(const std::string& directory, Offset base) {
  return join_path(directory, log_file_name(base, kSumSuffix));
}

std::optional<Sum> read_sum(FileSystem& fs, const std::string& directory, LogId log,
                            const SegmentInfo& segment) {
  auto file = read_file(fs, sum_path(directory, segment.base), sum_file_bytes(segment.bytes));
  if (!file) return std::nullopt;
  auto sum = decode_sum(file.value(), log);
  if (!sum || sum->segment_bytes != segment.bytes) return std::nullopt;
  return sum;
}

}  // namespace

Result<SegmentDigests> read_digests(FileSystem& fs, const std::string& directory, LogId log,
                                    const SegmentInfo& segment) {
  SegmentDigests out;
  if (const auto sum = read_sum(fs, directory, log, segment)) {
    out.blocks.assign(sum->digests.begin(), sum->digests.end());
    return out;
  }
  const std::string path = join_path(directory, segment_name(segment.base));
  NARAD_TRY(auto file, fs.open(path, OpenMode::read));
  BlockDigester digester(log);
  Bytes chunk(static_cast<std::size_t>(std::min<std::uint64_t>(kWindow, segment.bytes)));
  while (digester.bytes() < segment.bytes) {
    const auto n = static_cast<std::size_t>(
        std::min<std::uint64_t>(chunk.size(), segment.bytes - digester.bytes()));
    NARAD_TRY(read_exact(*file, std::span(chunk).first(n), digester.bytes()));
    digester.update(ByteView(chunk).first(n));
  }
  const auto digests = digester.digests();
  out.blocks.assign(digests.begin(), digests.end());

  ScanOptions options;
  options.log = log;
  options.expected = segment.base;
  options.bytes = segment.bytes;
  options.end = segment.end;
  options.name = path;
  FileSource source(*file, kWindow, segment.bytes);
  SegmentScanner scanner(source, options);
  bool whole = true;
  while (true) {
    NARAD_TRY(bool more, scanner.next());
    if (!more) break;
    const ScanItem& item = scanner.item();
    if (item.kind != ScanItem::Kind::damage) continue;
    whole = false;
    if (item.bytes == 0) continue;
    const std::uint64_t last = (item.at + item.bytes - 1) / kBlockBytes;
    for (std::uint64_t b = item.at / kBlockBytes; b <= last && b < out.blocks.size(); ++b) {
      out.blocks[static_cast<std::size_t>(b)].reset();
    }
  }
  if (whole) out.digester = std::move(digester);
  return out;
}

Result<std::vector<std::optional<std::uint64_t>>> block_digests(FileSystem& fs,
                                                                const std::string& directory,
                                                                LogId log,
                                                                const SegmentInfo& segment) {
  NARAD_TRY(SegmentDigests read, read_digests(fs, directory, log, segment));
  return std::move(read.blocks);
}

Result<void> write_sum_file(FileSystem& fs, const std::string& directory, LogId log, Offset base,
                            const Sum& sum) {
  NARAD_TRY(auto file, fs.open(sum_path(directory, base), OpenMode::create));
  NARAD_TRY(file->truncate(0));
  return write_all(*file, encode_sum(sum, log), 0);
}

}  // namespace narad::seglog
