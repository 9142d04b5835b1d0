// One test a claim of "In Search of an Understandable Consensus Algorithm" (extended version) and
// of the Raft thesis, named by section.
#include "pkg/raft/test_group.h"

namespace narad::raft {
namespace {

Message message(MessageKind kind, std::uint64_t from, std::uint64_t to, std::uint64_t term) {
  Message m;
  m.kind = kind;
  m.from = R(from);
  m.to = R(to);
  m.term = Term(term);
  return m;
}

Message vote_request(std::uint64_t from, std::uint64_t to, std::uint64_t term, std::uint64_t index,
                     std::uint64_t log_term, MessageKind kind = MessageKind::vote) {
  Message m = message(kind, from, to, term);
  m.index = Index(index);
  m.log_term = Term(log_term);
  return m;
}

Entry entry(std::uint64_t term, std::uint64_t index, std::string_view text = "x") {
  return {Index(index), Term(term), EntryKind::command, payload_of(text)};
}

Message append(std::uint64_t from, std::uint64_t to, std::uint64_t term, std::uint64_t index,
               std::uint64_t log_term, std::vector<Entry> entries, std::uint64_t commit = 0) {
  Message m = vote_request(from, to, term, index, log_term, MessageKind::append);
  m.entries = std::move(entries);
  m.commit = Index(commit);
  return m;
}

// A group where replica n starts with a log of these terms and its term.
void with_log(Group& g, std::uint64_t n, const std::vector<std::uint64_t>& terms,
              std::uint64_t term, const Configuration& c) {
  StartState s = first_start(c);
  for (std::uint64_t t : terms) s.entries.push_back(entry(t, s.entries.size() + 1));
  s.hard_state.term = Term(term);
  g.stored[n].state = s;
  g.boot(n, options_for(n));
}

// The only message replica n sends when it is given m.
Message answer(Group& g, Message m) {
  g.network.clear();
  std::uint64_t n = m.to.value();
  EXPECT_TRUE(g.step(std::move(m)).has_value());
  if (g.network.empty()) {
    ADD_FAILURE() << "replica " << n << " is silent";
    return Message();
  }
  Message reply = g.network.front();
  g.network.clear();
  return reply;
}

// ---- 5.1 terms
// ------------------------------------------------------------------------------------

TEST(RaftPaper, S51_HigherTerm_IsAdoptedAndALeaderStepsDown) {
  Group g({1, 2, 3});
  g.elect(1);
  answer(g, message(MessageKind::heartbeat, 3, 1, 7));
  EXPECT_EQ(g[1].role(), Role::follower);
  EXPECT_EQ(g[1].term(), Term(7));
  EXPECT_EQ(g[1].leader(), R(3));
}

TEST(RaftPaper, S51_StaleTerm_IsRefusedWithTheCurrentOne) {
  Group g({1, 2, 3});
  answer(g, message(MessageKind::heartbeat, 1, 2, 5));
  for (Message old : {append(3, 2, 4, 0, 0, {entry(1, 1)}), vote_request(3, 2, 4, 9, 4),
                      vote_request(3, 2, 4, 9, 4, MessageKind::pre_vote)}) {
    Message reply = answer(g, old);
    EXPECT_TRUE(reply.reject);
    EXPECT_EQ(reply.term, Term(5));
  }
  EXPECT_EQ(g[2].log().last(), Index(0));
}

// ---- 5.2 election
// ---------------------------------------------------------------------------------

TEST(RaftPaper, S52_Replica_BeginsAsFollower) {
  Group g({1, 2, 3});
  EXPECT_EQ(g[1].role(), Role::follower);
  EXPECT_EQ(g[1].leader(), R(0));
}

TEST(RaftPaper, S52_Leader_SendsHeartbeatsEveryInterval) {
  Group g({1, 2, 3});
  g.elect(1);
  for (int i = 0; i < 5; ++i) {
    g.tick(1);
    EXPECT_EQ(g.sent(MessageKind::heartbeat).size(), 2u);
    g.deliver();
  }
}

TEST(RaftPaper, S52_ElectionTime_IsDrawnBetweenOnceAndTwiceTheMinimum) {
  std::set<int> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Options o = options_for(1);
    o.seed = seed;
    auto core = Core::create(o, first_start(configuration_of({1, 2, 3}))).value();
    int ticks = 0;
    while (core->role() == Role::follower) {
      core->tick();
      ++ticks;
    }
    seen.insert(ticks);
  }
  EXPECT_EQ(*seen.begin(), 10);
  EXPECT_EQ(*seen.rbegin(), 19);
  EXPECT_EQ(seen.size(), 10u);
}

TEST(RaftPaper, S52_Candidate_WinsOnlyWithAMajorityOfTheWholeGroup) {
  Group g({1, 2, 3, 4, 5});
  g.cut = [](const Message& m) { return m.to.value() > 2 || m.from.value() > 2; };
  g.tick(1, 20);
  g.deliver();
  EXPECT_NE(g[1].role(), Role::leader);
  g.cut = [](const Message& m) { return m.to.value() > 3 || m.from.value() > 3; };
  g.elect(1);
}

TEST(RaftPaper, S52_Voter_GivesOneVoteATermFirstComeFirstServed) {
  Group g({1, 2, 3});
  EXPECT_FALSE(answer(g, vote_request(2, 1, 1, 0, 0)).reject);
  EXPECT_TRUE(answer(g, vote_request(3, 1, 1, 0, 0)).reject);
  EXPECT_FALSE(answer(g, vote_request(2, 1, 1, 0, 0)).reject);  // the same again
}

TEST(RaftPaper, S52_Vote_IsRememberedAcrossACrash) {
  Group g({1, 2, 3});
  EXPECT_FALSE(answer(g, vote_request(2, 1, 1, 0, 0)).reject);
  g.restart(1);
  EXPECT_TRUE(answer(g, vote_request(3, 1, 1, 0, 0)).reject);
}

TEST(RaftPaper, S52_Candidate_FollowsALeaderOfItsOwnTerm) {
  Group g({1, 2, 3});
  g.tick(1, 20);
  Message grant = message(MessageKind::pre_vote_reply, 2, 1, 1);
  g.network.clear();
  ASSERT_TRUE(g.step(grant).has_value());
  ASSERT_EQ(g[1].role(), Role::candidate);
  answer(g, message(MessageKind::heartbeat, 3, 1, 1));
  EXPECT_EQ(g[1].role(), Role::follower);
  EXPECT_EQ(g[1].leader(), R(3));
}

TEST(RaftPaper, S52_SplitVote_IsTriedAgainInANewTerm) {
  Group g({1, 2});
  g.tick(1, 20);
  ASSERT_TRUE(g.step(message(MessageKind::pre_vote_reply, 2, 1, 1)).has_value());
  EXPECT_EQ(g[1].term(), Term(1));
  Message no = message(MessageKind::vote_reply, 2, 1, 1);
  no.reject = true;
  ASSERT_TRUE(g.step(no).has_value());
  EXPECT_EQ(g[1].role(), Role::follower);
  g.network.clear();
  g.elect(1);
  EXPECT_EQ(g[1].term(), Term(2));
}

// ---- 5.3 replication
// ------------------------------------------------------------------------------

TEST(RaftPaper, S53_Entry_CommitsOnceAMajorityHasStoredIt) {
  Group g({1, 2, 3, 4, 5});
  g.elect(1);
  g.cut = [](const Message& m) { return m.to.value() > 2; };
  g.propose(1, "a");
  g.deliver();
  EXPECT_EQ(g[1].commit_index(), Index(1));
  g.cut = [](const Message& m) { return m.to.value() > 3; };
  g.tick(1, 1), g.deliver(), g.tick(1, 1), g.deliver(), g.tick(1, 1), g.deliver();
  EXPECT_EQ(g[1].commit_index(), Index(2));
}

TEST(RaftPaper, S53_LeaderItself_CountsOnlyWhatItHasStored) {
  Group g({1, 2, 3});
  g.elect(1);
  g.hold(1);
  g.isolate(3);
  g.propose(1, "a");
  g.deliver();
  EXPECT_EQ(g[1].commit_index(), Index(1)) << "the leader and replica 2, of which one has stored";
  g.release(1);
  EXPECT_EQ(g[1].commit_index(), Index(2));
}

TEST(RaftPaper, S53_Follower_LearnsTheCommitIndexAndAppliesInOrder) {
  Group g({1, 2, 3});
  g.elect(1);
  for (const char* text : {"a", "b", "c"}) g.propose(1, text);
  g.deliver();
  EXPECT_EQ(g.stored[2].applied, (std::vector<std::string>{"1/2 'a'", "1/3 'b'", "1/4 'c'"}));
}

TEST(RaftPaper, S53_Append_IsRefusedUnlessTheEntryBeforeItMatches) {
  Configuration c = configuration_of({1, 2, 3});
  Group g;
  with_log(g, 1, {1, 2}, 2, c);
  EXPECT_TRUE(answer(g, append(2, 1, 3, 3, 2, {})).reject);
  EXPECT_TRUE(answer(g, append(2, 1, 3, 2, 3, {})).reject);
  EXPECT_FALSE(answer(g, append(2, 1, 3, 2, 2, {})).reject);
}

TEST(RaftPaper, S53_Conflict_DeletesTheEntryAndAllAfterIt) {
  Configuration c = configuration_of({1, 2, 3});
  Group g;
  with_log(g, 1, {1, 2, 2, 2}, 2, c);
  EXPECT_FALSE(answer(g, append(2, 1, 3, 1, 1, {entry(3, 2)})).reject);
  EXPECT_EQ(g[1].log().last(), Index(2));
  EXPECT_EQ(g[1].log().last_term(), Term(3));
  EXPECT_EQ(g.stored[1].state.entries.size(), 2u);
}

TEST(RaftPaper, S53_OldAppendThatMatches_DeletesNothing) {
  Configuration c = configuration_of({1, 2, 3});
  Group g;
  with_log(g, 1, {1, 1, 1}, 1, c);
  Message reply = answer(g, append(2, 1, 1, 0, 0, {entry(1, 1)}));
  EXPECT_EQ(g[1].log().last(), Index(3));
  EXPECT_EQ(reply.index, Index(1)) << "only what the message showed is known to match";
}

TEST(RaftPaper, S53_CommitIndex_StopsAtTheLastEntryOfTheAppend) {
  Configuration c = configuration_of({1, 2, 3});
  Group g;
  with_log(g, 1, {1, 1, 1}, 1, c);  // 2 and 3 may not be the leader's
  answer(g, append(2, 1, 2, 1, 1, {}, 3));
  EXPECT_EQ(g[1].commit_index(), Index(1));
}

TEST(RaftPaper, S53_RepairOfALongDivergence_TakesOneStepATerm) {
  Configuration c = configuration_of({1, 2});
  Group g;
  std::vector<std::uint64_t> leader(400, 1), follower(100, 1);
  for (std::uint64_t t : {2, 3, 4}) follower.insert(follower.end(), 100, t);
  leader.push_back(6);
  with_log(g, 1, leader, 6, c);
  with_log(g, 2, follower, 5, c);
  int refusals = 0;
  g.cut = [&](const Message& m) {
    if (m.kind == MessageKind::append_reply && m.reject) ++refusals;
    return false;
  };
  g.elect(1);
  EXPECT_EQ(g[2].log().last(), g[1].log().last());
  EXPECT_EQ(g[2].commit_index(), g[1].commit_index());
  EXPECT_GE(refusals, 1);
  EXPECT_LE(refusals, 4);
}

// Figure 7: six ways in which a follower's log may differ from a new leader's.
TEST(RaftPaper, S53_Figure7_EveryFollowerComesToHoldTheLeadersLog) {
  const std::vector<std::uint64_t> leader{1, 1, 1, 4, 4, 5, 5, 6, 6, 6};
  const std::vector<std::vector<std::uint64_t>> followers{{1, 1, 1, 4, 4, 5, 5, 6, 6},
                                                          {1, 1, 1, 4},
                                                          {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6},
                                                          {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7},
                                                          {1, 1, 1, 4, 4, 4, 4},
                                                          {1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3}};
  for (const auto& terms : followers) {
    Configuration c = configuration_of({1, 2, 3});
    Group g;
    with_log(g, 1, leader, 8, c);
    with_log(g, 2, terms, 7, c);
    with_log(g, 3, {}, 7, c);  // its vote elects the leader
    g.elect(1);
    for (int i = 0; i < 3; ++i) g.tick(1), g.deliver();
    ASSERT_EQ(g[2].log().last(), g[1].log().last());
    for (Index i(1); i <= g[1].log().last(); i = i.next()) {
      EXPECT_EQ(g[2].log().term_at(i), g[1].log().term_at(i));
    }
  }
}

// ---- 5.4 safety
// -----------------------------------------------------------------------------------

TEST(RaftPaper, S541_Voter_RefusesACandidateWithAnOlderLog) {
  Configuration c = configuration_of({1, 2, 3});
  for (MessageKind kind : {MessageKind::vote, MessageKind::pre_vote}) {
    Group g;
    with_log(g, 1, {1, 2, 2}, 2, c);
    EXPECT_TRUE(answer(g, vote_request(2, 1, 3, 2, 2, kind)).reject);  // shorter
    EXPECT_TRUE(answer(g, vote_request(2, 1, 4, 9, 1, kind)).reject);  // of an older term
    EXPECT_FALSE(answer(g, vote_request(2, 1, 5, 3, 2, kind)).reject);
    EXPECT_FALSE(answer(g, vote_request(2, 1, 6, 1, 3, kind)).reject);
  }
}

// Figure 8: an entry of an old term on a majority is not committed until one of the own term is.
TEST(RaftPaper, S542_Figure8_OldTermEntries_AreNotCommittedByCounting) {
  Configuration c = configuration_of({1, 2, 3});
  Group g;
  with_log(g, 1, {1, 2}, 3, c);
  with_log(g, 2, {1}, 3, c);
  with_log(g, 3, {1}, 3, c);
  // The no-op of the new term never arrives.
  g.cut = [](const Message& m) {
    return m.kind == MessageKind::append && !m.entries.empty() && m.entries.back().index > Index(2);
  };
  g.elect(1);
  Message held = message(MessageKind::append_reply, 2, 1, g[1].term().value());
  held.index = Index(2);
  ASSERT_TRUE(g.step(held).has_value());
  EXPECT_EQ(g[1].commit_index(), Index(0));
  held.index = Index(3);
  ASSERT_TRUE(g.step(held).has_value());
  EXPECT_EQ(g[1].commit_index(), Index(3));
}

// ---- 6 and thesis 4: membership
// --------------------------------------------------------------------

TEST(RaftPaper, T41_SecondChange_IsRefusedUntilTheFirstIsCommitted) {
  Group g({1, 2, 3});
  g.elect(1);
  ASSERT_TRUE(
      g[1].propose_change({ConfigurationChange::Kind::add_learner, R(4), "n4"}).has_value());
  Result<ProposalId> second =
      g[1].propose_change({ConfigurationChange::Kind::add_learner, R(5), "n5"});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Errc::unavailable);
  g.work(1);
  g.deliver();
  EXPECT_TRUE(
      g[1].propose_change({ConfigurationChange::Kind::add_learner, R(5), "n5"}).has_value());
}

