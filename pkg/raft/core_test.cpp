#include "pkg/raft/core.h"

#include "pkg/raft/test_group.h"

namespace narad::raft {
namespace {

TEST(RaftCore, ThreeReplicas_ElectAndCommit) {
  Group g({1, 2, 3});
  g.elect(1);
  g.propose(1, "a");
  g.deliver();
  for (std::uint64_t n : {1, 2, 3}) {
    EXPECT_EQ(g[n].commit_index(), Index(2)) << n;
    EXPECT_EQ(g.stored[n].applied, std::vector<std::string>{"1/2 'a'"}) << n;
  }
}

TEST(RaftCore, SingleVoter_LeadsOnlyOnceItsVoteIsDurable) {
  Group g({1});
  g.hold(1);
  g.tick(1, 20);
  EXPECT_EQ(g[1].role(), Role::candidate);
  g.release(1);
  EXPECT_EQ(g[1].role(), Role::leader);
  g.propose(1, "a");
  EXPECT_EQ(g.stored[1].applied.size(), 1u);
}

TEST(RaftCore, LaggingReplica_GetsASnapshotInChunks) {
  Group g;
  Configuration c = configuration_of({1, 2, 3});
  for (std::uint64_t n : {1, 2, 3}) {
    Options o = options_for(n);
    o.chunk_bytes = 7;
    g.start(n, o, c);
  }
  g.elect(1);
  g.isolate(3);
  for (int i = 0; i < 20; ++i) {
    g.propose(1, "x");
    g.deliver();
  }
  g.snapshot(1);
  g.heal();
  for (int i = 0; i < 8; ++i) {
    g.tick(1);
    g.deliver();
  }
  EXPECT_EQ(g.stored[3].applied, g.stored[1].applied);
  EXPECT_EQ(g[3].snapshot().index, g[1].snapshot().index);
}

Message from_leader(MessageKind kind, std::uint64_t from, std::uint64_t to, std::uint64_t term) {
  Message m;
  m.kind = kind;
  m.from = R(from);
  m.to = R(to);
  m.term = Term(term);
  return m;
}

// ---- identity of replicas
// -------------------------------------------------------------------------

TEST(RaftCore, MessageForAnotherReplica_IsRefusedAndChangesNothing) {
  Group g({1, 2, 3});
  Message m = from_leader(MessageKind::vote, 2, 1, 9);
  Configuration c = configuration_of({1, 2, 3});
  g.start(
      11,
      [] {
        Options o = options_for(11);
        o.node = "n1";
        return o;
      }(),
      c);
  m.to = R(1);
  Result<> done = g[11].step(m);  // what came to the node under its old replica id
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code(), Errc::conflict);
  EXPECT_EQ(g[11].term(), Term(0));
  EXPECT_FALSE(g[11].has_ready() && !g[11].take_ready().messages.empty());
  EXPECT_EQ(g[11].soft_state().standing, Standing::replaced);
}

TEST(RaftCore, ReplicaUnderAnotherId_NeverStands) {
  Options o = options_for(11);
  o.node = "n1";
  auto core = Core::create(o, first_start(configuration_of({1, 2, 3}))).value();
  for (int i = 0; i < 100; ++i) core->tick();
  EXPECT_EQ(core->role(), Role::follower);
}

TEST(RaftCore, EmptiedDisk_JoinsAsALearnerInPlaceOfItsOldReplica) {
  Group g({1, 2, 3});
  g.elect(1);
  g.propose(1, "a");
  g.deliver();
  g.cores.erase(3);
  Options o = options_for(33);
  o.node = "n3";
  g.start(33, o, Configuration());
  ASSERT_TRUE(
      g[1].propose_change({ConfigurationChange::Kind::add_learner, R(33), "n3"}).has_value());
  g.work(1);
  for (int i = 0; i < 5; ++i) g.tick(1), g.deliver();
  EXPECT_EQ(g[33].soft_state().standing, Standing::learner);
  EXPECT_EQ(g.stored[33].applied, g.stored[1].applied);
  EXPECT_EQ(describe(g[1].membership().current()), "n1(1) n2(2) n3(33)L");
}

TEST(RaftCore, CaughtUpLearner_IsPromotedByTheLeader) {
  Group g;
  Configuration c = configuration_of({1, 2}, {3});
  for (std::uint64_t n : {1, 2, 3}) {
    Options o = options_for(n);
    o.promote_learners = true;
    g.start(n, o, c);
  }
  g.isolate(3);
  g.elect(1);
  for (int i = 0; i < 25; ++i) g.tick(1), g.deliver();
  EXPECT_EQ(g[1].membership().current(), c) << "a silent learner raises no quorum";
  EXPECT_EQ(g[1].propose_change({ConfigurationChange::Kind::promote, R(3), ""}).error().code(),
            Errc::unavailable);
  g.heal();
  for (int i = 0; i < 5; ++i) g.tick(1), g.deliver();
  EXPECT_EQ(g[3].soft_state().standing, Standing::voter);
}

// ---- replicas that forgot
// -------------------------------------------------------------------------

TEST(RaftCore, LeaderThatWouldReplaceWhatIsCommitted_StopsTheFollowerUnchanged) {
  Group g({1, 2, 3});
  g.elect(1);
  g.propose(1, "a");
  g.deliver();
  Message m = from_leader(MessageKind::append, 3, 2, 9);
  m.index = Index(1);
  m.log_term = Term(1);
  m.entries = {{Index(2), Term(9), EntryKind::command, payload_of("other")}};
  Result<> done = g[2].step(m);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code(), Errc::data_loss);
  ASSERT_TRUE(g[2].fault().has_value());
  EXPECT_NE(g[2].fault()->text().find("would replace entry 2"), std::string::npos);
  EXPECT_EQ(g[2].log().term_at(Index(2)), Term(1));
  EXPECT_FALSE(g[2].step(m).has_value());
  EXPECT_FALSE(g[2].propose(payload_of("x")).has_value());
}

