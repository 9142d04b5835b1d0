#pragma once
// For tests: a destination on a simulated machine of its own, with a real metastore (a group of
// one), a real runner, and a source that lives on a disk of its own and goes on committing. The
// source answers as a real one does: it arms through the metastore, refuses commits while it is
// frozen, and opens again at the sight of a higher epoch.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "internal/moves/runner.h"
#include "internal/moves/source_for_test.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"

namespace narad::moves::testing {

using namespace std::chrono_literals;

inline constexpr const char* kSource = "s";
inline constexpr const char* kSelf = "d";

// What goes wrong with calls to the source, by their number.
struct CallFaults {
  bool unreachable = false;
  std::set<std::uint64_t> fail;         // does not arrive
  std::set<std::uint64_t> lose_answer;  // is carried out, and its answer lost
  Nanos latency = 2ms;
  std::map<std::string, Nanos> more;  // by kind of call
};

class FakeSource final : public SourceCalls, public LeaderCalls {
 public:
  explicit FakeSource(SourceLog& log) : log_(log) {}

  // The process it talks to the metastore through (the destination's).
  void attach(Env* env, metastore::Proposer* metastore) {
    env_ = env;
    metastore_ = metastore;
  }

  // Commits `n` records if it may; answers how many.
  std::uint64_t commit(std::uint64_t n) {
    look();
    if (frozen_ || lost_) return 0;
    log_.append(n);
    return n;
  }
  bool frozen() const { return frozen_.has_value(); }

  // To be called now and then: opens the gate again, or has it opened.
  Task<void> tend() {
    look();
    if (!frozen_ || env_->clock.mono() < frozen_->until) co_return;
    frozen_->ended = true;
    metastore::Command entry = metastore::VoidFreeze{kPartition.topic, kLife, kPartition.partition,
                                                     kSource, frozen_->epoch};
    (void)co_await metastore_->propose(std::move(entry));
    look();
  }

  Task<Result<wire::Listing>> listing(std::string node, wire::MoveRef move) override {
    NARAD_CO_TRY(bool lost, co_await arrive(node, "listing"));
    if (move.move_id != RaftIndex(0) && !shows(move)) co_return gone(move);
    wire::Listing l = log_.listing();
    l.move_id = move.move_id;
    if (lost) co_return Error(Errc::unreachable, "the answer was lost");
    co_return l;
  }
  Task<Result<std::string>> chunk(std::string node, wire::MoveRef move, Offset base,
                                  std::uint64_t from, std::uint64_t length) override {
    NARAD_CO_TRY(bool lost, co_await arrive(node, "chunk"));
    if (!shows(move)) co_return gone(move);
    ++chunks;
    const wire::Listing now = log_.listing();
    for (const auto& s : now.segments) {
      if (s.base != base) continue;
      const std::uint64_t n = from >= s.bytes ? 0 : std::min(length, s.bytes - from);
      auto bytes = log_.chunk(base, from, n);
      if (bytes && on_chunk) on_chunk(base, from, bytes.value());
      if (bytes) chunk_bytes += bytes.value().size();
      if (lost) co_return Error(Errc::unreachable, "the answer was lost");
      co_return bytes;
    }
    co_return Error(Errc::not_found, "no such segment");
  }
  Task<Result<wire::SegmentDigests>> digests(std::string node, wire::MoveRef move,
                                             Offset base) override {
    NARAD_CO_TRY(bool lost, co_await arrive(node, "digests"));
    if (!shows(move)) co_return gone(move);
    if (lost) co_return Error(Errc::unreachable, "the answer was lost");
    co_return log_.digests(base);
  }
  Task<Result<wire::FreezeAnswer>> freeze(std::string node, wire::FreezeRequest request) override {
    NARAD_CO_TRY(bool lost, co_await arrive(node, "freeze"));
    auto answer = request.token ? extend(request) : co_await arm(request.move);
    if (lost) co_return Error(Errc::unreachable, "the answer was lost");
    co_return answer;
  }
  Task<Result<Nanos>> silence(std::string node) override {
    co_await sleep_for(*env_, 1ms);
    co_return silent;
  }

