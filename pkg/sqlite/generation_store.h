#pragma once
// Databases that are replaced by fresh copies, never in place: a copy renamed over a database would
// meet the stale `-wal` beside it, which corrupts it (decisions.md, "SQLite never gets a fresh copy
// renamed over it"). A directory holds, for each name,
//
//   CURRENT        which generation of each name is live: text with a checksum, replaced atomically
//   <name>.<generation>.db, and SQLite's own files beside it
//   CLEAN          the last process closed everything durably; removed before the first write
//
// What a database file shows after an unclean stop may be in the page cache only (kill -9, a failed
// sync). So the first open after one copies it to the next generation, syncs that and the
// directory, writes CURRENT, and only then deletes the old files. Nothing is believed before.
//
// Blocking; one job at a time; one process per directory (the caller holds the lock).
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/sqlite/database.h"

namespace narad::sqlite {

// Which generation of each name the text of a CURRENT file says is live; nothing if it is damaged.
std::optional<std::map<std::string, std::uint64_t, std::less<>>> decode_current(
    std::string_view text);

class GenerationStore {
 public:
  // Reads CURRENT, or starts an empty store in an existing directory without databases. Removes
  // what no generation of CURRENT owns. data_loss if CURRENT is damaged, or missing beside
  // databases: nothing is changed then. `names` are lower-case words.
  static Result<GenerationStore> open(FileSystem& fs, std::string directory,
                                      std::vector<std::string> names);

  // The databases of this name hold something that was finished.
  bool has(std::string_view name) const;
  // The last process did not close with close_clean(). False for an empty store.
  bool unclean() const { return unclean_; }
  // 0: none yet.
  std::uint64_t generation(std::string_view name) const;
  // REQUIRES: has(name).
  std::string path(std::string_view name) const;

  // Opens the live database; after an unclean stop, a fresh copy of it. An error means that it must
  // not be used. REQUIRES: has(name). `options.open_as` is ignored.
  Result<Database> open_database(std::string_view name, Options options);
  // Makes a new database by `fill` (schema and first rows), durable before it becomes live and
  // replaces the one of that name, if any. REQUIRES of callers that replace one: proof that it may
  // go, named in a comment at the call.
  template <class Fill>
  Result<Database> create_database(std::string_view name, Options options, Fill fill) {
    NARAD_TRY(Database fresh, begin_generation(name, options));
    NARAD_TRY(fill(fresh));
    NARAD_TRY(install(name, fresh));
    return fresh;
  }
  // Copies the live database to a fresh file and makes that one live.
  Result<Database> copy_database(std::string_view name, Database live, Options options);

  // Folds and closes all of them, then leaves the CLEAN mark. REQUIRES: all open databases of this
  // store, without transactions. On an error the next start is an unclean one.
  Result<void> close_clean(std::vector<Database> databases);

 private:
  GenerationStore(FileSystem& fs, std::string directory, std::vector<std::string> names);
  Result<void> load();
  Result<void> sweep();
  Result<void> write_current(const std::map<std::string, std::uint64_t, std::less<>>& next);
  Result<void> spend_clean_mark();
  Result<void> remove_files(const std::string& database_path);
  Result<Database> begin_generation(std::string_view name, Options options);
  Result<void> install(std::string_view name, Database& fresh);
  std::string path_of(std::string_view name, std::uint64_t generation) const;

  FileSystem* fs_;
  std::string directory_;
  std::vector<std::string> names_;
  std::map<std::string, std::uint64_t, std::less<>> live_;
  std::map<std::string, bool, std::less<>> trusted_;  // copied, or never in doubt
  bool unclean_ = false;
  bool clean_mark_ = false;
};

}  // namespace narad::sqlite
