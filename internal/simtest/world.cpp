#include "internal/simtest/world.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "internal/node/node.h"
#include "internal/simtest/knobs.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/sim/machine.h"
#include "pkg/sqlite/database.h"

namespace narad::simtest {
namespace {

using sim::Rng;
using namespace std::chrono_literals;

constexpr Nanos kFaultsFor = 60s;  // virtual time under faults
constexpr Nanos kCalmMax = 900s;   // by then everything must be handed over and consumable
constexpr const char* kTopics[] = {"orders", "clicks", "audit", "short"};

enum class Phase { faults, calm, read_back };

}  // namespace

class App;

// The world's side: survives every crash.
class World {
 public:
  World(const sim::Plan& plan, const sim::RunWish& wish, Defect defect, bool echo_log);
  RunResult run();

 private:
  friend class App;
  void apply(const sim::Fault& fault);
  void went_down(int node);
  void apply_to_network(const sim::Fault& fault);
  void wipe(int node);
  bool each_node(const std::function<bool(App&)>& holds);
  std::uint64_t unsettled();
  bool has_disk(int node, const std::string& disk);
  // Each node of a cluster does its share of the work that a lone node does.
  Nanos share(Nanos of_a_lone_node) const { return of_a_lone_node * knobs_.nodes; }
  void later(Nanos delay, std::function<void()> what);
  void heal();
  bool settle(const char* what, const std::function<bool()>& done);
  void read_back(const char* when);
  void collect_reach();
  void run_faults();
  void stop_all_cleanly();

  sim::Plan plan_;
  sim::RunWish wish_;
  Defect defect_;
  std::int64_t workload_percent_;
  bool scripted_;
  bool script_done_ = false;
  std::uint64_t disk_calls_ = 0;
  sim::Sim sim_;
  sim::SimNet net_;
  Knobs knobs_;
  Oracle oracle_;
  sim::Reach reach_;
  Phase phase_ = Phase::faults;
  bool clean_stop_ = false;
  int read_backs_done_ = 0;
  bool drained_ = false;
  std::optional<int> wiped_;  // the node that lost its disk
  bool gave_up_ = false;
  std::map<LogName, int> owners_;  // as far as they are known
  std::vector<std::unique_ptr<sim::Machine>> machines_;

  // What a client notes before it asks: an answer about a lease is judged by the life and the clock
  // that its owner had then.
  struct Moment {
    std::vector<int> boots;
    std::vector<Nanos> mono;
  };
  Moment moment() const;
  // Still the same life as at that moment. An answer may arrive when its sender is dead already.
  bool still_lives(std::size_t node, const Moment& then) const {
    return machines_[node]->up() && machines_[node]->boots() == then.boots[node];
  }
  int node_of(const std::string& id) const;
  // The node that owns the log; nothing while nobody does.
  std::optional<int> owner_of(const metastore::State& view, const LogName& log);
};

// What runs on the machine in one life: the node, and clients that live and die with it.
class App {
 public:
  App(Env& env, World& world, int index);
  node::Node& node() { return node_; }
  // Started, and a member that has seen what the others know.
  bool ready() { return ready_ && !stopping_ && node_.broker().readiness().ready; }
  bool stopping() const { return stopping_; }
  bool stopped() const { return stopped_; }
  void stop_cleanly();
  std::string describe();
  void start_drain();
  void start_giving_up();
  bool has_disk(const std::string& id) const { return node_.has_disk(id); }
  void check_lag();
  void start_read_back();
  std::vector<metastore::TopicRowPtr> topics();

 private:
  Task<void> main();
  Task<void> producer(std::uint32_t index);
  Task<void> consumer(std::uint32_t index);
  Task<void> administrator();
  Task<void> script();
  Task<void> drain();
  Task<void> give_up_lost_topics();
  Task<void> give_up(Topic topic);
  Task<void> read_everything();
  Task<bool> consume_some(Rng& random, std::string name, bool drain);
  MessagePtr make_message(Rng& random, const Topic& topic, std::uint64_t& id);
  void note_durable_acks();
  Task<void> ack_all(Topic topic, std::vector<api::LeasedMessage> messages);
  void note_delivery(const LogName& log, const StoredRecord& record, const World::Moment& asked,
                     Nanos visibility);
  Nanos pause(Rng& random, Nanos most) {
    return Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most.count()))));
  }
  Rng stream(const char* purpose, std::uint64_t index) {
    const std::uint64_t life = index * 1000 + static_cast<std::uint64_t>(machine().boots());
    return world_.sim_.stream(purpose, life + static_cast<std::uint64_t>(index_) * 1'000'000);
  }

  sim::Machine& machine() const { return *world_.machines_[static_cast<std::size_t>(index_)]; }

  World& world_;
  const int index_;
  std::unique_ptr<FileSystem> fs_;
  Env env_;
  node::Node node_;
  bool ready_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  TaskGroup clients_;  // they use the broker, which goes with a clean stop
  TaskGroup tasks_;
};

