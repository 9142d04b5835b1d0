#pragma once
// Digests of a segment's bytes, one XXH3-64 (seeded with the log id) per 1 MiB block, the last one
// perhaps shorter. Computed from memory as frames are appended, so they say what was *written*.
// Kept beside a sealed segment in `<base>.sum`: {u32 magic, u32 version, u64 segment bytes, one u64
// a block, u64 checksum}. A missing, stale or damaged .sum is recomputed. Pure.
#include <memory>
#include <optional>
#include <vector>

#include "pkg/base/bytes.h"
#include "pkg/base/ids.h"
#include "pkg/seglog/format.h"

namespace narad::seglog {

class BlockDigester {
 public:
  explicit BlockDigester(LogId seed);
  ~BlockDigester();
  BlockDigester(const BlockDigester& other);
  BlockDigester& operator=(const BlockDigester& other);
  BlockDigester(BlockDigester&&) noexcept;
  BlockDigester& operator=(BlockDigester&&) noexcept;

  void update(ByteView bytes);
  std::uint64_t bytes() const { return bytes_; }
  // Of every block so far, the unfinished last one included.
  std::vector<std::uint64_t> digests() const;

  // Where the digester is now, for going back after a failed commit. Cheap (about 600 bytes).
  class Mark;
  Mark mark() const;
  void rewind(const Mark& mark);

 private:
  struct State;
  LogId seed_;
  std::uint64_t bytes_ = 0;
  std::vector<std::uint64_t> done_;
  std::unique_ptr<State> state_;
};

class BlockDigester::Mark {
 public:
  Mark() = default;

 private:
  friend class BlockDigester;
  std::uint64_t bytes_ = 0;
  std::size_t done_ = 0;
  std::shared_ptr<const State> state_;
};

struct Sum {
  std::uint64_t segment_bytes = 0;
  std::vector<std::uint64_t> digests;  // one a block
  friend bool operator==(const Sum&, const Sum&) = default;
};
Bytes encode_sum(const Sum& sum, LogId seed);
// Nothing if it is damaged, or of a version or log that is not ours.
std::optional<Sum> decode_sum(ByteView file, LogId seed);
// The size of a .sum for a segment of that size.
std::uint64_t sum_file_bytes(std::uint64_t segment_bytes);

}  // namespace narad::seglog
