#include "internal/node/broker.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "internal/node/remote_source.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

// Word from other nodes may get lost: a waiting consume looks again this often.
constexpr Nanos kLookAgain = 5s;
constexpr Nanos kLookAgainUncovered = 1s;  // if an owner could not be told that somebody waits
constexpr Nanos kConfirmDeadline = 5s;
constexpr Nanos kCatchUpRound = 500ms;
constexpr Nanos kAskDeadline = 5s;  // for the messages of one owner
// How long a request goes after a partition that changes its owner.
constexpr Nanos kOwnerPatience = 2s;
constexpr Nanos kOwnerLook = 50ms;

template <class T>
bool says_not_owner(const Result<T>& result) {
  return !result && result.error().code() == Errc::not_owner;
}

}  // namespace

Broker::Broker(Env& env, std::string node_id, Parts parts,
               std::function<api::Readiness()> readiness)
    : env_(env),
      node_id_(std::move(node_id)),
      operations_(parts.operations),
      metastore_(parts.metastore),
      ingress_(parts.ingress),
      partitions_(parts.partitions),
      local_(parts.local),
      remote_(parts.remote),
      wakes_(parts.wakes),
      drain_(parts.drain),
      cluster_info_(std::move(parts.cluster_info)),
      readiness_(std::move(readiness)),
      reports_(env, parts.peers, node_id_, std::move(parts.own_moves)),
      peers_(parts.peers),
      own_quarantine_(std::move(parts.own_quarantine)),
      quarantine_(env, [this](std::string node,
                              Nanos deadline) { return quarantine_of(std::move(node), deadline); }),
      rounds_(
          env, [this](Nanos deadline) { return metastore_.barrier(deadline); }, kCatchUpRound) {}

metastore::ViewPtr Broker::view() const { return metastore_.view(); }

// One round for all who wait for one: names that do not exist may be asked for by the thousand.
Task<void> Broker::catch_up() {
  if (metastore_.leader().node.empty()) co_return;  // nobody could say more than is known here
  (void)co_await rounds_.confirmed();
}

api::Readiness Broker::readiness() const { return readiness_(); }

api::ClusterInfo Broker::cluster_info() const {
  if (cluster_info_) return cluster_info_();
  api::ClusterInfo alone;
  alone.leader = node_id_;
  alone.roles[node_id_] = "leader";
  return alone;
}

Result<metastore::TopicRowPtr> Broker::row(const std::string& topic,
                                           Incarnation incarnation) const {
  auto found = metastore_.view()->topics.get(topic);
  if (!found || found->topic.incarnation != incarnation) {
    return Error(Errc::not_found, "topic not found");
  }
  return found;
}

bool Broker::is_alive(const std::string& node) const {
  const auto view = metastore_.view();
  const auto* member = view->members.find(node);
  return member != nullptr && member->status == metastore::MemberStatus::alive;
}

Result<std::string> Broker::owner_of(const metastore::TopicRow& row, PartitionId partition) const {
  if (partition.value() >= row.assignments.size()) {
    return Error(Errc::not_found, "no such partition");
  }
  const std::string& owner = row.assignments[partition.value()].owner_node;
  if (owner.empty()) return Error(Errc::not_owner, "the partition has no owner yet");
  if (owner == node_id_) return owner;
  if (remote_ == nullptr) {
    return Error(Errc::not_owner, cat("the partition is owned by node ", owner));
  }
  if (!is_alive(owner)) {
    return Error(Errc::owner_down, cat("node ", owner, ", which owns the partition, is down"));
  }
  return owner;
}

// Also those whose partitions were never used as far as is known here: the first message of one may
// be there before this node hears of it.
std::vector<std::string> Broker::owners_elsewhere(const metastore::TopicRow& row) const {
  std::set<std::string> owners;
  if (remote_ != nullptr) {
    for (const Assignment& a : row.assignments) {
      if (!a.owner_node.empty() && a.owner_node != node_id_) owners.insert(a.owner_node);
    }
  }
  std::vector<std::string> alive;
  for (const std::string& node : owners) {
    if (is_alive(node)) alive.push_back(node);
  }
  return alive;
}

Deadline Broker::patience() const { return Deadline::after(env_, kOwnerPatience); }

