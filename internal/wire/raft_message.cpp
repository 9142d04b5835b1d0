#include "internal/wire/raft_message.h"

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::wire {

using raft::MessageKind;

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kBatchHeaderBytes = 5;
constexpr std::uint8_t kReject = 1;
constexpr std::uint8_t kForce = 2;
constexpr std::size_t kEntryHeaderBytes = 13;
constexpr std::size_t kMessageHeaderBytes = 26;

Error malformed(std::string_view what) {
  return Error(Errc::invalid_argument, cat("a batch of Raft messages is malformed: ", what));
}

// ---- writing ------------------------------------------------------------------------------------

void put_entries(const raft::Message& m, ByteWriter& out) {
  out.u32(static_cast<std::uint32_t>(m.entries.size()));
  raft::Index expected = m.index;
  for (const raft::Entry& e : m.entries) {
    expected = expected.next();
    NARAD_ASSERT(e.index == expected, "entries are in a row");
    out.u64(e.term.value());
    out.u8(static_cast<std::uint8_t>(e.kind));
    out.u32(static_cast<std::uint32_t>(e.payload->size()));
    out.bytes(*e.payload);
  }
}

void put_chunk(const raft::Message& m, ByteWriter& out) {
  NARAD_ASSERT(m.snapshot && m.chunk && m.chunk->size() == m.length, "a chunk is sent filled");
  out.u64(m.snapshot->index.value());
  out.u64(m.snapshot->term.value());
  out.u64(m.snapshot->size_bytes);
  out.u64(m.snapshot->checksum);
  const Bytes configuration = m.snapshot->configuration.encode();
  out.u32(static_cast<std::uint32_t>(configuration.size()));
  out.bytes(configuration);
  out.u64(m.offset);
  out.u64(m.chunk_checksum);
  out.u32(static_cast<std::uint32_t>(m.length));
  out.bytes(*m.chunk);
}

void put_body(const raft::Message& m, ByteWriter& out) {
  switch (m.kind) {
    case MessageKind::pre_vote:
    case MessageKind::vote:
      out.u64(m.index.value());
      out.u64(m.log_term.value());
      return;
    case MessageKind::pre_vote_reply:
    case MessageKind::vote_reply:
    case MessageKind::timeout_now:
      return;
    case MessageKind::append:
      out.u64(m.index.value());
      out.u64(m.log_term.value());
      out.u64(m.commit.value());
      put_entries(m, out);
      return;
    case MessageKind::append_reply:
      out.u64(m.index.value());
      out.u64(m.hint.value());
      out.u64(m.hint_term.value());
      return;
    case MessageKind::heartbeat:
      out.u64(m.commit.value());
      out.u64(m.round);
      return;
    case MessageKind::heartbeat_reply:
      out.u64(m.round);
      out.u64(m.index.value());
      return;
    case MessageKind::snapshot_chunk:
      put_chunk(m, out);
      return;
    case MessageKind::snapshot_reply:
      out.u64(m.snapshot_index.value());
      out.u64(m.offset);
      out.u64(m.next_offset);
      return;
    case MessageKind::read_request:
      out.u64(m.context);
      return;
    case MessageKind::read_reply:
      out.u64(m.context);
      out.u64(m.index.value());
      return;
  }
}

std::size_t body_size(const raft::Message& m) {
  switch (m.kind) {
    case MessageKind::pre_vote:
    case MessageKind::vote:
    case MessageKind::heartbeat:
    case MessageKind::heartbeat_reply:
    case MessageKind::read_reply:
      return 16;
    case MessageKind::append_reply:
    case MessageKind::snapshot_reply:
      return 24;
    case MessageKind::read_request:
      return 8;
    case MessageKind::append: {
      std::size_t bytes = 28;
      for (const raft::Entry& e : m.entries) bytes += kEntryHeaderBytes + e.payload->size();
      return bytes;
    }
    case MessageKind::snapshot_chunk:
      return 56 + m.snapshot->configuration.encode().size() + m.chunk->size();
    case MessageKind::pre_vote_reply:
    case MessageKind::vote_reply:
    case MessageKind::timeout_now:
      return 0;
  }
  return 0;
}

void put_message(const raft::Message& m, ByteWriter& out) {
  out.u8(static_cast<std::uint8_t>(m.kind));
  out.u8(static_cast<std::uint8_t>((m.reject ? kReject : 0) | (m.force ? kForce : 0)));
  out.u64(m.from.value());
  out.u64(m.to.value());
  out.u64(m.term.value());
  put_body(m, out);
}

// ---- reading ------------------------------------------------------------------------------------

raft::Index read_index(ByteReader& in) { return raft::Index(in.u64()); }
raft::Term read_term(ByteReader& in) { return raft::Term(in.u64()); }
raft::Payload payload(ByteView bytes) {
  return std::make_shared<const Bytes>(bytes.begin(), bytes.end());
}

Result<void> read_entries(raft::Message& m, ByteReader& in) {
  const std::uint32_t count = in.u32();
  if (count > in.remaining() / kEntryHeaderBytes) return malformed("more entries than bytes");
  // A position past the end of the numbers would wrap.
  if (m.index.value() > ~std::uint64_t{0} - count) return malformed("its entries have no position");
  m.entries.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    raft::Entry e;
    e.index = m.index.plus(i + 1);
    e.term = read_term(in);
    const std::uint8_t kind = in.u8();
    if (kind > static_cast<std::uint8_t>(raft::EntryKind::configuration)) {
      return malformed("an entry of unknown kind");
    }
    e.kind = static_cast<raft::EntryKind>(kind);
    const ByteView bytes = in.bytes(in.u32());
    if (!in.ok()) return malformed("an entry is cut short");
    e.payload = payload(bytes);
    m.entries.push_back(std::move(e));
  }
  return ok();
}

