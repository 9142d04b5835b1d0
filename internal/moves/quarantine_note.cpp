#include "internal/moves/quarantine_note.h"

#include "pkg/base/text.h"

namespace narad::moves {
namespace {

constexpr std::uint64_t kNoteBytesMax = 1000;

std::string note_path(const std::string& directory) {
  return join_path(directory, kQuarantineNoteName);
}

}  // namespace

void note_quarantine(FileSystem& fs, const std::string& directory, std::string_view why) {
  const std::string text = cat(why.substr(0, kNoteBytesMax - 1), "\n");
  // A disk that does not take a note (it may be full) must not keep a copy from being set aside.
  (void)replace_file(fs, note_path(directory), as_bytes(text));
}

QuarantineNote read_quarantine_note(FileSystem& fs, const std::string& directory) {
  QuarantineNote note;
  const auto stat = fs.stat(note_path(directory));
  if (!stat || stat.value().is_directory) return note;
  note.since = stat.value().mtime;
  const auto text = read_file(fs, note_path(directory), kNoteBytesMax);
  if (!text) return note;
  const std::string_view all = as_chars(text.value());
  note.why = std::string(all.substr(0, all.find('\n')));
  return note;
}

}  // namespace narad::moves
