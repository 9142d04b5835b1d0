#include "pkg/seglog/digest.h"

#include <xxhash.h>

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"

namespace narad::seglog {

struct BlockDigester::State {
  XXH3_state_t* xxh = XXH3_createState();  // aligned as it needs to be
  State() { NARAD_ASSERT(xxh != nullptr, "out of memory"); }
  State(const State& other) : State() { XXH3_copyState(xxh, other.xxh); }
  State& operator=(const State& other) {
    XXH3_copyState(xxh, other.xxh);
    return *this;
  }
  ~State() { XXH3_freeState(xxh); }
};

BlockDigester::BlockDigester(LogId seed) : seed_(seed), state_(std::make_unique<State>()) {
  XXH3_64bits_reset_withSeed(state_->xxh, seed_.value());
}
BlockDigester::~BlockDigester() = default;
BlockDigester::BlockDigester(const BlockDigester& other)
    : seed_(other.seed_),
      bytes_(other.bytes_),
      done_(other.done_),
      state_(std::make_unique<State>(*other.state_)) {}
BlockDigester& BlockDigester::operator=(const BlockDigester& other) {
  return *this = BlockDigester(other);
}
BlockDigester::BlockDigester(BlockDigester&&) noexcept = default;
BlockDigester& BlockDigester::operator=(BlockDigester&&) noexcept = default;

void BlockDigester::update(ByteView bytes) {
  while (!bytes.empty()) {
    const std::uint64_t room = kBlockBytes - bytes_ % kBlockBytes;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size()));
    XXH3_64bits_update(state_->xxh, bytes.data(), n);
    bytes_ += n;
    bytes = bytes.subspan(n);
    if (bytes_ % kBlockBytes == 0) {
      done_.push_back(XXH3_64bits_digest(state_->xxh));
      XXH3_64bits_reset_withSeed(state_->xxh, seed_.value());
    }
  }
}

std::vector<std::uint64_t> BlockDigester::digests() const {
  std::vector<std::uint64_t> out = done_;
  if (bytes_ % kBlockBytes != 0) out.push_back(XXH3_64bits_digest(state_->xxh));
  return out;
}

BlockDigester::Mark BlockDigester::mark() const {
  Mark mark;
  mark.bytes_ = bytes_;
  mark.done_ = done_.size();
  mark.state_ = std::make_shared<const State>(*state_);
  return mark;
}

void BlockDigester::rewind(const Mark& mark) {
  NARAD_ASSERT(mark.state_ && mark.bytes_ <= bytes_ && mark.done_ <= done_.size());
  bytes_ = mark.bytes_;
  done_.resize(mark.done_);
  *state_ = *mark.state_;
}

// ---- .sum files ------------------------------------------------------------------------------

std::uint64_t sum_file_bytes(std::uint64_t segment_bytes) {
  const std::uint64_t blocks = segment_bytes / kBlockBytes + (segment_bytes % kBlockBytes != 0);
  return 4 + 4 + 8 + 8 * blocks + 8;
}

Bytes encode_sum(const Sum& sum, LogId seed) {
  NARAD_ASSERT(sum_file_bytes(sum.segment_bytes) == 24 + 8 * sum.digests.size());
  Bytes out;
  ByteWriter w(out);
  w.u32(kSumMagic);
  w.u32(kSumVersion);
  w.u64(sum.segment_bytes);
  for (const std::uint64_t digest : sum.digests) w.u64(digest);
  w.u64(xxh3(out, seed.value()));
  return out;
}

std::optional<Sum> decode_sum(ByteView file, LogId seed) {
  ByteReader in(file);
  if (in.u32() != kSumMagic || in.u32() != kSumVersion) return std::nullopt;
  Sum sum;
  sum.segment_bytes = in.u64();
  if (!in.ok() || file.size() != sum_file_bytes(sum.segment_bytes)) return std::nullopt;
  const std::size_t body = file.size() - 8;
  if (load_le<std::uint64_t>(file.data() + body) != xxh3(file.first(body), seed.value())) {
    return std::nullopt;
  }
  sum.digests.resize((body - in.position()) / 8);
  for (std::uint64_t& digest : sum.digests) digest = in.u64();
  return sum;
}

}  // namespace narad::seglog
