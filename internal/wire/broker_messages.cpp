#include "internal/wire/broker_messages.h"

#include <cstring>

#include "pkg/base/bytes.h"
#include "pkg/base/text.h"
#include "pkg/json/document.h"
#include "pkg/json/writer.h"

namespace narad::wire {
namespace {

constexpr std::uint8_t kVersion = 1;

class Out {
 public:
  Out() { u8(kVersion); }
  void u8(std::uint8_t v) { text_.push_back(static_cast<char>(v)); }
  void u64(std::uint64_t v) {
    char bytes[sizeof v];
    std::memcpy(bytes, &v, sizeof v);
    text_.append(bytes, sizeof v);
  }
  void number(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) u8(static_cast<std::uint8_t>(v | 0x80));
    u8(static_cast<std::uint8_t>(v));
  }
  void string(std::string_view s) {
    number(s.size());
    text_.append(s);
  }
  void reserve(std::size_t bytes) { text_.reserve(text_.size() + bytes); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class In {
 public:
  In(std::string_view what, std::string_view body) : what_(what), in_(as_bytes(body)) {
    const std::uint8_t version = in_.u8();
    if (in_.ok() && version != kVersion) version_ = version;
  }
  std::uint8_t u8() { return in_.u8(); }
  std::uint64_t u64() { return in_.u64(); }
  std::uint64_t number() { return in_.varint(); }
  std::string string() {
    const std::uint64_t size = in_.varint();
    return to_text(in_.bytes(size));
  }
  std::uint32_t u32() {
    const std::uint64_t v = in_.varint();
    if (v > UINT32_MAX) in_.fail();
    return static_cast<std::uint32_t>(v);
  }
  PartitionId partition() { return PartitionId(u32()); }
  std::string topic() {
    std::string name = string();
    if (in_.ok() && !validate_topic_name(name)) in_.fail();
    return name;
  }
  bool flag() {
    const std::uint8_t v = in_.u8();
    if (v > 1) in_.fail();
    return v == 1;
  }
  // How many items follow, each of at least `bytes_min` bytes: 0 if that cannot be.
  std::size_t count(std::size_t bytes_min) {
    const std::uint64_t n = in_.varint();
    if (n > kItemsMax || n > in_.remaining() / bytes_min) in_.fail();
    return in_.ok() ? static_cast<std::size_t>(n) : 0;
  }
  bool ok() const { return in_.ok() && version_ == 0; }
  void fail() { in_.fail(); }
  Result<void> finish() const {
    if (version_ != 0) {
      return Error(Errc::invalid_argument,
                   cat(what_, " of version ", version_, "; this release reads ", kVersion));
    }
    if (!in_.ok()) return Error(Errc::invalid_argument, cat("malformed ", what_));
    return ok_result();
  }

 private:
  static Result<void> ok_result() { return narad::ok(); }
  std::string_view what_;
  ByteReader in_;
  std::uint32_t version_ = 0;  // another one than ours
};

void put(Out& out, const ReceiptHandle& h) {
  out.number(h.partition.value());
  out.number(h.offset.value());
  out.u64(h.nonce);
}
constexpr std::size_t kHandleBytesMin = 10;
ReceiptHandle take_handle(In& in) {
  ReceiptHandle h;
  h.partition = in.partition();
  h.offset = Offset(in.number());
  h.nonce = in.u64();
  return h;
}

void put(Out& out, const StoredRecord& r) {
  out.number(r.offset.value());
  out.u64(static_cast<std::uint64_t>(r.commit_time.value()));
  out.string(r.key);
  out.string(r.payload);
}
constexpr std::size_t kRecordBytesMin = 11;
StoredRecord take_record(In& in) {
  StoredRecord r;
  r.offset = Offset(in.number());
  r.commit_time = UnixMillis(static_cast<std::int64_t>(in.u64()));
  r.key = in.string();
  r.payload = in.string();
  return r;
}

std::size_t weight(const StoredRecord& r) { return r.key.size() + r.payload.size() + 40; }

// Values on the wire are those of Errc; 0 is success.
Result<void> outcome_of(std::uint8_t code, std::string text) {
  if (code == 0) return ok();
  const bool known = code <= static_cast<std::uint8_t>(kErrcLast);
  return Error(known ? static_cast<Errc>(code) : Errc::internal, std::move(text));
}

}  // namespace

std::string encode(const CommitCall& call) {
  Out out;
  std::size_t bytes = 64 + call.partition.topic.size();
  for (const CommitRecord& r : call.batch.records) {
    bytes += r.message->key.size() + r.message->payload.size() + 40;
  }
  out.reserve(bytes);
  out.string(call.partition.topic);
  out.number(call.partition.partition.value());
  out.u64(call.batch.incarnation.value());
  out.number(call.batch.assignment_index.value());
  out.u64(call.batch.origin.value());
  out.u8(call.batch.rerouted ? 1 : 0);
  out.number(call.batch.records.size());
  for (const CommitRecord& r : call.batch.records) {
    out.number(r.sequence.value());
    out.number(r.message->partition.value());
    out.u64(static_cast<std::uint64_t>(r.message->accepted_at.value()));
    out.string(r.message->key);
    out.string(r.message->payload);
  }
  return out.take();
}

Result<CommitCall> decode_commit(std::string_view body) {
  In in("commit", body);
  CommitCall call;
  call.partition.topic = in.topic();
  call.partition.partition = in.partition();
  call.batch.incarnation = Incarnation(in.u64());
  call.batch.assignment_index = RaftIndex(in.number());
  call.batch.origin = OriginId(in.u64());
  call.batch.rerouted = in.flag();
  const std::size_t count = in.count(12);
  call.batch.records.reserve(count);
  Sequence previous{0};
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const Sequence sequence(in.number());
    auto message = std::make_shared<Message>();
    message->incarnation = call.batch.incarnation;
    message->topic = call.partition.topic;
    message->partition = in.partition();
    message->accepted_at = UnixMillis(static_cast<std::int64_t>(in.u64()));
    message->key = in.string();
    message->payload = in.string();
    if (sequence <= previous || message->key.empty()) in.fail();
    previous = sequence;
    call.batch.records.push_back({sequence, std::move(message)});
  }
  if (count == 0) in.fail();
  NARAD_TRY(in.finish());
  return call;
}

std::string encode(const CommitOutcome& outcome) {
  Out out;
  out.number(outcome.first.value());
  out.number(outcome.appended);
  out.number(outcome.known);
  return out.take();
}

Result<CommitOutcome> decode_commit_outcome(std::string_view body) {
  In in("commit outcome", body);
  CommitOutcome outcome;
  outcome.first = Offset(in.number());
  outcome.appended = in.u32();
  outcome.known = in.u32();
  NARAD_TRY(in.finish());
  return outcome;
}

std::string encode(const ConsumeCall& call) {
  Out out;
  out.string(call.topic);
  out.u64(call.incarnation.value());
  out.u8(call.partition ? 1 : 0);
  out.number(call.partition ? call.partition->value() : 0);
  out.number(call.max);
  return out.take();
}

Result<ConsumeCall> decode_consume(std::string_view body) {
  In in("consume", body);
  ConsumeCall call;
  call.topic = in.topic();
  call.incarnation = Incarnation(in.u64());
  const bool pinned = in.flag();
  const PartitionId partition = in.partition();
  if (pinned) call.partition = partition;
  call.max = in.u32();
  if (call.max == 0 || call.max > kItemsMax) in.fail();
  NARAD_TRY(in.finish());
  return call;
}

std::string encode(const std::vector<LeasedRecord>& records) {
  Out out;
  std::size_t bytes = 16;
  for (const LeasedRecord& r : records) bytes += weight(r.record) + 24;
  out.reserve(bytes);
  out.number(records.size());
  for (const LeasedRecord& r : records) {
    put(out, r.handle);
    put(out, r.record);
  }
  return out.take();
}

Result<std::vector<LeasedRecord>> decode_leased(std::string_view body) {
  In in("leased records", body);
  std::vector<LeasedRecord> records;
  const std::size_t count = in.count(kHandleBytesMin + kRecordBytesMin);
  records.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    LeasedRecord r;
    r.handle = take_handle(in);
    r.record = take_record(in);
    records.push_back(std::move(r));
  }
  NARAD_TRY(in.finish());
  return records;
}