TEST(RaftPaper, T41_NewLeader_RefusesChangesUntilItCommitsInItsTerm) {
  Group g({1, 2, 3});
  g.cut = [](const Message& m) { return m.kind == MessageKind::append; };
  g.elect(1);
  Result<ProposalId> early =
      g[1].propose_change({ConfigurationChange::Kind::add_learner, R(4), "n4"});
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().code(), Errc::unavailable);
}

TEST(RaftPaper, T41_Change_IsInForceOnceInTheLog) {
  Group g({1, 2, 3});
  g.elect(1);
  g.cut = [](const Message&) { return true; };
  ASSERT_TRUE(g[1].propose_change({ConfigurationChange::Kind::remove, R(3), ""}).has_value());
  EXPECT_EQ(g[1].membership().current(), configuration_of({1, 2}));
}

TEST(RaftPaper, T421_Learner_CountsNeitherForCommitNorForVotes) {
  Group g({1, 2}, {3});
  g.elect(1);
  g.isolate(2);
  g.propose(1, "a");
  g.deliver();
  EXPECT_EQ(g[1].progress().at(R(3)).match(), Index(2));
  EXPECT_EQ(g[1].commit_index(), Index(1));
  g.tick(3, 60);
  EXPECT_EQ(g[3].role(), Role::follower) << "a learner never stands";
}

