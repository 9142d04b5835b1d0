#pragma once
// Internal: a number of places, given out in order of arrival. Lives on one loop.
#include <deque>
#include <utility>

#include "pkg/async/task.h"

namespace narad::peer {

class Slots {
 public:
  Slots(Env& env, std::size_t places) : env_(env), places_(places) {}
  Slots(const Slots&) = delete;
  ~Slots();

  // Gives its place back at destruction. Movable.
  class [[nodiscard]] Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (slots_ != nullptr) slots_->give_back();
    }

   private:
    friend class Slots;
    explicit Guard(Slots* slots) : slots_(slots) {}
    Slots* slots_ = nullptr;
  };

  Task<Guard> take();
  std::size_t taken() const { return taken_; }
  std::size_t waiting() const;
  // Wakes all who wait, with a place over the number: for those who look first whether to go on.
  void open();

 private:
  void give_back();

  Env& env_;
  std::size_t places_;
  std::size_t taken_ = 0;
  std::deque<Parking::Ticket> tickets_;  // cancelled waits leave stale ones
  std::size_t sweep_at_ = 64;
};

}  // namespace narad::peer
