#pragma once
// A few cores in one test, with a network that the test works by hand: nothing moves until it says
// so, and what was sent can be looked at, dropped or kept. Storage is perfect unless hold() delays
// it.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/raft/core.h"
#include "pkg/raft/invariants.h"

namespace narad::raft {

inline ReplicaId R(std::uint64_t n) { return ReplicaId(n); }
inline std::string node_name(std::uint64_t n) { return cat("n", n); }

// A first configuration of `voters` and `learners`, at index 0.
inline Configuration configuration_of(const std::vector<std::uint64_t>& voters,
                                      const std::vector<std::uint64_t>& learners = {}) {
  std::vector<Member> members;
  for (std::uint64_t v : voters) members.push_back({R(v), node_name(v), MemberRole::voter});
  for (std::uint64_t l : learners) members.push_back({R(l), node_name(l), MemberRole::learner});
  return Configuration::make(std::move(members)).value();
}

inline Options options_for(std::uint64_t n) {
  Options o;
  o.self = R(n);
  o.node = node_name(n);
  o.seed = 7 * n + 1;
  o.promote_learners = false;
  return o;
}

inline StartState first_start(const Configuration& c) {
  StartState s;
  s.snapshot.configuration = c;
  return s;
}

// What a replica has stored, as a runner would; also the state machine: a list of texts.
struct Stored {
  StartState state;
  std::string snapshot_bytes;
  std::string staged;
  std::vector<std::string> applied;  // "term/index text" of commands, from the beginning
};

class Group {
 public:
  explicit Group(std::vector<std::uint64_t> voters, std::vector<std::uint64_t> learners = {}) {
    Configuration c = configuration_of(voters, learners);
    for (const Member& m : c.members()) start(m.replica.value(), options_for(m.replica.value()), c);
  }
  Group() = default;

  void start(std::uint64_t n, Options o, const Configuration& c) {
    stored[n].state = first_start(c);
    boot(n, o);
  }
  void boot(std::uint64_t n, Options o) {
    Result<std::unique_ptr<Core>> made = Core::create(std::move(o), stored[n].state);
    ASSERT_TRUE(made.has_value()) << made.error().text();
    cores[n] = std::move(made.value());
    checkers[n] = InvariantChecker();
    waiting.erase(n);
  }
  // A crash: what was not stored is gone.
  void restart(std::uint64_t n) {
    Options o = cores[n]->options();
    boot(n, o);
  }

  Core& operator[](std::uint64_t n) { return *cores.at(n); }

  void hold(std::uint64_t n) { held.insert(n); }
  void release(std::uint64_t n) {
    held.erase(n);
    while (!waiting[n].empty()) {
      Ready r = std::move(waiting[n].front());
      waiting[n].pop_front();
      store(n, std::move(r));
    }
    work(n);
  }

  // Takes and carries out what core n wants done.
  void work(std::uint64_t n) {
    while (cores.at(n)->has_ready()) {
      Ready r = cores.at(n)->take_ready();
      for (Message& m : r.messages_now) post(n, std::move(m));
      r.messages_now.clear();
      if (held.count(n) != 0) {
        waiting[n].push_back(std::move(r));
        continue;
      }
      store(n, std::move(r));
    }
    check(n);
  }
  void tick(std::uint64_t n, int times = 1) {
    for (int i = 0; i < times; ++i) {
      cores.at(n)->tick();
      work(n);
    }
  }
  Result<> step(Message m) {
    std::uint64_t n = m.to.value();
    Result<> done = cores.at(n)->step(std::move(m));
    work(n);
    return done;
  }
  // Delivers everything in flight, and what that causes, but messages that `cut` names.
  void deliver(int rounds_max = 10'000) {
    while (!network.empty() && rounds_max-- > 0) {
      Message m = std::move(network.front());
      network.pop_front();
      bool lost = cores.count(m.to.value()) == 0 || (cut && cut(m));
      if (!lost) {
        Result<> done = step(std::move(m));
        if (!done) complaints.push_back(done.error().text());
      }
    }
    EXPECT_GT(rounds_max, 0) << "the group never comes to rest";
  }
  void isolate(std::uint64_t n) {
    cut = [n](const Message& m) { return m.from == R(n) || m.to == R(n); };
  }
  void heal() { cut = nullptr; }