App::App(Env& env, World& world, int index)
    : world_(world),
      index_(index),
      fs_(plant(world.defect_, env.fs)),
      env_{env.executor, env.clock, env.timers,  env.random,  *fs_,       env.blocking,
           env.net,      env.log,   env.process, env.signals, env.parking},
      node_(
          env_,
          [&] {
            Config config = world.knobs_.config;
            if (world.knobs_.nodes > 1) config.cluster.node_id = host_of(index);
            return config;
          }(),
          [&] {
            node::NodeOptions options;
            options.serve_http = false;
            options.log = world.knobs_.log;
            options.ingress = world.knobs_.ingress;
            options.dispatch = world.knobs_.dispatch;
            options.dispatch.plan.defects = plan_defects(world.defect_);
            options.wrap_target = [defect = world.defect_](dispatch::CommitTarget& inner) {
              return plant(defect, inner);
            };
            return options;
          }()),
      clients_(env_),
      tasks_(env_) {
  tasks_.spawn("main", main());
}

Task<void> App::main() {
  auto started = co_await node_.start();
  if (!started) {
    world_.reach_.hit("start refused");
    if (world_.phase_ != Phase::faults) {
      world_.oracle_.violation("the node does not start on a healthy disk: " +
                               started.error().text());
    }
    env_.process.exit(kExitFailure, started.error().text());
    co_return;
  }
  ready_ = true;
  if (world_.phase_ != Phase::faults) co_return;
  if (world_.scripted_) {
    if (machine().boots() == 1) clients_.spawn("script", script());
    co_return;
  }
  for (std::uint32_t i = 0; i < world_.knobs_.producers; ++i)
    clients_.spawn("producer", producer(i));
  for (std::uint32_t i = 0; i < world_.knobs_.consumers; ++i)
    clients_.spawn("consumer", consumer(i));
  if (index_ < 2) clients_.spawn("administrator", administrator());
}

MessagePtr App::make_message(Rng& random, const Topic& topic, std::uint64_t& id) {
  id = world_.oracle_.sent(topic.name, topic.incarnation, index_);
  auto message = std::make_shared<Message>();
  message->topic = topic.name;
  message->incarnation = topic.incarnation;
  message->key = cat("k", random.below(20));
  message->partition = partition_of_key(message->key, topic.partitions);
  message->accepted_at = env_.clock.wall_millis();
  message->payload =
      Oracle::payload(id, static_cast<std::size_t>(random.below(world_.knobs_.message_bytes_max)));
  return message;
}

Task<void> App::producer(std::uint32_t index) {
  Rng random = stream("producer", index);
  auto& broker = node_.broker();
  while (world_.phase_ == Phase::faults) {
    co_await sleep_for(env_,
                       pause(random, world_.share(200ms) * 100 /
                                         std::max<std::int64_t>(1, world_.workload_percent_)));
    const auto* row = broker.view()->topics.find(kTopics[random.below(std::size(kTopics))]);
    if (row == nullptr) continue;
    const Topic topic = row->topic;
    const bool batch = random.below(3) == 0;
    const std::uint64_t count = batch ? random.range(1, 20) : 1;
    std::vector<MessagePtr> messages;
    std::vector<std::uint64_t> ids;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t id = 0;
      messages.push_back(make_message(random, topic, id));
      ids.push_back(id);
    }
    Result<void> result = ok();
    if (batch) {
      result = co_await broker.produce_batch(std::move(messages));
    } else {
      auto message = std::move(messages.front());
      result = co_await broker.produce(std::move(message));
    }
    for (std::uint64_t id : ids) {
      if (result) {
        world_.oracle_.accepted(id, world_.sim_.now());
      } else if (result.error().code() != Errc::unknown_outcome) {
        world_.oracle_.refused(id);
        world_.reach_.hit("produce refused");
      }
    }
  }
}

void App::note_durable_acks() {
  for (const auto& partition : node_.partitions().open_now()) {
    if (partition->delivery->stats().unsaved_acks == 0) {
      world_.oracle_.acks_durable({partition->id, partition->incarnation});
    }
  }
}

