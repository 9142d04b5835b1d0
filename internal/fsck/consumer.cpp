// Consumer state: `consumer.offset` and `consumer.acks` of a partition.
#include <algorithm>

#include "internal/delivery/consumer_state.h"
#include "internal/fsck/parts.h"
#include "pkg/base/text.h"

namespace narad::fsck {
namespace {

using delivery::DecodedJournal;
using delivery::DecodedSnapshot;
using delivery::OffsetRun;
using delivery::Readability;

constexpr const char* kDeliveredAgain =
    "none needed: the node delivers again what these acks covered";

class ConsumerCheck {
 public:
  ConsumerCheck(Context& in, const std::string& directory, std::optional<Incarnation> incarnation,
                Offset hwm)
      : in_(in),
        snapshot_path_(join_path(directory, delivery::kSnapshotFileName)),
        journal_path_(join_path(directory, delivery::kJournalFileName)),
        incarnation_(incarnation),
        hwm_(hwm) {}

  void run() {
    check_snapshot();
    check_journal();
  }

 private:
  void check_snapshot() {
    const SmallFile file = small_file(in_, snapshot_path_, delivery::kConsumerFileBytesMax);
    snapshot_unread_ = !file.bytes && !file.missing;
    if (!file.bytes) return;
    const DecodedSnapshot snapshot = delivery::decode_snapshot(*file.bytes);
    snapshot_unread_ = snapshot.readability == Readability::unknown_version;
    if (!usable(snapshot_path_, snapshot.readability, snapshot.problem, snapshot.id.identity)) {
      return;
    }
    follows_ = snapshot.id.sequence;
    if (snapshot.positions.frontier > hwm_) {
      Finding& f = in_.report.problem(
          snapshot_path_, cat("says that everything below offset ", snapshot.positions.frontier,
                              " was acked, but the high watermark is ", hwm_));
      f.offsets = Span{hwm_.value(), snapshot.positions.frontier.value()};
      f.remedy =
          "the records in between were committed and are gone: restore them from a backup, or go "
          "on: the node counts them as lost";
    }
    check_runs(snapshot_path_, snapshot.positions.acked_ahead);
  }

  void check_journal() {
    const auto bytes = small_file(in_, journal_path_, delivery::kConsumerFileBytesMax).bytes;
    if (!bytes) return;
    const DecodedJournal journal = delivery::decode_journal(*bytes);
    if (!usable(journal_path_, journal.readability, journal.problem, journal.identity)) return;
    std::uint64_t foreign = 0;
    for (const delivery::JournalEntry& entry : journal.entries) {
      if (entry.sequence == follows_) {
        check_runs(journal_path_, entry.runs);
      } else if (!follows_ || entry.sequence > *follows_) {
        ++foreign;
      }
    }
    if (foreign > 0 && !snapshot_unread_) {
      Finding& f = in_.report.problem(
          journal_path_, cat("holds ", foreign, foreign == 1 ? " entry" : " entries",
                             " of a snapshot that is missing or damaged; they do not count"));
      f.remedy = kDeliveredAgain;
    }
    if (journal.problem.empty()) return;
    const Span rest{journal.end, bytes->size()};
    if (delivery::find_journal_entry(*bytes, journal.end + 1, journal.identity)) {
      Finding& f =
          in_.report.problem(journal_path_, cat(journal.problem, ", and others follow it"));
      f.bytes = rest;
      f.remedy = kDeliveredAgain;
    } else {
      in_.report
          .note(journal_path_,
                "ends with an entry whose write never completed (the ordinary picture after a "
                "crash)")
          .bytes = rest;
    }
  }

  bool usable(const std::string& path, Readability readability, const std::string& problem,
              std::uint64_t identity) {
    if (readability == Readability::unknown_version) {
      Finding& f = in_.report.unchecked(path, problem);
      f.remedy = "check it with the release that wrote it";
      return false;
    }
    if (readability == Readability::damaged) {
      in_.report.problem(path, problem).remedy = kDeliveredAgain;
      return false;
    }
    if (incarnation_ && identity != incarnation_->value()) {
      in_.report
          .problem(path, cat("belongs to incarnation ", to_hex16(identity),
                             " of the topic, not to ", to_hex16(incarnation_->value())))
          .remedy = kDeliveredAgain;
      return false;
    }
    return true;
  }

  void check_runs(const std::string& path, const std::vector<OffsetRun>& runs) {
    for (const OffsetRun& run : runs) {
      if (run.end <= hwm_) continue;
      Finding& f = in_.report.problem(
          path, cat("holds acks of records that do not exist: the high watermark is ", hwm_));
      f.offsets = Span{std::max(run.begin, hwm_).value(), run.end.value()};
      f.remedy =
          "the records were committed and are gone: restore them from a backup, or go on: the node "
          "counts them as lost";
    }
  }

  Context& in_;
  const std::string snapshot_path_;
  const std::string journal_path_;
  const std::optional<Incarnation> incarnation_;
  const Offset hwm_;
  std::optional<std::uint64_t> follows_;  // sequence of the snapshot
  bool snapshot_unread_ = false;          // there is one, but nothing is known about it
};

}  // namespace

void check_consumer_state(Context& in, const std::string& directory,
                          std::optional<Incarnation> incarnation, Offset hwm) {
  ConsumerCheck(in, directory, incarnation, hwm).run();
}

}  // namespace narad::fsck
