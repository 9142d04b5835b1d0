#pragma once
// Offline checks of what a node has stored. They read and report; nothing is ever changed.
// Blocking: for a command, before any loop starts.
//
// A check never stops at the first finding, and never calls clean what it could not look at.
#include <string>

#include "internal/fsck/report.h"
#include "internal/model/names.h"
#include "pkg/env/fs.h"

namespace narad::fsck {

struct CheckOptions {
  // Verify payloads of partition segments too, not their headers alone.
  bool payloads = false;
  // Go on although a node has the directory open: what it writes meanwhile may look like damage.
  bool allow_live = false;
};

// A whole data directory: names, identities, every partition (check_partition), the ingress WAL
// (check_wal) and the databases of the metastore.
void check_quick(FileSystem& fs, const std::string& data_dir, Report& report,
                 const CheckOptions& options = {});

// The ingress WAL in `ingress_dir`: exactly what a start would refuse or cut off, where every
// damaged stretch lies, which records it costs, and what can be done. Reads all of it.
void check_wal(FileSystem& fs, const std::string& ingress_dir, Report& report,
               const CheckOptions& options = {});

// One partition directory: segments against each other and the high watermark, consumer state
// within it. `incarnation` of its topic, if known.
void check_partition(FileSystem& fs, const std::string& directory,
                     std::optional<Incarnation> incarnation, Report& report,
                     const CheckOptions& options = {});

// Whichever of the three `path` is, by what lies in it.
void check_path(FileSystem& fs, const std::string& path, Report& report,
                const CheckOptions& options = {});

}  // namespace narad::fsck
