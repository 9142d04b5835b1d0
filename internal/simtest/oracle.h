#pragma once
// Oracle: what the outside world knows about the messages it sent, and what it may therefore
// demand. Pure; outlives every crash of the nodes under test. Every rule that is broken is kept as
// a sentence in violations().
//
// A message is identified by a number in its payload; the rest of the payload follows from that
// number, so that every byte read back is checked.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "internal/model/message.h"
#include "pkg/base/text.h"

namespace narad::simtest {

// One life of a topic's partition.
struct LogName {
  TopicPartition partition;
  Incarnation incarnation{0};
  friend auto operator<=>(const LogName&, const LogName&) = default;
};

class Oracle {
 public:
  // `late_answers`: clients are not where the leases are, so that answers may cross on their way. A
  // delivery is then judged only by what was known before it was asked for.
  // `clock`: the time outside of all machines, by which events at several of them are ordered.
  explicit Oracle(bool late_answers = false, std::function<Nanos()> clock = {})
      : late_answers_(late_answers), clock_(std::move(clock)) {}

  // The payload of message `id`: `bytes` long at least where the number itself does not need more.
  static std::string payload(std::uint64_t id, std::size_t bytes);
  static bool is_payload(std::string_view text, std::uint64_t id, std::size_t bytes);
  // The number in a payload whose every byte is right; nothing otherwise.
  static std::optional<std::uint64_t> id_of(std::string_view payload);

  // ---- produce
  // About to be sent; its outcome is unknown until accepted() or refused().
  // `node`: whose disk holds it first.
  std::uint64_t sent(const std::string& topic, Incarnation incarnation, int node = 0);
  // Where it belongs, by its key.
  void belongs_to(std::uint64_t id, PartitionId home) { messages_.at(id).home = home; }
  void accepted(std::uint64_t id, Nanos now);
  void refused(std::uint64_t id);

  // ---- what was seen in a log (replay, or as part of a delivery)
  void seen(const LogName& log, const StoredRecord& record);

  // ---- consume. `boot`: number of the owner's present life, unlike that of any other node; its
  // leases die with it. Negative: it is not known which life answered.
  // Between `asked` and `now` (mono clock of that life) it was leased for `visibility`.
  void delivered(const LogName& log, const StoredRecord& record, int boot, Nanos asked, Nanos now,
                 Nanos visibility);
  void acked(const LogName& log, Offset offset, int boot, Nanos now);
  void nacked(const LogName& log, Offset offset);
  void extended(const LogName& log, Offset offset, Nanos now, Nanos visibility);
  // The node with these logs died: acks that were not on disk yet may be forgotten.
  void crashed(const std::function<bool(const LogName&)>& lived_there) {
    std::erase_if(fresh_acks_, [&](const auto& item) { return lived_there(item.first); });
  }
  // Every ack answered for that log in the node's present life is on disk.
  void acks_durable(const LogName& log);

  // ---- moves
  // Another node owns the log now, by a move whose freeze was armed after `armed_after` (by the
  // clock of the world). Leases stay behind; acks that were known before are in the copy unless
  // only the memory of `boot`'s life knew them and it is not the present one of the owner so far.
  void moved(const LogName& log, Nanos armed_after, int boot);
  // Another node took over from a dead one: what the dead one did last is only in its own copy.
  void promoted(const LogName& log);
  bool contested(const LogName& log) const { return contested_.contains(log); }
  // Read in a copy of that log that was set aside.
  void set_aside(const LogName& log, std::string_view payload);
  // All copies that were set aside of it may be gone (a lost disk).
  void copies_lost(const LogName& log) { copies_lost_.insert(log); }

  // The disk of that node is gone: what was sent through it until now may be.
  void disk_lost(int node);

  // ---- topics
  void topic_deleted(const std::string& topic, Incarnation incarnation);
  // From now on records of that life older than `retention` may be gone.
  void retention(const std::string& topic, Incarnation incarnation, Nanos retention);

  // ---- judging the end
  // Everything that `log` holds, oldest first, was just passed to seen(); `oldest` is its first
  // offset and `hwm` its end. Offsets must be dense.
  void log_read(const LogName& log, Offset oldest, Offset hwm,
                const std::vector<StoredRecord>& records);
  // All logs of that life of the topic have been read: every accepted message must be in them, and
  // only once: duplicates by reroute are part of the contract, but for nothing else.
  enum class Reroutes : std::uint8_t {
    none,
    of_dead_owners,  // some node counted as dead at a time: what it owned was rerouted at once
    any,
  };
  void topic_read(const std::string& topic, Incarnation incarnation, Nanos now, Reroutes reroutes);

  const std::vector<std::string>& violations() const { return violations_; }
  void violation(std::string text);
  struct Counts {
    std::uint64_t sent = 0, accepted = 0, refused = 0, unknown = 0, delivered = 0, redelivered = 0,
                  acked = 0, topics_deleted = 0, read = 0, stranded = 0;
  };
  Counts counts() const;

 private:
  enum class State : std::uint8_t { unknown, accepted, refused };
  struct Sent {
    std::string topic;
    Incarnation incarnation{0};
    State state = State::unknown;
    Nanos accepted_at{0};
    int node = 0;
    PartitionId home{0};
    bool may_be_lost = false;  // its first disk is gone
  };
  struct Position {
    std::uint64_t id = 0;
    bool acked = false;
    bool ack_durable = false;
    int lease_boot = -1;
    Nanos lease_until{0};
    bool delivered = false;
    Nanos noted{0};     // when delivery or ack became known, on the clock of that life
    Nanos acked_at{0};  // on the clock of the world
  };
  struct Life {
    bool deleted = false;
    std::optional<Nanos> retention;
  };
  using LifeKey = std::pair<std::string, Incarnation>;

  bool judges(const Position& p, int boot, Nanos asked) const {
    return boot >= 0 && p.lease_boot == boot && (!late_answers_ || asked >= p.noted);
  }

  Nanos now() const { return clock_ ? clock_() : Nanos(0); }
  bool is_stranded(const Sent& m, std::uint64_t id) const;

  const bool late_answers_;
  const std::function<Nanos()> clock_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Sent> messages_;
  std::map<LogName, std::map<Offset, Position>> logs_;
  std::map<LogName, std::pair<Offset, Offset>> read_;  // bounds of the last log_read()
  std::map<LogName, std::map<std::uint64_t, std::uint64_t>>
      held_;  // id -> times, of the last log_read()
  std::map<LogName, std::set<Offset>> fresh_acks_;
  std::map<LifeKey, Life> lives_;
  std::set<LogName> contested_;  // taken over from a dead owner
  std::set<LogName> copies_lost_;
  std::map<LogName, std::set<std::uint64_t>> aside_;  // ids in copies that were set aside
  std::vector<std::string> violations_;
  Counts counts_;
};

}  // namespace narad::simtest
