#pragma once
// What delivery needs of a partition's log. Declared here, by its user; internal/node fits
// internal/partition to it. Lives on the loop that the Delivery lives on.
#include <cstdint>
#include <vector>

#include "internal/delivery/leases.h"
#include "internal/model/message.h"
#include "pkg/async/task.h"

namespace narad {
class Event;
}

namespace narad::delivery {

// A stretch of the log as it was read: every offset of [from, next) is either in `records` or in
// `lost`, both ascending.
struct ReadBatch {
  std::vector<StoredRecord> records;
  std::vector<OffsetRun> lost;  // unreadable for good: damaged, missing
  Offset next{0};
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // [oldest, hwm) is what exists now; equal if there is nothing. The HWM never goes back while a
  // Delivery is open on it.
  virtual LogBounds bounds() const = 0;
  // Reads on from `from`, which is below the HWM: at least one offset, about `records_max` records
  // or `bytes_max` bytes of keys and payloads at most (one record may exceed it). What is
  // unreadable for good is part of the answer; an error is for this time only (`gone` if `from` is
  // below the oldest record now), and the same read may succeed later.
  virtual Task<Result<ReadBatch>> read(Offset from, std::uint32_t records_max,
                                       std::uint64_t bytes_max) = 0;
  // Notified whenever the HWM rises. Lives as long as the source.
  virtual Event& committed() = 0;
};

}  // namespace narad::delivery
