#include "internal/simtest/world.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "internal/node/node.h"
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

// Sizes and odds drawn per seed: small and odd ones, so that rolls, splits and caps happen often.
struct Knobs {
  seglog::Knobs log;
  ingress::Options ingress;
  dispatch::Options dispatch;
  Config config;
  std::uint32_t producers = 1, consumers = 1;
  std::size_t message_bytes_max = 200;
  bool reroutes = false;
  std::string text;
};

Knobs draw_knobs(const sim::Sim& sim) {
  Rng r = sim.stream("knobs");
  Knobs k;
  const auto pick = [&](std::initializer_list<std::uint64_t> from) {
    return *(from.begin() + static_cast<std::ptrdiff_t>(r.below(from.size())));
  };
  k.log.segment_bytes = pick({4096, 8192, 65536, 1u << 20});
  k.log.frame_raw_bytes = static_cast<std::size_t>(pick({2048, 16384, 1u << 20}));
  if (r.below(4) == 0) k.log.compression.codec = seglog::Codec::zstd;
  k.ingress.segment_bytes_max = pick({8192, 65536, 1u << 20});
  k.ingress.preallocate_bytes = pick({0, 4096, 65536});
  k.ingress.group_bytes_max = pick({4096, 65536, 1u << 20});
  k.ingress.memory_bytes_max = pick({4096, 65536, 8u << 20});
  k.dispatch.plan.batch_records_max = static_cast<std::size_t>(pick({1, 7, 100, 10000}));
  k.dispatch.plan.batch_bytes_max = pick({1000, 20000, 1u << 20});
  k.dispatch.plan.loaded_bytes_max = pick({10000, 1u << 20});
  k.reroutes = r.below(5) == 0;
  k.config.timing.dispatch_grace = k.reroutes ? Nanos(3s) : Nanos(1h);
  k.config.timing.dispatch_retry = std::chrono::milliseconds(pick({50, 300, 1000}));
  k.config.timing.ingress_retry = std::chrono::milliseconds(pick({100, 1000}));
  k.config.timing.retention_check = std::chrono::seconds(pick({3, 10, 60}));
  k.config.timing.idle_check = std::chrono::seconds(pick({2, 10, 60}));
  k.config.storage.idle_log_eviction_ms = static_cast<std::int64_t>(pick({0, 1500, 60000}));
  k.config.storage.data_dir = "/data";
  k.producers = static_cast<std::uint32_t>(r.range(1, 4));
  k.consumers = static_cast<std::uint32_t>(r.range(1, 3));
  k.message_bytes_max = static_cast<std::size_t>(pick({20, 200, 3000}));
  k.text = cat("segment ", k.log.segment_bytes, ", frame ", k.log.frame_raw_bytes, ", wal segment ",
               k.ingress.segment_bytes_max, ", batch ", k.dispatch.plan.batch_records_max,
               ", message ", k.message_bytes_max, ", producers ", k.producers, ", consumers ",
               k.consumers, k.reroutes ? ", reroutes" : "");
  return k;
}

// Small enough that the script rolls segments and WAL files, with nothing left to chance.
Knobs script_knobs() {
  Knobs k;
  k.log.segment_bytes = 4096;
  k.log.frame_raw_bytes = 2048;
  k.ingress.segment_bytes_max = 8192;
  k.ingress.preallocate_bytes = 4096;
  k.config.timing.dispatch_grace = Nanos(1h);
  k.config.timing.retention_check = Nanos(1s);
  k.config.storage.data_dir = "/data";
  k.text = "scripted";
  return k;
}

enum class Phase { faults, calm, read_back };

}  // namespace

// The world's side: survives every crash.
class World {
 public:
  World(const sim::Plan& plan, const sim::RunWish& wish, Defect defect, bool echo_log);
  RunResult run();

 private:
  friend class App;
  void apply(const sim::Fault& fault);
  void went_down(sim::Machine::Kill kind);
  void later(Nanos delay, std::function<void()> what);
  void heal();
  bool settle(const char* what, const std::function<bool()>& done);
  void read_back(const char* when);
  void collect_reach();

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
  sim::Machine machine_;
};

// What runs on the machine in one life: the node, and clients that live and die with it.
class App {
 public:
  App(Env& env, World& world);
  node::Node& node() { return node_; }
  bool ready() const { return ready_; }
  bool stopping() const { return stopping_; }
  bool stopped() const { return stopped_; }
  void stop_cleanly();
  std::string describe();
  void start_drain();
  void start_read_back();

