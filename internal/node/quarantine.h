#pragma once
// What this node keeps aside instead of deleting it (QUA-7, QUA-8): topic directories in
// <disk>/.quarantine, partition copies beside their path, and staged copies in <disk>/.moves.
// Nothing here is ever removed by the broker. Blocks: call from a job.
#include <cstdint>
#include <string>
#include <vector>

#include "internal/node/data_dir.h"

namespace narad::node {

struct QuarantinedCopy {
  std::string path;
  std::uint64_t bytes = 0;  // of all files in it
  friend bool operator==(const QuarantinedCopy&, const QuarantinedCopy&) = default;
};

// In the order of their paths. Disks that are missing are passed over.
Result<std::vector<QuarantinedCopy>> find_quarantined(FileSystem& fs,
                                                      const std::vector<Disk>& disks);

// "00003.quarantine", "orders-3.quarantine.2": a name that set_aside_partition() or a move gives.
bool is_quarantine_name(std::string_view name);

}  // namespace narad::node
