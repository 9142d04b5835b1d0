#pragma once
// What the destination of a move asks of the owner, and what both say of it (moves.md, "Transfer
// protocol"; calls: docs/internals/peer-protocol.md). JSON bodies; segment bytes travel raw. Pure.
//
// Decoding is bounded before anything is kept, overlooks fields it does not know (a newer release
// may say more) and answers invalid_argument, naming the field, for everything else. Fields that an
// older release does not send are optional here, and the comment says what their absence means.
// Golden file: testdata/wire/move_messages.ndjson.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "internal/model/names.h"
#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad::wire {

inline constexpr std::size_t kMoveMessageBytesMax = 64u << 20;
inline constexpr std::uint64_t kListedSegmentsMax = 1 << 20;
inline constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kSidecarsMax = 1024;
inline constexpr std::uint64_t kSidecarBytesMax = 4096;
inline constexpr std::uint64_t kAckedRunsMax = 1 << 16;
inline constexpr std::uint64_t kDigestsMax = 1 << 20;
inline constexpr std::uint64_t kMoveReportsMax = 1 << 14;
inline constexpr std::uint64_t kChunkBytesMax = 8u << 20;
// Offsets, indexes and counts; so that the next one of anything read is a number, too.
inline constexpr std::uint64_t kNumberMax = (std::uint64_t{1} << 63) - 2;
// Spans in milliseconds, which are nanoseconds without overflow; 270 years.
inline constexpr std::uint64_t kSpanMsMax = std::uint64_t{1} << 43;
// Of a wall clock, before or after 1970, in milliseconds.
inline constexpr std::int64_t kWallMsMax = std::int64_t{1} << 53;

// Which move of which partition. Every call of the transfer names it.
struct MoveRef {
  TopicPartition partition;
  Incarnation incarnation{0};
  RaftIndex move_id{0};
  friend bool operator==(const MoveRef&, const MoveRef&) = default;
};

// A child link of a fan-out parent.
struct ChildLink {
  std::string child;
  std::string epoch;  // 16 hex digits
  friend bool operator==(const ChildLink&, const ChildLink&) = default;
};

// What a move brought, stored with the copy and in the history.
struct Receipt {
  std::uint64_t records = 0;
  Offset first{0};  // the oldest record
  Offset end{0};    // one past the last
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;     // over the digests of all blocks, in order
  std::uint64_t frozen_ms = 0;  // from the owner's answer to the flip
  std::uint32_t passes = 0;
  std::uint32_t retries = 0;
  std::uint64_t damaged_blocks = 0;  // that read otherwise at the source than they were written
  std::uint64_t copy_ms = 0, drain_ms = 0, verify_ms = 0, install_ms = 0, flip_ms = 0;
  friend bool operator==(const Receipt&, const Receipt&) = default;
};

// `move.marker` of an installed copy (MRK, G22). As a file it is followed by a checksum line:
// encode_marker_file().
struct MoveMarker {
  RaftIndex move_id{0};
  std::uint64_t epoch = 0;  // freeze epoch of the flip; 0 of a force-promote
  std::string source;       // node id
  std::string self;         // node id of the destination
  Incarnation incarnation{0};
  Offset promoted_hwm{0};
  bool force_promoted = false;
  UnixMillis installed_at{0};
  std::optional<UnixMillis> durable_at;  // absent: an older destination (DUR-5)
  std::vector<ChildLink> links;
  Receipt receipt;
  friend bool operator==(const MoveMarker&, const MoveMarker&) = default;
};
inline constexpr const char* kMoveMarkerFileName = "move.marker";
inline constexpr std::size_t kMarkerFileBytesMax = 1u << 20;
std::string encode_marker_file(const MoveMarker& marker);
// Nothing if it is unreadable in any way: then the copy counts as having none (G22).
std::optional<MoveMarker> decode_marker_file(std::string_view file);

struct ListedSegment {
  Offset base{0};
  std::uint64_t bytes = 0;  // committed: whole frames below the HWM
  bool sealed = false;
  std::optional<UnixMillis> mtime;  // absent: the copy keeps its write time (AGE-6)
  friend bool operator==(const ListedSegment&, const ListedSegment&) = default;
};

// A fan-out cursor file of a parent, verified by the owner before it is sent (CUR-4).
struct Sidecar {
  std::string child;
  std::string bytes;  // the file
  friend bool operator==(const Sidecar&, const Sidecar&) = default;
};

struct AckedRun {
  Offset begin{0};
  Offset end{0};
  friend bool operator==(const AckedRun&, const AckedRun&) = default;
};