  CallFaults faults;
  std::uint64_t commits_each_tick = 0;  // 20 ms
  Nanos ttl = 30s;
  Nanos silent{0};
  std::map<std::string, std::uint64_t> calls;  // by kind
  std::uint64_t all_calls = 0;
  std::uint64_t chunks = 0, chunk_bytes = 0;
  std::uint64_t armed = 0, extended = 0, fences = 0;
  std::vector<Nanos> extended_at;
  std::function<void(Offset, std::uint64_t, std::string&)> on_chunk;
  // Before an arm, an extension or a fence is looked at.
  std::function<void(const wire::FreezeRequest&)> on_freeze;

 private:
  struct Frozen {
    std::uint64_t epoch = 0;
    std::string nonce;
    Nanos until{0};
    bool ended = false;  // the token is not honoured any more
  };

  // True if the answer is to be lost.
  Task<Result<bool>> arrive(std::string node, std::string kind) {
    if (node != kSource) co_return Error(Errc::unreachable, cat("there is no node ", node));
    const std::uint64_t n = ++all_calls;
    ++calls[kind];
    const bool fail = faults.unreachable || faults.fail.contains(n);
    co_await sleep_for(*env_, faults.latency + faults.more[kind]);
    look();
    if (fail) co_return Error(Errc::unreachable, cat("call ", n, " did not arrive"));
    co_return faults.lose_answer.contains(n);
  }

  const Assignment* row() const {
    view_ = metastore_->view();
    const Assignment* a = view_->assignment(kPartition.topic, kPartition.partition);
    return a != nullptr && a->incarnation == kLife ? a : nullptr;
  }
  bool shows(const wire::MoveRef& move) const {
    const Assignment* a = row();
    return a != nullptr && a->owner_node == kSource && a->move_id == move.move_id;
  }
  static Error gone(const wire::MoveRef& move) {
    return Error(Errc::conflict, cat("no such move: ", move.move_id));
  }
  void look() {
    if (metastore_ == nullptr) return;
    const Assignment* a = row();
    lost_ = a == nullptr || a->owner_node != kSource;
    if (frozen_ && !lost_ && a->freeze_epoch > frozen_->epoch && !a->freeze_armed) frozen_.reset();
  }

  Task<Result<wire::FreezeAnswer>> arm(wire::MoveRef move) {
    if (on_freeze) on_freeze({move, std::nullopt, std::nullopt});
    if (!shows(move)) co_return gone(move);
    metastore::Command entry =
        metastore::ArmFreeze{kPartition.topic, kLife, kPartition.partition, kSource, move.move_id};
    NARAD_CO_TRY(auto result, co_await metastore_->propose(std::move(entry)));
    if (!result.done()) co_return metastore::to_error(result);
    ++armed;
    Frozen f;
    f.epoch = std::get<metastore::AssignmentRow>(result.row).assignment.freeze_epoch;
    f.nonce = to_hex16(env_->random.next()) + to_hex16(env_->random.next());
    f.until = env_->clock.mono() + ttl;
    frozen_ = f;
    wire::FreezeAnswer answer;
    answer.token = wire::FreezeToken{f.epoch, f.nonce};
    answer.ttl_ms = static_cast<std::uint64_t>(ttl / 1ms);
    answer.listing = log_.listing();
    answer.listing->move_id = move.move_id;
    co_return answer;
  }
  Result<wire::FreezeAnswer> extend(const wire::FreezeRequest& request) {
    if (on_freeze) on_freeze(request);
    const bool active = frozen_ && !frozen_->ended && frozen_->epoch == request.token->epoch &&
                        frozen_->nonce == request.token->nonce &&
                        env_->clock.mono() < frozen_->until;
    if (!active) return Error(Errc::conflict, "that freeze is not active");
    if (request.expect_hwm && *request.expect_hwm != log_.log->hwm()) {
      return Error(Errc::conflict, "another high watermark");
    }
    request.expect_hwm ? ++fences : ++extended;
    if (!request.expect_hwm) extended_at.push_back(env_->clock.mono());
    frozen_->until = env_->clock.mono() + ttl;
    wire::FreezeAnswer answer;
    answer.token = request.token;
    answer.ttl_ms = static_cast<std::uint64_t>(ttl / 1ms);
    return answer;
  }

