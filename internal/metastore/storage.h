#pragma once
// The metastore's directory as a whole: the Raft log and the applied state, opened together.
// Blocking; use it inside jobs.
//
// A first start makes both. A directory of the release before Raft (only a state, with a log of its
// own) becomes a group of one: the state is written as a snapshot, the Raft log is made on top of
// it, and only then does the state leave its old format; a crash anywhere in between begins again
// or goes on. A damaged state is made anew from the latest snapshot, and the log is applied again;
// a damaged log refuses the start, since it holds what was promised to others.
#include <memory>
#include <string>

#include "internal/metastore/store.h"
#include "internal/raftnode/log_store.h"

namespace narad::metastore {

struct StorageOptions {
  std::string node;          // node id
  raft::ReplicaId replica;   // of a store that is made now: drawn at random
  bool found_alone = false;  // a store that belongs to nothing becomes a group of one
};

struct Storage {
  std::shared_ptr<sqlite::GenerationStore> generations;
  std::shared_ptr<raftnode::LogStore> log;
  std::shared_ptr<Store> store;
  State state;             // what `store` holds
  raft::StartState start;  // what `log` holds
  std::string repaired;    // what was made anew and why; empty if nothing
};

// Errors: data_loss, naming the file, what is wrong and what to do, with nothing changed; conflict
// if the files belong to another node; internal for the format of another release; otherwise what
// the disk said.
Result<Storage> open_storage(FileSystem& fs, const std::string& directory, StorageOptions options);

// Leaves the mark of a clean stop. Nothing of it may be used afterwards.
Result<void> close_storage(Storage& storage);

// Reads the snapshot in the file at `path`. data_loss if it makes no sense.
Result<State> read_snapshot_file(FileSystem& fs, const std::string& path);

}  // namespace narad::metastore
