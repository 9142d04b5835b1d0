#include "internal/node/quarantine.h"

#include <algorithm>

#include "internal/moves/quarantine_note.h"
#include "pkg/base/text.h"

namespace narad::node {
namespace {

constexpr std::string_view kSuffix = ".quarantine";

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

// Where the suffix begins; npos if that is no such name.
std::size_t suffix_of(std::string_view name) {
  // A topic may have ".quarantine" in its own name: only what follows the partition counts.
  const std::size_t dash = name.rfind('-');
  const std::size_t begin = dash == name.npos ? 0 : dash + 1;
  const std::size_t at = name.find(kSuffix, begin);
  if (at == name.npos || at == begin) return name.npos;
  const std::string_view rest = name.substr(at + kSuffix.size());
  return rest.empty() || rest.front() == '.' ? at : name.npos;
}

// What it is a copy of, by its name.
void name_copy(SetAsideCopy& copy, std::string_view name, const std::string& topic) {
  const std::string_view stem = name.substr(0, suffix_of(name));
  if (copy.kind == SetAsideKind::topic) {
    copy.topic = std::string(name.substr(0, name.rfind('@')));
  } else if (copy.kind == SetAsideKind::partition) {
    copy.topic = topic;
    copy.partition = parse_partition_directory_name(stem);
  } else {
    const std::size_t dash = stem.rfind('-');
    copy.topic = std::string(stem.substr(0, dash));
    const auto number = parse_number<std::uint32_t>(stem.substr(dash + 1));
    if (dash != stem.npos && number) copy.partition = PartitionId(*number);
  }
}

class Finder {
 public:
  explicit Finder(FileSystem& fs) : fs_(fs) {}

  Result<void> look_at(const Disk& disk) {
    disk_ = disk.id;
    NARAD_TRY(look_in(join_path(disk.path, kSuffix), SetAsideKind::topic));
    NARAD_TRY(look_in(join_path(disk.path, ".moves"), SetAsideKind::staged));
    const std::string topics = join_path(disk.path, "topics");
    NARAD_TRY(auto names, names_in(fs_, topics));
    for (const std::string& topic : names) {
      NARAD_TRY(look_in(join_path(topics, topic), SetAsideKind::partition, topic));
    }
    return ok();
  }
  std::vector<SetAsideCopy> take() {
    std::sort(found_.begin(), found_.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(found_);
  }

 private:
  Result<void> look_in(const std::string& directory, SetAsideKind kind,
                       const std::string& topic = {}) {
    NARAD_TRY(auto names, names_in(fs_, directory));
    for (const std::string& name : names) {
      if (kind != SetAsideKind::topic && !is_quarantine_name(name)) continue;
      SetAsideCopy copy;
      copy.kind = kind;
      copy.disk = disk_;
      copy.path = join_path(directory, name);
      auto bytes = bytes_in(fs_, copy.path);
      // An operator may take one away while it is looked at.
      if (!bytes && bytes.error().code() == Errc::not_found) continue;
      if (!bytes) return bytes.error();
      copy.bytes = bytes.value();
      name_copy(copy, name, topic);
      moves::QuarantineNote note = moves::read_quarantine_note(fs_, copy.path);
      copy.why = std::move(note.why);
      copy.since = note.since;
      found_.push_back(std::move(copy));
    }
    return ok();
  }

  FileSystem& fs_;
  std::string disk_;
  std::vector<SetAsideCopy> found_;
};

}  // namespace

bool is_quarantine_name(std::string_view name) { return suffix_of(name) != name.npos; }

Result<std::vector<SetAsideCopy>> find_quarantined(FileSystem& fs, const std::vector<Disk>& disks) {
  Finder finder(fs);
  for (const Disk& disk : disks) {
    if (!disk.missing.empty()) continue;
    NARAD_TRY(finder.look_at(disk));
  }
  return finder.take();
}

Task<Result<wire::SetAsideCopies>> list_quarantined(Env& env, std::vector<Disk> disks) {
  auto find = [&fs = env.fs, disks = std::move(disks)] { return find_quarantined(fs, disks); };
  NARAD_CO_TRY(auto found, co_await blocking(env, "quarantine", std::move(find)));
  wire::SetAsideCopies out;
  const std::size_t shown = std::min(found.size(), wire::kSetAsideMax);
  out.left_out = found.size() - shown;
  found.resize(shown);
  out.copies = std::move(found);
  co_return out;
}

}  // namespace narad::node