Task<bool> App::consume_some(Rng& random, std::string name, bool drain) {
  auto& broker = node_.broker();
  const auto* row = broker.view()->topics.find(name);
  if (row == nullptr) co_return false;
  const Topic topic = row->topic;
  api::ConsumeRequest request;
  request.topic = topic.name;
  request.incarnation = topic.incarnation;
  request.max = static_cast<std::uint32_t>(random.range(1, 20));
  if (!drain && random.below(3) == 0) request.wait = pause(random, 3s);
  if (!drain && random.below(4) == 0) {
    request.partition = PartitionId(static_cast<std::uint32_t>(random.below(topic.partitions)));
  }
  const World::Moment asked = world_.moment();  // every lease it answers with was taken after this
  auto got = co_await broker.consume(std::move(request));
  if (!got) {
    world_.reach_.hit("consume error");
    co_return false;
  }
  const Nanos visibility = std::chrono::milliseconds(topic.visibility_timeout_ms);
  for (const auto& message : got.value()) {
    const LogName log{{topic.name, message.handle.partition}, topic.incarnation};
    note_delivery(log, message.record, asked, visibility);
  }
  if (drain && world_.knobs_.nodes > 1) {
    co_await ack_all(topic, got.value());
    co_return !got.value().empty();
  }
  for (const auto& message : got.value()) {
    const LogName log{{topic.name, message.handle.partition}, topic.incarnation};
    const auto owner = world_.owner_of(*broker.view(), log);
    if (!owner) continue;  // the topic was deleted meanwhile
    const auto at = static_cast<std::size_t>(*owner);
    const World::Moment settled = world_.moment();
    // What was answered by a life that has ended since is known to nobody.
    const auto same_life = [&] { return world_.still_lives(at, settled); };
    const std::uint64_t dice = drain ? 0 : random.below(100);
    if (dice < 80) {
      auto r =
          co_await broker.settle(topic.name, topic.incarnation, message.handle, SettleMode::ack);
      if (r && same_life()) {
        world_.oracle_.acked(log, message.handle.offset, settled.boots[at],
                             world_.machines_[at]->clock().mono());
      }
    } else if (dice < 87) {
      // From now on anybody may get it: somebody else's answer may come before ours.
      if (world_.knobs_.nodes > 1) world_.oracle_.nacked(log, message.handle.offset);
      auto r =
          co_await broker.settle(topic.name, topic.incarnation, message.handle, SettleMode::nack);
      if (r) world_.oracle_.nacked(log, message.handle.offset);
      world_.reach_.hit("nack");
    } else if (dice < 92) {
      auto r =
          co_await broker.settle(topic.name, topic.incarnation, message.handle, SettleMode::extend);
      if (r && same_life()) {
        world_.oracle_.extended(log, message.handle.offset, settled.mono[at], visibility);
      }
    } else {
      world_.reach_.hit("lease left to expire");
    }
  }
  note_durable_acks();
  co_return !got.value().empty();
}

void App::note_delivery(const LogName& log, const StoredRecord& record, const World::Moment& asked,
                        Nanos visibility) {
  const auto owner = world_.owner_of(*node_.broker().view(), log);
  if (!owner) return world_.oracle_.seen(log, record);
  const auto at = static_cast<std::size_t>(*owner);
  sim::Machine& machine = *world_.machines_[at];
  const int life = world_.still_lives(at, asked) ? asked.boots[at] : -1;
  world_.oracle_.delivered(log, record, life, asked.mono[at], machine.clock().mono(), visibility);
  if (*owner != index_) world_.reach_.hit("delivered by another node than the owner");
}

// One call per owner in place of one per message: draining a cluster is not what is under test.
Task<void> App::ack_all(Topic topic, std::vector<api::LeasedMessage> messages) {
  std::vector<ReceiptHandle> handles;
  for (const auto& message : messages) handles.push_back(message.handle);
  const World::Moment settled = world_.moment();
  auto results =
      co_await node_.broker().settle_batch(topic.name, topic.incarnation, handles, SettleMode::ack);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const LogName log{{topic.name, handles[i].partition}, topic.incarnation};
    const auto owner = world_.owner_of(*node_.broker().view(), log);
    if (!results[i] || !owner) continue;
    const auto at = static_cast<std::size_t>(*owner);
    sim::Machine& machine = *world_.machines_[at];
    if (!world_.still_lives(at, settled)) continue;
    world_.oracle_.acked(log, handles[i].offset, settled.boots[at], machine.clock().mono());
  }
}

Task<void> App::consumer(std::uint32_t index) {
  Rng random = stream("consumer", index);
  while (world_.phase_ == Phase::faults) {
    co_await sleep_for(env_, pause(random, world_.share(150ms)));
    std::string name = kTopics[random.below(std::size(kTopics))];
    co_await consume_some(random, std::move(name), false);
  }
}

