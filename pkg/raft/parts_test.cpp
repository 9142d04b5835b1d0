// The parts with an algebra of their own: quorum, configuration, log, membership, progress.
#include <gtest/gtest.h>

#include <algorithm>

#include "pkg/raft/log.h"
#include "pkg/raft/membership.h"
#include "pkg/raft/progress.h"
#include "pkg/raft/quorum.h"
#include "pkg/raft/reads.h"
#include "pkg/raft/test_group.h"

namespace narad::raft {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return (state_ >> 33) % n;
  }

 private:
  std::uint64_t state_;
};

// ---- quorum -------------------------------------------------------------------------------------

TEST(RaftQuorum, Agreed_IsTheHighestValueOfAMajority) {
  Dice dice(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<ReplicaId> voters;
    std::map<ReplicaId, std::uint64_t> values;
    for (std::uint64_t v = 1; v <= 1 + dice.below(7); ++v) {
      voters.push_back(R(v));
      values[R(v)] = dice.below(6);
    }
    std::uint64_t best = 0;  // by definition
    for (std::uint64_t x = 0; x < 6; ++x) {
      auto reached =
          std::count_if(voters.begin(), voters.end(), [&](ReplicaId v) { return values[v] >= x; });
      if (2 * static_cast<std::size_t>(reached) > voters.size()) best = x;
    }
    EXPECT_EQ(agreed(voters, [&](ReplicaId v) { return values[v]; }), best);
  }
}

TEST(RaftQuorum, NoVoters_AgreeOnNothing) {
  EXPECT_EQ(agreed({}, [](ReplicaId) { return 1; }), std::nullopt);
  EXPECT_EQ(tally({}, {{R(1), true}}), Tally::lost);
}

TEST(RaftQuorum, Tally_IsDecidedExactlyWhenNoOpenVoteCanChangeIt) {
  // All outcomes of up to five voters: unasked, yes, no; and a stranger that says yes.
  for (std::size_t n = 1; n <= 5; ++n) {
    std::vector<ReplicaId> voters;
    for (std::uint64_t v = 1; v <= n; ++v) voters.push_back(R(v));
    std::size_t cases = 1;
    for (std::size_t i = 0; i < n; ++i) cases *= 3;
    for (std::size_t code = 0; code < cases; ++code) {
      std::map<ReplicaId, bool> votes{{R(99), true}};
      std::size_t yes = 0, open = 0;
      std::size_t rest = code;
      for (std::size_t i = 0; i < n; ++i, rest /= 3) {
        if (rest % 3 == 0) ++open;
        if (rest % 3 == 1) ++yes;
        if (rest % 3 != 0) votes[voters[i]] = rest % 3 == 1;
      }
      Tally expected = 2 * yes > n ? Tally::won : 2 * (yes + open) > n ? Tally::open : Tally::lost;
      EXPECT_EQ(tally(voters, votes), expected) << n << " voters, case " << code;
    }
  }
}

TEST(RaftQuorum, MajoritiesOfNeighbouringConfigurations_AlwaysMeet) {
  // What makes one change at a time safe (thesis 4.1): every pair of majorities shares a voter.
  Configuration c = configuration_of({1, 2, 3}, {4, 5});
  auto meets = [](const Configuration& a, const Configuration& b) {
    auto va = a.voters(), vb = b.voters();
    for (unsigned x = 0; x < 1u << va.size(); ++x) {
      for (unsigned y = 0; y < 1u << vb.size(); ++y) {
        std::set<ReplicaId> both;
        std::size_t nx = 0, ny = 0;
        for (std::size_t i = 0; i < va.size(); ++i) {
          if (x >> i & 1) both.insert(va[i]), ++nx;
        }
        bool shared = false;
        for (std::size_t i = 0; i < vb.size(); ++i) {
          if (y >> i & 1) shared = shared || both.count(vb[i]) != 0, ++ny;
        }
        if (nx >= majority(va.size()) && ny >= majority(vb.size()) && !shared) return false;
      }
    }
    return true;
  };
  using Kind = ConfigurationChange::Kind;
  Dice dice(3);
  std::uint64_t fresh = 6;
  for (int step = 0; step < 300; ++step) {
    std::uint64_t pick = c.members()[dice.below(c.members().size())].replica.value();
    std::uint64_t kind = dice.below(4);
    ConfigurationChange change{static_cast<Kind>(kind), R(pick), ""};
    if (kind == 0) {
      // A newcomer, or one that replaces a member of the same node.
      std::string node = dice.below(2) == 0 ? c.find(R(pick))->node : node_name(fresh % 7 + 20);
      change = {Kind::add_learner, R(fresh++), node};
    }
    Result<Configuration> next = apply(c, change);
    if (!next || next.value().voter_count() > 6) continue;
    EXPECT_TRUE(meets(c, next.value())) << describe(c) << " to " << describe(next.value());
    c = next.value();
  }
}