TEST(RaftCore, DiskThatLostAcknowledgedEntries_StopsTheFollower) {
  Group g({1, 2, 3});
  g.elect(1);
  g.propose(1, "a");
  g.deliver();
  g.stored[2].state.entries.clear();  // an older image of the disk
  g.stored[2].state.applied = Index(0);
  g.stored[2].state.hard_state.commit = Index(0);
  g.restart(2);
  g[1].tick();
  Ready r = g[1].take_ready();
  for (Message& m : r.messages_now) {
    if (m.to != R(2)) continue;
    Result<> done = g[2].step(m);
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code(), Errc::data_loss);
  }
  EXPECT_TRUE(g[2].fault().has_value());
}

// ---- proposals
// ------------------------------------------------------------------------------------

TEST(RaftCore, ProposalOverTheLimit_IsRefused) {
  Group g({1});
  g.elect(1);
  std::uint64_t limit = g[1].options().entry_bytes_max;
  EXPECT_EQ(limit, 4u << 20);
  auto at = std::make_shared<const Bytes>(limit);
  auto over = std::make_shared<const Bytes>(limit + 1);
  EXPECT_EQ(g[1].propose(over).error().code(), Errc::too_large);
  EXPECT_TRUE(g[1].propose(at).has_value());
}

TEST(RaftCore, FLP_7_ReadThatReachesAFollower_IsRefusedAndOneOfTheLeaderWaitsForItsMajority) {
  Group g({1, 2, 3});
  g.elect(1);
  Message ask;
  ask.kind = MessageKind::read_request;
  ask.from = R(2);
  ask.to = R(3);
  ask.term = g[3].term();
  ask.context = 9;
  ASSERT_TRUE(g.step(ask).has_value());
  g.deliver();
  ASSERT_EQ(g.reads[2].size(), 1u);
  EXPECT_EQ(g.reads[2][0].index, std::nullopt) << "a follower's commit index proves nothing";

  ask.to = R(1);
  g.cut = [](const Message& m) { return m.kind == MessageKind::heartbeat_reply; };
  ASSERT_TRUE(g.step(ask).has_value());
  g.deliver();
  EXPECT_EQ(g.reads[2].size(), 1u) << "nobody has confirmed that it still leads";
  g.heal();
  g.tick(1);
  g.deliver();
  ASSERT_EQ(g.reads[2].size(), 2u);
  EXPECT_EQ(g.reads[2][1].index, g[1].commit_index());
}