// What the owner has, read in the order of the fields, so that nothing is ahead of what is listed
// after it (CON-3).
struct Listing {
  RaftIndex move_id{0};
  Incarnation incarnation{0};
  LogId log{0};                         // of the log; 0: an older owner, or nothing was ever there
  std::optional<UnixMillis> listed_at;  // by the owner's clock
  Offset frontier{0};                   // the lowest offset that is not settled
  // Ascending, apart, above the frontier. Of more than kAckedRunsMax the first are sent; what the
  // others settled is delivered again.
  std::vector<AckedRun> acked_ahead;
  std::vector<ChildLink> links;
  std::vector<Sidecar> cursors;
  Offset hwm{0};
  std::vector<ListedSegment> segments;         // ascending base; the last one is the active one
  std::optional<MoveMarker> marker;            // of the owner's own copy
  std::optional<std::uint64_t> marker_age_ms;  // by the owner's clock (G23)
  std::uint64_t bytes_per_second = 0;          // written lately
  friend bool operator==(const Listing&, const Listing&) = default;
};

// Names one freeze: an epoch of the row, and a number that only the process that armed it knows.
struct FreezeToken {
  std::uint64_t epoch = 0;
  std::string nonce;  // 32 hex digits
  friend bool operator==(const FreezeToken&, const FreezeToken&) = default;
};

// Without a token: arm a freeze. With one: extend that freeze. With expect_hwm too: the fence.
struct FreezeRequest {
  MoveRef move;
  std::optional<FreezeToken> token;
  std::optional<Offset> expect_hwm;
  friend bool operator==(const FreezeRequest&, const FreezeRequest&) = default;
};
struct FreezeAnswer {
  std::optional<FreezeToken> token;  // absent: an older owner, which has no fence (FEN-7)
  std::uint64_t ttl_ms = 0;
  std::optional<Listing> listing;  // when it was armed: under the produce lock
  friend bool operator==(const FreezeAnswer&, const FreezeAnswer&) = default;
};

// One digest per block of the committed bytes, as they were written; nothing where that is not
// known. The last block may be unfinished.
struct SegmentDigests {
  std::uint64_t segment_bytes = 0;
  std::vector<std::optional<std::uint64_t>> blocks;
  friend bool operator==(const SegmentDigests&, const SegmentDigests&) = default;
};

// What a destination says of a move it works on (`narad cluster moves --detail`).
struct MoveReport {
  MoveRef move;
  std::string source;
  std::string phase;  // queued, copying, freezing, draining, fencing, installing, flipping, …
  std::uint64_t bytes_done = 0;   // staged, of the newest listing
  std::uint64_t bytes_total = 0;  // of the newest listing
  std::uint64_t bytes_per_second = 0;
  std::uint64_t write_bytes_per_second = 0;  // into the partition, as the owner says
  std::uint64_t moved_ms_ago = 0;            // since a byte last arrived
  std::uint32_t passes = 0;
  std::uint32_t attempts = 0;
  std::uint64_t frozen_ms = 0;  // of the freeze in force, or the last one
  std::string blocked;          // copy_unverifiable, source_dead_copy_behind, source_went_back, …
  std::string last_error;
  friend bool operator==(const MoveReport&, const MoveReport&) = default;
};
struct MoveReports {
  std::vector<MoveReport> moves;
  friend bool operator==(const MoveReports&, const MoveReports&) = default;
};

// How long the leader has not heard of a member, on its own clock since its election (SRC-3).
struct SilenceAnswer {
  std::uint64_t silent_ms = 0;
  std::uint64_t term = 0;
  friend bool operator==(const SilenceAnswer&, const SilenceAnswer&) = default;
};

std::string encode(const Listing& m);
std::string encode(const FreezeRequest& m);
std::string encode(const FreezeAnswer& m);
std::string encode(const SegmentDigests& m);
std::string encode(const MoveReports& m);
std::string encode(const SilenceAnswer& m);
std::string encode(const Receipt& m);  // at most metastore::kReceiptBytesMax

Result<Listing> decode_listing(std::string_view body);
Result<FreezeRequest> decode_freeze_request(std::string_view body);
Result<FreezeAnswer> decode_freeze_answer(std::string_view body);
Result<SegmentDigests> decode_segment_digests(std::string_view body);
Result<MoveReports> decode_move_reports(std::string_view body);
Result<SilenceAnswer> decode_silence_answer(std::string_view body);

}  // namespace narad::wire