Task<bool> Broker::ask_again(Deadline patience) {
  if (patience.passed(env_)) co_return false;
  (void)co_await metastore_.changed().wait_for(std::min(kOwnerLook, patience.left(env_)));
  co_return true;
}

// ---- topics ----------------------------------------------------------------------------------

Task<Result<Topic>> Broker::create_topic(metastore::TopicSpec spec) {
  return metastore::create_topic(env_, metastore_, std::move(spec));
}

Task<Result<Topic>> Broker::alter_topic(std::string name, metastore::TopicPatch patch) {
  auto result = co_await metastore::alter_topic(metastore_, name, std::move(patch));
  if (result) {
    // Caps may have grown, partitions may have come: let those who wait look again.
    partitions_.topic_waiters(name)->wake_all(false);
  }
  co_return result;
}

Task<Result<void>> Broker::delete_topic(std::string name) {
  NARAD_CO_TRY(Incarnation incarnation, co_await metastore::delete_topic(metastore_, name));
  // Proof for the removal: the metastore has just applied the deletion of this incarnation.
  if (auto removed = co_await partitions_.remove_topic(name, incarnation); !removed) {
    NARAD_LOG_ERROR(env_.log, "data of a deleted topic not removed; the next start removes it",
                    {"topic", name}, {"error", removed.error()});
  }
  co_return ok();
}

Task<Result<void>> Broker::put_schema(std::string name, Incarnation incarnation,
                                      std::uint32_t version, std::string schema) {
  return metastore::put_schema(metastore_, std::move(name), incarnation, version,
                               std::move(schema));
}

Task<Result<std::vector<api::PartitionStat>>> Broker::partition_stats(
    std::string topic, std::optional<PartitionId> only) {
  const Deadline until = patience();
  for (;;) {
    auto stats = co_await gather_stats(topic, only);
    if (!stats.elsewhere || !co_await ask_again(until)) co_return std::move(stats.result);
  }
}

