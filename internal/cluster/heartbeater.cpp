#include "internal/cluster/heartbeater.h"

#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::cluster {

using wire::MemberRefusal;
using wire::Refused;

Heartbeater::Heartbeater(Env& env, Consensus& consensus, peer::Caller& caller, Desk& desk,
                         Info info, Drain drain, OnRemoved on_removed, HeartbeatOptions options)
    : env_(env),
      consensus_(consensus),
      caller_(caller),
      desk_(desk),
      info_(std::move(info)),
      drain_(std::move(drain)),
      on_removed_(std::move(on_removed)),
      options_(options),
      changed_(env),
      tasks_(env) {}

void Heartbeater::start() { tasks_.spawn("heartbeats", run()); }

// A new leader hears of this node at once; it knows nobody yet.
Task<void> Heartbeater::run() {
  for (;;) {
    const std::string leader = consensus_.leader_node();
    const bool answered = co_await beat(leader);
    const Nanos pause = answered ? options_.every : options_.retry;
    const Deadline next = Deadline::after(env_, pause);
    while (!next.passed(env_) && consensus_.leader_node() == leader) {
      (void)co_await consensus_.changed().wait_for(next.left(env_));
    }
  }
}

void Heartbeater::fail(std::string why) {
  if (why != trouble_) NARAD_LOG_WARN(env_.log, "heartbeat not answered", {"why", why});
  trouble_ = std::move(why);
  changed_.notify_all();
}

Task<bool> Heartbeater::beat(std::string leader) {
  if (leader.empty()) {
    fail("no leader is known");
    co_return false;
  }
  const wire::HeartbeatRequest request{info_(), drain_()};
  const std::string self = request.member.id;
  Answered answered;
  answered.sent_boot = env_.clock.boot();
  Task<HeartbeatOutcome> asking = leader == self ? ask_own(desk_, request) : ask(leader, request);
  std::optional<HeartbeatOutcome> outcome =
      co_await with_timeout(env_, options_.deadline, std::move(asking));
  if (!outcome) {
    fail(cat("leader ", leader, " did not answer within ", format_duration(options_.deadline)));
    co_return false;
  }
  if (const auto* refused = std::get_if<MemberRefusal>(&*outcome)) {
    fail(refused->error);
    if (refused->reason == Refused::removed) on_removed_(*refused);
    co_return false;
  }
  const auto& answer = std::get<wire::HeartbeatAnswer>(*outcome);
  answered.index = answer.index;
  answered.term = answer.term;
  answered.leader_wall = answer.leader_wall;
  answered.own_wall = env_.clock.wall_millis();
  last_ = answered;
  trouble_.clear();
  changed_.notify_all();
  co_return true;
}

Task<HeartbeatOutcome> Heartbeater::ask_own(Desk& desk, wire::HeartbeatRequest request) {
  co_return co_await desk.heartbeat(std::move(request));
}

Task<HeartbeatOutcome> Heartbeater::ask(std::string leader, wire::HeartbeatRequest request) {
  peer::Call call(http::Method::post, "/peer/v1/heartbeat", wire::encode(request));
  auto response =
      co_await caller_.call(leader, peer::Lane::control, std::move(call), options_.deadline);
  MemberRefusal none;
  if (!response) {
    none.error = cat("leader ", leader, " does not answer: ", response.error().text());
    co_return none;
  }
  if (response.value().status != 200) {
    co_return wire::decode_refusal(response.value().status, response.value().body);
  }
  auto answer = wire::decode_heartbeat_answer(response.value().body);
  if (!answer) {
    none.error = answer.error().text();
    co_return none;
  }
  co_return std::move(answer.value());
}

}  // namespace narad::cluster
