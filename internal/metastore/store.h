#pragma once
// The applied state on disk: `state.<generation>.db` in the metastore's directory. Every call
// blocks (use it inside jobs, one at a time).
//
// It follows the Raft log (internal/raftnode) and may be a little behind it: a commit is one
// transaction, never torn, but not synced; after a power cut the file shows some earlier state of
// its history, with the index it had applied, and the log gives the rest again. What must be
// durable says so by checkpoint().
//
// After a failed sync the owner ends the process (kExitSyncFailed): the next start copies the file
// before it believes it (pkg/sqlite/generation_store.h).
#include <memory>
#include <string>
#include <vector>

#include "internal/metastore/state.h"
#include "pkg/base/result.h"
#include "pkg/env/fs.h"

namespace narad::sqlite {
class Database;
class GenerationStore;
}  // namespace narad::sqlite

namespace narad::metastore {

// Name of the database within the generation store.
inline constexpr std::string_view kStateName = "state";

class Store {
 public:
  struct Opened;
  // Makes a database that holds `state`, durably, the live one. If there is one already, the caller
  // has the proof that it may go.
  static Result<std::unique_ptr<Store>> create(std::shared_ptr<sqlite::GenerationStore> generations,
                                               const State& state);
  // REQUIRES: the generation store has one. Errors: data_loss, naming the file, what is wrong and
  // what to do (nothing was changed); internal for a format of another release; otherwise what the
  // disk said.
  static Result<Opened> open(std::shared_ptr<sqlite::GenerationStore> generations);
  ~Store();

  // Writes what led from `before` to `after`. On an error nothing was written, except that after a
  // failed sync (sync_failed()) nobody knows.
  Result<void> commit(const State& before, const State& after);
  // All that was committed is durable when it answers ok.
  Result<void> checkpoint();
  // Replaces everything by `state`, durably, or answers an error and nothing has changed.
  Result<void> replace(const State& state);
  // Leaves format 1, whose log is in the Raft log by now. Durable when it answers ok.
  Result<void> drop_old_log();
  bool sync_failed() const;
  // For closing. Nothing else may be called afterwards.
  sqlite::Database release();

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Store::Opened {
  std::unique_ptr<Store> store;
  State state;
  bool has_old_log = false;  // format 1: written before there was a Raft log beside it
};

}  // namespace narad::metastore
