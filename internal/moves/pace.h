#pragma once
// Whether records are written to this node, so that copying leaves them room. A sync of what is
// copied holds up every other sync of the disk for as long as it takes: beside traffic a copy is
// synced in smaller pieces, and the disks are left to others for a while after each. Copying alone
// takes all of them. One for a node, whatever its disks. Pure.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "pkg/env/clock.h"

namespace narad::moves {

class Pace {
 public:
  // A number that grows with what is written: records accepted, batches committed. Without one
  // nobody waits.
  void follow(std::function<std::uint64_t()> durable) { durable_ = std::move(durable); }

  // Whether anything was written in the last kBusyFor, as far as was looked.
  bool clients_write(Nanos now) {
    if (!durable_) return false;
    const std::uint64_t durable = durable_();
    if (durable != seen_) {
      seen_ = durable;
      changed_at_ = now;
    }
    return changed_at_ && now - *changed_at_ < kBusyFor;
  }

  // After a sync of a copy the disk is left to others for three times as long as that took: copies
  // have a quarter of its time then. A disk that hangs is no reason to wait for ever.
  void on_synced(Nanos began, Nanos ended) {
    rests_until_ = ended + std::min((ended - began) * 3, kRestMax);
  }
  // Before that, who gives way syncs nothing.
  Nanos rests_until() const { return rests_until_; }

  static constexpr Nanos kBusyFor = std::chrono::milliseconds(200);
  static constexpr Nanos kRestMax = std::chrono::milliseconds(200);

 private:
  std::function<std::uint64_t()> durable_;
  std::uint64_t seen_ = 0;
  std::optional<Nanos> changed_at_;
  Nanos rests_until_{0};
};

}  // namespace narad::moves
