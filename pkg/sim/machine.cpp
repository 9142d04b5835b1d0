#include "pkg/sim/machine.h"

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::sim {

Machine::Machine(Sim& sim, SimNet& net, NodeId id, std::string host)
    : sim_(sim),
      net_(net),
      id_(id),
      host_(std::move(host)),
      disk_(derive(sim.seed(), "disk", static_cast<std::uint64_t>(id))),
      clock_(sim),
      timers_(sim, id, power_, clock_),
      random_(0),
      blocking_(sim, id, power_, disk_),
      stack_(net.add_node(id, host_, power_)),
      log_(sim, id),
      process_(power_,
               [this](int code, std::string_view why) {
                 sim_.note(id_, cat("exit ", code, ": ", why));
                 exit_ = Exit{code, std::string(why), sim_.now()};
                 kill_soon(Kill::process_exit);
               }),
      signals_(power_) {
  disk_.set_clock([this] { return clock_.wall_millis(); });
  disk_.set_trace([this](std::uint64_t value) { sim_.mix(value); });
}

Machine::~Machine() {
  on_down_ = nullptr;
  kill(Kill::process_exit);
  net_.remove_node(id_);
}

Env& Machine::env() {
  NARAD_ASSERT(env_.has_value());
  return *env_;
}

void Machine::boot(Factory factory) {
  NARAD_ASSERT(!power_.on && !context_);
  factory_ = std::move(factory);
  if (std::exchange(machine_was_off_, false)) {
    clock_.reboot();
    net_.machine_up(id_);
  }
  ++boots_;
  ++life_;
  exit_.reset();
  random_ = Rng(derive(derive(sim_.seed(), "random", static_cast<std::uint64_t>(id_)), "boot",
                       static_cast<std::uint64_t>(boots_)));
  power_.on = true;
  dying_ = false;
  context_ = std::make_unique<NodeContext>();
  work_.emplace(context_->get_executor());
  sim_.attach(id_, context_.get());
  parking_.emplace();
  env_.emplace(Env{context_->get_executor(), clock_, timers_, random_, disk_, blocking_, *stack_,
                   log_, process_, signals_, *parking_});
  component_ = factory_(*env_);
}

void Machine::boot_after(Nanos delay) {
  sim_.after(delay, kWorld, "boot", [this, life = life_](bool) {
    if (life == life_ && !power_.on && !context_) boot();
  });
}

void Machine::go_inert() {
  power_.on = false;
  disk_.freeze();
  sim_.detach(id_);
}

void Machine::kill_soon(Kill kind) {
  if (!context_ || dying_) return;
  dying_ = true;
  go_inert();
  sim_.after(Nanos(0), kWorld, "kill", [this, kind, life = life_](bool) {
    if (life == life_ && context_) tear_down(kind);
  });
}

void Machine::kill(Kill kind) {
  if (!context_) return;
  NARAD_ASSERT(sim_.running() != id_, "a node cannot be torn down from inside its own handler");
  tear_down(kind);
}

// The order is proven (simulation.md, "Killing a node"); others leak or touch freed memory.
void Machine::tear_down(Kill kind) {
  const bool power_cut = kind == Kill::power_cut;
  // (1) Every door is inert: destructors may run any code, nothing leaves the node.
  go_inert();
  suspended_at_ = Nanos(-1);
  // (2) The handlers that the simulator holds go while the io_context lives: an awaitable handler
  // unwinds by posting its frames to its executor.
  net_.drop_node(id_, power_cut);
  sim_.drop_owner(id_);
  blocking_.drop_all();
  signals_.drop_all();
  parking_->drop_all();
  // (3) All queued handlers, and with them all suspended frames. Components still exist.
  work_.reset();
  context_->destroy_handlers();
  // (4) (5)
  component_.reset();
  context_.reset();
  NARAD_ASSERT(parking_->size() == 0);
  env_.reset();
  parking_.reset();
  // (6) What survived.
  if (power_cut) {
    disk_.power_cycle();
    machine_was_off_ = true;
  } else {
    disk_.process_restart();
  }
  ++life_;
  dying_ = false;
  if (on_down_) on_down_(kind);
}

void Machine::kill_at_disk_call(std::uint64_t n, Kill kind, SimFs::Cut how) {
  disk_.cut_power_at(disk_.ops() + n, [this, kind] { kill_soon(kind); }, how);
}

void Machine::pause(bool suspended) {
  if (!power_.on || sim_.paused(id_)) return;
  if (suspended) suspended_at_ = sim_.now();
  sim_.pause(id_);
}

void Machine::resume() {
  if (!sim_.paused(id_)) return;
  if (suspended_at_ >= Nanos(0)) {
    const Nanos slept = sim_.now() - std::exchange(suspended_at_, Nanos(-1));
    clock_.slept(slept);
    sim_.postpone(id_, slept);
  }
  sim_.resume(id_);
}

}  // namespace narad::sim
