#pragma once
// What lies beside the log of a partition and speaks of its links: cursor files and the marker of
// the move that brought it. Synchronous, over the file door: run in a job.
#include <string>
#include <vector>

#include "internal/moves/cursor_rules.h"
#include "pkg/env/fs.h"

namespace narad::moves {

struct LinkFiles {
  LinkRecords records;
  std::vector<wire::Sidecar> cursors;  // the same files, as they are shipped (CUR-1)
  std::optional<wire::MoveMarker> marker;
};

// Cursor files are overwritten in place: one that is caught in the middle of it is read once more,
// and one that does not verify then is left out (CUR-4). Errors: what the disk says of the
// directory or of the marker.
Result<LinkFiles> read_link_files(FileSystem& fs, const std::string& directory, Incarnation parent);

}  // namespace narad::moves