  SourceLog& log_;
  Env* env_ = nullptr;
  metastore::Proposer* metastore_ = nullptr;
  mutable metastore::ViewPtr view_;
  std::optional<Frozen> frozen_;
  bool lost_ = false;  // another owner
};

// What may go wrong between the destination and the metastore.
class FaultyProposer final : public metastore::Proposer {
 public:
  FaultyProposer(Env& env, metastore::Metastore& inner) : env_(env), inner_(inner), late_(env) {}

  Task<Result<metastore::CommandResult>> propose(metastore::Command command) override {
    const std::string op(metastore::op_name(command));
    const std::uint64_t n = ++seen[op];
    if (before) before(command);
    if (no_leader) co_return Error(Errc::unavailable, "no leader");
    if (never.contains({op, n})) {
      co_await sleep_for(env_, 5s);
      co_return Error(Errc::unknown_outcome, "the leader did not answer");
    }
    if (late.contains({op, n})) {
      late_.spawn("late entry", apply_late(env_, inner_, std::move(command), late_by));
      co_return Error(Errc::unknown_outcome, "the leader did not answer");
    }
    auto result = co_await inner_.propose(std::move(command));
    if (unanswered.contains({op, n})) {
      co_await sleep_for(env_, 5s);
      co_return Error(Errc::unknown_outcome, "the leader did not answer");
    }
    co_return result;
  }
  metastore::ViewPtr view() const override { return inner_.view(); }
  Event& changed() override { return inner_.changed(); }
  Task<Result<RaftIndex>> barrier(Nanos deadline) override {
    ++barriers;
    if (no_leader) {
      co_await sleep_for(env_, deadline);
      co_return Error(Errc::unavailable, "no leader");
    }
    co_return co_await inner_.barrier(deadline);
  }
  metastore::LeaderView leader() const override { return inner_.leader(); }
  bool caught_up() const override { return inner_.caught_up(); }

  bool no_leader = false;
  std::set<std::pair<std::string, std::uint64_t>> never;       // (op, n): not applied, unknown
  std::set<std::pair<std::string, std::uint64_t>> unanswered;  // applied, unknown
  std::set<std::pair<std::string, std::uint64_t>> late;        // unknown, and applied much later
  Nanos late_by = 8s;
  std::map<std::string, std::uint64_t> seen;
  std::uint64_t barriers = 0;
  std::function<void(const metastore::Command&)> before;