std::string encode(const SettleCall& call) {
  Out out;
  out.string(call.topic);
  out.u64(call.incarnation.value());
  out.u8(static_cast<std::uint8_t>(call.mode));
  out.number(call.handles.size());
  for (const ReceiptHandle& h : call.handles) put(out, h);
  return out.take();
}

Result<SettleCall> decode_settle(std::string_view body) {
  In in("settle", body);
  SettleCall call;
  call.topic = in.topic();
  call.incarnation = Incarnation(in.u64());
  const std::uint8_t mode = in.u8();
  if (mode > static_cast<std::uint8_t>(SettleMode::nack)) in.fail();
  call.mode = static_cast<SettleMode>(mode);
  const std::size_t count = in.count(kHandleBytesMin);
  call.handles.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) call.handles.push_back(take_handle(in));
  NARAD_TRY(in.finish());
  return call;
}

std::string encode(const std::vector<Result<void>>& outcomes) {
  Out out;
  out.number(outcomes.size());
  for (const Result<void>& r : outcomes) {
    out.u8(r ? 0 : static_cast<std::uint8_t>(r.error().code()));
    out.string(r ? std::string_view() : std::string_view(r.error().text()));
  }
  return out.take();
}

Result<std::vector<Result<void>>> decode_settled(std::string_view body) {
  In in("settled", body);
  std::vector<Result<void>> outcomes;
  const std::size_t count = in.count(2);
  outcomes.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::uint8_t code = in.u8();
    outcomes.push_back(outcome_of(code, in.string()));
  }
  NARAD_TRY(in.finish());
  return outcomes;
}