// Each step waits for what it needs, so that one crash point differs from the next by one disk
// call.
Task<void> App::script() {
  auto& broker = node_.broker();
  auto& oracle = world_.oracle_;
  const std::string name = kTopics[0];
  for (int life = 1; life <= 2; ++life) {
    metastore::TopicSpec spec;
    spec.name = name;
    spec.partitions = 2;
    spec.visibility_timeout_ms = 5'000;
    spec.max_in_flight_per_partition = 100;
    spec.max_acked_ahead_per_partition = 100;
    auto created = co_await broker.create_topic(std::move(spec));
    if (!created) co_return;
    const Topic topic = created.value();
    for (int n = 0; n < (life == 1 ? 30 : 6); ++n) {
      auto message = std::make_shared<Message>();
      const std::uint64_t id = oracle.sent(name, topic.incarnation);
      message->topic = name;
      message->incarnation = topic.incarnation;
      message->key = cat("k", n % 5);
      message->partition = partition_of_key(message->key, topic.partitions);
      message->accepted_at = env_.clock.wall_millis();
      message->payload = Oracle::payload(id, 400);
      auto accepted = co_await broker.produce(std::move(message));
      if (accepted) {
        oracle.accepted(id, world_.sim_.now());
      } else if (accepted.error().code() != Errc::unknown_outcome) {
        oracle.refused(id);
      }
    }
    while (node_.dispatch_stats().unsettled > 0) co_await sleep_for(env_, 10ms);
    api::ConsumeRequest request;
    request.topic = name;
    request.incarnation = topic.incarnation;
    request.max = 12;
    const Nanos asked = env_.clock.mono();
    auto got = co_await broker.consume(request);
    if (!got) co_return;
    const int boot = machine().boots();
    for (const auto& m : got.value()) {
      oracle.delivered({{name, m.handle.partition}, topic.incarnation}, m.record, boot, asked,
                       env_.clock.mono(), 5s);
    }
    // The last first, and one never: parked acks, then a frontier that jumps.
    for (std::size_t i = got.value().size(); i-- > 1;) {
      const auto& m = got.value()[i];
      auto r = co_await broker.settle(name, topic.incarnation, m.handle, SettleMode::ack);
      if (r) {
        oracle.acked({{name, m.handle.partition}, topic.incarnation}, m.handle.offset, boot,
                     env_.clock.mono());
      }
    }
    co_await sleep_for(env_, 300ms);  // three ticks of the ack journal
    note_durable_acks();
    if (life == 2) break;
    metastore::TopicPatch patch;
    patch.retention_ms = 2'000;
    oracle.retention(name, topic.incarnation, 2s);
    (void)co_await broker.alter_topic(name, patch);
    co_await sleep_for(env_, 4s);
    oracle.topic_deleted(name, topic.incarnation);
    if (!co_await broker.delete_topic(name)) co_return;
  }
  world_.script_done_ = true;
}

Task<void> App::administrator() {
  Rng random = stream("administrator", 0);
  auto& broker = node_.broker();
  while (world_.phase_ == Phase::faults) {
    const std::string name = kTopics[random.below(std::size(kTopics))];
    const auto row = broker.view()->topics.get(name);
    const std::uint64_t dice = random.below(10);
    if (!row) {
      metastore::TopicSpec spec;
      spec.name = name;
      spec.partitions = static_cast<std::uint32_t>(random.range(1, 3));
      spec.retention_ms = name == "short" ? 8'000 : 0;
      spec.visibility_timeout_ms = static_cast<std::int64_t>(random.range(5'000, 8'000));
      spec.max_in_flight_per_partition = static_cast<std::int64_t>(random.range(3, 50));
      spec.max_acked_ahead_per_partition = static_cast<std::int64_t>(random.range(2, 50));
      auto created = co_await broker.create_topic(std::move(spec));
      if (created && name == "short") {
        world_.oracle_.retention(name, created.value().incarnation, 8s);
      }
    } else if (name == "short") {
      // A crash may have kept the answer to the creation from us.
      world_.oracle_.retention(name, row->topic.incarnation, 8s);
    } else if (dice == 0 && random.below(3) == 0) {
      const Incarnation incarnation = row->topic.incarnation;
      // From the moment of the call nothing of it is promised any more.
      world_.oracle_.topic_deleted(name, incarnation);
      auto deleted = co_await broker.delete_topic(name);
      if (deleted) world_.reach_.hit("topic deleted");
    } else if (dice == 1 && row->topic.partitions < 5) {
      metastore::TopicPatch patch;
      patch.partitions = row->topic.partitions + 1;
      (void)co_await broker.alter_topic(name, std::move(patch));
    } else if (dice == 2) {
      metastore::TopicPatch patch;
      patch.max_acked_ahead_per_partition = static_cast<std::int64_t>(random.range(2, 50));
      (void)co_await broker.alter_topic(name, std::move(patch));
    }
    co_await sleep_for(env_, pause(random, 2s));
  }
}

void App::start_drain() { clients_.spawn("drain", drain()); }

// Consumes and acks until nothing is left anywhere.
Task<void> App::drain() {
  Rng random = stream("drain", 0);
  int empty_rounds = 0;
  // A lease that nobody settles runs out by its owner's clock, which may be nearly four times
  // slower.
  const int enough = world_.knobs_.nodes > 1 ? 240 : 60;
  while (empty_rounds < enough) {
    bool got = false;
    for (const char* topic : kTopics) {
      while (co_await consume_some(random, topic, true)) got = true;
    }
    empty_rounds = got || world_.unsettled() > 0 ? 0 : empty_rounds + 1;
    co_await sleep_for(env_, 200ms);  // leases of consumers that went away expire first
  }
  world_.drained_ = true;
}