TEST(RaftPaper, T422_LeaderThatRemovesItself_DoesNotCountItselfAndLeavesOnCommit) {
  Group g({1, 2, 3});
  g.elect(1);
  g.isolate(3);
  ASSERT_TRUE(g[1].propose_change({ConfigurationChange::Kind::remove, R(1), ""}).has_value());
  g.work(1);
  g.deliver();
  EXPECT_EQ(g[1].role(), Role::leader);
  EXPECT_EQ(g[1].commit_index(), Index(1)) << "one of the two that remain is no majority";
  g.heal();
  for (int i = 0; i < 4; ++i) g.tick(1), g.deliver();
  EXPECT_EQ(g[1].role(), Role::follower);
  EXPECT_EQ(g[1].soft_state().standing, Standing::outside);
  EXPECT_TRUE(g[2].role() == Role::leader || g[3].role() == Role::leader);
  g.tick(1, 60);
  EXPECT_EQ(g[1].role(), Role::follower) << "the removed never stands again";
}

TEST(RaftPaper, T422_ReplicaThatAnUncommittedEntryRemoves_CanStillBeElectedToCommitIt) {
  Group g({1, 2});
  g.elect(1);
  g.cut = [](const Message& m) { return m.to == R(2); };
  ASSERT_TRUE(g[1].propose_change({ConfigurationChange::Kind::remove, R(1), ""}).has_value());
  g.work(1);
  g.deliver();
  g.restart(1);
  g.heal();
  g.tick(2, 20);
  g.deliver();
  EXPECT_NE(g[2].role(), Role::leader) << "its log is older";
  for (int i = 0; i < 60 && g[2].membership().current() != configuration_of({2}); ++i) {
    g.tick(1), g.deliver();
  }
  EXPECT_EQ(g[2].membership().current(), configuration_of({2}));
}

