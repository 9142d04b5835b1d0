#include "internal/metastore/sim_test/history.h"

#include <algorithm>
#include <set>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::metastore::simtest {

std::string describe(const Operation& op) {
  std::string out = cat("client ", op.client, " [", op.called, ", ");
  out += op.outcome == Operation::Outcome::unknown ? std::string("?") : cat(op.answered);
  out += "] ";
  switch (op.kind) {
    case Operation::Kind::read:
      return out + cat("read -> ", op.seen.value, " #", op.seen.count);
    case Operation::Kind::write:
      out += cat("write ", op.value);
      break;
    case Operation::Kind::raise:
      out += cat("raise to #", op.count);
      break;
  }
  if (op.outcome == Operation::Outcome::done) return out + " done";
  return out + (op.outcome == Operation::Outcome::refused ? " refused" : " unknown");
}

std::size_t History::call(Operation op) {
  op.called = ++clock_;
  slots_.push_back({op, true, false});
  return slots_.size() - 1;
}

namespace {
using Outcome = Operation::Outcome;
}

void History::done(std::size_t id) {
  slots_[id].op.answered = ++clock_;
  slots_[id].op.outcome = Outcome::done;
  slots_[id].open = false;
}
void History::refused(std::size_t id) {
  done(id);
  slots_[id].op.outcome = Outcome::refused;
}
void History::read(std::size_t id, KeyState seen) {
  done(id);
  slots_[id].op.seen = seen;
}
void History::forget(std::size_t id) {
  slots_[id].forgotten = true;
  slots_[id].open = false;
}
void History::unknown(std::size_t id) {
  if (slots_[id].op.kind == Operation::Kind::read) return forget(id);
  slots_[id].op.outcome = Outcome::unknown;
  slots_[id].open = false;
}

std::size_t History::size() const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.forgotten; }));
}
std::size_t History::unknowns() const {
  return static_cast<std::size_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) {
    return !s.forgotten && s.op.outcome == Outcome::unknown;
  }));
}

namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

// Searches an order for the operations of one key, depth first; what was tried from the same set of
// operations and state is not tried again (Wing and Gong, with Lowe's memory).
class Search {
 public:
  explicit Search(std::vector<Operation> ops) : ops_(std::move(ops)), taken_(ops_.size(), false) {
    for (const Operation& op : ops_) {
      if (op.outcome != Outcome::unknown) ++left_;
    }
  }
  bool explains() {
    KeyState state;
    return from(state);
  }

 private:
  std::uint64_t end_of(const Operation& op) const {
    return op.outcome == Outcome::unknown ? kNever : op.answered;
  }
  // What it leaves behind; nothing if it could not have answered so in this state.
  static std::optional<KeyState> after(const Operation& op, KeyState state) {
    switch (op.kind) {
      case Operation::Kind::read:
        if (op.seen != state) return std::nullopt;
        return state;
      case Operation::Kind::write:
        state.value = op.value;
        return state;
      case Operation::Kind::raise: {
        const bool fits = state.count + 1 == op.count;
        if (op.outcome == Outcome::refused) return fits ? std::nullopt : std::optional(state);
        if (!fits) return std::nullopt;
        ++state.count;
        return state;
      }
    }
    return std::nullopt;
  }
  bool from(KeyState state) {
    if (left_ == 0) return true;
    if (!tried_.emplace(taken_, state).second) return false;
    std::uint64_t first_end = kNever;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!taken_[i]) first_end = std::min(first_end, end_of(ops_[i]));
    }
    // Whatever comes next was called before the first answer among the rest.
    for (bool unknown : {false, true}) {
      for (std::size_t i = 0; i < ops_.size(); ++i) {
        const Operation& op = ops_[i];
        if (taken_[i] || (op.outcome == Outcome::unknown) != unknown) continue;
        if (op.called > first_end) continue;
        const std::optional<KeyState> next = after(op, state);
        if (!next || (unknown && *next == state)) continue;
        taken_[i] = true;
        left_ -= unknown ? 0 : 1;
        if (from(*next)) return true;
        left_ += unknown ? 0 : 1;
        taken_[i] = false;
      }
    }
    return false;
  }

  std::vector<Operation> ops_;
  std::vector<bool> taken_;
  std::size_t left_ = 0;
  std::set<std::pair<std::vector<bool>, KeyState>> tried_;
};

}  // namespace

std::optional<std::string> History::violation() const {
  std::set<int> keys;
  for (const Slot& s : slots_) {
    NARAD_ASSERT(!s.open, "every operation has ended");
    keys.insert(s.op.key);
  }
  for (int key : keys) {
    std::vector<Operation> ops;
    for (const Slot& s : slots_) {
      if (s.op.key == key && !s.forgotten) ops.push_back(s.op);
    }
    if (Search(ops).explains()) continue;
    std::string text = cat("no order explains what clients saw of key ", key, ":");
    for (const Operation& op : ops) text += cat("\n  ", describe(op));
    return text;
  }
  return std::nullopt;
}

}  // namespace narad::metastore::simtest
