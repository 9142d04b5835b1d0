#include "internal/delivery/read_ahead.h"

#include <algorithm>
#include <utility>

namespace narad::delivery {

std::optional<StoredRecord> ReadAhead::take(Offset offset) {
  if (first_ == records_.size()) return std::nullopt;
  std::size_t at = first_;
  if (records_[at].offset != offset) {  // rarely: somebody who came first has not taken theirs yet
    auto it = std::lower_bound(
        records_.begin() + static_cast<std::ptrdiff_t>(first_), records_.end(), offset,
        [](const StoredRecord& record, Offset wanted) { return record.offset < wanted; });
    if (it == records_.end() || it->offset != offset) return std::nullopt;
    at = static_cast<std::size_t>(it - records_.begin());
    if (taken_[at]) return std::nullopt;
  }
  StoredRecord record = std::move(records_[at]);
  records_[at].offset = offset;
  taken_[at] = true;
  while (first_ < records_.size() && taken_[first_]) ++first_;
  if (first_ == records_.size()) clear();
  return record;
}

void ReadAhead::put(std::vector<StoredRecord> records, std::size_t first) {
  if (!budget_ || first >= records.size()) return;
  const bool holds_later =
      first_ < records_.size() && records_.back().offset >= records.back().offset;
  if (holds_later) return;
  std::uint64_t bytes = 0;
  for (std::size_t n = first; n < records.size(); ++n) {
    bytes += sizeof(StoredRecord) + records[n].key.size() + records[n].payload.size();
  }
  if (!has_room(bytes)) return;
  clear();
  records_ = std::move(records);
  taken_.assign(records_.size(), false);
  std::fill_n(taken_.begin(), first, true);
  first_ = first;
  charged_ = bytes;
  budget_->bytes_left -= bytes;
}

void ReadAhead::clear() {
  if (budget_) budget_->bytes_left += std::exchange(charged_, 0);
  records_.clear();
  records_.shrink_to_fit();
  taken_.clear();
  first_ = 0;
}

}  // namespace narad::delivery
