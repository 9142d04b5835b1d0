// Arbitrary bytes as a segment: every reader of frames, records and control frames must end,
// account for every byte, and never trust what does not verify. So that the interesting parts are
// reached, the fuzzer's bytes are also taken as payloads of frames that do verify.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pkg/base/assert.h"
#include "pkg/seglog/control.h"
#include "pkg/seglog/recovery.h"
#include "pkg/seglog/scan.h"

namespace narad::seglog {
namespace {

constexpr LogId kLog{0x0123456789abcdef};

// So that bytes which are not there are noticed.
void read(ByteView bytes) {
  static volatile std::uint8_t sink;
  for (const std::byte b : bytes) sink = sink ^ static_cast<std::uint8_t>(b);
}

void walk_records(const FrameHeader& header, ByteView stored) {
  Bytes scratch;
  auto raw = raw_payload(header, stored, scratch);
  if (!raw) return;
  RecordReader reader(raw.value());
  std::size_t n = 0;
  while (true) {
    auto record = reader.next();
    if (!record || !record.value()) break;
    NARAD_ASSERT(++n <= raw.value().size());
    read(as_bytes(record.value()->key));
    read(as_bytes(record.value()->payload));
  }
}

// What is accepted is what would be written.
void check_control_payload(ByteView payload) {
  ByteReader in(payload);
  const LogId log(in.u64());
  auto origins = decode_control_payload(payload, log);
  if (!origins) return;
  Control control;
  control.log = log;
  control.origins = std::move(origins).value();
  Bytes again;
  append_control_frame(again, control);
  const ByteView written = ByteView(again).subspan(kHeaderBytes);
  NARAD_ASSERT(std::equal(written.begin(), written.end(), payload.begin(), payload.end()));
}

void scan(ByteView bytes, LogId log, Offset end, Offset persisted, Offset verify_from = {}) {
  MemorySource source(bytes);
  ScanOptions options;
  options.log = log;
  options.bytes = bytes.size();
  options.end = end;
  options.verify_from = verify_from;
  SegmentScanner scanner(source, options);
  Recovery recovery(Offset(0), persisted, OriginTable(), UnixMillis(0));
  std::uint64_t at = 0;
  Offset expected{0};
  while (true) {
    auto more = scanner.next();
    if (!more || !more.value()) break;
    const ScanItem& item = scanner.item();
    NARAD_ASSERT(item.at == at);
    NARAD_ASSERT(item.from == expected);
    NARAD_ASSERT(item.from <= item.to);
    at += item.bytes;
    NARAD_ASSERT(at <= bytes.size());
    expected = item.to;
    if (item.kind == ScanItem::Kind::frame) walk_records(item.header, item.stored);
    if (!recovery.feed(item, log)) return;
  }
  const RecoveryPlan plan = recovery.finish(bytes.size());
  NARAD_ASSERT(plan.hwm >= persisted);
  NARAD_ASSERT(plan.keep_bytes <= bytes.size());
  for (const LostRange& hole : plan.holes) {
    NARAD_ASSERT(hole.from < hole.to);
    NARAD_ASSERT(hole.to <= plan.hwm);
  }
}

// The bytes as the payload of a frame with valid checksums.
void scan_sealed(ByteView bytes) {
  if (bytes.size() < 4) return;
  const auto codec = static_cast<std::uint8_t>(bytes[0]) & 1;
  const auto count = static_cast<std::uint8_t>(bytes[1]);
  const auto damage_at = static_cast<std::uint8_t>(bytes[2]);
  const ByteView payload = bytes.subspan(3);
  FrameHeader header;
  header.codec = static_cast<Codec>(codec);
  header.records = std::uint32_t{1} + count % 8;
  header.stored_bytes = static_cast<std::uint32_t>(payload.size());
  header.raw_bytes = codec == 1 ? 4096 : header.stored_bytes;
  if (header.records > header.raw_bytes / kRecordBytesMin) return;
  walk_records(header, payload);
  check_control_payload(payload);
  Bytes segment;
  Control control;
  control.log = kLog;
  control.origins.push_back({OriginId(1), Sequence(2), UnixMillis(3)});
  append_control_frame(segment, control);
  const auto head = static_cast<std::ptrdiff_t>(damage_at % (segment.size() + 1));
  (void)decode_control_frame(Bytes(segment.begin(), segment.begin() + head));
  for (std::uint64_t base = 0; base < 3; ++base) {
    FrameWriter writer(segment, kLog, {});
    writer.begin();
    writer.add({"key", as_chars(payload)});
    FrameHeader h;
    h.base = Offset(base);
    h.flags = base == 2 ? kFlagSyncHead : 0;
    writer.end(h);
  }
  const Bytes cut(segment.begin(), segment.end() - damage_at % 100);
  scan(cut, kLog, kNoOffset, Offset(0), kNoOffset);  // headers only
  segment[damage_at % segment.size()] ^= std::byte{0x55};
  scan(segment, kLog, kNoOffset, Offset(count % 4));
  scan(segment, kLog, Offset(3), Offset(count % 4));
}

}  // namespace
}  // namespace narad::seglog

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::seglog;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  (void)decode_header(bytes, kLog);
  const ControlCheck control = decode_control_frame(bytes);
  scan(bytes, control.status == HeaderStatus::good ? control.control.log : kLog, kNoOffset,
       Offset(0));
  scan(bytes, kLog, Offset(10), Offset(5));
  scan_sealed(bytes);
  return 0;
}
