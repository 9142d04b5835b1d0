#include "internal/wire/raft_message.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "pkg/base/text.h"

namespace narad::wire {
namespace {

using raft::Entry;
using raft::EntryKind;
using raft::Index;
using raft::Message;
using raft::MessageKind;
using raft::ReplicaId;
using raft::Term;

raft::Configuration three() {
  return raft::Configuration::make({{ReplicaId(1), "n1", raft::MemberRole::voter},
                                    {ReplicaId(2), "n2", raft::MemberRole::voter},
                                    {ReplicaId(0xfeedfacecafebeef), "n3"}})
      .value();
}

Message plain(MessageKind kind) {
  Message m;
  m.kind = kind;
  m.from = ReplicaId(1);
  m.to = ReplicaId(0xfeedfacecafebeef);
  m.term = Term(7);
  return m;
}

// One of each kind, every field of it set.
std::map<std::string, Message> samples() {
  std::map<std::string, Message> all;
  for (auto kind : {MessageKind::pre_vote, MessageKind::vote}) {
    Message m = plain(kind);
    m.index = Index(12);
    m.log_term = Term(6);
    m.force = kind == MessageKind::vote;
    all[std::string(to_string(kind))] = m;
  }
  for (auto kind :
       {MessageKind::pre_vote_reply, MessageKind::vote_reply, MessageKind::timeout_now}) {
    Message m = plain(kind);
    m.reject = kind == MessageKind::vote_reply;
    all[std::string(to_string(kind))] = m;
  }
  Message append = plain(MessageKind::append);
  append.index = Index(12);
  append.log_term = Term(6);
  append.commit = Index(11);
  append.entries = {
      {Index(13), Term(6), EntryKind::command, raft::payload_of("{\"v\":1}")},
      {Index(14), Term(7), EntryKind::noop, raft::payload_of("")},
      {Index(15), Term(7), EntryKind::configuration,
       std::make_shared<const Bytes>(three().encode())},
  };
  all["append"] = append;
  Message append_reply = plain(MessageKind::append_reply);
  append_reply.index = Index(12);
  append_reply.reject = true;
  append_reply.hint = Index(9);
  append_reply.hint_term = Term(5);
  all["append-reply"] = append_reply;
  Message heartbeat = plain(MessageKind::heartbeat);
  heartbeat.commit = Index(10);
  heartbeat.round = 3;
  all["heartbeat"] = heartbeat;
  Message heartbeat_reply = plain(MessageKind::heartbeat_reply);
  heartbeat_reply.round = 3;
  heartbeat_reply.index = Index(15);
  all["heartbeat-reply"] = heartbeat_reply;
  Message chunk = plain(MessageKind::snapshot_chunk);
  raft::SnapshotMeta meta{Index(100), Term(6), three(), 1000, 0x0123456789abcdef};
  chunk.snapshot = std::make_shared<const raft::SnapshotMeta>(meta);
  chunk.offset = 400;
  chunk.length = 5;
  raft::fill_chunk(chunk, raft::payload_of("chunk"));
  all["snapshot-chunk"] = chunk;
  Message snapshot_reply = plain(MessageKind::snapshot_reply);
  snapshot_reply.snapshot_index = Index(100);
  snapshot_reply.offset = 400;
  snapshot_reply.next_offset = 405;
  all["snapshot-reply"] = snapshot_reply;
  Message read_request = plain(MessageKind::read_request);
  read_request.context = 0xabcdef;
  all["read-request"] = read_request;
  Message read_reply = plain(MessageKind::read_reply);
  read_reply.context = 0xabcdef;
  read_reply.index = Index(15);
  all["read-reply"] = read_reply;
  return all;
}

std::string only_body(std::vector<Message> messages) {
  std::vector<std::string> bodies = encode_raft_bodies(messages);
  EXPECT_EQ(bodies.size(), 1u);
  return bodies.front();
}

TEST(RaftMessage, WrittenToday_IsByteForByteTheGoldenFile) {
  std::map<std::string, std::string> today;
  for (const auto& [name, m] : samples()) today[name] = to_hex(as_bytes(only_body({m})));
  if (std::getenv("NARAD_WRITE_GOLDEN") != nullptr) {
    std::ofstream out("testdata/wire/raft.v1.txt");
    for (const auto& [name, hex] : today) out << name << ' ' << hex << '\n';
  }
  std::ifstream in("testdata/wire/raft.v1.txt");
  std::map<std::string, std::string> golden;
  std::string name, hex;
  while (in >> name >> hex) golden[name] = hex;
  EXPECT_EQ(golden, today);
  EXPECT_EQ(golden.size(), 13u) << "every kind";
}

// Field by field: the text of a message would hide what it does not print.
void expect_equal(const Message& a, const Message& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(std::tie(a.from, a.to, a.term, a.index, a.log_term, a.commit),
            std::tie(b.from, b.to, b.term, b.index, b.log_term, b.commit));
  EXPECT_EQ(std::tie(a.reject, a.force, a.hint, a.hint_term, a.round, a.context),
            std::tie(b.reject, b.force, b.hint, b.hint_term, b.round, b.context));
  EXPECT_EQ(std::tie(a.snapshot_index, a.offset, a.next_offset, a.length, a.chunk_checksum),
            std::tie(b.snapshot_index, b.offset, b.next_offset, b.length, b.chunk_checksum));
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    const Entry &x = a.entries[i], &y = b.entries[i];
    EXPECT_EQ(std::tie(x.index, x.term, x.kind, *x.payload),
              std::tie(y.index, y.term, y.kind, *y.payload));
  }
  ASSERT_EQ(a.chunk == nullptr, b.chunk == nullptr);
  if (a.chunk) EXPECT_EQ(*a.chunk, *b.chunk);
  ASSERT_EQ(a.snapshot == nullptr, b.snapshot == nullptr);
  if (!a.snapshot) return;
  EXPECT_TRUE(a.snapshot->same_as(*b.snapshot));
  EXPECT_EQ(a.snapshot->configuration, b.snapshot->configuration);
}

TEST(RaftMessage, EveryKind_IsReadAsItWasWritten) {
  std::vector<Message> all;
  for (const auto& [name, m] : samples()) all.push_back(m);
  auto read = decode_raft_body(as_bytes(only_body(all)));
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read.value().size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) expect_equal(read.value()[i], all[i]);
  EXPECT_TRUE(decode_raft_body(as_bytes(only_body({all[0]}))).has_value());
}

