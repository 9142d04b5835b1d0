// The links of a parent through a move under load. A stub stands in for the engine of fan-out: it
// follows each link at whoever owns the partition, and takes its cursors up by the rules.
#include <gtest/gtest.h>

#include "internal/moves/link_files.h"
#include "internal/node/cluster_for_test.h"
#include "internal/node/links_for_test.h"
#include "pkg/base/two_slot.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using From = moves::CursorStart::From;

const PartitionId kP{0};

// What the stubs of all nodes share.
struct FanOut {
  std::shared_ptr<StubLinks> links = std::make_shared<StubLinks>(StubLinks{"orders", {}});
  std::set<std::string> unfollowed;  // attached, and nobody has come to them yet
  std::set<std::string> file_lost;   // before the next owner takes it up
  struct Start {
    moves::CursorStart start;
    Offset hwm{0};
    Offset gone_out{0};  // by the owner before
  };
  struct Child {
    std::vector<Start> starts;  // one per owner
    std::map<Offset, int> got;  // how often each record has come
    Offset next{0};             // of the present owner
  };
  std::map<std::string, Child> children;
};

// The link's slot in the file, overwritten in place.
Result<void> store(FileSystem& fs, const std::string& directory, const moves::FanoutCursor& cursor,
                   Incarnation parent) {
  const Bytes file = moves::encode_cursor_file(cursor, parent);
  const std::uint64_t at = two_slot::slot_offset(cursor.sequence);
  const auto slot = ByteView(file).subspan(static_cast<std::size_t>(at), two_slot::kSlotBytes);
  const std::string path = join_path(directory, moves::cursor_file_name(cursor.child));
  NARAD_TRY(auto out, fs.open(path, OpenMode::create));
  NARAD_TRY(write_all(*out, slot, at));
  return out->datasync();
}

// Follows the links of the partition on one node.
class Follower {
 public:
  Follower(Env& env, Node& node, std::shared_ptr<FanOut> all)
      : env_(env), node_(node), all_(std::move(all)) {}

  static Task<void> run(std::shared_ptr<Follower> self) {
    for (;;) {
      co_await sleep_for(self->env_, 10ms);
      co_await self->pass();
    }
  }

 private:
  Task<void> pass() {
    const auto view = node_.broker().view();
    const Assignment* row = view->assignment("orders", kP);
    if (row == nullptr || row->owner_node != node_.node_id() || !row->used) {
      cursors_.clear();
      co_return;
    }
    const Incarnation life = row->incarnation;
    auto pin = co_await node_.partitions().open({"orders", kP}, life, OpenFor::read);
    if (!pin) co_return;
    const std::vector<wire::ChildLink> links = all_->links->links;
    for (const wire::ChildLink& link : links) {
      if (all_->unfollowed.contains(link.child)) continue;
      if (!cursors_.contains(link.child)) co_await take_up(pin.value().shared(), link);
      co_await go_on(pin.value().shared(), link);
    }
  }
  Task<void> take_up(std::shared_ptr<OpenPartition> at, wire::ChildLink link) {
    const bool lost = all_->file_lost.erase(link.child) > 0;
    auto job = [&fs = env_.fs, at, link, lost]() -> Result<moves::LinkFiles> {
      const std::string path = join_path(at->directory, moves::cursor_file_name(link.child));
      // Proof: the test's own loss.
      if (lost) {
        NARAD_TRY(fs.remove(path));
      }
      return moves::read_link_files(fs, at->directory, at->incarnation);
    };
    auto files = co_await blocking(env_, "stub: link files", std::move(job));
    EXPECT_TRUE(files) << files.error().text();
    if (!files) co_return;
    const Offset hwm = at->log->hwm();
    const auto start = moves::cursor_start(files.value().records, link, at->log->oldest(), hwm);
    FanOut::Child& child = all_->children[link.child];
    child.starts.push_back({start, hwm, child.next});
    child.next = start.next;
    moves::FanoutCursor cursor{2, *parse_hex16(link.epoch), start.next, link.child};
    if (const auto* stored = moves::cursor_of(files.value().records, link)) {
      cursor.sequence = stored->sequence + 1;
    }
    cursors_[link.child] = {cursor, 0};
    co_await keep(at, cursor);
  }
  // A few records to the child; where that has brought it is stored now and then.
  Task<void> go_on(std::shared_ptr<OpenPartition> at, wire::ChildLink link) {
    const auto it = cursors_.find(link.child);
    if (it == cursors_.end()) co_return;
    auto [cursor, rounds] = it->second;
    auto batch = co_await at->log->read(cursor.next, 5, 1 << 16);
    if (!batch || batch.value().records.empty()) co_return;
    FanOut::Child& child = all_->children[link.child];
    for (const StoredRecord& record : batch.value().records) ++child.got[record.offset];
    child.next = cursor.next = batch.value().next;
    const bool due = ++rounds % 16 == 0;
    if (due) ++cursor.sequence;
    cursors_[link.child] = {cursor, rounds};
    if (due) co_await keep(at, cursor);
  }
  Task<void> keep(std::shared_ptr<OpenPartition> at, moves::FanoutCursor cursor) {
    auto job = [&fs = env_.fs, at, cursor] {
      return store(fs, at->directory, cursor, at->incarnation);
    };
    auto stored = co_await blocking(env_, "stub: store a cursor", std::move(job));
    EXPECT_TRUE(stored) << stored.error().text();
  }