TEST(RaftCore, ProposalToAFollower_IsRefused) {
  Group g({1, 2, 3});
  g.elect(1);
  EXPECT_EQ(g[2].propose(payload_of("a")).error().code(), Errc::not_leader);
}

TEST(RaftCore, TooMuchUncommitted_IsBusyUntilItCommits) {
  Group g;
  Configuration c = configuration_of({1, 2, 3});
  for (std::uint64_t n : {1, 2, 3}) {
    Options o = options_for(n);
    o.uncommitted_bytes_max = 500;
    g.start(n, o, c);
  }
  g.elect(1);
  int taken = 0;
  while (g[1].propose(payload_of(std::string(68, 'x'))).has_value()) ++taken;
  EXPECT_EQ(taken, 6);
  EXPECT_EQ(g[1].propose(payload_of("x")).error().code(), Errc::busy);
  g.work(1);
  g.deliver();
  EXPECT_TRUE(g[1].propose(payload_of("x")).has_value());
}

TEST(RaftCore, ProposalOfADeposedLeader_IsUnknownThoughItMayYetCommit) {
  Group g({1, 2, 3});
  g.elect(1);
  g.cut = [](const Message& m) { return m.to == R(1); };  // it sends and does not hear
  ProposalId id = g.propose(1, "a");
  g.deliver();
  g.tick(1, 25);
  EXPECT_EQ(g.unknown[1], std::vector<ProposalId>{id});
  g.network.clear();
  g.heal();
  g[2].tick(), g.elect(2);
  for (int i = 0; i < 3; ++i) g.tick(2), g.deliver();
  EXPECT_EQ(g.stored[1].applied, std::vector<std::string>{"1/2 'a'"});
  EXPECT_EQ(g.unknown[1].size(), 1u) << "answered once";
}

// ---- order of storing and sending
// -------------------------------------------------------------------

TEST(RaftCore, VoteAndAcknowledgement_LeaveOnlyAfterTheDisk) {
  Group g({1, 2, 3});
  Message m = from_leader(MessageKind::vote, 2, 1, 1);
  ASSERT_TRUE(g[1].step(m).has_value());
  Ready r = g[1].take_ready();
  EXPECT_TRUE(r.messages_now.empty());
  EXPECT_TRUE(r.must_sync);
  EXPECT_EQ(r.messages.size(), 1u);
  ASSERT_TRUE(r.hard_state.has_value());
  EXPECT_EQ(r.hard_state->vote, R(2));
  Message a = from_leader(MessageKind::append, 2, 1, 1);
  a.entries = {{Index(1), Term(1), EntryKind::noop, payload_of("")}};
  ASSERT_TRUE(g[1].step(a).has_value());
  r = g[1].take_ready();
  EXPECT_TRUE(r.messages_now.empty());
  EXPECT_EQ(r.entries.size(), 1u);
  EXPECT_EQ(r.messages.size(), 1u);
}

TEST(RaftCore, HeartbeatOfATermNotYetStored_IsAnsweredAfterTheDisk) {
  Group g({1, 2, 3});
  ASSERT_TRUE(g[1].step(from_leader(MessageKind::heartbeat, 2, 1, 4)).has_value());
  Ready r = g[1].take_ready();
  EXPECT_TRUE(r.messages_now.empty());
  EXPECT_EQ(r.messages.size(), 1u);
  g[1].persisted(r.id);
  ASSERT_TRUE(g[1].step(from_leader(MessageKind::heartbeat, 2, 1, 4)).has_value());
  r = g[1].take_ready();
  EXPECT_EQ(r.messages_now.size(), 1u);
}

