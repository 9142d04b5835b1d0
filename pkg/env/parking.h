#pragma once
// Where suspended coroutines wait for each other. Every wait that is not on a door (an event, a
// mutex, a queue) parks its handler here and keeps only a ticket, so that whoever ends the node can
// destroy all of them while its components still live (simulation.md, "Killing a node"). One per
// node; lives on the node's loop.
#include <cstdint>
#include <map>

#include "pkg/env/handlers.h"

namespace narad {

class Parking {
 public:
  using Ticket = std::uint64_t;  // 0 is never given out
  Parking() = default;
  Parking(const Parking&) = delete;
  ~Parking() { drop_all(); }

  // Parks until unpark(). The handler's cancellation slot, if any, unparks with operation_aborted.
  Ticket park(VoidHandler handler);
  // Completes the handler (later, on its executor). False if it is not parked any more.
  bool unpark(Ticket ticket, error_code ec = {});
  bool parked(Ticket ticket) const { return waiting_.contains(ticket); }
  // Destroys every handler without completing it, and from now on those that come: the node is
  // dead.
  void drop_all();
  // Whether the node is dead: its frames are being destroyed in no particular order, unfinished.
  bool dead() const { return dead_; }
  std::size_t size() const { return waiting_.size(); }

 private:
  std::map<Ticket, VoidHandler> waiting_;
  Ticket last_ = 0;
  bool dead_ = false;
};

}  // namespace narad
