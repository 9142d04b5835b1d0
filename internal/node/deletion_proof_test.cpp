// What may be deleted, and on what proof: a deletion that the metastore holds, never the mere
// absence of a topic.
#include <gtest/gtest.h>

#include <map>

#include "internal/node/cluster_for_test.h"
#include "internal/node/node.h"
#include "pkg/async/timeout.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

Config config() {
  Config c;
  c.storage.data_dir = "/data";
  c.timing.dispatch_retry = Nanos(100ms);
  c.timing.dispatch_grace = Nanos(1h);
  return c;
}

// Lets nothing be committed while `closed`: accepted records stay in the WAL.
class Gate final : public dispatch::CommitTarget {
 public:
  Gate(dispatch::CommitTarget& inner, const bool& closed) : inner_(inner), closed_(closed) {}
  dispatch::Route route(const TopicPartition& p, Incarnation i) const override {
    return inner_.route(p, i);
  }
  Task<Result<CommitOutcome>> commit(TopicPartition p, CommitBatch batch) override {
    if (closed_) co_return Error(Errc::unavailable, "closed by the test");
    co_return co_await inner_.commit(std::move(p), std::move(batch));
  }
  Task<Result<bool>> confirm_gone(std::string topic, Incarnation incarnation) override {
    return inner_.confirm_gone(std::move(topic), incarnation);
  }
  Event& routing_changed() override { return inner_.routing_changed(); }

 private:
  dispatch::CommitTarget& inner_;
  const bool& closed_;
};

std::unique_ptr<Node> make_node(Env& env, const bool& closed) {
  NodeOptions options;
  options.serve_http = false;
  options.wrap_target = [&closed](dispatch::CommitTarget& inner) {
    return std::make_unique<Gate>(inner, closed);
  };
  return std::make_unique<Node>(env, config(), std::move(options));
}

metastore::TopicSpec spec(std::string name) {
  metastore::TopicSpec s;
  s.name = std::move(name);
  s.partitions = 1;
  s.visibility_timeout_ms = 30'000;
  s.max_in_flight_per_partition = 100;
  s.max_acked_ahead_per_partition = 100;
  return s;
}

Task<Result<void>> produce(Node& node, Topic topic, std::string payload) {
  auto message = std::make_shared<Message>();
  message->topic = topic.name;
  message->incarnation = topic.incarnation;
  message->key = "k";
  message->payload = std::move(payload);
  MessagePtr sent = std::move(message);
  co_return co_await node.broker().produce(std::move(sent));
}

using Files = std::map<std::string, Bytes>;

Files read_files(FileSystem& fs, const std::string& directory) {
  Files files;
  const auto names = fs.list(directory).value();
  for (const std::string& name : names) {
    const std::string path = join_path(directory, name);
    if (!fs.stat(path).value().is_directory) files[path] = read_file(fs, path, 16 << 20).value();
  }
  return files;
}

void put_files_back(FileSystem& fs, const std::string& directory, const Files& files) {
  for (const auto& [path, bytes] : read_files(fs, directory)) {
    if (!files.contains(path)) ASSERT_TRUE(fs.remove(path));
  }
  for (const auto& [path, bytes] : files) ASSERT_TRUE(replace_file(fs, path, bytes));
}

class DeletionProof : public testing::Test {
 protected:
  // One life of a node: starts, runs `step`, stops cleanly.
  template <class Step>
  void live(Step step) {
    solo.run([&](Env& env) { return one_life(env, this, &step); });
  }
  template <class Step>
  static Task<void> one_life(Env& env, DeletionProof* self, Step* step) {
    auto node = make_node(env, self->closed);
    auto started = co_await node->start();
    EXPECT_TRUE(started) << started.error().text();
    if (started) {
      co_await (*step)(env, *node);
      co_await node->stop();
    }
  }
  std::size_t names_in(const std::string& directory) {
    return solo.machine.disk().list(directory).value().size();
  }
  sim::Solo solo;
  bool closed = false;
  Topic topic;
};

Task<void> create(Node& node, std::string name, Topic* out) {
  auto created = co_await node.broker().create_topic(spec(std::move(name)));
  EXPECT_TRUE(created) << created.error().text();
  if (created) *out = created.value();
}

TEST_F(DeletionProof, MetastoreOfAnOlderBackup_KeepsRecordsOfYoungerTopics) {
  live([this](Env&, Node& node) { return create(node, "older", &topic); });
  const Files backup = read_files(solo.machine.disk(), "/data/metastore");
  closed = true;
  struct Step {
    static Task<void> make(Node& node, Topic* topic) {
      co_await create(node, "younger", topic);
      EXPECT_TRUE(co_await produce(node, *topic, "precious"));
    }
    static Task<void> look(Env& env, Node& node) {
      co_await sleep_for(env, 120s);
      const auto stats = node.dispatch_stats();
      EXPECT_EQ(stats.discarded, 0u);
      EXPECT_EQ(stats.unsettled, 1u);
      bool said = false;
      for (const std::string& why : node.broker().readiness().waiting_for) {
        said = said || why.find("older copy") != std::string::npos;
      }
      EXPECT_TRUE(said);
    }
  };
  live([this](Env&, Node& node) { return Step::make(node, &topic); });
  put_files_back(solo.machine.disk(), "/data/metastore", backup);
  closed = false;
  live([](Env& env, Node& node) { return Step::look(env, node); });
}

