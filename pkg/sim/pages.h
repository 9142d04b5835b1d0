#pragma once
// The bytes of one simulated file: pages shared between copies until one of them writes. Holes cost
// nothing and read as zeros.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "pkg/base/bytes.h"

namespace narad::sim {

class Pages {
 public:
  static constexpr std::size_t kPageBytes = 4096;

  std::uint64_t size() const { return size_; }

  // REQUIRES: offset + out.size() <= size().
  void read(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const std::size_t in_page = offset % kPageBytes;
      const std::size_t n = std::min(out.size(), kPageBytes - in_page);
      if (const auto& page = pages_[offset / kPageBytes]) {
        std::memcpy(out.data(), page->data() + in_page, n);
      } else {
        std::memset(out.data(), 0, n);
      }
      out = out.subspan(n);
      offset += n;
    }
  }
  Bytes read_all() const {
    Bytes out(static_cast<std::size_t>(size_));
    read(0, out);
    return out;
  }
  // Grows as needed.
  void write(std::uint64_t offset, ByteView bytes) {
    if (bytes.empty()) return;
    if (offset + bytes.size() > size_) resize(offset + bytes.size());
    while (!bytes.empty()) {
      const std::size_t in_page = offset % kPageBytes;
      const std::size_t n = std::min(bytes.size(), kPageBytes - in_page);
      std::memcpy(own(offset / kPageBytes).data() + in_page, bytes.data(), n);
      bytes = bytes.subspan(n);
      offset += n;
    }
  }
  void resize(std::uint64_t size) {
    const std::size_t tail = size % kPageBytes;
    if (size < size_ && tail != 0 && pages_[size / kPageBytes]) {
      auto& page = own(size / kPageBytes);  // what is cut off must not come back when it grows
      std::fill(page.begin() + static_cast<std::ptrdiff_t>(tail), page.end(), std::byte{0});
    }
    pages_.resize(static_cast<std::size_t>((size + kPageBytes - 1) / kPageBytes));
    size_ = size;
  }
  // REQUIRES: offset < size().
  void flip(std::uint64_t offset, std::byte mask) {
    own(offset / kPageBytes)[offset % kPageBytes] ^= mask;
  }

 private:
  using Page = std::array<std::byte, kPageBytes>;
  Page& own(std::uint64_t index) {
    auto& page = pages_[static_cast<std::size_t>(index)];
    if (!page) {
      page = std::make_shared<Page>();
    } else if (page.use_count() > 1) {
      page = std::make_shared<Page>(*page);
    }
    return *page;
  }
  std::uint64_t size_ = 0;
  std::vector<std::shared_ptr<Page>> pages_;
};

}  // namespace narad::sim
