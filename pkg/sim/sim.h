#pragma once
// Sim: one simulated world. One thread, a virtual clock, an ordered queue of events, one
// io_context per live node. A step runs one ready handler of a node picked at random, or, if no
// node has one, jumps to the earliest event. Nothing ever sleeps; the same seed gives the same run.
//
// The user builds Machines (machine.h) on a Sim and a SimNet, then calls run_for() or run_until().
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/env/clock.h"
#include "pkg/sim/reach.h"
#include "pkg/sim/rng.h"

namespace narad::sim {

namespace asio = boost::asio;

// A simulated machine. Small, from 0; also the index of its random streams.
using NodeId = int;
// Owner of what no process owns: the network, kernels, the plan.
inline constexpr NodeId kWorld = -1;

// An io_context whose shutdown step can be called on its own (a protected member): it destroys
// every queued handler, and so every suspended frame, while services stay usable for what is
// destroyed afterwards.
class NodeContext : public asio::io_context {
 public:
  // One thread for all: no locks.
  NodeContext() : asio::io_context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE) {}
  void destroy_handlers() { this->asio::execution_context::shutdown(); }
};

class Sim {
 public:
  using EventId = std::uint64_t;  // 0 is never given out; later ones are greater

  explicit Sim(std::uint64_t seed);
  Sim(const Sim&) = delete;
  ~Sim();

  std::uint64_t seed() const { return seed_; }
  Nanos now() const { return now_; }
  // A random stream of its own for `purpose` number `index`.
  Rng stream(std::string_view purpose, std::uint64_t index = 0) const {
    return Rng(derive(seed_, purpose, index));
  }

  // Schedules `body(bool cancelled)`, called exactly once, at virtual time `when` or (cancelled) by
  // cancel(), unless its owner dies before: then it is destroyed uncalled. `tag` is a string
  // literal. Events of the same time run in the order in which they were scheduled. A body that
  // keeps a node's completion handler belongs to that node, so that drop_owner() finds it.
  template <class F>
  EventId at(Nanos when, NodeId owner, const char* tag, F body) {
    return push(when, owner, tag, std::make_unique<Body<F>>(std::move(body)));
  }
  template <class F>
  EventId after(Nanos delay, NodeId owner, const char* tag, F body) {
    return push(later(delay), owner, tag, std::make_unique<Body<F>>(std::move(body)));
  }
  // False if it ran already. The body runs inside the call.
  bool cancel(EventId id);
  // Destroys what a dead node left in the queue. While its io_context lives: an awaitable handler
  // unwinds by posting its frames to its executor.
  void drop_owner(NodeId owner);
  // Moves the node's events `by` later (it was suspended, its monotonic clock stood still).
  void postpone(NodeId owner, Nanos by);

  void attach(NodeId node, NodeContext* context);
  void detach(NodeId node);
  // A paused node runs no handlers, and its events wait for resume().
  void pause(NodeId node);
  void resume(NodeId node);
  bool paused(NodeId node) const { return paused_.contains(node); }
  // Whose handler or event is running, kWorld if nobody's.
  NodeId running() const { return running_; }

  // ---- running --------------------------------------------------------------------------------
  // One handler or one event. False if there is nothing left to do. A node that goes on and on
  // without any time passing (a loop of yields) is a bug and ends the process.
  bool step();
  void run_until(Nanos when);
  void run_for(Nanos delay) { run_until(later(delay)); }
  // Until `done()` (looked at after each step), at most for `limit`. Whether it was reached.
  bool run_until(const std::function<bool()>& done, Nanos limit);

  // ---- what happened --------------------------------------------------------------------------
  std::uint64_t trace() const { return hash_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t handlers() const { return handlers_; }
  std::size_t pending() const { return live_; }
  // Adds to the hash that double runs compare.
  void mix(std::uint64_t value);
  void mix(std::string_view text);
  // A line for print_trace() (and the hash). Costs nothing but the hash unless tracing.
  void note(NodeId owner, std::string_view text);
  // Keeps the last `lines` steps and notes for print_trace(); 0 = off (default).
  void set_tracing(std::size_t lines) { trace_max_ = lines; }
  std::vector<std::string> trace_lines() const;
  // Keeps the hash after every event, to find where two runs part; off by default.
  struct Step {
    std::uint64_t hash;
    Nanos at;
    NodeId owner;
    const char* tag;
  };
  void set_recording(bool on) { recording_ = on; }
  std::vector<Step> take_recording() { return std::move(steps_); }

  Reach& reach() { return reach_; }

 private:
  struct AnyBody {
    virtual ~AnyBody() = default;
    virtual void run(bool cancelled) = 0;
  };
  template <class F>
  struct Body final : AnyBody {
    explicit Body(F f) : f(std::move(f)) {}
    void run(bool cancelled) override { f(cancelled); }
    F f;
  };
  struct Event {
    NodeId owner;
    const char* tag;
    std::unique_ptr<AnyBody> body;
  };
  using Key = std::pair<Nanos, EventId>;
  // The queue is a heap of keys over slots that hold the events. An id carries its slot in its low
  // bits; a key whose slot holds another id by now is stale: cancelled, and passed over.
  static constexpr int kSlotBits = 24;
  struct Slot {
    EventId id = 0;
    Nanos when{0};
    Event event{kWorld, nullptr, nullptr};
  };

  EventId push(Nanos when, NodeId owner, const char* tag, std::unique_ptr<AnyBody> body);
  Nanos later(Nanos delay) const;
  Slot& slot_of(EventId id) { return slots_[id & ((EventId{1} << kSlotBits) - 1)]; }
  void enqueue(Nanos when, EventId id);
  void skip_stale();
  Event take(EventId id);
  std::vector<Key> keys_of(NodeId owner) const;
  void trace_step(NodeId owner, const char* tag);

  const std::uint64_t seed_;
  Rng pick_;
  Nanos now_{0};
  EventId last_id_ = 0;    // without its slot
  std::vector<Key> heap_;  // the earliest in front; stale ones among them
  std::vector<Slot> slots_;
  std::vector<EventId> free_;                              // slots
  std::size_t live_ = 0;                                   // events, put-off ones included
  std::vector<std::pair<NodeId, NodeContext*>> contexts_;  // ordered by node, never by address
  std::set<NodeId> paused_;
  std::map<NodeId, std::vector<EventId>> put_off_;  // of paused nodes, past their time
  NodeId running_ = kWorld;
  std::uint64_t handlers_in_a_row_ = 0;
  std::uint64_t events_ = 0, handlers_ = 0, hash_ = 0xcbf29ce484222325ull;
  struct TraceLine {
    Nanos at;
    NodeId owner;
    std::string text;
  };
  std::size_t trace_max_ = 0;
  std::vector<TraceLine> trace_ring_;
  std::size_t trace_next_ = 0;
  bool recording_ = false;
  std::vector<Step> steps_;
  Reach reach_;
};

}  // namespace narad::sim
