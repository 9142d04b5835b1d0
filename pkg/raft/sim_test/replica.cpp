#include "pkg/raft/sim_test/replica.h"

#include <algorithm>

#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad::raft::simtest {

std::string snapshot_text(Index index, std::uint64_t state) {
  std::string out = cat(index, " ", state, " ");
  out.append(20 + state % 60, static_cast<char>('a' + state % 26));
  return out;
}

namespace {
std::uint64_t state_in(std::string_view text) {
  std::size_t a = text.find(' ');
  std::size_t b = text.find(' ', a + 1);
  return parse_number<std::uint64_t>(text.substr(a + 1, b - a - 1)).value_or(0);
}
}  // namespace

Replica::Replica(Options options, StartState first, Oracle& oracle, Counters& counters)
    : options_(std::move(options)), oracle_(oracle), counters_(counters) {
  disk_.state = std::move(first);
}

Replica::Finding Replica::boot() {
  options_.seed += 1;
  Result<std::unique_ptr<Core>> made = Core::create(options_, disk_.state);
  if (!made) return made.error().text();
  core_ = std::move(made.value());
  checker_ = InvariantChecker();
  applied_ = disk_.state.applied;
  state_ = disk_.applied_state;
  return std::nullopt;
}

void Replica::crash(Rng& rng) {
  counters_.hit("crash");
  std::uint64_t kept = rng.below(writes_.size() + 1);
  if (kept < writes_.size()) counters_.hit("unsynced writes lost", writes_.size() - kept);
  for (std::uint64_t i = 0; i < kept; ++i) (void)write(writes_[i]);
  writes_.clear();
  core_.reset();
  reads_asked.clear();
  proposed.clear();
}

void Replica::post(Message m, const Sender& send) const {
  if (m.kind == MessageKind::snapshot_chunk) {
    auto file = disk_.snapshots.find(m.snapshot->index);
    if (file == disk_.snapshots.end()) return;
    fill_chunk(m, payload_of(std::string_view(file->second).substr(m.offset, m.length)));
  }
  send(std::move(m));
}

Replica::Finding Replica::collect(const Sender& send) {
  while (core_->has_ready()) {
    Ready r = core_->take_ready();
    for (Message& m : r.messages_now) post(std::move(m), send);
    r.messages_now.clear();
    const Log& log = core_->log();
    for (const Entry& e : r.entries) {
      if (Finding f = oracle_.in_log(e, log.term_at(before(e.index)).value())) return f;
    }
    if (Finding f = answers(r)) return f;
    r.reads.clear();
    bool nothing = !r.hard_state && r.entries.empty() && r.snapshot_writes.empty() && !r.install &&
                   r.messages.empty() && r.committed.empty();
    if (r.soft_state && r.soft_state->role == Role::leader) counters_.hit("elected");
    if (nothing && writes_.empty()) {
      core_->persisted(r.id);
    } else {
      writes_.push_back(std::move(r));
    }
  }
  if (Finding f = checker_.check(*core_)) return cat("replica ", options_.self, ": ", *f);
  return oracle_.looked_at(*core_);
}

Replica::Finding Replica::answers(const Ready& r) {
  for (const ReadResult& read : r.reads) {
    auto asked = reads_asked.find(read.context);
    if (asked == reads_asked.end()) continue;  // a doubled answer
    if (read.index) counters_.hit("read answered");
    if (read.index && *read.index < asked->second) {
      return cat("stale read: replica ", options_.self, " was told ", *read.index, " when ",
                 asked->second, " was committed");
    }
    reads_asked.erase(asked);
  }
  for (const ProposalId& id : r.unknown) {
    if (proposed.erase(id) != 0) counters_.hit("outcome unknown");
  }
  return std::nullopt;
}

Replica::Finding Replica::store_one(const Sender& send) {
  Ready r = std::move(writes_.front());
  writes_.pop_front();
  if (Finding f = write(r)) return f;
  core_->persisted(r.id);
  for (Message& m : r.messages) post(std::move(m), send);
  if (Finding f = apply(r.committed)) return f;
  if (r.install) {
    if (Finding f = install(*r.install)) return f;
  }
  return collect(send);
}