Task<Broker::Routed<Broker::PartitionStats>> Broker::gather_stats(std::string topic,
                                                                  std::optional<PartitionId> only) {
  using Answer = Routed<PartitionStats>;
  auto found = metastore_.view()->topics.get(topic);
  if (!found) co_return Answer{Error(Errc::not_found, "topic not found")};
  std::map<std::string, std::vector<PartitionId>> by_owner;
  std::vector<api::PartitionStat> stats;
  std::vector<PartitionId> unassigned;
  for (std::uint32_t p = 0; p < found->assignments.size(); ++p) {
    if (only && only->value() != p) continue;
    if (found->assignments[p].owner_node.empty()) {
      unassigned.push_back(PartitionId(p));
      continue;
    }
    auto owner = owner_of(*found, PartitionId(p));
    if (!owner && owner.error().code() == Errc::owner_down) {
      // No partial answer (http-api 1.5).
      co_return Answer{Error(Errc::not_owner, owner.error().text())};
    }
    if (!owner) co_return Answer{owner.error()};
    by_owner[owner.value()].push_back(PartitionId(p));
  }
  for (auto& [owner, partitions] : by_owner) {
    Result<std::vector<api::PartitionStat>> part = Error(Errc::internal, "");
    if (owner == node_id_) {
      part = co_await local_.stats(topic, found->topic.incarnation, std::move(partitions));
    } else {
      wire::StatsCall call{topic, found->topic.incarnation, std::move(partitions)};
      part = co_await remote_->stats(owner, std::move(call));
    }
    if (!part && part.error().code() == Errc::unreachable) {
      co_return Answer{Error(Errc::internal, part.error().text())};  // 500 (http-api 1.5)
    }
    if (!part) co_return Answer{part.error(), says_not_owner(part)};
    std::move(part.value().begin(), part.value().end(), std::back_inserter(stats));
  }
  // One entry per assignment; where nothing is assigned at all, one per partition (http-api 1.5).
  if (by_owner.empty()) {
    for (const PartitionId p : unassigned) {
      api::PartitionStat nobodys;
      nobodys.index = p;
      stats.push_back(std::move(nobodys));
    }
  }
  std::sort(stats.begin(), stats.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  co_return Answer{std::move(stats)};
}

// ---- messages --------------------------------------------------------------------------------

Result<Drain::Admitted> Broker::admit() {
  if (drain_ == nullptr) return Drain::Admitted();
  return drain_->admit();
}

Task<Result<void>> Broker::produce(MessagePtr message) {
  NARAD_CO_TRY(const Drain::Admitted admitted, admit());
  auto sequence = co_await ingress_.accept(std::move(message));
  if (!sequence) co_return sequence.error();
  co_return ok();
}

Task<Result<void>> Broker::produce_batch(std::vector<MessagePtr> messages) {
  NARAD_CO_TRY(const Drain::Admitted admitted, admit());
  auto first = co_await ingress_.accept_batch(std::move(messages));
  if (!first) co_return first.error();
  co_return ok();
}

Task<Result<Broker::Messages>> Broker::consume(api::ConsumeRequest request) {
  const Deadline deadline = Deadline::after(env_, request.wait);
  // Enrolled before the first look, so that a message which lands meanwhile is not missed.
  delivery::Waiters::Ticket ticket(env_, partitions_.topic_waiters(request.topic));
  for (;;) {
    auto found = co_await look(request, ticket);
    if (!found || !found.value().empty()) co_return found;
    if (request.local_only || waits_ended_ || deadline.passed(env_)) co_return found;
    const Next next = co_await prepare_to_wait(request);
    if (next == Next::give_up) co_return found;
    if (next == Next::look_again) continue;
    Nanos patience = deadline.left(env_);
    if (remote_ != nullptr) {
      patience = std::min(patience, next == Next::wait ? kLookAgain : kLookAgainUncovered);
    }
    const bool woken = co_await ticket.wait(Deadline::after(env_, patience));
    if (!woken && deadline.passed(env_)) co_return found;
  }
}

Task<Result<Broker::Messages>> Broker::look(const api::ConsumeRequest& request,
                                            delivery::Waiters::Ticket& ticket) {
  if (request.partition) {
    auto found = co_await look_pinned(request);
    if (found && !found.value().empty()) ticket.used();
    co_return found;
  }
  auto here =
      co_await local_.consume(request.topic, request.incarnation, std::nullopt, request.max);
  if (here && !here.value().empty()) ticket.used();
  if (request.local_only || (here && !here.value().empty())) co_return here;
  bool all_answered = true;
  Messages there = co_await look_elsewhere(request, ticket.told_by(), all_answered);
  // Nothing anywhere: there is nothing for the others either.
  if (!there.empty() || (here && all_answered)) ticket.used();
  if (!there.empty()) co_return there;
  // What landed here while others were asked must not be missed at the last look.
  if (!ticket.woken()) co_return here;
  here = co_await local_.consume(request.topic, request.incarnation, std::nullopt, request.max);
  if (here && !here.value().empty()) ticket.used();
  co_return here;
}

Task<Result<Broker::Messages>> Broker::look_pinned(const api::ConsumeRequest& request) {
  const Deadline until = patience();
  for (;;) {
    auto found = co_await look_at_owner(request);
    if (!found.elsewhere || request.local_only || !co_await ask_again(until)) {
      co_return std::move(found.result);
    }
  }
}

Task<Broker::Routed<Broker::Messages>> Broker::look_at_owner(const api::ConsumeRequest& request) {
  using Answer = Routed<Messages>;
  auto topic = row(request.topic, request.incarnation);
  if (!topic) co_return Answer{topic.error()};
  auto owner = owner_of(*topic.value(), *request.partition);
  if (!owner) co_return Answer{owner.error()};
  Result<Messages> found = Messages{};
  if (owner.value() == node_id_ || request.local_only) {
    found =
        co_await local_.consume(request.topic, request.incarnation, request.partition, request.max);
  } else {
    wire::ConsumeCall call{request.topic, request.incarnation, request.partition, request.max};
    found = co_await remote_->consume(std::move(owner.value()), std::move(call), kAskDeadline);
  }
  const bool elsewhere = says_not_owner(found);
  co_return Answer{std::move(found), elsewhere};
}

// Asks the other owners in turn until one has something, the one `first` before the others. One
// that does not answer keeps nobody from the messages of the others.
Task<Broker::Messages> Broker::look_elsewhere(const api::ConsumeRequest& request, std::string first,
                                              bool& all_answered) {
  auto topic = row(request.topic, request.incarnation);
  if (!topic) co_return Messages{};
  std::vector<std::string> owners = owners_elsewhere(*topic.value());
  if (owners.empty()) co_return Messages{};
  const auto told = std::find(owners.begin(), owners.end(), first);
  const std::size_t begin = told != owners.end() ? static_cast<std::size_t>(told - owners.begin())
                                                 : rotation_++ % owners.size();
  for (std::size_t i = 0; i < owners.size(); ++i) {
    wire::ConsumeCall call{request.topic, request.incarnation, std::nullopt, request.max};
    // Cut short it would leave leases behind that nobody has: it is given the time it needs.
    auto part = co_await remote_->consume(owners[(begin + i) % owners.size()], std::move(call),
                                          kAskDeadline);
    if (part && !part.value().empty()) co_return std::move(part.value());
    all_answered = all_answered && part;
  }
  co_return Messages{};
}

Task<Broker::Next> Broker::prepare_to_wait(const api::ConsumeRequest& request) {
  auto topic = row(request.topic, request.incarnation);
  if (!topic) co_return Next::look_again;  // which says what became of it
  std::vector<std::string> owners;
  if (request.partition) {
    auto owner = owner_of(*topic.value(), *request.partition);
    if (!owner) co_return Next::look_again;
    if (owner.value() != node_id_) owners.push_back(std::move(owner.value()));
  } else {
    owners = owners_elsewhere(*topic.value());
    const auto& rows = topic.value()->assignments;
    const bool may_come = std::any_of(rows.begin(), rows.end(), [&](const Assignment& a) {
      return a.owner_node == node_id_ || is_alive(a.owner_node);
    });
    if (!may_come) co_return Next::give_up;  // http-api 1.10: nobody could bring a message
  }
  Next next = Next::wait;
  for (std::string& owner : owners) {
    const Wakes::Cover cover = co_await wakes_->cover(std::move(owner), request.topic);
    if (cover == Wakes::Cover::fresh) next = Next::look_again;
    if (cover == Wakes::Cover::none && next == Next::wait) next = Next::wait_briefly;
  }
  co_return next;
}

Task<Result<std::optional<StoredRecord>>> Broker::replay(api::ReplayRequest request) {
  const Deadline until = patience();
  for (;;) {
    auto record = co_await replay_at_owner(request);
    if (!record.elsewhere || !co_await ask_again(until)) co_return std::move(record.result);
  }
}

Task<Broker::Routed<std::optional<StoredRecord>>> Broker::replay_at_owner(
    api::ReplayRequest request) {
  using Answer = Routed<std::optional<StoredRecord>>;
  auto topic = row(request.topic, request.incarnation);
  if (!topic) co_return Answer{topic.error()};
  auto owner = owner_of(*topic.value(), request.partition);
  if (!owner) co_return Answer{owner.error()};
  TopicPartition id{request.topic, request.partition};
  Result<std::optional<StoredRecord>> record = std::optional<StoredRecord>{};
  if (owner.value() == node_id_) {
    record = co_await local_.replay(std::move(id), request.incarnation, request.offset);
  } else {
    wire::ReplayCall call{std::move(id), request.incarnation, request.offset};
    record = co_await remote_->replay(std::move(owner.value()), std::move(call));
  }
  const bool elsewhere = says_not_owner(record);
  co_return Answer{std::move(record), elsewhere};
}

Task<Result<void>> Broker::settle(std::string topic, Incarnation incarnation, ReceiptHandle handle,
                                  SettleMode mode) {
  std::vector<ReceiptHandle> handles{handle};
  auto results = co_await settle_batch(std::move(topic), incarnation, std::move(handles), mode);
  co_return std::move(results.front());
}

Task<std::vector<Result<void>>> Broker::settle_batch(std::string topic, Incarnation incarnation,
                                                     std::vector<ReceiptHandle> handles,
                                                     SettleMode mode) {
  const Deadline until = patience();
  std::vector<Result<void>> results(handles.size(), ok());
  std::vector<std::size_t> left(handles.size());
  std::iota(left.begin(), left.end(), 0);
  for (;;) {
    std::vector<ReceiptHandle> part;
    part.reserve(left.size());
    for (std::size_t i : left) part.push_back(handles[i]);
    auto settled = co_await settle_some(topic, incarnation, std::move(part), mode);
    std::vector<std::size_t> again;
    for (std::size_t k = 0; k < left.size(); ++k) {
      results[left[k]] = std::move(settled[k].result);
      if (settled[k].elsewhere) again.push_back(left[k]);
    }
    if (again.empty() || !co_await ask_again(until)) co_return results;
    left = std::move(again);
  }
}

Task<std::vector<Broker::Routed<void>>> Broker::settle_some(std::string topic,
                                                            Incarnation incarnation,
                                                            std::vector<ReceiptHandle> handles,
                                                            SettleMode mode) {
  std::vector<Routed<void>> results(handles.size(), Routed<void>{ok()});
  auto found = row(topic, incarnation);
  if (!found) {
    results.assign(handles.size(), Routed<void>{found.error()});
    co_return results;
  }
  std::map<std::string, std::vector<std::size_t>> by_owner;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    auto owner = owner_of(*found.value(), handles[i].partition);
    if (owner) {
      by_owner[owner.value()].push_back(i);
    } else if (owner.error().code() == Errc::not_found) {
      results[i].result = Error(Errc::gone, "receipt handle is not a live lease");
    } else {
      results[i].result = owner.error();
    }
  }
  for (auto& [owner, indices] : by_owner) {
    std::vector<ReceiptHandle> part;
    part.reserve(indices.size());
    for (std::size_t i : indices) part.push_back(handles[i]);
    auto outcomes = co_await settle_at(owner, topic, incarnation, std::move(part), mode);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      const bool elsewhere = says_not_owner(outcomes[k]);
      results[indices[k]] = {std::move(outcomes[k]), elsewhere};
    }
  }
  co_return results;
}