 private:
  Task<void> main();
  Task<void> producer(std::uint32_t index);
  Task<void> consumer(std::uint32_t index);
  Task<void> administrator();
  Task<void> script();
  Task<void> drain();
  Task<void> read_everything();
  Task<bool> consume_some(Rng& random, std::string name, bool drain);
  MessagePtr make_message(Rng& random, const Topic& topic, std::uint64_t& id);
  void note_durable_acks();
  Nanos pause(Rng& random, Nanos most) {
    return Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most.count()))));
  }
  Rng stream(const char* purpose, std::uint64_t index) {
    return world_.sim_.stream(purpose,
                              index * 1000 + static_cast<std::uint64_t>(world_.machine_.boots()));
  }

  World& world_;
  std::unique_ptr<FileSystem> fs_;
  Env env_;
  node::Node node_;
  bool ready_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  TaskGroup clients_;  // they use the broker, which goes with a clean stop
  TaskGroup tasks_;
};

App::App(Env& env, World& world)
    : world_(world),
      fs_(plant(world.defect_, env.fs)),
      env_{env.executor, env.clock, env.timers,  env.random,  *fs_,       env.blocking,
           env.net,      env.log,   env.process, env.signals, env.parking},
      node_(env_, world.knobs_.config,
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
    if (world_.machine_.boots() == 1) clients_.spawn("script", script());
    co_return;
  }
  for (std::uint32_t i = 0; i < world_.knobs_.producers; ++i)
    clients_.spawn("producer", producer(i));
  for (std::uint32_t i = 0; i < world_.knobs_.consumers; ++i)
    clients_.spawn("consumer", consumer(i));
  clients_.spawn("administrator", administrator());
}

MessagePtr App::make_message(Rng& random, const Topic& topic, std::uint64_t& id) {
  id = world_.oracle_.sent(topic.name, topic.incarnation);
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
    co_await sleep_for(
        env_, pause(random, 200ms * 100 / std::max<std::int64_t>(1, world_.workload_percent_)));
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
  const Nanos asked = env_.clock.mono();  // every lease it answers with was taken after this
  auto got = co_await broker.consume(std::move(request));
  if (!got) {
    world_.reach_.hit("consume error");
    co_return false;
  }
  const int boot = world_.machine_.boots();
  const Nanos visibility = std::chrono::milliseconds(topic.visibility_timeout_ms);
  for (const auto& message : got.value()) {
    const LogName log{{topic.name, message.handle.partition}, topic.incarnation};
    world_.oracle_.delivered(log, message.record, boot, asked, env_.clock.mono(), visibility);
  }
  for (const auto& message : got.value()) {
    const LogName log{{topic.name, message.handle.partition}, topic.incarnation};
    const std::uint64_t dice = drain ? 0 : random.below(100);
    if (dice < 80) {
      auto r =
          co_await broker.settle(topic.name, topic.incarnation, message.handle, SettleMode::ack);
      if (r) world_.oracle_.acked(log, message.handle.offset, boot);
    } else if (dice < 87) {
      auto r =
          co_await broker.settle(topic.name, topic.incarnation, message.handle, SettleMode::nack);
      if (r) world_.oracle_.nacked(log, message.handle.offset);
      world_.reach_.hit("nack");
    } else if (dice < 92) {
      const Nanos extended = env_.clock.mono();
      auto r =
          co_await broker.settle(topic.name, topic.incarnation, message.handle, SettleMode::extend);
      if (r) world_.oracle_.extended(log, message.handle.offset, extended, visibility);
    } else {
      world_.reach_.hit("lease left to expire");
    }
  }
  note_durable_acks();
  co_return !got.value().empty();
}

