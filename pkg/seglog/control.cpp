#include "pkg/seglog/control.h"

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad::seglog {
namespace {
constexpr std::size_t kFixedBytes = 8 + 4;
constexpr std::size_t kEntryBytes = 8 + 8 + 8;
}  // namespace

void append_control_frame(Bytes& out, const Control& control) {
  NARAD_ASSERT(control.origins.size() <= kOriginsMax);
  const std::size_t start = out.size();
  out.resize(start + kHeaderBytes);
  ByteWriter w(out);
  w.u64(control.log.value());
  w.u32(static_cast<std::uint32_t>(control.origins.size()));
  for (std::size_t i = 0; i < control.origins.size(); ++i) {
    const OriginEntry& entry = control.origins[i];
    NARAD_ASSERT(i == 0 || control.origins[i - 1].origin < entry.origin);
    w.u64(entry.origin.value());
    w.u64(entry.last_sequence.value());
    w.u64(static_cast<std::uint64_t>(entry.last_commit.value()));
  }
  FrameHeader header;
  header.flags = static_cast<std::uint16_t>(kFlagControl | (control.sync_head ? kFlagSyncHead : 0));
  header.base = control.base;
  header.commit_time = control.commit_time;
  const ByteView payload = ByteView(out).subspan(start + kHeaderBytes);
  header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_checksum = xxh3(payload, control.log.value());
  encode_header(header, control.log, std::span(out).subspan(start, kHeaderBytes));
}

ControlCheck decode_control_frame(ByteView bytes) {
  ControlCheck check;
  if (bytes.size() < kHeaderBytes + kFixedBytes) return check;
  const LogId log{load_le<std::uint64_t>(bytes.data() + kHeaderBytes)};
  const HeaderCheck header = decode_header(bytes, log);
  if (header.status != HeaderStatus::good) {
    check.status = header.status;
    return check;
  }
  if (!header.header.is_control() || header.header.frame_bytes() > bytes.size()) return check;
  const ByteView payload = bytes.subspan(kHeaderBytes, header.header.stored_bytes);
  if (!payload_verifies(header.header, payload, log)) return check;
  auto origins = decode_control_payload(payload, log);
  if (!origins) return check;
  check.control.log = log;
  check.control.base = header.header.base;
  check.control.commit_time = header.header.commit_time;
  check.control.sync_head = header.header.is_sync_head();
  check.control.origins = std::move(origins.value());
  check.frame_bytes = header.header.frame_bytes();
  check.status = HeaderStatus::good;
  return check;
}

Result<std::vector<OriginEntry>> decode_control_payload(ByteView raw, LogId log) {
  const Error bad(Errc::data_loss, "a verified control frame cannot be read");
  ByteReader in(raw);
  if (LogId(in.u64()) != log) return bad;
  const std::uint32_t count = in.u32();
  if (!in.ok() || count > kOriginsMax || in.remaining() != count * kEntryBytes) return bad;
  std::vector<OriginEntry> entries(count);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].origin = OriginId(in.u64());
    entries[i].last_sequence = Sequence(in.u64());
    entries[i].last_commit = UnixMillis(static_cast<std::int64_t>(in.u64()));
    if (i > 0 && entries[i].origin <= entries[i - 1].origin) return bad;
  }
  return entries;
}

}  // namespace narad::seglog
