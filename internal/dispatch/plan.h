#pragma once
// The dispatcher's decisions, without I/O: which records go where, in which order, when a failing
// destination is tried again, when records are rerouted, and how far the checkpoint may advance.
//
// Every record has a home: one partition of one life of a topic. Records wait in one queue per
// home, in sequence order, and leave it from the front only, one batch at a time. From that follow
// the rules of the exactly-once hand-off (storage.md):
//   - a record goes home only when every lower sequence with the same home and origin is settled
//     (committed at home, acknowledged by a sibling, or discarded with proof) or goes in the same
//     batch before it; while a rerouted batch is out or undecided, its home gets nothing;
//   - records of an older origin, replayed after a restart, have lower sequences and go first;
//   - a batch has one origin.
// Each partition has one lane: at most one batch is in flight to it, its own or a rerouted one.
//
// Usage: offer() what read_next() asks for, send what next_actions() says, report with on_result(),
// call next_actions() again after every input and at wake_at().
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "internal/dispatch/routing.h"
#include "internal/model/message.h"

namespace narad::dispatch {

using Nanos = std::chrono::nanoseconds;
using BatchId = std::uint64_t;

// Faults that a test plants to prove that it would see them. Never set outside tests.
struct PlanDefects {
  bool ignore_home_settling = false;       // the home is fed while a rerouted batch is out
  bool forget_settled_ahead = false;       // records settled above the checkpoint are sent again
  bool checkpoint_past_unsettled = false;  // the checkpoint follows the highest settled record
  bool mix_origins = false;                // a batch takes records of any origin
};

struct PlanOptions {
  std::size_t batch_records_max = 16384;
  std::uint64_t batch_bytes_max = 4u << 20;    // one frame of the partition log, raw
  std::size_t in_flight_max = 1024;            // batches
  std::size_t unsettled_max = 1u << 20;        // records known and not settled
  std::size_t window_max = 1u << 24;           // sequences between checkpoint and newest known
  std::uint64_t loaded_bytes_max = 64u << 20;  // messages held; failing homes give theirs up first
  Nanos retry = std::chrono::seconds(1);       // per failing destination
  Nanos retry_max = std::chrono::seconds(30);  // a destination that hangs is tried less often
  Nanos grace = std::chrono::seconds(3);       // of failing, before a live owner's records reroute
  Nanos forget_failing = std::chrono::seconds(60);
  PlanDefects defects;
};

struct Send {
  BatchId id = 0;
  TopicPartition to;
  CommitBatch batch;
};
struct ConfirmGone {
  std::string topic;
  Incarnation incarnation{0};
};
struct Actions {
  std::vector<Send> sends;
  std::vector<ConfirmGone> confirms;
};
struct ReadRequest {
  Sequence from{0};
  std::size_t records_max = 0;
  std::uint64_t bytes_max = 0;
};

enum class BatchResult : std::uint8_t {
  committed,  // every record is durable at the destination
  failed,     // refused, lost, timed out: nothing is known about any of them
  held_up,    // the same, which is as it should be for a moment: the partition is frozen
};
// For people: a destination that was held up, or that failed for less than a retry, is no news.
enum class Turn : std::uint8_t { none, began_failing, recovered };
enum class GoneAnswer : std::uint8_t { gone, alive, unknown };

struct PlanStats {
  Sequence checkpoint{0};
  Sequence next{0};           // one past the newest record known
  std::size_t unsettled = 0;  // records known and not settled
  std::size_t in_flight = 0;  // batches
  std::size_t failing = 0;    // destinations
  std::uint64_t loaded_bytes = 0;
  std::uint64_t committed = 0;  // records, by their home
  std::uint64_t rerouted = 0;   // records, acknowledged by a sibling
  std::uint64_t discarded = 0;  // records of topics confirmed gone
  std::uint64_t failed_batches = 0;
};

class Plan {
 public:
  // Everything below `checkpoint` is settled; the first record offered is `checkpoint`.
  Plan(PlanOptions options, Sequence checkpoint);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // What to read next (if there is any such record yet), or nothing: full for now. Either the
  // records behind the newest known, or ones whose messages were given up for want of memory.
  std::optional<ReadRequest> read_next() const;
  // Records of one read, in sequence order, the first of them the one that read_next() asked for.
  void offer(const std::vector<DurableRecord>& records);

  Actions next_actions(Nanos now, const Routing& routing);
  // REQUIRES: `id` was sent by next_actions() and not reported before. Says what it changed for the
  // destination.
  Turn on_result(BatchId id, BatchResult result, Nanos now);
  // The answer to a ConfirmGone. Only `gone` discards.
  void on_gone(const std::string& topic, Incarnation incarnation, GoneAnswer answer, Nanos now);
  void on_routing_changed();
  // When to call next_actions() again without any input.
  std::optional<Nanos> wake_at() const;

