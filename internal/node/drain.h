#pragma once
// This node's side of its own decommission: from the moment on at which it hears that it drains, it
// refuses what clients produce, and it says what is left of the messages it took before (DEC-13 to
// DEC-15, G46). Lives on the node's loop.
//
// What it says once must stay true, whatever happens to this process: a leader lets the node go on
// the strength of it. So before it says that it refuses, that is durable in `draining` in the data
// directory, and a start that finds the file refuses from its first moment on, before it has heard
// of anybody. The file names the drain; it is removed once the state that this node has applied
// holds that drain's end.
#include <functional>
#include <string>

#include "internal/metastore/metastore.h"
#include "internal/wire/member_messages.h"
#include "pkg/async/task_group.h"
#include "pkg/base/result.h"

namespace narad::node {

class Drain {
 public:
  // Counts a produce that was let in until it is answered. Movable; on the loop only.
  class [[nodiscard]] Admitted {
   public:
    Admitted() = default;
    Admitted(Admitted&& other) noexcept : drain_(std::exchange(other.drain_, nullptr)) {}
    Admitted& operator=(Admitted&& other) noexcept {
      release();
      drain_ = std::exchange(other.drain_, nullptr);
      return *this;
    }
    ~Admitted() { release(); }

   private:
    friend class Drain;
    explicit Admitted(Drain* drain) : drain_(drain) { ++drain_->unanswered_; }
    void release() {
      if (Drain* d = std::exchange(drain_, nullptr)) --d->unanswered_;
    }
    Drain* drain_ = nullptr;
  };

  // What the ingress WAL holds that was not handed over yet; nothing if it is not open.
  using Backlog = std::function<std::optional<std::uint64_t>()>;

  // `metastore` outlives this, and this outlives every Admitted.
  Drain(Env& env, std::string node_id, metastore::Proposer& metastore, std::string data_dir,
        Backlog backlog);

  // Reads what an earlier process left, and follows the metastore from then on. A file that cannot
  // be read counts as one: refusing too much loses nothing.
  Task<void> start();
  Task<void> stop() { return tasks_.stop(); }

  // Errors: unavailable, saying where to produce instead.
  Result<Admitted> admit();
  // What is left of messages also while it does not drain.
  wire::DrainStatus status() const;

 private:
  Task<void> follow();
  Task<void> follow_once();
  Task<void> remember(RaftIndex drain_id);
  Task<void> forget();

  Env& env_;
  const std::string node_id_;
  metastore::Proposer& metastore_;
  const std::string path_;
  const Backlog backlog_;
  bool refusing_ = false;
  RaftIndex drain_id_{0};  // for which it refuses; 0: of a file that cannot be read
  bool durable_ = false;   // the file names drain_id_
  bool file_ = false;      // there may be one
  std::uint64_t unanswered_ = 0;
  std::string trouble_;  // the last error of the file that was logged
  TaskGroup tasks_;
};

}  // namespace narad::node
