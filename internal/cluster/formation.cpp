#include "internal/cluster/formation.h"

#include "internal/cluster/desk.h"
#include "internal/peer/server.h"
#include "pkg/base/text.h"

namespace narad::cluster {

using Phase = Standing::Phase;

// The answers of one round, as they come in.
struct Formation::Probe {
  std::vector<PeerReport> reports;
  std::size_t open = 0;
};

Formation::Formation(Env& env, FormationHost& host, peer::Caller& caller, BootstrapRules rules,
                     std::map<std::string, Endpoint> addresses, Known known,
                     FormationOptions options)
    : env_(env),
      host_(host),
      caller_(caller),
      rules_(std::move(rules)),
      addresses_(std::move(addresses)),
      known_(std::move(known)),
      options_(options),
      probed_(env),
      tasks_(env) {}

wire::WhoAnswer Formation::who() const {
  const OwnDisk own = host_.disk();
  wire::WhoAnswer who;
  who.node = own.node;
  who.replica = own.replica;
  who.cluster_id = own.cluster_id;
  if (own.cluster_id != 0) who.founding = own.founding;
  who.leader = host_.leader();
  who.members = known_();
  return who;
}

namespace {

Task<http::Response> serve_who(const Formation* self) {
  co_return http::json_response(200, wire::encode(self->who()) + "\n");
}

}  // namespace

void Formation::add_routes(peer::Server& server) {
  peer::RouteOptions open;
  open.open_to_strangers = true;
  server.route(
      kWhoRoute, peer::Lane::control,
      [this](peer::Sender, http::Request) { return serve_who(this); }, open);
}

void Formation::say(Phase phase, std::string detail) {
  if (phase != phase_ || detail != detail_) {
    NARAD_LOG_INFO(env_.log, "membership", {"now", detail});
  }
  phase_ = phase;
  detail_ = std::move(detail);
}

void Formation::removed(const wire::MemberRefusal& refusal) {
  const std::string text =
      removed_text(host_.disk().node, refusal.removed_at, refusal.removed_ms, host_.data_dir());
  say(Phase::removed, text);
  env_.process.exit(kExitRemoved, text);
}

Task<void> Formation::probe(std::size_t index, std::shared_ptr<Probe> round) {
  PeerReport report;
  report.id = rules_.peers[index];
  const auto address = addresses_.find(report.id);
  if (address == addresses_.end()) {
    report.kind = PeerReport::Kind::unreachable;
    report.why = "its address is not in cluster.peers";
  } else {
    peer::Call call(http::Method::get, "/peer/v1/who");
    auto answer = co_await caller_.call_address(address->second, peer::Lane::control,
                                                std::move(call), options_.probe_deadline);
    report.kind = PeerReport::Kind::refused;
    if (!answer) {
      report.kind = PeerReport::Kind::unreachable;
      report.why = answer.error().text();
    } else if (answer.value().response.status != 200) {
      report.why =
          wire::decode_refusal(answer.value().response.status, answer.value().response.body).error;
    } else if (auto who = wire::decode_who_answer(answer.value().response.body); !who) {
      report.why = who.error().text();
    } else if (who.value().node != answer.value().who.node_id) {
      report.why = cat(answer.value().who.node_id, " answers as ", who.value().node);
    } else {
      report.kind = PeerReport::Kind::answered;
      report.who = std::move(who.value());
    }
  }
  round->reports[index] = std::move(report);
  --round->open;
  probed_.notify_all();
}

Task<std::vector<PeerReport>> Formation::look_around() {
  auto round = std::make_shared<Probe>();
  round->reports.resize(rules_.peers.size());
  round->open = rules_.peers.size();
  for (std::size_t i = 0; i < rules_.peers.size(); ++i) {
    tasks_.spawn("ask a peer", probe(i, round));
  }
  while (round->open > 0) co_await probed_.wait();
  co_return std::move(round->reports);
}

Task<Result<>> Formation::found(Found decision) {
  say(Phase::founding, "founding a cluster");
  const bool draws = decision.cluster_id == 0;
  while (decision.cluster_id == 0) decision.cluster_id = env_.random.next();
  NARAD_CO_TRY(co_await host_.adopt(decision.cluster_id, decision.configuration));
  auto begun = co_await host_.found(decision.configuration);
  if (!begun && begun.error().code() != Errc::exists) co_return begun.error();
  NARAD_LOG_INFO(env_.log, draws ? "cluster founded" : "founding of the cluster followed",
                 {"cluster", to_hex16(decision.cluster_id)},
                 {"members", decision.configuration.size()});
  co_return ok();
}

Task<bool> Formation::try_join(Join decision) {
  const wire::JoinRequest request{decision.cluster_id, host_.member_info()};
  const std::vector<std::string> via = decision.via.empty() ? rules_.peers : decision.via;
  const std::size_t first = first_asked_++;
  std::string last = "no peer is configured";
  for (std::size_t i = 0; i < via.size(); ++i) {
    const std::string& peer = via[(first + i) % via.size()];
    const auto address = addresses_.find(peer);
    if (address == addresses_.end()) continue;
    peer::Call call(http::Method::post, "/peer/v1/join", wire::encode(request));
    auto answer = co_await caller_.call_address(address->second, peer::Lane::control,
                                                std::move(call), options_.join_deadline);
    if (!answer) {
      last = cat(peer, ": ", answer.error().text());
      continue;
    }
    const http::Response& response = answer.value().response;
    if (response.status != 200) {
      const wire::MemberRefusal refusal = wire::decode_refusal(response.status, response.body);
      if (refusal.reason == wire::Refused::removed) {
        removed(refusal);
        co_return true;
      }
      last = cat(peer, ": ", refusal.error);
      continue;
    }
    if (auto admitted = wire::decode_join_answer(response.body); !admitted) {
      last = cat(peer, ": ", admitted.error().text());
    } else if (admitted.value().cluster_id == decision.cluster_id) {
      NARAD_LOG_INFO(env_.log, "admitted to the cluster",
                     {"cluster", to_hex16(decision.cluster_id)},
                     {"leader", admitted.value().leader});
      co_return true;
    }
  }
  say(Phase::joining, last);
  co_return false;
}

Task<bool> Formation::rejoin() {
  const bool admitted = co_await try_join(Join{host_.disk().cluster_id, {}});
  if (phase_ != Phase::removed) say(Phase::member, "member");
  co_return admitted;
}

Task<Result<Formed>> Formation::run() {
  for (;;) {
    // Only a node without a past depends on what others say.
    std::vector<PeerReport> reports(rules_.peers.size());
    if (host_.disk().raft_empty) reports = co_await look_around();
    Decision decision = decide_bootstrap(rules_, host_.disk(), reports);
    if (std::holds_alternative<Resume>(decision)) {
      say(Phase::member, "going on as a member");
      co_return Formed::resumed;
    }
    if (auto* founds = std::get_if<Found>(&decision)) {
      NARAD_CO_TRY(co_await found(std::move(*founds)));
      say(Phase::member, "member");
      co_return Formed::founded;
    }
    if (auto* joins = std::get_if<Join>(&decision)) {
      if (host_.disk().cluster_id == 0) {
        NARAD_CO_TRY(co_await host_.adopt(joins->cluster_id, {}));
      }
      if (phase_ != Phase::joining) say(Phase::joining, "asking to be let in");
      if (co_await try_join(std::move(*joins))) {
        if (phase_ == Phase::removed) co_return Formed::removed;
        say(Phase::member, "member");
        co_return Formed::joined;
      }
    } else {
      say(Phase::waiting, std::get<Wait>(decision).reason);
    }
    co_await sleep_for(env_, options_.every);
  }
}

}  // namespace narad::cluster
