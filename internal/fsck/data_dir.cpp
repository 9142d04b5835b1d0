// A whole data directory, and which kind of thing a path is.
#include <algorithm>

#include "internal/fsck/parts.h"
#include "internal/ingress/ingress.h"
#include "internal/ingress/wal_format.h"
#include "pkg/base/text.h"
#include "pkg/json/document.h"
#include "pkg/seglog/names.h"

namespace narad::fsck {
namespace {

constexpr std::uint64_t kSmallFileBytesMax = 64 * 1024;
constexpr std::int64_t kNodeFormatVersion = 1;
constexpr const char* kIdentityRemedy =
    "restore it from a backup: it names this node and must not be guessed";

// Holds the lock of a data directory while it is checked. False (and a finding) if a node has it
// and the options do not allow that.
bool lock_directory(Context& in, const std::string& directory, std::unique_ptr<File>& lock) {
  const std::string path = join_path(directory, "LOCK");
  auto file = in.fs.open(path, OpenMode::read);
  if (!file && file.error().code() == Errc::not_found) return true;
  auto locked = file ? file.value()->try_lock() : Result<bool>(file.error());
  if (!locked) {
    in.report.unchecked(path, locked.error());
    return false;
  }
  if (locked.value()) {
    lock = std::move(file).value();
    return true;
  }
  if (in.options.allow_live) {
    in.report.note(directory, "is in use; what is written meanwhile may look like damage");
    return true;
  }
  std::string holder = "another process";
  if (auto text = read_file(in.fs, path, kSmallFileBytesMax); text && !text.value().empty()) {
    holder = to_text(text.value());
    while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  }
  in.report.unchecked(directory, cat("is in use by ", holder)).remedy =
      "stop the node first, or give --allow-live";
  return false;
}

class DataDirCheck {
 public:
  DataDirCheck(Context& in, const std::string& root) : in_(in), root_(root) {}

  void run() {
    const auto names = names_in(in_, root_);
    if (!names) return;
    const auto has = [&](std::string_view name) {
      return std::find(names->begin(), names->end(), name) != names->end();
    };
    if (!has("node.json") && !has("topics") && !has("ingress") && !has("disk.id")) {
      in_.report.unchecked(root_, "is not a data directory of Narad (no node.json, no topics)");
      return;
    }
    for (const std::string& name : *names) {
      static constexpr std::string_view kKnown[] = {"LOCK",    "node.json",   "disk.id",   "topics",
                                                    "ingress", "metastore",   ".deleted",  ".moves",
                                                    "audit",   ".quarantine", "lost+found"};
      if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
        report_stray_name(in_, root_, name);
      }
    }
    check_identity(has("ingress") || has("metastore"));
    if (has("topics")) check_topics();
    if (has(".quarantine")) note_quarantine();
    const std::string wal_path = join_path(root_, "ingress");
    if (has("ingress")) check_wal_files(in_, wal_path);
    if (has("metastore") && in_.report.counters.segments > 0) {
      auto wal = ingress::has_wal(in_.fs, wal_path);
      if (!wal) in_.report.unchecked(wal_path, wal.error());
      if (wal && !wal.value()) {
        in_.report
            .problem(wal_path,
                     "holds no WAL, though there are partitions with data: messages that were "
                     "accepted and not yet handed over are lost")
            .remedy = "see that the right disk is mounted; restore the directory from a backup";
      }
    }
    if (has("metastore")) check_metastore_files(in_, join_path(root_, "metastore"));
  }

 private:
  // node.json lies on the first disk only; disk.id on each.
  void check_identity(bool first_disk) {
    const std::string node_path = join_path(root_, "node.json");
    std::optional<std::vector<std::string>> disks;
    const SmallFile node = small_file(in_, node_path, kSmallFileBytesMax);
    if (node.bytes) {
      disks = read_node_json(node_path, *node.bytes);
    } else if (node.missing && first_disk) {
      in_.report.problem(node_path, "is missing").remedy = kIdentityRemedy;
    }
    const std::string disk_path = join_path(root_, "disk.id");
    const SmallFile disk = small_file(in_, disk_path, kSmallFileBytesMax);
    if (disk.missing) in_.report.problem(disk_path, "is missing").remedy = kIdentityRemedy;
    if (!disk.bytes) return;
    std::string id = to_text(*disk.bytes);
    if (!id.empty() && id.back() == '\n') id.pop_back();
    if (!parse_hex16(id)) {
      in_.report.problem(disk_path, "is damaged: 16 hex digits expected").remedy = kIdentityRemedy;
    } else if (disks && std::find(disks->begin(), disks->end(), id) == disks->end()) {
      in_.report.problem(disk_path, cat("names disk ", id, ", which node.json does not list"))
          .remedy = "mount the disk that belongs here";
    }
  }