  // The lowest sequence that is not settled: what the WAL's checkpoint may be.
  Sequence checkpoint() const;
  PlanStats stats() const;
  // "orders/3 fails since …": the worst of the failing destinations, or empty.
  std::string trouble(Nanos now) const;
  // Walks everything. For tests and simulation.
  void check_invariants() const;

 private:
  struct Entry {
    Sequence sequence{0};
    OriginId origin{0};
    std::uint32_t bytes = 0;
    MessagePtr message;  // null: given up, to be read again
  };
  struct Key {
    std::string topic;
    Incarnation incarnation{0};
    PartitionId partition{0};
  };
  struct KeyView {
    std::string_view topic;
    Incarnation incarnation{0};
    PartitionId partition{0};
  };
  static KeyView view(const Key& key) { return {key.topic, key.incarnation, key.partition}; }
  static KeyView view(const KeyView& key) { return key; }
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(const KeyView& key) const noexcept;
    std::size_t operator()(const Key& key) const noexcept { return (*this)(view(key)); }
  };
  struct KeyEqual {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
      const KeyView x = view(a);
      const KeyView y = view(b);
      return x.incarnation == y.incarnation && x.partition == y.partition && x.topic == y.topic;
    }
  };
  struct Failing {
    Nanos since{0};        // when the first of the failing batches was sent
    Nanos next_try{0};     // of this destination
    RaftIndex tried{0};    // the assignment that failed; another one is tried at once
    Nanos unexplained{0};  // since when under that assignment, being held up apart
    bool told = false;     // by Turn::began_failing
  };
  // One partition of one life of a topic: a home with its queue, and a destination with its lane.
  struct Slot {
    std::uint64_t id = 0;
    Key key;
    std::deque<Entry> queue;  // ascending; the first `loaded` have their messages
    std::size_t loaded = 0;
    std::size_t out = 0;     // batches of this home in flight (at most 1, but for a planted defect)
    BatchId lane = 0;        // batch in flight to this partition
    bool ready = false;      // in ready_
    bool reloading = false;  // in reload_
    std::optional<Nanos> timer;  // in timers_
    std::optional<Failing> failing;
    std::set<std::uint64_t> lane_waiters;  // slots that wait for this lane
  };
  struct Batch {
    std::uint64_t home = 0;  // slot ids
    std::uint64_t to = 0;
    Nanos sent_at{0};
    RaftIndex assignment_index{0};
    bool probe = false;
    std::vector<Entry> entries;
  };

  bool full() const;
  Slot& slot_of(const KeyView& key);
  void add(const DurableRecord& record);
  void load(const DurableRecord& record);
  void give_up_memory();
  void make_ready(Slot& slot);
  void set_timer(Slot& slot, std::optional<Nanos> at);
  void decide(Slot& slot, Nanos now, const Routing& routing, Actions& actions);
  void decide_alive(Slot& slot, const Route& route, Nanos now, const Routing& routing,
                    Actions& actions);
  void decide_gone(Slot& slot, Nanos now, Actions& actions);
  bool reroute(Slot& home, const Route& route, Nanos now, const Routing& routing, Actions& actions);
  void send(Slot& home, Slot& to, RaftIndex assignment_index, bool probe, Nanos now,
            Actions& actions);
  std::vector<Entry> take_batch(Slot& home, std::size_t records_max);
  bool wait_for_message(Slot& slot);
  void settle(Slot& home, Entry entry);
  void put_back(Slot& home, std::vector<Entry> entries);
  void start_failing(Slot& slot, Nanos since, RaftIndex tried, Nanos next_try);
  Turn judge_failure(Failing& failing, Nanos unexplained, Nanos now) const;
  void clear_failing(Slot& slot);
  void free_lane(Slot& slot);
  void settle_down(Slot& slot, Nanos now);
  void check_slot(const Slot& slot) const;
  void check_batches() const;

  PlanOptions options_;
  Sequence checkpoint_;
  Sequence next_;                     // one past the newest record known
  std::deque<std::uint8_t> settled_;  // flag per sequence in [checkpoint_, next_)
  std::map<std::uint64_t, Slot> slots_;
  std::unordered_map<Key, std::uint64_t, KeyHash, KeyEqual> ids_;  // never iterated
  Slot* last_slot_ = nullptr;                                      // of the last record offered
  std::uint64_t last_id_ = 0;
  std::deque<std::uint64_t> ready_;                   // slots to decide on, first come first served
  std::set<std::pair<Nanos, std::uint64_t>> timers_;  // (when, slot)
  std::map<std::uint64_t, Sequence> reload_;  // slots whose front message must be read again
  std::set<std::uint64_t> failing_;           // slots
  std::map<BatchId, Batch> in_flight_;
  BatchId last_batch_ = 0;
  std::size_t probes_ = 0;  // batches in flight to failing destinations
  Sequence highest_settled_{0};
  std::set<std::pair<std::string, Incarnation>> confirming_;
  PlanStats stats_;
};

}  // namespace narad::dispatch
