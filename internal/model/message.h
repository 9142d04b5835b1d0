#pragma once
// A message on its way from accept to a partition log, and a record as it is stored there.
#include <memory>
#include <string>
#include <vector>

#include "internal/model/names.h"

namespace narad {

// What a client produced and the ingress WAL holds. Immutable and shared from accept to commit, so
// that the payload is never copied between actors.
struct Message {
  Incarnation incarnation{0};  // of the topic, as seen at accept
  std::string topic;
  PartitionId partition{0};  // home partition: where the key hashes to
  std::string key;           // never empty (a keyless produce got a generated key)
  UnixMillis accepted_at{0};
  std::string payload;
};
using MessagePtr = std::shared_ptr<const Message>;

// (origin, sequence) names a message for life: the owner uses it to recognise a repeated hand-over.
struct CommitRecord {
  Sequence sequence{0};
  MessagePtr message;
};

// A record that the ingress WAL holds durably, on its way to a partition.
struct DurableRecord {
  OriginId origin{0};  // epoch of the WAL it was written under; kept for life
  Sequence sequence{0};
  MessagePtr message;
};

// One hand-over from a dispatcher to a partition's owner. All records share topic, incarnation and
// origin; sequences ascend.
struct CommitBatch {
  Incarnation incarnation{0};
  RaftIndex assignment_index{0};  // the row version the sender acted on
  OriginId origin{0};             // 0: no recognition wanted (fan-out)
  bool rerouted = false;          // not this partition's own: never checked against its table
  std::vector<CommitRecord> records;
};

struct CommitOutcome {
  Offset first{0};             // of the first record appended (meaningless if appended == 0)
  std::uint32_t appended = 0;  // records written by this call
  std::uint32_t known = 0;     // records recognised as committed before
};

struct StoredRecord {
  Offset offset{0};
  UnixMillis commit_time{0};
  std::string key;
  std::string payload;
};

}  // namespace narad