TEST(RaftPaper, T423_RemovedReplica_DisturbsNobody) {
  Group g({1, 2, 3});
  g.elect(1);
  g.isolate(3);
  ASSERT_TRUE(g[1].propose_change({ConfigurationChange::Kind::remove, R(3), ""}).has_value());
  g.work(1);
  g.deliver();
  g.heal();
  Term term = g[1].term();
  for (int i = 0; i < 100; ++i) {
    g.tick(1), g.deliver(), g.tick(3), g.deliver();
  }
  EXPECT_EQ(g[1].role(), Role::leader);
  EXPECT_EQ(g[1].term(), term);
}

TEST(RaftPaper, T423_VoteRequestWhileTheLeaderIsHeard_IsNotEvenAnswered) {
  for (MessageKind kind : {MessageKind::vote, MessageKind::pre_vote}) {
    Group g({1, 2, 3});
    g.elect(1);
    g.tick(1), g.deliver();
    for (std::uint64_t n : {1, 2}) {
      ASSERT_TRUE(g.step(vote_request(3, n, 9, 5, 1, kind)).has_value());
      EXPECT_TRUE(g.network.empty());
      EXPECT_EQ(g[n].term(), Term(1));
    }
    g.tick(2, 10);  // the leader is silent
    EXPECT_FALSE(answer(g, vote_request(3, 2, 9, 5, 1, kind)).reject);
  }
}

