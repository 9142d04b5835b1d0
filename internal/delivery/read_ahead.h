#pragma once
// ReadAhead: records of one partition that were read along with those somebody asked for, so that
// consumers of single records do not cost a read each. What it holds is charged to a budget shared
// by the node's deliveries. Records below the HWM never change, so it cannot be out of date; one
// that retention deleted meanwhile is not asked for any more. Lives on the loop.
#include <memory>
#include <optional>
#include <vector>

#include "internal/model/message.h"

namespace narad::delivery {

// How much all deliveries of a node may hold that was read before anybody asked for it.
struct ReadAheadBudget {
  explicit ReadAheadBudget(std::uint64_t bytes) : bytes_left(bytes) {}
  std::uint64_t bytes_left;
};

class ReadAhead {
 public:
  // Without a budget nothing is kept.
  explicit ReadAhead(std::shared_ptr<ReadAheadBudget> budget) : budget_(std::move(budget)) {}
  ~ReadAhead() { clear(); }
  ReadAhead(const ReadAhead&) = delete;

  bool has_room(std::uint64_t bytes) const {
    return budget_ && budget_->bytes_left + charged_ >= bytes;
  }
  // Takes the record out, if it is there.
  std::optional<StoredRecord> take(Offset offset);
  // Keeps `records` (ascending) from the `first`-th on instead of what it holds, unless that lies
  // further on or the budget does not allow it.
  void put(std::vector<StoredRecord> records, std::size_t first);
  void clear();

 private:
  std::vector<StoredRecord> records_;
  std::vector<bool> taken_;
  std::size_t first_ = 0;  // those before it are taken
  std::uint64_t charged_ = 0;
  std::shared_ptr<ReadAheadBudget> budget_;
};

}  // namespace narad::delivery
