#include "internal/delivery/waiters.h"

#include <iterator>
#include <utility>

#include "pkg/async/timeout.h"

namespace narad::delivery {
namespace {

// More than wait on any node.
constexpr std::uint64_t kEverybody = 1u << 30;

}  // namespace

void Waiters::wake(std::uint64_t count) {
  const WakeUp wake_up{last_rank_, true, {}};
  while (count > 0 && wake_first(sleeping_, wake_up)) --count;
  if (count == 0) return;
  // Who is busy looking, at another node perhaps, may come to it late, or leave with another one.
  if (watched_) listener_(count);
  while (count > 0 && wake_first(busy_, wake_up)) --count;
}

void Waiters::wake_for(const std::string& node, std::uint64_t count) {
  const WakeUp wake_up{last_rank_, false, node};
  while (count > 0 && wake_first(sleeping_, wake_up)) --count;
  while (count > 0 && wake_first(busy_, wake_up)) --count;
}

void Waiters::wake_all(bool elsewhere) {
  wake_for({}, kEverybody);
  if (elsewhere && watched_) listener_(kEverybody);
}

bool Waiters::wake_first(Row& row, const WakeUp& wake_up) {
  if (row.empty() || row.front()->enrolled_ > wake_up.rank) return false;
  Ticket* ticket = row.front();
  row.pop_front();
  ticket->woken_ = true;
  ticket->passing_ = wake_up.rank;
  ticket->from_here_ = wake_up.from_here;
  ticket->told_by_ = wake_up.told_by;
  ticket->event_.notify_all();
  return true;
}

Waiters::Ticket::Ticket(Env& env, std::shared_ptr<Waiters> waiters)
    : waiters_(std::move(waiters)), env_(env), event_(env) {
  enrol();
}

Waiters::Ticket::~Ticket() {
  leave_row();
  pass_on();
}

void Waiters::Ticket::leave_row() {
  if (!woken_) (sleeping_ ? waiters_->sleeping_ : waiters_->busy_).erase(place_);
}

void Waiters::Ticket::enrol() {
  woken_ = sleeping_ = false;
  enrolled_ = ++waiters_->last_rank_;
  place_ = waiters_->busy_.insert(waiters_->busy_.end(), this);
}

void Waiters::Ticket::pass_on() {
  const std::uint64_t rank = std::exchange(passing_, 0);
  if (rank == 0) return;
  const WakeUp wake_up{rank, from_here_, told_by_};
  if (waiters_->wake_first(waiters_->sleeping_, wake_up)) return;
  // A node that is torn down tells nobody: its parts may be gone.
  if (from_here_ && waiters_->watched_ && !env_.parking.dead()) waiters_->listener_(1);
  (void)waiters_->wake_first(waiters_->busy_, wake_up);
}

void Waiters::Ticket::used() {
  if (!woken_) passing_ = 0;
}

// By rank: mostly the end.
void Waiters::Ticket::move(Row& from, Row& to) {
  auto before = to.end();
  while (before != to.begin() && (*std::prev(before))->enrolled_ > enrolled_) --before;
  to.splice(before, from, place_);
}

Task<bool> Waiters::Ticket::wait(Deadline deadline) {
  if (!woken_) {
    pass_on();  // it was not for this one
    told_by_.clear();
    move(waiters_->busy_, waiters_->sleeping_);
    sleeping_ = true;
  }
  while (!woken_) {
    const Nanos left = deadline.left(env_);
    if (left <= Nanos(0)) {
      move(waiters_->sleeping_, waiters_->busy_);
      sleeping_ = false;
      co_return false;
    }
    co_await event_.wait_for(left);
  }
  enrol();
  co_return true;
}

}  // namespace narad::delivery
