#include "pkg/sqlite/generation_store.h"

#include <algorithm>
#include <optional>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/sqlite/vfs.h"

namespace narad::sqlite {
namespace {

using Generations = std::map<std::string, std::uint64_t, std::less<>>;

constexpr std::string_view kHeader = "narad-generations 1\n";
constexpr std::uint64_t kChecksumSeed = 0x6e61726164637572;  // "naradcur"
constexpr std::uint64_t kCurrentBytesMax = 64 << 10;
constexpr std::string_view kSuffixes[] = {"", "-wal", "-journal", "-shm"};

// CURRENT: a header line, "<name> <generation>" a line, and "xxh3 <16 hex digits>" of what
// precedes.
std::string encode(const Generations& live) {
  std::string out(kHeader);
  for (const auto& [name, generation] : live) out += cat(name, " ", generation, "\n");
  return out + cat("xxh3 ", to_hex16(xxh3(as_bytes(out), kChecksumSeed)), "\n");
}

std::optional<Generations> decode(std::string_view text) {
  const std::size_t tail = text.rfind("xxh3 ");
  if (tail == std::string_view::npos || !text.starts_with(kHeader)) return std::nullopt;
  const std::string_view body = text.substr(0, tail);
  if (text.substr(tail) != cat("xxh3 ", to_hex16(xxh3(as_bytes(body), kChecksumSeed)), "\n")) {
    return std::nullopt;
  }
  Generations out;
  for (std::string_view rest = body.substr(kHeader.size()); !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const std::size_t space = line.find(' ');
    if (end == std::string_view::npos || space == std::string_view::npos) return std::nullopt;
    const auto generation = parse_number<std::uint64_t>(line.substr(space + 1));
    if (!generation || *generation == 0) return std::nullopt;
    out.emplace(line.substr(0, space), *generation);
    rest.remove_prefix(end + 1);
  }
  return out;
}

// The generation in "<name>.<generation>.db" with or without one of SQLite's suffixes.
std::optional<std::uint64_t> generation_in(std::string_view file, std::string_view name) {
  if (!file.starts_with(cat(name, "."))) return std::nullopt;
  file.remove_prefix(name.size() + 1);
  const std::size_t dot = file.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view rest = file.substr(dot);
  const bool ours = std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                                [&](std::string_view s) { return rest == cat(".db", s); });
  return ours ? parse_number<std::uint64_t>(file.substr(0, dot)) : std::nullopt;
}

Result<void> sync_file(FileSystem& fs, const std::string& path) {
  NARAD_TRY(auto file, fs.open(path, OpenMode::read_write));
  return file->sync();
}

}  // namespace

std::optional<Generations> decode_current(std::string_view text) { return decode(text); }

GenerationStore::GenerationStore(FileSystem& fs, std::string directory,
                                 std::vector<std::string> names)
    : fs_(&fs), directory_(std::move(directory)), names_(std::move(names)) {}

Result<GenerationStore> GenerationStore::open(FileSystem& fs, std::string directory,
                                              std::vector<std::string> names) {
  GenerationStore store(fs, std::move(directory), std::move(names));
  NARAD_TRY(store.load());
  NARAD_TRY(store.sweep());
  return store;
}

Result<void> GenerationStore::load() {
  const std::string path = join_path(directory_, "CURRENT");
  NARAD_TRY(clean_mark_, exists(*fs_, join_path(directory_, "CLEAN")));
  auto text = read_file(*fs_, path, kCurrentBytesMax);
  if (text) {
    const auto live = decode(as_chars(text.value()));
    if (!live) {
      return Error(Errc::data_loss,
                   cat(path,
                       " is damaged, so which database files are live is unknown; run "
                       "narad fsck, or let this node join again as a new one"));
    }
    live_ = *live;
    unclean_ = !live_.empty() && !clean_mark_;
    for (const auto& entry : live_) trusted_[entry.first] = !unclean_;
    return ok();
  }
  if (text.error().code() != Errc::not_found) return text.error();
  NARAD_TRY(auto files, fs_->list(directory_));
  for (const std::string& file : files) {
    for (const std::string& name : names_) {
      if (!generation_in(file, name)) continue;
      return Error(Errc::data_loss, cat(directory_, " holds ", file,
                                        " but no CURRENT, which every "
                                        "start writes before the first database; run narad fsck, "
                                        "or let this node join again as a new one"));
    }
  }
  // From here on a database that CURRENT does not name was never finished.
  NARAD_TRY(spend_clean_mark());
  return write_current({});
}

Result<void> GenerationStore::sweep() {
  NARAD_TRY(auto files, fs_->list(directory_));
  for (const std::string& file : files) {
    bool goes = file.starts_with(kTemporaryPrefix) || file == "CURRENT.tmp" || file == "CLEAN.tmp";
    for (const std::string& name : names_) {
      const auto generation = generation_in(file, name);
      if (generation && *generation != this->generation(name)) goes = true;
    }
    // Proof: CURRENT was read and verified, and names another generation, so this file is either an
    // unfinished copy or was replaced by a durable one; or it is a temporary of a process that is
    // gone.
    if (goes) {
      NARAD_TRY(fs_->remove(join_path(directory_, file)));
    }
  }
  return ok();
}

