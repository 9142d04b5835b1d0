// Random interleavings of two nodes that move one partition to and fro: their gates, applied states
// that lag behind the log, proposals that are late, lost or answered late, restarts, a controller
// that sets and clears targets, destinations that flip with every token they ever got, and a leader
// that marks nodes dead. What must hold is asked of the log at the moment of each publish and flip.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <set>

#include "internal/metastore/apply.h"
#include "internal/moves/freeze_gate.h"
#include "internal/moves/move_lease.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/sim/rng.h"

namespace narad::moves {
namespace {

using metastore::Command;
using metastore::CommandResult;
using metastore::State;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr PartitionId kP{0};
constexpr Incarnation kLife{7};
constexpr std::uint64_t kRuns = 10'000;
constexpr int kSteps = 110;
constexpr Nanos kTtl = seconds(30);
constexpr Nanos kDeadAfter = seconds(30);  // twice the lease, and clocks differ by less than that

// Each makes a node do what the gate exists to prevent; the checker must see it.
enum class Defect {
  none,
  thaw_by_clock,     // a freeze whose time has passed no longer keeps commits out
  open_while_armed,  // commits flow while a new freeze replaces one that was reported
  no_second_check,   // nothing is asked after the sync
  restart_unaware,   // a restarted node knows everything at once
  listing_too_soon,  // the listing does not wait for the commit under way
};

struct Token {
  wire::FreezeToken token;
  std::string source;
  RaftIndex move{0};
  std::uint64_t listed = 0;  // records in its listing
};

class Chaos {
 public:
  Chaos(std::uint64_t seed, Defect defect) : rng_(seed), defect_(defect) {
    run(member("a"));
    metastore::CreateTopic c;
    c.name = "orders";
    c.incarnation = kLife;
    c.partitions = 1;
    c.visibility_timeout_ms = 30'000;
    c.max_in_flight_per_partition = 1;
    c.max_acked_ahead_per_partition = 1;
    run(c);
    run(member("b"));
    run(metastore::MarkUsed{"orders", kLife, kP, "a", row().owner_disk});
    for (const char* id : {"a", "b"}) {
      Node& n = nodes_.emplace_back();
      n.id = id;
      n.view = now_applied();
      n.slow = rng_.range(510, 1000);
      n.known_at = state_.applied;
      heartbeat_now(n);
    }
  }

  // Answers what was violated, or nothing.
  std::string go(int steps) {
    for (int i = 0; i < steps && violation_.empty(); ++i) step();
    if (violation_.empty()) heal();
    return violation_;
  }

  std::uint64_t flips = 0, promotions = 0, publishes = 0, refused = 0;

 private:
  struct Node {
    std::string id;
    metastore::ViewPtr view;  // what is applied here
    RaftIndex known_at{0};    // the barrier after the start; known once the view is there
    std::uint64_t life = 1;
    std::optional<FreezeGate> gate;
    bool under_way = false;  // a commit that passed the first check
    std::optional<std::pair<FreezeAttempt, std::uint64_t>> listing;  // taken, not yet reported
    std::optional<LeaseProof> proof;
    Nanos heard{0};             // by the leader
    std::uint64_t slow = 1000;  // per mille: how fast its clock runs
  };
  struct Flight {
    Command command;
    std::function<void(Chaos&, const CommandResult*)> answer;  // null: unknown
    bool applied = false;
    CommandResult result;
    RaftIndex at{0};
    std::size_t node = 0;
    std::uint64_t life = 0;
  };

  static metastore::RegisterMember member(std::string id) {
    return {id, id + ":1", id + ":2", "boot", {"d1"}, UnixMillis(1)};
  }
  CommandResult run(const Command& command) {
    const Assignment* seen = state_.assignment("orders", kP);
    const Assignment before = seen != nullptr ? *seen : Assignment{};
    CommandResult result = metastore::apply(state_, state_.applied.next(), command);
    if (const Assignment* now = state_.assignment("orders", kP);
        now != nullptr && !before.owner_node.empty() &&
        now->owned_by_move != before.owned_by_move) {
      on_flip(before, command);
    }
    return result;
  }
  metastore::ViewPtr now_applied() {
    if (!view_ || view_->applied != state_.applied) {
      view_ = std::make_shared<const State>(state_);
    }
    return view_;
  }
  const Assignment& row() const { return *state_.assignment("orders", kP); }
  void violate(std::string what) {
    if (violation_.empty()) violation_ = std::move(what);
  }

