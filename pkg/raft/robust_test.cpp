// Messages that no honest peer would send: they may be refused, or stop the replica with an error,
// and never trip an assert or break an invariant.
#include "pkg/raft/test_group.h"

namespace narad::raft {
namespace {

class Liar {
 public:
  explicit Liar(std::uint64_t seed) : state_(seed) {}

  Message message(std::uint64_t to) {
    Message m;
    m.kind = static_cast<MessageKind>(1 + below(13));
    m.from = R(1 + below(4));
    m.to = R(to);
    m.term = Term(below(4) == 0 ? below(40) : term_);
    if (below(20) == 0) m.term = Term(++term_);
    m.index = index();
    m.log_term = Term(below(term_ + 1));
    m.commit = index();
    m.reject = below(3) == 0;
    m.force = below(3) == 0;
    m.hint = index();
    m.hint_term = Term(below(10));
    m.round = below(5);
    m.context = below(5);
    m.snapshot_index = index();
    m.offset = below(20);
    m.next_offset = below(20);
    if (m.kind == MessageKind::append) add_entries(m);
    if (m.kind == MessageKind::snapshot_chunk) add_chunk(m);
    return m;
  }
  std::uint64_t below(std::uint64_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return (state_ >> 33) % n;
  }

 private:
  Index index() {
    std::uint64_t dice = below(30);
    if (dice == 0) return Index(~std::uint64_t{0});
    return Index(below(12));
  }
  void add_entries(Message& m) {
    std::uint64_t term = m.log_term.value();
    for (std::uint64_t i = 1, n = below(4); i <= n; ++i) {
      term = std::min(m.term.value(), term + below(2));
      Entry e{m.index.plus(i), Term(term), EntryKind::command, payload_of("x")};
      if (below(5) == 0) {
        e.kind = EntryKind::configuration;
        Configuration c = configuration_of({1, 2 + below(3)}, {5 + below(3)});
        e.payload = std::make_shared<const Bytes>(c.encode());
      }
      m.entries.push_back(e);
    }
  }
  void add_chunk(Message& m) {
    auto s = std::make_shared<SnapshotMeta>();
    s->index = index();
    s->term = Term(1 + below(3));
    s->configuration = configuration_of({1, 2, 3});
    s->size_bytes = below(3) * 4;
    m.offset = below(3) * 4;
    m.length = s->size_bytes > m.offset ? 4 : 0;
    m.snapshot = s;
    fill_chunk(m, payload_of(std::string(m.length, 'x')));
    if (below(8) == 0) m.chunk_checksum ^= 1;
  }
  std::uint64_t state_;
  std::uint64_t term_ = 1;
};

TEST(RaftRobustness, LyingPeers_AreRefusedOrStopTheReplicaAndNeverCrashIt) {
  int stopped = 0, led = 0, installed = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Liar liar(seed);
    // A third of the replicas are their only voter, and lead.
    Configuration c =
        seed % 3 == 0 ? configuration_of({1}, {2, 3, 4}) : configuration_of({1, 2, 3}, {4});
    auto core = Core::create(options_for(1), first_start(c)).value();
    if (seed % 3 == 0) {
      for (int i = 0; i < 20; ++i) core->tick();
      core->persisted(core->take_ready().id);
    }
    InvariantChecker checker;
    for (int step = 0; step < 400 && !core->fault(); ++step) {
      std::uint64_t dice = liar.below(12);
      if (dice == 0) core->tick();
      if (dice == 1) (void)core->propose(payload_of("p"));
      if (dice == 2) (void)core->read_index(step);
      if (dice == 3) (void)core->transfer_leadership(R(1 + liar.below(4)));
      if (dice == 4) {
        auto kind = static_cast<ConfigurationChange::Kind>(liar.below(4));
        (void)core->propose_change({kind, R(1 + liar.below(6)), node_name(liar.below(6))});
      }
      if (dice > 4) (void)core->step(liar.message(1));
      led += core->role() == Role::leader;
      if (core->fault() || liar.below(3) == 0) continue;
      Ready r = core->take_ready();
      if (liar.below(4) != 0) core->persisted(r.id);
      if (!r.committed.empty()) core->applied(r.committed.back().index);
      if (core->installing() && core->handed_index() == core->applied_index() && r.install) {
        ++installed;
        core->snapshot_done(liar.below(3) != 0);
      }
      std::optional<std::string> bad = checker.check(*core);
      ASSERT_FALSE(bad) << "seed " << seed << ": " << *bad;
    }
    stopped += core->fault().has_value();
  }
  // All of it was reached.
  EXPECT_GT(stopped, 0);
  EXPECT_GT(led, 0);
  EXPECT_GT(installed, 0);
}

}  // namespace
}  // namespace narad::raft
