#include "internal/delivery/consumer_state.h"

#include <array>
#include <optional>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad::delivery {
namespace {

constexpr std::size_t kHeaderChecksumAt = 24;
constexpr std::size_t kEntryChecksumAt = 8;
// Offsets fit a signed 64-bit integer everywhere (receipt handles, JSON).
constexpr std::uint64_t kOffsetEndMax = 0x7fff'ffff'ffff'ffff;

void put_header(Bytes& out, std::uint32_t magic, SnapshotId id) {
  ByteWriter to(out);
  to.u32(magic);
  to.u32(kConsumerStateVersion);
  to.u64(id.identity);
  to.u64(id.sequence);
  to.u64(xxh3(ByteView(out).first(kHeaderChecksumAt), 0));
}

struct Header {
  Readability readability = Readability::damaged;
  std::string problem;
  std::uint32_t version = 0;
  SnapshotId id;
};

Header take_header(ByteView file, std::uint32_t magic) {
  Header out;
  if (file.size() < kConsumerHeaderBytes) {
    out.problem = cat("is ", file.size(), " bytes long, shorter than its header");
    return out;
  }
  ByteReader in(file);
  if (in.u32() != magic) {
    out.problem = "does not begin with its magic";
    return out;
  }
  const std::uint32_t version = in.u32();
  const SnapshotId id{in.u64(), in.u64()};
  if (in.u64() != xxh3(file.first(kHeaderChecksumAt), 0)) {
    out.problem = "has a header whose checksum does not match";
    return out;
  }
  out.version = version;
  out.id = id;
  if (version != kConsumerStateVersion) {
    out.readability = Readability::unknown_version;
    out.problem = cat("has version ", version, ", and this release knows version ",
                      kConsumerStateVersion, " only");
    return out;
  }
  out.readability = Readability::intact;
  return out;
}

void put_runs(Bytes& out, const std::vector<OffsetRun>& runs, Offset base) {
  ByteWriter to(out);
  to.varint(runs.size());
  for (const OffsetRun& run : runs) {
    NARAD_ASSERT(base <= run.begin);
    NARAD_ASSERT(run.begin < run.end);
    to.varint(run.begin.minus(base));
    to.varint(run.count());
    base = run.end;
  }
}

// The runs that are the whole rest of `in`; nothing if they are anything else than put_runs makes.
// `touching` says whether the first one may begin at `base`.
std::optional<std::vector<OffsetRun>> take_runs(ByteReader& in, Offset base, bool touching) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.remaining() / 2) return std::nullopt;
  std::vector<OffsetRun> runs;
  runs.reserve(count);
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::uint64_t gap = in.varint();
    const std::uint64_t length = in.varint();
    if (!in.ok() || length == 0 || (gap == 0 && !touching)) return std::nullopt;
    if (gap > kOffsetEndMax - base.value()) return std::nullopt;
    const Offset begin = base.plus(gap);
    if (length > kOffsetEndMax - begin.value()) return std::nullopt;
    runs.push_back({begin, begin.plus(length)});
    base = runs.back().end;
    touching = false;
  }
  if (in.remaining() != 0) return std::nullopt;
  return runs;
}

// Checksum of an entry, its checksum field counted as zero.
std::uint64_t entry_checksum(ByteView entry, std::uint64_t identity) {
  std::array<std::byte, kJournalEntryHeaderBytes> header;
  std::copy_n(entry.begin(), header.size(), header.begin());
  store_le(header.data() + kEntryChecksumAt, std::uint64_t{0});
  return xxh3(entry.subspan(header.size()), xxh3(header, identity));
}

}  // namespace

Bytes encode_snapshot(SnapshotId id, const ConsumerPositions& positions) {
  NARAD_ASSERT(positions.acked_ahead.empty() ||
               positions.acked_ahead.front().begin > positions.frontier);
  Bytes out;
  put_header(out, kSnapshotMagic, id);
  ByteWriter(out).u64(positions.frontier.value());
  put_runs(out, positions.acked_ahead, positions.frontier);
  const std::uint64_t checksum = xxh3(out, id.identity);
  ByteWriter(out).u64(checksum);
  return out;
}