// splitmix64
std::uint64_t draw(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

TEST(RaftMessage, RandomAppends_AreReadAsTheyWereWritten) {
  std::uint64_t rng = 1;
  for (int run = 0; run < 300; ++run) {
    std::vector<Message> batch(1 + draw(rng) % 5, plain(MessageKind::append));
    for (Message& m : batch) {
      m.index = Index(draw(rng) >> 1);
      m.log_term = Term(draw(rng));
      m.commit = Index(draw(rng));
      for (std::uint64_t i = draw(rng) % 6; i > 0; --i) {
        const std::string text(draw(rng) % 300, static_cast<char>(draw(rng)));
        m.entries.push_back({m.index.plus(m.entries.size() + 1), Term(draw(rng)),
                             static_cast<EntryKind>(draw(rng) % 3), raft::payload_of(text)});
      }
    }
    auto read = decode_raft_body(as_bytes(only_body(batch)));
    ASSERT_TRUE(read) << read.error().text();
    ASSERT_EQ(read.value().size(), batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) expect_equal(read.value()[i], batch[i]);
  }
}

TEST(RaftMessage, LargeBatches_AreSplitInOrderAndALargeMessageGoesAlone) {
  std::vector<Message> messages;
  for (std::uint64_t i = 0; i < 10; ++i) {
    Message m = plain(MessageKind::append);
    m.index = Index(i);
    const std::size_t size = i == 5 ? 3 << 20 : 300 << 10;
    m.entries = {
        {Index(i + 1), Term(1), EntryKind::command, raft::payload_of(std::string(size, 'x'))}};
    messages.push_back(m);
  }
  std::uint64_t next = 0;
  std::size_t alone = 0;
  for (const std::string& body : encode_raft_bodies(messages)) {
    auto read = decode_raft_body(as_bytes(body));
    ASSERT_TRUE(read) << read.error().text();
    if (body.size() > kRaftBatchBytes) {
      EXPECT_EQ(read.value().size(), 1u);
      ++alone;
    }
    for (const Message& m : read.value()) EXPECT_EQ(m.index, Index(next++));
  }
  EXPECT_EQ(next, 10u);
  EXPECT_EQ(alone, 1u);
  EXPECT_TRUE(encode_raft_bodies({}).empty());
}

TEST(RaftMessage, BodyCutAnywhereOrLonger_IsRefused) {
  std::vector<Message> all;
  for (const auto& [name, m] : samples()) all.push_back(m);
  const std::string body = only_body(all);
  for (std::size_t n = 0; n < body.size(); ++n) {
    auto r = decode_raft_body(as_bytes(std::string_view(body).substr(0, n)));
    ASSERT_FALSE(r) << n;
    EXPECT_EQ(r.error().code(), Errc::invalid_argument);
  }
  EXPECT_FALSE(decode_raft_body(as_bytes(body + "x")));
}

TEST(RaftMessage, LengthsThatLie_AreRefusedBeforeAnythingIsAllocated) {
  const auto refused = [](std::string body, std::string_view why) {
    auto r = decode_raft_body(as_bytes(body));
    ASSERT_FALSE(r) << why;
    EXPECT_NE(r.error().text().find(why), std::string::npos) << r.error().text();
  };
  const std::string body = only_body({samples().at("append")});
  const auto with = [&](std::size_t at, std::string_view bytes) {
    std::string changed = body;
    changed.replace(at, bytes.size(), bytes);
    return changed;
  };
  const std::string huge(4, '\xff');
  refused(with(0, "\x02"), "version 2");
  refused(with(1, huge), "more messages than it can hold");
  refused(with(5, huge), "cut short");
  refused(with(9, "\x63"), "kind is unknown");
  refused(with(10, "\x80"), "unknown flags");
  refused(with(9 + 26 + 24, huge), "more entries than bytes");
  refused(with(9 + 26 + 28 + 9, huge), "an entry is cut short");
  refused(with(9 + 26 + 28 + 8, "\x09"), "an entry of unknown kind");
  refused(with(9 + 26, std::string(8, '\xff')), "have no position");
  refused(std::string(kRaftBodyMax + 1, '\0'), "too large");
}

}  // namespace
}  // namespace narad::wire