Replica::Finding Replica::write(const Ready& r) {
  StartState& s = disk_.state;
  if (r.hard_state) s.hard_state = *r.hard_state;
  if (!r.entries.empty()) {
    Index from = r.entries.front().index;
    while (!s.entries.empty() && s.entries.back().index >= from) s.entries.pop_back();
    if (s.log_base.plus(s.entries.size()).next() != from) return "a hole in the stored log";
    s.entries.insert(s.entries.end(), r.entries.begin(), r.entries.end());
  }
  for (const SnapshotWrite& w : r.snapshot_writes) {
    if (w.offset == 0) disk_.staged.clear();
    if (w.offset != disk_.staged.size()) return "a hole in a staged snapshot";
    disk_.staged += as_chars(*w.bytes);
  }
  return std::nullopt;
}

Replica::Finding Replica::apply(const std::vector<Entry>& entries) {
  if (entries.empty()) return std::nullopt;
  for (const Entry& e : entries) {
    if (e.index != applied_.next()) return cat("replica ", options_.self, " skips to ", e.index);
    state_ = fold(state_, e);
    applied_ = e.index;
    if (Finding f = oracle_.applied(options_.self, core_->term(), e, state_)) return f;
    auto own = proposed.find({e.index, e.term});
    if (own == proposed.end()) continue;
    counters_.hit("proposal done");
    if (Finding f = oracle_.done(own->first, own->second)) return f;
    proposed.erase(own);
  }
  // The applied state reaches the disk now and then.
  if (disk_rng.one_in(4)) {
    disk_.state.applied = applied_;
    disk_.applied_state = state_;
  }
  core_->applied(applied_);
  return std::nullopt;
}

Replica::Finding Replica::install(const SnapshotMeta& meta) {
  std::string bytes = disk_.staged;
  if (disk_rng.one_in(damage_one_in)) bytes[bytes.size() / 2] ^= 1;
  if (bytes.size() != meta.size_bytes || xxh3(as_bytes(bytes), 0) != meta.checksum) {
    counters_.hit("damaged snapshot refused");
    core_->snapshot_done(false);
    return std::nullopt;
  }
  StartState& s = disk_.state;
  s = StartState{s.hard_state, meta, meta.index, meta.term, {}, meta.index};
  disk_.snapshots.clear();
  disk_.snapshots[meta.index] = bytes;
  disk_.applied_state = state_ = state_in(bytes);
  if (meta.index < applied_) return cat("replica ", options_.self, " was set back to ", meta.index);
  applied_ = meta.index;
  counters_.hit("snapshot installed");
  core_->snapshot_done(true);
  std::erase_if(proposed, [&](const auto& p) { return p.first.index <= meta.index; });
  return oracle_.installed(options_.self, meta.index, state_);
}

// A snapshot needs the applied state durable; then the log may go.
void Replica::snapshot(std::uint64_t keep_entries) {
  if (applied_ != core_->applied_index() || applied_ <= core_->snapshot().index) return;
  SnapshotMeta meta = core_->snapshot_at(applied_);
  std::string text = snapshot_text(applied_, state_);
  meta.size_bytes = text.size();
  meta.checksum = xxh3(as_bytes(text), 0);
  Result<Core::LogBase> base = core_->compact(meta, keep_entries);
  if (!base) return;
  counters_.hit("compacted");
  StartState& s = disk_.state;
  s.applied = applied_;
  disk_.applied_state = state_;
  s.snapshot = meta;
  disk_.snapshots[meta.index] = text;
  std::vector<SnapshotMeta> used = core_->snapshots_in_use();
  std::erase_if(disk_.snapshots, [&](const auto& file) {
    bool sent = std::any_of(used.begin(), used.end(),
                            [&](const SnapshotMeta& u) { return u.index == file.first; });
    return file.first != meta.index && !sent;
  });
  std::uint64_t drop =
      std::min<std::uint64_t>(base.value().index.minus(s.log_base), s.entries.size());
  s.entries.erase(s.entries.begin(), s.entries.begin() + static_cast<std::ptrdiff_t>(drop));
  s.log_base = base.value().index;
  s.log_base_term = base.value().term;
}

}  // namespace narad::raft::simtest