std::string encode(const ReplayCall& call) {
  Out out;
  out.string(call.partition.topic);
  out.number(call.partition.partition.value());
  out.u64(call.incarnation.value());
  out.number(call.offset.value());
  return out.take();
}

Result<ReplayCall> decode_replay(std::string_view body) {
  In in("replay", body);
  ReplayCall call;
  call.partition.topic = in.topic();
  call.partition.partition = in.partition();
  call.incarnation = Incarnation(in.u64());
  call.offset = Offset(in.number());
  NARAD_TRY(in.finish());
  return call;
}

std::string encode(const std::optional<StoredRecord>& record) {
  Out out;
  out.u8(record ? 1 : 0);
  if (record) {
    out.reserve(weight(*record));
    put(out, *record);
  }
  return out.take();
}

Result<std::optional<StoredRecord>> decode_replayed(std::string_view body) {
  In in("replayed record", body);
  std::optional<StoredRecord> record;
  if (in.flag()) record = take_record(in);
  NARAD_TRY(in.finish());
  return record;
}

std::string encode(const StatsCall& call) {
  Out out;
  out.string(call.topic);
  out.u64(call.incarnation.value());
  out.number(call.partitions.size());
  for (PartitionId p : call.partitions) out.number(p.value());
  return out.take();
}

Result<StatsCall> decode_stats(std::string_view body) {
  In in("stats", body);
  StatsCall call;
  call.topic = in.topic();
  call.incarnation = Incarnation(in.u64());
  const std::size_t count = in.count(1);
  call.partitions.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) call.partitions.push_back(in.partition());
  NARAD_TRY(in.finish());
  return call;
}

std::string encode(const std::vector<PartitionStat>& stats) {
  Out out;
  out.number(stats.size());
  for (const PartitionStat& s : stats) {
    out.number(s.index.value());
    out.number(s.segments);
    out.number(s.oldest_offset.value());
    out.number(s.next_offset.value());
    out.number(s.high_watermark.value());
    out.number(s.size_bytes);
    out.u64(static_cast<std::uint64_t>(s.oldest_segment_at_s));
  }
  return out.take();
}

Result<std::vector<PartitionStat>> decode_stats_answer(std::string_view body) {
  In in("partition stats", body);
  std::vector<PartitionStat> stats;
  const std::size_t count = in.count(14);
  stats.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    PartitionStat s;
    s.index = in.partition();
    s.segments = in.number();
    s.oldest_offset = Offset(in.number());
    s.next_offset = Offset(in.number());
    s.high_watermark = Offset(in.number());
    s.size_bytes = in.number();
    s.oldest_segment_at_s = static_cast<std::int64_t>(in.u64());
    stats.push_back(s);
  }
  NARAD_TRY(in.finish());
  return stats;
}

std::string encode(const InterestCall& call) {
  Out out;
  out.number(call.ttl_ms);
  out.number(call.topics.size());
  for (const std::string& t : call.topics) out.string(t);
  return out.take();
}

Result<InterestCall> decode_interest(std::string_view body) {
  In in("interest", body);
  InterestCall call;
  call.ttl_ms = in.number();
  const std::size_t count = in.count(2);
  call.topics.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) call.topics.push_back(in.topic());
  NARAD_TRY(in.finish());
  return call;
}

std::string encode(const WakeCall& call) {
  Out out;
  out.number(call.topics.size());
  for (const WakeCall::Topic& t : call.topics) {
    out.string(t.name);
    out.number(t.records);
  }
  return out.take();
}

Result<WakeCall> decode_wake(std::string_view body) {
  In in("wake-up", body);
  WakeCall call;
  const std::size_t count = in.count(3);
  call.topics.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    WakeCall::Topic topic;
    topic.name = in.topic();
    topic.records = in.number();
    call.topics.push_back(std::move(topic));
  }
  NARAD_TRY(in.finish());
  return call;
}

std::string encode_error(const Error& error) {
  json::Writer w;
  w.begin_object();
  w.member("code", to_string(error.code())).member("error", error.text());
  w.end_object();
  return w.take();
}

Error decode_error(std::string_view body) {
  constexpr std::size_t kTextMax = 2'000;
  const Error odd(Errc::internal, std::string(body.substr(0, kTextMax)));
  auto document = json::Document::parse(std::string(body), 4);
  if (!document || !document.value().root().is(json::Kind::object)) return odd;
  const auto code = document.value().root().find("code");
  const auto text = document.value().root().find("error");
  if (!code || !text || !code->is(json::Kind::string) || !text->is(json::Kind::string)) return odd;
  for (std::uint8_t c = 1; c <= static_cast<std::uint8_t>(kErrcLast); ++c) {
    if (to_string(static_cast<Errc>(c)) != code->as_string()) continue;
    return Error(static_cast<Errc>(c), std::string(text->as_string()));
  }
  return odd;
}

}  // namespace narad::wire