  // The disks it lists; nothing (and a finding) if it makes no sense.
  std::optional<std::vector<std::string>> read_node_json(const std::string& path,
                                                         const Bytes& bytes) {
    const auto damaged = [&](std::string_view why) {
      in_.report.problem(path, cat("is damaged: ", why)).remedy = kIdentityRemedy;
      return std::nullopt;
    };
    auto document = json::Document::parse(to_text(bytes), 8);
    if (!document || document.value().root().kind() != json::Kind::object) {
      return damaged("not a JSON object");
    }
    const json::Value root = document.value().root();
    const auto format = root.find("format");
    const auto version = format ? parse_number<std::int64_t>(format->raw()) : std::nullopt;
    if (!version) return damaged("no format version");
    if (*version != kNodeFormatVersion) {
      in_.report
          .unchecked(path, cat("has format version ", *version,
                               ", which this release does "
                               "not know"))
          .remedy = "check it with the release that wrote it";
      return std::nullopt;
    }
    const auto node = root.find("node_id");
    if (!node || !node->is(json::Kind::string) || node->as_string().empty()) {
      return damaged("no node_id");
    }
    const auto cluster = root.find("cluster_id");
    const bool named = cluster && cluster->is(json::Kind::string) &&
                       // Empty: the node belongs to no cluster yet.
                       (cluster->as_string().empty() || parse_hex16(cluster->as_string()));
    if (!named) {
      return damaged("no cluster_id of 16 hex digits");
    }
    const auto disks = root.find("disks");
    if (!disks || !disks->is(json::Kind::array)) return damaged("no disks");
    std::vector<std::string> out;
    for (std::size_t n = 0; n < disks->size(); ++n) {
      const json::Value disk = disks->element(n);
      if (!disk.is(json::Kind::string) || !parse_hex16(disk.as_string())) {
        return damaged("a disk id is not 16 hex digits");
      }
      out.emplace_back(disk.as_string());
    }
    return out;
  }

  void check_topics() {
    const std::string topics_path = join_path(root_, "topics");
    const auto topics = names_in(in_, topics_path);
    if (!topics) return;
    for (const std::string& topic : *topics) {
      const std::string path = join_path(topics_path, topic);
      if (!validate_topic_name(topic)) {
        in_.report.problem(path, "is not named like a topic").remedy = "move it away";
        continue;
      }
      ++in_.report.counters.topics;
      check_topic(path);
    }
  }

  void check_topic(const std::string& path) {
    std::optional<Incarnation> incarnation;
    const std::string incarnation_path = join_path(path, "topic.incarnation");
    const SmallFile file = small_file(in_, incarnation_path, kSmallFileBytesMax);
    if (file.bytes) {
      std::string text = to_text(*file.bytes);
      if (!text.empty() && text.back() == '\n') text.pop_back();
      if (const auto value = parse_hex16(text)) {
        incarnation = Incarnation(*value);
      } else {
        in_.report.problem(incarnation_path, "is damaged: 16 hex digits expected").remedy =
            "restore it from a backup; the metastore knows the incarnation, too";
      }
    } else if (file.missing) {
      in_.report.problem(incarnation_path, "is missing").remedy =
          "restore it from a backup; the metastore knows the incarnation, too";
    }
    const auto names = names_in(in_, path);
    if (!names) return;
    for (const std::string& name : *names) {
      if (name == "topic.incarnation") continue;
      const std::string inner = join_path(path, name);
      const std::size_t digits = std::min(name.find('.'), name.size());
      const auto number = name.starts_with('p')
                              ? parse_number<std::uint32_t>(name.substr(1, digits - 1))
                              : std::nullopt;
      const bool named =
          number && name.substr(0, digits) == partition_directory_name(PartitionId(*number));
      if (named && digits == name.size()) {
        check_partition_files(in_, inner, incarnation);
      } else if (named && name.substr(digits).starts_with(".quarantine")) {
        in_.report.note(inner, "is a copy that was set aside; give its path to check it");
      } else {
        report_stray_name(in_, path, name);
      }
    }
  }

