// The ingress WAL: what a start decides about it (internal/ingress), and where every stretch lies
// that does not verify.
#include <algorithm>

#include "internal/fsck/parts.h"
#include "internal/ingress/wal.h"
#include "pkg/base/text.h"
#include "pkg/base/two_slot.h"

namespace narad::fsck {
namespace {

using ingress::Frame;
using ingress::HeaderState;

constexpr std::uint64_t kSegmentFileBytesMax = std::uint64_t{1} << 30;
constexpr std::size_t kFrameBytesMin = ingress::kFrameHeaderBytes + ingress::kFramePayloadBytesMin;
constexpr const char* kLaterRelease = "check it with the release that wrote it";

struct Found {
  std::uint64_t at = 0;
  Frame frame;
};

// The next intact frame at or behind `from` whose sequence is possible: not below `expected`, and
// no further above it than the bytes between could hold.
std::optional<Found> next_frame(ByteView bytes, std::uint64_t from, OriginId origin,
                                Sequence expected) {
  for (std::uint64_t at = from; at + kFrameBytesMin <= bytes.size(); ++at) {
    const auto sequence = load_le<std::uint64_t>(bytes.data() + at + 8);
    const std::uint64_t between = (at - from) / kFrameBytesMin;
    if (sequence < expected.value() || sequence - expected.value() > between) continue;
    if (auto frame = ingress::decode_frame(bytes.subspan(at), origin)) {
      return Found{at, std::move(*frame)};
    }
  }
  return std::nullopt;
}

class WalCheck {
 public:
  WalCheck(Context& in, const std::string& directory) : in_(in), directory_(directory) {}

  void run() {
    const auto names = names_in(in_, directory_);
    if (!names) return;
    for (const std::string& name : *names) {
      if (const auto first = ingress::parse_segment_name(name)) {
        segments_.push_back({*first, join_path(directory_, name)});
      } else if (name != "checkpoint") {
        report_stray_name(in_, directory_, name);
      }
    }
    read_checkpoint();
    judge();
    for (std::size_t n = 0; n < segments_.size(); ++n) check_segment(n);
    if (refused_) explain();
  }

 private:
  struct Segment {
    Sequence first;
    std::string path;
  };

  void read_checkpoint() {
    const std::string path = join_path(directory_, "checkpoint");
    const SmallFile file = small_file(in_, path, 1u << 20);
    if (file.missing && !segments_.empty() && segments_.front().first > Sequence(1)) {
      in_.report.problem(path, "is missing").remedy =
          "none needed: all records are handed over again, and those known are recognised";
    }
    if (!file.bytes) return;
    const Bytes& bytes = *file.bytes;
    if (two_slot::unknown_version(bytes, ingress::kCheckpointMagic)) {
      in_.report.unchecked(path, "was written by a newer release").remedy = kLaterRelease;
      return;
    }
    const auto slot = two_slot::decode(bytes, ingress::kCheckpointMagic, ingress::kCheckpointSeed);
    const auto value = slot ? ingress::decode_checkpoint(slot->value) : std::nullopt;
    if (!value) {
      in_.report.problem(path, "has no slot that verifies").remedy =
          "none needed: all records are handed over again, and those known are recognised";
      return;
    }
    checkpoint_ = value;
  }

  // What a start would do.
  void judge() {
    auto inspection = ingress::inspect_wal(in_.fs, directory_);
    if (!inspection) {
      const Error& error = inspection.error();
      if (error.code() == Errc::data_loss) {
        refused_ = true;  // explained once the damage is known
      } else if (error.code() == Errc::invalid_argument) {
        in_.report.unchecked(directory_, error.text()).remedy = kLaterRelease;
      } else {
        in_.report.unchecked(directory_, error);
      }
      return;
    }
    for (const std::string& remark : inspection.value().remarks) {
      const bool said = remark.find("is not part of the WAL") != std::string::npos ||
                        remark.find("/checkpoint is ") != std::string::npos;
      if (!said) in_.report.note(directory_, remark);
    }
    if (const auto& cut = inspection.value().cut) {
      cut_at_ = cut->at;
      in_.report
          .note(cut->path,
                cat("ends with writes that never completed (the ordinary picture after a power "
                    "cut): nothing from record ",
                    cut->first_lost, " on was acknowledged, and the next start cuts it off"))
          .bytes = Span{cut->at, cut->at + cut->bytes};
    }
  }

  bool handed_over(Sequence sequence) const {
    return checkpoint_ && sequence < checkpoint_->lowest;
  }
  void count(Sequence sequence) {
    ++in_.report.counters.wal_records;
    if (!handed_over(sequence)) ++in_.report.counters.wal_records_pending;
  }