void App::check_lag() {
  for (const auto& partition : node_.partitions().open_now()) {
    const auto stats = partition->delivery->stats();
    if (stats.lag > stats.dropped) {
      world_.oracle_.violation(
          cat(to_string(partition->id), ": ", stats.lag, " records are never delivered"));
    }
  }
}

void App::start_read_back() { clients_.spawn("read back", read_everything()); }

Task<void> App::read_everything() {
  const std::vector<metastore::TopicRowPtr> rows = topics();
  for (const auto& row : rows) {
    for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
      if (!row->assignments[p].used || row->assignments[p].owner_node != node_.node_id()) continue;
      const LogName log{{row->topic.name, PartitionId(p)}, row->topic.incarnation};
      auto pin =
          co_await node_.partitions().open(log.partition, log.incarnation, node::OpenFor::read);
      if (!pin) {
        world_.oracle_.violation(
            cat("cannot open ", to_string(log.partition), ": ", pin.error().text()));
        continue;
      }
      const Offset oldest = pin.value()->log->oldest(), hwm = pin.value()->log->hwm();
      std::vector<StoredRecord> records;
      for (Offset at = oldest; at < hwm;) {
        auto part = co_await pin.value()->log->read(at, 100, 1 << 20);
        if (!part) {
          world_.oracle_.violation(
              cat("cannot read ", to_string(log.partition), " at ", at, ": ", part.error().text()));
          break;
        }
        for (const auto& lost : part.value().lost) {
          world_.oracle_.violation(
              cat(to_string(log.partition), " lost offsets ", lost.from, " to ", lost.to));
        }
        for (auto& record : part.value().records) {
          world_.oracle_.seen(log, record);
          records.push_back(std::move(record));
        }
        if (part.value().next <= at) break;
        at = part.value().next;
      }
      world_.oracle_.log_read(log, oldest, hwm, records);
    }
  }
  ++world_.read_backs_done_;
}

std::vector<metastore::TopicRowPtr> App::topics() {
  std::vector<metastore::TopicRowPtr> rows;
  node_.broker().view()->topics.for_each([&](const auto& row) { rows.push_back(row); });
  return rows;
}

// Where the node stands, for the report of a run that stalls.
std::string App::describe() {
  if (stopping_) return "; the node was told to stop";
  const auto plan = node_.dispatch_stats();
  std::string text = cat("; dispatch: checkpoint ", plan.checkpoint, ", unsettled ", plan.unsettled,
                         ", in flight ", plan.in_flight, ", failing ", plan.failing,
                         ", failed batches ", plan.failed_batches);
  for (const std::string& why : node_.broker().readiness().waiting_for) text += cat("; ", why);
  const auto wal = node_.ingress().stats();
  text += cat("; ingress: ", ingress::to_string(wal.state), " ", wal.reason);
  for (const auto& partition : node_.partitions().open_now()) {
    if (partition->log->latched()) {
      text += cat("; ", to_string(partition->id), " latched: ", partition->log->latched_text());
    }
  }
  return text;
}

void App::stop_cleanly() {
  stopping_ = true;
  struct Stop {
    static Task<void> run(App& app) {
      co_await app.clients_.stop();
      co_await app.node_.stop();
      app.stopped_ = true;
    }
  };
  tasks_.spawn("stop", Stop::run(*this));
}

// ---- the world -------------------------------------------------------------------------------

World::World(const sim::Plan& plan, const sim::RunWish& wish, Defect defect, bool echo_log)
    : plan_(plan),
      wish_(wish),
      defect_(defect),
      workload_percent_(plan.option("workload", 100)),
      scripted_(plan.option("script", 0) != 0),
      sim_(plan.seed),
      net_(sim_),
      knobs_(scripted_ ? script_knobs() : draw_knobs(sim_, plan.scenario == kClusterScenario)),
      oracle_(knobs_.nodes > 1) {
  // SQLite's generator is one for the process: it starts anew with every run.
  sim::Rng sqlite_random = sim_.stream("sqlite");
  sqlite::reseed_randomness(sqlite_random);
  sim_.set_tracing(wish.trace_lines);
  sim_.set_recording(wish.record);
  for (int i = 0; i < knobs_.nodes; ++i) {
    machines_.push_back(
        std::make_unique<sim::Machine>(sim_, net_, static_cast<sim::NodeId>(i), host_of(i)));
    machines_.back()->log().set_echo(echo_log);
    machines_.back()->set_on_down([this, i](sim::Machine::Kill) { went_down(i); });
  }
}