Task<std::vector<Result<void>>> Broker::settle_at(std::string owner, std::string topic,
                                                  Incarnation incarnation,
                                                  std::vector<ReceiptHandle> handles,
                                                  SettleMode mode) {
  if (owner == node_id_) {
    co_return co_await local_.settle(std::move(topic), incarnation, std::move(handles), mode);
  }
  const std::size_t count = handles.size();
  wire::SettleCall call{std::move(topic), incarnation, mode, std::move(handles)};
  auto answer = co_await remote_->settle(std::move(owner), std::move(call));
  if (answer) co_return std::move(answer.value());
  co_return std::vector<Result<void>>(count, Result<void>(answer.error()));
}

// ---- moves -----------------------------------------------------------------------------------

Task<Result<metastore::StartAnswer>> Broker::start_move(metastore::MoveWish wish) {
  return metastore::start_move(env_, metastore_, std::move(wish));
}

Task<Result<metastore::AbortAnswer>> Broker::abort_move(metastore::AbortWish wish,
                                                        std::string why) {
  return metastore::abort_move(env_, metastore_, std::move(wish), std::move(why));
}

Task<Result<metastore::RateAnswer>> Broker::set_move_rate(
    std::optional<std::uint64_t> bytes_per_second) {
  return metastore::set_move_rate(metastore_, bytes_per_second);
}

