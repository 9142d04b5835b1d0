#pragma once
// What this node keeps aside instead of deleting it (QUA-7, QUA-8): topic directories in
// <disk>/.quarantine, partition copies beside their path, and staged copies in <disk>/.moves.
// Nothing here is ever removed by the broker.
#include <string>
#include <string_view>
#include <vector>

#include "internal/node/data_dir.h"
#include "internal/wire/operation_messages.h"
#include "pkg/async/task.h"

namespace narad::node {

// In the order of their paths. Disks that are missing are passed over. Blocks: call from a job.
Result<std::vector<SetAsideCopy>> find_quarantined(FileSystem& fs, const std::vector<Disk>& disks);

// The same in a job, as much of it as one answer takes.
Task<Result<wire::SetAsideCopies>> list_quarantined(Env& env, std::vector<Disk> disks);

// "00003.quarantine", "orders-3.quarantine.2": a name that set_aside_partition() or a move gives.
bool is_quarantine_name(std::string_view name);

}  // namespace narad::node