Result<void> GenerationStore::write_current(const Generations& next) {
  NARAD_TRY(replace_file(*fs_, join_path(directory_, "CURRENT"), as_bytes(encode(next))));
  live_ = next;
  return ok();
}

Result<void> GenerationStore::spend_clean_mark() {
  if (!clean_mark_) return ok();
  // Proof: the mark says that nothing was written since; that is about to be false.
  auto r = fs_->remove(join_path(directory_, "CLEAN"));
  if (!r && r.error().code() != Errc::not_found) return r.error();
  NARAD_TRY(fs_->sync_dir(directory_));
  clean_mark_ = false;
  return ok();
}

bool GenerationStore::has(std::string_view name) const { return live_.contains(name); }

std::uint64_t GenerationStore::generation(std::string_view name) const {
  const auto it = live_.find(name);
  return it == live_.end() ? 0 : it->second;
}

std::string GenerationStore::path_of(std::string_view name, std::uint64_t generation) const {
  return join_path(directory_, cat(name, ".", generation, ".db"));
}

std::string GenerationStore::path(std::string_view name) const {
  NARAD_ASSERT(has(name), name);
  return path_of(name, generation(name));
}

Result<void> GenerationStore::remove_files(const std::string& database_path) {
  for (std::string_view suffix : kSuffixes) {
    auto r = fs_->remove(cat(database_path, suffix));
    if (!r && r.error().code() != Errc::not_found) return r.error();
  }
  return ok();
}

Result<Database> GenerationStore::open_database(std::string_view name, Options options) {
  NARAD_ASSERT(has(name), name);
  NARAD_TRY(spend_clean_mark());
  NARAD_TRY(bool there, exists(*fs_, path(name)));
  if (!there) {
    return Error(Errc::data_loss, cat(path(name),
                                      " is missing, though CURRENT names it; run narad "
                                      "fsck, or let this node join again as a new one"));
  }
  const bool trusted = trusted_[std::string(name)];
  // Read only: nothing is written to files that may show more than the disk holds.
  options.open_as = trusted ? OpenAs::existing : OpenAs::read_only;
  NARAD_TRY(Database live, Database::open(*fs_, path(name), options));
  if (trusted) return live;
  return copy_database(name, std::move(live), options);
}

Result<Database> GenerationStore::begin_generation(std::string_view name, Options options) {
  NARAD_ASSERT(std::find(names_.begin(), names_.end(), name) != names_.end(), name);
  NARAD_TRY(spend_clean_mark());
  const std::string fresh = path_of(name, generation(name) + 1);
  // Proof: CURRENT does not name this generation; it is an earlier attempt.
  NARAD_TRY(remove_files(fresh));
  options.open_as = OpenAs::create;
  return Database::open(*fs_, fresh, options);
}

Result<void> GenerationStore::install(std::string_view name, Database& fresh) {
  NARAD_TRY(fresh.checkpoint());
  NARAD_TRY(sync_file(*fs_, fresh.path()));
  NARAD_TRY(fs_->sync_dir(directory_));
  const std::uint64_t old = generation(name);
  Generations next = live_;
  next[std::string(name)] = old + 1;
  NARAD_TRY(write_current(next));
  trusted_[std::string(name)] = true;
  // Proof: CURRENT durably names the next generation, which is durable itself.
  if (old != 0) {
    NARAD_TRY(remove_files(path_of(name, old)));
  }
  return ok();
}

Result<Database> GenerationStore::copy_database(std::string_view name, Database live,
                                                Options options) {
  NARAD_ASSERT(live.path() == path(name), live.path());
  NARAD_TRY(spend_clean_mark());
  const std::string fresh = path_of(name, generation(name) + 1);
  // Proof: CURRENT does not name this generation; it is an earlier attempt.
  NARAD_TRY(remove_files(fresh));
  std::string quoted;
  for (char c : fresh) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  {
    Database source = std::move(live);
    NARAD_TRY(source.exec(cat("VACUUM INTO '", quoted, "'")));
  }
  options.open_as = OpenAs::existing;
  NARAD_TRY(Database copy, Database::open(*fs_, fresh, options));
  NARAD_TRY(install(name, copy));
  return copy;
}

Result<void> GenerationStore::close_clean(std::vector<Database> databases) {
  std::vector<std::string> paths;
  for (Database& database : databases) {
    NARAD_TRY(database.checkpoint());
    paths.push_back(database.path());
  }
  databases.clear();
  for (const std::string& path : paths) {
    NARAD_TRY(sync_file(*fs_, path));
    NARAD_TRY(bool log, exists(*fs_, path + "-wal"));
    if (log) {
      NARAD_TRY(sync_file(*fs_, path + "-wal"));
    }
  }
  NARAD_TRY(fs_->sync_dir(directory_));
  NARAD_TRY(replace_file(*fs_, join_path(directory_, "CLEAN"), as_bytes("closed\n")));
  clean_mark_ = true;
  return ok();
}

}  // namespace narad::sqlite
