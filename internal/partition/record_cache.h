#pragma once
// What one partition keeps in memory for its readers: the records committed last (the tail), a few
// runs read ahead from disk, where to go on reading, and sparse indexes. Decides nothing about
// visibility: it is only given what is committed. Lives on the loop; pure but for the budget.
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "internal/model/message.h"
#include "internal/partition/cache_budget.h"
#include "pkg/seglog/read.h"

namespace narad {

struct LostRecords {
  Offset from{0};
  Offset to{0};  // exclusive
  friend bool operator==(const LostRecords&, const LostRecords&) = default;
};
struct ReadBatch {
  std::vector<StoredRecord> records;  // ascending offsets
  // Offsets whose bytes are damaged or missing: reported by every read that meets them, to be
  // skipped as lost.
  std::vector<LostRecords> lost;
  Offset next{0};  // read on from here: everything in [from, next) is above
};

struct ReadLimits {
  std::size_t records_max = 1;
  std::size_t bytes_max = 0;  // key and payload; the first record is answered whatever its size
};

// A stretch of a log as it was read: every offset in [from, next) is a record or lost.
struct ReadRun {
  Offset from{0};
  Offset next{0};
  std::vector<StoredRecord> records;
  std::vector<LostRecords> lost;
  std::size_t bytes = 0;  // of memory, about
};
// What of the run lies at `from` and above, within limits. REQUIRES: run.from <= from < run.next.
ReadBatch take_from(const ReadRun& run, Offset from, const ReadLimits& limits);

class RecordCache final : public CacheBudget::Client {
 public:
  struct Limits {
    std::size_t tail_bytes_max;
    std::size_t tail_records_max;
    std::size_t index_bytes_max;
  };
  RecordCache(std::shared_ptr<CacheBudget> budget, Limits limits);
  ~RecordCache() override;

  // The record at the end of the log. Offsets are dense from the first one on.
  void append(Offset offset, UnixMillis commit_time, MessagePtr message);
  // Settles the memory of what was appended. Call once per group: it may evict.
  void settle();
  void add_run(std::shared_ptr<const ReadRun> run);
  // From memory, or nothing.
  std::optional<ReadBatch> find(Offset from, const ReadLimits& limits);

  void remember(const seglog::ReadPosition& position);
  std::optional<seglog::ReadPosition> position_for(Offset offset) const;
  void keep_index(seglog::SegmentIndexPtr index);
  seglog::SegmentIndexPtr index_for(Offset segment);

  std::size_t bytes() const { return bytes_; }
  void clear();
  bool evict() override;

 private:
  struct TailEntry {
    Offset offset{0};
    UnixMillis commit_time{0};
    MessagePtr message;
  };
  static std::size_t cost(const TailEntry& entry);
  void give_back(std::size_t bytes);
  void drop_tail_front();
  ReadBatch from_tail(Offset from, const ReadLimits& limits) const;

  std::shared_ptr<CacheBudget> budget_;
  Limits limits_;
  std::deque<TailEntry> tail_;
  std::size_t tail_bytes_ = 0;
  std::size_t uncharged_ = 0;                       // appended since settle()
  std::list<std::shared_ptr<const ReadRun>> runs_;  // used last first
  std::deque<seglog::ReadPosition> positions_;      // newest first
  std::list<seglog::SegmentIndexPtr> indexes_;      // used last first
  std::size_t bytes_ = 0;                           // charged to the budget
};

}  // namespace narad
