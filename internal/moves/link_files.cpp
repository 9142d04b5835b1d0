#include "internal/moves/link_files.h"

#include <utility>

#include "pkg/base/text.h"

namespace narad::moves {
namespace {

struct ReadCursor {
  FanoutCursor cursor;
  std::string file;
};

std::optional<ReadCursor> read_cursor(FileSystem& fs, const std::string& path, Incarnation parent) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto file = read_file(fs, path, wire::kSidecarBytesMax);
    if (!file) continue;
    if (auto cursor = decode_cursor_file(file.value(), parent)) {
      return ReadCursor{std::move(*cursor), to_text(file.value())};
    }
  }
  return std::nullopt;
}

Result<void> take_marker(FileSystem& fs, const std::string& path, LinkFiles& out) {
  NARAD_TRY(Bytes file, read_file(fs, path, wire::kMarkerFileBytesMax));
  out.marker = wire::decode_marker_file(as_chars(file));
  out.records.marker_unreadable = !out.marker;
  if (out.marker) out.records.installed = out.marker->links;
  return ok();
}

}  // namespace

Result<LinkFiles> read_link_files(FileSystem& fs, const std::string& directory,
                                  Incarnation parent) {
  LinkFiles out;
  NARAD_TRY(auto names, fs.list(directory));
  for (const std::string& name : names) {
    const std::string path = join_path(directory, name);
    if (name == wire::kMoveMarkerFileName) {
      NARAD_TRY(take_marker(fs, path, out));
    } else if (is_cursor_file_name(name) && out.cursors.size() < wire::kSidecarsMax) {
      auto read = read_cursor(fs, path, parent);
      if (!read) {
        out.records.damaged.push_back(name);
        continue;
      }
      out.cursors.push_back({read->cursor.child, std::move(read->file)});
      out.records.cursors.push_back(std::move(read->cursor));
    }
  }
  return out;
}

}  // namespace narad::moves