  Env& env_;
  Node& node_;
  const std::shared_ptr<FanOut> all_;
  std::map<std::string, std::pair<moves::FanoutCursor, int>> cursors_;  // and rounds made
};

Task<void> create(Running* r, std::shared_ptr<std::optional<Topic>> out) {
  metastore::TopicSpec spec;
  spec.name = "orders";
  spec.partitions = 1;
  spec.visibility_timeout_ms = 30'000;
  spec.max_in_flight_per_partition = spec.max_acked_ahead_per_partition = 100;
  auto made = co_await r->node.broker().create_topic(std::move(spec));
  EXPECT_TRUE(made) << made.error().text();
  if (made) *out = made.value();
}

Task<void> load(Env* env, Running* r, Topic topic, std::shared_ptr<bool> stop) {
  for (int n = 0; !*stop; ++n) {
    auto message = std::make_shared<Message>();
    message->topic = topic.name;
    message->incarnation = topic.incarnation;
    message->key = "k";
    message->payload = cat("record ", n);
    MessagePtr sent = std::move(message);
    (void)co_await r->node.broker().produce(std::move(sent));
    co_await sleep_for(*env, 5ms);
  }
}

Task<void> propose(Running* r, metastore::Command entry) {
  auto done = co_await r->node.metastore().propose(std::move(entry));
  EXPECT_TRUE(done && done.value().done());
}

class LinksThroughAMove : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 1; i <= 3; ++i) boot(i);
    ASSERT_TRUE(c.sim.run_until([&] { return c.all_ready(); }, 2min));
    auto made = std::make_shared<std::optional<Topic>>();
    c.running(1).tasks.spawn("create", create(&c.running(1), made));
    ASSERT_TRUE(c.sim.run_until([&] { return made->has_value(); }, 30s));
    topic = **made;
    for (int i = 1; i <= 3; ++i) {
      auto follower = std::make_shared<Follower>(c.machine(i).env(), c.running(i).node, all);
      c.running(i).tasks.spawn("stub of fan-out", Follower::run(std::move(follower)));
    }
    c.running(1).tasks.spawn("load", load(&c.machine(1).env(), &c.running(1), topic, stopped));
  }
  void boot(int i) {
    c.machine(i).boot([this, i](Env& env) {
      NodeOptions options = Running::options();
      const auto linked = [links = all->links](metastore::Proposer& inner) {
        return std::make_unique<LinkedMetastore>(inner, links);
      };
      options.moves.source_metastore = linked;
      options.moves.runner_metastore = linked;
      return std::make_shared<Running>(env, cluster_config(cat("n", i), 3), std::move(options));
    });
  }
  Assignment row() { return *c.broker(1).view()->assignment("orders", kP); }
  Offset hwm() {
    const int owner = row().owner_node.back() - '0';
    const auto open = c.running(owner).node.partitions().find_open({"orders", kP});
    return open ? open->log->hwm() : Offset(0);
  }
  void move_to_another() {
    const std::string from = row().owner_node;
    const std::string to = from == "n1" ? "n2" : "n1";
    const std::string disk = c.broker(1).view()->members.find(to)->disks.front();
    metastore::Command entry = metastore::SetTarget{
        "orders", topic.incarnation, kP, from, row().move_id, to, disk, "operator"};
    c.running(1).tasks.spawn("set target", propose(&c.running(1), std::move(entry)));
    ASSERT_TRUE(c.sim.run_until([&] { return row().owner_node == to; }, 1min));
  }
  // Every record from `from` to the watermark has come to the child.
  void expect_no_gap(const std::string& child, Offset from, Offset to) {
    for (Offset o = from; o < to; o = o.plus(1)) {
      ASSERT_TRUE(all->children[child].got.contains(o)) << child << " lacks record " << o.value();
    }
  }

  Cluster c{7};
  Topic topic;
  std::shared_ptr<FanOut> all = std::make_shared<FanOut>();
  std::shared_ptr<bool> stopped = std::make_shared<bool>(false);
};