World::Moment World::moment() const {
  Moment m;
  for (const auto& machine : machines_) {
    m.boots.push_back(machine->boots());
    m.mono.push_back(machine->clock().mono());
  }
  return m;
}

int World::node_of(const std::string& id) const {
  if (machines_.size() == 1) return 0;
  for (int i = 0; i < knobs_.nodes; ++i) {
    if (host_of(i) == id) return i;
  }
  NARAD_ASSERT(false, id);
}

std::optional<int> World::owner_of(const metastore::State& view, const LogName& log) {
  const auto* row = view.topics.find(log.partition.topic);
  if (row != nullptr && row->topic.incarnation == log.incarnation &&
      log.partition.partition.value() < row->assignments.size()) {
    const std::string& owner = row->assignments[log.partition.partition.value()].owner_node;
    if (!owner.empty()) owners_[log] = node_of(owner);
  }
  const auto known = owners_.find(log);
  if (known == owners_.end()) return std::nullopt;
  return known->second;
}

// False if a node is down or not ready, or `holds` does not hold for it.
bool World::each_node(const std::function<bool(App&)>& holds) {
  return std::all_of(machines_.begin(), machines_.end(), [&](const auto& machine) {
    if (!machine->up()) return false;
    App& app = machine->template component<App>();
    return app.ready() && !app.stopping() && holds(app);
  });
}

bool World::has_disk(int node, const std::string& disk) {
  const auto& machine = machines_[static_cast<std::size_t>(node)];
  return machine->up() && machine->component<App>().ready() &&
         machine->component<App>().has_disk(disk);
}

std::uint64_t World::unsettled() {
  std::uint64_t sum = 0;
  for (const auto& machine : machines_) {
    if (!machine->up() || !machine->component<App>().ready()) return 1;  // nobody knows
    sum += machine->component<App>().node().dispatch_stats().unsettled;
  }
  return sum;
}

void World::went_down(int node) {
  // Acks of its partitions that were not on disk yet may be forgotten.
  oracle_.crashed([&](const LogName& log) {
    const auto owner = owners_.find(log);
    return owner == owners_.end() || owner->second == node;
  });
  sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
  if (const auto& exit = machine.last_exit(); exit && exit->code == kExitSyncFailed) {
    reach_.hit("exit after a failed sync");
  }
  if (!clean_stop_) machine.boot_after(500ms);
}

void World::apply(const sim::Fault& fault) {
  const auto number = static_cast<std::uint64_t>(fault.number);
  const auto node = static_cast<std::size_t>(fault.node) % machines_.size();
  sim::Machine& machine = *machines_[node];
  auto& faults = machine.disk().faults;
  reach_.hit("fault: " + fault.kind);
  if (fault.kind == "power_cut") {
    machine.kill(sim::Machine::Kill::power_cut);
  } else if (fault.kind == "kill9") {
    machine.kill(sim::Machine::Kill::process_exit);
  } else if (fault.kind == "cut_at_call") {
    // The number says which call, twice, and with its lowest bit whether it lands torn.
    machine.kill_at_disk_call(
        number / 2 + 1, sim::Machine::Kill::power_cut,
        (number & 1) != 0 ? sim::SimFs::Cut::during_call : sim::SimFs::Cut::before_call);
  } else if (fault.kind == "eio_write") {
    machine.disk().fail_call(sim::FsCall::pwrite, number + 1);
  } else if (fault.kind == "eio_sync") {
    machine.disk().fail_call(sim::FsCall::sync, number + 1);
  } else if (fault.kind == "eio_read") {
    machine.disk().fail_call(sim::FsCall::pread, number + 1);
  } else if (fault.kind == "partition_refuses") {
    // The disk calls of one partition fail for a while: its records wait, or are rerouted.
    machine.disk().fail_call(sim::FsCall::pwrite, 1, true, 5, cat("/p0000", number % 3, "/"));
    later(std::chrono::milliseconds(500 + number), [&machine] { machine.disk().clear_failures(); });
  } else if (fault.kind == "disk_full") {
    faults.capacity_bytes = machine.disk().used_bytes() + number;
    later(4s,
          [&machine] { machine.disk().faults.capacity_bytes = sim::FsFaults{}.capacity_bytes; });
  } else if (fault.kind == "short_io") {
    faults.short_read = faults.short_write = static_cast<sim::Ppm>(number);
  } else if (fault.kind == "slow_disk") {
    faults.slow = 200'000;
    faults.slow_max = std::chrono::milliseconds(number + 1);
    later(6s, [&machine] { machine.disk().faults.slow = 0; });
  } else if (fault.kind == "wall_step") {
    machine.clock().step_wall(std::chrono::seconds(number) - 1h);
  } else if (fault.kind == "clean_restart") {
    if (machine.up() && machine.component<App>().ready()) machine.component<App>().stop_cleanly();
    later(12s, [&machine, boots = machine.boots()] {
      if (machine.up() && machine.boots() == boots) machine.kill(sim::Machine::Kill::process_exit);
    });
  } else {
    apply_to_network(fault);
  }
}

