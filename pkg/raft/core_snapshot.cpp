// Snapshots: compaction, sending one in chunks, receiving and installing one (Raft paper 7).
#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/raft/core.h"

namespace narad::raft {

SnapshotMeta Core::snapshot_at(Index index) const {
  NARAD_ASSERT(index == applied_, "a snapshot is of the applied state");
  SnapshotMeta s;
  s.index = index;
  s.term = *log_.term_at(index);
  s.configuration = members_.at(index);
  return s;
}

Result<Core::LogBase> Core::compact(SnapshotMeta snapshot, std::uint64_t keep_entries) {
  NARAD_TRY(refuse_if_stopped());
  bool newer = snapshot.index > snapshot_->index && snapshot.index <= applied_;
  if (!newer || installing()) {
    return Error(Errc::invalid_argument,
                 cat("a snapshot at ", snapshot.index, " is of no use: the latest is at ",
                     snapshot_->index, ", applied is ", applied_));
  }
  if (log_.term_at(snapshot.index) != snapshot.term ||
      members_.at(snapshot.index) != snapshot.configuration) {
    return Error(Errc::invalid_argument, "the snapshot does not belong to this log");
  }
  std::uint64_t limit = snapshot.index.value() - std::min(snapshot.index.value(), keep_entries);
  for (const auto& [id, p] : progress_) {
    if (p.snapshot()) limit = std::min(limit, p.snapshot()->index.value());
  }
  members_.forget_below(snapshot.index);
  snapshot_ = std::make_shared<SnapshotMeta>(std::move(snapshot));
  log_.compact(Index(limit));
  return LogBase{log_.base(), log_.base_term()};
}

std::vector<SnapshotMeta> Core::snapshots_in_use() const {
  std::vector<SnapshotMeta> out;
  for (const auto& [id, p] : progress_) {
    if (p.snapshot() && !p.snapshot()->same_as(*snapshot_)) out.push_back(*p.snapshot());
  }
  return out;
}

// ---- sending ------------------------------------------------------------------------------------

void Core::start_snapshot(ReplicaId to, Progress& p) {
  if (!p.active()) return;  // nobody there: it would only tie down a snapshot
  p.become_snapshot(snapshot_);
  send_chunk(to, p);
}

void Core::send_chunk(ReplicaId to, const Progress& p) {
  Message m;
  m.kind = MessageKind::snapshot_chunk;
  m.to = to;
  m.snapshot = p.snapshot();
  m.offset = p.snapshot_offset();
  m.length = std::min(options_.chunk_bytes, m.snapshot->size_bytes - m.offset);
  send(std::move(m));
}

void Core::on_snapshot_reply(const Message& m) {
  auto found = progress_.find(m.from);
  if (role_ != Role::leader || found == progress_.end()) return;
  Progress& p = found->second;
  p.mark_active();
  if (p.state() != Progress::State::snapshot || p.snapshot()->index != m.snapshot_index) return;
  if (m.reject) {
    p.restart_snapshot();
    send_chunk(m.from, p);
  } else if (p.chunk_answered(m.offset, m.next_offset)) {
    send_chunk(m.from, p);
  }
}

// ---- receiving ----------------------------------------------------------------------------------

void Core::on_chunk(const Message& m) {
  const SnapshotMeta& s = *m.snapshot;
  if (!installing()) {
    if (s.index > commit_ && log_.matches(s.index, s.term)) commit_to(s.index);
    if (s.index <= commit_) {
      // The log has it all: nothing to replace.
      incoming_.reset();
      Message reply = reply_to(m, MessageKind::append_reply);
      reply.index = commit_;
      send(std::move(reply));
      return;
    }
    if (!incoming_ || !incoming_->meta->same_as(s)) {
      incoming_ = Incoming{m.snapshot, m.from, 0, 0, false};
    }
    take_chunk(m);
  } else if (!incoming_->meta->same_as(s)) {
    return;
  }
  Message reply = reply_to(m, MessageKind::snapshot_reply);
  reply.snapshot_index = s.index;
  reply.offset = m.offset;
  reply.next_offset = incoming_->next_offset;
  send(std::move(reply));
}

void Core::take_chunk(const Message& m) {
  Incoming& in = *incoming_;
  in.from = m.from;
  if (m.offset != in.next_offset) return;
  if (chunk_checksum(*m.chunk, m.offset) != m.chunk_checksum) return;
  if (m.length > 0) ready_.snapshot_writes.push_back({in.meta, m.offset, m.chunk});
  in.last_offset = m.offset;
  in.next_offset += m.length;
  if (in.next_offset < in.meta->size_bytes) return;
  in.installing = true;
  ready_.install = in.meta;
}

void Core::snapshot_done(bool installed) {
  NARAD_ASSERT(installing(), "a snapshot was handed out to install");
  if (fault_) return;
  const Incoming in = *incoming_;
  incoming_.reset();
  const ReplicaId to = leader_ == ReplicaId() ? in.from : leader_;
  Message reply;
  reply.to = to;
  if (!installed) {
    reply.kind = MessageKind::snapshot_reply;
    reply.snapshot_index = in.meta->index;
    reply.offset = in.last_offset;
    reply.reject = true;
    send(std::move(reply));
    return;
  }
  NARAD_ASSERT(handed_ == applied_, "what was handed out is applied before a snapshot replaces it");
  NARAD_ASSERT(in.meta->index > commit_, "a snapshot never takes anything back");
  for (const ProposalId& p : proposals_) ready_.unknown.push_back(p);
  proposals_.clear();
  snapshot_ = in.meta;
  log_.reset(in.meta->index, in.meta->term);
  members_.reset(in.meta->index, in.meta->configuration);
  commit_ = handed_ = applied_ = emitted_last_ = in.meta->index;
  log_valid_from_ = ready_id_ + 1;
  reply.kind = MessageKind::append_reply;
  reply.index = commit_;
  send(std::move(reply));
}

}  // namespace narad::raft
