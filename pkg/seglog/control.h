#pragma once
// The control frame: the first frame of every segment. It carries the log id, under which it and
// every other frame of the log verifies, and the origin table as of that point. Pure.
//
// Payload: {u64 log id, u32 n, n x {u64 origin, u64 last sequence, i64 last commit ms}} by
// ascending origin; codec none; record count 0; base = the next offset.
#include <vector>

#include "pkg/seglog/frame.h"

namespace narad::seglog {

struct OriginEntry {
  OriginId origin{0};
  Sequence last_sequence{0};
  UnixMillis last_commit{0};
  friend bool operator==(const OriginEntry&, const OriginEntry&) = default;
};

struct Control {
  LogId log{0};
  Offset base{0};
  UnixMillis commit_time{0};  // the newest commit time before it
  bool sync_head = false;
  std::vector<OriginEntry> origins;  // ascending origin, none twice
  friend bool operator==(const Control&, const Control&) = default;
};

// Appends the whole frame. REQUIRES: origins ascending, at most kOriginsMax.
void append_control_frame(Bytes& out, const Control& control);

struct ControlCheck {
  HeaderStatus status = HeaderStatus::damaged;
  Control control;                // meaningful if good
  std::uint64_t frame_bytes = 0;  // likewise
};
// `bytes` starts at a frame; it verifies under the log id that it carries.
ControlCheck decode_control_frame(ByteView bytes);
// The payload of a frame that verified already. data_loss if it makes no sense.
Result<std::vector<OriginEntry>> decode_control_payload(ByteView raw, LogId log);

}  // namespace narad::seglog
