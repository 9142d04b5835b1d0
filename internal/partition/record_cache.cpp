#include "internal/partition/record_cache.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad {
namespace {

constexpr std::size_t kRunsMax = 4;
constexpr std::size_t kPositionsMax = 8;
constexpr std::size_t kEntryOverhead = 160;  // message, reference count, entry

class Taker {
 public:
  Taker(ReadBatch& out, const ReadLimits& limits) : out_(out), limits_(limits) {}
  bool full(std::size_t next_bytes) const {
    if (out_.records.empty()) return false;
    return out_.records.size() >= limits_.records_max || bytes_ + next_bytes > limits_.bytes_max;
  }
  void add(StoredRecord record) {
    bytes_ += record.key.size() + record.payload.size();
    out_.next = record.offset.next();
    out_.records.push_back(std::move(record));
  }

 private:
  ReadBatch& out_;
  const ReadLimits& limits_;
  std::size_t bytes_ = 0;
};

}  // namespace

ReadBatch take_from(const ReadRun& run, Offset from, const ReadLimits& limits) {
  NARAD_ASSERT(run.from <= from);
  NARAD_ASSERT(from < run.next);
  ReadBatch out;
  out.next = from;
  Taker taker(out, limits);
  auto lost = std::find_if(run.lost.begin(), run.lost.end(),
                           [&](const LostRecords& l) { return l.to > from; });
  auto record = std::lower_bound(run.records.begin(), run.records.end(), from,
                                 [](const StoredRecord& r, Offset o) { return r.offset < o; });
  while (out.next < run.next) {
    if (lost != run.lost.end() && lost->from <= out.next) {
      out.lost.push_back({out.next, lost->to});
      out.next = lost->to;
      ++lost;
      continue;
    }
    NARAD_ASSERT(record != run.records.end() && record->offset == out.next);
    if (taker.full(record->key.size() + record->payload.size())) break;
    taker.add(*record++);
  }
  return out;
}

RecordCache::RecordCache(std::shared_ptr<CacheBudget> budget, Limits limits)
    : budget_(std::move(budget)), limits_(limits) {}

RecordCache::~RecordCache() { budget_->leave(*this); }

std::size_t RecordCache::cost(const TailEntry& entry) {
  return kEntryOverhead + entry.message->key.size() + entry.message->payload.size();
}

void RecordCache::append(Offset offset, UnixMillis commit_time, MessagePtr message) {
  NARAD_ASSERT(tail_.empty() || tail_.back().offset.next() == offset);
  tail_.push_back({offset, commit_time, std::move(message)});
  const std::size_t bytes = cost(tail_.back());
  tail_bytes_ += bytes;
  uncharged_ += bytes;
}

void RecordCache::settle() {
  const std::size_t bytes = std::exchange(uncharged_, 0);
  bytes_ += bytes;
  budget_->charge(*this, bytes);
  while (!tail_.empty() &&
         (tail_bytes_ > limits_.tail_bytes_max || tail_.size() > limits_.tail_records_max)) {
    drop_tail_front();
  }
}

void RecordCache::give_back(std::size_t bytes) {
  bytes_ -= bytes;
  budget_->release(*this, bytes);
}

void RecordCache::drop_tail_front() {
  const std::size_t bytes = cost(tail_.front());
  tail_.pop_front();
  tail_bytes_ -= bytes;
  give_back(bytes);
}

bool RecordCache::evict() {
  NARAD_ASSERT(uncharged_ == 0);
  if (!runs_.empty()) {
    const std::size_t bytes = runs_.back()->bytes;
    runs_.pop_back();
    give_back(bytes);
    return true;
  }
  if (tail_.empty()) return false;
  for (std::size_t n = tail_.size() / 4 + 1; n > 0; --n) drop_tail_front();
  return true;
}

void RecordCache::clear() {
  settle();
  while (evict()) {
  }
  positions_.clear();
  indexes_.clear();
}

void RecordCache::add_run(std::shared_ptr<const ReadRun> run) {
  // A longer run replaces what it covers.
  for (auto it = runs_.begin(); it != runs_.end();) {
    if ((*it)->from >= run->from && (*it)->next <= run->next) {
      give_back((*it)->bytes);
      it = runs_.erase(it);
    } else {
      ++it;
    }
  }
  if (runs_.size() >= kRunsMax) {
    give_back(runs_.back()->bytes);
    runs_.pop_back();
  }
  const std::size_t bytes = run->bytes;
  runs_.push_front(std::move(run));
  bytes_ += bytes;
  budget_->charge(*this, bytes);
}

std::optional<ReadBatch> RecordCache::find(Offset from, const ReadLimits& limits) {
  if (!tail_.empty() && from >= tail_.front().offset && from <= tail_.back().offset) {
    return from_tail(from, limits);
  }
  for (auto it = runs_.begin(); it != runs_.end(); ++it) {
    if (from < (*it)->from || from >= (*it)->next) continue;
    runs_.splice(runs_.begin(), runs_, it);
    return take_from(*runs_.front(), from, limits);
  }
  return std::nullopt;
}

ReadBatch RecordCache::from_tail(Offset from, const ReadLimits& limits) const {
  ReadBatch out;
  out.next = from;
  Taker taker(out, limits);
  const auto skip = static_cast<std::ptrdiff_t>(from.minus(tail_.front().offset));
  for (auto it = tail_.begin() + skip; it != tail_.end(); ++it) {
    const Message& m = *it->message;
    if (taker.full(m.key.size() + m.payload.size())) break;
    taker.add(StoredRecord{it->offset, it->commit_time, m.key, m.payload});
  }
  return out;
}

void RecordCache::remember(const seglog::ReadPosition& position) {
  std::erase_if(positions_, [&](const auto& p) { return p.offset == position.offset; });
  positions_.push_front(position);
  if (positions_.size() > kPositionsMax) positions_.pop_back();
}

std::optional<seglog::ReadPosition> RecordCache::position_for(Offset offset) const {
  for (const auto& p : positions_) {
    if (p.offset == offset) return p;
  }
  return std::nullopt;
}

void RecordCache::keep_index(seglog::SegmentIndexPtr index) {
  indexes_.remove_if([&](const auto& i) { return i->segment == index->segment; });
  indexes_.push_front(std::move(index));
  std::size_t bytes = 0;
  for (auto it = indexes_.begin(); it != indexes_.end();) {
    bytes += (*it)->memory_bytes();
    // The newest is kept whatever its size.
    it = bytes > limits_.index_bytes_max && it != indexes_.begin() ? indexes_.erase(it)
                                                                   : std::next(it);
  }
}

seglog::SegmentIndexPtr RecordCache::index_for(Offset segment) {
  for (auto it = indexes_.begin(); it != indexes_.end(); ++it) {
    if ((*it)->segment != segment) continue;
    indexes_.splice(indexes_.begin(), indexes_, it);
    return indexes_.front();
  }
  return nullptr;
}

}  // namespace narad