TEST_F(DeletionProof, DeletedTopic_ItsWaitingRecordsAreDiscarded) {
  closed = true;
  struct Step {
    static Task<void> run(Env& env, Node& node, Topic* topic) {
      co_await create(node, "orders", topic);
      EXPECT_TRUE(co_await produce(node, *topic, "unwanted"));
      EXPECT_TRUE(co_await node.broker().delete_topic("orders"));
      co_await sleep_for(env, 60s);
      EXPECT_EQ(node.dispatch_stats().discarded, 1u);
      EXPECT_EQ(node.dispatch_stats().unsettled, 0u);
    }
  };
  live([this](Env& env, Node& node) { return Step::run(env, node, &topic); });
}

TEST_F(DeletionProof, DeletionThatTheDiskRefused_IsCarriedOutAtTheNextStart) {
  struct Step {
    static Task<void> make(Env& env, Node& node, Topic* topic) {
      co_await create(node, "orders", topic);
      EXPECT_TRUE(co_await produce(node, *topic, "x"));
      co_await sleep_for(env, 10s);
      EXPECT_EQ(node.dispatch_stats().committed, 1u);
    }
    static Task<void> remove(Node& node) {
      EXPECT_TRUE(co_await node.broker().delete_topic("orders"));
    }
    static Task<void> nothing() { co_return; }
  };
  live([this](Env& env, Node& node) { return Step::make(env, node, &topic); });
  ASSERT_EQ(names_in("/data/topics"), 1u);
  solo.machine.disk().fail_call(sim::FsCall::rename, 1, true, 5, "topics/orders");
  live([](Env&, Node& node) { return Step::remove(node); });
  EXPECT_TRUE(solo.machine.disk().failure_fired());
  solo.machine.disk().clear_failures();
  ASSERT_EQ(names_in("/data/topics"), 1u);
  live([](Env&, Node&) { return Step::nothing(); });
  EXPECT_EQ(names_in("/data/topics"), 0u);
  EXPECT_EQ(names_in("/data/.quarantine"), 0u);
  EXPECT_EQ(names_in("/data/.deleted"), 0u);
}

Task<void> create_and_use(Running* r) {
  Topic topic;
  co_await create(r->node, "orders", &topic);
  EXPECT_TRUE(co_await produce(r->node, topic, "x"));
}

Task<void> remove_through(Running* r, std::shared_ptr<bool> done) {
  auto removed = co_await r->node.broker().delete_topic("orders");
  EXPECT_TRUE(removed) << removed.error().text();
  *done = true;
}

// The owner is down as the topic is deleted, and comes back without anybody to ask.
TEST(MissedDeletion, SWP_17_SWP_21_NodeThatWasAway_CarriesItOutOnceItsReplicaIsCurrent) {
  Cluster c(1);
  for (int i = 1; i <= 3; ++i) c.boot(i);
  ASSERT_TRUE(c.sim.run_until([&] { return c.all_ready(); }, 2min));
  c.running(1).tasks.spawn("create and use", create_and_use(&c.running(1)));
  ASSERT_TRUE(
      c.sim.run_until([&] { return c.running(1).node.dispatch_stats().committed == 1; }, 1min));
  const std::string owner = c.broker(1).view()->assignment("orders", PartitionId(0))->owner_node;
  const int away = owner == "n1" ? 1 : owner == "n2" ? 2 : 3;
  const int one = away % 3 + 1, other = one % 3 + 1;
  const auto holds = [&](const std::string& name) {
    return c.machine(away).disk().seen_bytes(join_path(name, "topic.incarnation")).has_value();
  };
  ASSERT_TRUE(holds("/data/topics/orders"));
  c.machine(away).kill(sim::Machine::Kill::power_cut);
  c.sim.run_for(30s);  // another may have to lead
  auto removed = std::make_shared<bool>(false);
  c.running(one).tasks.spawn("remove", remove_through(&c.running(one), removed));
  ASSERT_TRUE(c.sim.run_until([&] { return *removed; }, 1min));
  c.machine(one).kill(sim::Machine::Kill::power_cut);
  c.machine(other).kill(sim::Machine::Kill::power_cut);
  c.boot(away);
  c.sim.run_for(90s);
  EXPECT_TRUE(holds("/data/topics/orders")) << "it has not heard of it";
  c.boot(one);
  c.boot(other);
  EXPECT_TRUE(c.sim.run_until([&] { return !holds("/data/topics/orders"); }, 2min));
  EXPECT_TRUE(c.machine(away).disk().list("/data/.quarantine").value().empty());
}

}  // namespace
}  // namespace narad::node
