#pragma once
// The flags of `narad serve` are written as Go's flag package reads them, for existing unit files
// and charts. Pure.
#include <string>
#include <vector>

namespace narad::cli {

// "-x" and "--x" are the same, "-x=v" and "-x v" too; the first word that is no flag ends them and
// all that follows is ignored. `words` begins with "serve".
std::vector<std::string> go_flag_words(const std::vector<std::string>& words);

}  // namespace narad::cli
