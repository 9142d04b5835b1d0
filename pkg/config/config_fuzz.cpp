// Configuration: whatever the bytes of a file, and of variables and flags, a Config or a text that
// says why not. Up to the first zero byte the input is a file; behind it each line is
// NARAD_NAME=value or setting.path=value.
#include <cstdlib>
#include <string>

#include "pkg/config/config.h"

namespace {

// Flags name settings of the table: the command line sees to that.
bool is_setting(const std::string& path) {
  static const auto kSettings = narad::describe_settings();
  for (const auto& setting : kSettings) {
    if (setting.path == path) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  std::string lines;
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    lines = text.substr(zero + 1);
    text.resize(zero);
  }
  narad::ConfigInput input;
  input.file_text = text;
  input.file_name = "fuzz";
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string line = lines.substr(0, end);
    lines.erase(0, end + 1);
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = line.substr(0, equals);
    if (name.starts_with("NARAD_")) {
      input.env.emplace(name, line.substr(equals + 1));
    } else if (is_setting(name)) {
      input.flags.emplace_back(name, line.substr(equals + 1));
    }
  }
  auto r = narad::load_config(input);
  if (!r && !r.error().text().starts_with("config: ")) std::abort();
  if (r && narad::compression_level_of(r.value().storage) < 1) std::abort();
  return 0;
}