// Faults between nodes; the number says with whom and for how long.
void World::apply_to_network(const sim::Fault& fault) {
  const auto number = static_cast<std::uint64_t>(fault.number);
  const auto count = static_cast<std::uint64_t>(machines_.size());
  const auto node = static_cast<sim::NodeId>(static_cast<std::uint64_t>(fault.node) % count);
  const auto other = static_cast<sim::NodeId>((node + 1 + number % (count - 1)) % count);
  const Nanos length = std::chrono::milliseconds(200 + number);
  if (fault.kind == "isolate") {
    net_.partition({node});
    later(length, [this] { net_.heal(); });
  } else if (fault.kind == "split") {
    net_.partition({node, other});
    later(length, [this] { net_.heal(); });
  } else if (fault.kind == "one_way") {
    net_.block(node, other);
    later(length, [this, node, other] { net_.unblock(node, other); });
  } else if (fault.kind == "deaf") {  // hears nobody, is heard by all
    for (sim::NodeId from = 0; from < static_cast<sim::NodeId>(count); ++from) {
      if (from != node) net_.block(from, node);
    }
    later(length, [this] { net_.heal(); });
  } else if (fault.kind == "resets") {
    net_.reset_connections(node, other);
  } else if (fault.kind == "slow_link") {
    sim::Link link;
    link.latency_min = std::chrono::milliseconds(5 + number % 400);
    net_.set_link(node, other, link);
    later(length, [this] { net_.clear_links(); });
  } else if (fault.kind == "wipe") {
    wipe(static_cast<int>(node));
  } else if (fault.kind == "pause") {
    sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
    if (!machine.up() || machine.paused()) return;
    machine.pause();
    later(length, [&machine] { machine.resume(); });
  } else {
    NARAD_ASSERT(false, fault.kind);
  }
}

// A node loses its whole disk: what only that disk held is gone, and nothing else may be. Once a
// run, since a majority that lost its disks is another story.
void World::wipe(int node) {
  sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
  if (wiped_ || !machine.up()) return;
  wiped_ = node;
  machine.kill(sim::Machine::Kill::power_cut);
  machine.disk().wipe();
  oracle_.disk_lost(node);
}

// What an operator does about partitions whose only disk is gone: their topics are given up.
Task<void> App::give_up_lost_topics() {
  // Again and again for a while: this node may only just be hearing of topics and of first uses.
  for (int round = 0; round < 30; ++round) {
    for (const auto& row : topics()) {
      const bool hit =
          std::any_of(row->assignments.begin(), row->assignments.end(), [&](const Assignment& a) {
            return a.used && a.owner_node == host_of(*world_.wiped_) &&
                   !world_.has_disk(*world_.wiped_, a.owner_disk);
          });
      if (hit) co_await give_up(row->topic);
    }
    co_await sleep_for(env_, 500ms);
  }
  world_.gave_up_ = true;
}

Task<void> App::give_up(Topic topic) {
  world_.oracle_.topic_deleted(topic.name, topic.incarnation);
  auto deleted = co_await node_.broker().delete_topic(topic.name);
  if (deleted) world_.reach_.hit("topic given up with its disk");
}

void App::start_giving_up() { clients_.spawn("give up", give_up_lost_topics()); }

// An end of a fault, unless calm has come before.
void World::later(Nanos delay, std::function<void()> what) {
  sim_.after(delay, sim::kWorld, "fault ends", [this, what = std::move(what)](bool) {
    if (phase_ == Phase::faults) what();
  });
}

void World::heal() {
  net_.heal();
  net_.clear_links();
  for (const auto& machine : machines_) {
    auto& disk = machine->disk();
    disk.cancel_cut();
    disk.clear_failures();
    disk.faults = sim::FsFaults{};
    if (machine->up() && machine->paused()) machine->resume();
  }
}

bool World::settle(const char* what, const std::function<bool()>& done) {
  if (sim_.run_until(done, kCalmMax)) return true;
  std::string why = cat("no progress: ", what, " does not end within ", format_duration(kCalmMax),
                        " after all faults stopped");
  for (const auto& machine : machines_) {
    if (machines_.size() > 1) why += cat("; ", machine->host(), ":");
    if (!machine->up())
      why += "; the machine is down";
    else if (!machine->component<App>().ready())
      why += "; the node is not ready";
    else
      why += machine->component<App>().describe();
    if (const auto& exit = machine->last_exit())
      why += cat("; last exit ", exit->code, " (", exit->why, ")");
  }
  oracle_.violation(why);
  return false;
}

