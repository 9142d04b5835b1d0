#pragma once
// Event: wakes everybody who waits. Mutex: one holder at a time, in order of arrival. Both live on
// one loop and are touched only there; no lock of theirs is ever a thread's lock. Waiters of an
// Event or Mutex that is destroyed are woken with operation_aborted.
#include <deque>
#include <vector>

#include "pkg/async/task.h"

namespace narad {

class Event {
 public:
  explicit Event(Env& env) : env_(env) {}
  Event(const Event&) = delete;
  ~Event();

  // Wakes all who wait now; nothing is remembered for those who come later. Re-check your
  // condition:
  //   while (!ready()) co_await event.wait();
  void notify_all();
  Task<void> wait();
  // True if notified (from the moment of this call on), false once `delay` has passed.
  Task<bool> wait_for(Nanos delay);
  std::size_t waiters() const;

 private:
  void sweep();
  Env& env_;
  std::vector<Parking::Ticket> tickets_;
  std::size_t sweep_at_ = 64;
};

class Mutex {
 public:
  explicit Mutex(Env& env) : env_(env) {}
  Mutex(const Mutex&) = delete;
  ~Mutex();

  // Releases at destruction. Movable.
  class [[nodiscard]] Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      release();
      mutex_ = std::exchange(other.mutex_, nullptr);
      return *this;
    }
    ~Guard() { release(); }
    void release();

   private:
    friend class Mutex;
    explicit Guard(Mutex* mutex) : mutex_(mutex) {}
    Mutex* mutex_ = nullptr;
  };

  Task<Guard> lock();
  bool locked() const { return locked_; }

 private:
  void unlock();
  Env& env_;
  bool locked_ = false;
  std::deque<Parking::Ticket> tickets_;
  std::size_t sweep_at_ = 64;
};

}  // namespace narad
