#include "internal/node/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/metastore/apply.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A metastore whose applied state the test sets.
class Store final : public metastore::Proposer {
 public:
  explicit Store(Env& env) : changed_(env) {}
  bool current = true;
  metastore::CommandResult apply(const metastore::Command& command) {
    auto next = std::make_shared<metastore::State>(*view_);
    auto result = metastore::apply(*next, next->applied.next(), command);
    show(next);
    return result;
  }
  void show(metastore::ViewPtr view) {
    view_ = std::move(view);
    changed_.notify_all();
  }
  Task<Result<metastore::CommandResult>> propose(metastore::Command) override {
    co_return Error(Errc::unavailable, "nobody asks");
  }
  metastore::ViewPtr view() const override { return view_; }
  Event& changed() override { return changed_; }
  Task<Result<RaftIndex>> barrier(Nanos) override { co_return view_->applied; }
  metastore::LeaderView leader() const override { return {}; }
  bool caught_up() const override { return current; }

 private:
  metastore::ViewPtr view_ = std::make_shared<const metastore::State>();
  Event changed_;
};

class Draining : public ::testing::Test {
 protected:
  Draining() {
    EXPECT_TRUE(make_directories(solo.env().fs, "/data"));
    store.apply(metastore::RegisterMember{"n1", "h", "c", "b", {"d"}, UnixMillis(1)});
    start();
  }
  ~Draining() override { stop(); }
  void start() {
    solo.run([this](Env& env) -> Task<void> { return make(env); });
  }
  Task<void> make(Env& env) {
    drain = std::make_unique<Drain>(env, "n1", store, "/data", [this] { return backlog; });
    co_await drain->start();
  }
  void stop() {
    solo.run([this](Env&) { return drain->stop(); });
    drain.reset();
  }
  void wait(Nanos time = 10ms) {
    solo.run([time](Env& env) { return sleep_for(env, time); });
  }
  RaftIndex begin_drain() {
    store.apply(metastore::SetDraining{"n1", true});
    return store.view()->members.find("n1")->drain_id;
  }
  bool file() { return exists(solo.env().fs, "/data/draining").value(); }

  sim::Solo solo;
  Store store{solo.env()};
  std::optional<std::uint64_t> backlog = 0;
  std::unique_ptr<Drain> drain;
};

TEST_F(Draining, NodeThatStays_LetsEverythingIn) {
  auto admitted = drain->admit();
  ASSERT_TRUE(admitted);
  backlog = 3;
  EXPECT_EQ(drain->status(), (wire::DrainStatus{RaftIndex(0), false, 1, true, 3}));
  EXPECT_FALSE(file());
}

TEST_F(Draining, DEC_14_Refuses_SayingWhereToGo) {
  begin_drain();
  wait();
  auto admitted = drain->admit();
  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().code(), Errc::unavailable);
  EXPECT_THAT(admitted.error().text(), HasSubstr("produce to another node"));
}

TEST_F(Draining, DEC_15_G46_WhatWasLetInBefore_CountsUntilItIsAnswered) {
  auto first = drain->admit();
  auto second = drain->admit();
  const RaftIndex id = begin_drain();
  wait();
  EXPECT_EQ(drain->status(), (wire::DrainStatus{id, true, 2, true, 0}));
  first = Error(Errc::unavailable, "answered");
  second = Error(Errc::unavailable, "answered");
  EXPECT_EQ(drain->status().unanswered, 0u);
  EXPECT_TRUE(drain->status().empty_under(id));
  backlog = 7;
  EXPECT_EQ(drain->status().wal_records, 7u);
  backlog.reset();
  EXPECT_FALSE(drain->status().wal_open);
  EXPECT_FALSE(drain->status().empty_under(id));
}

TEST_F(Draining, Restart_RefusesBeforeItHasHeardOfAnybody) {
  const RaftIndex id = begin_drain();
  wait();
  ASSERT_TRUE(drain->status().empty_under(id));
  stop();
  // The state on its disk is a little old: the drain is not in it.
  const auto newest = store.view();
  auto older = std::make_shared<metastore::State>(*newest);
  metastore::Member member = *older->members.find("n1");
  member.draining = false;
  member.drain_id = RaftIndex(0);
  older->members.put(std::make_shared<const metastore::Member>(member));
  older->applied = RaftIndex(id.value() - 1);
  store.current = false;
  store.show(older);
  start();
  EXPECT_FALSE(drain->admit());
  wait(70s);
  EXPECT_FALSE(drain->admit()) << "a state older than the drain says nothing of its end";
  EXPECT_EQ(drain->status().drain_id, id);
  store.current = true;
  store.show(newest);
  wait();
  EXPECT_TRUE(drain->status().empty_under(id));
}

TEST_F(Draining, Cancelled_TakesMessagesAgainAndForgetsTheFile) {
  begin_drain();
  wait();
  EXPECT_TRUE(file());
  store.apply(metastore::SetDraining{"n1", false});
  wait();
  EXPECT_TRUE(drain->admit());
  EXPECT_EQ(drain->status(), (wire::DrainStatus{RaftIndex(0), false, 0, true, 0}));
  EXPECT_FALSE(file());
  // Also if that happened while the process was away.
  begin_drain();
  wait();
  stop();
  store.apply(metastore::SetDraining{"n1", false});
  start();
  wait();
  EXPECT_TRUE(drain->admit());
  EXPECT_FALSE(file());
}

TEST_F(Draining, AnotherDrain_IsAnotherId) {
  begin_drain();
  wait();
  store.apply(metastore::SetDraining{"n1", false});
  const RaftIndex second = begin_drain();
  wait();
  EXPECT_TRUE(drain->status().empty_under(second));
  stop();
  start();
  EXPECT_EQ(drain->status().drain_id, second);
}

TEST_F(Draining, FileThatCannotBeRead_RefusesUntilItIsKnownBetter) {
  stop();
  ASSERT_TRUE(make_directories(solo.env().fs, "/data"));
  ASSERT_TRUE(replace_file(solo.env().fs, "/data/draining", as_bytes("\x01\x02")));
  store.current = false;
  start();
  wait();
  EXPECT_FALSE(drain->admit());
  EXPECT_FALSE(drain->status().empty_under(RaftIndex(2)));
  store.current = true;
  wait(2s);
  EXPECT_TRUE(drain->admit());
}

TEST_F(Draining, WithoutTheFile_ItRefusesButNeverSaysSo) {
  solo.machine.disk().fail_call(sim::FsCall::rename, 1, true, 5, "draining");
  const RaftIndex id = begin_drain();
  wait(3s);
  EXPECT_FALSE(drain->admit());
  EXPECT_FALSE(drain->status().refuses_produce);
  solo.machine.disk().clear_failures();
  wait(3s);
  EXPECT_TRUE(drain->status().empty_under(id));
}

}  // namespace
}  // namespace narad::node