  // The new owner has what was in the listing, and nothing else.
  void on_flip(const Assignment& before, const Command& command) {
    if (const auto* flip = std::get_if<metastore::CompleteMove>(&command)) {
      ++flips;
      const Token* used = nullptr;
      for (const Token& t : tokens_) {
        if (t.token.epoch == flip->epoch && t.source == before.owner_node) used = &t;
      }
      if (used == nullptr) return violate("a flip under an epoch that nobody was told of");
      if (used->listed != records_) {
        violate(cat("a flip with ", used->listed, " of ", records_, " committed records"));
      }
    } else {
      ++promotions;
    }
  }

  Node& pick_node() { return nodes_[rng_.below(nodes_.size())]; }
  Nanos clock_of(const Node& n) const { return now_ * static_cast<std::int64_t>(n.slow) / 1000; }

  // The gate as the node has it, having been shown its row.
  FreezeGate* gate_of(Node& n) {
    const Assignment* seen = n.view->assignment("orders", kP);
    if (n.gate) see(n, seen);
    const bool over = !n.gate || n.gate->phase() == GatePhase::gone;
    if (over && seen != nullptr && seen->owner_node == n.id) {
      n.gate.emplace(ownership_of(*seen));
      n.under_way = false;
      n.listing.reset();
      see(n, seen);
    }
    return n.gate ? &*n.gate : nullptr;
  }
  void see(Node& n, const Assignment* seen) {
    const bool known = n.view->applied >= n.known_at || defect_ == Defect::restart_unaware;
    n.gate->see(seen, known);
    n.gate->tick(clock_of(n));
    n.gate->check_invariants();
  }
  bool leased(Node& n) {
    if (!n.gate->needs_lease()) return true;
    return check_lease(n.proof, LeaseRule{}, {clock_of(n), n.view->applied}).has_value();
  }

  void begin_commit(Node& n) {
    FreezeGate* gate = gate_of(n);
    if (gate == nullptr || n.under_way) return;
    bool may = gate->may_append().has_value();
    if (defect_ == Defect::thaw_by_clock) may = may || gate->phase() == GatePhase::voiding;
    if (defect_ == Defect::open_while_armed) may = may || gate->phase() == GatePhase::rearming;
    if (may && leased(n)) {
      n.under_way = true;
    } else {
      ++refused;
    }
  }
  void end_commit(Node& n) {
    FreezeGate* gate = gate_of(n);
    if (gate == nullptr || !std::exchange(n.under_way, false)) return;
    bool may = gate->may_publish().has_value();
    if (defect_ == Defect::thaw_by_clock) may = may || gate->phase() == GatePhase::voiding;
    if (defect_ == Defect::open_while_armed) may = may || gate->phase() == GatePhase::rearming;
    may = may && leased(n);
    if (defect_ == Defect::no_second_check) may = true;
    if (!may) return;
    ++publishes;
    ++records_;
    if (ownership_of(row()) != gate->ownership()) {
      violate(cat(n.id, " committed in ", to_string(gate->phase()), " after ", row().owner_node,
                  " had become the owner"));
    }
  }

  void propose(Node& n, Command command, std::function<void(Chaos&, const CommandResult*)> answer) {
    Flight flight;
    flight.command = std::move(command);
    flight.answer = std::move(answer);
    flight.node = index_of(n);
    flight.life = n.life;
    flights_.push_back(std::move(flight));
  }