Task<Result<metastore::PauseAnswer>> Broker::pause_moves(metastore::PauseWish wish) {
  return metastore::pause_moves(metastore_, std::move(wish));
}

Task<std::optional<std::uint64_t>> Broker::write_rate(TopicPartition partition, Nanos deadline) {
  const metastore::ViewPtr state = view();
  const Assignment* row = state->assignment(partition.topic, partition.partition);
  if (row == nullptr || row->owner_node.empty()) co_return std::nullopt;
  if (row->owner_node == node_id_) {
    const auto open = partitions_.find_open(partition);
    co_return open ? open->log->stats().bytes_per_second : 0;  // nobody has written into it lately
  }
  if (peers_ == nullptr) co_return std::nullopt;
  wire::MoveRef outside_of_any{std::move(partition), row->incarnation, RaftIndex(0)};
  auto listing =
      co_await ask_for_listing(*peers_, row->owner_node, std::move(outside_of_any), deadline);
  if (!listing) co_return std::nullopt;
  co_return listing.value().bytes_per_second;
}

Task<api::ReportsByNode> Broker::move_reports(std::vector<std::string> nodes, Nanos deadline) {
  return reports_.ask(std::move(nodes), deadline);
}

// ---- members and plans -----------------------------------------------------------------------

Task<api::QuarantineByNode> Broker::quarantine(std::vector<std::string> nodes, Nanos deadline) {
  return quarantine_.ask(std::move(nodes), deadline);
}

