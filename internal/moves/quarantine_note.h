#pragma once
// The word that stands in a copy that was set aside: why. When the file was written is since when.
// Blocks: call from a job.
#include <string>
#include <string_view>

#include "pkg/env/fs.h"

namespace narad::moves {

inline constexpr std::string_view kQuarantineNoteName = "quarantined";

// Leaves it in a directory that has just been set aside. A copy in which it cannot be written is as
// good a copy, and is shown without it.
void note_quarantine(FileSystem& fs, const std::string& directory, std::string_view why);

struct QuarantineNote {
  std::string why;      // one line; empty: not known
  UnixMillis since{0};  // 0: not known
};
QuarantineNote read_quarantine_note(FileSystem& fs, const std::string& directory);

}  // namespace narad::moves
