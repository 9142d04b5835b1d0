#pragma once
// A ByteSource over an open file, with one read-ahead window. Blocks.
#include "pkg/env/fs.h"
#include "pkg/seglog/scan.h"

namespace narad::seglog {

class FileSource final : public ByteSource {
 public:
  // `file` outlives it. `window_bytes`: what a sequential read takes at a time. No byte at or past
  // `end` is read.
  FileSource(File& file, std::size_t window_bytes, std::uint64_t end)
      : file_(file), window_bytes_(window_bytes), end_(end) {}
  Result<ByteView> at(std::uint64_t at, std::size_t want, bool sequential) override;

 private:
  File& file_;
  std::size_t window_bytes_;
  std::uint64_t end_;
  Bytes buffer_;             // capacity
  std::uint64_t begin_ = 0;  // position of the first buffered byte
  std::size_t buffered_ = 0;
};

}  // namespace narad::seglog