Task<void> App::consumer(std::uint32_t index) {
  Rng random = stream("consumer", index);
  while (world_.phase_ == Phase::faults) {
    co_await sleep_for(env_, pause(random, 150ms));
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
    const int boot = world_.machine_.boots();
    for (const auto& m : got.value()) {
      oracle.delivered({{name, m.handle.partition}, topic.incarnation}, m.record, boot, asked,
                       env_.clock.mono(), 5s);
    }
    // The last first, and one never: parked acks, then a frontier that jumps.
    for (std::size_t i = got.value().size(); i-- > 1;) {
      const auto& m = got.value()[i];
      auto r = co_await broker.settle(name, topic.incarnation, m.handle, SettleMode::ack);
      if (r) oracle.acked({{name, m.handle.partition}, topic.incarnation}, m.handle.offset, boot);
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
  while (empty_rounds < 60) {
    bool got = false;
    for (const char* topic : kTopics) {
      while (co_await consume_some(random, topic, true)) got = true;
    }
    empty_rounds = got || node_.dispatch_stats().unsettled > 0 ? 0 : empty_rounds + 1;
    co_await sleep_for(env_, 200ms);  // leases of consumers that went away expire first
  }
  for (const auto& partition : node_.partitions().open_now()) {
    const auto stats = partition->delivery->stats();
    if (stats.lag > stats.dropped) {
      world_.oracle_.violation(
          cat(to_string(partition->id), ": ", stats.lag, " records are never delivered"));
    }
  }
  world_.drained_ = true;
}

void App::start_read_back() { clients_.spawn("read back", read_everything()); }

Task<void> App::read_everything() {
  std::vector<metastore::TopicRowPtr> rows;
  node_.broker().view()->topics.for_each([&](const auto& row) { rows.push_back(row); });
  for (const auto& row : rows) {
    for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
      if (!row->assignments[p].used) continue;
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
    world_.oracle_.topic_read(row->topic.name, row->topic.incarnation, world_.sim_.now(),
                              world_.knobs_.reroutes);
  }
  ++world_.read_backs_done_;
}

// Where the node stands, for the report of a run that stalls.
std::string App::describe() {
  if (stopping_) return "; the node was told to stop";
  const auto plan = node_.dispatch_stats();
  std::string text = cat("; dispatch: checkpoint ", plan.checkpoint, ", unsettled ", plan.unsettled,
                         ", in flight ", plan.in_flight, ", failing ", plan.failing,
                         ", failed batches ", plan.failed_batches);
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
      knobs_(scripted_ ? script_knobs() : draw_knobs(sim_)),
      machine_(sim_, net_, 0, "n0") {
  // SQLite's generator is one for the process: it starts anew with every run.
  sim::Rng sqlite_random = sim_.stream("sqlite");
  sqlite::reseed_randomness(sqlite_random);
  sim_.set_tracing(wish.trace_lines);
  sim_.set_recording(wish.record);
  machine_.log().set_echo(echo_log);
  machine_.set_on_down([this](sim::Machine::Kill kind) { went_down(kind); });
}

void World::went_down(sim::Machine::Kill) {
  oracle_.crashed();
  if (const auto& exit = machine_.last_exit(); exit && exit->code == kExitSyncFailed) {
    reach_.hit("exit after a failed sync");
  }
  if (!clean_stop_) machine_.boot_after(500ms);
}

void World::apply(const sim::Fault& fault) {
  const auto number = static_cast<std::uint64_t>(fault.number);
  auto& faults = machine_.disk().faults;
  reach_.hit("fault: " + fault.kind);
  if (fault.kind == "power_cut") {
    machine_.kill(sim::Machine::Kill::power_cut);
  } else if (fault.kind == "kill9") {
    machine_.kill(sim::Machine::Kill::process_exit);
  } else if (fault.kind == "cut_at_call") {
    // The number says which call, twice, and with its lowest bit whether it lands torn.
    machine_.kill_at_disk_call(
        number / 2 + 1, sim::Machine::Kill::power_cut,
        (number & 1) != 0 ? sim::SimFs::Cut::during_call : sim::SimFs::Cut::before_call);
  } else if (fault.kind == "eio_write") {
    machine_.disk().fail_call(sim::FsCall::pwrite, number + 1);
  } else if (fault.kind == "eio_sync") {
    machine_.disk().fail_call(sim::FsCall::sync, number + 1);
  } else if (fault.kind == "eio_read") {
    machine_.disk().fail_call(sim::FsCall::pread, number + 1);
  } else if (fault.kind == "partition_refuses") {
    // The disk calls of one partition fail for a while: its records wait, or are rerouted.
    machine_.disk().fail_call(sim::FsCall::pwrite, 1, true, 5, cat("/p0000", number % 3, "/"));
    later(std::chrono::milliseconds(500 + number), [this] { machine_.disk().clear_failures(); });
  } else if (fault.kind == "disk_full") {
    faults.capacity_bytes = machine_.disk().used_bytes() + number;
    later(4s, [this] { machine_.disk().faults.capacity_bytes = sim::FsFaults{}.capacity_bytes; });
  } else if (fault.kind == "short_io") {
    faults.short_read = faults.short_write = static_cast<sim::Ppm>(number);
  } else if (fault.kind == "slow_disk") {
    faults.slow = 200'000;
    faults.slow_max = std::chrono::milliseconds(number + 1);
    later(6s, [this] { machine_.disk().faults.slow = 0; });
  } else if (fault.kind == "wall_step") {
    machine_.clock().step_wall(std::chrono::seconds(number) - 1h);
  } else if (fault.kind == "clean_restart") {
    if (machine_.up() && machine_.component<App>().ready())
      machine_.component<App>().stop_cleanly();
    later(12s, [this, boots = machine_.boots()] {
      if (machine_.up() && machine_.boots() == boots)
        machine_.kill(sim::Machine::Kill::process_exit);
    });
  } else {
    NARAD_ASSERT(false, fault.kind);
  }
}

// An end of a fault, unless calm has come before.
void World::later(Nanos delay, std::function<void()> what) {
  sim_.after(delay, sim::kWorld, "fault ends", [this, what = std::move(what)](bool) {
    if (phase_ == Phase::faults) what();
  });
}

void World::heal() {
  auto& disk = machine_.disk();
  disk.cancel_cut();
  disk.clear_failures();
  disk.faults = sim::FsFaults{};
}

bool World::settle(const char* what, const std::function<bool()>& done) {
  if (sim_.run_until(done, kCalmMax)) return true;
  std::string why = cat("no progress: ", what, " does not end within ", format_duration(kCalmMax),
                        " after all faults stopped");
  if (!machine_.up())
    why += "; the machine is down";
  else if (!machine_.component<App>().ready())
    why += "; the node is not ready";
  else
    why += machine_.component<App>().describe();
  if (const auto& exit = machine_.last_exit())
    why += cat("; last exit ", exit->code, " (", exit->why, ")");
  oracle_.violation(why);
  return false;
}

void World::read_back(const char* when) {
  if (!settle(cat("start ", when).c_str(),
              [&] { return machine_.up() && machine_.component<App>().ready(); })) {
    return;
  }
  const int before = read_backs_done_;
  machine_.component<App>().start_read_back();
  settle(cat("reading back ", when).c_str(), [&] { return read_backs_done_ > before; });
}

void World::collect_reach() {
  const auto& d = machine_.disk().stats;
  reach_.hit("power cuts", d.cuts);
  reach_.hit("torn writes", d.torn);
  reach_.hit("dropped writes", d.dropped);
  reach_.hit("garbage sectors", d.garbage);
  reach_.hit("lost names", d.names_lost);
  reach_.hit("EIO", d.eio + d.scripted);
  reach_.hit("ENOSPC", d.enospc);
  reach_.hit("short writes", d.short_writes);
}

RunResult World::run() {
  machine_.boot([this](Env& env) { return std::make_shared<App>(env, *this); });
  for (const auto& fault : plan_.faults) {
    sim_.at(std::chrono::milliseconds(fault.at_ms), sim::kWorld, "fault", [this, fault](bool) {
      if (phase_ == Phase::faults) apply(fault);
    });
  }
  if (scripted_) {
    // Until the script is through, or the crash has happened and the node is back.
    sim_.run_until(
        [&] {
          return script_done_ ||
                 (machine_.boots() > 1 && machine_.up() && machine_.component<App>().ready());
        },
        kFaultsFor);
  } else {
    sim_.run_until(kFaultsFor);
  }
  disk_calls_ = machine_.disk().ops();
  phase_ = Phase::calm;
  heal();
  const auto ready = [&] {
    return machine_.up() && machine_.component<App>().ready() &&
           !machine_.component<App>().stopping();
  };
  // A node that was told to stop cleanly just now is started anew.
  if (machine_.up() && !ready()) machine_.kill(sim::Machine::Kill::process_exit);
  if (settle("start", ready) && settle("hand-over", [&] {
        return ready() && machine_.component<App>().node().dispatch_stats().unsettled == 0 &&
               machine_.component<App>().node().ingress().is_open();
      })) {
    reach_.hit("rerouted", machine_.component<App>().node().dispatch_stats().rerouted);
    machine_.component<App>().start_drain();
    settle("consuming everything", [&] { return drained_; });
    phase_ = Phase::read_back;
    read_back("after the faults");
    machine_.kill(sim::Machine::Kill::power_cut);
    read_back("after a last power cut");
    if (machine_.up() && machine_.component<App>().ready()) {
      machine_.component<App>().stop_cleanly();
      if (settle("clean stop", [&] { return machine_.component<App>().stopped(); })) {
        machine_.kill(sim::Machine::Kill::process_exit);
        read_back("after a clean stop");
      }
    }
  }
  clean_stop_ = true;
  if (machine_.up()) machine_.kill(sim::Machine::Kill::process_exit);
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