Result<void> read_chunk(raft::Message& m, ByteReader& in) {
  raft::SnapshotMeta meta;
  meta.index = read_index(in);
  meta.term = read_term(in);
  meta.size_bytes = in.u64();
  meta.checksum = in.u64();
  const ByteView configuration = in.bytes(in.u32());
  if (!in.ok()) return malformed("a configuration is cut short");
  auto decoded = raft::Configuration::decode(configuration);
  if (!decoded) return malformed(decoded.error().text());
  meta.configuration = std::move(decoded.value());
  // A second spelling of the same would let two nodes see different bytes for one snapshot.
  if (meta.configuration.encode() != Bytes(configuration.begin(), configuration.end())) {
    return malformed("a configuration out of order");
  }
  m.snapshot = std::make_shared<const raft::SnapshotMeta>(std::move(meta));
  m.offset = in.u64();
  m.chunk_checksum = in.u64();
  m.length = in.u32();
  const ByteView bytes = in.bytes(m.length);
  if (!in.ok()) return malformed("a chunk is cut short");
  m.chunk = payload(bytes);
  return ok();
}

Result<void> read_body(raft::Message& m, ByteReader& in) {
  switch (m.kind) {
    case MessageKind::pre_vote:
    case MessageKind::vote:
      m.index = read_index(in);
      m.log_term = read_term(in);
      return ok();
    case MessageKind::pre_vote_reply:
    case MessageKind::vote_reply:
    case MessageKind::timeout_now:
      return ok();
    case MessageKind::append:
      m.index = read_index(in);
      m.log_term = read_term(in);
      m.commit = read_index(in);
      return read_entries(m, in);
    case MessageKind::append_reply:
      m.index = read_index(in);
      m.hint = read_index(in);
      m.hint_term = read_term(in);
      return ok();
    case MessageKind::heartbeat:
      m.commit = read_index(in);
      m.round = in.u64();
      return ok();
    case MessageKind::heartbeat_reply:
      m.round = in.u64();
      m.index = read_index(in);
      return ok();
    case MessageKind::snapshot_chunk:
      return read_chunk(m, in);
    case MessageKind::snapshot_reply:
      m.snapshot_index = read_index(in);
      m.offset = in.u64();
      m.next_offset = in.u64();
      return ok();
    case MessageKind::read_request:
      m.context = in.u64();
      return ok();
    case MessageKind::read_reply:
      m.context = in.u64();
      m.index = read_index(in);
      return ok();
  }
  return malformed("its kind is unknown");
}

Result<raft::Message> read_message(ByteView bytes) {
  ByteReader in(bytes);
  raft::Message m;
  m.kind = static_cast<MessageKind>(in.u8());
  const std::uint8_t flags = in.u8();
  m.from = raft::ReplicaId(in.u64());
  m.to = raft::ReplicaId(in.u64());
  m.term = read_term(in);
  if (!in.ok()) return malformed("a message is cut short");
  if ((flags & ~(kReject | kForce)) != 0) return malformed("unknown flags");
  m.reject = (flags & kReject) != 0;
  m.force = (flags & kForce) != 0;
  NARAD_TRY(read_body(m, in));
  if (!in.ok()) return malformed("a message is cut short");
  if (in.remaining() != 0) return malformed("a message is longer than its kind");
  return m;
}

}  // namespace

std::size_t encoded_size(const raft::Message& m) { return kMessageHeaderBytes + body_size(m); }

std::vector<std::string> encode_raft_bodies(const std::vector<raft::Message>& messages) {
  std::vector<std::string> bodies;
  for (std::size_t at = 0; at < messages.size();) {
    std::size_t bytes = kBatchHeaderBytes;
    std::size_t end = at;
    while (end < messages.size() && end - at < kRaftBatchMessagesMax) {
      const std::size_t more = 4 + encoded_size(messages[end]);
      if (end > at && bytes + more > kRaftBatchBytes) break;
      bytes += more;
      ++end;
    }
    Bytes out;
    out.reserve(bytes);
    ByteWriter writer(out);
    writer.u8(kVersion);
    writer.u32(static_cast<std::uint32_t>(end - at));
    for (; at < end; ++at) {
      writer.u32(static_cast<std::uint32_t>(encoded_size(messages[at])));
      put_message(messages[at], writer);
    }
    NARAD_ASSERT(out.size() == bytes, "sizes agree with what was written");
    bodies.push_back(to_text(out));
  }
  return bodies;
}

Result<std::vector<raft::Message>> decode_raft_body(ByteView body) {
  if (body.size() > kRaftBodyMax) return malformed("it is too large");
  ByteReader in(body);
  const std::uint8_t version = in.u8();
  const std::uint32_t count = in.u32();
  if (!in.ok()) return malformed("it is cut short");
  if (version != kVersion) {
    return malformed(cat("it has version ", version, ", this release knows ", kVersion));
  }
  if (count > kRaftBatchMessagesMax || count > in.remaining() / (4 + kMessageHeaderBytes)) {
    return malformed("more messages than it can hold");
  }
  std::vector<raft::Message> messages;
  messages.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const ByteView bytes = in.bytes(in.u32());
    if (!in.ok()) return malformed("it is cut short");
    NARAD_TRY(raft::Message m, read_message(bytes));
    messages.push_back(std::move(m));
  }
  if (in.remaining() != 0) return malformed("bytes after the last message");
  return messages;
}

}  // namespace narad::wire
