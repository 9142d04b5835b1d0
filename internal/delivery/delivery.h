#pragma once
// Delivery: hands the records of one owned partition to consumers and remembers what they settled.
// An actor on the node's loop: every member function is called there. Opened by internal/node on
// the first consume or settle of a partition; closed before the partition's log is.
//
// Durability. An ack is answered once it is settled in memory; it is on disk within kJournalTick
// (a tick's acks share one write and one sync), or at the latest when close() or flush() returns. A
// crash forgets all leases, and delivers again what was leased, what was acked within the last
// tick, and nothing else; an ack whose journal sync had completed is never delivered again. While
// the disk refuses the journal, consume and ack go on, in memory, and what is acked meanwhile would
// be delivered again after a crash: counted, logged, and written anew as soon as the disk takes it.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "internal/delivery/consumer_files.h"
#include "internal/delivery/leases.h"
#include "internal/delivery/read_ahead.h"
#include "internal/delivery/record_source.h"
#include "internal/delivery/waiters.h"
#include "internal/model/receipt.h"
#include "pkg/async/event.h"
#include "pkg/async/task_group.h"

namespace narad::delivery {

inline constexpr Nanos kJournalTick = std::chrono::milliseconds(100);
// After a failed write, until the next attempt.
inline constexpr Nanos kJournalRetry = std::chrono::seconds(1);
// Between two snapshots, unless the journal has grown to kJournalBytesMax.
inline constexpr Nanos kSnapshotInterval = std::chrono::seconds(30);

struct DeliveryConfig {
  TopicPartition partition;
  std::string directory;       // of the partition; exists
  std::uint64_t identity = 0;  // what stored state belongs to: the topic's incarnation
  // Woken like this partition's own waiters: those who wait for any partition of the topic. May be
  // empty.
  std::shared_ptr<Waiters> topic_waiters;
  std::shared_ptr<ReadAheadBudget> read_ahead;  // empty: nothing is read ahead
};

struct ConsumeOptions {
  std::size_t records_max = 1;                 // at least 1
  std::uint64_t bytes_max = 16 * 1024 * 1024;  // of keys and payloads; one record may exceed it
  Nanos visibility = std::chrono::seconds(30);
  LeaseCaps caps;
  // Asked before each time that leases are taken; false: none are, and nothing is found. Empty:
  // yes.
  std::function<bool()> may_lease;
};

struct LeasedRecord {
  StoredRecord record;
  LeaseNonce nonce{0};
};

struct ConsumeResult {
  std::vector<LeasedRecord> records;                      // ascending; empty unless `leased`
  ReserveOutcome outcome = ReserveOutcome::all_reserved;  // why there are none
};

struct DeliveryStats {
  std::uint64_t in_flight = 0;    // live leases
  std::uint64_t acked_ahead = 0;  // parked acks
  Offset frontier{0};             // everything below it is settled
  std::uint64_t lag = 0;          // HWM - frontier
  std::uint64_t dropped = 0;      // deleted by retention, unsettled, and not passed yet
  // Since opening:
  std::uint64_t dropped_total = 0;  // deleted by retention before they were settled, and passed
  std::uint64_t delivered_total = 0;
  std::uint64_t delivered_bytes_total = 0;  // payloads
  std::uint64_t acked_total = 0;
  std::uint64_t extended_total = 0;
  std::uint64_t nacked_total = 0;
  std::uint64_t ack_rejected_total = 0;      // acked-ahead full
  std::uint64_t corrupt_skipped_total = 0;   // unreadable records passed (loss)
  std::uint64_t state_unreadable_total = 0;  // stored files that did not verify
  std::uint64_t write_failures_total = 0;    // journal or snapshot
  std::uint64_t unsaved_acks = 0;            // settled in memory, not on disk yet
};

class Delivery : public std::enable_shared_from_this<Delivery> {
 public:
  // Reads what is stored and clamps it to the HWM (see ConsumerFiles::open). Errors: unavailable
  // and what the disk said; nothing is left open then.
  static Task<Result<std::shared_ptr<Delivery>>> open(Env& env, DeliveryConfig config,
                                                      std::shared_ptr<RecordSource> source);
  // REQUIRES: close() has returned.
  ~Delivery();
  Delivery(const Delivery&) = delete;

  // Leases and reads up to `records_max` records, lowest offset first; does not wait for messages.
  // Unreadable records are passed and counted on the way. Errors: what the source said, after the
  // leases were given back (records that were read before it are answered instead); unavailable
  // when closing. The caller holds a reference until it answers. Cancelled, it gives back all
  // leases it took.
  Task<Result<ConsumeResult>> consume(ConsumeOptions options);
  // True as soon as consume() would find something, false when the deadline passes first or the
  // delivery closes.
  Task<bool> wait_for_messages(LeaseCaps caps, Deadline deadline);
  // True once no lease is out, false when the deadline passes first.
  Task<bool> wait_for_leases(Deadline deadline);
  // Those who wait for this partition; for callers that wait for several things.
  const std::shared_ptr<Waiters>& waiters() const { return waiters_; }
  // Lets all who wait look again (caps or routing changed).
  void wake_all();

  // ---- settling: answered at once (durability: above). After close() every handle is stale.
  SettleStatus ack(Lease lease, LeaseCaps caps);
  SettleStatus extend(Lease lease, Nanos visibility);
  SettleStatus nack(Lease lease);
  // One status per lease, in their order.
  std::vector<SettleStatus> settle_many(SettleMode mode, const std::vector<Lease>& leases,
                                        LeaseCaps caps, Nanos visibility);

  // Everything settled so far is on disk when it answers ok.
  Task<Result<void>> flush();
  // What is settled now (moves, statistics).
  ConsumerPositions positions() const;
  DeliveryStats stats();

  // Refuses new calls, lets those that run end, writes a last snapshot and stops. Idempotent. The
  // error is that of the last write; the delivery is closed all the same, and what was not stored
  // is delivered again.
  Task<Result<void>> close();

 private:
  struct Impl;
  explicit Delivery(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  std::shared_ptr<Waiters> waiters_;
};

}  // namespace narad::delivery
