#pragma once
// The applied state on disk: `state.<generation>.db` in the metastore's directory. Every call
// blocks (use it inside jobs, one at a time).
//
// Entries and the rows they changed are written in one transaction under FULL sync: an entry counts
// as committed exactly if commit() answered ok, and a restart shows the state of the last one. With
// one voter this file's `log` table is the log; it keeps the last kLogEntriesKept entries for those
// who look into the past, since the rows already hold what the older ones did.
//
// After a failed sync the owner ends the process (kExitSyncFailed): the next start copies the file
// before it believes it (pkg/sqlite/generation_store.h).
#include <memory>
#include <string>
#include <vector>

#include "internal/metastore/state.h"
#include "pkg/base/result.h"
#include "pkg/env/fs.h"

namespace narad::metastore {

inline constexpr std::uint64_t kLogEntriesKept = 1000;

struct LogEntry {
  RaftIndex index{0};
  std::string command;  // encode(command)
};

class Store {
 public:
  struct Opened;
  // Opens or creates. Errors: data_loss, naming the file, what is wrong and what to do (nothing was
  // changed); internal for a format of another release; otherwise what the disk said.
  static Result<Opened> open(FileSystem& fs, const std::string& directory);
  ~Store();

  // Makes `entries`, which led from `before` to `after`, durable. On an error nothing was written,
  // except that after a failed sync (sync_failed()) nobody knows.
  Result<void> commit(const State& before, const State& after,
                      const std::vector<LogEntry>& entries);
  bool sync_failed() const;
  // The entries still in the log with an index above `after`, in order.
  Result<std::vector<LogEntry>> entries(RaftIndex after);
  // Leaves the mark of a clean stop. Nothing else may be called afterwards.
  Result<void> close();

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Store::Opened {
  std::unique_ptr<Store> store;
  State state;
};

}  // namespace narad::metastore