// ---- configuration
// --------------------------------------------------------------------------------

TEST(RaftConfiguration, StoredForm_ReadsBackTheSame) {
  Configuration c = configuration_of({1, 2, 0xfedcba9876543210}, {7});
  EXPECT_EQ(Configuration::decode(c.encode()).value(), c);
  EXPECT_EQ(Configuration::decode(Configuration().encode()).value(), Configuration());
}

TEST(RaftConfiguration, StoredFormOfVersionOne_IsFixed) {
  EXPECT_EQ(to_hex(configuration_of({2}, {1}).encode()),
            "01"
            "02000000"
            "0100000000000000"
            "00"
            "02"
            "6e31"
            "0200000000000000"
            "01"
            "02"
            "6e32");
}

TEST(RaftConfiguration, EveryCutAndEveryFlippedBit_IsRefusedOrAnotherValue) {
  Bytes good = configuration_of({1, 2}, {3}).encode();
  for (std::size_t n = 0; n < good.size(); ++n) {
    Result<Configuration> cut = Configuration::decode(ByteView(good).first(n));
    ASSERT_FALSE(cut.has_value()) << n;
    EXPECT_EQ(cut.error().code(), Errc::data_loss);
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[n] ^= static_cast<std::byte>(1 << bit);
      Result<Configuration> flipped = Configuration::decode(bad);
      if (flipped) EXPECT_NE(flipped.value(), configuration_of({1, 2}, {3}));
    }
  }
  good.push_back(std::byte{0});
  EXPECT_FALSE(Configuration::decode(good).has_value());
}

TEST(RaftConfiguration, SenselessMembers_AreRefused) {
  auto make = [](std::vector<Member> m) { return Configuration::make(std::move(m)).has_value(); };
  EXPECT_FALSE(make({{R(0), "a", MemberRole::voter}}));
  EXPECT_FALSE(make({{R(1), "a", MemberRole::voter}, {R(1), "b", MemberRole::voter}}));
  EXPECT_FALSE(make({{R(1), "a", MemberRole::voter}, {R(2), "a", MemberRole::voter}}));
  EXPECT_FALSE(make({{R(1), "", MemberRole::voter}}));
  EXPECT_FALSE(make({{R(1), std::string(256, 'a'), MemberRole::voter}}));
}

TEST(RaftConfiguration, EachStep_DoesWhatItSaysOrSaysWhyNot) {
  using Kind = ConfigurationChange::Kind;
  Configuration c = configuration_of({1, 2}, {3});
  EXPECT_EQ(apply(c, {Kind::promote, R(3), ""}).value(), configuration_of({1, 2, 3}));
  EXPECT_EQ(apply(c, {Kind::demote, R(2), ""}).value(), configuration_of({1}, {2, 3}));
  EXPECT_EQ(apply(c, {Kind::remove, R(3), ""}).value(), configuration_of({1, 2}));
  EXPECT_EQ(apply(c, {Kind::add_learner, R(4), "n4"}).value(), configuration_of({1, 2}, {3, 4}));
  EXPECT_EQ(apply(c, {Kind::promote, R(2), ""}).error().code(), Errc::exists);
  EXPECT_EQ(apply(c, {Kind::demote, R(3), ""}).error().code(), Errc::exists);
  EXPECT_EQ(apply(c, {Kind::remove, R(9), ""}).error().code(), Errc::not_found);
  EXPECT_EQ(apply(c, {Kind::add_learner, R(1), "n9"}).error().code(), Errc::exists);
  EXPECT_EQ(apply(configuration_of({1}, {2}), {Kind::remove, R(1), ""}).error().code(),
            Errc::conflict);
}

TEST(RaftConfiguration, EmptiedDisk_ReplacesItsOldReplicaAsALearner) {
  Configuration c =
      apply(configuration_of({1, 2, 3}), {ConfigurationChange::Kind::add_learner, R(33), "n3"})
          .value();
  EXPECT_EQ(c.find(R(3)), nullptr);
  EXPECT_EQ(c.find(R(33))->role, MemberRole::learner);
  EXPECT_EQ(c.voter_count(), 2u);
}