TEST(RaftPaper, T423_VoteRequestOfATransfer_IsHeededAtOnce) {
  Group g({1, 2, 3});
  g.elect(1);
  Message m = vote_request(3, 2, 2, 5, 1);
  m.force = true;
  EXPECT_FALSE(answer(g, m).reject);
}

// ---- thesis 3.10, 6.2, 6.4, 9.6
// ---------------------------------------------------------------------

TEST(RaftPaper, T310_Transfer_BringsTheTargetUpToDateAndElectsItAtOnce) {
  Group g({1, 2, 3});
  g.elect(1);
  g.isolate(2);
  g.propose(1, "a");
  g.deliver();
  g.heal();
  ASSERT_TRUE(g[1].transfer_leadership(R(2)).has_value());
  EXPECT_EQ(g[1].propose(payload_of("b")).error().code(), Errc::unavailable);
  for (int i = 0; i < 4 && g[2].role() != Role::leader; ++i) g.tick(1), g.deliver();
  EXPECT_EQ(g[2].role(), Role::leader);
  EXPECT_EQ(g[1].leader(), R(2));
}

TEST(RaftPaper, T310_TransferToASilentReplica_EndsAfterAnElectionTime) {
  Group g({1, 2, 3});
  g.elect(1);
  g.isolate(2);
  ASSERT_TRUE(g[1].transfer_leadership(R(2)).has_value());
  for (int i = 0; i < 10; ++i) g.tick(1), g.deliver();
  EXPECT_EQ(g[1].transfer_target(), std::nullopt);
  EXPECT_TRUE(g[1].propose(payload_of("b")).has_value());
}

