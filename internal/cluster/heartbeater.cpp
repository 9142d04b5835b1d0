#include "internal/cluster/heartbeater.h"

#include <utility>

#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::cluster {

using wire::MemberRefusal;
using wire::Refused;

Heartbeater::Heartbeater(Env& env, Consensus& consensus, peer::Caller& caller, Desk& desk,
                         Info info, Drain drain, Others others, OnRemoved on_removed,
                         HeartbeatOptions options)
    : env_(env),
      consensus_(consensus),
      caller_(caller),
      desk_(desk),
      info_(std::move(info)),
      drain_(std::move(drain)),
      others_(std::move(others)),
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
  unknown_ = false;
  changed_.notify_all();
}

// Whom to ask while no leader is known; empty: there is nobody.
std::string Heartbeater::next_other() {
  if (!hint_.empty()) return std::exchange(hint_, {});
  const std::vector<std::string> others = others_();
  return others.empty() ? std::string() : others[asked_++ % others.size()];
}

Task<bool> Heartbeater::beat(std::string leader) {
  const wire::HeartbeatRequest request{info_(), drain_()};
  const std::string self = request.member.id;
  const bool known = !leader.empty();
  if (!known) leader = next_other();
  if (leader.empty()) {
    fail("no leader is known");
    co_return false;
  }
  Answered answered;
  answered.sent_boot = env_.clock.boot();
  Task<HeartbeatOutcome> asking = leader == self ? ask_own(desk_, request) : ask(leader, request);
  std::optional<HeartbeatOutcome> outcome =
      co_await with_timeout(env_, options_.deadline, std::move(asking));
  if (!outcome) {
    fail(cat(leader, " did not answer within ", format_duration(options_.deadline)));
    co_return false;
  }
  if (const auto* refused = std::get_if<MemberRefusal>(&*outcome)) {
    if (refused->leader != self && refused->leader != leader) hint_ = refused->leader;
    fail(known || !hint_.empty() ? refused->error : cat("no leader is known; ", refused->error));
    unknown_ = refused->reason == Refused::unknown;
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
  unknown_ = false;
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
    none.error = cat(leader, " does not answer: ", response.error().text());
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
