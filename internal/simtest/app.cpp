// What runs on a machine in one life: a node, and clients that use it.
#include <algorithm>

#include "internal/simtest/parts.h"
#include "pkg/async/timeout.h"

namespace narad::simtest {

using namespace std::chrono_literals;

namespace {

// Tells when a dispatcher is told that an owner is dead, however short that was so: from then on it
// may reroute.
class WatchedTarget final : public dispatch::CommitTarget {
 public:
  // `planted` may be null. `inner` outlives this.
  WatchedTarget(dispatch::CommitTarget& inner, std::unique_ptr<dispatch::CommitTarget> planted,
                std::function<void()> on_dead)
      : planted_(std::move(planted)),
        inner_(planted_ ? *planted_ : inner),
        on_dead_(std::move(on_dead)) {}
  dispatch::Route route(const TopicPartition& partition, Incarnation incarnation) const override {
    const dispatch::Route route = inner_.route(partition, incarnation);
    if (route.owner == dispatch::OwnerState::dead) on_dead_();
    return route;
  }
  Task<Result<CommitOutcome>> commit(TopicPartition partition, CommitBatch batch) override {
    return inner_.commit(std::move(partition), std::move(batch));
  }
  Task<Result<bool>> confirm_gone(std::string topic, Incarnation incarnation) override {
    return inner_.confirm_gone(std::move(topic), incarnation);
  }
  Event& routing_changed() override { return inner_.routing_changed(); }

