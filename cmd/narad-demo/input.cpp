#include "cmd/narad-demo/input.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pkg/base/text.h"

namespace narad::demo {
namespace {

namespace fs = std::filesystem;
constexpr std::uintmax_t kFileBytesMax = 1 << 20;

std::string field(std::string_view stanza, std::string_view name) {
  std::string start = cat(name, ": ");
  std::size_t at = 0;
  while (at < stanza.size()) {
    std::size_t end = std::min(stanza.find('\n', at), stanza.size());
    std::string_view line = stanza.substr(at, end - at);
    if (line.starts_with(start)) return std::string(line.substr(start.size()));
    at = end + 1;
  }
  return {};
}

std::vector<std::string> candidates(const std::vector<std::string>& roots) {
  std::vector<std::string> paths;
  for (const std::string& root : roots) {
    std::error_code ec;
    fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, ec);
    for (; !ec && it != fs::recursive_directory_iterator(); it.increment(ec)) {
      std::error_code ignored;
      if (!it->is_regular_file(ignored) || it->is_symlink(ignored)) continue;
      std::uintmax_t size = it->file_size(ignored);
      if (!ignored && size > 0 && size <= kFileBytesMax) paths.push_back(it->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? std::move(text).str() : std::string();
}

}  // namespace

std::vector<Item> package_items(std::string_view status, std::string topic) {
  std::vector<Item> items;
  while (!status.empty()) {
    std::size_t end = std::min(status.find("\n\n"), status.size());
    std::string_view stanza = status.substr(0, end);
    status.remove_prefix(std::min(end + 2, status.size()));
    std::string package = field(stanza, "Package");
    if (!package.empty()) items.push_back({topic, std::move(package), std::string(stanza)});
  }
  return items;
}

std::vector<Item> binary_items(const std::vector<std::string>& roots, std::size_t wanted,
                               std::string topic) {
  std::vector<std::string> paths = candidates(roots);
  std::vector<Item> items;
  // Every stride-th file first, then those passed over, until there are enough.
  std::size_t stride = std::max<std::size_t>(1, paths.size() / std::max<std::size_t>(1, wanted));
  for (std::size_t start = 0; start < stride && items.size() < wanted; ++start) {
    for (std::size_t i = start; i < paths.size() && items.size() < wanted; i += stride) {
      std::string bytes = slurp(paths[i]);
      bool fits = !bytes.empty() && bytes.size() <= kFileBytesMax;
      if (fits && !is_utf8(bytes)) items.push_back({topic, paths[i], std::move(bytes)});
    }
  }
  return items;
}

std::uint64_t bytes_of(const std::vector<Item>& items) {
  std::uint64_t sum = 0;
  for (const Item& item : items) sum += item.payload.size();
  return sum;
}

}  // namespace narad::demo
