#include "pkg/env/fs.h"

#include <cerrno>

#include "pkg/base/text.h"

namespace narad {

Result<void> write_all(File& file, ByteView bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    NARAD_TRY(std::size_t n, file.pwrite(bytes, offset));
    if (n == 0) return Error::system(EIO, "write made no progress");
    bytes = bytes.subspan(n);
    offset += n;
  }
  return ok();
}

Result<std::size_t> read_up_to(File& file, std::span<std::byte> buffer, std::uint64_t offset) {
  std::size_t got = 0;
  while (got < buffer.size()) {
    NARAD_TRY(std::size_t n, file.pread(buffer.subspan(got), offset + got));
    if (n == 0) break;
    got += n;
  }
  return got;
}

Result<void> read_exact(File& file, std::span<std::byte> buffer, std::uint64_t offset) {
  NARAD_TRY(std::size_t n, read_up_to(file, buffer, offset));
  if (n < buffer.size()) {
    return Error(Errc::data_loss, cat("the file ends at byte ", offset + n, ", ", buffer.size() - n,
                                      " bytes short"));
  }
  return ok();
}

Result<Bytes> read_file(FileSystem& fs, const std::string& path, std::uint64_t limit) {
  NARAD_TRY(auto file, fs.open(path, OpenMode::read));
  NARAD_TRY(std::uint64_t size, file->size());
  if (size > limit) {
    return Error(Errc::too_large,
                 cat(path, " is ", size, " bytes; at most ", limit, " make sense here"));
  }
  Bytes out(static_cast<std::size_t>(size));
  NARAD_TRY(std::size_t n, read_up_to(*file, out, 0));
  out.resize(n);
  return out;
}

Result<void> replace_file(FileSystem& fs, const std::string& path, ByteView content) {
  const std::string temporary = path + ".tmp";
  // A temporary left by a crash holds nothing that was acknowledged: it was never renamed.
  if (auto r = fs.remove(temporary); !r && r.error().code() != Errc::not_found) return r.error();
  {
    NARAD_TRY(auto file, fs.open(temporary, OpenMode::create_new));
    NARAD_TRY(write_all(*file, content, 0));
    NARAD_TRY(file->datasync());
  }
  NARAD_TRY(fs.rename(temporary, path));
  return fs.sync_dir(parent_path(path));
}

Result<bool> exists(FileSystem& fs, const std::string& path) {
  auto r = fs.stat(path);
  if (r) return true;
  if (r.error().code() == Errc::not_found) return false;
  return r.error();
}

Result<void> make_directories(FileSystem& fs, const std::string& path) {
  NARAD_TRY(bool there, exists(fs, path));
  const std::string parent = parent_path(path);
  if (there) {
    // An earlier call may have made it and failed to sync. Whoever may not even read the parent did
    // not make it.
    if (auto r = fs.sync_dir(parent); !r && r.error().code() != Errc::forbidden) return r.error();
    return ok();
  }
  if (parent != path) {
    NARAD_TRY(make_directories(fs, parent));
  }
  if (auto r = fs.mkdir(path); !r && r.error().code() != Errc::exists) return r.error();
  return fs.sync_dir(parent);
}

Result<void> remove_tree(FileSystem& fs, const std::string& path) {
  NARAD_TRY(FileStat st, fs.stat(path));
  if (!st.is_directory) return fs.remove(path);
  NARAD_TRY(auto names, fs.list(path));
  for (const std::string& name : names) {
    NARAD_TRY(remove_tree(fs, join_path(path, name)));
  }
  return fs.rmdir(path);
}

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  std::string out(directory);
  if (out.back() != '/') out += '/';
  out += name;
  return out;
}

std::string parent_path(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string_view::npos) return ".";
  if (slash == 0) return "/";
  return std::string(path.substr(0, slash));
}

}  // namespace narad