  // Makes n the leader by its election time running out.
  void elect(std::uint64_t n) {
    for (int i = 0; i < 60 && cores.at(n)->role() != Role::leader; ++i) {
      tick(n);
      deliver();
    }
    EXPECT_EQ(cores.at(n)->role(), Role::leader);
  }
  ProposalId propose(std::uint64_t n, std::string_view text) {
    Result<ProposalId> id = cores.at(n)->propose(payload_of(text));
    EXPECT_TRUE(id.has_value());
    work(n);
    return id ? id.value() : ProposalId();
  }
  // A snapshot of what n has applied, and compaction of its log.
  void snapshot(std::uint64_t n, std::uint64_t keep = 0) {
    Core& c = *cores.at(n);
    SnapshotMeta s = c.snapshot_at(c.applied_index());
    std::string bytes;
    for (const std::string& line : stored[n].applied) bytes += line + "\n";
    s.size_bytes = bytes.size();
    s.checksum = xxh3(as_bytes(bytes), 0);
    Result<Core::LogBase> base = c.compact(s, keep);
    ASSERT_TRUE(base.has_value()) << base.error().text();
    StartState& st = stored[n].state;
    while (!st.entries.empty() && st.entries.front().index <= base.value().index) {
      st.entries.erase(st.entries.begin());
    }
    st.log_base = base.value().index;
    st.log_base_term = base.value().term;
    st.snapshot = s;
    stored[n].snapshot_bytes = bytes;
  }

  // Messages in flight of one kind.
  std::vector<Message> sent(MessageKind kind) const {
    std::vector<Message> out;
    for (const Message& m : network) {
      if (m.kind == kind) out.push_back(m);
    }
    return out;
  }

  std::map<std::uint64_t, std::unique_ptr<Core>> cores;
  std::map<std::uint64_t, Stored> stored;
  std::map<std::uint64_t, InvariantChecker> checkers;
  std::deque<Message> network;
  std::function<bool(const Message&)> cut;
  std::set<std::uint64_t> held;
  std::map<std::uint64_t, std::deque<Ready>> waiting;
  std::vector<std::string> complaints;
  std::map<std::uint64_t, std::vector<ReadResult>> reads;
  std::map<std::uint64_t, std::vector<ProposalId>> unknown;
  bool damage_snapshots = false;

 private:
  void post(std::uint64_t n, Message m) {
    if (m.kind == MessageKind::snapshot_chunk) {
      const std::string& all = stored[n].snapshot_bytes;
      fill_chunk(m, payload_of(std::string_view(all).substr(m.offset, m.length)));
    }
    network.push_back(std::move(m));
  }
  void store(std::uint64_t n, Ready r) {
    Stored& s = stored[n];
    Core& c = *cores.at(n);
    if (r.hard_state) s.state.hard_state = *r.hard_state;
    auto& log = s.state.entries;
    if (!r.entries.empty()) {
      while (!log.empty() && log.back().index >= r.entries.front().index) log.pop_back();
      log.insert(log.end(), r.entries.begin(), r.entries.end());
    }
    for (const SnapshotWrite& w : r.snapshot_writes) {
      if (w.offset == 0) s.staged.clear();
      s.staged += as_chars(*w.bytes);
    }
    c.persisted(r.id);
    for (Message& m : r.messages) post(n, std::move(m));
    for (const Entry& e : r.committed) {
      if (e.kind == EntryKind::command) s.applied.push_back(describe(e));
      s.state.applied = e.index;
    }
    if (!r.committed.empty()) c.applied(r.committed.back().index);
    if (r.install) install(n, *r.install);
    for (ReadResult& read : r.reads) reads[n].push_back(read);
    for (ProposalId& id : r.unknown) unknown[n].push_back(id);
  }
  void install(std::uint64_t n, const SnapshotMeta& meta) {
    Stored& s = stored[n];
    bool whole = xxh3(as_bytes(s.staged), 0) == meta.checksum && !damage_snapshots;
    damage_snapshots = false;
    if (whole) {
      s.state = StartState{s.state.hard_state, meta, meta.index, meta.term, {}, meta.index};
      s.snapshot_bytes = s.staged;
      s.applied.clear();
      std::string_view text = s.staged;
      while (!text.empty()) {
        std::size_t end = text.find('\n');
        s.applied.emplace_back(text.substr(0, end));
        text.remove_prefix(end + 1);
      }
    }
    cores.at(n)->snapshot_done(whole);
  }
  void check(std::uint64_t n) {
    std::optional<std::string> bad = checkers[n].check(*cores.at(n));
    EXPECT_FALSE(bad) << "replica " << n << ": " << bad.value_or("");
  }
};

}  // namespace narad::raft