 private:
  static Task<void> apply_late(Env& env, metastore::Metastore& inner, metastore::Command command,
                               Nanos by) {
    co_await sleep_for(env, by);
    (void)co_await inner.propose(std::move(command));
  }
  Env& env_;
  metastore::Metastore& inner_;
  TaskGroup late_;
};

// The node's side of a destination: where copies go, and how they are opened there.
class Site {
 public:
  virtual ~Site() = default;
  // Before the metastore is there, and then with it.
  virtual Task<Result<void>> open() = 0;
  virtual void begin(metastore::Proposer& metastore) = 0;
  virtual std::string disk_id() const = 0;
  virtual InstallPlace& place() = 0;
};
using MakeSite = std::function<std::shared_ptr<Site>(Env&)>;

// One life of the destination's process.
class Destination {
 public:
  Destination(Env& env, FakeSource& source, const MakeSite& make, RunnerTiming timing,
              std::function<void(FaultyProposer&)> faults)
      : env(env),
        source(source),
        make_(make),
        timing_(timing),
        faults_(std::move(faults)),
        tasks(env) {
    tasks.spawn("destination", run(*this));
  }
  static Task<void> run(Destination& d) {
    d.site = d.make_(d.env);
    if (auto opened = co_await d.site->open(); !opened) {
      d.failed = opened.error().text();
      co_return;
    }
    metastore::MetastoreOptions options;
    options.node_id = kSelf;
    auto opened = co_await metastore::Metastore::open(d.env, "/data/metastore", options);
    if (!opened) {
      d.failed = opened.error().text();
      co_return;
    }
    d.metastore = std::move(opened.value());
    d.proposer = std::make_unique<FaultyProposer>(d.env, *d.metastore);
    if (d.faults_) d.faults_(*d.proposer);
    while (!d.metastore->leader().is_self) co_await d.metastore->changed().wait();
    if (!d.metastore->view()->topics.contains(kPartition.topic)) co_await d.set_up();
    d.site->begin(*d.proposer);
    d.source.attach(&d.env, d.metastore.get());
    d.runner = std::make_unique<Runner>(d.env, kSelf, *d.proposer, d.source, d.source,
                                        d.site->place(), d.timing_);
    d.runner->start();
    d.ready = true;
    for (;;) {
      co_await d.source.tend();
      (void)d.source.commit(d.source.commits_each_tick);
      co_await sleep_for(d.env, 20ms);
    }
  }
  Task<void> set_up() {
    using namespace metastore;
    const std::string disk = site->disk_id();
    const auto member = [disk](std::string id) {
      return RegisterMember{id, id + ":1", id + ":2", "b", {disk}, UnixMillis(1000)};
    };
    CreateTopic topic;
    topic.name = kPartition.topic;
    topic.incarnation = kLife;
    topic.partitions = 4;
    topic.visibility_timeout_ms = 30'000;
    topic.max_in_flight_per_partition = topic.max_acked_ahead_per_partition = 100;
    co_await must(member(kSource));
    co_await must(topic);
    co_await must(MarkUsed{kPartition.topic, kLife, kPartition.partition, kSource, disk});
    co_await must(member(kSelf));
    co_await must(member("e"));
  }
  Task<void> must(metastore::Command command) {
    auto result = co_await metastore->propose(std::move(command));
    NARAD_ASSERT(result && result.value().done(),
                 result ? result.value().text : result.error().text());
  }

  Env& env;
  FakeSource& source;
  const MakeSite& make_;
  const RunnerTiming timing_;
  const std::function<void(FaultyProposer&)> faults_;
  std::unique_ptr<metastore::Metastore> metastore;
  std::unique_ptr<FaultyProposer> proposer;
  std::shared_ptr<Site> site;
  std::unique_ptr<Runner> runner;
  bool ready = false;
  std::string failed;
  TaskGroup tasks;
};

class World {
 public:
  explicit World(MakeSite make, std::uint64_t seed = 1, seglog::Knobs knobs = small_segments())
      : sim(seed),
        net(sim),
        machine(sim, net, 0, "d"),
        log(knobs, seed),
        source(log),
        make_(std::move(make)) {
    timing.chunk_bytes = 1500;
    timing.chunks_in_flight = 3;
    timing.sync_every_bytes = 4000;
    timing.sync_every_bytes_beside_clients = 2000;
    machine.set_on_down([this](sim::Machine::Kill) { source.attach(nullptr, nullptr); });
  }
  ~World() {
    if (machine.up()) machine.kill(sim::Machine::Kill::process_exit);
  }