TEST(RaftCore, EntryTruncatedAndReplacedWhileItsWriteRuns_IsNotTakenForStored) {
  Group g({1, 2, 3});
  Message a = from_leader(MessageKind::append, 2, 1, 1);
  a.entries = {{Index(1), Term(1), EntryKind::noop, payload_of("")}};
  ASSERT_TRUE(g[1].step(a).has_value());
  Ready first = g[1].take_ready();
  Message b = from_leader(MessageKind::append, 3, 1, 2);
  b.entries = {{Index(1), Term(2), EntryKind::noop, payload_of("")}};
  ASSERT_TRUE(g[1].step(b).has_value());
  g[1].persisted(first.id);
  EXPECT_EQ(g[1].log().stable(), Index(0));
  Ready second = g[1].take_ready();
  g[1].persisted(second.id);
  EXPECT_EQ(g[1].log().stable(), Index(1));
}

// ---- what peers may send
// ----------------------------------------------------------------------------

TEST(RaftCore, MalformedMessages_AreRefusedAndChangeNothing) {
  Group g({1, 2, 3});
  auto entry = [](std::uint64_t term, std::uint64_t index) {
    return Entry{Index(index), Term(term), EntryKind::command, payload_of("x")};
  };
  auto refuse = [&](const Message& m, const char* why) {
    Result<> done = g[1].step(m);
    ASSERT_FALSE(done.has_value()) << why;
    EXPECT_EQ(done.error().code(), Errc::invalid_argument) << why;
    EXPECT_EQ(g[1].term(), Term(0)) << why;
  };
  Message a = from_leader(MessageKind::append, 2, 1, 3);
  Message m = a;
  m.entries = {entry(1, 2)};
  refuse(m, "a hole");
  m.entries = {entry(2, 1), entry(1, 2)};
  refuse(m, "a falling term");
  m.entries = {entry(4, 1)};
  refuse(m, "a term of the future");
  m.entries = {entry(1, 1)};
  m.entries[0].payload = nullptr;
  refuse(m, "no payload");
  m.entries = {entry(1, 1)};
  m.entries[0].kind = EntryKind::configuration;
  refuse(m, "a damaged configuration");
  m = a;
  m.log_term = Term(4);
  refuse(m, "it builds on the future");
  m = a;
  m.from = R(1);
  refuse(m, "from itself");
  m = a;
  m.term = Term(0);
  refuse(m, "no term");
  m = a;
  m.kind = MessageKind::snapshot_chunk;
  refuse(m, "no snapshot");
  m = a;
  m.kind = static_cast<MessageKind>(77);
  refuse(m, "an unknown kind");
}

TEST(RaftCore, StartStateThatContradictsItself_IsDataLoss) {
  auto refuse = [](StartState s) {
    Result<std::unique_ptr<Core>> made = Core::create(options_for(1), std::move(s));
    return !made && made.error().code() == Errc::data_loss;
  };
  StartState good = first_start(configuration_of({1}));
  good.hard_state.term = Term(2);
  good.entries = {{Index(1), Term(1), EntryKind::noop, payload_of("")}};
  EXPECT_FALSE(refuse(good));
  StartState s = good;
  s.applied = Index(2);
  EXPECT_TRUE(refuse(s));
  s = good;
  s.hard_state.commit = Index(2);
  EXPECT_TRUE(refuse(s));
  s = good;
  s.hard_state.term = Term(0);
  EXPECT_TRUE(refuse(s));
  s = good;
  s.entries[0].index = Index(2);
  EXPECT_TRUE(refuse(s));
  s = good;
  s.snapshot.index = Index(5);
  EXPECT_TRUE(refuse(s));
}

TEST(RaftCore, SameInputs_GiveTheSameOutputs) {
  auto transcript = [] {
    Group g({1, 2, 3});
    std::string out;
    g.cut = [&](const Message& m) {
      out += describe(m) + "\n";
      return false;
    };
    g.elect(1);
    g.propose(1, "a");
    g.deliver();
    return out;
  };
  EXPECT_EQ(transcript(), transcript());
}