  void ask_freeze(Node& n) {
    FreezeGate* gate = gate_of(n);
    if (gate == nullptr) return;
    const auto asked = gate->ask(row().move_id, n.view->applied == state_.applied);
    if (!asked) return;
    const FreezeAttempt attempt = asked.value();
    const std::size_t at = index_of(n);
    metastore::ArmFreeze arm{"orders", kLife, kP, n.id, gate->present_move()};
    propose(n, arm, [attempt, at](Chaos& c, const CommandResult* result) {
      Node& node = c.nodes_[at];
      FreezeGate* g = c.gate_of(node);
      if (g == nullptr) return;
      if (result == nullptr || !result->done()) return g->not_armed(attempt);
      const auto& armed = std::get<metastore::AssignmentRow>(result->row).assignment;
      g->armed(attempt, {armed.freeze_epoch, c.clock_of(node) + kTtl});
      c.settling_[at] = attempt;
    });
  }
  void take_listing(Node& n) {
    FreezeGate* gate = gate_of(n);
    if (gate == nullptr || gate->phase() != GatePhase::settling) return;
    if (n.under_way && defect_ != Defect::listing_too_soon) return;
    n.listing = {settling_[index_of(n)], records_};
  }
  void report(Node& n) {
    FreezeGate* gate = gate_of(n);
    if (gate == nullptr || !n.listing) return;
    const auto [attempt, listed] = *n.listing;
    n.listing.reset();
    auto token = gate->report(attempt, cat("nonce", ++nonces_), clock_of(n) + kTtl);
    if (token) tokens_.push_back({token.value(), n.id, gate->present_move(), listed});
  }
  void extend(Node& n) {
    FreezeGate* gate = gate_of(n);
    if (gate == nullptr || tokens_.empty()) return;
    (void)gate->extend(tokens_[rng_.below(tokens_.size())].token, clock_of(n), clock_of(n) + kTtl);
  }
  void void_freeze(Node& n) {
    FreezeGate* gate = gate_of(n);
    if (gate == nullptr) return;
    if (const auto epoch = gate->to_void()) {
      propose(n, metastore::VoidFreeze{"orders", kLife, kP, n.id, *epoch}, nullptr);
    }
  }
  // A destination flips with any token it was ever given: its process may have been away.
  void flip(Node& n) {
    if (tokens_.empty()) return;
    const std::size_t recent = std::min<std::size_t>(tokens_.size(), 3);
    const bool any = rng_.chance(300'000);
    const std::size_t pick =
        any ? rng_.below(tokens_.size()) : tokens_.size() - 1 - rng_.below(recent);
    const Token& t = tokens_[pick];
    propose(n, metastore::CompleteMove{"orders", kLife, kP, t.source, t.move, t.token.epoch},
            nullptr);
  }

  void set_target(Node& n) {
    propose(n,
            metastore::SetTarget{"orders", kLife, kP, row().owner_node, row().move_id,
                                 row().owner_node == "a" ? "b" : "a", "d1", "operator"},
            nullptr);
  }
  void clear_target(Node& n) {
    propose(n, metastore::ClearTarget{"orders", kLife, kP, row().target_node, row().move_id, ""},
            nullptr);
  }

  // ---- liveness, as the leader's desk does it
  void heartbeat(Node& n) {
    const Nanos sent = clock_of(n);
    if (rng_.chance(200'000)) pass_time();  // on its way
    n.heard = now_;
    const auto* m = state_.members.find(n.id);
    if (m->status == metastore::MemberStatus::dead) run(member(n.id));  // before it is answered
    const RaftIndex index = state_.applied;
    if (rng_.chance(200'000)) return;  // the answer is lost
    if (rng_.chance(200'000)) pass_time();
    n.proof = LeaseProof{sent, index};
  }
  void judge(Node& n) {
    const auto* m = state_.members.find(n.id);
    if (m->status == metastore::MemberStatus::alive && now_ - n.heard >= kDeadAfter) {
      run(metastore::MarkDead{n.id, m->stamp});
    }
  }
  // Of the present move, outside of a freeze: refused unless the row here shows it.
  void serve_listing(Node& n) {
    FreezeGate* gate = gate_of(n);
    if (gate == nullptr || !gate->may_settle() || gate->present_move() == RaftIndex(0)) return;
    reached_.insert(gate->present_move());
  }
  void force_promote(Node& n) {
    const auto* source = state_.members.find(row().owner_node);
    if (source->status != metastore::MemberStatus::dead) return;
    if (!reached_.contains(row().move_id)) return;  // it has nothing to promote
    propose(n,
            metastore::ForcePromote{"orders", kLife, kP, row().owner_node, row().move_id,
                                    source->dead_mark, "test"},
            nullptr);
  }

  // ---- log, views, time
  void apply_one() {
    if (flights_.empty()) return;
    Flight& f = flights_[rng_.below(flights_.size())];
    if (f.applied) return;
    f.result = run(f.command);
    f.applied = true;
    f.at = state_.applied;
    snapshots_.push_back(now_applied());
    if (snapshots_.size() > 12) snapshots_.pop_front();
  }
  // One that was applied is answered once its node has applied it, or its answer is lost. One that
  // was not is unknown, and may still be applied afterwards.
  void answer_one() {
    if (flights_.empty()) return;
    const std::size_t i = rng_.below(flights_.size());
    Flight& f = flights_[i];
    const auto answer = std::exchange(f.answer, nullptr);
    Node& n = nodes_[f.node];
    const bool here = n.life == f.life;
    if (f.applied) {
      const CommandResult result = f.result;
      const bool lost = rng_.chance(150'000);
      if (here && !lost && n.view->applied < f.at) n.view = now_applied();
      flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
      if (answer && here) answer(*this, lost ? nullptr : &result);
      return;
    }
    // Never applied at all?
    if (rng_.chance(150'000)) flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!answer || !here) return;
    answer(*this, nullptr);
  }
  void advance_view(Node& n) {
    if (snapshots_.empty() || rng_.chance(300'000)) {
      n.view = now_applied();
      return;
    }
    const auto& to = snapshots_[rng_.below(snapshots_.size())];
    if (to->applied > n.view->applied) n.view = to;
  }
  void restart(Node& n) {
    ++n.life;
    n.gate.reset();
    n.under_way = false;
    n.listing.reset();
    n.proof.reset();
    if (!snapshots_.empty() && rng_.chance(500'000)) {
      const auto& from = snapshots_.front();  // its store may be behind
      if (from->applied < n.view->applied) n.view = from;
    }
    n.known_at = RaftIndex(~std::uint64_t{0});  // no barrier yet
  }
  void pass_time() {
    const bool far = rng_.chance(100'000);
    now_ += far ? Nanos(seconds(rng_.range(10, 70))) : Nanos(milliseconds(rng_.range(1, 3000)));
  }

  std::size_t index_of(const Node& n) const { return static_cast<std::size_t>(&n - nodes_.data()); }
  Node& owner() { return row().owner_node == "a" ? nodes_[0] : nodes_[1]; }
  Node& other() { return row().owner_node == "a" ? nodes_[1] : nodes_[0]; }

  void step() {
    Node& n = pick_node();
    const std::uint64_t dice = rng_.below(100);
    if (dice < 12) return begin_commit(n);
    if (dice < 22) return end_commit(n);
    if (dice < 40) return proceed(owner());
    if (dice < 55) return apply_one();
    if (dice < 65) return answer_one();
    if (dice < 70) return advance_view(n);
    if (dice < 77) return heartbeat(n);
    if (dice < 81) return void_freeze(n);
    if (dice < 85) return pass_time();
    if (dice < 87) return extend(n);
    if (dice < 90) return serve_listing(n);
    if (dice < 92) {  // a barrier is answered
      n.known_at = std::min(n.known_at, state_.applied);
      return;
    }
    rarely(n);
  }
  // What a move does next.
  void proceed(Node& source) {
    if (row().target_node.empty()) return set_target(source);
    FreezeGate* gate = gate_of(source);
    if (gate == nullptr) return advance_view(source);
    switch (gate->phase()) {
      case GatePhase::open:
        return ask_freeze(source);
      case GatePhase::settling:
        return source.listing ? report(source) : take_listing(source);
      case GatePhase::shut:
        return while_shut(source);
      case GatePhase::voiding:
        return while_voiding(source);
      default:
        return apply_one();
    }
  }
  void while_shut(Node& source) {
    const std::uint64_t dice = rng_.below(10);
    if (dice < 6) return flip(other());
    if (dice < 8) return ask_freeze(source);  // by a destination that was started again
    now_ += kTtl * 2;
  }
  void while_voiding(Node& source) {
    const std::uint64_t dice = rng_.below(10);
    if (dice < 4) return flip(other());
    if (dice < 6) return heartbeat(source);
    if (dice < 8) return begin_commit(source);
    void_freeze(source);
  }
  void rarely(Node& n) {
    switch (rng_.below(6)) {
      case 0:
        return set_target(n);
      case 1:
        return clear_target(n);
      case 2:
        return ask_freeze(n);
      case 3:
        return flip(n);
      case 4:
        return restart(n);
      default:
        return cut_off(owner());
    }
  }
  // The leader has not heard of a node for long enough, and its destination makes use of that.
  void cut_off(Node& n) {
    if (rng_.chance(500'000)) begin_commit(n);
    now_ += kDeadAfter + milliseconds(rng_.below(5000));
    judge(n);
    force_promote(other());
    if (rng_.chance(500'000)) apply_one();
  }

  // A leader can be reached, everything proposed is applied and answered, time passes: the owner
  // takes commits again, whatever state it was in.
  void heal() {
    for (Node& n : nodes_) heartbeat_now(n);
    for (int round = 0; round < 5; ++round) {
      while (!flights_.empty()) {
        Flight f = std::move(flights_.front());
        flights_.erase(flights_.begin());
        if (!f.applied) f.result = run(f.command);
        Node& n = nodes_[f.node];
        n.view = now_applied();
        if (f.answer && n.life == f.life) f.answer(*this, &f.result);
      }
      for (Node& n : nodes_) {
        n.view = now_applied();
        n.known_at = std::min(n.known_at, state_.applied);
        now_ += kTtl * 3;
        heartbeat_now(n);
        (void)gate_of(n);
        void_freeze(n);
      }
    }
    for (Node& n : nodes_) {
      FreezeGate* gate = gate_of(n);
      if (n.id != row().owner_node || gate == nullptr) continue;
      heartbeat_now(n);
      if (gate->phase() != GatePhase::open || !leased(n)) {
        violate(cat(n.id, " is stuck in ", to_string(gate->phase())));
      }
    }
  }
  void heartbeat_now(Node& n) {
    n.heard = now_;
    if (state_.members.find(n.id)->status == metastore::MemberStatus::dead) run(member(n.id));
    n.view = now_applied();
    n.proof = LeaseProof{clock_of(n), state_.applied};
  }

  sim::Rng rng_;
  const Defect defect_;
  Nanos now_ = seconds(1000);
  State state_;  // the log
  metastore::ViewPtr view_;
  std::deque<metastore::ViewPtr> snapshots_;
  std::vector<Node> nodes_;
  std::vector<Flight> flights_;
  std::vector<Token> tokens_;
  std::set<RaftIndex> reached_;  // moves of which the source has served a listing
  FreezeAttempt settling_[2];
  std::uint64_t records_ = 0;  // acknowledged by the owner
  std::uint64_t nonces_ = 0;
  std::string violation_;
};

TEST(FreezeGate, FRZ_16_OWN_6_NoInterleavingLosesARecordOrStaysShut) {
  std::uint64_t flips = 0, promotions = 0, publishes = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    Chaos chaos(sim::derive(seed, "freeze gate"), Defect::none);
    const std::string violation = chaos.go(kSteps);
    ASSERT_TRUE(violation.empty()) << "seed " << seed << ": " << violation;
    flips += chaos.flips;
    promotions += chaos.promotions;
    publishes += chaos.publishes;
    refused += chaos.refused;
  }
  // It has been where it matters.
  EXPECT_GT(flips, 500u);
  EXPECT_GT(promotions, 100u);
  EXPECT_GT(publishes, 10'000u);
  EXPECT_GT(refused, 20'000u);
}

TEST(FreezeGate, RandomInterleavings_CatchEachPlantedDefect) {
  for (const Defect defect :
       {Defect::thaw_by_clock, Defect::open_while_armed, Defect::no_second_check,
        Defect::restart_unaware, Defect::listing_too_soon}) {
    std::uint64_t seed = 1;
    std::string violation;
    for (; seed <= kRuns && violation.empty(); ++seed) {
      violation = Chaos(sim::derive(seed, "freeze gate"), defect).go(kSteps);
    }
    EXPECT_FALSE(violation.empty()) << "defect " << static_cast<int>(defect);
  }
}

}  // namespace
}  // namespace narad::moves