  // Starts the process; false if it died on the way (or did not start).
  bool boot() {
    sim.run_for(1ms);  // a kill tears the process down as its next event
    machine.boot([this](Env& env) {
      return std::make_shared<Destination>(env, source, make_, timing, proposer_faults);
    });
    return until([this] { return node().ready; }, 60s);
  }
  Destination& node() { return machine.component<Destination>(); }
  metastore::Metastore& metastore() { return *node().metastore; }
  const Assignment& row() {
    view_ = metastore().view();
    return *view_->assignment(kPartition.topic, kPartition.partition);
  }
  bool here() { return row().owner_node == kSelf; }

  // Lets time pass until `done`, the death of the process, or `limit`.
  bool until(const std::function<bool()>& done, Nanos limit) {
    return sim.run_until([&] { return !machine.up() || done(); }, limit) && machine.up() && done();
  }
  void pass(Nanos time) { sim.run_for(time); }
  // Proposes and waits for the answer.
  Result<metastore::CommandResult> propose(metastore::Command command) {
    auto out = std::make_shared<std::optional<Result<metastore::CommandResult>>>();
    node().tasks.spawn("propose", propose_to(*node().metastore, std::move(command), out));
    NARAD_ASSERT(until([&] { return out->has_value(); }, 60s));
    return std::move(**out);
  }
  static Task<void> propose_to(
      metastore::Metastore& metastore, metastore::Command command,
      std::shared_ptr<std::optional<Result<metastore::CommandResult>>> out) {
    auto result = co_await metastore.propose(std::move(command));
    out->emplace(std::move(result));
  }
  // The controller's entry. Answers the move's id.
  RaftIndex set_target(std::string to = kSelf, std::string disk = {}, std::uint64_t rate = 0) {
    const Assignment now = row();
    metastore::SetTarget entry;
    entry.name = kPartition.topic;
    entry.incarnation = kLife;
    entry.partition = kPartition.partition;
    entry.owner_node = now.owner_node;
    entry.move_id = now.move_id;
    entry.target_node = std::move(to);
    entry.target_disk = disk.empty() ? node().site->disk_id() : std::move(disk);
    entry.reason = "operator";
    entry.max_bytes_per_second = rate;
    auto result = propose(std::move(entry));
    NARAD_ASSERT(result && result.value().done(),
                 result ? result.value().text : result.error().text());
    return row().move_id;
  }
  void clear_target() {
    const Assignment now = row();
    metastore::ClearTarget entry;
    entry.name = kPartition.topic;
    entry.incarnation = kLife;
    entry.partition = kPartition.partition;
    entry.target_node = now.target_node;
    entry.move_id = now.move_id;
    auto result = propose(std::move(entry));
    NARAD_ASSERT(result && result.value().done(),
                 result ? result.value().text : result.error().text());
  }
  void kill_source() {
    view_ = metastore().view();
    const metastore::Member* s = view_->members.find(kSource);
    auto result = propose(metastore::MarkDead{kSource, s->stamp});
    NARAD_ASSERT(result && result.value().done(),
                 result ? result.value().text : result.error().text());
    source.faults.unreachable = true;
  }
  void revive_source() {
    register_again(kSource, {node().site->disk_id()});
    source.faults.unreachable = false;
  }
  // The metadata shows these disks of the member from now on, whichever it has.
  void register_again(std::string member, std::vector<std::string> disks) {
    auto result = propose(metastore::RegisterMember{std::move(member), "s:1", "s:2", "b2",
                                                    std::move(disks), UnixMillis(2000)});
    NARAD_ASSERT(result && result.value().done(),
                 result ? result.value().text : result.error().text());
  }
  std::uint64_t logged(std::string_view message) { return machine.log().count(message); }

  sim::Sim sim;
  sim::SimNet net;
  sim::Machine machine;
  SourceLog log;
  FakeSource source;
  RunnerTiming timing;
  std::function<void(FaultyProposer&)> proposer_faults;

 private:
  MakeSite make_;
  metastore::ViewPtr view_;
};

}  // namespace narad::moves::testing