Task<Result<wire::SetAsideCopies>> Broker::quarantine_of(std::string node, Nanos deadline) {
  if (node == node_id_ && own_quarantine_) co_return co_await own_quarantine_();
  if (node == node_id_ || peers_ == nullptr) {
    co_return Error(Errc::unavailable, cat("what ", node, " keeps aside is not known here"));
  }
  co_return co_await ask_for_quarantine(*peers_, std::move(node), deadline);
}

Task<std::vector<DrainVerdict>> Broker::drains() { return operations_.drains(); }

Task<Result<DrainVerdict>> Broker::drain_verdict(std::string node, bool wal_lost) {
  return operations_.verdict(std::move(node), wal_lost);
}

Task<Result<DrainOutcome>> Broker::decommission(std::string node, bool wal_lost) {
  return operations_.decommission(std::move(node), wal_lost);
}

Task<Result<>> Broker::cancel_decommission(std::string node) {
  return operations_.cancel(std::move(node));
}

Task<Result<StopVerdict>> Broker::safe_to_stop(std::string node) {
  return operations_.safe_to_stop(std::move(node));
}

Task<Result<RebalanceOutcome>> Broker::rebalance(bool dry_run) {
  return operations_.rebalance(dry_run);
}

Task<Result<Explanation>> Broker::explain(TopicPartition partition) {
  return operations_.explain(std::move(partition));
}

Task<void> Broker::stop() {
  co_await reports_.stop();
  co_await quarantine_.stop();
  co_await rounds_.stop();
}

void Broker::end_waits() {
  waits_ended_ = true;
  partitions_.wake_all();
}

// ---- hand-over -------------------------------------------------------------------------------

dispatch::Route Broker::route(const TopicPartition& partition, Incarnation incarnation) const {
  dispatch::Route route;
  const auto view = metastore_.view();
  const auto* found = view->topics.find(partition.topic);
  if (found == nullptr || found->topic.incarnation != incarnation) return route;
  route.topic_known = true;
  route.partitions = found->topic.partitions;
  if (partition.partition.value() >= found->assignments.size()) return route;
  const Assignment& assignment = found->assignments[partition.partition.value()];
  route.assignment_index = assignment.changed_at;
  route.frozen = assignment.freeze_armed;
  if (assignment.owner_node.empty()) return route;
  const bool alive = assignment.owner_node == node_id_ || is_alive(assignment.owner_node);
  route.owner = alive ? dispatch::OwnerState::alive : dispatch::OwnerState::dead;
  return route;
}

Task<Result<CommitOutcome>> Broker::commit(TopicPartition partition, CommitBatch batch) {
  NARAD_CO_TRY(auto topic, row(partition.topic, batch.incarnation));
  NARAD_CO_TRY(std::string owner, owner_of(*topic, partition.partition));
  if (owner == node_id_) {
    co_return co_await local_.commit(std::move(partition), std::move(batch));
  }
  wire::CommitCall call{std::move(partition), std::move(batch)};
  co_return co_await remote_->commit(std::move(owner), std::move(call));
}

Task<Result<bool>> Broker::confirm_gone(std::string topic, Incarnation incarnation) {
  // Behind a barrier, so that a row which this node has not heard of yet counts. Proof is the
  // deletion itself, never that the topic is not there: a metastore put back from a backup lacks
  // the topics that are younger than it.
  NARAD_CO_TRY(co_await metastore_.barrier(kConfirmDeadline));
  const auto view = metastore_.view();
  if (view->was_deleted(topic, incarnation)) co_return true;
  const auto* found = view->topics.find(topic);
  if (found != nullptr && found->topic.incarnation == incarnation) co_return false;
  co_return Error(Errc::unavailable,
                  cat("the metastore knows neither topic ", topic, " of incarnation ",
                      to_hex16(incarnation.value()),
                      " nor its deletion (is it a restored, older copy?): its records are kept"));
}

Event& Broker::routing_changed() { return metastore_.changed(); }

}  // namespace narad::node
