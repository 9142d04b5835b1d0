#include "cmd/narad/serve_words.h"

namespace narad::cli {

std::vector<std::string> go_flag_words(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  if (!words.empty()) out.push_back(words[0]);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-' || word == "--") break;
    std::string name = word.substr(word[1] == '-' ? 2 : 1);
    if (name == "h") name = "help";
    std::string& flag = out.emplace_back("--" + name);
    const bool stands_alone = name == "help" || name == "bootstrap";
    bool takes_value = !stands_alone && name.find('=') == std::string::npos;
    if (takes_value && i + 1 < words.size()) flag += "=" + words[++i];
  }
  return out;
}

}  // namespace narad::cli
