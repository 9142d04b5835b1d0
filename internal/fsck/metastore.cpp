// The metastore directory: CURRENT, and the databases it names.
#include "internal/fsck/parts.h"
#include "pkg/base/text.h"
#include "pkg/sqlite/generation_store.h"

namespace narad::fsck {
namespace {

constexpr const char* kRemedy =
    "restore it from a backup, or let this node join again as a new one";

// SQLite's own look at the structure of the whole file, with its write-ahead log.
void check_database(Context& in, const std::string& path) {
  sqlite::Options options;
  options.open_as = sqlite::OpenAs::read_only;
  auto database = sqlite::Database::open(in.fs, path, options);
  auto sound = database ? database.value().quick_check() : Result<void>(database.error());
  if (sound) return;
  const Error& error = sound.error();
  if (error.code() == Errc::not_found) {
    in.report.problem(path, "is missing, but CURRENT says that it is live").remedy = kRemedy;
  } else if (error.code() == Errc::data_loss) {
    in.report.problem(path, cat("is damaged: ", error.text())).remedy = kRemedy;
  } else {
    in.report.unchecked(path, error);
  }
}

}  // namespace

void check_metastore_files(Context& in, const std::string& directory) {
  const auto names = names_in(in, directory);
  if (!names || names->empty()) return;
  const std::string current_path = join_path(directory, "CURRENT");
  const SmallFile text = small_file(in, current_path, 64 * 1024);
  if (text.missing) {
    for (const std::string& name : *names) {
      if (!name.ends_with(".db")) continue;
      in.report.problem(directory, cat("holds ", name, " but no CURRENT to say which is live"))
          .remedy = kRemedy;
      return;
    }
    return;
  }
  if (!text.bytes) return;
  const auto live = sqlite::decode_current(as_chars(*text.bytes));
  if (!live) {
    in.report.problem(current_path, "is damaged, so which databases are live is unknown").remedy =
        kRemedy;
    return;
  }
  for (const auto& [name, generation] : *live) {
    check_database(in, join_path(directory, cat(name, ".", generation, ".db")));
  }
  for (const std::string& name : *names) {
    if (name.ends_with(".tmp")) report_stray_name(in, directory, name);
  }
}

}  // namespace narad::fsck
