#include "internal/node/quarantine.h"

#include <algorithm>

namespace narad::node {
namespace {

Result<std::uint64_t> bytes_in(FileSystem& fs, const std::string& path) {
  NARAD_TRY(FileStat stat, fs.stat(path));
  if (!stat.is_directory) return stat.size;
  NARAD_TRY(auto names, fs.list(path));
  std::uint64_t bytes = 0;
  for (const std::string& name : names) {
    NARAD_TRY(std::uint64_t more, bytes_in(fs, join_path(path, name)));
    bytes += more;
  }
  return bytes;
}

// Names in a directory that may be absent.
Result<std::vector<std::string>> names_in(FileSystem& fs, const std::string& directory) {
  auto names = fs.list(directory);
  if (!names && names.error().code() == Errc::not_found) return std::vector<std::string>{};
  return names;
}

class Finder {
 public:
  Finder(FileSystem& fs, std::vector<QuarantinedCopy>& found) : fs_(fs), found_(found) {}

  Result<void> look_in(const std::string& directory, bool all) {
    NARAD_TRY(auto names, names_in(fs_, directory));
    for (const std::string& name : names) {
      if (!all && !is_quarantine_name(name)) continue;
      const std::string path = join_path(directory, name);
      auto bytes = bytes_in(fs_, path);
      // An operator may take one away while it is looked at.
      if (!bytes && bytes.error().code() == Errc::not_found) continue;
      if (!bytes) return bytes.error();
      found_.push_back({path, bytes.value()});
    }
    return ok();
  }

 private:
  FileSystem& fs_;
  std::vector<QuarantinedCopy>& found_;
};

}  // namespace

bool is_quarantine_name(std::string_view name) {
  // A topic may have ".quarantine" in its own name: only what follows the partition counts.
  const std::size_t dash = name.rfind('-');
  const std::string_view tail = dash == name.npos ? name : name.substr(dash + 1);
  const std::size_t at = tail.find(".quarantine");
  if (at == tail.npos || at == 0) return false;
  const std::string_view rest = tail.substr(at + std::string_view(".quarantine").size());
  return rest.empty() || rest.front() == '.';
}

Result<std::vector<QuarantinedCopy>> find_quarantined(FileSystem& fs,
                                                      const std::vector<Disk>& disks) {
  std::vector<QuarantinedCopy> found;
  Finder finder(fs, found);
  for (const Disk& disk : disks) {
    if (!disk.missing.empty()) continue;
    NARAD_TRY(finder.look_in(join_path(disk.path, ".quarantine"), true));
    NARAD_TRY(finder.look_in(join_path(disk.path, ".moves"), false));
    const std::string topics = join_path(disk.path, "topics");
    NARAD_TRY(auto names, names_in(fs, topics));
    for (const std::string& topic : names) {
      NARAD_TRY(finder.look_in(join_path(topics, topic), false));
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return found;
}

}  // namespace narad::node