Bytes encode_journal_header(std::uint64_t identity) {
  Bytes out;
  put_header(out, kJournalMagic, SnapshotId{identity, 0});
  return out;
}

Bytes encode_journal_entry(SnapshotId id, const std::vector<OffsetRun>& runs) {
  NARAD_ASSERT(!runs.empty());
  Bytes out(kJournalEntryHeaderBytes);
  put_runs(out, runs, Offset(0));
  store_le(out.data(), static_cast<std::uint32_t>(out.size() - kJournalEntryHeaderBytes));
  store_le(out.data() + 16, id.sequence);
  store_le(out.data() + kEntryChecksumAt, entry_checksum(out, id.identity));
  return out;
}

DecodedSnapshot decode_snapshot(ByteView file) {
  DecodedSnapshot out;
  Header header = take_header(file, kSnapshotMagic);
  out.problem = std::move(header.problem);
  out.version = header.version;
  out.id = header.id;
  if (header.readability != Readability::intact) {
    out.readability = header.readability;
    return out;
  }
  out.problem = "has a content that does not match its checksum";
  constexpr std::size_t kTail = 8;
  if (file.size() < kConsumerHeaderBytes + 8 + 1 + kTail) return out;
  const ByteView content = file.first(file.size() - kTail);
  if (load_le<std::uint64_t>(content.data() + content.size()) !=
      xxh3(content, header.id.identity)) {
    return out;
  }
  ByteReader in(content.subspan(kConsumerHeaderBytes));
  const Offset frontier(in.u64());
  if (frontier.value() > kOffsetEndMax) return out;
  auto runs = take_runs(in, frontier, false);
  if (!runs) return out;
  out.readability = Readability::intact;
  out.problem.clear();
  out.positions = {frontier, std::move(*runs)};
  return out;
}

namespace {

// The size of the entry at the start of `bytes` if its checksum is right.
std::optional<std::size_t> verified_entry(ByteView bytes, std::uint64_t identity) {
  if (bytes.size() < kJournalEntryHeaderBytes) return std::nullopt;
  ByteReader fields(bytes);
  const std::uint32_t length = fields.u32();
  if (fields.u32() != 0 || length > bytes.size() - kJournalEntryHeaderBytes) return std::nullopt;
  const ByteView entry = bytes.first(kJournalEntryHeaderBytes + length);
  if (fields.u64() != entry_checksum(entry, identity)) return std::nullopt;
  return entry.size();
}

}  // namespace

DecodedJournal decode_journal(ByteView file) {
  DecodedJournal out;
  Header header = take_header(file, kJournalMagic);
  out.readability = header.readability;
  out.problem = std::move(header.problem);
  out.version = header.version;
  out.identity = header.id.identity;
  if (out.readability != Readability::intact) return out;
  std::uint64_t at = kConsumerHeaderBytes;
  for (; at < file.size(); at = out.end) {
    out.end = at;
    const ByteView rest = file.subspan(at);
    out.problem = cat("has an entry at byte ", at, " that does not verify");
    const auto size = verified_entry(rest, out.identity);
    if (!size) return out;
    const auto sequence = load_le<std::uint64_t>(rest.data() + 16);
    ByteReader in(rest.first(*size).subspan(kJournalEntryHeaderBytes));
    auto runs = take_runs(in, Offset(0), true);
    if (!runs || runs->empty()) return out;
    out.entries.push_back({at, sequence, std::move(*runs)});
    out.end = at + *size;
    out.problem.clear();
  }
  out.end = at;
  return out;
}

std::optional<std::uint64_t> find_journal_entry(ByteView file, std::uint64_t from,
                                                std::uint64_t identity) {
  for (std::uint64_t at = from; at + kJournalEntryHeaderBytes < file.size(); ++at) {
    if (verified_entry(file.subspan(at), identity)) return at;
  }
  return std::nullopt;
}

}  // namespace narad::delivery