 private:
  const std::unique_ptr<dispatch::CommitTarget> planted_;
  dispatch::CommitTarget& inner_;
  const std::function<void()> on_dead_;
};

}  // namespace

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
            options.moves = move_hooks(world.defect_);
            options.wrap_target = [&world](dispatch::CommitTarget& inner) {
              return std::make_unique<WatchedTarget>(inner, plant(world.defect_, inner),
                                                     [&world] { world.deaths_ = true; });
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
  if (index_ < 2 && world_.knobs_.brakes) clients_.spawn("brakes", brakes());
  if (world_.knobs_.under_load) {
    if (index_ == 0) clients_.spawn("make topic", make_topic());
    co_return;
  }
  if (index_ < 2) clients_.spawn("administrator", administrator());
  if (index_ < 2 && world_.knobs_.moves) clients_.spawn("mover", mover());
}

MessagePtr App::make_message(Rng& random, const Topic& topic, std::uint64_t& id) {
  id = world_.oracle_.sent(topic.name, topic.incarnation, index_);
  auto message = std::make_shared<Message>();
  message->topic = topic.name;
  message->incarnation = topic.incarnation;
  message->key = cat("k", random.below(20));
  message->partition = partition_of_key(message->key, topic.partitions);
  world_.oracle_.belongs_to(id, message->partition);
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
    const auto* row = broker.view()->topics.find(draw_topic(random));
    if (row == nullptr || world_.quiet()) continue;
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
    const LogName log{partition->id, partition->incarnation};
    if (world_.owner_of(log) == index_ && partition->delivery->stats().unsaved_acks == 0) {
      world_.oracle_.acks_durable(log);
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
    const World::Moment settled = world_.moment();
    const auto owner = world_.owner_of(log);
    if (!owner) continue;  // the topic was deleted meanwhile
    const auto at = static_cast<std::size_t>(*owner);
    // What was answered by a life that has ended since, or by a former owner, is known to nobody.
    const auto life = [&] {
      world_.look();
      return sees_owner(log) ? world_.life_since(at, log, settled) : -1;
    };
    const std::uint64_t dice = drain ? 0 : random.below(100);
    if (dice < 80) {
      auto r =
          co_await broker.settle(topic.name, topic.incarnation, message.handle, SettleMode::ack);
      if (const int by = r ? life() : -1; by >= 0) {
        world_.oracle_.acked(log, message.handle.offset, by, world_.machines_[at]->clock().mono());
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
      if (r && life() >= 0) {
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
  world_.look();
  const auto owner = world_.owner_of(log);
  if (!owner) return world_.oracle_.seen(log, record);
  const auto at = static_cast<std::size_t>(*owner);
  sim::Machine& machine = *world_.machines_[at];
  const int life = sees_owner(log) ? world_.life_since(at, log, asked) : -1;
  world_.oracle_.delivered(log, record, life, asked.mono[at], machine.clock().mono(), visibility);
  if (*owner != index_) world_.reach_.hit("delivered by another node than the owner");
}

// Whether calls of this node go to the one that owns the log. One that is cut off asks, or is, a
// former owner, whose acks stay behind when it is replaced.
bool App::sees_owner(const LogName& log) {
  const auto owner = world_.owner_of(log);
  const auto view = node_.broker().view();
  const Assignment* row = view->assignment(log.partition.topic, log.partition.partition);
  return owner && row != nullptr && row->incarnation == log.incarnation &&
         !row->owner_node.empty() && world_.node_of(row->owner_node) == *owner;
}

// One call per owner in place of one per message: draining a cluster is not what is under test.
Task<void> App::ack_all(Topic topic, std::vector<api::LeasedMessage> messages) {
  std::vector<ReceiptHandle> handles;
  for (const auto& message : messages) handles.push_back(message.handle);
  const World::Moment settled = world_.moment();
  auto results =
      co_await node_.broker().settle_batch(topic.name, topic.incarnation, handles, SettleMode::ack);
  world_.look();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const LogName log{{topic.name, handles[i].partition}, topic.incarnation};
    const auto owner = world_.owner_of(log);
    if (!results[i] || !owner) continue;
    const auto at = static_cast<std::size_t>(*owner);
    sim::Machine& machine = *world_.machines_[at];
    const int life = sees_owner(log) ? world_.life_since(at, log, settled) : -1;
    if (life < 0) continue;
    world_.oracle_.acked(log, handles[i].offset, life, machine.clock().mono());
  }
}

Task<void> App::consumer(std::uint32_t index) {
  Rng random = stream("consumer", index);
  while (world_.phase_ == Phase::faults) {
    co_await sleep_for(env_, pause(random, world_.share(150ms)));
    std::string name = draw_topic(random);
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
    const int boot = world_.life_of(0, machine().boots());
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

const char* App::draw_topic(Rng& random) const {
  return world_.knobs_.under_load ? kTopics[0] : kTopics[random.below(std::size(kTopics))];
}

// The one topic of a run with one partition.
Task<void> App::make_topic() {
  auto& broker = node_.broker();
  while (broker.view()->topics.find(kTopics[0]) == nullptr) {
    metastore::TopicSpec spec;
    spec.name = kTopics[0];
    spec.partitions = 1;
    spec.visibility_timeout_ms = 5'000;
    spec.max_in_flight_per_partition = 200;
    spec.max_acked_ahead_per_partition = 200;
    (void)co_await broker.create_topic(std::move(spec));
    co_await sleep_for(env_, 100ms);
  }
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
  // Where every owner says that all is acked no lease is left that could run out: a little longer,
  // in case that was wrong.
  constexpr int kAfterLast = 10;
  int rounds_after_last = 0;
  while (empty_rounds < enough && rounds_after_last < kAfterLast) {
    bool got = false;
    for (const char* topic : kTopics) {
      while (co_await consume_some(random, topic, true)) got = true;
    }
    empty_rounds = got || world_.unsettled() > 0 ? 0 : empty_rounds + 1;
    const bool all_acked =
        empty_rounds > 0 && world_.each_node([](App& a) { return a.all_acked(); });
    rounds_after_last = all_acked ? rounds_after_last + 1 : 0;
    co_await sleep_for(env_, 200ms);  // leases of consumers that went away expire first
  }
  world_.drained_ = true;
}

// Shows `look` the state of each partition that this node owns as far as it knows; null for one
// that is not open. What is open of former lives and ownerships is not shown: it waits to be
// closed.
void App::each_owned(
    const std::function<void(const LogName&, const delivery::DeliveryStats*)>& look) {
  for (const auto& row : topics()) {
    for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      if (!a.used || a.owner_node != node_.node_id()) continue;
      const LogName log{{row->topic.name, PartitionId(p)}, row->topic.incarnation};
      const auto open = node_.partitions().find_open(log.partition);
      if (open == nullptr || open->incarnation != log.incarnation) {
        look(log, nullptr);
        continue;
      }
      const auto stats = open->delivery->stats();
      look(log, &stats);
    }
  }
}

// One that is not open is not known.
bool App::all_acked() {
  bool all = true;
  each_owned([&](const LogName&, const delivery::DeliveryStats* stats) {
    all = all && stats != nullptr && stats->lag <= stats->dropped;
  });
  return all;
}

void App::check_lag() {
  each_owned([&](const LogName& log, const delivery::DeliveryStats* stats) {
    if (world_.owner_of(log) != index_ || stats == nullptr || stats->lag <= stats->dropped) return;
    world_.oracle_.violation(
        cat(to_string(log.partition), ": ", stats->lag, " records are never delivered"));
  });
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

}  // namespace narad::simtest
