#pragma once
// The checks of single things, behind the public ones of check.h.
#include <optional>
#include <string>

#include "internal/fsck/check.h"
#include "internal/fsck/read_only_fs.h"

namespace narad::fsck {

struct Context {
  ReadOnlyFs& fs;
  Report& report;
  const CheckOptions& options;
};

// The names in a directory; nothing (and a finding) if it cannot be listed.
std::optional<std::vector<std::string>> names_in(Context& in, const std::string& directory);
// A whole small file. One that is there and cannot be read is a finding already.
struct SmallFile {
  std::optional<Bytes> bytes;
  bool missing = false;
};
SmallFile small_file(Context& in, const std::string& path, std::uint64_t limit);
// A temporary file of a crash, or a name that is not Narad's.
void report_stray_name(Context& in, const std::string& directory, const std::string& name);

void check_partition_files(Context& in, const std::string& directory,
                           std::optional<Incarnation> incarnation);
// `hwm`: nothing at or above it exists.
void check_consumer_state(Context& in, const std::string& directory,
                          std::optional<Incarnation> incarnation, Offset hwm);
void check_wal_files(Context& in, const std::string& directory);
void check_metastore_files(Context& in, const std::string& directory);

}  // namespace narad::fsck