TEST(RaftPaper, T62_LeaderWithoutAMajority_StepsDownWithinTwoElectionTimes) {
  Group g({1, 2, 3});
  g.elect(1);
  g.isolate(1);
  for (int i = 0; i < 20; ++i) g.tick(1), g.deliver();
  EXPECT_NE(g[1].role(), Role::leader);
}

TEST(RaftPaper, T62_LeaderWithAMajority_Stays) {
  Group g({1, 2, 3});
  g.elect(1);
  g.isolate(3);
  for (int i = 0; i < 60; ++i) g.tick(1), g.deliver();
  EXPECT_EQ(g[1].role(), Role::leader);
}

TEST(RaftPaper, T64_Read_NeedsARoundBegunAfterTheQuestion) {
  Group g({1, 2, 3});
  g.elect(1);
  g.tick(1);  // heartbeats of an earlier round, still to be answered
  ASSERT_TRUE(g[1].read_index(7).has_value());
  g.cut = [](const Message& m) { return m.kind == MessageKind::heartbeat && m.round >= 1; };
  g.work(1);
  g.deliver();
  EXPECT_TRUE(g.reads[1].empty());
  g.heal();
  g.tick(1);
  g.deliver();
  ASSERT_EQ(g.reads[1].size(), 1u);
  EXPECT_EQ(g.reads[1][0].index, Index(1));
}

TEST(RaftPaper, T64_Read_WaitsForACommitOfTheOwnTerm) {
  Group g({1, 2, 3});
  g.cut = [](const Message& m) { return m.kind == MessageKind::append; };
  g.elect(1);
  ASSERT_TRUE(g[1].read_index(7).has_value());
  for (int i = 0; i < 3; ++i) g.tick(1), g.deliver();
  EXPECT_TRUE(g.reads[1].empty());
  g.heal();
  for (int i = 0; i < 3; ++i) g.tick(1), g.deliver();
  ASSERT_EQ(g.reads[1].size(), 1u);
  EXPECT_EQ(g.reads[1][0].index, Index(1));
}

TEST(RaftPaper, T64_Follower_AsksItsLeader) {
  Group g({1, 2, 3});
  g.elect(1);
  ASSERT_TRUE(g[2].read_index(9).has_value());
  g.work(2);
  g.deliver();
  ASSERT_EQ(g.reads[2].size(), 1u);
  EXPECT_EQ(g.reads[2][0].context, 9u);
  EXPECT_EQ(g.reads[2][0].index, Index(1));
}

TEST(RaftPaper, T64_DeposedLeader_AnswersReadsAsLost) {
  Group g({1, 2, 3});
  g.elect(1);
  g.isolate(1);
  ASSERT_TRUE(g[1].read_index(7).has_value());
  g.work(1);
  g.tick(1, 25);
  ASSERT_EQ(g.reads[1].size(), 1u);
  EXPECT_EQ(g.reads[1][0].index, std::nullopt);
}

TEST(RaftPaper, T96_PreVote_ChangesNoTermOfAReplicaThatIsCutOff) {
  Group g({1, 2, 3});
  g.elect(1);
  Term term = g[1].term();
  g.isolate(3);
  for (int i = 0; i < 100; ++i) g.tick(3), g.deliver();
  EXPECT_EQ(g[3].term(), term);
  g.heal();
  for (int i = 0; i < 5; ++i) g.tick(1), g.deliver();
  EXPECT_EQ(g[1].role(), Role::leader);
  EXPECT_EQ(g[3].leader(), R(1));
}

// ---- 7 snapshots
// ------------------------------------------------------------------------------------

TEST(RaftPaper, S7_SnapshotOlderThanTheLog_IsAnsweredAndNotInstalled) {
  Group g({1, 2, 3});
  g.elect(1);
  for (const char* text : {"a", "b", "c"}) g.propose(1, text);
  g.deliver();
  Message m = message(MessageKind::snapshot_chunk, 1, 2, g[1].term().value());
  auto meta = std::make_shared<SnapshotMeta>(g[1].snapshot_at(g[1].applied_index()));
  meta->index = Index(2);
  meta->size_bytes = 4;
  m.snapshot = meta;
  m.length = 4;
  fill_chunk(m, payload_of("old!"));
  Message reply = answer(g, m);
  EXPECT_EQ(reply.kind, MessageKind::append_reply);
  EXPECT_EQ(reply.index, Index(4));
  EXPECT_FALSE(g[2].installing());
  EXPECT_EQ(g[2].log().last(), Index(4));
}

}  // namespace
}  // namespace narad::raft