  void check_segment(std::size_t n) {
    const Segment& segment = segments_[n];
    ++in_.report.counters.wal_segments;
    auto read = read_file(in_.fs, segment.path, kSegmentFileBytesMax);
    if (!read) {
      in_.report.unchecked(segment.path, read.error());
      expected_.reset();
      return;
    }
    const ByteView bytes = read.value();
    const ingress::HeaderReading header = ingress::decode_header(bytes);
    if (header.state == HeaderState::unknown_version) {
      in_.report.unchecked(segment.path, "was written by a newer release").remedy = kLaterRelease;
      expected_.reset();
      return;
    }
    // Space that was reserved, or a segment that was begun, and nothing written.
    const bool blank =
        std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
    if (blank && n + 1 == segments_.size()) {
      in_.report.note(segment.path, "holds nothing yet");
      return;
    }
    check_beginning(segment);
    OriginId origin = header.header.origin;
    if (header.state == HeaderState::damaged) {
      origin = origin_before_;
      Finding& f = in_.report.problem(segment.path, "has a header that does not verify");
      f.bytes = Span{0, ingress::kSegmentHeaderBytes};
      if (origin != OriginId(0)) {
        f.what += "; its records are looked for under the origin of the segment before";
      }
    } else if (header.header.first != segment.first) {
      in_.report
          .problem(segment.path,
                   cat("says in its header that it begins with record ", header.header.first))
          .bytes = Span{0, ingress::kSegmentHeaderBytes};
    }
    origin_before_ = origin;
    walk(n, bytes, origin);
  }

  // Against the end of the segment before.
  void check_beginning(const Segment& segment) {
    if (expected_ && segment.first > *expected_) {
      lost(segment.path, std::nullopt, {expected_->value(), segment.first.value()},
           "begins later than the segment before it ends");
    } else if (!expected_ && checkpoint_ && segment.path == segments_.front().path &&
               segment.first > checkpoint_->lowest) {
      lost(segment.path, std::nullopt, {checkpoint_->lowest.value(), segment.first.value()},
           "is the first segment, but begins later than the checkpoint");
    }
  }

  // Frames from the start on; where one does not verify, the next that does.
  void walk(std::size_t n, ByteView bytes, OriginId origin) {
    const Segment& segment = segments_[n];
    const bool last = n + 1 == segments_.size();
    Sequence expected = segment.first;
    std::uint64_t at = ingress::kSegmentHeaderBytes;
    while (at < bytes.size()) {
      const auto frame = ingress::decode_frame(bytes.subspan(at), origin);
      if (frame && frame->sequence == expected) {
        count(expected);
        expected = expected.next();
        at += frame->bytes;
        continue;
      }
      if (last && cut_at_ && at >= *cut_at_) break;  // said already
      const auto next = next_frame(bytes, at, origin, expected);
      if (!next) {
        tail(n, bytes, at, expected);
        break;
      }
      lost(segment.path, Span{at, next->at}, {expected.value(), next->frame.sequence.value()},
           "has bytes that do not verify");
      expected = next->frame.sequence;
      at = next->at;
    }
    expected_ = expected;
  }

  // From `at` on there is no frame any more.
  void tail(std::size_t n, ByteView bytes, std::uint64_t at, Sequence expected) {
    const Segment& segment = segments_[n];
    std::uint64_t end = bytes.size();
    while (end > at && bytes[static_cast<std::size_t>(end - 1)] == std::byte{0}) --end;
    if (n + 1 < segments_.size()) {
      const Sequence next = segments_[n + 1].first;
      if (next > expected) {
        lost(segment.path, Span{at, std::max(end, at + 1)}, {expected.value(), next.value()},
             "has no intact record behind this point, though the next segment begins later");
      } else if (end > at) {
        in_.report.note(segment.path, "has stray bytes at its end; no record is missing there")
            .bytes = Span{at, end};
      }
      expected_.reset();
      return;
    }
    if (end == at) return;  // reserved space
    Finding& f = in_.report.problem(
        segment.path, cat("has bytes that do not verify, from record ", expected, " on"));
    f.bytes = Span{at, end};
  }

  void lost(const std::string& path, std::optional<Span> bytes, Span sequences, std::string what) {
    Finding& f = in_.report.problem(path, std::move(what));
    f.bytes = bytes;
    f.sequences = sequences;
    if (handed_over(Sequence(sequences.to - 1))) {
      f.remedy = "none needed for these records: they were handed over to their partitions";
      return;
    }
    const std::uint64_t from =
        checkpoint_ ? std::max(sequences.from, checkpoint_->lowest.value()) : sequences.from;
    lost_pending_ += sequences.to - from;
  }

  void explain() {
    const Counters& counters = in_.report.counters;
    Finding& f = in_.report.problem(
        directory_,
        cat("acknowledged records are damaged or missing, so a node does not start on this WAL",
            lost_pending_ > 0
                ? cat("; at least ", lost_pending_, " of them had not been handed over")
                : std::string()));
    f.remedy =
        cat("copy the directory to a safe place first. If a backup has the damaged files, put them "
            "back. Otherwise move the directory aside (mv ",
            directory_, " ", directory_,
            ".damaged) and start the node, which begins a new WAL; keep the old one, because ",
            counters.wal_records_pending, " intact records in it may not be in any partition yet");
  }

  Context& in_;
  const std::string directory_;
  std::vector<Segment> segments_;  // ascending
  std::optional<ingress::Checkpoint> checkpoint_;
  bool refused_ = false;
  std::optional<std::uint64_t> cut_at_;  // of the last segment: said already, and harmless
  std::optional<Sequence> expected_;     // where the segment before ended, if known
  OriginId origin_before_{0};
  std::uint64_t lost_pending_ = 0;
};

}  // namespace

void check_wal_files(Context& in, const std::string& directory) { WalCheck(in, directory).run(); }

}  // namespace narad::fsck