TEST(RaftConfiguration, Promotion_KeepsTheNumberOfVotersOdd) {
  EXPECT_EQ(next_promotion(configuration_of({1}, {2}), {R(2)}, 5), R(0));
  EXPECT_EQ(next_promotion(configuration_of({1}, {2, 3}), {R(2), R(3)}, 5), R(2));
  EXPECT_EQ(next_promotion(configuration_of({1, 2}, {3}), {R(3)}, 5), R(3));
  EXPECT_EQ(next_promotion(configuration_of({1, 2}, {3}), {}, 5), R(0));
  EXPECT_EQ(next_promotion(configuration_of({1, 2, 3}, {4}), {R(4)}, 5), R(0));
  EXPECT_EQ(next_promotion(configuration_of({1, 2, 3, 4, 5}, {6, 7}), {R(6), R(7)}, 5), R(0));
}

// ---- log and membership
// ---------------------------------------------------------------------------

Log log_of(const std::vector<std::uint64_t>& terms) {
  Log log{Index(0), Term(0)};
  for (std::uint64_t t : terms) {
    log.append({log.last().next(), Term(t), EntryKind::command, payload_of("x")});
  }
  return log;
}

TEST(RaftLog, UpToDate_ComparesTermThenLength) {
  Log log = log_of({1, 2, 2});
  EXPECT_TRUE(log.is_up_to_date(Index(3), Term(2)));
  EXPECT_TRUE(log.is_up_to_date(Index(1), Term(3)));
  EXPECT_FALSE(log.is_up_to_date(Index(2), Term(2)));
  EXPECT_FALSE(log.is_up_to_date(Index(9), Term(1)));
}

TEST(RaftLog, LastAtOrBelow_SkipsWholeTerms) {
  Log log = log_of({1, 1, 3, 3, 3, 5});
  EXPECT_EQ(log.last_at_or_below(Index(6), Term(4)), Index(5));
  EXPECT_EQ(log.last_at_or_below(Index(5), Term(2)), Index(2));
  EXPECT_EQ(log.last_at_or_below(Index(4), Term(3)), Index(4));
  EXPECT_EQ(log.last_at_or_below(Index(99), Term(9)), Index(6));
  EXPECT_EQ(log.last_at_or_below(Index(5), Term(0)), Index(0));
}

TEST(RaftLog, Compaction_KeepsTermsFromTheBaseOn) {
  Log log = log_of({1, 2, 3, 4});
  log.set_stable(Index(4));
  log.compact(Index(2));
  EXPECT_EQ(log.term_at(Index(1)), std::nullopt);
  EXPECT_EQ(log.term_at(Index(2)), Term(2));
  EXPECT_EQ(log.at(Index(3)).term, Term(3));
  EXPECT_EQ(log.last(), Index(4));
  std::uint64_t bytes = log.bytes();
  log.truncate_from(Index(4));
  EXPECT_EQ(log.stable(), Index(3));
  EXPECT_LT(log.bytes(), bytes);
  log.reset(Index(9), Term(7));
  EXPECT_EQ(log.bytes(), 0u);
  EXPECT_EQ(log.last_term(), Term(7));
}

TEST(RaftLog, Slice_FitsTheBytesButNeverIsEmpty) {
  Log log = log_of({1, 1, 1, 1});
  std::uint64_t one = log.at(Index(1)).bytes();
  EXPECT_EQ(log.slice(Index(1), Index(4), 2 * one).size(), 2u);
  EXPECT_EQ(log.slice(Index(2), Index(3), 100 * one).size(), 2u);
  EXPECT_EQ(log.slice(Index(3), Index(4), 1).size(), 1u);
  EXPECT_TRUE(log.slice(Index(5), Index(9), 100).empty());
}

TEST(RaftMembership, TruncatedEntry_GivesTheConfigurationBeforeItBack) {
  Membership m(Index(0), configuration_of({1}));
  m.append(Index(3), configuration_of({1, 2}));
  m.append(Index(5), configuration_of({1, 2, 3}));
  EXPECT_EQ(m.at(Index(4)), configuration_of({1, 2}));
  EXPECT_TRUE(m.truncate_from(Index(5)));
  EXPECT_EQ(m.current(), configuration_of({1, 2}));
  EXPECT_EQ(m.voters().size(), 2u);
  EXPECT_FALSE(m.truncate_from(Index(4)));
  m.forget_below(Index(4));
  EXPECT_EQ(m.at(Index(4)), configuration_of({1, 2}));
  EXPECT_EQ(m.standing_of(R(2), "n2"), Standing::voter);
  EXPECT_EQ(m.standing_of(R(22), "n2"), Standing::replaced);
  EXPECT_EQ(m.standing_of(R(9), "n9"), Standing::outside);
}