  void note_quarantine() {
    const std::string path = join_path(root_, ".quarantine");
    if (const auto names = names_in(in_, path)) {
      for (const std::string& name : *names) {
        in_.report.note(join_path(path, name), "was set aside; give its path to check it");
      }
    }
  }

  Context& in_;
  const std::string root_;
};

// Checks of parts of a data directory heed its lock, too.
template <class Check>
void with_lock(FileSystem& fs, const std::string& root, Report& report, const CheckOptions& options,
               Check check) {
  ReadOnlyFs readable(fs, report.counters);
  Context in{readable, report, options};
  std::unique_ptr<File> lock;
  if (lock_directory(in, root, lock)) check(in);
}

}  // namespace

std::optional<std::vector<std::string>> names_in(Context& in, const std::string& directory) {
  auto names = in.fs.list(directory);
  if (names) return std::move(names).value();
  in.report.unchecked(directory, names.error());
  return std::nullopt;
}

SmallFile small_file(Context& in, const std::string& path, std::uint64_t limit) {
  SmallFile out;
  auto bytes = read_file(in.fs, path, limit);
  if (bytes) {
    out.bytes = std::move(bytes).value();
  } else if (bytes.error().code() == Errc::not_found) {
    out.missing = true;
  } else if (bytes.error().code() == Errc::too_large) {
    in.report.problem(path, "is far larger than such a file ever is");
  } else {
    in.report.unchecked(path, bytes.error());
  }
  return out;
}

void report_stray_name(Context& in, const std::string& directory, const std::string& name) {
  const std::string path = join_path(directory, name);
  if (name.ends_with(".tmp")) {
    in.report.note(path, "is a temporary file that a crash has left; the node removes it");
  } else {
    in.report.note(path, "is not known here; it is left alone");
  }
}

void check_quick(FileSystem& fs, const std::string& data_dir, Report& report,
                 const CheckOptions& options) {
  with_lock(fs, data_dir, report, options, [&](Context& in) { DataDirCheck(in, data_dir).run(); });
}

void check_wal(FileSystem& fs, const std::string& ingress_dir, Report& report,
               const CheckOptions& options) {
  // A directory that holds no WAL must not pass for a clean one.
  if (auto names = fs.list(ingress_dir); names) {
    const bool wal = std::any_of(names.value().begin(), names.value().end(), [](const auto& name) {
      return ingress::parse_segment_name(name) || name == "checkpoint";
    });
    // (Empty under its own name is a node that has stored nothing yet.)
    const bool fresh = names.value().empty() && ingress_dir.ends_with("/ingress");
    if (!wal && !fresh) {
      report.unchecked(ingress_dir,
                       Error(Errc::invalid_argument,
                             "no ingress WAL is here: give the directory <data>/ingress"));
      return;
    }
  }
  with_lock(fs, parent_path(ingress_dir), report, options,
            [&](Context& in) { check_wal_files(in, ingress_dir); });
}

void check_partition(FileSystem& fs, const std::string& directory,
                     std::optional<Incarnation> incarnation, Report& report,
                     const CheckOptions& options) {
  // <data>/topics/<topic>/p00003
  const std::string root = parent_path(parent_path(parent_path(directory)));
  with_lock(fs, root, report, options,
            [&](Context& in) { check_partition_files(in, directory, incarnation); });
}

void check_path(FileSystem& fs, const std::string& path, Report& report,
                const CheckOptions& options) {
  auto names = fs.list(path);
  if (!names) {
    report.unchecked(path, names.error());
    return;
  }
  for (const std::string& name : names.value()) {
    if (ingress::parse_segment_name(name) || name == "checkpoint") {
      return check_wal(fs, path, report, options);
    }
    if (seglog::parse_log_file_name(name, seglog::kSegmentSuffix) || name == seglog::kHwmName) {
      return check_partition(fs, path, std::nullopt, report, options);
    }
  }
  check_quick(fs, path, report, options);
}

}  // namespace narad::fsck
