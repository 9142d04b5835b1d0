#pragma once
// RowMap: an ordered map of immutable rows, cheap to copy, for states that are published as
// snapshots (state.h). Rows sit in sorted chunks of at most kChunkRows; a copy shares every chunk,
// and a change rewrites one chunk and the list of chunks: with 30,000 topics that is some 600
// pointers, and no other row. Pure; a value; readers of an old copy are never disturbed.
//
// Row has `std::string_view key() const`, constant for the life of the row.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "pkg/base/assert.h"

namespace narad::metastore {

template <class Row>
class RowMap {
 public:
  using Ptr = std::shared_ptr<const Row>;
  static constexpr std::size_t kChunkRows = 64;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Nothing if absent. The pointer of find() lives as long as some copy of this map holds the row.
  Ptr get(std::string_view key) const {
    const Place at = place_of(key);
    return at.found ? (*chunks_[at.chunk])[at.row] : nullptr;
  }
  const Row* find(std::string_view key) const {
    const Place at = place_of(key);
    return at.found ? (*chunks_[at.chunk])[at.row].get() : nullptr;
  }
  bool contains(std::string_view key) const { return place_of(key).found; }

  // Adds the row, or replaces the one with its key.
  void put(Ptr row) {
    NARAD_ASSERT(row != nullptr);
    const Place at = place_of(row->key());
    if (at.chunk == chunks_.size()) {
      chunks_.push_back(std::make_shared<const Chunk>(Chunk{std::move(row)}));
      ++size_;
      return;
    }
    auto chunk = std::make_shared<Chunk>(*chunks_[at.chunk]);
    const auto where = chunk->begin() + static_cast<std::ptrdiff_t>(at.row);
    if (at.found) {
      *where = std::move(row);
    } else {
      chunk->insert(where, std::move(row));
      ++size_;
    }
    if (chunk->size() > kChunkRows) {
      const auto half = chunk->begin() + static_cast<std::ptrdiff_t>(chunk->size() / 2);
      auto upper = std::make_shared<const Chunk>(half, chunk->end());
      chunk->erase(half, chunk->end());
      chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk) + 1, std::move(upper));
    }
    chunks_[at.chunk] = std::move(chunk);
  }

  // True if there was one.
  bool erase(std::string_view key) {
    const Place at = place_of(key);
    if (!at.found) return false;
    --size_;
    const auto where = chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk);
    if ((*where)->size() == 1) {
      chunks_.erase(where);
      return true;
    }
    auto chunk = std::make_shared<Chunk>(**where);
    chunk->erase(chunk->begin() + static_cast<std::ptrdiff_t>(at.row));
    *where = std::move(chunk);
    return true;
  }

  // In ascending byte order of keys. `fn(const Ptr&)`; the map must not change meanwhile.
  template <class Fn>
  void for_each(Fn fn) const {
    for (const auto& chunk : chunks_) {
      for (const Ptr& row : *chunk) fn(row);
    }
  }

  // Up to `limit` rows whose keys are strictly greater than `key`, ascending.
  std::vector<Ptr> after(std::string_view key, std::size_t limit) const {
    std::vector<Ptr> out;
    Place at = place_of(key);
    if (at.found) ++at.row;
    for (; at.chunk < chunks_.size() && out.size() < limit; ++at.chunk, at.row = 0) {
      const Chunk& chunk = *chunks_[at.chunk];
      for (; at.row < chunk.size() && out.size() < limit; ++at.row) out.push_back(chunk[at.row]);
    }
    return out;
  }

  // Calls `fn(const Row* old_row, const Row* new_row)` for every key whose row differs between this
  // (older) map and `newer`, ascending; null where there is none. Chunks that both share are
  // skipped without a look at their rows.
  template <class Fn>
  void diff(const RowMap& newer, Fn fn) const {
    Place a{0, 0, false}, b{0, 0, false};
    while (a.chunk < chunks_.size() || b.chunk < newer.chunks_.size()) {
      if (a.row == 0 && b.row == 0 && a.chunk < chunks_.size() && b.chunk < newer.chunks_.size() &&
          chunks_[a.chunk] == newer.chunks_[b.chunk]) {
        ++a.chunk;
        ++b.chunk;
        continue;
      }
      const Row* old_row = row_at(a);
      const Row* new_row = newer.row_at(b);
      if (old_row != nullptr && new_row != nullptr && old_row->key() != new_row->key()) {
        (old_row->key() < new_row->key() ? new_row : old_row) = nullptr;
      }
      if (old_row != new_row) fn(old_row, new_row);
      if (old_row != nullptr) advance(a);
      if (new_row != nullptr) newer.advance(b);
    }
  }

  void check_invariants() const {
    std::size_t rows = 0;
    const Row* previous = nullptr;
    for (const auto& chunk : chunks_) {
      NARAD_ASSERT(!chunk->empty());
      NARAD_ASSERT(chunk->size() <= kChunkRows);
      for (const Ptr& row : *chunk) {
        NARAD_ASSERT(row != nullptr);
        NARAD_ASSERT(previous == nullptr || previous->key() < row->key(), row->key());
        previous = row.get();
        ++rows;
      }
    }
    NARAD_ASSERT(rows == size_);
  }

 private:
  using Chunk = std::vector<Ptr>;
  struct Place {
    std::size_t chunk;
    std::size_t row;
    bool found;
  };

  const Row* row_at(const Place& at) const {
    return at.chunk < chunks_.size() ? (*chunks_[at.chunk])[at.row].get() : nullptr;
  }
  void advance(Place& at) const {
    if (++at.row < chunks_[at.chunk]->size()) return;
    at.row = 0;
    ++at.chunk;
  }

  // Where `key` is, or where it would be inserted. chunk == chunks_.size() only if there is none.
  Place place_of(std::string_view key) const {
    if (chunks_.empty()) return {0, 0, false};
    // The last chunk whose first key is not greater than `key`.
    auto next = std::upper_bound(
        chunks_.begin(), chunks_.end(), key,
        [](std::string_view k, const auto& chunk) { return k < chunk->front()->key(); });
    if (next != chunks_.begin()) --next;
    const Chunk& chunk = **next;
    const auto row =
        std::lower_bound(chunk.begin(), chunk.end(), key,
                         [](const Ptr& r, std::string_view k) { return r->key() < k; });
    return {static_cast<std::size_t>(next - chunks_.begin()),
            static_cast<std::size_t>(row - chunk.begin()),
            row != chunk.end() && (*row)->key() == key};
  }

  std::vector<std::shared_ptr<const Chunk>> chunks_;  // none empty; keys ascend across all
  std::size_t size_ = 0;
};

}  // namespace narad::metastore