TEST(RaftReads, OneRound_ServesAllThatWait) {
  Reads reads;
  reads.add({R(1), 10});
  reads.add({R(2), 20});
  std::uint64_t first = reads.begin_round(Index(5));
  reads.add({R(1), 30});
  EXPECT_TRUE(reads.confirm(first - 1).empty());
  auto answers = reads.confirm(first);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1].index, Index(5));
  EXPECT_TRUE(reads.has_unasked());
  EXPECT_EQ(reads.drop().size(), 1u);
  EXPECT_TRUE(reads.empty());
}

// ---- progress
// -------------------------------------------------------------------------------------

constexpr FlowLimits kLimits{100, 3};

Progress replicating(std::uint64_t match) {
  Progress p{Index(match + 1)};
  p.matched(Index(match));
  return p;
}

TEST(RaftProgress, Probe_SendsOneAppendUntilItIsAnswered) {
  Progress p{Index(5)};
  EXPECT_TRUE(p.may_append(kLimits));
  p.sent(Index(7), 10);
  EXPECT_FALSE(p.may_append(kLimits));
  EXPECT_EQ(p.next(), Index(5));
  EXPECT_TRUE(p.matched(Index(7)));
  EXPECT_EQ(p.state(), Progress::State::replicate);
  EXPECT_EQ(p.next(), Index(8));
}

TEST(RaftProgress, Replicate_IsBoundedInBytesAndInMessages) {
  Progress p = replicating(0);
  p.sent(Index(1), 60);
  EXPECT_TRUE(p.may_append(kLimits));
  p.sent(Index(2), 60);
  EXPECT_FALSE(p.may_append(kLimits));  // bytes
  p.matched(Index(2));
  for (std::uint64_t i = 3; i <= 5; ++i) {
    EXPECT_TRUE(p.may_append(kLimits));
    p.sent(Index(i), 1);
  }
  EXPECT_FALSE(p.may_append(kLimits));  // messages
  p.matched(Index(4));
  EXPECT_EQ(p.inflight_bytes(), 1u);
}

TEST(RaftProgress, OversizedEntry_GoesAlone) {
  Progress p = replicating(0);
  EXPECT_TRUE(p.may_append(kLimits));
  p.sent(Index(1), 5000);
  EXPECT_FALSE(p.may_append(kLimits));
  p.matched(Index(1));
  EXPECT_TRUE(p.may_append(kLimits));
}

TEST(RaftProgress, StaleRefusal_IsIgnored) {
  Progress p = replicating(5);
  EXPECT_FALSE(p.refused(Index(4), Index(2)));
  Progress probing{Index(9)};
  EXPECT_FALSE(probing.refused(Index(7), Index(2)));
  EXPECT_TRUE(probing.refused(Index(8), Index(2)));
  EXPECT_EQ(probing.next(), Index(3));
}

TEST(RaftProgress, LostAppend_IsNoticedByHeartbeats) {
  Progress p = replicating(0);
  p.sent(Index(3), 10);
  EXPECT_FALSE(p.heard(Index(0)));
  EXPECT_TRUE(p.heard(Index(0)));
  EXPECT_EQ(p.state(), Progress::State::probe);
  EXPECT_EQ(p.next(), Index(1));
}

TEST(RaftProgress, SlowDisk_IsNotTakenForLoss) {
  Progress p = replicating(0);
  p.sent(Index(3), 10);
  for (int beat = 0; beat < 15; ++beat) EXPECT_FALSE(p.heard(Index(3))) << beat;
}

TEST(RaftProgress, Chunks_GoOneAtATimeAndResumeWhereTheReceiverIs) {
  auto meta = std::make_shared<SnapshotMeta>();
  meta->index = Index(9);
  meta->size_bytes = 100;
  Progress p{Index(1)};
  p.become_snapshot(meta);
  EXPECT_FALSE(p.may_append(kLimits));
  EXPECT_TRUE(p.chunk_answered(0, 60));   // the receiver had the beginning
  EXPECT_FALSE(p.chunk_answered(0, 30));  // a doubled answer
  EXPECT_EQ(p.snapshot_offset(), 60u);
  EXPECT_FALSE(p.chunk_answered(60, 60));  // damaged on the way: the heartbeat sends it again
  EXPECT_FALSE(p.heard(Index(0)));
  EXPECT_TRUE(p.heard(Index(0)));
  EXPECT_TRUE(p.chunk_answered(60, 0));    // the receiver lost all of it
  EXPECT_FALSE(p.chunk_answered(0, 101));  // nonsense
  EXPECT_FALSE(p.chunk_answered(0, 100));  // whole: nothing more to send
  p.matched(Index(9));
  p.leave_snapshot();
  EXPECT_EQ(p.next(), Index(10));
}

}  // namespace
}  // namespace narad::raft