TEST_F(LinksThroughAMove, CUR_3_CUR_9_CUR_10_EachIsTakenUpWhereNothingOfItIsMissed) {
  const wire::ChildLink kept{"orders.kept", "0000000000000001"};
  const wire::ChildLink lost{"orders.lost", "0000000000000002"};
  const wire::ChildLink fresh{"orders.fresh", "0000000000000003"};
  const wire::ChildLink late{"orders.late", "0000000000000004"};
  all->links->links = {kept, lost};
  ASSERT_TRUE(c.sim.run_until([&] { return hwm() > Offset(300); }, 1min));
  // Attached just now: the owner has not come to it before the freeze.
  all->unfollowed = {fresh.child};
  all->links->links.push_back(fresh);
  all->file_lost = {lost.child};
  ASSERT_NO_FATAL_FAILURE(move_to_another());
  all->unfollowed.clear();
  all->links->links.push_back(late);  // after the install
  c.sim.run_for(2s);
  *stopped = true;
  ASSERT_TRUE(c.sim.run_until(
      [&] {
        return hwm() > Offset(0) &&
               std::all_of(all->children.begin(), all->children.end(),
                           [&](const auto& child) { return child.second.next == hwm(); });
      },
      1min));

  ASSERT_EQ(all->children.size(), 4u);
  const auto& took = [&](const wire::ChildLink& link) {
    return all->children[link.child].starts.back();
  };
  EXPECT_EQ(took(kept).start.from, From::cursor);
  EXPECT_GT(took(kept).start.next, Offset(100));
  EXPECT_LT(took(kept).start.next, took(kept).gone_out) << "what went out behind it goes out twice";
  EXPECT_EQ(took(lost).start, (moves::CursorStart{From::oldest, Offset(0)}));
  EXPECT_EQ(took(fresh).start.from, From::cursor) << "anchored under the freeze";
  EXPECT_GT(took(fresh).start.next, Offset(300));
  EXPECT_LE(took(fresh).start.next, took(fresh).hwm);
  EXPECT_EQ(took(late).start, (moves::CursorStart{From::tail, took(late).hwm}));
  // Attached as the first records came: where the first owner began is where the child does.
  const auto began = [&](const wire::ChildLink& link) {
    return all->children[link.child].starts.front().start.next;
  };
  EXPECT_LT(began(lost), Offset(100));
  expect_no_gap(kept.child, began(kept), hwm());
  expect_no_gap(lost.child, Offset(0), hwm());
  expect_no_gap(fresh.child, took(fresh).start.next, hwm());
  EXPECT_EQ(all->children[fresh.child].got.begin()->first, took(fresh).start.next);
  EXPECT_EQ(all->children[late.child].got.begin()->first, took(late).start.next);
  EXPECT_EQ(all->children[lost.child].got[Offset(100)], 2);
  EXPECT_EQ(all->children[kept.child].got[Offset(100)], 1);
}

}  // namespace
}  // namespace narad::node