// ---- snapshots
// --------------------------------------------------------------------------------------

struct SnapshotGroup : Group {
  SnapshotGroup() {
    Configuration c = configuration_of({1, 2, 3});
    for (std::uint64_t n : {1, 2, 3}) {
      Options o = options_for(n);
      o.chunk_bytes = 10;
      start(n, o, c);
    }
    elect(1);
    isolate(3);
    for (int i = 0; i < 10; ++i) {
      propose(1, cat("v", i));
      deliver();
    }
    snapshot(1);
    heal();
  }
  void beats(int n) {
    for (int i = 0; i < n; ++i) tick(1), deliver();
  }
};

TEST(RaftCore, SnapshotThatFailsItsChecksum_IsFetchedAgain) {
  SnapshotGroup g;
  g.damage_snapshots = true;
  g.beats(8);
  EXPECT_FALSE(g.damage_snapshots);
  EXPECT_EQ(g.stored[3].applied, g.stored[1].applied);
}

TEST(RaftCore, SnapshotCutInTheMiddle_GoesOnWhereItWas) {
  SnapshotGroup g;
  std::map<std::uint64_t, int> sent;
  int passed = 0;
  g.cut = [&](const Message& m) {
    if (m.kind != MessageKind::snapshot_chunk) return false;
    ++sent[m.offset];
    return ++passed == 4;  // the fourth chunk is lost once
  };
  g.beats(10);
  EXPECT_EQ(g.stored[3].applied, g.stored[1].applied);
  EXPECT_EQ(sent[0], 1);
  EXPECT_EQ(sent[30], 2);
}

TEST(RaftCore, DamagedChunk_IsSentAgain) {
  SnapshotGroup g;
  int damaged = 0;
  g.cut = [&](const Message& m) {
    if (m.kind != MessageKind::snapshot_chunk || m.offset != 20 || damaged > 0) return false;
    Message bad = m;
    bad.chunk_checksum ^= 1;
    ++damaged;
    EXPECT_TRUE(g.step(bad).has_value());
    return true;
  };
  g.beats(10);
  EXPECT_EQ(damaged, 1);
  EXPECT_EQ(g.stored[3].applied, g.stored[1].applied);
}

TEST(RaftCore, ReceiverThatRestarts_BeginsTheSnapshotAgain) {
  SnapshotGroup g;
  int chunks = 0;
  g.cut = [&](const Message& m) { return m.kind == MessageKind::snapshot_chunk && ++chunks > 3; };
  g.beats(2);
  EXPECT_GT(chunks, 3);
  g.restart(3);
  g.heal();
  g.beats(8);
  EXPECT_EQ(g.stored[3].applied, g.stored[1].applied);
}

TEST(RaftCore, CompactionDuringAStream_KeepsWhatTheReceiverNeedsNext) {
  SnapshotGroup g;
  int chunks = 0;
  g.cut = [&](const Message& m) { return m.kind == MessageKind::snapshot_chunk && ++chunks > 3; };
  g.beats(2);
  Index streamed = g[1].snapshot().index;
  g.propose(1, "later");
  g.deliver();
  SnapshotMeta next = g[1].snapshot_at(g[1].applied_index());
  next.size_bytes = 1;
  ASSERT_TRUE(g[1].compact(next, 0).has_value());
  EXPECT_EQ(g[1].log().base(), streamed);
  ASSERT_EQ(g[1].snapshots_in_use().size(), 1u);
  EXPECT_EQ(g[1].snapshots_in_use()[0].index, streamed);
}

TEST(RaftCore, UselessSnapshot_IsRefusedForCompaction) {
  SnapshotGroup g;
  SnapshotMeta same = g[1].snapshot();
  EXPECT_EQ(g[1].compact(same, 0).error().code(), Errc::invalid_argument);
  SnapshotMeta wrong = g[2].snapshot_at(g[2].applied_index());
  wrong.term = Term(99);
  EXPECT_EQ(g[2].compact(wrong, 0).error().code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace narad::raft