void World::read_back(const char* when) {
  const auto ready = [&] { return each_node([](App&) { return true; }); };
  if (!settle(cat("start ", when).c_str(), ready)) return;
  const int before = read_backs_done_;
  for (const auto& machine : machines_) machine->component<App>().start_read_back();
  const int all = before + knobs_.nodes;
  if (!settle(cat("reading back ", when).c_str(), [&] { return read_backs_done_ >= all; })) return;
  for (const auto& row : machines_[0]->component<App>().topics()) {
    oracle_.topic_read(row->topic.name, row->topic.incarnation, sim_.now(), knobs_.reroutes);
  }
}

void World::collect_reach() {
  for (const auto& machine : machines_) {
    const auto& d = machine->disk().stats;
    reach_.hit("power cuts", d.cuts);
    reach_.hit("torn writes", d.torn);
    reach_.hit("dropped writes", d.dropped);
    reach_.hit("garbage sectors", d.garbage);
    reach_.hit("lost names", d.names_lost);
    reach_.hit("EIO", d.eio + d.scripted);
    reach_.hit("ENOSPC", d.enospc);
    reach_.hit("short writes", d.short_writes);
  }
}

void World::run_faults() {
  for (const auto& fault : plan_.faults) {
    sim_.at(std::chrono::milliseconds(fault.at_ms), sim::kWorld, "fault", [this, fault](bool) {
      if (phase_ == Phase::faults) apply(fault);
    });
  }
  if (scripted_) {
    // Until the script is through, or the crash has happened and the node is back.
    sim::Machine& machine = *machines_[0];
    sim_.run_until(
        [&] {
          return script_done_ ||
                 (machine.boots() > 1 && machine.up() && machine.component<App>().ready());
        },
        kFaultsFor);
  } else {
    sim_.run_until(kFaultsFor);
  }
}

void World::stop_all_cleanly() {
  for (const auto& machine : machines_) {
    if (!machine->up() || !machine->component<App>().ready()) return;
  }
  for (const auto& machine : machines_) machine->component<App>().stop_cleanly();
  const auto stopped = [&] {
    return std::all_of(machines_.begin(), machines_.end(), [](const auto& machine) {
      return machine->up() && machine->template component<App>().stopped();
    });
  };
  if (!settle("clean stop", stopped)) return;
  for (const auto& machine : machines_) machine->kill(sim::Machine::Kill::process_exit);
  read_back("after a clean stop");
}

RunResult World::run() {
  for (int i = 0; i < knobs_.nodes; ++i) {
    machines_[static_cast<std::size_t>(i)]->boot(
        [this, i](Env& env) { return std::make_shared<App>(env, *this, i); });
  }
  run_faults();
  disk_calls_ = machines_[0]->disk().ops();
  phase_ = Phase::calm;
  heal();
  // A node that was told to stop cleanly just now is started anew.
  for (const auto& machine : machines_) {
    if (!machine->up()) continue;
    App& app = machine->component<App>();
    if (!app.ready() || app.stopping()) machine->kill(sim::Machine::Kill::process_exit);
  }
  const auto handed_over = [](App& app) {
    return app.node().dispatch_stats().unsettled == 0 && app.node().ingress().is_open();
  };
  const auto given_up = [&] {
    if (!wiped_) return true;
    machines_[0]->component<App>().start_giving_up();
    return settle("giving topics up", [&] { return gave_up_; });
  };
  if (settle("start", [&] { return each_node([](App&) { return true; }); }) && given_up() &&
      settle("hand-over", [&] { return each_node(handed_over); })) {
    for (const auto& machine : machines_) {
      reach_.hit("rerouted", machine->component<App>().node().dispatch_stats().rerouted);
    }
    machines_[0]->component<App>().start_drain();
    if (settle("consuming everything", [&] { return drained_; })) {
      for (const auto& machine : machines_) machine->component<App>().check_lag();
    }
    phase_ = Phase::read_back;
    read_back("after the faults");
    for (const auto& machine : machines_) machine->kill(sim::Machine::Kill::power_cut);
    read_back("after a last power cut");
    stop_all_cleanly();
  }
  clean_stop_ = true;
  for (const auto& machine : machines_) {
    if (machine->up()) machine->kill(sim::Machine::Kill::process_exit);
  }
  collect_reach();
  RunResult result;
  result.outcome.take(sim_);
  result.outcome.reach.add(reach_);
  for (const std::string& violation : oracle_.violations()) {
    result.outcome.violation += (result.outcome.violation.empty() ? "" : "\n") + violation;
  }
  result.counts = oracle_.counts();
  result.options = knobs_.text;
  result.disk_calls = disk_calls_;
  return result;
}

RunResult run(const sim::Plan& plan, const sim::RunWish& wish, Defect defect, bool echo_log) {
  return World(plan, wish, defect, echo_log).run();
}

}  // namespace narad::simtest
