#include "pkg/seglog/file_source.h"

#include <algorithm>
#include <cstring>

namespace narad::seglog {
namespace {
constexpr std::size_t kHopBytes = 4096;  // read for a header that stands alone
}  // namespace

Result<ByteView> FileSource::at(std::uint64_t at, std::size_t want, bool sequential) {
  if (at >= end_) return ByteView{};
  const std::uint64_t end = begin_ + buffered_;
  if (at >= begin_ && at <= end && end - at >= want) {
    return ByteView(buffer_).subspan(static_cast<std::size_t>(at - begin_),
                                     static_cast<std::size_t>(end - at));
  }
  // Headers that lie close together are read as one stretch.
  const bool near = buffered_ != 0 && at >= begin_ && at <= end + kHopBytes;
  const auto target = static_cast<std::size_t>(std::min<std::uint64_t>(
      std::max(want, sequential || near ? window_bytes_ : kHopBytes), end_ - at));
  std::size_t kept = 0;
  if (at >= begin_ && at < end) {
    kept = static_cast<std::size_t>(end - at);
    std::memmove(buffer_.data(), buffer_.data() + (at - begin_), kept);
  }
  begin_ = at;
  buffered_ = kept;
  if (buffer_.size() < target) buffer_.resize(target);
  NARAD_TRY(std::size_t n,
            read_up_to(file_, std::span(buffer_).subspan(kept, target - kept), at + kept));
  buffered_ += n;
  return ByteView(buffer_).first(buffered_);
}

}  // namespace narad::seglog
