#include "internal/cluster/membership.h"

namespace narad::cluster {

Membership::Membership(Env& env, FormationHost& host, Consensus& consensus, peer::Caller& caller,
                       BootstrapRules rules, std::map<std::string, Endpoint> addresses,
                       Heartbeater::Drain drain, MembershipOptions options)
    : env_(env),
      host_(host),
      consensus_(consensus),
      options_(options),
      node_(host.disk().node),
      leadership_(env, options.liveness),
      peers_(rules.peers),
      configured_(addresses),
      formation_(
          env, host, caller, std::move(rules), std::move(addresses),
          [this] { return known_addresses(*consensus_.view()); }, options.formation),
      desk_(env, consensus, leadership_, caller, node_, options.desk),
      heartbeater_(
          env, consensus, caller, desk_, [this] { return host_.member_info(); }, std::move(drain),
          [this] { return others(); },
          [this](const wire::MemberRefusal& r) {
            env_.process.exit(kExitRemoved,
                              removed_text(node_, r.removed_at, r.removed_ms, host_.data_dir()));
          },
          options.heartbeat),
      controller_(
          env, consensus, leadership_, [this] { return host_.disk().cluster_id; },
          options.controller),
      leaderless_since_(env.clock.mono()),
      tasks_(env) {}

Membership::~Membership() = default;

// Every other node that is known from anywhere.
std::vector<std::string> Membership::others() const {
  std::set<std::string> ids(peers_.begin(), peers_.end());
  consensus_.view()->members.for_each(
      [&](const std::shared_ptr<const metastore::Member>& m) { ids.insert(m->id); });
  ids.erase(node_);
  return {ids.begin(), ids.end()};
}

void Membership::add_routes(peer::Server& server) {
  formation_.add_routes(server);
  desk_.add_routes(server);
}

void Membership::start() {
  controller_.start();
  heartbeater_.start();
  tasks_.spawn("watch leader", watch_leader());
  if (!peers_.empty()) tasks_.spawn("keep in touch", keep_in_touch());
}

std::optional<Endpoint> Membership::address_of(const std::string& node) const {
  return cluster::address_of(*consensus_.view(), hints_, configured_, node);
}

// While the metastore is behind, what it says of addresses may be old, or nothing at all: all nodes
// may have moved at once, or a newcomer's leader may be none of its configured peers. Then the
// configured peers are asked who they are and whom they know.
Task<void> Membership::learn_addresses() {
  const std::vector<PeerReport> reports = co_await formation_.look_around();
  tell_of_strangers(reports);
  const metastore::ViewPtr view = consensus_.view();
  const std::uint64_t cluster = host_.disk().cluster_id;
  for (const PeerReport& r : reports) {
    if (r.kind != PeerReport::Kind::answered || r.who.cluster_id != cluster) continue;
    for (const wire::MemberAddress& m : r.who.members) {
      auto at = parse_endpoint(m.cluster_addr);
      if (at && m.id != node_ && !view->members.contains(m.id)) {
        hints_.put(*view, m.id, std::move(at.value()));
      }
    }
  }
  // What was reached itself counts for more.
  for (const PeerReport& r : reports) {
    if (r.kind != PeerReport::Kind::answered || r.who.cluster_id != cluster) continue;
    hints_.put(*view, r.id, configured_.at(r.id));
  }
}

// An admission may have reached this node's log and then been lost with its leader: the node is a
// member by its own log only. It asks again, as the replica it is.
Task<void> Membership::keep_in_touch() {
  // Once in any case: a node with a cluster of its own lacks nothing, and would never notice that
  // it is configured into another.
  for (bool first = true;; first = false) {
    if (first || !consensus_.caught_up()) co_await learn_addresses();
    if (heartbeater_.unknown()) (void)co_await formation_.rejoin();
    co_await sleep_for(env_, options_.formation.every);
  }
}

// Configured peers that do not answer, or want nothing to do with this node, or belong elsewhere.
void Membership::tell_of_strangers(const std::vector<PeerReport>& reports) {
  const std::uint64_t cluster = host_.disk().cluster_id;
  for (const PeerReport& r : reports) {
    std::string why;
    if (r.kind != PeerReport::Kind::answered) why = r.why;
    if (r.kind == PeerReport::Kind::answered && r.who.cluster_id != cluster &&
        r.who.cluster_id != 0) {
      why = cat("it belongs to cluster ", to_hex16(r.who.cluster_id), ", this node to ",
                to_hex16(cluster));
    }
    std::string& told = told_of_[r.id];
    if (told != why && !why.empty()) {
      NARAD_LOG_WARN(env_.log, "a configured peer does not answer as a member of this cluster",
                     {"peer", r.id}, {"why", why});
    }
    told = std::move(why);
  }
}

Task<void> Membership::watch_leader() {
  for (;;) {
    const bool known = !consensus_.leader_node().empty();
    if (known) leaderless_since_.reset();
    if (!known && !leaderless_since_) leaderless_since_ = env_.clock.mono();
    (void)co_await consensus_.changed().wait_for(std::chrono::seconds(1));
  }
}

Task<bool> Membership::hand_over() {
  return hand_over_leadership(env_, consensus_, options_.controller.hand_over_deadline);
}

Task<void> Membership::stop() {
  co_await tasks_.stop();
  co_await heartbeater_.stop();
  co_await controller_.stop();
  co_await formation_.stop();
  co_await desk_.stop();
}

Standing Membership::standing() const {
  Standing s;
  s.phase = formation_.phase();
  s.detail = formation_.detail();
  s.cluster_id = host_.disk().cluster_id;
  s.leader = consensus_.leader_node();
  s.self_leads = s.leader == node_;
  s.caught_up = consensus_.caught_up();
  const metastore::ViewPtr view = consensus_.view();
  s.founded_entry = !view->cluster_id.empty();
  const metastore::Member* own = view->members.find(node_);
  s.dead = own != nullptr && own->status == metastore::MemberStatus::dead;
  if (leaderless_since_) s.without_leader = env_.clock.mono() - *leaderless_since_;
  s.heartbeat = heartbeater_.trouble();
  return s;
}

std::vector<std::string> Membership::why_not_ready() const {
  return cluster::why_not_ready(standing());
}

}  // namespace narad::cluster
